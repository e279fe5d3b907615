// SPDX-License-Identifier: Apache-2.0
//! An Armv7-M processor written down as the manual's pseudocode does it (Arm DDI 0403E.e, B1.5), with one
//! array entry for each exception and no regard for speed: the reference.

use super::{Memory, Registers, VECTORS, next_it, pop, push};

pub const EXCEPTIONS: usize = 48;

#[derive(Clone, Copy, Default)]
pub struct State {
    pub enabled: bool,
    pub pending: bool,
    pub active: bool,
    pub level: bool,
    pub priority: u32,
}

pub struct Native {
    pub memory: Memory,
    pub registers: Registers,
    pub exceptions: [State; EXCEPTIONS],
    pub sp: [u32; 2],
    pub spsel: bool,
    pub npriv: bool,
    pub fpca: bool,
    pub ipsr: u32,
    pub primask: bool,
    pub faultmask: bool,
    pub basepri: u32,
    pub prigroup: u32,
    pub nonbase: bool,
    pub cfsr: u32,
    pub hfsr: u32,
}

/// The processor has stopped for good.
#[derive(Debug, PartialEq, Eq)]
pub struct Locked;

impl Native {
    pub fn new(memory: Memory, main: u32) -> Self {
        let mut exceptions = [State::default(); EXCEPTIONS];
        for number in [2, 3, 11, 12, 14, 15] {
            exceptions[number].enabled = true;
        }
        Self {
            memory,
            registers: Registers::new(),
            exceptions,
            sp: [main, 0],
            spsel: false,
            npriv: false,
            fpca: false,
            ipsr: 0,
            primask: false,
            faultmask: false,
            basepri: 0,
            prigroup: 0,
            nonbase: false,
            cfsr: 0,
            hfsr: 0,
        }
    }

    pub fn privileged(&self) -> bool {
        self.ipsr != 0 || !self.npriv
    }

    pub fn live(&self) -> usize {
        usize::from(self.ipsr == 0 && self.spsel)
    }

    fn priority(&self, number: usize) -> i32 {
        match number {
            2 => -2,
            3 => -1,
            _ => self.exceptions[number].priority as i32,
        }
    }

    fn group(&self, priority: i32) -> i32 {
        let value = 2 << self.prigroup;
        if (0..256).contains(&priority) {
            priority - priority % value
        } else {
            priority
        }
    }

    pub fn execution_priority(&self) -> i32 {
        let mut highest = 256;
        for number in 2..EXCEPTIONS {
            if self.exceptions[number].active {
                highest = highest.min(self.priority(number));
            }
        }
        highest = self.group(highest);
        let mut boosted = 256;
        if self.basepri != 0 {
            boosted = self.group(self.basepri as i32);
        }
        if self.primask {
            boosted = boosted.min(0);
        }
        if self.faultmask {
            boosted = boosted.min(-1);
        }
        highest.min(boosted)
    }

    /// Returns the exception with the highest priority, and of equals with the lowest number.
    pub fn best(&self) -> Option<usize> {
        (2..EXCEPTIONS)
            .filter(|number| self.exceptions[*number].pending && self.exceptions[*number].enabled)
            .min_by_key(|number| (self.priority(*number), *number))
    }

    fn takeable(&self) -> Option<usize> {
        self.best()
            .filter(|number| self.group(self.priority(*number)) < self.execution_priority())
    }

    /// Takes what must be taken before the next instruction.
    pub fn settle(&mut self) {
        if let Some(number) = self.takeable() {
            let live = self.live();
            let (ipsr, extended) = (self.ipsr, self.fpca);
            self.sp[live] = push(&mut self.memory, &self.registers, self.sp[live], ipsr, extended);
            let mut link = if ipsr != 0 {
                0xFFFF_FFF1
            } else if live == 0 {
                0xFFFF_FFF9
            } else {
                0xFFFF_FFFD
            };
            if extended {
                link &= !0x10;
            }
            self.taken(number, link);
        }
    }

    fn taken(&mut self, number: usize, link: u32) {
        let entry = self.memory.get(VECTORS + number as u32 * 4);
        self.registers.lr = link;
        self.registers.pc = entry & !1;
        self.registers.flags = self.registers.flags & 0xF80F_0000 | (entry & 1) << 24;
        self.ipsr = number as u32;
        self.spsel = false;
        self.fpca = false;
        let state = &mut self.exceptions[number];
        state.pending = false;
        state.active = true;
    }

