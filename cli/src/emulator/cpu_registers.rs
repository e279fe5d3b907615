// SPDX-License-Identifier: Apache-2.0
//! The few registers that the tool needs of the emulator's list, which is written for people. Each
//! architecture has its own words.

/// Registers of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuRegisters {
    /// The program counter.
    pub(super) pc: Option<u64>,
    /// The link register, where there is one.
    pub(super) link: Option<u64>,
}

/// The names of a program counter and of a link register, on one architecture or several. A PC has R14 and
/// R15, too, which are neither there.
const NAMES: [(&[&str], &[&str]); 3] = [
    (&["RIP", "EIP"], &[]),
    (&["PC", "NIP"], &["X30", "LR"]),
    (&["R15"], &["R14"]),
];

/// Returns the registers of each CPU, in the order of the list.
pub(super) fn read(text: &str) -> Vec<CpuRegisters> {
    // PowerPC writes the title once more, at the end of the first line.
    let of_cpu = text
        .split("CPU#")
        .skip(1)
        .filter(|part| part.contains(['=', ' ']));
    let all = of_cpu.map(of_part).filter(|registers| registers.pc.is_some());
    all.collect()
}

fn of_part(part: &str) -> CpuRegisters {
    let found = NAMES.iter().map(|(counters, links)| CpuRegisters {
        pc: value(part, counters),
        link: value(part, links),
    });
    { found }.find(|found| found.pc.is_some()).unwrap_or_default()
}

/// Returns the number after the first of these names.
fn value(part: &str, names: &[&str]) -> Option<u64> {
    let mut words = part
        .split(['\\', ' ', '=', '\r', '\n'])
        .filter(|word| !word.is_empty());
    // The editors of lines leave the `r` and `n` of "\r\n" in front of a word.
    words.find(|word| names.contains(&word.trim_start_matches(['r', 'n'])))?;
    u64::from_str_radix(words.next()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(pc: u64, link: u64) -> CpuRegisters {
        CpuRegisters {
            pc: Some(pc),
            link: Some(link),
        }
    }

    #[test]
    fn every_architectures_registers_are_found() {
        let arm = r#"{"return": "\r\nCPU#0\r\n PC=0000000040300200 X00=0000000040202000\r\nX29=0 X30=0000000040080018  SP=0\r\n\r\nCPU#1\r\n PC=0000000000000004 X00=1\r\nX30=7 SP=0"}"#;
        assert_eq!(read(arm), [registers(0x4030_0200, 0x4008_0018), registers(4, 7)]);
        let small =
            r#"{"return": "\r\nCPU#0\r\nR00=00000000 R01=0\r\nR12=0 R13=1 R14=2 R15=0000c0de\r\nXPSR=0"}"#;
        assert_eq!(read(small), [registers(0xc0de, 2)]);
        let pc = r#"{"return": "\r\nCPU#0\r\nRAX=0 RBX=0\r\nR12=1 R13=2 R14=3 R15=4\r\nRIP=0000000000100000 RFL=00000002"}"#;
        let pc = read(pc);
        assert_eq!((pc[0].pc, pc[0].link), (Some(0x10_0000), None));
        let power =
            r#"{"return": "\r\nCPU#0\r\nNIP fffffffc   LR 00000010 CTR 0 XER 00000000 CPU#0\r\nMSR 0"}"#;
        assert_eq!(read(power), [registers(0xffff_fffc, 0x10)]);
        assert_eq!(read("CPU#0 nothing"), []);
    }
}
