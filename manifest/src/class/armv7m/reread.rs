// SPDX-License-Identifier: Apache-2.0
//! The second opinion on a rewritten program: its finished code is read once more, by the encodings of the
//! manual alone.
//!
//! `rewrite` and the target share one module that says which instruction is replaced by which. Both would
//! make a mistake in that module, and neither would notice. So this file recognises instructions by masks
//! copied from the Arm Architecture Reference Manual (DDI 0403E.e), takes the operands out of both encodings
//! by itself, and finds the stretches of code without the code that found them before. Each instruction is
//! also shown to a disassembler ([`disassemble`](super::disassemble)). An instruction on which these readings
//! and `rewrite` do not all agree is refused.

use super::disassemble::Disassembler;
use crate::in_place::section::{Contents, Section};

/// Fixed bits of an instruction: mask and value of its first halfword, and of its second one if it has one.
type Encoding = ((u16, u16), Option<(u16, u16)>);

/// CPS (B5.2.1, T1).
const CPS: Encoding = ((0xffe0, 0xb660), None);
/// MRS (B5.2.2, T1).
const MRS: Encoding = ((0xffe0, 0xf3e0), Some((0xd000, 0x8000)));
/// MSR (B5.2.3, T1).
const MSR: Encoding = ((0xffe0, 0xf380), Some((0xd000, 0x8000)));
/// WFE, WFI and SEV (A7.7, T1 and T2 of each).
const WFE: Encoding = ((0xffff, 0xbf20), None);
const WFE_WIDE: Encoding = ((0xffff, 0xf3af), Some((0xffff, 0x8002)));
const WFI: Encoding = ((0xffff, 0xbf30), None);
const WFI_WIDE: Encoding = ((0xffff, 0xf3af), Some((0xffff, 0x8003)));
const SEV: Encoding = ((0xffff, 0xbf40), None);
const SEV_WIDE: Encoding = ((0xffff, 0xf3af), Some((0xffff, 0x8004)));
/// These hints, and the immediates of the UDFs that stand for them.
const HINTS: [(Encoding, u16); 6] = [
    (WFE, 0xa2),
    (WFE_WIDE, 0x4002),
    (WFI, 0xa3),
    (WFI_WIDE, 0x4003),
    (SEV, 0xa4),
    (SEV_WIDE, 0x4004),
];
/// LDRT, LDRBT, LDRHT, LDRSBT, LDRSHT, STRT, STRBT and STRHT (A7.7, T1 of each), and bits \[11:8\] of what
/// stands for each.
const UNPRIVILEGED: [(u16, u16); 8] = [
    (0xf850, 5),
    (0xf810, 1),
    (0xf830, 3),
    (0xf910, 9),
    (0xf930, 11),
    (0xf840, 4),
    (0xf800, 0),
    (0xf820, 2),
];
/// UDF (A7.7.194, T1 and T2).
const UDF: Encoding = ((0xff00, 0xde00), None);
const UDF_WIDE: Encoding = ((0xfff0, 0xf7f0), Some((0xf000, 0xa000)));

/// The undefined instruction that stands for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StandIn {
    /// UDF with this immediate.
    Undefined(u16),
    /// An encoding that is not allocated: its halfwords.
    Unallocated(u16, u16),
}

/// One instruction: its halfwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction(u16, Option<u16>);