    /// Raises a synchronous exception: the same, or HardFault.
    pub fn raise(&mut self, number: usize) -> Result<(), Locked> {
        let number = self.escalated(number)?;
        self.exceptions[number].pending = true;
        self.settle();
        Ok(())
    }

    fn escalated(&mut self, number: usize) -> Result<usize, Locked> {
        let now = self.execution_priority();
        if self.exceptions[number].enabled && self.group(self.priority(number)) < now {
            return Ok(number);
        }
        self.hfsr |= 1 << 30;
        if now > -1 { Ok(3) } else { Err(Locked) }
    }

    pub fn branch_to_return(&mut self, value: u32) -> Result<(), Locked> {
        if self.ipsr == 0 {
            // A thread just goes there.
            self.registers.pc = value & !1;
            self.cfsr |= 1;
            return self.raise(4);
        }
        let returning = self.ipsr as usize;
        let nested = self.exceptions.iter().filter(|state| state.active).count();
        let known = returning < EXCEPTIONS && self.exceptions[returning].active;
        let valid = known
            && match value & 0xF {
                1 => nested != 1,
                9 | 13 => nested == 1 || self.nonbase,
                _ => false,
            };
        if known {
            let state = &mut self.exceptions[returning];
            state.active = false;
            state.pending |= state.level;
            if returning != 2 {
                self.faultmask = false;
            }
        }
        if !valid {
            return self.invalid(value);
        }
        if let Some(next) = self.takeable() {
            self.taken(next, value);
            return Ok(());
        }
        let stack = usize::from(value & 0xF == 13);
        let extended = value & 0x10 == 0;
        let frame = self.sp[stack];
        let handler = value & 0xF == 1;
        let number = self.memory.get(frame + 28) & 0x1FF;
        if handler != (number != 0) {
            return self.invalid(value);
        }
        (self.sp[stack], self.ipsr) = pop(&self.memory, &mut self.registers, frame, extended);
        self.fpca = extended;
        self.spsel = stack == 1;
        Ok(())
    }

    fn invalid(&mut self, value: u32) -> Result<(), Locked> {
        self.cfsr |= 1 << 18;
        let number = self.escalated(6)?;
        self.exceptions[number].pending = true;
        let number = self.takeable().unwrap();
        self.taken(number, 0xF000_0000 | value);
        Ok(())
    }

    pub fn step(&mut self, length: u32) {
        self.registers.pc = self.registers.pc.wrapping_add(length);
        self.registers.flags = next_it(self.registers.flags);
    }

    pub fn read_special(&self, number: u32) -> u32 {
        let control = u32::from(self.npriv) | u32::from(self.spsel) << 1 | u32::from(self.fpca) << 2;
        let privileged = self.privileged();
        match number {
            0 => self.registers.flags & 0xF80F_0000,
            5 => self.ipsr,
            3 => self.registers.flags & 0xF80F_0000 | self.ipsr,
            8 if privileged => self.sp[0],
            9 if privileged => self.sp[1],
            16 if privileged => self.primask.into(),
            17 | 18 if privileged => self.basepri,
            19 if privileged => self.faultmask.into(),
            20 => control,
            _ => 0,
        }
    }

    pub fn write_special(&mut self, number: u32, value: u32) {
        match number {
            0..=3 => self.registers.flags = self.registers.flags & 0x07FF_FFFF | value & 0xF800_0000,
            _ if !self.privileged() => {}
            8 => self.sp[0] = value & !3,
            9 => self.sp[1] = value & !3,
            16 => self.primask = value & 1 == 1,
            17 => self.basepri = value & 0xFF,
            18 => {
                let value = value & 0xFF;
                if value != 0 && (self.basepri == 0 || value < self.basepri) {
                    self.basepri = value;
                }
            }
            19 => self.mask_faults(value & 1 == 1),
            20 => {
                self.npriv = value & 1 == 1;
                if self.ipsr == 0 {
                    self.spsel = value & 2 == 2;
                }
                self.fpca &= value & 4 == 4;
            }
            _ => {}
        }
    }

    pub fn mask_faults(&mut self, on: bool) {
        if !on || self.execution_priority() > -1 {
            self.faultmask = on;
        }
    }

