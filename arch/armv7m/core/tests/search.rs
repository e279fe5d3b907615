// SPDX-License-Identifier: Apache-2.0
//! Imprecise bus faults traced back to their store, on code as an assembler made it.

use bulkhead_arch_armv7m_core::decode::{Code, Found, search_back};
use bulkhead_arch_armv7m_core::{PRIVATE_BUS, PRIVATE_BUS_SIZE};

const START: u32 = 0x1000;
const SCB: u32 = 0xE000_ED00;

struct Program {
    halfwords: Vec<u16>,
    registers: [u32; 16],
}

impl Code for Program {
    fn fetch(&self, address: u32) -> Option<u16> {
        self.halfwords
            .get((address.wrapping_sub(START) / 2) as usize)
            .copied()
    }

    fn register(&self, number: u8) -> u32 {
        self.registers[usize::from(number)]
    }
}

/// Returns where the store is and goes that a fault after all of `halfwords` comes from.
fn search(halfwords: &[u16], registers: &[(usize, u32)]) -> Result<(u32, u32), Found> {
    let mut program = Program {
        halfwords: halfwords.to_vec(),
        registers: [0x2000_0000; 16],
    };
    for (register, value) in registers {
        program.registers[*register] = *value;
    }
    match search_back(&program, START + 2 * halfwords.len() as u32, |address| {
        address.wrapping_sub(PRIVATE_BUS) < PRIVATE_BUS_SIZE
    }) {
        Found::Store { at, address, .. } => Ok((at - START, address)),
        other => Err(other),
    }
}

#[test]
fn a_store_is_found_behind_instructions_of_both_lengths() {
    // str r1,[r0,#16]; adds r2,r3,#1; mov.w r4,#5
    let code = [0x6101, 0x1C5A, 0xF04F, 0x0405];
    assert_eq!(search(&code, &[(0, SCB)]), Ok((0, SCB + 16)));
    // nop; str.w r1,[r0,r2,lsl #2]; dsb; isb
    let code = [0xBF00, 0xF840, 0x1022, 0xF3BF, 0x8F4F, 0xF3BF, 0x8F6F];
    assert_eq!(search(&code, &[(0, SCB), (2, 5)]), Ok((2, SCB + 20)));
}

#[test]
fn a_base_that_the_store_changed_is_taken_back() {
    // strb.w r5,[r6],#1; nop
    assert_eq!(
        search(&[0xF806, 0x5B01, 0xBF00], &[(6, SCB + 0x19)]),
        Ok((0, SCB + 0x18))
    );
    // stmia r0!,{r1,r2}; ldr r3,[sp,#4]; cmp r3,#0; it eq; moveq r3,#1
    let code = [0xC006, 0x9B01, 0x2B00, 0xBF08, 0x2301];
    assert_eq!(search(&code, &[(0, SCB + 0x20)]), Ok((0, SCB + 0x18)));
}

#[test]
fn of_two_stores_that_can_have_been_it_none_is_guessed() {
    // str r1,[r0]; str r1,[r0,#4]
    assert_eq!(search(&[0x6001, 0x6041], &[(0, SCB)]), Err(Found::Ambiguous));
    // The first goes to memory: str r1,[r2]; str r1,[r0]
    assert_eq!(search(&[0x6011, 0x6001], &[(0, SCB)]), Ok((2, SCB)));
}

#[test]
fn a_store_whose_registers_have_changed_since_is_not_trusted() {
    // str r1,[r0]; movs r0,#0
    assert_eq!(search(&[0x6001, 0x2000], &[(0, SCB)]), Err(Found::Nothing));
    // str r1,[r0]; movs r1,#0: the value is lost as well
    assert_eq!(search(&[0x6001, 0x2100], &[(0, SCB)]), Err(Found::Nothing));
}

