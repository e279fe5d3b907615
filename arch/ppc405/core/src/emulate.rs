// SPDX-License-Identifier: Apache-2.0
//! The effect of each privileged instruction on the guest's processor.

use crate::decode::{Fields, Operation};
use crate::registers::{Cpu, DEBUG_STATUS, Frame, PVR, kept, msr};
use crate::uic;

/// The outcome of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is done.
    Done,
    /// It is done, and the processor waits for an interrupt.
    Wait,
    /// It resets the processor.
    Reset,
    /// Nothing is done: there is no such register.
    Illegal,
    /// Nothing is done: it reads a device control register of others into a general register.
    ReadDcr(u8, u16),
    /// Nothing is done: it writes a device control register of others.
    WriteDcr(u16, u32),
}

/// DBCR0: a reset of the core, the chip, or the system (User's Manual, section 8.5.1).
const DBCR0: u16 = 1010;
const DBCR0_RESET: u32 = 0x3000_0000;
/// CR0 of CR, and its bit EQ.
const CR0: u32 = 0xF000_0000;
const CR0_EQUAL: u32 = 0x2000_0000;
/// XER.SO.
const XER_OVERFLOW: u32 = 0x8000_0000;

impl Operation {
    /// Tells whether the effect depends on the time.
    #[inline]
    #[must_use]
    pub const fn needs_time(self) -> bool {
        match self {
            Self::MoveFromSpr(_, spr) | Self::MoveToSpr(_, spr) => matches!(spr, 984 | 986 | 987),
            _ => false,
        }
    }
}

impl Cpu {
    /// Carries out an instruction in supervisor state at a time, and goes to the next one.
    pub fn execute(&mut self, frame: &mut Frame, operation: Operation, now: u64) -> Effect {
        match operation {
            Operation::MoveFromMsr(target) => frame.set_register(target, self.msr),
            Operation::MoveToMsr(source) => {
                self.set_msr(frame.register(source));
                frame.step();
                return self.waits();
            }
            Operation::WriteEnable(source) => {
                self.msr = self.msr & !msr::EE | frame.register(source) & msr::EE;
            }
            Operation::WriteEnableImmediate(true) => self.msr |= msr::EE,
            Operation::WriteEnableImmediate(false) => self.msr &= !msr::EE,
            Operation::ReturnFromInterrupt => {
                let [pc, state, ..] = self.saved;
                return self.go_back(frame, pc, state);
            }
            Operation::ReturnFromCritical => {
                let [.., pc, state] = self.saved;
                return self.go_back(frame, pc, state);
            }
            Operation::MoveFromSpr(target, spr) => match self.read_spr(spr, now) {
                Some(value) => frame.set_register(target, value),
                None => return Effect::Illegal,
            },
            Operation::MoveToSpr(source, spr) => {
                let effect = self.write_spr(spr, frame.register(source), now);
                if effect != Effect::Done {
                    return effect;
                }
            }
            Operation::MoveFromDcr(target, dcr @ uic::FIRST_DCR..=uic::LAST_DCR) => {
                frame.set_register(target, self.uic.read(dcr));
            }
            Operation::MoveFromDcr(target, dcr) => return Effect::ReadDcr(target, dcr),
            Operation::MoveToDcr(source, dcr @ uic::FIRST_DCR..=uic::LAST_DCR) => {
                self.uic.write(dcr, frame.register(source));
                self.changes.events = true;
            }
            Operation::MoveToDcr(source, dcr) => return Effect::WriteDcr(dcr, frame.register(source)),
            Operation::ReadEntry(fields, low) => self.read_entry(frame, fields, low),
            Operation::WriteEntry(fields, low) => self.write_entry(frame, fields, low),
            Operation::SearchEntry(fields, sets_condition) => {
                self.search_entry(frame, fields, sets_condition);
            }
            Operation::InvalidateEntries => {
                self.tlb.invalidate();
                self.changes.all = true;
            }
            Operation::ReadDataCache(target) => frame.set_register(target, 0),
            Operation::Synchronize
            | Operation::InvalidateCache
            | Operation::InvalidateLine
            | Operation::ReadInstructionCache => {}
        }
        frame.step();
        Effect::Done
    }

    /// Returns from an interrupt.
    const fn go_back(&mut self, frame: &mut Frame, pc: u32, state: u32) -> Effect {
        self.set_msr(state);
        frame.pc = pc & !3;
        self.waits()
    }