    /// Stores a word or a byte to a register of the system control space; false: the store is refused.
    pub fn store(&mut self, address: u32, size: u32, value: u32) -> bool {
        if !self.privileged() {
            return false;
        }
        let line = |address: u32, base: u32| 16 + ((address - base) * 8) as usize;
        let bits = |this: &mut Self, base: u32, change: &dyn Fn(&mut State)| {
            for bit in 0..size * 8 {
                let number = line(address, base) + bit as usize;
                if value >> bit & 1 == 1 && number < EXCEPTIONS {
                    change(&mut this.exceptions[number]);
                }
            }
        };
        match address {
            0xE000_E100..=0xE000_E17F => bits(self, 0xE000_E100, &|state| state.enabled = true),
            0xE000_E180..=0xE000_E1FF => bits(self, 0xE000_E180, &|state| state.enabled = false),
            0xE000_E200..=0xE000_E27F => bits(self, 0xE000_E200, &|state| state.pending = true),
            0xE000_E280..=0xE000_E2FF => {
                bits(self, 0xE000_E280, &|state| {
                    state.pending = state.level && !state.active
                });
            }
            0xE000_E400..=0xE000_E41F | 0xE000_ED18..=0xE000_ED23 => {
                for byte in 0..size {
                    let number = if address < 0xE000_ED00 {
                        16 + (address + byte - 0xE000_E400)
                    } else {
                        4 + (address + byte - 0xE000_ED18)
                    };
                    if !matches!(number, 7..=10 | 13) {
                        self.exceptions[number as usize].priority = value >> (8 * byte) & 0xFF;
                    }
                }
            }
            0xE000_ED04 if size == 4 => {
                for (set, clear, number) in [(31, 32, 2), (28, 27, 14), (26, 25, 15)] {
                    if value >> set & 1 == 1 {
                        self.exceptions[number].pending = true;
                    } else if clear < 32 && value >> clear & 1 == 1 {
                        self.exceptions[number].pending = false;
                    }
                }
            }
            0xE000_ED0C if size == 4 && value >> 16 == 0x05FA => self.prigroup = value >> 8 & 7,
            0xE000_ED14 if size == 4 => self.nonbase = value & 1 == 1,
            0xE000_ED24 if size == 4 => self.store_handler_control(value),
            0xE000_ED28 if size == 4 => self.cfsr &= !value,
            _ => {}
        }
        true
    }

    fn store_handler_control(&mut self, value: u32) {
        for (bit, number) in [(0, 4), (1, 5), (3, 6), (7, 11), (8, 12), (10, 14), (11, 15)] {
            self.exceptions[number].active = value >> bit & 1 == 1;
        }
        for (bit, number) in [(12, 6), (13, 4), (14, 5), (15, 11)] {
            self.exceptions[number].pending = value >> bit & 1 == 1;
        }
        for (bit, number) in [(16, 4), (17, 5), (18, 6)] {
            self.exceptions[number].enabled = value >> bit & 1 == 1;
        }
    }

    /// Returns what the status registers show: ICSR, SHCSR and the words of the first 32 lines.
    pub fn status(&self) -> [u32; 5] {
        let state = |number: usize| self.exceptions[number];
        let flag = |set: bool, bit: u32| u32::from(set) << bit;
        let active = self.exceptions.iter().filter(|state| state.active).count();
        let lines = |of: &dyn Fn(State) -> bool| {
            (0..32).fold(0, |word, line| word | flag(of(state(16 + line)), line as u32))
        };
        let icsr = self.ipsr
            | flag(active <= 1, 11)
            | (self.best().unwrap_or(0) as u32) << 12
            | flag(lines(&|state| state.pending) != 0, 22)
            | flag(state(15).pending, 26)
            | flag(state(14).pending, 28)
            | flag(state(2).pending, 31);
        let mut shcsr = 0;
        for (bit, number) in [(0, 4), (1, 5), (3, 6), (7, 11), (8, 12), (10, 14), (11, 15)] {
            shcsr |= flag(state(number).active, bit);
        }
        for (bit, number) in [(12, 6), (13, 4), (14, 5), (15, 11)] {
            shcsr |= flag(state(number).pending, bit);
        }
        for (bit, number) in [(16, 4), (17, 5), (18, 6)] {
            shcsr |= flag(state(number).enabled, bit);
        }
        [
            icsr,
            shcsr,
            lines(&|state| state.enabled),
            lines(&|state| state.pending),
            lines(&|state| state.active),
        ]
    }
}
