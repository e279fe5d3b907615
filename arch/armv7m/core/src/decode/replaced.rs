// SPDX-License-Identifier: Apache-2.0
//! The instructions that do not trap although they should, and the undefined ones that stand for them.
//!
//! MRS, MSR and CPS of unprivileged code are ignored without a trap (Arm DDI 0403E.e, B5.2), WFI and WFE keep
//! the CPU to themselves, and what SEV tells must reach the WFE. The host tool replaces each by a permanently
//! undefined instruction (UDF) of the same length that carries the operands, so that no code moves:
//! - CPS: UDF.N with the immediate 0x80 + its five low bits; hints: UDF.N 0xA0 + the hint's number.
//! - MSR, MRS: UDF.W with bit 15: MSR, bits \[13:12\]: mask, \[11:8\]: register, \[7:0\]: SYSm; hints: UDF.W
//!   0x4000 + the number.
//!
//! LDRT, STRT and their like do not trap either, and the CPU checks them by the rights of the code around
//! them, which it executes unprivileged as well. So a guest's own protection unit would not be asked for the
//! rights of the guest's unprivileged code. UDF.W has too little room for their operands. Each becomes an
//! encoding of A5.3.7 that is undefined for every Armv7-M CPU (op2 of 0b0011111): bits \[3:0\]: base; of the
//! second halfword bits \[15:12\]: register, \[11:8\]: bits 8 and 6 to 4 of the instruction, \[7:0\]: offset.
//!
//! Both directions are here, so that the tool and the target cannot disagree.

use super::special::Special;
use super::{field, register};

/// The effect of a replaced instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// CPSIE, CPSID.
    ChangeMasks {
        /// CPSID, else CPSIE.
        disable: bool,
        /// Of PRIMASK.
        primask: bool,
        /// Of FAULTMASK.
        faultmask: bool,
    },
    /// MRS.
    ReadSpecial {
        /// Where to.
        register: u8,
        /// The special register.
        special: Special,
    },
    /// MSR.
    WriteSpecial {
        /// Where from.
        register: u8,
        /// The special register.
        special: Special,
        /// Which parts of the flags.
        mask: u8,
    },
    /// WFI, WFE, SEV.
    Hint(Hint),
    /// LDRT, STRT and their like: the halfwords of the instruction itself.
    Unprivileged(u16, u16),
}

/// A hint by its number (A5.2.5 and A5.3.4), if it must not stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint(u8);

impl Hint {
    /// WFE.
    pub const WAIT_FOR_EVENT: Self = Self(2);
    /// WFI.
    pub const WAIT: Self = Self(3);
    /// SEV.
    pub const SEND_EVENT: Self = Self(4);
}

const PC: u8 = 15;
const UDF: u16 = 0xDE00;
const UDF_HINT: u16 = 0xDEA0;
const HINT: u16 = 0xBF00;
const HINT_WIDE: (u16, u16) = (0xF3AF, 0x8000);
/// The first halfword of what stands for a load or store with the rights of unprivileged code.
const UNPRIVILEGED: u16 = 0xF9F0;
const IMMEDIATE_HINT: u16 = 0x4000;
const IMMEDIATE_WRITE: u16 = 0x8000;

const fn hint(number: u16) -> Option<Replaced> {
    match number {
        2..=4 => Some(Replaced::Hint(Hint(number as u8))),
        _ => None,
    }
}

/// Returns what the host tool puts in the place of a 16-bit instruction, if it must not stay.
#[must_use]
pub const fn narrow_replacement(instruction: u16) -> Option<u16> {
    if instruction & 0xFF0F == HINT && hint(field(instruction, 4, 4)).is_some() {
        return Some(UDF_HINT | field(instruction, 4, 4));
    }
    if instruction & 0xFFE0 == 0xB660 {
        Some(UDF | 0x80 | instruction & 0x1F)
    } else {
        None
    }
}

/// Returns what a 16-bit replacement stands for.
#[inline(always)]
#[must_use]
pub const fn narrow_replaced(instruction: u16) -> Option<Replaced> {
    if instruction & 0xFFE0 != UDF | 0x80 {
        return if instruction & 0xFFF0 == UDF_HINT {
            hint(instruction & 0xF)
        } else {
            None
        };
    }
    Some(Replaced::ChangeMasks {
        disable: field(instruction, 4, 1) == 1,
        primask: field(instruction, 1, 1) == 1,
        faultmask: field(instruction, 0, 1) == 1,
    })
}

