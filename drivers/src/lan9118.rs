// SPDX-License-Identifier: Apache-2.0
//! SMSC LAN9118 Ethernet controller, as the MPS2 boards have it. Section numbers are from its datasheet,
//! revision 1.5.
//!
//! Frames go through its FIFOs a word at a time; there is no DMA. All frames are received, for any station:
//! its user filters. The chip interrupts while there is a received frame. No function waits for
//! a frame or for room. A loop that waits for the chip itself has a number of polls.

use bulkhead_arch_api::{FrameWords, HostPhys, Line, Network, Received};
use bulkhead_arch_support::Mmio;

/// Registers (5.3).
const RX_DATA: usize = 0x00;
const TX_DATA: usize = 0x20;
const RX_STATUS: usize = 0x40;
const IRQ_CFG: usize = 0x54;
const INT_STS: usize = 0x58;
const INT_EN: usize = 0x5C;
const FIFO_INT: usize = 0x68;
const RX_CFG: usize = 0x6C;
const TX_CFG: usize = 0x70;
const HW_CFG: usize = 0x74;
const RX_FIFO_INF: usize = 0x7C;
const TX_FIFO_INF: usize = 0x80;
const MAC_CSR_CMD: usize = 0xA4;
const MAC_CSR_DATA: usize = 0xA8;

/// Soft reset.
const HW_SRST: u32 = 1;
/// Five KiB of FIFO for transmission (5.3.9), and the bit that must be set.
const HW_SETUP: u32 = 1 << 20 | 5 << 16;
/// Transmitter on; its statuses may be overwritten, because no code reads them (5.3.8).
const TX_ON: u32 = 1 << 1;
const TX_STATUS_OVERRUN: u32 = 1 << 2;
/// Interrupt enabled, active high, push-pull (5.3.2).
const IRQ_SETUP: u32 = 1 << 8 | 1 << 4 | 1;
/// A received frame's status waits; the interrupt for software, which comes when it is enabled (5.3.3,
/// 5.3.4).
const RSFL: u32 = 1 << 3;
const SW_INT: u32 = 1 << 31;
/// No interrupt for room in the transmitter; one for the first received frame (5.3.6).
const LEVELS: u32 = 0xFF << 24;
/// RX status (3.13.3): bad.
const RX_ERROR: u32 = 1 << 15;
/// TX command A (3.12.2): all of a frame.
const FIRST_AND_LAST: u32 = 1 << 13 | 1 << 12;
/// MAC registers (5.4): control, access to the PHY and its data.
const MAC_CR: u32 = 1;
const MII_ACC: u32 = 6;
const MII_DATA: u32 = 7;
const CSR_BUSY: u32 = 1 << 31;
/// Receive all, full duplex, transmitter and receiver on.
const MAC_SETUP: u32 = 1 << 20 | 1 << 19 | 1 << 18 | 1 << 3 | 1 << 2;
/// Write to register 0 of PHY 1 (5.4.6): negotiate (5.5.1).
const PHY_CONTROL_WRITE: u32 = 1 << 11 | 1 << 1 | 1;
const PHY_NEGOTIATE: u32 = 1 << 13 | 1 << 12 | 1 << 9;

/// Polls of a register before its driver goes on without what it waits for; a reset lasts 10 us.
const POLLS: u32 = 10_000;

/// The chip.
#[derive(Debug)]
pub struct Lan9118 {
    registers: Mmio,
    line: Line,
    /// Words of the frame that is being received that are still in the FIFO.
    left: u32,
}

impl Lan9118 {
    /// Takes the chip whose registers and line these are, and resets it. It neither receives nor interrupts
    /// yet.
    #[must_use]
    pub fn new(registers: Mmio, line: Line) -> Self {
        let chip = Self {
            registers,
            line,
            left: 0,
        };
        chip.registers.write32(HW_CFG, HW_SRST);
        chip.wait(HW_CFG, HW_SRST);
        chip
    }

