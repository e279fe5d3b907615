// SPDX-License-Identifier: Apache-2.0
//! The words of the hypervisor's end: the kernel and the backends write them, the host tool reads them.
//!
//! These lines are texts and no [entries](super::entry). A backend that fails may have no log yet, and a
//! crash must not rest on more than a line in a buffer and a UART.

/// Makes the line of a lockdown, with its reason.
#[macro_export]
macro_rules! lockdown {
    ($reason:literal) => {
        concat!("LOCKDOWN: ", $reason)
    };
}

/// The begin of each line that tells of a lockdown. Its reason follows.
pub const LOCKDOWN: &str = lockdown!("");
/// The begin of the line that a backend writes at an exception of its own.
pub const EXCEPTION: &str = lockdown!("exception ");
/// The begin of the same line where the architecture calls exceptions interrupts.
pub const INTERRUPT: &str = lockdown!("interrupt ");
/// The line that a backend writes at an exception of its own, up to its vector.
pub const EXCEPTION_BY_VECTOR: &str = lockdown!("exception in the hypervisor: vector=");
/// The key of the program counter as an address of the class binary's ELF file.
pub const PC: &str = " pc=";
/// The key of the program counter of a class binary that runs where it was loaded.
pub const ELR: &str = " elr=";
/// The key of the address at which the class binary was loaded.
pub const BASE: &str = " base=";
/// The begin of the line of a panic.
pub const PANIC: &str = lockdown!("panic in the hypervisor");

crate::numbered! {
    /// The reason why the hypervisor ends a system that is in order.
    Ending {
        /// No partition runs, and none is left that could start one.
        AllStopped = 1, "all partitions stopped";
        /// The virtual time that the system image allows is over.
        TimeLimit = 2, "stopping: time limit";
    }
}

/// Returns the reason of a lockdown, if the line tells of one.
#[must_use]
pub fn lockdown_reason(line: &str) -> Option<&str> {
    line.strip_prefix(LOCKDOWN)
}

/// Returns the place where the class binary failed, as an address of its ELF file. The line may be of an
/// earlier life, so the words of a crash may stand anywhere in it.
#[must_use]
pub fn crash_place(line: &str) -> Option<u64> {
    let start = line.find(EXCEPTION).or_else(|| line.find(INTERRUPT))?;
    let line = line.get(start..)?;
    match (number(line, PC), number(line, ELR)) {
        (Some(pc), _) => Some(pc),
        (None, Some(pc)) => pc.checked_sub(number(line, BASE)?),
        (None, None) => None,
    }
}

/// Returns the hexadecimal number after a key.
fn number(line: &str, key: &str) -> Option<u64> {
    let (_, rest) = line.split_once(key)?;
    let digits = rest.strip_prefix("0x")?;
    let end = digits.find(|char: char| !char.is_ascii_hexdigit());
    u64::from_str_radix(digits.get(..end.unwrap_or(digits.len()))?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::line::Line;

    fn written(line: &Line<256>) -> &str {
        core::str::from_utf8(line.as_bytes()).unwrap()
    }

    #[test]
    fn the_place_of_a_crash_is_an_address_of_the_elf_file() {
        let mut small = Line::<256>::of(EXCEPTION);
        small.hex(3).text(" in the hypervisor: cfsr=").hex(0x1_0000);
        small.text(PC).hex(0x3d_8a2c).text(" sp=").hex(0x60ff_c000);
        assert_eq!(crash_place(written(&small)), Some(0x3d_8a2c));
        assert_eq!(
            lockdown_reason(written(&small)),
            Some("exception 0x3 in the hypervisor: cfsr=0x10000 pc=0x3d8a2c sp=0x60ffc000")
        );
        let mut power = Line::<256>::of(INTERRUPT);
        power.hex(0x300).text(PC).hex(0x1c);
        assert_eq!(crash_place(written(&power)), Some(0x1c));
        let mut large = Line::<256>::of("the hypervisor crashed in boot 1: ");
        large
            .text(EXCEPTION_BY_VECTOR)
            .hex(4)
            .text(" esr=")
            .hex(0x200_0000);
        large.text(ELR).hex(0x4020_0c00).text(BASE).hex(0x4020_0000);
        assert_eq!(crash_place(written(&large)), Some(0xc00));
    }

    #[test]
    fn a_line_that_is_cut_off_or_of_another_writer_has_no_place() {
        for line in [
            "LOCKDOWN: exception in the hypervisor: vector=0x4 elr=0x40200c00",
            "LOCKDOWN: exception  pc=0x",
            "LOCKDOWN: exception  pc=1000",
            "LOCKDOWN: panic in the hypervisor pc=0x1000",
            "pc=0x1000",
        ] {
            assert_eq!(crash_place(line), None, "{line}");
        }
        assert_eq!(lockdown_reason(" LOCKDOWN: x"), None);
    }
}
