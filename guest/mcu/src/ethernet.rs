// SPDX-License-Identifier: Apache-2.0
//! The LAN9118 Ethernet controller of an MPS2 board, as its vendor's driver uses it: FIFOs a word at a time,
//! polled; the interrupt only wakes the CPU. Section numbers are from its datasheet, revision 1.5.

use crate::register;
use cortex_m::peripheral::CPUID;

/// The address of the controller, by board (Arm DAI 0386D and 0500A, memory map). They differ in their CPU.
const BASE_M4: usize = 0x4020_0000;
const BASE_M7: usize = 0xa000_0000;
/// CPUID.PARTNO of a Cortex-M7.
const PART_M7: u32 = 0xC27;

const RX_DATA: usize = 0x00;
const TX_DATA: usize = 0x20;
const RX_STATUS: usize = 0x40;
const TX_STATUS: usize = 0x48;
const ID_REV: usize = 0x50;
const IRQ_CFG: usize = 0x54;
const INT_STS: usize = 0x58;
const INT_EN: usize = 0x5C;
const BYTE_TEST: usize = 0x64;
const FIFO_INT: usize = 0x68;
const RX_CFG: usize = 0x6C;
const TX_CFG: usize = 0x70;
const HW_CFG: usize = 0x74;
const RX_FIFO_INF: usize = 0x7C;
const TX_FIFO_INF: usize = 0x80;
const AFC_CFG: usize = 0xAC;
const MAC_CSR_CMD: usize = 0xA4;
const MAC_CSR_DATA: usize = 0xA8;

/// A frame has been received.
const RSFL: u32 = 1 << 3;
const CSR_BUSY: u32 = 1 << 31;
const CSR_READ: u32 = 1 << 30;
const MAC_CR: u32 = 1;
const ADDRH: u32 = 2;
const ADDRL: u32 = 3;
const MII_ACC: u32 = 6;
const MII_DATA: u32 = 7;
/// Full duplex, transmitter and receiver on (5.4.1).
const MAC_SETUP: u32 = 1 << 20 | 1 << 3 | 1 << 2;
/// TX command A: all of a frame (3.12.2).
const FIRST_AND_LAST: u32 = 1 << 13 | 1 << 12;

/// Words of the longest frame, CRC included.
pub const FRAME_WORDS: usize = 380;

/// A frame as the controller hands it over.
#[derive(Debug)]
pub struct Frame {
    words: [u32; FRAME_WORDS],
    /// Bytes, without the CRC.
    pub length: usize,
}

impl Default for Frame {
    fn default() -> Self {
        Self::new()
    }
}

impl Frame {
    /// Returns the words.
    #[must_use]
    pub const fn words(&self) -> &[u32; FRAME_WORDS] {
        &self.words
    }

    /// Returns the words, to change them.
    pub const fn words_mut(&mut self) -> &mut [u32; FRAME_WORDS] {
        &mut self.words
    }

    /// Returns an empty frame.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            words: [0; FRAME_WORDS],
            length: 0,
        }
    }

    /// Returns byte `index`.
    #[must_use]
    pub fn byte(&self, index: usize) -> u8 {
        let word = self.words.get(index / 4).copied().unwrap_or(0);
        (word >> (8 * (index % 4))) as u8
    }

    /// Changes byte `index`.
    pub fn set_byte(&mut self, index: usize, value: u8) {
        if let Some(word) = self.words.get_mut(index / 4) {
            let shift = 8 * (index % 4);
            *word = *word & !(0xFF << shift) | u32::from(value) << shift;
        }
    }

    /// Returns the bytes from `index` on.
    #[must_use]
    pub fn bytes<const N: usize>(&self, index: usize) -> [u8; N] {
        core::array::from_fn(|offset| self.byte(index + offset))
    }

    /// Changes the bytes from `index` on.
    pub fn set_bytes(&mut self, index: usize, bytes: &[u8]) {
        for (offset, byte) in bytes.iter().enumerate() {
            self.set_byte(index + offset, *byte);
        }
    }
}

/// A way to the network.
pub trait Adapter {
    /// Returns the MAC address.
    fn address(&self) -> [u8; 6];
    /// Tells whether a frame has been received.
    fn has_frame(&self) -> bool;
    /// Takes a received frame. Returns false if no frame waits.
    fn receive(&self, frame: &mut Frame) -> bool;
    /// Sends a frame. Returns false if there is no room.
    fn send(&self, frame: &Frame) -> bool;
}

/// The controller.
#[derive(Clone, Copy, Debug)]
pub struct Ethernet {
    base: usize,
    /// Its MAC address.
    pub address: [u8; 6],
}

