// SPDX-License-Identifier: Apache-2.0
//! Calls of a debugger: what programs make, and what no program should.

mod bare_model;

use bare_model::MODEL;
use bulkhead_arch_api::{GuestPhys, HOST_BYTES, HostCall};
use bulkhead_arch_armv7m_core::{Guest, VirtualCore};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

const CODE: u32 = 0x1000;
const RAM: u32 = 0x2000_0000;
const SIZE: u32 = 0x400;
const FAILED: u32 = u32::MAX;

/// Registers, code that can be read, and RAM.
#[derive(Clone)]
struct Program {
    registers: [u32; 16],
    code: [u32; SIZE as usize / 4],
    ram: [u32; SIZE as usize / 4],
}

impl Program {
    fn new() -> Self {
        let mut registers = [0; 16];
        registers[15] = CODE;
        Self {
            registers,
            code: [0x4443_4241; SIZE as usize / 4],
            ram: [0; SIZE as usize / 4],
        }
    }

    fn byte(&self, address: u32) -> Option<u8> {
        let word = self.load(address & !3)?;
        Some(word.to_le_bytes()[(address & 3) as usize])
    }

    /// Does what the kernel does with bytes for a program.
    fn put(&mut self, to: GuestPhys, bytes: &[u8]) {
        for (address, byte) in (to.0 as u32..).zip(bytes) {
            let mut word = self.load(address & !3).unwrap().to_le_bytes();
            word[(address & 3) as usize] = *byte;
            assert!(self.store(address & !3, u32::from_le_bytes(word)));
        }
    }

    fn block(&mut self, words: &[u32]) {
        self.ram[..words.len()].copy_from_slice(words);
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
    fn frame(&self) -> u32 {
        0
    }
    fn extended(&self) -> bool {
        false
    }
    fn set_frame(&mut self, _address: u32, _extended: bool) {}
    fn reaches(&self, address: u32, bytes: u32) -> bool {
        address >= RAM && u64::from(address) + u64::from(bytes) <= u64::from(RAM + SIZE)
    }
    fn load(&self, address: u32) -> Option<u32> {
        let word = |memory: &[u32], base| {
            let offset = address.checked_sub(base).filter(|offset| offset & 3 == 0)?;
            memory.get(offset as usize / 4).copied()
        };
        word(&self.ram, RAM).or_else(|| word(&self.code, CODE))
    }
    fn store(&mut self, address: u32, value: u32) -> bool {
        let fits = self.reaches(address, 4) && address & 3 == 0;
        if fits {
            self.ram[(address - RAM) as usize / 4] = value;
        }
        fits
    }
    fn fetch(&self, _address: u32) -> Option<u16> {
        None
    }
    fn float(&self, _number: u8) -> u32 {
        0
    }
    fn set_float(&mut self, _number: u8, _value: u32) {}
    fn settle_floating_point(&mut self) {}
    fn drop_floating_point(&mut self) {}
}

/// A console that takes so many bytes at a time, and how a call went.
struct Host<'a> {
    core: VirtualCore,
    takes: u8,
    input: &'a [u8],
    printed: Vec<u8>,
    failed: Option<u32>,
}

impl<'a> Host<'a> {
    fn new(takes: u8, input: &'a [u8]) -> Self {
        Self {
            core: VirtualCore::new(&MODEL, 0, 0),
            takes,
            input,
            printed: Vec::new(),
            failed: None,
        }
    }

    /// Runs a call to its end, if it has one within so many traps.
    fn call(&mut self, program: &mut Program, operation: u32, parameter: u32) -> Option<u32> {
        (program.registers[0], program.registers[1]) = (operation, parameter);
        let pc = program.registers[15];
        for _ in 0..100 {
            let Some(call) = self.core.host_called(program, (5_000_000_000, 1_000_000)) else {
                assert_eq!(program.registers[15], pc + 2);
                return Some(program.registers[0]);
            };
            assert_eq!(program.registers[15], pc, "its program waits");
            let answer = match call {
                HostCall::Write(from, length) => {
                    assert!((1..=HOST_BYTES).contains(&usize::from(length)));
                    let taken = length.min(self.takes);
                    let from = from.0 as u32;
                    for address in from..from + u32::from(length) {
                        let byte = program.byte(address).expect("what is printed can be read");
                        if address - from < u32::from(taken) {
                            self.printed.push(byte);
                        }
                    }
                    taken
                }
                HostCall::Read(to, most) => {
                    assert!(program.reaches(to.0 as u32, most.into()) && most != 0);
                    let (now, later) = self.input.split_at(self.input.len().min(most.into()));
                    self.input = later;
                    program.put(to, now);
                    now.len() as u8
                }
                HostCall::ReadByte => {
                    let (first, rest) = self.input.split_first()?;
                    self.input = rest;
                    *first
                }
                HostCall::Name(to, most) => {
                    assert!(program.reaches(to.0 as u32, most.into()) && most != 0);
                    let name = &b"name\0"[..usize::from(most).min(5)];
                    program.put(to, name);
                    name.len() as u8
                }
                HostCall::Failed(code) => {
                    self.failed = Some(code);
                    return None;
                }
            };
            if answer == 0 && !matches!(call, HostCall::ReadByte) {
                return None;
            }
            self.core.host_answers(program, answer.into());
            if program.registers[15] != pc {
                return Some(program.registers[0]);
            }
        }
        None
    }
}

