// SPDX-License-Identifier: Apache-2.0
//! Masks without a trap: branches in the place of MRS and MSR of BASEPRI, PRIMASK and PSP, and the pieces of
//! code that they lead to.
//!
//! A replaced instruction traps. With `machine.mask-words` an instruction for these registers becomes a
//! branch of the same length (B.W, Arm DDI 0403E, section A7.7.12). Each branch leads to a piece of code
//! after the program. The piece loads or stores the *mask words* in the program's memory
//! ([`bulkhead_arch_armv7m_core::masks`]), changes no flag and no other register, and branches back. Where a
//! trap is needed, the piece executes the replaced instruction, which is in the piece now.
//!
//! A branch has to be the last instruction of an IT block (section A7.3.3). So an instruction that may be in
//! one stays a trap, and so does one whose operand the pieces have no form for.
//!
//! Nothing is believed of the finished code: a disassembler reads it ([`verify`]).

use super::disassemble::Disassembler;
use super::rewrite::is_wide;
use crate::in_place::section::Rewritten;
use crate::payload::Stretch;
use crate::window::Window;
use bulkhead_arch_armv7m_core::Special;
use bulkhead_arch_armv7m_core::decode::{Replaced, wide_replaced};
use bulkhead_arch_armv7m_core::masks::{BASEPRI, LOOK, PRIMASK, PRIORITY_BITS, PROCESS_STACK};

/// Pieces begin at a multiple of this, so that the words in them are aligned.
const ALIGN: u64 = 4;
/// The longest distance between an instruction and its piece, whose last branch leads back.
const REACH: i64 = (1 << 24) - 64;
/// BKPT with the immediate that a debugger takes for a call. No part of a branch may look like one.
const DEBUGGER_CALL: u16 = 0xbeab;
/// Registers that can be SP or PC have no piece.
const SP: u8 = 13;
const PC: u8 = 15;
/// Registers that the short forms of instructions can name are below.
const LOW: u8 = 8;
/// Halfwords that may come between the beginning of an IT and the last instruction of its block.
const BLOCK: usize = 7;

/// The instruction that is replaced, and what stands for it.
#[derive(Clone, Copy)]
struct Site {
    address: u32,
    stand_in: [u16; 2],
    does: Does,
}

/// The work of an instruction with a piece.
#[derive(Clone, Copy)]
enum Does {
    /// Loads a word into the register.
    Load { register: u8, offset: u32 },
    /// Loads the word of PSP, a low register.
    LoadStack { register: u8 },
    /// Stores BASEPRI.
    StorePriority { register: u8 },
    /// Stores PRIMASK.
    StoreMask { register: u8 },
    /// Stores PSP.
    StoreStack { register: u8 },
}