impl Ethernet {
    /// Finds the controller and sets it up; what is wrong if that fails.
    ///
    /// # Errors
    /// A sentence.
    pub fn open(cpu: &CPUID) -> Result<Self, &'static str> {
        let mut chip = Self::untouched(cpu);
        if chip.read(BYTE_TEST) != 0x8765_4321 || chip.read(ID_REV) >> 16 != 0x0118 {
            return Err("no LAN9118");
        }
        chip.write(HW_CFG, 1);
        if !chip.clears(HW_CFG, 1) {
            return Err("no end of reset");
        }
        chip.write(HW_CFG, 1 << 20 | 5 << 16);
        chip.write(AFC_CFG, 0x006E_3740);
        chip.write(INT_EN, 0);
        chip.write(INT_STS, u32::MAX);
        chip.write(FIFO_INT, 0xFF00_0000);
        chip.write(RX_CFG, 0);
        chip.write(TX_CFG, 1 << 1);
        let (high, low) = (chip.mac(ADDRH), chip.mac(ADDRL));
        let ([a, b, c, d], [e, f, ..]) = (low.to_le_bytes(), high.to_le_bytes());
        chip.address = [a, b, c, d, e, f];
        if !chip.negotiate() {
            return Err("no link");
        }
        chip.set_mac(MAC_CR, MAC_SETUP);
        chip.write(INT_EN, RSFL);
        // Active high, push-pull, enabled.
        chip.write(IRQ_CFG, 1 << 8 | 1 << 4 | 1);
        Ok(chip)
    }

    /// Returns the controller as it is, in any state.
    #[must_use]
    pub fn untouched(cpu: &CPUID) -> Self {
        let part = cpu.base.read() >> 4 & 0xFFF;
        Self {
            base: if part == PART_M7 { BASE_M7 } else { BASE_M4 },
            address: [0; 6],
        }
    }

    /// Address of its first register.
    #[must_use]
    pub const fn base(&self) -> usize {
        self.base
    }

    /// Reads the register at an offset.
    pub fn read(&self, offset: usize) -> u32 {
        register::read(self.base + offset)
    }

    /// Writes the register at an offset.
    pub fn write(&self, offset: usize, value: u32) {
        register::write(self.base + offset, value);
    }

    fn clears(&self, offset: usize, bits: u32) -> bool {
        (0..100_000).any(|_| self.read(offset) & bits == 0)
    }

    /// Reads a register of the MAC (5.4).
    #[must_use]
    pub fn mac(&self, number: u32) -> u32 {
        self.write(MAC_CSR_CMD, CSR_BUSY | CSR_READ | number);
        self.clears(MAC_CSR_CMD, CSR_BUSY);
        self.read(MAC_CSR_DATA)
    }

    fn set_mac(&self, number: u32, value: u32) {
        self.write(MAC_CSR_DATA, value);
        self.write(MAC_CSR_CMD, CSR_BUSY | number);
        self.clears(MAC_CSR_CMD, CSR_BUSY);
    }

    /// Reads a register of the PHY (5.5).
    #[must_use]
    pub fn phy(&self, number: u32) -> u32 {
        self.set_mac(MII_ACC, 1 << 11 | number << 6 | 1);
        self.mac(MII_DATA)
    }

    /// Lets the PHY negotiate (5.5.1) and waits for its link.
    fn negotiate(&self) -> bool {
        self.set_mac(MII_DATA, 1 << 13 | 1 << 12 | 1 << 9);
        self.set_mac(MII_ACC, 1 << 11 | 1 << 1 | 1);
        (0..1000).any(|_| self.phy(1) & 1 << 2 != 0)
    }
}

impl Adapter for Ethernet {
    fn address(&self) -> [u8; 6] {
        self.address
    }

    fn has_frame(&self) -> bool {
        self.read(RX_FIFO_INF) >> 16 & 0xFF != 0
    }

    /// Takes a received frame; its interrupt is over when there is none.
    fn receive(&self, frame: &mut Frame) -> bool {
        while self.has_frame() {
            let status = self.read(RX_STATUS);
            let bytes = (status >> 16 & 0x3FFF) as usize;
            for index in 0..bytes.div_ceil(4) {
                let word = self.read(RX_DATA);
                if let Some(place) = frame.words.get_mut(index) {
                    *place = word;
                }
            }
            if status & 1 << 15 == 0 && bytes <= 4 * FRAME_WORDS {
                frame.length = bytes.saturating_sub(4);
                return true;
            }
        }
        self.write(INT_STS, RSFL);
        false
    }

    fn send(&self, frame: &Frame) -> bool {
        let length = frame.length as u32;
        if self.read(TX_FIFO_INF) & 0xFFFF < length + 16 {
            return false;
        }
        self.write(TX_DATA, FIRST_AND_LAST | length);
        self.write(TX_DATA, length);
        for word in frame.words.iter().take(frame.length.div_ceil(4)) {
            self.write(TX_DATA, *word);
        }
        for _ in 0..self.read(TX_FIFO_INF) >> 16 & 0xFF {
            self.read(TX_STATUS);
        }
        true
    }
}
