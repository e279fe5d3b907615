// SPDX-License-Identifier: Apache-2.0
//! The rules of class `aarch64` (Arm DDI 0487). An exception return and an exception synchronize the context.
//!
//! A list register that is written and read back has no rule here, because only one that is filled matters.
//! The model of `arch/vgic` shows old status registers until they are settled.

use super::{Rule, Rules, facts};
use crate::barriers::flow::{Facts, Flow, Node};
use crate::class::aarch64::target;
use crate::program::{Instruction, Program};

/// Class `aarch64`.
pub(super) static AARCH64: Rules = Rules {
    name: "aarch64",
    rules: RULES,
    at_start: 0,
    flow,
    read,
    refine: |_, _, _| {},
    sequences,
};

const STORE: usize = 0;
const LOCAL: usize = 1;
const SHARED: usize = 2;
const FETCH: usize = 3;
const SPACE: usize = 4;
const TRAPS: usize = 5;
const TABLES: usize = 6;
const CONTROL: usize = 7;
const RESULT: usize = 8;
const INTERFACE: usize = 9;
const STAGE_1: usize = 10;

/// The rules, in the order of the constants above.
static RULES: &[Rule] = &[
    Rule {
        fact: "a store",
        end: "a DSB before a broadcast TLBI or an SGI",
        manual: "DDI 0487 D8.14, \"Ordering and completion of TLB maintenance instructions\"; IHI 0069 12.1.6",
    },
    Rule {
        fact: "maintenance of this CPU",
        end: "a DSB before the function ends, ISB, WFI, an exception return and a change of translation",
        manual: "DDI 0487 D8.14 and D7.5.9",
    },
    Rule {
        fact: "maintenance of all CPUs",
        end: "a DSB of the inner shareable domain, likewise",
        manual: "DDI 0487 D8.14 and D7.5.9",
    },
    Rule {
        fact: "a TLBI of EL2",
        end: "an ISB before the function ends and a change of SCTLR_EL2",
        manual: "DDI 0487 D8.14",
    },
    Rule {
        fact: "a write of VTTBR_EL2 or VTCR_EL2",
        end: "an ISB before TLBI and AT",
        manual: "DDI 0487 D19.1.2, \"Synchronization requirements for AArch64 System registers\"",
    },
    Rule {
        fact: "a write of CPTR_EL2",
        end: "an ISB before a floating-point instruction",
        manual: "DDI 0487 D19.1.2",
    },
    Rule {
        fact: "a write of MAIR_EL2, TCR_EL2 or TTBR0_EL2",
        end: "an ISB before TLBI and a change of SCTLR_EL2",
        manual: "DDI 0487 D19.1.2",
    },
    Rule {
        fact: "a write of SCTLR_EL2",
        end: "an ISB before a load or store and the end of the function",
        manual: "DDI 0487 D19.1.2",
    },
    Rule {
        fact: "AT",
        end: "an ISB before PAR_EL1 is read",
        manual: "DDI 0487 D8.15, \"Address translation instructions\"",
    },
    Rule {
        fact: "a write of ICC_SRE_EL2",
        end: "an ISB before another register of the CPU interface",
        manual: "IHI 0069 12.2.23; DDI 0487 D19.1.2",
    },
    Rule {
        fact: "a TLBI of stage 2 by address",
        end: "a TLBI of stage 1 before the function ends and an exception return, behind a DSB",
        manual: "DDI 0487 D8.14, \"Invalidation of stage 2 translations\"",
    },
];

/// The facts that an ISB ends.
const CONTEXT: Facts = facts(&[FETCH, SPACE, TRAPS, TABLES, CONTROL, RESULT, INTERFACE]);
/// Maintenance that is not done.
const MAINTENANCE: Facts = facts(&[LOCAL, SHARED]);

/// The first and the last but one word of a page where an ADRP may give a wrong address.
const ENDS_OF_PAGE: [u32; 2] = [0xFF8, 0xFFC];
/// Reason why a sequence may not be there.
const ERRATUM: &str = "erratum 843419 of Cortex-A53: ADRP at the end of a page, a load or store, and one by the \
                       ADRP's register (Arm EPM-048406)";
/// Reason why another one may not.
const SPECULATION: &str = "no DSB and ISB after an ERET: the CPU may speculate past it";

/// Returns the sequences that may not be there.
fn sequences(program: &Program) -> Vec<(u32, &'static str)> {
    let words = |window: &[Instruction]| window.iter().map(word).collect::<Vec<_>>();
    let windows = program.code.windows(4);
    let adrps = windows.filter(|window| has_erratum(window[0].address, &words(window)));
    let mut found: Vec<_> = adrps.map(|window| (window[0].address, ERRATUM)).collect();
    let returns = program
        .code
        .windows(3)
        .filter(|window| window[0].mnemonic == "eret");
    let bare = returns.filter(|window| window[1].mnemonic != "dsb" || window[2].mnemonic != "isb");
    found.extend(bare.map(|window| (window[0].address, SPECULATION)));
    found
}