impl Instruction {
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let first = half(at)?;
        // A5.1: bits [15:11] of 0b11101, 0b11110 and 0b11111 begin 32 bits.
        let second = if matches!(first & 0xf800, 0xe800 | 0xf000 | 0xf800) {
            Some(half(at + 2)?)
        } else {
            None
        };
        Some(Self(first, second))
    }

    fn is(self, (first, second): Encoding) -> bool {
        let fits = |value: u16, (mask, fixed): (u16, u16)| value & mask == fixed;
        fits(self.0, first)
            && match (self.1, second) {
                (None, None) => true,
                (Some(value), Some(fixed)) => fits(value, fixed),
                _ => false,
            }
    }

    /// Returns what stands for this instruction, if unprivileged code must not execute it. SYSm 0 is APSR for
    /// MRS, and 0 to 3 are APSR for MSR (B5.1.1), which everybody may use.
    fn stand_in(self) -> Option<StandIn> {
        self.unprivileged()
            .or(self.immediate_for().map(StandIn::Undefined))
    }

    /// Returns what stands for this load or store, if it is one with the rights of unprivileged code. With
    /// the PC as its base it is one relative to the PC.
    fn unprivileged(self) -> Option<StandIn> {
        let second = self.1.filter(|second| second & 0x0f00 == 0x0e00)?;
        let (_, kind) = UNPRIVILEGED.iter().find(|(first, _)| self.0 & 0xfff0 == *first)?;
        let base = self.0 & 0xf;
        (base != 0xf).then_some(StandIn::Unallocated(0xf9f0 | base, second & 0xf0ff | kind << 8))
    }

    /// Returns the immediate of the UDF that stands for this instruction, if there is one.
    fn immediate_for(self) -> Option<u16> {
        let second = self.1.unwrap_or(0);
        let special = second & 0xff;
        let hint = HINTS.iter().find(|(encoding, _)| self.is(*encoding));
        if let Some((_, immediate)) = hint {
            Some(*immediate)
        } else if self.is(CPS) {
            Some(0x80 | self.0 & 0x1f)
        } else if self.is(MSR) && special > 3 {
            Some(0x8000 | (second >> 10 & 3) << 12 | (self.0 & 0xf) << 8 | special)
        } else if self.is(MRS) && special != 0 {
            Some((second >> 8 & 0xf) << 8 | special)
        } else {
            None
        }
    }

    /// Tells whether this is what `stand_in` says, with the length of `old`.
    fn stands(self, stand_in: StandIn, old: Self) -> bool {
        match stand_in {
            StandIn::Undefined(immediate) => {
                self.immediate() == Some(immediate) && old.1.is_some() == self.1.is_some()
            }
            StandIn::Unallocated(first, second) => self == Self(first, Some(second)),
        }
    }

    /// Returns the immediate of a UDF.
    fn immediate(self) -> Option<u16> {
        match self.1 {
            None if self.is(UDF) => Some(self.0 & 0xff),
            Some(second) if self.is(UDF_WIDE) => Some((self.0 & 0xf) << 12 | second & 0xfff),
            _ => None,
        }
    }
}

/// Tells whether `address` is in code, by the last mapping symbol at or before `address`.
fn is_code(section: &Section<'_>, address: u32) -> bool {
    let behind = section.map.partition_point(|(start, _)| *start <= address);
    let last = behind.checked_sub(1).and_then(|index| section.map.get(index));
    last.is_some_and(|(_, contents)| *contents == Contents::Thumb)
}

/// Returns the objection of the disassembler against a change of one instruction from `old` to `new`, with
/// `stand_in` if the instruction must not stay. The disassembler has no objection if it does not know the old
/// word: CPS with a bit that should be zero, for example.
fn objection(
    disassembler: &Disassembler,
    old: &[u8],
    new: &[u8],
    stand_in: Option<StandIn>,
) -> Option<&'static str> {
    let sensitive = disassembler.read(old).map(|old| old.is_sensitive());
    let stands = |stand_in| {
        let read = disassembler.read(new);
        match stand_in {
            StandIn::Undefined(immediate) => read.and_then(|new| new.undefined()) == Some(immediate),
            StandIn::Unallocated(..) => read.is_none(),
        }
    };
    match (stand_in, sensitive) {
        (Some(_), Some(false)) => Some("the disassembler sees nothing to be replaced"),
        (Some(stand_in), _) if !stands(stand_in) => Some("the disassembler sees another stand-in"),
        (None, Some(true)) => Some("the disassembler sees what was to be replaced"),
        _ => None,
    }
}