#[test]
fn branches_end_the_search() {
    // str r1,[r0]; b.n ...; and bl
    assert_eq!(search(&[0x6001, 0xE7FE], &[(0, SCB)]), Err(Found::Nothing));
    assert_eq!(
        search(&[0x6001, 0xF000, 0xF806], &[(0, SCB)]),
        Err(Found::Nothing)
    );
    // str r1,[r0]; pop {r4, pc}
    assert_eq!(search(&[0x6001, 0xBD10], &[(0, SCB)]), Err(Found::Nothing));
    // cbz r0
    assert_eq!(search(&[0x6001, 0xB100], &[(0, SCB)]), Err(Found::Nothing));
}

#[test]
fn nothing_is_found_in_any_code_where_nothing_is() {
    for first in (0..=u16::MAX).step_by(7) {
        let result = search(&[first, 0xBF00, first.rotate_left(5), 0xBF00], &[]);
        assert!(matches!(result, Err(Found::Nothing)), "{first:#06x}: {result:?}");
    }
}

/// A small generator of numbers (xorshift64), the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// One instruction of straight-line code, as a processor does it.
#[derive(Clone, Copy)]
enum Instruction {
    /// ADDS rd, rn, #imm3.
    Add {
        rd: usize,
        rn: usize,
        immediate: u32,
    },
    /// MOVW rd, #imm16.
    Move {
        rd: usize,
        immediate: u32,
    },
    /// MOV rd, rm, of 32 bits.
    Copy {
        rd: usize,
        rm: usize,
    },
    Nop,
    /// LDR rt, [r13, #4 * imm]: what is loaded is drawn beforehand.
    Load {
        rt: usize,
        slot: u32,
        value: u32,
    },
    /// STR, STRB or STRH rt, [rn, #offset], of 16 or 32 bits.
    Store {
        rt: usize,
        rn: usize,
        offset: u32,
        size: u32,
        wide: bool,
    },
    /// STR rt, [rn, #change]! or [rn], #change.
    Change {
        rt: usize,
        rn: usize,
        change: u32,
        pre: bool,
    },
    /// STMIA rn!, {two registers}.
    Two {
        rn: usize,
        list: u16,
    },
}

impl Instruction {
    fn draw(random: &mut Random) -> Self {
        let mut register = || random.below(6) as usize;
        let (a, b) = (register(), register());
        let number = random.below(1 << 16) as u32;
        match random.below(10) {
            0 => Self::Add {
                rd: a,
                rn: b,
                immediate: number & 7,
            },
            1 => Self::Move {
                rd: a,
                immediate: number,
            },
            2 => Self::Copy { rd: a, rm: b },
            3 => Self::Nop,
            4 => Self::Load {
                rt: a,
                slot: number & 0xFF,
                value: number,
            },
            5..=7 => {
                let size = 1 << random.below(3);
                let offset = (number & 31) * size;
                Self::Store {
                    rt: a,
                    rn: b,
                    offset,
                    size,
                    wide: random.below(2) == 0,
                }
            }
            8 if a != b => Self::Change {
                rt: a,
                rn: b,
                change: number & 0xFF,
                pre: random.below(2) == 0,
            },
            _ => {
                let list = 1_u16 << a | 1 << 6;
                if a == b {
                    Self::Nop
                } else {
                    Self::Two { rn: b, list }
                }
            }
        }
    }