/// Returns the word of an instruction.
fn word(instruction: &Instruction) -> u32 {
    let bytes = <[u8; 4]>::try_from(instruction.bytes.as_slice());
    bytes.map_or(0, u32::from_le_bytes)
}

/// Tells whether these instructions are the erratum's: ADRP, a load or store, perhaps one more, and a load or
/// store with an unsigned offset by the register of the ADRP.
fn has_erratum(address: u32, words: &[u32]) -> bool {
    let &[adrp, second, third, fourth] = words else {
        return false;
    };
    let is_adrp = adrp & 0x9F00_0000 == 0x9000_0000;
    let is_access = |word: u32| word & 0x0A00_0000 == 0x0800_0000;
    let is_literal = |word: u32| word & 0x3B00_0000 == 0x1800_0000;
    let register = adrp & 0x1F;
    let uses = |word: u32| word & 0x3B00_0000 == 0x3900_0000 && word >> 5 & 0x1F == register;
    // A load into the register of the ADRP ends the sequence, and so does a branch.
    let is_changed = second & 0x1F == register && second & 0x0040_0000 != 0;
    let is_branch = third & 0x1C00_0000 == 0x1400_0000 && third >> 24 != 0xD5;
    is_adrp
        && ENDS_OF_PAGE.contains(&(address & 0xFFF))
        && is_access(second)
        && !is_literal(second)
        && !is_changed
        && (uses(third) || !is_branch && uses(fourth))
}

/// Notes the facts of an instruction.
fn read(node: &mut Node, mnemonic: &str, operands: &str) {
    let operand = operands.split(',').next().unwrap_or_default().trim();
    match mnemonic {
        "dsb" => data_barrier(node, operand),
        "isb" => {
            node.needs = MAINTENANCE;
            node.ends = CONTEXT;
        }
        "tlbi" => invalidation(node, operand),
        "ic" | "dc" => cache(node, mnemonic, operand),
        "at" => {
            node.needs = facts(&[SPACE]);
            node.begins = facts(&[RESULT]);
        }
        "msr" => write_register(node, operand),
        "mrs" => read_register(node, operands),
        "wfi" => node.needs = MAINTENANCE,
        "eret" => {
            node.needs = MAINTENANCE | facts(&[STAGE_1]);
            node.ends = CONTEXT;
        }
        "ret" => node.promises = MAINTENANCE | facts(&[FETCH, CONTROL, STAGE_1]),
        _ => access(node, mnemonic, operand),
    }
}

fn data_barrier(node: &mut Node, domain: &str) {
    let is_shared = !domain.starts_with("nsh");
    if domain.ends_with("ld") {
        return;
    }
    if is_shared {
        node.ends |= facts(&[STORE]);
    }
    if !domain.ends_with("st") {
        node.ends |= facts(&[LOCAL]);
        node.ends |= if is_shared { facts(&[SHARED]) } else { 0 };
    }
}

fn invalidation(node: &mut Node, operation: &str) {
    let is_shared = operation.ends_with("is") || operation.ends_with("os");
    node.needs = facts(&[SPACE, TABLES]) | if is_shared { facts(&[STORE]) } else { 0 };
    node.begins = facts(&[if is_shared { SHARED } else { LOCAL }]);
    if operation.starts_with("ipas2") {
        node.begins |= facts(&[STAGE_1]);
    } else if operation.contains("e2") {
        node.begins |= facts(&[FETCH]);
    } else if operation.starts_with("vmall") || operation.starts_with("alle1") {
        // Entries of both stages could be made anew of an old one of stage 2.
        node.needs |= MAINTENANCE;
        node.ends = facts(&[STAGE_1]);
    }
}

fn cache(node: &mut Node, mnemonic: &str, operation: &str) {
    match (mnemonic, operation) {
        ("ic", "iallu") => node.begins = facts(&[LOCAL]),
        ("ic", _) => {
            // Lines of data are back in memory before instructions are fetched again.
            node.needs = facts(&[SHARED]);
            node.begins = facts(&[SHARED]);
        }
        (_, "zva") => node.begins = facts(&[STORE]),
        _ => node.begins = facts(&[SHARED]),
    }
}