/// Tells whether this is LDRT, STRT or one of their like (A7.7.66, A7.7.70, A7.7.79, A7.7.83, A7.7.87,
/// A7.7.171, A7.7.174 and A7.7.178). Loads and stores of the PC are unpredictable, and undefined here, but
/// for LDRT.
const fn is_unprivileged(first: u16, second: u16) -> bool {
    let (is_load, size, is_signed) = (
        field(first, 4, 1) == 1,
        field(first, 5, 2),
        field(first, 8, 1) == 1,
    );
    let has_size = size < 2 || size == 2 && !is_signed;
    first & 0xFE80 == 0xF800
        && second & 0x0F00 == 0x0E00
        && register(first, 0) != PC
        && has_size
        && (is_load || !is_signed)
}

/// Returns the load or store with the rights of unprivileged code that this second halfword stands for.
#[inline(never)]
const fn unprivileged(first: u16, second: u16) -> Option<Replaced> {
    let kind = field(second, 8, 4);
    let original = 0xF800 | (kind & 8) << 5 | (kind & 7) << 4 | field(first, 0, 4);
    let operands = second & 0xF0FF | 0x0E00;
    if is_unprivileged(original, operands) {
        Some(Replaced::Unprivileged(original, operands))
    } else {
        None
    }
}

/// Returns what the host tool puts in the place of a 32-bit instruction, if it must not stay. The flags alone
/// may be written, and read without IPSR, by unprivileged code as well.
#[must_use]
pub const fn wide_replacement(first: u16, second: u16) -> Option<(u16, u16)> {
    if first == HINT_WIDE.0 && second & 0xFF00 == HINT_WIDE.1 && hint(second & 0xFF).is_some() {
        return Some(wide_undefined(IMMEDIATE_HINT | second & 0xFF));
    }
    if is_unprivileged(first, second) {
        let kind = field(first, 8, 1) << 3 | field(first, 4, 3);
        return Some((UNPRIVILEGED | field(first, 0, 4), second & 0xF0FF | kind << 8));
    }
    let special = second & 0xFF;
    if first & 0xFFE0 == 0xF380 && second & 0xD000 == 0x8000 {
        let flags_only = special <= 3;
        let mask = field(second, 10, 2) << 12;
        let operands = mask | field(first, 0, 4) << 8 | special;
        return if flags_only {
            None
        } else {
            Some(wide_undefined(IMMEDIATE_WRITE | operands))
        };
    }
    if first & 0xFFE0 == 0xF3E0 && second & 0xD000 == 0x8000 {
        let operands = field(second, 8, 4) << 8 | special;
        return if special == 0 {
            None
        } else {
            Some(wide_undefined(operands))
        };
    }
    None
}

/// Returns what a 32-bit replacement stands for.
#[must_use]
pub const fn wide_replaced(first: u16, second: u16) -> Option<Replaced> {
    if first & 0xFFF0 == UNPRIVILEGED {
        unprivileged(first, second)
    } else {
        wide_undefined_replaced(first, second)
    }
}

/// Returns what a 32-bit UDF stands for.
#[inline(always)]
pub(crate) const fn wide_undefined_replaced(first: u16, second: u16) -> Option<Replaced> {
    if first & 0xFFF0 != 0xF7F0 || second & 0xF000 != 0xA000 {
        return None;
    }
    let immediate = first << 12 | second & 0xFFF;
    if immediate & IMMEDIATE_HINT != 0 {
        return hint(immediate & !IMMEDIATE_HINT);
    }
    let special = Special(immediate as u8);
    let register = register(immediate, 8);
    if immediate & IMMEDIATE_WRITE != 0 {
        Some(Replaced::WriteSpecial {
            register,
            special,
            mask: field(immediate, 12, 2) as u8,
        })
    } else if immediate & 0x3000 == 0 {
        Some(Replaced::ReadSpecial { register, special })
    } else {
        None
    }
}

