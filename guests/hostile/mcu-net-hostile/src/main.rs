// SPDX-License-Identifier: Apache-2.0
//! Misuses its Ethernet controller in every way that a program can: registers at random in all sizes, half
//! frames, lengths that lie, resets in the middle, floods of neighbours, and frames in others' names. Where
//! there is a gateway, it also causes floods from outside: many pings in a row, each of which the gateway
//! answers. It never reads what it receives but by accident, so its own queue is full.
//!
//! Each next step is drawn from a fixed seed. The program says how far it is at powers of two.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::draws::Draws;
use bulkhead_guest_mcu::ethernet::{Ethernet, Frame};
use bulkhead_guest_mcu::internet::{Host, Ip, Mac};
use bulkhead_guest_mcu::interrupts::Line;
use bulkhead_guest_mcu::wake::Wake;
use bulkhead_guest_mcu::{println, register};
use cortex_m::Peripherals;
use cortex_m_rt::entry;

/// Registers (LAN9118 datasheet, 5.3).
const RX_DATA: usize = 0x00;
const TX_DATA: usize = 0x20;
const HW_CFG: usize = 0x74;
const MAC_CSR_CMD: usize = 0xA4;
const MAC_CSR_DATA: usize = 0xA8;
/// Bytes of the controller's registers.
const REGISTERS: u32 = 0x100;
/// Promiscuous, receiver and transmitter on (5.4.1).
const MAC_ALL: u32 = 1 << 18 | 1 << 3 | 1 << 2;
/// The host side of QEMU's user network.
const GATEWAY: (Ip, Mac) = ([10, 0, 2, 2], [0x52, 0x55, 10, 0, 2, 2]);
/// Pings of a flood, and of how many attacks one is a flood.
const PINGS: u16 = 64;
const FLOOD: u32 = 128;

struct Attacker {
    chip: Ethernet,
    host: Host,
    frame: Frame,
    draws: Draws,
}

impl Attacker {
    fn write(&self, offset: usize, value: u32) {
        register::write(self.chip.base() + offset, value);
    }

    fn receive_everything(&self) {
        self.write(MAC_CSR_DATA, MAC_ALL);
        self.write(MAC_CSR_CMD, 1 << 31 | 1);
    }

    /// Sends a frame of so many words. The receiver is `last`, the end of a neighbour's address, or all. With
    /// `own` it is in its own name.
    fn frame(&mut self, words: u32, own: bool) {
        let to = self.draws.receiver(self.chip.address);
        let from = if own { self.chip.address } else { to };
        self.write(TX_DATA, u32::from_le_bytes([to[0], to[1], to[2], to[3]]));
        self.write(TX_DATA, u32::from_le_bytes([to[4], to[5], from[0], from[1]]));
        self.write(TX_DATA, u32::from_le_bytes([from[2], from[3], from[4], from[5]]));
        for _ in 3..words {
            let word = self.draws.any();
            self.write(TX_DATA, word);
        }
    }

    /// Makes this host known to the gateway, and then sends as many pings as fit.
    fn flood(&mut self) {
        self.write(HW_CFG, 1);
        self.receive_everything();
        self.host.ask(&mut self.frame, GATEWAY.0);
        for number in 0..PINGS {
            self.host.ping(&mut self.frame, GATEWAY.0, GATEWAY.1, number);
        }
    }

    fn one(&mut self) {
        if self.draws.below(FLOOD) == 0 {
            self.flood();
        }
        let offset = self.draws.below(REGISTERS) as usize;
        let (value, place) = (self.draws.any(), self.chip.base() + offset);
        match self.draws.below(10) {
            0 => self.write(offset & !3, value),
            1 => register::write8(place, value as u8),
            2 => register::write16(place & !1, value as u16),
            3 => _ = register::read16(place & !1),
            4 => _ = register::read8(place),
            5 => _ = register::read_four(self.chip.base() + (RX_DATA | offset & 0x10)),
            6 => {
                // Commands at random: offsets, alignments, lengths up to 2047 bytes.
                self.write(TX_DATA, value);
                self.write(TX_DATA, offset as u32);
            }
            7 => {
                // A frame that says another length than it has, or stops in the middle.
                let (bytes, words, more) = (self.draws.below(256), self.draws.below(64), self.draws.below(3));
                self.write(TX_DATA, 0x3000 | bytes);
                self.write(TX_DATA, bytes + more);
                self.frame(words, true);
            }
            8 => {
                let words = 4 + self.draws.below(60);
                self.write(HW_CFG, 1);
                self.receive_everything();
                self.write(TX_DATA, 0x3000 | (4 * words));
                self.write(TX_DATA, 4 * words);
                let own = value & 7 != 0;
                self.frame(words, own);
            }
            _ => {
                // Too short for a frame, and all of it one instruction.
                self.write(HW_CFG, 1);
                register::write_four(self.chip.base() + TX_DATA, [0x3008, 8, value, value]);
            }
        }
    }
}

#[entry]
fn main() -> ! {
    let Some(peripherals) = Peripherals::take() else {
        panic!("somebody has them already")
    };
    let chip = match Ethernet::open(&peripherals.CPUID) {
        Ok(chip) => chip,
        Err(problem) => panic!("{problem}"),
    };
    // Interrupts come as they like, and are not handled.
    let _wake = Wake::by(Line::ETHERNET);
    let mut attacker = Attacker {
        chip,
        host: Host::new(chip),
        frame: Frame::new(),
        draws: Draws::FIRST,
    };
    println!("hostile: begins");
    for attacks in 1_u32.. {
        attacker.one();
        if attacks.is_power_of_two() && attacks >= 256 || attacks == 1_000_000 {
            println!("hostile: {attacks} attacks");
        }
    }
    loop {
        cortex_m::asm::wfi();
    }
}
