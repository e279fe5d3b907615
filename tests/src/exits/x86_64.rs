// SPDX-License-Identifier: Apache-2.0
//! The emulator's record of exits on class `x86_64`: a text for each #VMEXIT, which begins with the exit
//! code. It does not name the pCPU, and can stand after the text of an injected exception in the same line.

use super::{ACCESS, CALL, Exits, IDLE, INSTRUCTION, INTERRUPT, OTHER};

/// Counts the exits of a record.
pub(super) fn count(text: &str) -> Exits {
    let mut exits = Exits::new();
    let counts = exits.entry(0).or_default();
    let codes = text
        .split("vmexit(")
        .skip(1)
        .filter_map(|exit| u32::from_str_radix(exit.split(',').next()?, 16).ok());
    for code in codes {
        counts[cause(code)] += 1;
    }
    exits
}

/// Returns the cause of an exit code (AMD APM volume 2, appendix C).
const fn cause(code: u32) -> usize {
    match code {
        // INTR, NMI, and the interrupt window.
        0x60 | 0x61 | 0x64 => INTERRUPT,
        0x81 => CALL,
        // Ports, and nested page faults.
        0x7B | 0x400 => ACCESS,
        // Writes of CR4 and CR8, debug registers, CPUID, IRET, INVD, RDMSR and WRMSR, WBINVD.
        0x14 | 0x18 | 0x20..=0x3F | 0x72 | 0x74 | 0x76 | 0x7C | 0x89 => INSTRUCTION,
        0x78 => IDLE,
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "vmrun! 0000000000267000
vmexit(00000060, 0000000000000000, 0000000000000000, 0000000000101b74)!
IN: \u{fffd}
vmrun! 0000000000267000
Injecting(0x800): EXEPTvmexit(0000007b, 0000000003fd0011, 0000000000101b75, 0000000000101b74)!
vmexit(0000004e, 0000000000000000, 0000000000101b75, 0000000000101b74)!
";

    #[test]
    fn exits_are_counted_by_their_code() {
        let mut expected = [0; 7];
        (expected[INTERRUPT], expected[ACCESS], expected[OTHER]) = (1, 1, 1);
        assert_eq!(count(RECORD), Exits::from([(0, expected)]));
    }
}
