// SPDX-License-Identifier: Apache-2.0
//! Replaces the instructions that neither do their work without privilege nor trap (Arm DDI 0403E, section
//! B5.2).
//!
//! The mapping symbols of the ELF file (Arm IHI 0044, section 5.5.5) say what is an instruction: `$t` starts
//! T32 code, `$d` starts data. Code is then decoded from its first halfword on, because the first bits of a
//! T32 instruction hold its length. Some sections have executable contents that no symbol speaks for. There
//! code and data cannot be told apart. If something in there would have to be replaced in case it is code,
//! the file is refused with the list of these places. A guess would turn a constant into an instruction, or
//! leave an instruction that silently does nothing.
//!
//! A replacement is as long as the instruction that it stands for and carries its operands. So nothing moves
//! and nothing else changes. [`verify`] proves that for the finished bytes with the decoder of the target.

use std::ops::Range;

use bulkhead_arch_armv7m_core::decode::{
    narrow_replaced, narrow_replacement, wide_replaced, wide_replacement,
};

use crate::in_place::section::{Contents, Refusals, Rewritten, Section};

/// The hypercall instruction of a VM: UDF.N with an immediate that is no replacement.
const HYPERCALL: u16 = 0xdeb1;
/// BKPT with the immediate that a debugger takes for a call (Arm IHI 0036, Semihosting for AArch32 and
/// AArch64).
const SEMIHOSTING: u16 = 0xbeab;

fn halfword(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes([pair[0], pair[1]]))
}

/// Tells whether an instruction that starts with this halfword has a second halfword (Arm DDI 0403E, section
/// A5.1).
pub(super) const fn is_wide(first: u16) -> bool {
    first >> 11 >= 0b11101
}

/// Tells whether this is a permanently undefined instruction (Arm DDI 0403E, section A7.7.194).
fn is_undefined(first: u16, second: Option<u16>) -> bool {
    match second {
        None => first & 0xff00 == 0xde00 && first != HYPERCALL,
        Some(second) => first & 0xfff0 == 0xf7f0 && second & 0xf000 == 0xa000,
    }
}

/// Returns the first place of a stretch that would be replaced if it were an instruction.
fn sensitive(section: &Section<'_>, stretch: Range<usize>) -> Option<usize> {
    let Range { start, end } = stretch;
    let even = start + (section.address as usize + start) % 2;
    let half = |at| halfword(&section.bytes[..end], at);
    (even..end).step_by(2).find(|at| {
        half(*at).is_some_and(|first| match half(at + 2).filter(|_| is_wide(first)) {
            Some(second) => wide_replacement(first, second).is_some(),
            None => narrow_replacement(first).is_some(),
        })
    })
}

/// Returns the stretches of T32 code of a section, as offsets. Refuses contents that no symbol speaks for and
/// that might have to be replaced.
fn code(section: &Section<'_>, refusals: &mut Refusals) -> Vec<Range<usize>> {
    let end = section.bytes.len();
    let offset = |address: u32| (address.saturating_sub(section.address)) as usize;
    let first = section
        .map
        .first()
        .map_or(end, |(address, _)| offset(*address).min(end));
    // Only the linker's filling of a gap, zeros, may stand before the first symbol of a section.
    if section.bytes[..first].iter().any(|byte| *byte != 0) {
        refusals.push(format!(
            "{:#010x} to {:#010x} in {}: no mapping symbol says whether this is code or data",
            section.address,
            section.address as usize + first,
            section.name
        ));
    }
    let mut code = Vec::new();
    let ends = section
        .map
        .iter()
        .skip(1)
        .map(|(address, _)| offset(*address).min(end));
    for ((address, contents), stop) in section.map.iter().zip(ends.chain([end])) {
        let start = offset(*address).min(end);
        match contents {
            Contents::Data => {}
            // The CPU takes instructions from even addresses only.
            Contents::Thumb if start < stop && !(section.address as usize + start).is_multiple_of(2) => {
                refusals.push(format!(
                    "{:#010x} in {}: T32 code at an odd address",
                    section.address as usize + start,
                    section.name
                ));
            }
            Contents::Thumb => code.push(start..stop),
            Contents::Foreign if start < stop => refusals.push(format!(
                "{address:#010x} in {}: A32 instructions, which this CPU does not have",
                section.name
            )),
            Contents::Foreign => {}
            Contents::Untold => {
                if let Some(at) = sensitive(section, start..stop) {
                    refusals.push(format!(
                        "{address:#010x} to {:#010x} in {}: no symbol says whether this is code or data, and {:#010x} could be an \
                         instruction to be replaced",
                        section.address as usize + stop,
                        section.name,
                        section.address as usize + at
                    ));
                }
            }
        }
    }
    code
}

/// An instruction of a stretch of code.
struct Instruction {
    at: usize,
    first: u16,
    second: Option<u16>,
}

