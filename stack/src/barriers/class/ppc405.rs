// SPDX-License-Identifier: Apache-2.0
//! The rules of class `ppc405` (IBM, PowerPC 405 Embedded Processor Core User's Manual). The hypervisor runs
//! without translation. It meets a changed entry of the TLB, PID or ZPR only after `rfi`, or after `mtmsr`
//! and the `isync` that is demanded here. So these writes have no rule.

use super::{Rule, Rules, facts};
use crate::barriers::flow::{Facts, Flow, Node};
use crate::class::number;

/// Class `ppc405`.
pub(super) static PPC405: Rules = Rules {
    name: "ppc405",
    rules: RULES,
    at_start: 0,
    flow,
    read,
    refine: |_, _, _| {},
    sequences: |_| Vec::new(),
};

const CLEAN: usize = 0;
const DROP: usize = 1;
const MODE: usize = 2;
const STORAGE: usize = 3;
const BUFFER: usize = 4;

/// The rules, in the order of the constants above.
static RULES: &[Rule] = &[
    Rule {
        fact: "maintenance of the data cache",
        end: "SYNC before instructions are dropped, the function ends and RFI",
        manual: "PPC405 UM 4.3, \"Cache control and coherency\"",
    },
    Rule {
        fact: "a drop of instructions",
        end: "ISYNC before the function ends",
        manual: "PPC405 UM 4.3",
    },
    Rule {
        fact: "a write of the MSR",
        end: "ISYNC before a load or store and the end of the function",
        manual: "PPC405 UM 2.13.1, \"Context synchronization\"",
    },
    Rule {
        fact: "a write of DCCR, ICCR, SGR or DCWR",
        end: "ISYNC before a load or store and the end of the function",
        manual: "PPC405 UM 2.13.1 and 7.6, \"Real-mode storage attribute control\"",
    },
    Rule {
        fact: "TLBIA",
        end: "ISYNC before a load or store and the end of the function",
        manual: "PPC405 UM 2.13.1 and 7.4",
    },
];

/// The facts that a context synchronizing instruction ends.
const CONTEXT: Facts = facts(&[DROP, MODE, STORAGE, BUFFER]);
const ALL: Facts = CONTEXT | facts(&[CLEAN]);

/// SGR, DCWR, DCCR and ICCR.
const STORAGE_REGISTERS: [u32; 4] = [953, 954, 1018, 1019];

/// Returns the mnemonic without the hint of a branch.
fn plain(mnemonic: &str) -> &str {
    mnemonic.trim_end_matches(['+', '-'])
}

/// Notes the facts of an instruction.
fn read(node: &mut Node, mnemonic: &str, operands: &str) {
    let mnemonic = plain(mnemonic);
    match mnemonic {
        "sync" | "msync" => node.ends = facts(&[CLEAN]),
        "isync" => node.ends = CONTEXT,
        "rfi" | "rfci" => {
            node.needs = facts(&[CLEAN]);
            node.ends = CONTEXT;
        }
        "dcbst" | "dcbf" | "dccci" => node.begins = facts(&[CLEAN]),
        "icbi" | "iccci" => {
            node.needs = facts(&[CLEAN]);
            node.begins = facts(&[DROP]);
        }
        "mtmsr" | "wrtee" | "wrteei" => node.begins = facts(&[MODE]),
        "tlbia" => node.begins = facts(&[BUFFER]),
        "mtdccr" | "mticcr" | "mtsgr" | "mtdcwr" => node.begins = facts(&[STORAGE]),
        "mtspr" => {
            let register = operands.split(',').next().and_then(number);
            if register.is_some_and(|register| STORAGE_REGISTERS.contains(&register)) {
                node.begins = facts(&[STORAGE]);
            }
        }
        "blr" => node.promises = ALL,
        _ if (mnemonic.starts_with("st") || mnemonic.starts_with('l')) && operands.contains('(') => {
            node.needs = facts(&[MODE, STORAGE, BUFFER]);
        }
        _ => {}
    }
}

/// Returns the address that a branch leads to.
fn target(operands: &str) -> Option<u32> {
    number(operands.rsplit(',').next()?)
}

fn flow(mnemonic: &str, operands: &str) -> Flow {
    match plain(mnemonic) {
        "bl" => target(operands).map_or(Flow::Next, Flow::Call),
        "b" => target(operands).map_or(Flow::Stop, |to| Flow::Jump(to, false)),
        "blr" => Flow::Return(false),
        "bctr" => Flow::JumpByAddress,
        "bctrl" | "blrl" => Flow::CallByAddress,
        "rfi" | "rfci" => Flow::Leave,
        // Filling, and words that no instruction has.
        "" | "trap" => Flow::Stop,
        other if other.starts_with('b') && other.ends_with("lr") => Flow::Return(true),
        other if other.starts_with('b') => target(operands).map_or(Flow::Next, |to| Flow::Jump(to, true)),
        _ => Flow::Next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::barriers::tests::judged;

    const DCBST: u32 = 0x7C00_186C;
    const SYNC: u32 = 0x7C00_04AC;
    const ICCCI: u32 = 0x7C00_1F8C;
    const ISYNC: u32 = 0x4C00_012C;
    const MTMSR: u32 = 0x7C60_0124;
    const MTDCCR: u32 = 0x7C7A_FBA6;
    const TLBIA: u32 = 0x7C00_02E4;
    const BLR: u32 = 0x4E80_0020;
    const LWZ: u32 = 0x8083_0000;
    const RFI: u32 = 0x4C00_0064;
    /// A branch over the next instruction.
    const BEQ: u32 = 0x4182_0008;

    fn of(words: &[u32]) -> Vec<usize> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        judged("ppc405", &bytes)
    }

    #[test]
    fn caches_are_synchronized() {
        assert_eq!(of(&[DCBST, SYNC, ICCCI, ISYNC, BLR]), []);
        assert_eq!(of(&[DCBST, ICCCI, ISYNC, SYNC, BLR]), [CLEAN]);
        assert_eq!(of(&[DCBST, BEQ, SYNC, BLR]), [CLEAN]);
        assert_eq!(of(&[DCBST, RFI]), [CLEAN]);
        assert_eq!(of(&[ICCCI, BLR]), [DROP]);
    }

    #[test]
    fn the_context_is_synchronized() {
        assert_eq!(of(&[MTMSR, LWZ, ISYNC, BLR]), [MODE]);
        assert_eq!(of(&[MTMSR, ISYNC, LWZ, BLR]), []);
        assert_eq!(of(&[MTDCCR, LWZ, ISYNC, BLR]), [STORAGE]);
        assert_eq!(of(&[MTDCCR, ISYNC, LWZ, BLR]), []);
        assert_eq!(of(&[TLBIA, BLR]), [BUFFER]);
        assert_eq!(of(&[MTMSR, RFI]), []);
    }
}