const fn wide_undefined(immediate: u16) -> (u16, u16) {
    (0xF7F0 | immediate >> 12, 0xA000 | immediate & 0xFFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::wide_single;

    #[test]
    fn what_is_replaced_is_found_again() {
        assert_eq!(narrow_replacement(0xB672), Some(0xDE92), "CPSID i");
        assert_eq!(
            narrow_replaced(0xDE92),
            Some(Replaced::ChangeMasks {
                disable: true,
                primask: true,
                faultmask: false
            })
        );
        let hints = [
            (0xBF20, 0x8002, Hint::WAIT_FOR_EVENT),
            (0xBF30, 0x8003, Hint::WAIT),
            (0xBF40, 0x8004, Hint::SEND_EVENT),
        ];
        for (narrow, second, hint) in hints {
            let expected = Replaced::Hint(hint);
            assert_eq!(
                narrow_replacement(narrow).and_then(narrow_replaced),
                Some(expected)
            );
            let (first, second) = wide_replacement(0xF3AF, second).unwrap();
            assert_eq!(wide_replaced(first, second), Some(expected));
        }
        assert_eq!(narrow_replacement(0xBF00), None, "NOP");
        assert_eq!(narrow_replacement(0xBF10), None, "YIELD");
        assert_eq!(wide_replacement(0xF3AF, 0x8001), None, "YIELD.W");
        assert_eq!(wide_replacement(0xF3AF, 0x80F2), None, "DBG");
        assert_eq!(narrow_replaced(0xDEFF), None, "what compilers use for a trap");
        // MSR BASEPRI, r3; MRS r0, PSP
        let (first, second) = wide_replacement(0xF383, 0x8811).unwrap();
        assert_eq!(
            wide_replaced(first, second),
            Some(Replaced::WriteSpecial {
                register: 3,
                special: Special(17),
                mask: 2
            })
        );
        let (first, second) = wide_replacement(0xF3EF, 0x8009).unwrap();
        assert_eq!(
            wide_replaced(first, second),
            Some(Replaced::ReadSpecial {
                register: 0,
                special: Special(9)
            })
        );
    }

    #[test]
    fn loads_and_stores_with_the_rights_of_unprivileged_code_survive_with_their_operands() {
        let mut kinds = 0;
        for first in 0xF800..=0xF9FF_u16 {
            for second in (0..=u16::MAX).filter(|second| second & 0xE7 == 0x45) {
                let single = wide_single(first, second & 0x0FFF | 0x1000);
                let is_one = single.is_some_and(|transfer| transfer.unprivileged);
                let replacement = wide_replacement(first, second);
                assert_eq!(replacement.is_some(), is_one, "{first:04x} {second:04x}");
                if let Some((new, operands)) = replacement {
                    assert_eq!(new & 0xFFF0, 0xF9F0);
                    assert_eq!(wide_single(new, operands), None, "undefined");
                    let found = wide_replaced(new, operands);
                    assert_eq!(found, Some(Replaced::Unprivileged(first, second)));
                    kinds |= 1 << (operands >> 8 & 15);
                }
            }
        }
        // LDRT, LDRBT, LDRHT, LDRSBT, LDRSHT, STRT, STRBT, STRHT: size, load, signed.
        assert_eq!(kinds, 0b0000_1010_0011_1111_u32);
        assert_eq!(wide_replaced(0xF9F0, 0x0600), None, "a size that is none");
    }

    #[test]
    fn only_what_must_is_replaced() {
        for instruction in 0..=u16::MAX {
            let replaced = narrow_replacement(instruction);
            let sensitive =
                matches!(instruction, 0xBF20 | 0xBF30 | 0xBF40) || (0xB660..0xB680).contains(&instruction);
            assert_eq!(replaced.is_some(), sensitive, "{instruction:#06x}");
            if let Some(replaced) = replaced {
                assert!(narrow_replaced(replaced).is_some());
            }
        }
        assert_eq!(wide_replacement(0xF3EF, 0x8000), None, "MRS r0, APSR");
        assert_eq!(wide_replacement(0xF380, 0x8800), None, "MSR APSR_nzcvq, r0");
        assert_eq!(wide_replacement(0xF3BF, 0x8F6F), None, "ISB");
    }

    #[test]
    fn every_special_register_survives_with_its_operands() {
        for special in 4..=255_u16 {
            for general in 0..15_u16 {
                let (first, second) = wide_replacement(0xF380 | general, 0x8800 | special).unwrap();
                let expected = Replaced::WriteSpecial {
                    register: general as u8,
                    special: Special(special as u8),
                    mask: 2,
                };
                assert_eq!(wide_replaced(first, second), Some(expected));
                let (first, second) = wide_replacement(0xF3EF, 0x8000 | general << 8 | special).unwrap();
                let expected = Replaced::ReadSpecial {
                    register: general as u8,
                    special: Special(special as u8),
                };
                assert_eq!(wide_replaced(first, second), Some(expected));
            }
        }
    }
}
