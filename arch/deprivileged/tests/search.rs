// SPDX-License-Identifier: Apache-2.0
//! Imprecise bus faults traced back to their store, on code as an assembler made it.

use bulkhead_arch_deprivileged::decode::{Code, Found, search_back};
use bulkhead_arch_deprivileged::{PRIVATE_BUS, PRIVATE_BUS_SIZE};

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

/// Where the store is and goes that a fault behind all of `halfwords` comes from.
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
