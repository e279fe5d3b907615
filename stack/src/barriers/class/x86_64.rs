// SPDX-License-Identifier: Apache-2.0
//! The rules of class `x86_64` (AMD64 Architecture Programmer's Manual, volume 2). A write of CR3 and `vmrun`
//! serialize by themselves (7.6.4), and stores are seen in their order, so there are no barriers to forget.
//! The order of the instructions around a guest is left.

use super::{Rule, Rules, facts};
use crate::barriers::flow::{Flow, Node};
use crate::class::number;

/// Class `x86_64`.
pub(super) static X86_64: Rules = Rules {
    name: "x86_64",
    rules: RULES,
    at_start: facts(&[OPEN]),
    flow,
    read,
    refine: |_, _, _| {},
    sequences: |_| Vec::new(),
};

const OPEN: usize = 0;
const SHUT: usize = 1;
const UNSAVED: usize = 2;
const GUEST: usize = 3;

/// The rules, in the order of the constants above.
static RULES: &[Rule] = &[
    Rule {
        fact: "the global interrupt flag set",
        end: "CLGI before VMRUN",
        manual: "APM 2, 15.17, \"Global interrupt flag\"",
    },
    Rule {
        fact: "the global interrupt flag clear",
        end: "STGI before the function ends",
        manual: "APM 2, 15.17",
    },
    Rule {
        fact: "a guest's state that VMRUN leaves in the CPU",
        end: "VMSAVE before VMLOAD",
        manual: "APM 2, 15.5.2, \"VMSAVE and VMLOAD\"",
    },
    Rule {
        fact: "a guest's FS, GS, TR and LDTR",
        end: "VMLOAD before STGI and the end of the function",
        manual: "APM 2, 15.5.2",
    },
];

/// Notes the facts of an instruction.
fn read(node: &mut Node, mnemonic: &str, _operands: &str) {
    match mnemonic {
        "clgi" => {
            node.ends = facts(&[OPEN]);
            node.begins = facts(&[SHUT]);
        }
        "stgi" => {
            node.needs = facts(&[GUEST]);
            node.ends = facts(&[SHUT]);
            node.begins = facts(&[OPEN]);
        }
        "vmrun" => {
            node.needs = facts(&[OPEN]);
            node.begins = facts(&[UNSAVED, GUEST]);
        }
        "vmsave" => node.ends = facts(&[UNSAVED]),
        "vmload" => {
            node.needs = facts(&[UNSAVED]);
            node.ends = facts(&[GUEST]);
        }
        "ret" => node.promises = facts(&[SHUT, GUEST]),
        _ => {}
    }
}

fn flow(mnemonic: &str, operands: &str) -> Flow {
    let to = number(operands);
    match (mnemonic, to) {
        ("call", Some(to)) => Flow::Call(to),
        ("call", None) => Flow::CallByAddress,
        ("jmp", Some(to)) => Flow::Jump(to, false),
        ("jmp", None) => Flow::JumpByAddress,
        ("ret" | "iretq", _) => Flow::Return(false),
        ("ud2" | "int3", _) => Flow::Stop,
        (_, Some(to)) if mnemonic.starts_with('j') || mnemonic.starts_with("loop") => Flow::Jump(to, true),
        _ => Flow::Next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::barriers::tests::judged;

    const CLGI: &[u8] = &[0x0F, 0x01, 0xDD];
    const STGI: &[u8] = &[0x0F, 0x01, 0xDC];
    const VMLOAD: &[u8] = &[0x0F, 0x01, 0xDA];
    const VMSAVE: &[u8] = &[0x0F, 0x01, 0xDB];
    const VMRUN: &[u8] = &[0x0F, 0x01, 0xD8];
    const RET: &[u8] = &[0xC3];

    fn of(parts: &[&[u8]]) -> Vec<usize> {
        judged("x86_64", &parts.concat())
    }

    #[test]
    fn a_guest_runs_between_clgi_and_stgi() {
        assert_eq!(of(&[CLGI, VMLOAD, VMRUN, VMSAVE, VMLOAD, STGI, RET]), []);
        assert_eq!(of(&[VMLOAD, VMRUN, VMSAVE, VMLOAD, RET]), [OPEN]);
        assert_eq!(of(&[CLGI, VMRUN, VMSAVE, VMLOAD, RET]), [SHUT]);
        assert_eq!(of(&[CLGI, VMRUN, VMLOAD, STGI, RET]), [UNSAVED]);
        assert_eq!(of(&[CLGI, VMRUN, VMSAVE, STGI, VMLOAD, RET]), [GUEST]);
    }
}
