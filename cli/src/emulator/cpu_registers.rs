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

const PROGRAM_COUNTERS: [&str; 5] = ["PC", "RIP", "EIP", "NIP", "R15"];
const LINKS: [&str; 3] = ["X30", "LR", "R14"];

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
    let mut words = part
        .split(['\\', ' ', '=', '\r', '\n'])
        .filter(|word| !word.is_empty());
    let mut found = CpuRegisters::default();
    while let Some(word) = words.next() {
        // The editors of lines leave the `r` and `n` of "\r\n" in front of a word.
        let name = word.trim_start_matches(['r', 'n']);
        let place = if PROGRAM_COUNTERS.contains(&name) {
            &mut found.pc
        } else if LINKS.contains(&name) {
            &mut found.link
        } else {
            continue;
        };
        if place.is_none() {
            *place = words.next().and_then(|value| u64::from_str_radix(value, 16).ok());
        }
    }
    found
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
        let pc = r#"{"return": "\r\nCPU#0\r\nRAX=0 RBX=0\r\nRIP=0000000000100000 RFL=00000002"}"#;
        let pc = read(pc);
        assert_eq!((pc[0].pc, pc[0].link), (Some(0x10_0000), None));
        let power =
            r#"{"return": "\r\nCPU#0\r\nNIP fffffffc   LR 00000010 CTR 0 XER 00000000 CPU#0\r\nMSR 0"}"#;
        assert_eq!(read(power), [registers(0xffff_fffc, 0x10)]);
        assert_eq!(read("CPU#0 nothing"), []);
    }
}
