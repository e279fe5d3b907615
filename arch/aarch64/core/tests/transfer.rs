// SPDX-License-Identifier: Apache-2.0
//! Every encoding of loads and stores with write-back, and of pairs, against the manual's tables (Arm DDI
//! 0487 C4.1.94), and everything around them, which must be refused.

use bulkhead_arch_aarch64_core::transfer::{Progress, STACK_POINTER, Step, Transfer};

/// Size, store, sign, width of a form.
type Form = (u8, bool, bool, bool);

/// "Load/store register (immediate post-indexed)": size, opc, form.
const SINGLES: &[(u32, u32, Form)] = &[
    (0, 0, (1, true, false, false)),  // STRB
    (0, 1, (1, false, false, false)), // LDRB
    (0, 2, (1, false, true, true)),   // LDRSB x
    (0, 3, (1, false, true, false)),  // LDRSB w
    (1, 0, (2, true, false, false)),  // STRH
    (1, 1, (2, false, false, false)), // LDRH
    (1, 2, (2, false, true, true)),   // LDRSH x
    (1, 3, (2, false, true, false)),  // LDRSH w
    (2, 0, (4, true, false, false)),  // STR w
    (2, 1, (4, false, false, false)), // LDR w
    (2, 2, (4, false, true, true)),   // LDRSW
    (3, 0, (8, true, false, true)),   // STR x
    (3, 1, (8, false, false, true)),  // LDR x
];
/// "Load/store register pair": opc, L, form. LDPSW has no no-allocate form.
const PAIRS: &[(u32, u32, Form)] = &[
    (0, 0, (4, true, false, false)),
    (0, 1, (4, false, false, false)),
    (1, 1, (4, false, true, true)),
    (2, 0, (8, true, false, true)),
    (2, 1, (8, false, false, true)),
];
const POST: u32 = 1;
const PRE: u32 = 3;

fn form(transfer: &Transfer) -> Form {
    (transfer.size, transfer.write, transfer.sign_extend, transfer.wide)
}

fn single(size: u32, opc: u32, index: u32, distance: i32, (base, register): (u32, u32)) -> u32 {
    let immediate = distance as u32 & 0x1FF;
    size << 30 | 0b11_1000 << 24 | opc << 22 | immediate << 12 | index << 10 | base << 5 | register
}

fn pair(opc: u32, load: u32, index: u32, distance: i32, (base, first, second): (u32, u32, u32)) -> u32 {
    let immediate = distance as u32 & 0x7F;
    opc << 30 | 0b101 << 27 | index << 23 | load << 22 | immediate << 15 | second << 10 | base << 5 | first
}

#[test]
fn every_single_form_with_every_distance() {
    for &(size, opc, expected) in SINGLES {
        for index in [POST, PRE] {
            for distance in -256..256 {
                let decoded = Transfer::decode(single(size, opc, index, distance, (1, 2))).unwrap();
                assert_eq!(form(&decoded), expected);
                assert_eq!((decoded.count, decoded.base), (1, 1));
                assert_eq!(decoded.registers[0], 2);
                let distance = i64::from(distance);
                assert_eq!(decoded.write_back, Some(distance));
                assert_eq!(decoded.offset, if index == PRE { distance } else { 0 });
                assert_eq!(decoded.bytes(), u64::from(expected.0));
            }
        }
    }
}

#[test]
fn every_pair_form_with_every_distance() {
    for &(opc, load, expected) in PAIRS {
        for index in 0..4 {
            for distance in -64..64 {
                let decoded = Transfer::decode(pair(opc, load, index, distance, (1, 2, 3)));
                if opc == 1 && index == 0 {
                    assert_eq!(decoded, None, "there is no such form");
                    continue;
                }
                let decoded = decoded.unwrap();
                assert_eq!(form(&decoded), expected);
                assert_eq!((decoded.count, decoded.base, decoded.registers), (2, 1, [2, 3]));
                let distance = i64::from(distance) * i64::from(expected.0);
                let writes = index == POST || index == PRE;
                assert_eq!(decoded.write_back, writes.then_some(distance));
                assert_eq!(decoded.offset, if index == POST { 0 } else { distance });
                assert_eq!(decoded.bytes(), 2 * u64::from(expected.0));
            }
        }
    }
}