#[test]
fn a_text_leaves_whole_however_little_the_console_takes() {
    for takes in [1, 3, 31, 32, 40] {
        let mut program = Program::new();
        let text: Vec<u8> = (1..=200).collect();
        program.put(GuestPhys(u64::from(RAM) + 0x101), &text);
        program.block(&[2, RAM + 0x101, 200]);
        let mut host = Host::new(takes, b"");
        let answer = host.call(&mut program, 5, RAM);
        assert!(answer == Some(0) || takes < 2 && answer.is_none());
        if takes > 1 {
            assert_eq!(host.printed, text);
            host.printed.clear();
            host.call(&mut program, 4, RAM + 0x101);
            assert_eq!(host.printed, text);
        }
    }
}

#[test]
fn what_cannot_be_read_is_counted() {
    let mut program = Program::new();
    let mut host = Host::new(32, b"");
    program.block(&[2, RAM + SIZE - 5, FAILED]);
    assert_eq!(host.call(&mut program, 5, RAM), Some(FAILED - 5));
    assert_eq!(host.printed.len(), 5);
    program.block(&[2, CODE - 1, 7]);
    assert_eq!(host.call(&mut program, 5, RAM), Some(7));
    program.block(&[7, RAM, 7]);
    assert_eq!(host.call(&mut program, 5, RAM), Some(7), "no such file");
    assert_eq!(host.call(&mut program, 5, RAM + SIZE), Some(FAILED));
    assert_eq!(host.call(&mut program, 5, RAM + 2), Some(FAILED), "not aligned");
    // Code can be printed, and has no end.
    host.printed.clear();
    host.call(&mut program, 4, CODE + SIZE - 4);
    assert_eq!(host.printed, b"ABCD");
    host.call(&mut program, 3, CODE + 1);
    assert_eq!(host.printed, b"ABCDB");
}

#[test]
fn input_goes_where_the_program_may_write() {
    let mut program = Program::new();
    let mut host = Host::new(32, b"typed text");
    program.block(&[1, RAM + 0x40, 5]);
    assert_eq!(host.call(&mut program, 6, RAM), Some(0));
    assert_eq!(program.ram[0x10], u32::from_le_bytes(*b"type"));
    assert_eq!(host.call(&mut program, 7, 0), Some(u32::from(b' ')));
    program.block(&[1, CODE, 5]);
    assert_eq!(host.call(&mut program, 6, RAM), Some(5));
    program.block(&[1, RAM + 0x40, 0]);
    assert_eq!(host.call(&mut program, 6, RAM), Some(0));
    program.block(&[1, RAM + 0x40, 100]);
    assert_eq!(host.call(&mut program, 6, RAM), Some(96));
    assert_eq!(host.call(&mut program, 6, RAM), None, "it waits");
    assert_eq!(host.call(&mut program, 7, 0), None, "it waits");
}

#[test]
fn the_features_are_a_file() {
    let mut program = Program::new();
    let mut host = Host::new(32, b"");
    program.put(GuestPhys(u64::from(RAM) + 0x42), b":semihosting-features");
    let open = |host: &mut Host<'_>, program: &mut Program, mode| {
        program.block(&[RAM + 0x42, mode, 21]);
        host.call(program, 1, RAM)
    };
    assert_eq!(open(&mut host, &mut program, 4), Some(FAILED));
    assert_eq!(open(&mut host, &mut program, 1), Some(4));
    program.block(&[4, RAM + 0x81, 5]);
    assert_eq!(host.call(&mut program, 0xC, RAM), Some(5));
    assert_eq!(host.call(&mut program, 6, RAM), Some(0));
    assert_eq!(program.ram[0x20], u32::from_le_bytes([0, b'S', b'H', b'F']));
    assert_eq!(host.call(&mut program, 6, RAM), Some(5), "its end");
    program.block(&[4, 6]);
    assert_eq!(host.call(&mut program, 0xA, RAM), Some(FAILED));
    program.block(&[4, 4, 3]);
    assert_eq!(host.call(&mut program, 0xA, RAM), Some(0));
    assert_eq!(host.call(&mut program, 9, RAM), Some(0));
    assert_eq!(host.call(&mut program, 2, RAM), Some(0));
    assert_eq!(host.call(&mut program, 5, RAM), Some(3));
}