    const fn waits(&self) -> Effect {
        if self.msr & msr::WE != 0 {
            Effect::Wait
        } else {
            Effect::Done
        }
    }

    /// Reads a special purpose register, `None` if there is none with this number.
    fn read_spr(&mut self, spr: u16, now: u64) -> Option<u32> {
        let [srr0, srr1, srr2, srr3] = self.saved;
        Some(match spr {
            26 => srr0,
            27 => srr1,
            990 => srr2,
            991 => srr3,
            272..=279 => self.scratch.get(usize::from(spr & 7)).copied()?,
            287 => PVR,
            945 => self.process.into(),
            944 => self.zones,
            980 => self.syndrome,
            981 => self.data_address,
            982 => self.vectors,
            984 => {
                self.timers.advance(now);
                self.timers.status()
            }
            986 => self.timers.control(),
            987 => self.timers.count(now),
            // ICDBDR: no cache is read.
            979 => 0,
            _ => self.kept.get(kept(spr)?).copied()?,
        })
    }

    fn write_spr(&mut self, spr: u16, value: u32, now: u64) -> Effect {
        let [srr0, srr1, srr2, srr3] = &mut self.saved;
        match spr {
            // The low bits are not there, which a read sees to.
            26 => *srr0 = value,
            27 => *srr1 = value,
            990 => {
                *srr2 = value & !3;
                self.changes.visible = true;
            }
            991 => {
                *srr3 = value;
                self.changes.visible = true;
            }
            272..=279 => {
                if let Some(register) = self.scratch.get_mut(usize::from(spr & 7)) {
                    *register = value;
                }
                self.changes.visible |= !matches!(spr, 273..=275);
            }
            945 => {
                let process = value as u8;
                self.changes.mode |= self.process != process;
                self.process = process;
            }
            944 => {
                self.changes.mode |= self.zones != value;
                self.zones = value;
            }
            980 => self.syndrome = value,
            981 => self.data_address = value,
            982 => self.vectors = value & 0xFFFF_0000,
            984 | 986 | 987 => {
                self.timers.advance(now);
                match spr {
                    984 => self.timers.clear_status(value),
                    986 => self.timers.set_control(value),
                    _ => self.timers.load(value, now),
                }
                self.changes.events = true;
            }
            DBCR0 if value & DBCR0_RESET != 0 => return Effect::Reset,
            // The time base is the CPU's own: it cannot be set. PVR and the others are read only.
            284 | 285 | 287 | 979 => {}
            _ => match kept(spr).and_then(|place| self.kept.get_mut(place)) {
                Some(register) if spr == DEBUG_STATUS => *register &= !value,
                Some(register) => *register = value,
                None => return Effect::Illegal,
            },
        }
        Effect::Done
    }

    /// Does `tlbre`. The high word brings the process of the entry into PID.
    fn read_entry(&mut self, frame: &mut Frame, fields: Fields, low: bool) {
        let entry = self.tlb.entry(frame.register(fields.first));
        if low {
            frame.set_register(fields.target, entry.low);
        } else {
            frame.set_register(fields.target, entry.high);
            self.changes.mode |= self.process != entry.process;
            self.process = entry.process;
        }
    }

    /// Does `tlbwe`. The high word takes the process from PID.
    fn write_entry(&mut self, frame: &Frame, fields: Fields, low: bool) {
        let number = frame.register(fields.first);
        let value = frame.register(fields.target);
        if low {
            self.tlb.set_low(number, value);
        } else {
            self.tlb.set_high(number, value, self.process);
        }
        self.changes.entries |= 1_u64.wrapping_shl(number & 63);
    }

    /// Does `tlbsx` or `tlbsx.`. Without an entry the target keeps its value.
    fn search_entry(&self, frame: &mut Frame, fields: Fields, sets_condition: bool) {
        let address = frame
            .base(fields.first)
            .wrapping_add(frame.register(fields.second));
        let found = self.tlb.find(address, self.process);
        if let Some((number, _)) = found {
            frame.set_register(fields.target, number as u32);
        }
        if sets_condition {
            let equal = if found.is_some() { CR0_EQUAL } else { 0 };
            let overflow = (frame.xer & XER_OVERFLOW) >> 3;
            frame.condition = frame.condition & !CR0 | equal | overflow;
        }
    }
}