/// Returns the instructions of a stretch. Refuses an instruction that the end of the stretch cuts in two.
fn instructions(section: &Section<'_>, stretch: Range<usize>, refusals: &mut Refusals) -> Vec<Instruction> {
    let mut found = Vec::new();
    let Range { start: mut at, end } = stretch;
    while at < end {
        let first = halfword(&section.bytes[..end], at);
        let second = first
            .filter(|first| is_wide(*first))
            .map(|_| halfword(&section.bytes[..end], at + 2));
        let (Some(first), None | Some(Some(_))) = (first, second) else {
            refusals.push(format!(
                "{:#010x} in {}: the code ends within an instruction",
                section.address as usize + at,
                section.name
            ));
            return found;
        };
        let second = second.flatten();
        found.push(Instruction { at, first, second });
        at += if second.is_some() { 4 } else { 2 };
    }
    found
}

/// Rewrites `bytes`, a copy of the contents of `section`.
pub(crate) fn rewrite(
    section: &Section<'_>,
    bytes: &mut [u8],
    rewritten: &mut Rewritten,
    refusals: &mut Refusals,
) {
    for stretch in code(section, refusals) {
        for Instruction { at, first, second } in instructions(section, stretch, refusals) {
            let address = section.address + at as u32;
            let replacement = match second {
                None => narrow_replacement(first).map(|first| (first, None)),
                Some(second) => wide_replacement(first, second).map(|(first, second)| (first, Some(second))),
            };
            let Some((first, second)) = replacement else {
                if is_undefined(first, second) {
                    rewritten.undefined.push(address);
                } else if first == SEMIHOSTING {
                    rewritten.semihosting.push(address);
                }
                continue;
            };
            for (index, half) in std::iter::once(first).chain(second).enumerate() {
                let place = at + 2 * index;
                bytes[place..place + 2].copy_from_slice(&half.to_le_bytes());
            }
            rewritten.sites.push(address);
        }
    }
}

/// Returns the addresses at which a jump would meet a replaced instruction, or something that looks like one,
/// no matter what `bytes` at `address` are meant to be. The last halfword counts if it may begin a
/// replacement of 32 bits: the bytes after it are not known.
pub(crate) fn replaced_lookalikes(address: u32, bytes: &[u8]) -> impl Iterator<Item = u32> {
    let odd = address as usize & 1;
    (odd..bytes.len()).step_by(2).filter_map(move |at| {
        let first = halfword(bytes, at)?;
        let is_one = match halfword(bytes, at + 2) {
            _ if !is_wide(first) => narrow_replaced(first).is_some(),
            Some(second) => wide_replaced(first, second).is_some(),
            None => matches!(first & 0xFFF0, 0xF7F0 | 0xF9F0),
        };
        is_one.then_some(address + at as u32)
    })
}

/// Returns the first address at which a jump would meet a call of a debugger, no matter what `bytes` at
/// `address` are meant to be. At either end half of one counts: the bytes beyond are not known.
pub(crate) fn debugger_call(address: u32, bytes: &[u8]) -> Option<u32> {
    let [low, high] = SEMIHOSTING.to_le_bytes();
    let is_odd = !address.is_multiple_of(2);
    if is_odd && bytes.first() == Some(&high) {
        return address.checked_sub(1);
    }
    let odd = usize::from(is_odd);
    let call = (odd..bytes.len()).step_by(2).find(|at| {
        let second = bytes.get(at + 1).copied().unwrap_or(high);
        [bytes[*at], second] == [low, high]
    });
    Some(address + call? as u32)
}

/// Proves that `after` is `before` except at `sites`, that each site decodes to the instruction that was
/// there, and that no instruction is left that should have been replaced.
pub(crate) fn verify(section: &Section<'_>, after: &[u8], sites: &[u32]) -> Result<(), String> {
    let before = section.bytes;
    let fault = |at: usize, what: &str| {
        Err(format!(
            "{:#010x} in {}: {what}",
            section.address as usize + at,
            section.name
        ))
    };
    if before.len() != after.len() {
        return fault(0, "its length has changed");
    }
    let mut expected = before.to_vec();
    let inside = sites
        .iter()
        .filter_map(|site| Some(site.checked_sub(section.address)? as usize))
        .filter(|at| *at < before.len());
    for at in inside {
        let (Some(old), Some(new)) = (halfword(before, at), halfword(after, at)) else {
            return fault(at, "the replaced instruction is cut off");
        };
        let halves = if is_wide(old) {
            let (Some(second), Some(new_second)) = (halfword(before, at + 2), halfword(after, at + 2)) else {
                return fault(at, "the replaced instruction is cut off");
            };
            if wide_replacement(old, second) != Some((new, new_second))
                || wide_replaced(new, new_second).is_none()
            {
                return fault(at, "the replacement does not decode to what was there");
            }
            2
        } else {
            if narrow_replacement(old) != Some(new) || narrow_replaced(new).is_none() {
                return fault(at, "the replacement does not decode to what was there");
            }
            1
        };
        expected[at..at + 2 * halves].copy_from_slice(&after[at..at + 2 * halves]);
    }
    if let Some(at) = expected.iter().zip(after).position(|(one, other)| one != other) {
        return fault(at, "something else than a replaced instruction has changed");
    }
    Ok(())
}