fn write_register(node: &mut Node, register: &str) {
    match register {
        "vttbr_el2" | "vtcr_el2" => {
            node.needs = MAINTENANCE;
            node.begins = facts(&[SPACE]);
        }
        "cptr_el2" => node.begins = facts(&[TRAPS]),
        "mair_el2" | "tcr_el2" | "ttbr0_el2" => {
            node.needs = MAINTENANCE;
            node.begins = facts(&[TABLES]);
        }
        "sctlr_el2" => {
            node.needs = MAINTENANCE | facts(&[FETCH, TABLES]);
            node.begins = facts(&[CONTROL]);
        }
        "icc_sre_el2" => node.begins = facts(&[INTERFACE]),
        "icc_sgi1r_el1" => node.needs = facts(&[STORE, INTERFACE]),
        _ if register.starts_with("icc_") || register.starts_with("ich_") => {
            node.needs = facts(&[INTERFACE]);
        }
        _ => {}
    }
}

fn read_register(node: &mut Node, operands: &str) {
    let register = operands.rsplit(',').next().unwrap_or_default().trim();
    match register {
        "par_el1" => node.needs = facts(&[RESULT]),
        "icc_sre_el2" => {}
        _ if register.starts_with("icc_") || register.starts_with("ich_") => {
            node.needs = facts(&[INTERFACE]);
        }
        _ => {}
    }
}

/// Reads an instruction that is no system instruction.
fn access(node: &mut Node, mnemonic: &str, operand: &str) {
    let is_store = mnemonic.starts_with("st");
    if is_store || mnemonic.starts_with("ld") {
        node.needs |= facts(&[CONTROL]);
    }
    if is_store {
        node.begins |= facts(&[STORE]);
    }
    let register = operand.trim_start_matches('{').trim();
    if register.starts_with(['q', 'd', 'v']) && !matches!(mnemonic, "dmb" | "dsb") {
        node.needs |= facts(&[TRAPS]);
    }
}

