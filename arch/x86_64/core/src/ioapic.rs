// SPDX-License-Identifier: Apache-2.0
//! An I/O APIC (Intel 82093AA datasheet) with 32 pins instead of 24, version 0x20 with an EOI
//! register.

use crate::lapic::{Delivery, Target};

/// Pins.
pub const PINS: u32 = 32;
/// Where the registers are.
pub const ADDRESS: u64 = 0xFEC0_0000;

const SELECT: u64 = 0x00;
const DATA: u64 = 0x10;
const END: u64 = 0x40;

const VERSION_VALUE: u32 = 0x20 | (PINS - 1) << 16;
const REMOTE: u64 = 1 << 14;
const LEVEL: u64 = 1 << 15;
const MASKED: u64 = 1 << 16;
/// Delivery status and remote IRR cannot be written.
const READ_ONLY: u64 = 1 << 12 | REMOTE;

/// A message to local APICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its vector.
    pub vector: u8,
    /// Its kind.
    pub delivery: Delivery,
    /// Its receivers.
    pub target: Target,
    /// It is a level, whose end must be told.
    pub is_level: bool,
}

/// The I/O APIC of a VM.
#[derive(Clone, Debug)]
pub struct IoApic {
    select: u32,
    id: u32,
    entries: [u64; PINS as usize],
    /// Levels of the pins.
    high: u32,
    /// Edges that were not sent yet.
    edges: u32,
}

impl Default for IoApic {
    fn default() -> Self {
        Self::new()
    }
}

impl IoApic {
    /// Returns the state after a reset.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            select: 0,
            id: 0,
            entries: [MASKED; PINS as usize],
            high: 0,
            edges: 0,
        }
    }

    /// Answers a load at `offset` of its registers.
    #[must_use]
    pub fn read(&self, offset: u64) -> u32 {
        match (offset, self.select) {
            (SELECT, _) => self.select,
            (DATA, 0) => self.id,
            (DATA, 1) => VERSION_VALUE,
            (DATA, 2) => self.id,
            (DATA, 0x10..0x50) => {
                let entry = self.entry(self.select.wrapping_sub(0x10) >> 1);
                if self.select & 1 == 0 {
                    entry as u32
                } else {
                    (entry >> 32) as u32
                }
            }
            _ => 0,
        }
    }

    fn entry(&self, pin: u32) -> u64 {
        self.entries.get(pin as usize).copied().unwrap_or(MASKED)
    }

    /// Takes a store at `offset` of its registers. [`IoApic::next`] may have messages afterwards.
    pub fn write(&mut self, offset: u64, value: u32) {
        match (offset, self.select) {
            (SELECT, _) => self.select = value & 0xFF,
            (DATA, 0) => self.id = value & 0x0F00_0000,
            (DATA, 0x10..0x50) => {
                let pin = self.select.wrapping_sub(0x10) >> 1;
                let is_high = self.select & 1 != 0;
                if let Some(entry) = self.entries.get_mut(pin as usize) {
                    let (half, shift) = if is_high {
                        (u64::from(u32::MAX) << 32, 32)
                    } else {
                        (u64::from(u32::MAX), 0)
                    };
                    let half = half & !READ_ONLY;
                    *entry = *entry & !half | u64::from(value) << shift & half;
                    if *entry & LEVEL == 0 {
                        *entry &= !REMOTE;
                    }
                }
            }
            (END, _) => self.end(value as u8),
            _ => {}
        }
    }

    /// Changes the level of a pin. [`IoApic::next`] may have a message afterwards.
    pub fn set(&mut self, pin: u32, is_high: bool) {
        if pin >= PINS {
            return;
        }
        let bit = 1_u32.wrapping_shl(pin);
        if is_high && self.high & bit == 0 {
            self.edges |= bit;
        }
        self.high = if is_high {
            self.high | bit
        } else {
            self.high & !bit
        };
    }

    /// Notes that this vector has ended. [`IoApic::next`] may have messages afterwards.
    pub fn end(&mut self, vector: u8) {
        for entry in &mut self.entries {
            if *entry & LEVEL != 0 && *entry as u8 == vector {
                *entry &= !REMOTE;
            }
        }
    }

    /// Returns the next message that has to be sent now. There are at most as many as pins.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is no iterator: pins change in between"
    )]
    pub fn next(&mut self) -> Option<Message> {
        for (pin, entry) in self.entries.iter_mut().enumerate() {
            let bit = 1_u32.wrapping_shl(pin as u32);
            if *entry & MASKED != 0 {
                continue;
            }
            let is_level = *entry & LEVEL != 0;
            let is_due = if is_level {
                self.high & bit != 0 && *entry & REMOTE == 0
            } else {
                self.edges & bit != 0
            };
            if !is_due {
                continue;
            }
            self.edges &= !bit;
            if is_level {
                *entry |= REMOTE;
            }
            let destination = (*entry >> 56) as u32;
            return Some(Message {
                vector: *entry as u8,
                delivery: Delivery::decode((*entry >> 8) as u32),
                target: if *entry & 1 << 11 != 0 {
                    Target::Logical(destination)
                } else {
                    Target::Physical(destination)
                },
                is_level,
            });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(apic: &mut IoApic, pin: u32, entry: u64) {
        apic.write(SELECT, 0x10 + 2 * pin);
        apic.write(DATA, entry as u32);
        apic.write(SELECT, 0x11 + 2 * pin);
        apic.write(DATA, (entry >> 32) as u32);
    }

    #[test]
    fn a_level_comes_again_until_it_is_low() {
        let mut apic = IoApic::new();
        program(&mut apic, 4, 1 << 56 | LEVEL | 0x34);
        apic.set(4, true);
        let message = Message {
            vector: 0x34,
            delivery: Delivery::Fixed,
            target: Target::Physical(1),
            is_level: true,
        };
        assert_eq!(apic.next(), Some(message));
        assert_eq!(apic.next(), None, "until its end");
        apic.end(0x34);
        assert_eq!(apic.next(), Some(message));
        apic.set(4, false);
        apic.end(0x34);
        assert_eq!(apic.next(), None);
    }

    #[test]
    fn an_edge_comes_once_and_waits_while_masked() {
        let mut apic = IoApic::new();
        program(&mut apic, 2, MASKED | 0x30);
        apic.set(2, true);
        assert_eq!(apic.next(), None);
        program(&mut apic, 2, 0x30);
        assert_eq!(apic.next().map(|message| message.vector), Some(0x30));
        assert_eq!(apic.next(), None);
        apic.set(2, true);
        assert_eq!(apic.next(), None, "no edge");
        apic.set(2, false);
        apic.set(2, true);
        assert!(apic.next().is_some());
    }

    #[test]
    fn registers_read_as_written_but_for_status() {
        let mut apic = IoApic::new();
        program(&mut apic, 23, u64::MAX);
        apic.write(SELECT, 0x10 + 46);
        assert_eq!(u64::from(apic.read(DATA)), u64::from(u32::MAX) & !READ_ONLY);
        apic.write(SELECT, 1);
        assert_eq!(apic.read(DATA), 0x001F_0020);
        apic.write(SELECT, 0x50);
        apic.write(DATA, 7);
        assert_eq!(apic.read(DATA), 0);
        apic.set(40, true);
    }
}