/// Reads the code of `section` before and after it was rewritten, instruction by instruction. Each
/// instruction that must not stay has to be its stand-in now, at one of the `sites` (ascending), and no other
/// may have changed.
pub(crate) fn reread(section: &Section<'_>, after: &[u8], sites: &[u32]) -> Result<(), String> {
    let disassembler =
        Disassembler::new().map_err(|why| format!("the disassembler does not start: {why}"))?;
    let mut at = 0;
    while at + 1 < section.bytes.len() {
        let address = section.address + at as u32;
        if !is_code(section, address) {
            at += 2;
            continue;
        }
        let Some(old) = Instruction::at(section.bytes, at) else {
            break;
        };
        let new = Instruction::at(after, at);
        let is_site = sites.binary_search(&address).is_ok();
        let agreed = match old.stand_in() {
            Some(stand_in) => is_site && new.is_some_and(|new| new.stands(stand_in, old)),
            None => !is_site && new == Some(old),
        };
        let next = at + if old.1.is_some() { 4 } else { 2 };
        let objection = if agreed {
            let (before, after) = (&section.bytes[at..next], &after[at..next]);
            objection(&disassembler, before, after, old.stand_in())
        } else {
            Some("the second reading of the code does not agree")
        };
        if let Some(objection) = objection {
            return Err(format!("{address:#010x} in {}: {objection}", section.name));
        }
        at = next;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::armv7m::rewrite::rewrite;
    use crate::in_place::section::Rewritten;

    fn section(bytes: &[u8]) -> Section<'_> {
        Section {
            name: ".text".into(),
            address: 0x2_0000,
            bytes,
            map: vec![(0x2_0000, Contents::Thumb)],
        }
    }

    fn bytes(halves: &[u16]) -> Vec<u8> {
        halves.iter().flat_map(|half| half.to_le_bytes()).collect()
    }

    fn rewritten(before: &[u8]) -> (Vec<u8>, Rewritten) {
        let (mut after, mut rewritten, mut refusals) = (before.to_vec(), Rewritten::default(), Vec::new());
        rewrite(&section(before), &mut after, &mut rewritten, &mut refusals);
        assert!(refusals.is_empty());
        (after, rewritten)
    }

    #[test]
    fn it_agrees_on_every_instruction_there_is() {
        for first in 0..=u16::MAX {
            let wide = first & 0xf800 >= 0xe800;
            // Most second halfwords of sensitive instructions, some of all others.
            let near = matches!(first & 0xffe0, 0xf380 | 0xf3a0 | 0xf3e0)
                || first & 0xfff0 == 0xf7f0
                || first & 0xfe8c == 0xf808;
            let step = if near { 3 } else { 4099 };
            for second in (0..=u16::MAX).step_by(if wide { step } else { usize::MAX }) {
                let before = bytes(&[first, second, 0xbf00]);
                let before = if wide { before } else { bytes(&[first, 0xbf00]) };
                let (after, done) = rewritten(&before);
                let verdict = reread(&section(&before), &after, &done.sites);
                assert_eq!(verdict, Ok(()), "{first:04x} {second:04x}");
            }
        }
    }

    #[test]
    fn whatever_else_has_changed_is_seen() {
        // mrs r0, primask; cpsid i; msr basepri, r1; nop; ldrt r1, [r2, #4]
        let before = bytes(&[0xf3ef, 0x8010, 0xb672, 0xf381, 0x8811, 0xbf00, 0xf852, 0x1e04]);
        let (after, done) = rewritten(&before);
        assert_eq!(done.sites.len(), 4);
        for bit in 0..after.len() * 8 {
            let mut damaged = after.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(
                reread(&section(&before), &damaged, &done.sites).is_err(),
                "bit {bit}"
            );
        }
        assert!(
            reread(&section(&before), &before, &[]).is_err(),
            "nothing replaced"
        );
        for missing in 0..4 {
            let mut sites = done.sites.clone();
            sites.remove(missing);
            assert!(
                reread(&section(&before), &after, &sites).is_err(),
                "a site is missing"
            );
        }
    }

    #[test]
    fn the_disassembler_has_a_say() {
        let disassembler = Disassembler::new().expect("made");
        let said =
            |old: &[u16], new: &[u16], stand_in| objection(&disassembler, &bytes(old), &bytes(new), stand_in);
        let (nop, cpsid, mrs, flags): (&[u16], &[u16], &[u16], &[u16]) =
            (&[0xbf00], &[0xb672], &[0xf3ef, 0x8010], &[0xf3ef, 0x8000]);
        assert_eq!(said(nop, nop, None), None);
        assert_eq!(said(flags, flags, None), None);
        assert_eq!(said(cpsid, &[0xde92], Some(StandIn::Undefined(0x92))), None);
        assert_eq!(
            said(&[0xb668], &[0xde88], Some(StandIn::Undefined(0x88))),
            None,
            "unpredictable"
        );
        let missed = Some("the disassembler sees what was to be replaced");
        assert_eq!(said(cpsid, cpsid, None), missed);
        assert_eq!(said(mrs, mrs, None), missed);
        let needless = Some("the disassembler sees nothing to be replaced");
        assert_eq!(said(nop, &[0xde92], Some(StandIn::Undefined(0x92))), needless);
        assert_eq!(
            said(flags, &[0xf7f0, 0xa000], Some(StandIn::Undefined(0))),
            needless
        );
        let another = Some("the disassembler sees another stand-in");
        assert_eq!(said(cpsid, &[0xde93], Some(StandIn::Undefined(0x92))), another);
        let unallocated = Some(StandIn::Unallocated(0xf9f2, 0x1504));
        assert_eq!(said(&[0xf852, 0x1e04], &[0xf9f2, 0x1504], unallocated), None);
        assert_eq!(said(&[0xf852, 0x1e04], &[0xf852, 0x1e04], None), missed);
        assert_eq!(said(&[0xf852, 0x1e04], &[0xf852, 0x1e04], unallocated), another);
        assert_eq!(said(mrs, nop, Some(StandIn::Undefined(0x10))), another);
    }
}