    fn encode(self, code: &mut Vec<u16>) {
        match self {
            Self::Add { rd, rn, immediate } => {
                code.push(0x1C00 | (immediate << 6) as u16 | (rn << 3 | rd) as u16)
            }
            Self::Move { rd, immediate } => {
                let high = immediate >> 12 | (immediate >> 1 & 0x400);
                code.push(0xF240 | high as u16);
                code.push((immediate << 4 & 0x7000) as u16 | (rd << 8) as u16 | (immediate & 0xFF) as u16);
            }
            Self::Copy { rd, rm } => code.extend([0xEA4F, (rd << 8 | rm) as u16]),
            Self::Nop => code.push(0xBF00),
            Self::Load { rt, slot, .. } => code.push(0x9800 | (rt << 8) as u16 | slot as u16),
            Self::Store {
                rt,
                rn,
                offset,
                size,
                wide: true,
            } => {
                let operation = [0xF880, 0xF8A0, 0xF8C0][size.trailing_zeros() as usize];
                code.extend([operation | rn as u16, (rt << 12) as u16 | offset as u16]);
            }
            Self::Store {
                rt, rn, offset, size, ..
            } => {
                let operation = [0x7000, 0x8000, 0x6000][size.trailing_zeros() as usize];
                code.push(operation | ((offset / size) << 6) as u16 | (rn << 3 | rt) as u16);
            }
            Self::Change { rt, rn, change, pre } => {
                let form = if pre { 0xF00 } else { 0xB00 };
                code.extend([0xF840 | rn as u16, (rt << 12) as u16 | form | change as u16]);
            }
            Self::Two { rn, list } => code.push(0xC000 | (rn << 8) as u16 | list),
        }
    }

    /// Does it; where it stored, if it did.
    fn execute(self, registers: &mut [u32; 16]) -> Option<u32> {
        match self {
            Self::Add { rd, rn, immediate } => registers[rd] = registers[rn].wrapping_add(immediate),
            Self::Move { rd, immediate } => registers[rd] = immediate,
            Self::Copy { rd, rm } => registers[rd] = registers[rm],
            Self::Nop => {}
            Self::Load { rt, value, .. } => registers[rt] = value,
            Self::Store { rn, offset, .. } => return Some(registers[rn].wrapping_add(offset)),
            Self::Change { rn, change, pre, .. } => {
                let before = registers[rn];
                registers[rn] = before.wrapping_add(change);
                return Some(if pre { registers[rn] } else { before });
            }
            Self::Two { rn, .. } => {
                let before = registers[rn];
                registers[rn] = before.wrapping_add(8);
                return Some(before);
            }
        }
        None
    }
}

/// Searches generated code: the store that the bus has refused is found, or the search says that it cannot
/// tell; never another store. The refused one is any of the last few, and the only one to the private bus
/// that was not done before.
#[test]
fn in_generated_code_it_is_never_another_store() {
    const CASES: usize = 20_000;
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut found, mut unknown) = (0, 0);
    for _ in 0..CASES {
        let mut registers = [0x2000_0000_u32; 16];
        for register in registers.iter_mut().take(7) {
            *register = match random.below(3) {
                0 => SCB + random.below(64) as u32 * 4,
                1 => 0x2000_0000 + random.below(0x1000) as u32 * 4,
                _ => random.below(1 << 32) as u32 & 0x1FFF_FFFF,
            };
        }
        let (mut code, mut stores) = (Vec::new(), Vec::new());
        for _ in 0..1 + random.below(7) {
            let instruction = Instruction::draw(&mut random);
            let at = 2 * code.len() as u32;
            instruction.encode(&mut code);
            if let Some(address) = instruction.execute(&mut registers) {
                stores.push((at, address));
            }
        }
        let private = |address: u32| address.wrapping_sub(PRIVATE_BUS) < PRIVATE_BUS_SIZE;
        let Some(refused) = stores.iter().copied().rfind(|(_, address)| private(*address)) else {
            continue;
        };
        let several = stores.iter().filter(|(_, address)| private(*address)).count() > 1;
        let named: Vec<_> = registers.iter().copied().enumerate().collect();
        match search(&code, &named) {
            Ok(store) => {
                found += 1;
                assert!(stores.contains(&store), "{code:04x?}: {store:x?} was never done");
                assert!(
                    several || store == refused,
                    "{code:04x?}: {store:x?}, not {refused:x?}"
                );
            }
            Err(_) => unknown += 1,
        }
    }
    assert!(found > CASES / 5, "{found} found, {unknown} unknown");
}