/// Checks that a base that is written and holds data too is open, except that 31 is the stack pointer as a
/// base and zero as data. So is a load of one register twice.
#[test]
fn every_choice_of_registers() {
    for base in 0..32 {
        for first in 0..32 {
            for &(size, opc, _) in SINGLES {
                let decoded = Transfer::decode(single(size, opc, POST, 8, (base, first)));
                let is_open = base == first && base != u32::from(STACK_POINTER);
                assert_eq!(decoded.is_none(), is_open, "base {base}, register {first}");
            }
            for second in 0..32 {
                for index in 0..4 {
                    for load in [0, 1] {
                        let decoded = Transfer::decode(pair(2, load, index, 1, (base, first, second)));
                        let moves_itself = (index == POST || index == PRE)
                            && base != u32::from(STACK_POINTER)
                            && (base == first || base == second);
                        let is_open = moves_itself || load == 1 && first == second;
                        assert_eq!(decoded.is_none(), is_open, "{base}, {first}, {second}");
                        if let Some(decoded) = decoded {
                            assert_eq!(decoded.registers, [first as u8, second as u8]);
                            assert_eq!(u32::from(decoded.base), base);
                        }
                    }
                }
            }
        }
    }
}

/// Tries all values of the bits that choose the form, with different bits in the others: 31 to 21 and 11 to
/// 10.
#[test]
fn exactly_these_forms_are_decoded() {
    for head in 0..1 << 11_u32 {
        for tail in 0..4 {
            for rest in [0x0000_0041, 0x0008_0041, 0x001F_F041, 0x000A_5041] {
                let word = head << 21 | rest & !(3 << 10) | tail << 10;
                let (top, vector) = (word >> 30, word >> 26 & 1);
                let is_single = word >> 27 & 7 == 0b111
                    && vector == 0
                    && word >> 24 & 3 == 0
                    && word >> 21 & 1 == 0
                    && (tail == POST || tail == PRE)
                    && SINGLES
                        .iter()
                        .any(|(size, opc, _)| *size == top && *opc == word >> 22 & 3);
                // LDPSW has no no-allocate form. The registers here are never one register twice.
                let is_pair = word >> 27 & 7 == 0b101
                    && vector == 0
                    && word >> 25 & 1 == 0
                    && PAIRS
                        .iter()
                        .any(|(opc, load, _)| *opc == top && *load == word >> 22 & 1)
                    && !(top == 1 && word >> 23 & 3 == 0)
                    && is_defined_pair(word);
                assert_eq!(
                    Transfer::decode(word).is_some(),
                    is_single || is_pair,
                    "{word:#010x}"
                );
            }
        }
    }
}

fn is_defined_pair(word: u32) -> bool {
    let (first, second, base) = (word & 31, word >> 10 & 31, word >> 5 & 31);
    let writes = word >> 23 & 1 == 1;
    let loads = word >> 22 & 1 == 1;
    !(writes && (first == base || second == base) || loads && first == second)
}

