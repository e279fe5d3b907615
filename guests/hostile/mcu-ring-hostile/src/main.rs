// SPDX-License-Identifier: Apache-2.0
//! Misuses the memory for its frames in every way that a program can: indices and entries at random, lengths
//! that cannot be, resets of the controller in the middle, frames in others' names, and floods of neighbours.
//!
//! Each next step is drawn from a fixed seed. The program says how far it is at powers of two.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest_mcu::draws::Draws;
use bulkhead_guest_mcu::interrupts::Line;
use bulkhead_guest_mcu::ring::{Adapter, Ethernet, Frame};
use bulkhead_guest_mcu::wake::Wake;
use bulkhead_guest_mcu::{println, register};
use cortex_m::Peripherals;
use cortex_m_rt::entry;

/// Registers (LAN9118 datasheet, 5.3), and the one that takes the ring (docs/devices.md).
const TX_DATA: usize = 0x20;
const HW_CFG: usize = 0x74;
const MAC_CSR_CMD: usize = 0xA4;
const MAC_CSR_DATA: usize = 0xA8;
const RING: usize = 0xC0;
/// Bytes of the controller's registers.
const REGISTERS: u32 = 0x100;
/// Promiscuous, receiver and transmitter on (5.4.1).
const MAC_ALL: u32 = 1 << 18 | 1 << 3 | 1 << 2;
/// Words of the memory; the ring; the indices.
const WORDS: u32 = 2048;
const RING_WORDS: u32 = 1664;
const INDICES: [u32; 2] = [2046, 2047];

struct Attacker {
    ring: Ethernet,
    frame: Frame,
    draws: Draws,
}

impl Attacker {
    fn write(&self, offset: usize, value: u32) {
        register::write(self.ring.base() + offset, value);
    }

    /// Resets the controller, receives everything, and takes the ring again.
    fn begin_anew(&self) {
        self.write(HW_CFG, 1);
        self.write(MAC_CSR_DATA, MAC_ALL);
        self.write(MAC_CSR_CMD, 1 << 31 | 1);
        self.write(RING, 1);
    }

    /// Draws an index: one that can be, one just beyond, or any.
    fn index(&mut self) -> u32 {
        match self.draws.below(4) {
            0 => self.draws.any(),
            1 => RING_WORDS - 1 + self.draws.below(3),
            _ => self.draws.below(RING_WORDS),
        }
    }

    /// Sends a frame to a neighbour, to all, or to an unknown address; one in eight in the receiver's name.
    fn send(&mut self) {
        let own = self.ring.address;
        let to = self.draws.receiver(own);
        self.frame.set_bytes(0, &to);
        let from = if self.draws.below(8) == 0 { to } else { own };
        self.frame.set_bytes(6, &from);
        self.frame.length = 14 + self.draws.below(200) as usize;
        self.ring.send(&self.frame);
    }

    fn one(&mut self) {
        let value = self.draws.any();
        match self.draws.below(9) {
            0 => {
                let index = self.index();
                let [produced, consumed] = INDICES;
                let word = if value & 7 == 0 { produced } else { consumed };
                self.ring.spoil(word as usize, index);
            }
            1 => {
                let index = self.draws.below(WORDS);
                self.ring.spoil(index as usize, value);
            }
            2 => self.write(TX_DATA, value),
            3 => {
                let bytes = self.draws.below(1600);
                self.write(TX_DATA, bytes);
            }
            4 => {
                let offset = self.draws.below(REGISTERS) as usize & !3;
                self.write(offset, value);
            }
            5 => self.begin_anew(),
            6 => _ = self.ring.receive(&mut self.frame),
            _ => self.send(),
        }
    }
}

#[entry]
fn main() -> ! {
    let Some(peripherals) = Peripherals::take() else {
        panic!("somebody has them already")
    };
    let ring = match Ethernet::open(&peripherals.CPUID) {
        Ok(ring) => ring,
        Err(problem) => panic!("{problem}"),
    };
    // Interrupts come as they like, and are not handled.
    let _wake = Wake::by(Line::ETHERNET);
    let mut attacker = Attacker {
        ring,
        frame: Frame::new(),
        draws: Draws::FIRST,
    };
    println!("hostile: begins");
    for attacks in 1_u32.. {
        attacker.one();
        if attacks.is_power_of_two() && attacks >= 256 {
            println!("hostile: {attacks} attacks");
        }
    }
    loop {
        cortex_m::asm::wfi();
    }
}