impl Does {
    fn of(replaced: Replaced) -> Option<Self> {
        match replaced {
            Replaced::ReadSpecial { register, special } if register != SP && register != PC => {
                match special.0 {
                    Special::BASEPRI => Some(Self::Load {
                        register,
                        offset: BASEPRI,
                    }),
                    Special::PRIMASK => Some(Self::Load {
                        register,
                        offset: PRIMASK,
                    }),
                    Special::PSP if register < LOW => Some(Self::LoadStack { register }),
                    _ => None,
                }
            }
            Replaced::WriteSpecial {
                register, special, ..
            } if register != SP && register != PC => match special.0 {
                Special::BASEPRI => Some(Self::StorePriority { register }),
                Special::PRIMASK => Some(Self::StoreMask { register }),
                Special::PSP => Some(Self::StoreStack { register }),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A piece of code.
struct Piece {
    halves: Vec<u16>,
    /// Where in it the replaced instruction is, in bytes, if it has one.
    trap: Option<u32>,
}

impl Piece {
    fn bytes(&self) -> impl Iterator<Item = u8> {
        self.halves.iter().flat_map(|half| half.to_le_bytes())
    }
}

/// Returns the piece at `address` for an instruction. The offsets in it follow from the lengths of the
/// instructions before.
fn piece(address: u32, words: u32, site: Site) -> Piece {
    let back = |from: u32| branch(address + from, site.address + 4);
    let [low, high] = [words as u16, (words >> 16) as u16];
    let [first, second] = site.stand_in;
    match site.does {
        Does::Load { register, offset } => {
            let wide = u16::from(register);
            let [b0, b1] = back(8);
            let halves = vec![
                0xf8df,
                wide << 12 | 8, // 0: ldr.w register, [pc, #8]
                0xf890 | wide,
                wide << 12 | offset as u16, // 4: ldrb.w register, [register, #offset]
                b0,
                b1, // 8: b.w back
                low,
                high, // 12
            ];
            Piece { halves, trap: None }
        }
        Does::LoadStack { register } => {
            let wide = u16::from(register);
            let ([b0, b1], [c0, c1]) = (back(8), back(16));
            let halves = vec![
                0xf8df,
                wide << 12 | 16,                         // 0: ldr.w register, [pc, #16]
                load(register, register, PROCESS_STACK), // 4
                0xb108 | wide,                           // 6: cbz register, 12
                b0,
                b1, // 8: b.w back
                first,
                second, // 12: the replaced instruction
                c0,
                c1, // 16: b.w back
                low,
                high, // 20
            ];
            Piece {
                halves,
                trap: Some(12),
            }
        }
        Does::StorePriority { register } | Does::StoreMask { register } | Does::StoreStack { register } => {
            storing(register, address, words, site)
        }
    }
}

/// Returns a piece that stores a register: the work between the way in and both ways out.
fn storing(register: u8, address: u32, words: u32, site: Site) -> Piece {
    let (a, b) = others(register);
    let both = 1 << a | 1 << b;
    let [done, after] = [18, 28].map(|from| branch(address + from, site.address + 4));
    let mut halves = vec![
        0xb400 | both,                  // 0: push {a, b}
        0x4800 | u16::from(a) << 8 | 7, // 2: ldr a, [pc, #28]
    ];
    halves.extend(work(site.does, register, a, b)); // 4
    halves.push(0xbc00 | both); // 16: pop {a, b}
    halves.extend(done); // 18: b.w back
    halves.push(0xbc00 | both); // 22: pop {a, b}
    halves.extend(site.stand_in); // 24: the replaced instruction
    halves.extend(after); // 28: b.w back
    halves.extend([words as u16, (words >> 16) as u16]); // 32
    Piece {
        halves,
        trap: Some(24),
    }
}

/// Returns the part of a piece that stores `register`, from offset 4 to 16. The address of the words is in
/// `a`, and `b` is free.
fn work(does: Does, register: u8, a: u8, b: u8) -> [u16; 6] {
    let (from, to) = (u16::from(register), u16::from(b));
    match does {
        Does::StorePriority { .. } => [
            load(b, a, PRIORITY_BITS),
            0xea00 | to,
            to << 8 | from, // 6: and.w b, b, register
            store_byte(b, a, BASEPRI),
            load_byte(b, a, LOOK),
            0xb910 | to, // 14: cbnz b, 22
        ],
        Does::StoreStack { .. } => [
            load(b, a, PROCESS_STACK),
            0xb130 | to, // 6: cbz b, 22
            0xf020 | from,
            to << 8 | 3, // 8: bic.w b, register, #3
            0xb118 | to, // 12: cbz b, 22
            store(b, a, PROCESS_STACK),
        ],
        _ => [
            0xf000 | from,
            to << 8 | 1, // 4: and.w b, register, #1
            NOP,
            store_byte(b, a, PRIMASK),
            load_byte(b, a, LOOK),
            0xb910 | to, // 14: cbnz b, 22
        ],
    }
}

const NOP: u16 = 0xbf00;

/// Returns two low registers that are not this one.
const fn others(register: u8) -> (u8, u8) {
    match register {
        0 => (1, 2),
        1 => (0, 2),
        _ => (0, 1),
    }
}

/// LDR (immediate), T1.
const fn load(register: u8, base: u8, offset: u32) -> u16 {
    0x6800 | (offset as u16 / 4) << 6 | (base as u16) << 3 | register as u16
}

/// STR (immediate), T1.
const fn store(register: u8, base: u8, offset: u32) -> u16 {
    0x6000 | (offset as u16 / 4) << 6 | (base as u16) << 3 | register as u16
}

/// LDRB (immediate), T1.
const fn load_byte(register: u8, base: u8, offset: u32) -> u16 {
    0x7800 | (offset as u16) << 6 | (base as u16) << 3 | register as u16
}

/// STRB (immediate), T1.
const fn store_byte(register: u8, base: u8, offset: u32) -> u16 {
    0x7000 | (offset as u16) << 6 | (base as u16) << 3 | register as u16
}

/// Returns B.W (T4) from `from` to `to`.
const fn branch(from: u32, to: u32) -> [u16; 2] {
    let distance = to.wrapping_sub(from.wrapping_add(4));
    let sign = (distance >> 24 & 1) as u16;
    let j1 = 1 ^ (distance >> 23 & 1) as u16 ^ sign;
    let j2 = 1 ^ (distance >> 22 & 1) as u16 ^ sign;
    [
        0xf000 | sign << 10 | (distance >> 12) as u16 & 0x3ff,
        0x9000 | j1 << 13 | j2 << 11 | (distance >> 1) as u16 & 0x7ff,
    ]
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes([pair[0], pair[1]]))
}

/// Tells whether the instruction at `at` may be in an IT block (A7.7.38): something before it looks like an
/// IT, and as many instructions after that as its block has reach as far.
fn may_be_conditional(bytes: &[u8], at: usize) -> bool {
    let reaches = |back: usize| {
        let mut next = at.checked_sub(2 * back)?;
        let first = half(bytes, next)?;
        let mask = first & 0xf;
        let block = if first & 0xff00 == 0xbf00 && mask != 0 {
            4 - mask.trailing_zeros()
        } else {
            0
        };
        next += 2;
        for _ in 0..block {
            if next == at {
                return Some(());
            }
            next += if is_wide(half(bytes, next)?) { 4 } else { 2 };
        }
        None
    };
    (1..=BLOCK).any(|back| reaches(back).is_some())
}

fn is_in(stretch: &Stretch, address: u32) -> bool {
    stretch.window().contains(Window {
        base: address.into(),
        size: 4,
    })
}

/// Returns the bytes of the finished code from an address on.
fn contents(code: &[Stretch], address: u32, length: usize) -> Option<&[u8]> {
    let stretch = code.iter().find(|stretch| is_in(stretch, address))?;
    let at = (u64::from(address) - stretch.address) as usize;
    stretch.bytes.get(at..at + length)
}

/// Returns what is at a replaced instruction, if a piece can do it.
fn site(code: &[Stretch], address: u32) -> Option<Site> {
    let stretch = code.iter().find(|stretch| is_in(stretch, address))?;
    let at = (u64::from(address) - stretch.address) as usize;
    let stand_in = [half(&stretch.bytes, at)?, half(&stretch.bytes, at + 2)?];
    let does = Does::of(wide_replaced(stand_in[0], stand_in[1])?)?;
    (!may_be_conditional(&stretch.bytes, at)).then_some(Site {
        address,
        stand_in,
        does,
    })
}

/// Returns the first piece at `address` or after it of which no branch looks like a call of a debugger, and
/// where it begins. Branches to two places a few bytes apart differ in the halfword that can look so.
fn plain_piece(address: u32, words: u32, site: Site) -> (u32, Piece) {
    let mut here = address;
    loop {
        let made = piece(here, words, site);
        let there = branch(site.address, here);
        let code = made
            .halves
            .split_last_chunk::<2>()
            .map_or(&[][..], |(code, _)| code);
        if !there.iter().chain(code).any(|half| *half == DEBUGGER_CALL) || here > address + 16 {
            return (here, made);
        }
        here += ALIGN as u32;
    }
}

/// Puts branches in the place of replaced instructions, and the pieces that they lead to after the program.
/// `words` is the address of the mask words.
///
/// # Errors
/// The finished code does not read as it should.
pub(super) fn bridge(words: u32, code: &mut Vec<Stretch>, rewritten: &mut Rewritten) -> Result<(), String> {
    let Some(end) = code
        .last()
        .map(|last| last.window().end().next_multiple_of(ALIGN))
    else {
        return Ok(());
    };
    let mut bytes = Vec::new();
    let mut bridged = Vec::new();
    for address in &mut rewritten.sites {
        let here = end + bytes.len() as u64;
        let is_near = (here as i64 - i64::from(*address)).abs() < REACH;
        let Some(site) = site(code, *address).filter(|_| is_near) else {
            continue;
        };
        let (here, piece) = plain_piece(here as u32, words, site);
        bytes.resize((u64::from(here) - end) as usize, 0);
        bytes.extend(piece.bytes());
        bridged.push((site, here));
        // A load of a mask has no trap any more.
        *address = piece.trap.map_or(0, |trap| here + trap);
    }
    rewritten.sites.retain(|address| *address != 0);
    rewritten.sites.sort_unstable();
    for (site, to) in &bridged {
        let stretch = code.iter_mut().find(|stretch| is_in(stretch, site.address));
        let Some(stretch) = stretch else { continue };
        let at = (u64::from(site.address) - stretch.address) as usize;
        for (place, half) in (at..).step_by(2).zip(branch(site.address, *to)) {
            stretch.bytes[place..place + 2].copy_from_slice(&half.to_le_bytes());
        }
    }
    if !bytes.is_empty() {
        code.push(Stretch { address: end, bytes });
    }
    verify(words, code, &bridged)
}

/// Returns the name that the disassembler has for a register.
fn name(register: u8) -> String {
    let known = match register {
        9 => "sb",
        10 => "sl",
        11 => "fp",
        12 => "ip",
        14 => "lr",
        low => return format!("r{low}"),
    };
    known.to_owned()
}

/// Returns the assembly language of a piece, without the word at its end. It is written here once more, by
/// names and not by encodings.
fn listing(site: Site, to: u32) -> Vec<String> {
    let [first, second] = site.stand_in;
    let trap = match (first & 0xf) << 12 | second & 0xfff {
        digit @ 0..=9 => format!("udf.w #{digit}"),
        number => format!("udf.w #{number:#x}"),
    };
    let back = format!("b.w #{:#x}", site.address + 4);
    let slow = |after: u32| format!("#{:#x}", to + after);
    let stores = |work: &dyn Fn(&str, &str, &str) -> Vec<String>, register: u8| {
        let (a, b) = others(register);
        let (a, b) = (name(a), name(b));
        let mut lines = vec![format!("push {{{a}, {b}}}"), format!("ldr {a}, [pc, #0x1c]")];
        lines.extend(work(&a, &b, &name(register)));
        let out = format!("pop {{{a}, {b}}}");
        lines.extend([out.clone(), back.clone(), out, trap.clone(), back.clone()]);
        lines
    };
    match site.does {
        Does::Load { register, offset } => {
            let r = name(register);
            let byte = if offset == BASEPRI { 1 } else { 2 };
            vec![
                format!("ldr.w {r}, [pc, #8]"),
                format!("ldrb.w {r}, [{r}, #{byte}]"),
                back,
            ]
        }
        Does::LoadStack { register } => {
            let r = name(register);
            let leave = format!("cbz {r}, {}", slow(12));
            let load = [
                format!("ldr.w {r}, [pc, #0x10]"),
                format!("ldr {r}, [{r}, #4]"),
                leave,
            ];
            load.into_iter().chain([back.clone(), trap, back]).collect()
        }
        Does::StorePriority { register } => {
            let work = |a: &str, b: &str, r: &str| {
                let bits = format!("ldr {b}, [{a}, #8]");
                let look = format!("ldrb {b}, [{a}]");
                let leave = format!("cbnz {b}, {}", slow(22));
                vec![
                    bits,
                    format!("and.w {b}, {b}, {r}"),
                    format!("strb {b}, [{a}, #1]"),
                    look,
                    leave,
                ]
            };
            stores(&work, register)
        }
        Does::StoreMask { register } => {
            let work = |a: &str, b: &str, r: &str| {
                let look = format!("ldrb {b}, [{a}]");
                let leave = format!("cbnz {b}, {}", slow(22));
                let mask = format!("and {b}, {r}, #1");
                vec![
                    mask,
                    "nop ".to_owned(),
                    format!("strb {b}, [{a}, #2]"),
                    look,
                    leave,
                ]
            };
            stores(&work, register)
        }
        Does::StoreStack { register } => {
            let work = |a: &str, b: &str, r: &str| {
                let leave = format!("cbz {b}, {}", slow(22));
                let stack = format!("bic {b}, {r}, #3");
                let load = format!("ldr {b}, [{a}, #4]");
                vec![load, leave.clone(), stack, leave, format!("str {b}, [{a}, #4]")]
            };
            stores(&work, register)
        }
    }
}

/// Proves by a disassembler that each branch leads to its piece, and that each piece does what it should.
fn verify(words: u32, code: &[Stretch], bridged: &[(Site, u32)]) -> Result<(), String> {
    let disassembler =
        Disassembler::new().map_err(|why| format!("the disassembler does not start: {why}"))?;
    for (site, to) in bridged {
        let wrong = |what: &str| Err(format!("{:#010x}: {what}", site.address));
        let read = |address: u32, length| {
            contents(code, address, length).and_then(|bytes| disassembler.listing(bytes, address))
        };
        if read(site.address, 4) != Some(vec![format!("b.w #{to:#x}")]) {
            return wrong("the disassembler sees another branch to the mask words");
        }
        let made: Vec<u8> = piece(*to, words, *site).bytes().collect();
        if contents(code, *to, made.len()) != Some(&made) {
            return wrong("the piece of code for the mask words has changed");
        }
        if read(*to, made.len() - 4) != Some(listing(*site, *to)) {
            return wrong("the disassembler sees another piece of code for the mask words");
        }
        if !made.ends_with(&words.to_le_bytes()) {
            return wrong("the piece of code has another address of the mask words");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_arch_armv7m_core::decode::wide_replacement;

    const WORDS: u32 = 0x2000_3fe0;

    /// Returns a program of these instructions at 0x400, each replaced as `rewrite` does it, and its sites.
    fn program(halves: &[u16]) -> (Vec<Stretch>, Rewritten) {
        let mut halves = halves.to_vec();
        let mut rewritten = Rewritten::default();
        for at in 0..halves.len().saturating_sub(1) {
            if let Some((first, second)) = wide_replacement(halves[at], halves[at + 1]) {
                (halves[at], halves[at + 1]) = (first, second);
                rewritten.sites.push(0x400 + 2 * at as u32);
            }
        }
        let bytes = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
        (
            vec![Stretch {
                address: 0x400,
                bytes,
            }],
            rewritten,
        )
    }

    #[test]
    fn every_register_has_a_piece_that_the_disassembler_reads() {
        let (mut pieces, mut traps) = (0, 0);
        for register in (0..=12_u16).chain([14]) {
            for special in 0..=20_u16 {
                for halves in [
                    [0xf3ef, 0x8000 | register << 8 | special],
                    [0xf380 | register, 0x8800 | special],
                ] {
                    let (mut code, mut rewritten) = program(&halves);
                    let before = code.clone();
                    assert_eq!(bridge(WORDS, &mut code, &mut rewritten), Ok(()), "{halves:x?}");
                    if code.len() == 2 {
                        pieces += 1;
                        traps += rewritten.sites.len();
                        assert!(rewritten.sites.iter().all(|site| *site >= 0x404));
                    } else {
                        assert_eq!(code, before);
                    }
                }
            }
        }
        // BASEPRI and PRIMASK of 14 registers, both ways; PSP to 14 registers, and of 8.
        assert_eq!((pieces, traps), (4 * 14 + 14 + 8, 2 * 14 + 14 + 8));
    }

    #[test]
    fn an_instruction_that_may_be_conditional_stays_a_trap() {
        // MSR BASEPRI, r1 alone, after VLDMIA r0!, {s16-s31}, or after MOVS r3, #0, and blocks of different
        // lengths.
        let cases: [(&[u16], bool); 6] = [
            (&[0xbf08, 0xf381, 0x8811], true),
            (&[0xbf08, 0xecb0, 0x8a10, 0xf381, 0x8811], false),
            (&[0xbf04, 0xecb0, 0x8a10, 0xf381, 0x8811], true),
            (
                &[
                    0xbf01, 0xecb0, 0x8a10, 0xecb0, 0x8a10, 0xecb0, 0x8a10, 0xf381, 0x8811,
                ],
                true,
            ),
            (&[0xbf08, 0x2300, 0xf381, 0x8811], false),
            (&[0xbf04, 0x2300, 0xf381, 0x8811], true),
        ];
        for (halves, stays) in cases {
            let (mut code, mut rewritten) = program(halves);
            let site = rewritten.sites.clone();
            assert_eq!(bridge(WORDS, &mut code, &mut rewritten), Ok(()));
            assert_eq!(
                (code.len() == 1, rewritten.sites == site),
                (stays, stays),
                "{halves:x?}"
            );
        }
    }

    #[test]
    fn every_bit_of_the_finished_code_counts() {
        let (mut code, mut rewritten) =
            program(&[0xf381, 0x8811, 0xf3ef, 0x8009, 0xf380, 0x8809, 0xf3ef, 0x8211]);
        let sites: Vec<Site> = rewritten.sites.iter().filter_map(|at| site(&code, *at)).collect();
        assert_eq!(sites.len(), 4);
        assert_eq!(bridge(WORDS, &mut code, &mut rewritten), Ok(()));
        let lengths = [36, 24, 36, 16];
        let starts = [0x410, 0x434, 0x44c, 0x470];
        let bridged: Vec<(Site, u32)> = sites.into_iter().zip(starts).collect();
        assert_eq!(verify(WORDS, &code, &bridged), Ok(()));
        assert_eq!(code[1].bytes.len(), lengths.iter().sum::<usize>());
        for part in 0..2 {
            for bit in 0..code[part].bytes.len() * 8 {
                let mut damaged = code.clone();
                damaged[part].bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(
                    verify(WORDS, &damaged, &bridged).is_err(),
                    "part {part}, bit {bit}"
                );
            }
        }
    }
}