#[test]
fn the_end_of_a_program_is_an_error_unless_it_says_otherwise() {
    let end = |operation, parameter, block: [u32; 2]| {
        let mut program = Program::new();
        let mut host = Host::new(32, b"");
        program.block(&block);
        host.call(&mut program, operation, parameter);
        host.failed
    };
    assert_eq!(end(0x18, 0x2_0026, [0; 2]), Some(0));
    assert_eq!(end(0x18, 0x2_0023, [0; 2]), Some(0x2_0023));
    assert_eq!(end(0x18, 0, [0; 2]), Some(1));
    assert_eq!(end(0x20, RAM, [0x2_0026, 0]), Some(0));
    assert_eq!(end(0x20, RAM, [0x2_0026, 3]), Some(3));
    assert_eq!(end(0x20, RAM, [0x2_0024, 0]), Some(0x2_0024));
    assert_eq!(end(0x20, 0, [0; 2]), Some(FAILED));
}

#[test]
fn everything_else() {
    let mut program = Program::new();
    let mut host = Host::new(32, b"");
    let ask = |host: &mut Host<'_>, program: &mut Program, operation, block: &[u32]| {
        program.block(block);
        host.call(program, operation, RAM)
    };
    for (handle, answer) in [(0, FAILED), (1, 1), (3, 1), (5, FAILED)] {
        assert_eq!(ask(&mut host, &mut program, 9, &[handle]), Some(answer));
    }
    assert_eq!(ask(&mut host, &mut program, 8, &[0x8000_0000]), Some(1));
    assert_eq!(ask(&mut host, &mut program, 8, &[1]), Some(0));
    assert_eq!(ask(&mut host, &mut program, 0x10, &[]), Some(500_000));
    assert_eq!(ask(&mut host, &mut program, 0x11, &[]), Some(5_000));
    assert_eq!(ask(&mut host, &mut program, 0x31, &[]), Some(1_000_000));
    assert_eq!(ask(&mut host, &mut program, 0x30, &[]), Some(0));
    assert_eq!(program.ram[..2], [705_032_704, 1]);
    assert_eq!(host.call(&mut program, 0x30, CODE), Some(FAILED));
    assert_eq!(program.registers[1], FAILED);
    assert_eq!(ask(&mut host, &mut program, 0x15, &[RAM + 0x41, 80]), Some(0));
    assert_eq!(
        (program.ram[1], program.ram[0x10]),
        (4, u32::from_le_bytes(*b"\0nam"))
    );
    assert_eq!(ask(&mut host, &mut program, 0x16, &[RAM + 0x40]), Some(0));
    assert_eq!(program.ram[0x10..0x14], [0; 4]);
    assert_eq!(ask(&mut host, &mut program, 0x16, &[CODE]), Some(FAILED));
    for operation in [
        0,
        0xD,
        0xE,
        0xF,
        0x12,
        0x17,
        0x32,
        0x103,
        0x104,
        0x105,
        0x8000_0006,
        FAILED,
    ] {
        assert_eq!(
            ask(&mut host, &mut program, operation, &[RAM, 1, 1]),
            Some(FAILED),
            "{operation:#x}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

    /// Makes any call: code stays, and a program goes on after its call or waits at it.
    #[test]
    fn any_call_is_answered(
        operation in prop_oneof![0_u32..0x40, any::<u32>(), 0x8000_0003_u32..0x8000_1006],
        parameter in prop_oneof![any::<u32>(), RAM - 8..RAM + SIZE + 8, CODE - 8..CODE + SIZE + 8],
        block in proptest::collection::vec(prop_oneof![any::<u32>(), 0_u32..8, RAM - 4..RAM + SIZE], 64),
        takes in 0_u8..40,
    ) {
        let mut program = Program::new();
        for (place, word) in program.ram.iter_mut().zip(block.iter().cycle()) {
            *place = *word;
        }
        let before = program.clone();
        let mut host = Host::new(takes, b"some input");
        let answer = host.call(&mut program, operation, parameter);
        prop_assert_eq!(program.code, before.code);
        prop_assert!(program.registers[2..15] == before.registers[2..15]);
        if host.failed.is_some() {
            prop_assert!(matches!(operation, 0x18 | 0x20) && answer.is_none());
        }
    }
}