/// Words as an assembler gives them.
#[test]
fn words_of_an_assembler() {
    for (word, base, offset, write_back, registers, form) in [
        // STR x0, [x1], #8
        (0xF800_8420, 1, 0, Some(8), [0, 0], (8, true, false, true)),
        // LDR w2, [x1, #-4]!
        (0xB85F_CC22, 1, -4, Some(-4), [2, 0], (4, false, false, false)),
        // STRB wzr, [sp], #1
        (0x3800_17FF, 31, 0, Some(1), [31, 0], (1, true, false, false)),
        // LDP w2, w3, [x1]
        (0x2940_0C22, 1, 0, None, [2, 3], (4, false, false, false)),
        // STP x29, x30, [sp, #-16]!
        (0xA9BF_7BFD, 31, -16, Some(-16), [29, 30], (8, true, false, true)),
        // LDPSW x2, x3, [x1]
        (0x6940_0C22, 1, 0, None, [2, 3], (4, false, true, true)),
        // STNP w2, w3, [x1, #8]
        (0x2801_0C22, 1, 8, None, [2, 3], (4, true, false, false)),
    ] {
        let decoded = Transfer::decode(word).unwrap();
        assert_eq!(decoded.base, base, "{word:#010x}");
        assert_eq!((decoded.offset, decoded.write_back), (offset, write_back));
        assert_eq!(decoded.registers, registers);
        assert_eq!(self::form(&decoded), form);
    }
    for (word, name) in [
        (0xB940_0022, "LDR w2, [x1]: the syndrome describes it"),
        (0xB840_0822, "LDTR w2, [x1]: the syndrome describes it"),
        (0xB840_0022, "LDUR w2, [x1]: the syndrome describes it"),
        (0x885F_7C22, "LDXR"),
        (0xBC40_4422, "LDR s2, [x1], #4"),
        (0xAD40_0420, "LDP q"),
        (0x6900_0C22, "STGP"),
        (0xF820_0C22, "LDRAA"),
        (0xB820_0022, "LDADD"),
        (0xF840_0C21, "LDR x1, [x1, #0]!"),
        (0xA940_0822, "LDP x2, x2, [x1]"),
        (0xD50B_7421, "DC ZVA"),
        (0, "undefined"),
        (u32::MAX, "undefined"),
    ] {
        assert_eq!(Transfer::decode(word), None, "{name}");
    }
}

#[test]
fn a_form_explains_its_own_fault_only() {
    // STR w2, [x1, #4]!
    let store = Transfer::decode(0xB800_4C22).unwrap();
    assert!(store.explains(0x1000, 0x1004, true));
    assert!(!store.explains(0x1000, 0x1000, true), "not the base itself");
    assert!(!store.explains(0x1000, 0x1004, false), "not a load");
    assert!(!store.explains(0x1_0000_1000, 0x1004, true));
    assert!(
        store.explains(0xFF00_0000_0000_1000, 0x1004, true),
        "a tag is no part of the address"
    );
    assert!(
        store.explains(u64::MAX - 3, 0, true),
        "addresses wrap, as the CPU's do"
    );
    assert_eq!(store.base_after(u64::MAX), Some(3));
    // LDP w2, w3, [x1, #-4]
    let load = Transfer::decode(0x297F_8C22).unwrap();
    assert!(load.explains(0x1000, 0xFFC, false));
    assert_eq!(load.base_after(0x1000), None);
}

#[test]
fn a_pair_is_two_accesses_and_then_changes_registers() {
    // LDPSW x2, x3, [x1], #8
    let transfer = Transfer::decode(0x68C1_0C22).unwrap();
    let mut progress = Progress::new(transfer, 0x1000, false);
    let step = |distance, register| Some(Step { distance, register });
    assert_eq!((progress.next(), progress.is_begun()), (step(0, 2), false));
    progress.answered(0x8000_0000);
    assert_eq!((progress.next(), progress.is_begun()), (step(4, 3), true));
    progress.answered(7);
    assert_eq!(progress.next(), None);
    assert!(progress.loaded().eq([(2, 0xFFFF_FFFF_8000_0000), (3, 7)]));
    assert_eq!(progress.moved_base(), Some((1, 0x1008)));
}

#[test]
fn bytes_are_turned_for_each_register() {
    // LDP w2, w3, [x1]; STRH w2, [x1], #2
    let load = Transfer::decode(0x2940_0C22).unwrap();
    let mut progress = Progress::new(load, 0, true);
    progress.answered(0x1122_3344);
    progress.answered(0x5566_7788);
    assert!(progress.loaded().eq([(2, 0x4433_2211), (3, 0x8877_6655)]));
    assert_eq!(progress.moved_base(), None);
    let store = Transfer::decode(0x7800_2422).unwrap();
    let mut progress = Progress::new(store, 0, true);
    assert_eq!(progress.stored(0xFFFF_1122), 0x2211);
    assert_eq!(progress.next().map(|step| step.register), Some(2));
    progress.answered(0);
    assert_eq!(progress.next(), None);
    assert_eq!(progress.loaded().count(), 0, "a store loads nothing");
    assert_eq!(progress.moved_base(), Some((1, 2)));
}