    /// Receives from now on.
    fn start(&mut self) {
        let registers = &self.registers;
        registers.write32(HW_CFG, HW_SETUP);
        registers.write32(FIFO_INT, LEVELS);
        registers.write32(RX_CFG, 0);
        registers.write32(TX_CFG, TX_ON | TX_STATUS_OVERRUN);
        self.mac(MII_DATA, PHY_NEGOTIATE);
        self.mac(MII_ACC, PHY_CONTROL_WRITE);
        self.mac(MAC_CR, MAC_SETUP);
        self.registers.write32(INT_STS, u32::MAX);
        self.registers.write32(INT_EN, RSFL);
        self.registers.write32(IRQ_CFG, IRQ_SETUP);
    }

    fn wait(&self, register: usize, bits: u32) {
        for _ in 0..POLLS {
            if self.registers.read32(register) & bits == 0 {
                return;
            }
        }
    }

    fn mac(&self, register: u32, value: u32) {
        self.wait(MAC_CSR_CMD, CSR_BUSY);
        self.registers.write32(MAC_CSR_DATA, value);
        self.registers.write32(MAC_CSR_CMD, CSR_BUSY | register);
        self.wait(MAC_CSR_CMD, CSR_BUSY);
    }

    /// Returns the length of the oldest received frame, CRC included, and its first two words.
    /// [`Lan9118::end`] comes next.
    fn oldest(&mut self) -> Option<(u32, [u32; 2])> {
        if !self.has_more() {
            return None;
        }
        let status = self.registers.read32(RX_STATUS);
        let bytes = status >> 16 & 0x3FFF;
        self.left = bytes.div_ceil(4);
        if status & RX_ERROR != 0 || self.left < 2 {
            return None;
        }
        Some((bytes, [self.word(), self.word()]))
    }

    /// Takes the next word of the frame.
    fn word(&mut self) -> u32 {
        if self.left == 0 {
            return 0;
        }
        self.left -= 1;
        self.registers.read32(RX_DATA)
    }

    /// Skips the rest of the frame, a word at a time: QEMU forgets to free what the chip's own way of
    /// skipping it (RX_FFWD, 5.3.10) leaves. The chip goes on interrupting if there is another.
    fn end(&mut self) {
        while self.left != 0 {
            self.word();
        }
        if self.has_more() {
            return;
        }
        self.registers.write32(INT_STS, RSFL | SW_INT);
        // The level is looked at when something comes: it may have come before the acknowledgement.
        if self.has_more() {
            self.registers.write32(INT_EN, RSFL);
            self.registers.write32(INT_EN, RSFL | SW_INT);
        }
    }

    /// Tells whether frames wait.
    fn has_more(&self) -> bool {
        self.registers.read32(RX_FIFO_INF) >> 16 & 0xFF != 0
    }

    /// Begins a frame of `bytes` bytes, whose words come next. False if there is no room for it.
    fn begin(&mut self, bytes: u32) -> bool {
        let room = self.registers.read32(TX_FIFO_INF) & 0xFFFF;
        let has_room = bytes + 16 <= room;
        if has_room {
            self.registers.write32(TX_DATA, FIRST_AND_LAST | bytes);
            self.registers.write32(TX_DATA, bytes);
        }
        has_room
    }
}

/// Returns the addresses of `words` words.
fn places(first: HostPhys, words: u32) -> impl Iterator<Item = HostPhys> {
    (0..words).map(move |index| HostPhys(first.0 + u64::from(index << 2)))
}

impl Network for Lan9118 {
    const HAS_NETWORK: bool = true;

    fn network_line(&self) -> Option<Line> {
        Some(self.line)
    }

    fn open_network(&mut self) {
        self.start();
    }

    fn next_frame(&mut self) -> Option<Received> {
        let (bytes, head) = self.oldest()?;
        Some(Received { bytes, head })
    }

    fn take_frame(&mut self, to: HostPhys, words: u32, memory: &mut impl FrameWords) {
        // Looked up once: this is most of what a frame costs.
        let Some(port) = self.registers.port(RX_DATA) else {
            return;
        };
        let taken = words.min(self.left);
        self.left -= taken;
        places(to, taken).for_each(|place| memory.set_word(place, port.read()));
    }

    fn end_frame(&mut self) {
        self.end();
    }

    fn send_frame(&mut self, from: HostPhys, bytes: u32, memory: &mut impl FrameWords) -> bool {
        let has_room = self.begin(bytes);
        if has_room && let Some(port) = self.registers.port(TX_DATA) {
            places(from, bytes.div_ceil(4)).for_each(|place| port.write(memory.word(place)));
        }
        has_room
    }
}
