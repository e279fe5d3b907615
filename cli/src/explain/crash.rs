// SPDX-License-Identifier: Apache-2.0
//! The last line of a hypervisor that failed: an exception that it caused itself, or an invariant that did
//! not hold.
//!
//! On a microcontroller a broken invariant is an undefined instruction, because texts would take more code
//! memory than all the rest of the crash. The report therefore has only the address, and the class binary's
//! symbols say which code is there.

/// The beginning of such a line.
const CRASH: &str = "LOCKDOWN: exception ";

/// Returns the place where the class binary failed, as an address of its ELF file.
pub fn place(text: &str) -> Option<u64> {
    let line = &text[text.find(CRASH)?..];
    // aarch64: the binary runs at the address at which it was loaded, so that address is subtracted.
    match (number(line, " pc=0x"), number(line, " elr=0x")) {
        (Some(pc), _) => Some(pc),
        (None, Some(pc)) => pc.checked_sub(number(line, " base=0x")?),
        (None, None) => None,
    }
}

/// Returns the hexadecimal number after a key.
fn number(line: &str, key: &str) -> Option<u64> {
    let rest = &line[line.find(key)? + key.len()..];
    let end = rest
        .find(|char: char| !char.is_ascii_hexdigit())
        .unwrap_or(rest.len());
    u64::from_str_radix(&rest[..end], 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_an_address_of_the_elf_file() {
        let small = "LOCKDOWN: exception 0x00000003 in the hypervisor: cfsr=0x00010000 hfsr=0x40000000 pc=0x003d8a2c sp=0x60ffc000";
        assert_eq!(place(small), Some(0x003d_8a2c));
        let large = "the hypervisor crashed in boot 1: LOCKDOWN: exception in the hypervisor: vector=0x4 esr=0x2000000 elr=0x40200c00 far=0x0 sp=0x40212f30 base=0x40200000";
        assert_eq!(place(large), Some(0xc00));
        // One line was cut off, and the other is of a partition's making.
        assert_eq!(
            place("LOCKDOWN: exception in the hypervisor: vector=0x4 elr=0x40200c00"),
            None
        );
        assert_eq!(place("LOCKDOWN: exception  pc=0x"), None);
        assert_eq!(place("pc=0x1000"), None);
    }
}
