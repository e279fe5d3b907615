// SPDX-License-Identifier: Apache-2.0
//! The privileged instructions: from a word to what it asks for (User's Manual, chapter 9 and appendix A).
//!
//! The numbers of registers are below 32 by construction, because they come out of fields of five bits.

/// Registers by number, as the fields of an instruction name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// RT or RS.
    pub target: u8,
    /// RA.
    pub first: u8,
    /// RB.
    pub second: u8,
}

/// A privileged instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `mfmsr`.
    MoveFromMsr(u8),
    /// `mtmsr`.
    MoveToMsr(u8),
    /// `wrtee`.
    WriteEnable(u8),
    /// `wrteei`.
    WriteEnableImmediate(bool),
    /// `rfi`.
    ReturnFromInterrupt,
    /// `rfci`.
    ReturnFromCritical,
    /// `mfspr`, with the number of the register.
    MoveFromSpr(u8, u16),
    /// `mtspr`.
    MoveToSpr(u8, u16),
    /// `mfdcr`.
    MoveFromDcr(u8, u16),
    /// `mtdcr`.
    MoveToDcr(u8, u16),
    /// `tlbre`; true for the low word of the entry.
    ReadEntry(Fields, bool),
    /// `tlbwe`.
    WriteEntry(Fields, bool),
    /// `tlbsx`; true if CR0 is to be set.
    SearchEntry(Fields, bool),
    /// `tlbia`.
    InvalidateEntries,
    /// `tlbsync`.
    Synchronize,
    /// `dccci`, `iccci`: a cache is emptied. Memory never differs from what a guest expects of its caches,
    /// and a data cache that is emptied would lose stores of others.
    InvalidateCache,
    /// `dcbi`: a line of the data cache is dropped.
    InvalidateLine,
    /// `dcread`: the target reads as 0.
    ReadDataCache(u8),
    /// `icread`.
    ReadInstructionCache,
}

/// Returns the five bits from bit `first` on, counted from the most significant one.
const fn field(word: u32, first: u32) -> u8 {
    (word.wrapping_shr(27_u32.wrapping_sub(first)) & 31) as u8
}

/// Returns the number of a special or device control register, whose halves are exchanged in the word.
const fn number(word: u32) -> u16 {
    field(word, 11) as u16 | (field(word, 16) as u16) << 5
}

/// Tells whether a program may not use a special purpose register: one bit of its number says so. LR, CTR,
/// XER and the registers that a program reads by other numbers are no privileged ones. USPRG0 would be none
/// either, but QEMU 7.2 refuses its store.
const fn is_privileged(spr: u16) -> bool {
    spr & 0x10 != 0 || spr == 256
}

/// Primary opcodes.
const BRANCHES: u32 = 19;
const EXTENDED: u32 = 31;

/// Returns the privileged instruction that a word is, `None` for any other word.
#[must_use]
pub const fn decode(word: u32) -> Option<Operation> {
    let extended = word >> 1 & 0x3FF;
    match word >> 26 {
        BRANCHES => match extended {
            50 => Some(Operation::ReturnFromInterrupt),
            51 => Some(Operation::ReturnFromCritical),
            _ => None,
        },
        EXTENDED => decode_extended(word, extended),
        _ => None,
    }
}

const fn decode_extended(word: u32, extended: u32) -> Option<Operation> {
    let target = field(word, 6);
    let fields = Fields {
        target,
        first: field(word, 11),
        second: field(word, 16),
    };
    // `tlbre` and `tlbwe` have the half of the entry in the field of RB.
    let half = match fields.second {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    Some(match extended {
        83 => Operation::MoveFromMsr(target),
        146 => Operation::MoveToMsr(target),
        131 => Operation::WriteEnable(target),
        163 => Operation::WriteEnableImmediate(word & 0x8000 != 0),
        339 | 467 if !is_privileged(number(word)) => return None,
        339 => Operation::MoveFromSpr(target, number(word)),
        467 => Operation::MoveToSpr(target, number(word)),
        323 => Operation::MoveFromDcr(target, number(word)),
        451 => Operation::MoveToDcr(target, number(word)),
        946 => match half {
            Some(low) => Operation::ReadEntry(fields, low),
            None => return None,
        },
        978 => match half {
            Some(low) => Operation::WriteEntry(fields, low),
            None => return None,
        },
        914 => Operation::SearchEntry(fields, word & 1 != 0),
        370 => Operation::InvalidateEntries,
        566 => Operation::Synchronize,
        454 | 966 => Operation::InvalidateCache,
        470 => Operation::InvalidateLine,
        486 => Operation::ReadDataCache(target),
        998 => Operation::ReadInstructionCache,
        _ => return None,
    })
}
