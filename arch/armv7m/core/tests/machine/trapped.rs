// SPDX-License-Identifier: Apache-2.0
//! The same processor made of the virtual one and of hardware that runs its program unprivileged: every
//! trap pushes a frame on the one physical stack, every return pops one.

use bulkhead_arch_armv7m_core::{Guest, Lockup, Model, VirtualCore};

use super::{Memory, Registers, VECTORS, pop, push};

static MODEL: Model = Model {
    cpuid: 0x410F_C241,
    features: [0; 16],
    identification: [4, 0, 0, 0, 0x0C, 0xB0, 0x0B, 0, 0x0D, 0xE0, 0x05, 0xB1],
    lines: 32,
    priority_bits: 0xFF,
    systick_calibration: 0,
    systick_reference: 0,
    mpu_regions: 8,
    floating_point: true,
};

pub struct Trapped {
    pub core: VirtualCore,
    pub memory: Memory,
    pub registers: Registers,
    pub psp: u32,
    pub fpca: bool,
    /// The instruction at the PC.
    pub code: [u16; 2],
    /// The code after it.
    pub rest: Vec<u16>,
}

/// The guest at one trap.
pub struct Lent<'a> {
    memory: &'a mut Memory,
    registers: &'a mut Registers,
    frame: u32,
    extended: bool,
    code: Vec<u16>,
}

impl Lent<'_> {
    fn place(&self, number: u8) -> Option<u32> {
        let word = match number {
            0..=3 => number.into(),
            12 => 4,
            14 => 5,
            15 => 6,
            _ => return None,
        };
        Some(self.frame + word * 4)
    }
}

impl Guest for Lent<'_> {
    fn register(&self, number: u8) -> u32 {
        match (self.place(number), number) {
            (Some(address), _) => self.memory.get(address),
            (None, 4..=11) => self.registers.general[usize::from(number)],
            _ => 0,
        }
    }

    fn set_register(&mut self, number: u8, value: u32) {
        match (self.place(number), number) {
            (Some(address), _) => self.memory.set(address, value),
            (None, 4..=11) => self.registers.general[usize::from(number)] = value,
            _ => {}
        }
    }

    fn xpsr(&self) -> u32 {
        self.memory.get(self.frame + 28)
    }

    fn set_xpsr(&mut self, value: u32) {
        self.memory.set(self.frame + 28, value);
    }

    fn frame(&self) -> u32 {
        self.frame
    }

    fn extended(&self) -> bool {
        self.extended
    }

    fn set_frame(&mut self, address: u32, extended: bool) {
        assert!(self.reaches(address, if extended { 0x68 } else { 0x20 }));
        (self.frame, self.extended) = (address, extended);
    }

    fn reaches(&self, address: u32, bytes: u32) -> bool {
        self.memory.has(address, bytes)
    }

    fn load(&self, address: u32) -> Option<u32> {
        self.memory.has(address, 4).then(|| self.memory.get(address))
    }

    fn store(&mut self, address: u32, value: u32) -> bool {
        let has = self.memory.has(address, 4);
        if has {
            self.memory.set(address, value);
        }
        has
    }

    fn fetch(&self, address: u32) -> Option<u16> {
        let index = address.wrapping_sub(self.register(15)) / 2;
        self.code.get(index as usize).copied()
    }

    fn float(&self, number: u8) -> u32 {
        match usize::from(number) {
            number @ 0..16 if self.extended => self.memory.get(self.frame + 0x20 + 4 * number as u32),
            number @ 0..16 => self.registers.float[number],
            number => self.registers.high[number - 16],
        }
    }

    fn set_float(&mut self, number: u8, value: u32) {
        match usize::from(number) {
            number @ 0..16 if self.extended => {
                self.memory.set(self.frame + 0x20 + 4 * number as u32, value);
            }
            number @ 0..16 => self.registers.float[number] = value,
            number => self.registers.high[number - 16] = value,
        }
    }

    fn settle_floating_point(&mut self) {}

    fn drop_floating_point(&mut self) {}
}

impl Trapped {
    pub fn new(memory: Memory, main: u32) -> Self {
        let core = VirtualCore::new(&MODEL, VECTORS, main);
        Self {
            core,
            memory,
            registers: Registers::new(),
            psp: main,
            fpca: false,
            code: [0; 2],
            rest: Vec::new(),
        }
    }

    /// Traps: hardware enters the hypervisor, `handle` handles the trap, hardware returns.
    pub fn trap<R>(
        &mut self,
        handle: impl FnOnce(&mut VirtualCore, &mut Lent<'_>) -> Result<R, Lockup>,
    ) -> Result<R, Lockup> {
        let frame = push(&mut self.memory, &self.registers, self.psp, 0, self.fpca);
        let mut guest = Lent {
            memory: &mut self.memory,
            registers: &mut self.registers,
            frame,
            extended: self.fpca,
            code: [&self.code[..], &self.rest].concat(),
        };
        let result = handle(&mut self.core, &mut guest)?;
        self.core.deliver(&mut guest)?;
        let (frame, extended) = (guest.frame, guest.extended);
        let (psp, ipsr) = pop(&self.memory, &mut self.registers, frame, extended);
        assert_eq!(ipsr, 0, "hardware would refuse to return to a thread");
        (self.psp, self.fpca) = (psp, extended);
        Ok(result)
    }

    /// Reads without a trace.
    pub fn peek<R>(&self, look: impl FnOnce(&VirtualCore, &Lent<'_>) -> R) -> R {
        let (mut memory, mut registers) = (self.memory.clone(), self.registers.clone());
        let frame = push(&mut memory, &registers, self.psp, 0, self.fpca);
        let guest = Lent {
            memory: &mut memory,
            registers: &mut registers,
            frame,
            extended: self.fpca,
            code: [&self.code[..], &self.rest].concat(),
        };
        look(&self.core, &guest)
    }
}
