// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of words of a device: one register on the shortest way, several registers, and what is
//! refused.

mod bare_model;

use bare_model::MODEL;
use bulkhead_arch_armv7m_core::{Guest, GuestAccess, Several, VirtualCore, word_quickly};

const BASE: u32 = 0xA000_0000;
const PC: u32 = 0x100;

/// Registers and one instruction; no memory.
struct Program {
    registers: [u32; 16],
    code: [u16; 2],
}

impl Program {
    fn new(code: [u16; 2]) -> Self {
        let mut registers = [0; 16];
        for (number, register) in (0_u32..).zip(&mut registers) {
            *register = 0x100 * number;
        }
        (registers[1], registers[15]) = (BASE, PC);
        Self { registers, code }
    }
}

impl Guest for Program {
    fn register(&self, number: u8) -> u32 {
        self.registers[usize::from(number)]
    }
    fn set_register(&mut self, number: u8, value: u32) {
        self.registers[usize::from(number)] = value;
    }
    fn xpsr(&self) -> u32 {
        1 << 24
    }
    fn set_xpsr(&mut self, _value: u32) {}
    fn words(&self) -> [u32; 8] {
        [0; 8]
    }
    fn push(&mut self, _address: u32, _words: &[u32; 8]) -> bool {
        false
    }
    fn frame(&self) -> u32 {
        0
    }
    fn extended(&self) -> bool {
        false
    }
    fn set_frame(&mut self, _address: u32, _extended: bool) {}
    fn reaches(&self, _address: u32, _bytes: u32) -> bool {
        false
    }
    fn load(&self, _address: u32) -> Option<u32> {
        None
    }
    fn store(&mut self, _address: u32, _value: u32) -> bool {
        false
    }
    fn fetch(&self, address: u32) -> Option<u16> {
        self.code.get((address.checked_sub(PC)? / 2) as usize).copied()
    }
    fn float(&self, _number: u8) -> u32 {
        0
    }
    fn set_float(&mut self, _number: u8, _value: u32) {}
    fn settle_floating_point(&mut self) {}
    fn drop_floating_point(&mut self) {}
}

/// Does the instruction at a device that knows so many words; what it was asked.
fn several(program: &mut Program, words: usize) -> (Several, Vec<(u32, Option<u32>)>) {
    let mut asked = Vec::new();
    let core = VirtualCore::new(&MODEL, 0, 0);
    let result = core.access_several(program, |address, store| {
        if asked.len() == words {
            return None;
        }
        asked.push((address, store));
        Some(asked.len() as u32)
    });
    (result, asked)
}

#[test]
fn one_register_on_the_shortest_way() {
    // LDR r0, [r1, #4]; STR r2, [r1], #4; LDRB r0, [r1].
    let mut load = Program::new([0x6848, 0]);
    assert!(word_quickly(&mut load, 0x6848, 0, |address, store| {
        assert_eq!((address, store), (BASE + 4, None));
        Some(7)
    }));
    assert_eq!((load.registers[0], load.registers[15]), (7, PC + 2));
    let mut store = Program::new([0xF841, 0x2B04]);
    assert!(word_quickly(&mut store, 0xF841, 0x2B04, |address, store| {
        assert_eq!((address, store), (BASE, Some(0x200)));
        Some(0)
    }));
    assert_eq!((store.registers[1], store.registers[15]), (BASE + 4, PC + 4));
    let mut byte = Program::new([0x7808, 0]);
    assert!(!word_quickly(&mut byte, 0x7808, 0, |_, _| panic!(
        "a byte is not for it"
    )));
    let before = load.registers;
    assert!(!word_quickly(&mut load, 0x6848, 0, |_, _| None));
    assert_eq!(load.registers, before, "refused, so nothing has happened");
}

#[test]
fn several_registers_are_loaded_in_order() {
    // LDMIA r1!, {r2, r3, r4}; LDRD r2, r3, [r1, #8].
    let mut multiple = Program::new([0xC91C, 0]);
    let (result, asked) = several(&mut multiple, 16);
    assert_eq!(result, Several::Done);
    assert_eq!(asked, [(BASE, None), (BASE + 4, None), (BASE + 8, None)]);
    assert_eq!(multiple.registers[1..5], [BASE + 12, 1, 2, 3]);
    assert_eq!(multiple.registers[15], PC + 2);
    let mut double = Program::new([0xE9D1, 0x2302]);
    assert_eq!(several(&mut double, 16).0, Several::Done);
    assert_eq!(double.registers[1..5], [BASE, 1, 2, 0x400]);
    assert_eq!(double.registers[15], PC + 4);
}

#[test]
fn the_last_of_several_stores_can_be_left_to_others() {
    // STMIA r1!, {r2, r3}.
    let mut program = Program::new([0xC10C, 0]);
    let (result, asked) = several(&mut program, 1);
    let last = GuestAccess {
        address: BASE + 4,
        size: 4,
        store: Some(0x300),
    };
    assert_eq!((result, asked), (Several::Last(last), vec![(BASE, Some(0x200))]));
    assert_eq!(program.registers[15], PC, "it is not done yet");
    assert!(VirtualCore::new(&MODEL, 0, 0).complete_access(&mut program, 0));
    assert_eq!((program.registers[1], program.registers[15]), (BASE + 8, PC + 2));
}

#[test]
fn a_word_in_the_middle_is_refused() {
    // STMIA r1!, {r2, r3, r4}; LDMIA r1!, {r2, r3}; ADD r0, r1.
    for (code, words) in [(0xC11C, 1), (0xC90C, 1), (0x4408, 0)] {
        let mut program = Program::new([code, 0]);
        let before = program.registers;
        assert_eq!(several(&mut program, words).0, Several::Refused);
        assert_eq!(program.registers, before);
    }
}
