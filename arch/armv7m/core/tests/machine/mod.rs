// SPDX-License-Identifier: Apache-2.0
//! The parts that both sides of the comparison share: memory, registers, and the frames of hardware.

pub mod native;
pub mod trapped;

pub const RAM: u32 = 0x2000_0000;
pub const RAM_SIZE: u32 = 0x1_8000;
pub const VECTORS: u32 = 0x2000_0000;
pub const MAIN_TOP: u32 = 0x2000_8000;
pub const PROCESS_TOP: u32 = 0x2001_0000;
/// Bits of xPSR that a pop brings back, IPSR aside.
pub const STATE: u32 = 0xFF0F_FC00;

/// RAM, the vectors included.
#[derive(Clone)]
pub struct Memory(Vec<u32>);

impl Memory {
    pub fn new() -> Self {
        // Something that is not the same everywhere, so that a frame read from a wrong place shows.
        let words = (0..RAM_SIZE / 4).map(|index| index.wrapping_mul(0x9E37_79B9) ^ 0x5A5A_0F0F);
        let mut memory = Self(words.collect());
        for number in 0..80 {
            memory.set(VECTORS + number * 4, vector(number));
        }
        memory
    }

    pub fn has(&self, address: u32, bytes: u32) -> bool {
        address >= RAM && u64::from(address) + u64::from(bytes) <= u64::from(RAM + RAM_SIZE)
    }

    pub fn get(&self, address: u32) -> u32 {
        self.0[(address - RAM) as usize / 4]
    }

    pub fn set(&mut self, address: u32, value: u32) {
        self.0[(address - RAM) as usize / 4] = value;
    }

    /// Makes the bytes between two stack pointers the same in every machine.
    pub fn fill(&mut self, from: u32, to: u32) {
        for address in (from & !3..to & !3).step_by(4) {
            self.set(address, address.rotate_left(7));
        }
    }

    pub fn words(&self, from: u32, to: u32) -> &[u32] {
        &self.0[(from - RAM) as usize / 4..(to - RAM) as usize / 4]
    }
}

/// Returns where the handler of an exception is.
pub fn vector(number: u32) -> u32 {
    0x0010_0001 + number * 0x1000
}

/// The state that is the same for both machines: the registers of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    pub general: [u32; 13],
    pub lr: u32,
    pub pc: u32,
    pub flags: u32,
    /// S0 to S15 and FPSCR.
    pub float: [u32; 17],
    /// S16 to S31, which no frame has.
    pub high: [u32; 16],
}

impl Registers {
    pub fn new() -> Self {
        Self {
            general: [0; 13],
            lr: u32::MAX,
            pc: 0x0010_0000,
            flags: 1 << 24,
            float: [0; 17],
            high: [0; 16],
        }
    }
}

/// Pushes a frame as hardware does (Arm DDI 0403E.e, PushStack); returns where it is.
pub fn push(memory: &mut Memory, registers: &Registers, sp: u32, ipsr: u32, extended: bool) -> u32 {
    let size = if extended { 0x68 } else { 0x20 };
    let frame = (sp - size) & !4;
    let padded = sp & 4;
    let state = registers.flags & STATE | padded << 7 | ipsr;
    let g = &registers.general;
    let words = [g[0], g[1], g[2], g[3], g[12], registers.lr, registers.pc, state];
    for (address, word) in (frame..).step_by(4).zip(words) {
        memory.set(address, word);
    }
    if extended {
        for (address, word) in (frame + 0x20..).step_by(4).zip(registers.float) {
            memory.set(address, word);
        }
        // Hardware leaves this open, as it does the four bytes by which a frame is moved down to be aligned.
        memory.set(frame + 0x64, 0);
    }
    if padded != 0 {
        memory.set(frame + size, 0);
    }
    frame
}

/// Pops a frame; returns the stack pointer and IPSR.
pub fn pop(memory: &Memory, registers: &mut Registers, frame: u32, extended: bool) -> (u32, u32) {
    let word = |index: u32| memory.get(frame + index * 4);
    for (index, register) in [0, 1, 2, 3, 12].into_iter().enumerate() {
        registers.general[register] = word(index as u32);
    }
    registers.lr = word(5);
    registers.pc = word(6) & !1;
    let state = word(7);
    registers.flags = state & STATE;
    if extended {
        for (index, register) in registers.float.iter_mut().enumerate() {
            *register = word(8 + index as u32);
        }
    }
    let size = if extended { 0x68 } else { 0x20 };
    ((frame + size) | (state >> 7 & 4), state & 0x1FF)
}

/// Returns ITSTATE one instruction further, bit by bit as A7.3.3 writes it.
pub fn next_it(flags: u32) -> u32 {
    let mut it = flags >> 25 & 3 | (flags >> 10 & 0x3F) << 2;
    it = if it & 7 == 0 {
        0
    } else {
        it & 0xE0 | it << 1 & 0x1F
    };
    flags & !0x0600_FC00 | (it & 3) << 25 | (it >> 2) << 10
}