fn flow(mnemonic: &str, operands: &str) -> Flow {
    let to = target(mnemonic, operands);
    match (mnemonic, to) {
        ("bl", Some(to)) => Flow::Call(to),
        ("b", Some(to)) => Flow::Jump(to, false),
        (_, Some(to)) => Flow::Jump(to, true),
        ("blr", _) => Flow::CallByAddress,
        ("br", _) => Flow::JumpByAddress,
        ("ret", _) => Flow::Return(false),
        ("eret", _) => Flow::Leave,
        ("brk" | "udf" | "hlt", _) => Flow::Stop,
        _ => Flow::Next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::barriers::tests::judged;

    const TLBI_OWN: u32 = 0xD50C_871F;
    const TLBI_SHARED: u32 = 0xD50C_83DF;
    const TLBI_LOCAL: u32 = 0xD508_871F;
    const DSB_ISH: u32 = 0xD503_3B9F;
    const DSB_ISHST: u32 = 0xD503_3A9F;
    const DSB_NSH: u32 = 0xD503_379F;
    const ISB: u32 = 0xD503_3FDF;
    const RET: u32 = 0xD65F_03C0;
    const ERET: u32 = 0xD69F_03E0;
    const STR: u32 = 0xF900_0020;
    const TLBI_ADDRESS: u32 = 0xD50C_8020;
    const MSR_VTTBR: u32 = 0xD51C_2100;
    const MSR_CPTR: u32 = 0xD51C_1140;
    const MSR_TTBR: u32 = 0xD51C_2000;
    const MSR_SCTLR: u32 = 0xD51C_1000;
    const STR_Q0: u32 = 0x3D80_0000;
    const AT: u32 = 0xD508_7800;
    const MRS_PAR: u32 = 0xD538_7400;
    const MSR_SRE: u32 = 0xD51C_C9A0;
    const MSR_ICH_HCR: u32 = 0xD51C_CB00;
    const MSR_SGI: u32 = 0xD518_CBA0;
    const DC_CIVAC: u32 = 0xD50B_7E20;
    const IC_IALLUIS: u32 = 0xD508_711F;
    /// A branch over the next instruction.
    const CBZ: u32 = 0xB400_0040;

    fn of(words: &[u32]) -> Vec<usize> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        judged("aarch64", &bytes)
    }

    #[test]
    fn maintenance_is_done_before_the_function_ends() {
        assert_eq!(of(&[TLBI_SHARED, DSB_ISH, ISB, RET]), []);
        assert_eq!(of(&[TLBI_SHARED, RET]), [SHARED]);
        // A barrier of stores alone, or of this CPU alone, does not end it.
        assert_eq!(of(&[TLBI_SHARED, DSB_ISHST, RET]), [SHARED]);
        assert_eq!(of(&[TLBI_SHARED, DSB_NSH, RET]), [SHARED]);
        assert_eq!(of(&[TLBI_LOCAL, DSB_NSH, ERET]), []);
        assert_eq!(of(&[TLBI_LOCAL, ERET]), [LOCAL]);
        assert_eq!(of(&[TLBI_LOCAL, ISB, DSB_NSH, RET]), [LOCAL]);
        assert_eq!(of(&[DC_CIVAC, IC_IALLUIS, DSB_ISH, RET]), [SHARED]);
        assert_eq!(of(&[DC_CIVAC, DSB_ISH, IC_IALLUIS, DSB_ISH, RET]), []);
    }

    #[test]
    fn a_barrier_on_one_way_only_is_not_enough() {
        assert_eq!(of(&[TLBI_SHARED, CBZ, DSB_ISH, RET]), [SHARED]);
        assert_eq!(of(&[CBZ, TLBI_SHARED, DSB_ISH, RET]), []);
    }

    #[test]
    fn stores_are_done_before_others_are_told() {
        assert_eq!(of(&[STR, TLBI_SHARED, DSB_ISH, RET]), [STORE]);
        assert_eq!(of(&[STR, DSB_ISHST, TLBI_SHARED, DSB_ISH, RET]), []);
        assert_eq!(of(&[STR, MSR_SGI, RET]), [STORE]);
        assert_eq!(of(&[STR, DSB_ISHST, MSR_SGI, RET]), []);
    }

    #[test]
    fn a_register_is_in_effect_before_it_is_used() {
        assert_eq!(of(&[MSR_VTTBR, TLBI_LOCAL, DSB_NSH, RET]), [SPACE]);
        assert_eq!(of(&[MSR_VTTBR, ISB, TLBI_LOCAL, DSB_NSH, RET]), []);
        assert_eq!(of(&[MSR_CPTR, STR_Q0, RET]), [TRAPS]);
        assert_eq!(of(&[MSR_CPTR, ISB, STR_Q0, RET]), []);
        assert_eq!(of(&[MSR_TTBR, MSR_SCTLR, ISB, RET]), [TABLES]);
        assert_eq!(of(&[MSR_SCTLR, STR, ISB, RET]), [CONTROL]);
        assert_eq!(of(&[MSR_SCTLR, RET]), [CONTROL]);
        assert_eq!(of(&[AT, MRS_PAR, RET]), [RESULT]);
        assert_eq!(of(&[AT, ISB, MRS_PAR, RET]), []);
        assert_eq!(of(&[MSR_SRE, MSR_ICH_HCR, RET]), [INTERFACE]);
        assert_eq!(of(&[TLBI_OWN, DSB_NSH, RET]), [FETCH]);
        assert_eq!(of(&[TLBI_OWN, DSB_NSH, ISB, RET]), []);
    }

    #[test]
    fn both_stages_are_forgotten() {
        const STAGE_1_SHARED: u32 = 0xD508_831F;
        assert_eq!(of(&[TLBI_ADDRESS, DSB_ISH, STAGE_1_SHARED, DSB_ISH, RET]), []);
        assert_eq!(of(&[TLBI_ADDRESS, DSB_ISH, RET]), [STAGE_1]);
        assert_eq!(of(&[TLBI_ADDRESS, STAGE_1_SHARED, DSB_ISH, RET]), [SHARED]);
    }

    #[test]
    fn the_erratum_is_four_instructions_at_the_end_of_a_page() {
        const ADRP_X1: u32 = 0x9000_0001;
        const LDR_X0_X2: u32 = 0xF940_0040;
        const LDR_X0_X1_8: u32 = 0xF940_0420;
        const NOP: u32 = 0xD503_201F;
        assert!(has_erratum(0x1FF8, &[ADRP_X1, LDR_X0_X2, LDR_X0_X1_8, NOP]));
        assert!(has_erratum(0x1FFC, &[ADRP_X1, LDR_X0_X2, NOP, LDR_X0_X1_8]));
        assert!(!has_erratum(0x1FF4, &[ADRP_X1, LDR_X0_X2, LDR_X0_X1_8, NOP]));
        assert!(!has_erratum(0x1FF8, &[ADRP_X1, NOP, LDR_X0_X1_8, NOP]));
        assert!(!has_erratum(0x1FF8, &[ADRP_X1, LDR_X0_X2, LDR_X0_X2, NOP]));
        const LDR_X1_X1: u32 = 0xF940_0021;
        const B: u32 = 0x1400_0002;
        assert!(!has_erratum(0x1FF8, &[ADRP_X1, LDR_X1_X1, LDR_X0_X1_8, NOP]));
        assert!(!has_erratum(0x1FF8, &[ADRP_X1, LDR_X0_X2, B, LDR_X0_X1_8]));
    }
}
