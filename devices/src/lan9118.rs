// SPDX-License-Identifier: Apache-2.0
//! Virtual SMSC LAN9118: the Ethernet controller of the MPS2 boards, as a driver uses it.
//!
//! Section numbers are from the LAN9118 datasheet (SMSC, revision 1.5). The frames themselves are in
//! memory that only the hypervisor reaches and that the caller lends as [`FrameMemory`]: a ring of received
//! words, and room for the one frame that is being written. So the device is small, and a register access
//! moves at most two words.
//!
//! It has what a driver needs to find the chip, set it up, and move frames by FIFO: commands and status of
//! both FIFOs, data offsets and end alignments, interrupts with levels, address filter, EEPROM-loaded
//! address, a PHY whose link is always up. A frame is sent when its last word is written. There is no
//! wake-up, no flow control, no general-purpose timer, and the CRC at the end of a received frame is zero if
//! it came from another guest.
//!
//! It can have what no chip has: a register by which a driver that knows it takes and gives frames in the
//! memory itself (module `ring`).
//!
//! Invariants: nothing a guest writes moves an index out of its part of the memory; a frame is whole or not
//! there.

mod mac;
mod receive;
mod ring;
mod transmit;

use mac::Mac;
use receive::Receive;
pub use receive::{Arrival, Piece};
pub use ring::{CONSUMED, PRODUCED};
use ring::{HAS_RINGS, Ring};
use transmit::Transmit;

/// Words of memory that a device needs: received frames, then the frame being written.
pub const MEMORY_WORDS: u32 = 2048;
/// Words of the ring of received frames.
const RECEIVE_WORDS: u32 = 1664;
/// The longest frame, without its CRC: with a VLAN tag.
pub const FRAME_MAX: u32 = 1518;
/// Registers: the chip decodes seven address lines.
const WINDOW_MASK: u64 = 0xFC;

/// Memory for frames.
pub trait FrameMemory {
    /// Returns the word at `index`, which is below [`MEMORY_WORDS`].
    fn word(&mut self, index: u32) -> u32;
    /// Changes it.
    fn set_word(&mut self, index: u32, value: u32);
}

/// Registers (5.3).
const RX_DATA_LAST: u64 = 0x1C;
const TX_DATA_FIRST: u64 = 0x20;
const TX_DATA_LAST: u64 = 0x3C;
const RX_STATUS: u64 = 0x40;
const RX_STATUS_PEEK: u64 = 0x44;
const TX_STATUS: u64 = 0x48;
const TX_STATUS_PEEK: u64 = 0x4C;
const ID_REV: u64 = 0x50;
const IRQ_CFG: u64 = 0x54;
const INT_STS: u64 = 0x58;
const INT_EN: u64 = 0x5C;
const BYTE_TEST: u64 = 0x64;
const FIFO_INT: u64 = 0x68;
const RX_CFG: u64 = 0x6C;
const TX_CFG: u64 = 0x70;
const HW_CFG: u64 = 0x74;
const RX_DP_CTRL: u64 = 0x78;
const RX_FIFO_INF: u64 = 0x7C;
const TX_FIFO_INF: u64 = 0x80;
const PMT_CTRL: u64 = 0x84;
const GPT_CFG: u64 = 0x8C;
const GPT_CNT: u64 = 0x90;
/// The counter of 25 MHz, which the caller answers: a device knows no clock.
pub const FREE_RUN: u64 = 0x9C;
const RX_DROP: u64 = 0xA0;
const MAC_CSR_CMD: u64 = 0xA4;
const MAC_CSR_DATA: u64 = 0xA8;
const E2P_CMD: u64 = 0xB0;
/// Reserved on the chip, which reads as 0. A load gives the address at which the guest sees the memory for
/// frames, 0 if it does not. A store with bit 0 set lets frames be handed over there, to the next reset: the
/// received ones in a ring. The port for data to transmit then takes lengths. Each sends the frame of so many
/// bytes at the start of the transmit part of the memory, which is free again after the store.
const RING: u64 = 0xC0;
const RING_ON: u32 = 1;

const CHIP: u32 = 0x0118_0001;
const BYTE_ORDER: u32 = 0x8765_4321;
/// IRQ_CFG (5.3.2): the state of the interrupt, its enable, active high, push-pull.
const IRQ_INT: u32 = 1 << 12;
const IRQ_EN: u32 = 1 << 8;
const IRQ_POL: u32 = 1 << 4;
const IRQ_TYPE: u32 = 1;
const IRQ_CFG_WRITABLE: u32 = 0xFF00_0000 | IRQ_EN | IRQ_POL | IRQ_TYPE;
/// INT_STS (5.3.3).
const SW_INT: u32 = 1 << 31;
const RXSTOP_INT: u32 = 1 << 24;
const TXSTOP_INT: u32 = 1 << 25;
const TX_IOC_INT: u32 = 1 << 21;
const RXD_INT: u32 = 1 << 20;
const TXE_INT: u32 = 1 << 13;
const TDFA_INT: u32 = 1 << 9;
const TSFF_INT: u32 = 1 << 8;
const TSFL_INT: u32 = 1 << 7;
const RSFF_INT: u32 = 1 << 4;
const RSFL_INT: u32 = 1 << 3;
/// Those that say that a FIFO is above its level.
const OF_LEVELS: u32 = TDFA_INT | TSFL_INT | RSFL_INT;
/// HW_CFG (5.3.9): soft reset; the bus has 32 bits, which a strap says; what of it can be written.
const HW_SRST: u32 = 1;
const HW_32_BITS: u32 = 1 << 2;
const HW_WRITABLE: u32 = 0x003F_0000;
/// TX_FIF_SZ after a reset: 5 KiB, status included.
const HW_RESET: u32 = 5 << 16 | HW_32_BITS;
/// TX_CFG (5.3.8).
const TX_CFG_TXS_DUMP: u32 = 1 << 15;
const TX_CFG_TXD_DUMP: u32 = 1 << 14;
const TX_CFG_WRITABLE: u32 = 0x6;
const TX_CFG_STOP: u32 = 1;
/// RX_CFG (5.3.7).
const RX_CFG_DUMP: u32 = 1 << 15;
const RX_CFG_WRITABLE: u32 = 0xCFFF_1F00;
/// RX_DP_CTRL (5.3.10): skip the rest of the frame.
const RX_FFWD: u32 = 1 << 31;
/// PMT_CTRL (5.3.13): the device is awake.
const PMT_READY: u32 = 1;
/// E2P_CMD (5.3.23): the address was loaded.
const E2P_LOADED: u32 = 1 << 8;
/// Bytes of the FIFO for data to transmit.
const TX_SPACE: u32 = 4608;

/// The consequence of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Bytes of the frame, which begins at [`Lan9118::TRANSMIT_AT`] of the memory.
    pub bytes: u32,
}

/// The device.
#[derive(Clone, Debug)]
pub struct Lan9118 {
    irq_config: u32,
    status: u32,
    enable: u32,
    fifo_levels: u32,
    receive_config: u32,
    transmit_config: u32,
    hardware_config: u32,
    dropped: u32,
    receive: Receive,
    transmit: Transmit,
    mac: Mac,
    ring: Ring,
    /// A FIFO for statuses has moved since an interrupt was acknowledged.
    has_moved: bool,
}

impl Lan9118 {
    /// Word of the memory at which the frame that is being written begins.
    pub const TRANSMIT_AT: u32 = RECEIVE_WORDS;

    /// Returns the state after a reset. `address` is what its EEPROM would hold. `memory_at` is the address
    /// at which the guest sees the memory for frames, 0 if it does not.
    #[must_use]
    pub const fn new(address: [u8; 6], memory_at: u32) -> Self {
        Self {
            irq_config: 0,
            status: 0,
            enable: 0,
            fifo_levels: 0x4800_0000,
            receive_config: 0,
            transmit_config: 0,
            hardware_config: HW_RESET,
            dropped: 0,
            receive: Receive::new(),
            transmit: Transmit::new(),
            mac: Mac::new(address),
            ring: Ring::new(memory_at),
            has_moved: false,
        }
    }

    /// Returns the level of the interrupt line. An output that is not both active high and push-pull is
    /// inverted on these boards.
    #[must_use]
    pub const fn level(&self) -> bool {
        let active = self.status & self.enable != 0 && self.irq_config & IRQ_EN != 0;
        let inverted = self.irq_config & (IRQ_TYPE | IRQ_POL) != IRQ_TYPE | IRQ_POL;
        active != inverted
    }

    /// Answers a load of `size` bytes at `offset` of the window.
    pub fn read(&mut self, offset: u64, size: u8, memory: &mut impl FrameMemory) -> u32 {
        let word = self.read_word(offset & WINDOW_MASK, memory);
        if size == 4 {
            word
        } else {
            word.wrapping_shr(8_u32.wrapping_mul((offset & 3) as u32))
        }
    }

    fn read_word(&mut self, offset: u64, memory: &mut impl FrameMemory) -> u32 {
        match offset {
            0..=RX_DATA_LAST => self.receive.take_word(self.receive_config, memory),
            RX_STATUS => {
                self.has_moved = true;
                self.receive.take_status()
            }
            RX_STATUS_PEEK => self.receive.status(),
            TX_STATUS => {
                self.has_moved = true;
                self.transmit.take_status()
            }
            TX_STATUS_PEEK => self.transmit.status(),
            ID_REV => CHIP,
            IRQ_CFG => {
                let active = self.status & self.enable != 0;
                self.irq_config | if active { IRQ_INT } else { 0 }
            }
            INT_STS => self.status,
            INT_EN => self.enable,
            BYTE_TEST => BYTE_ORDER,
            FIFO_INT => self.fifo_levels,
            RX_CFG => self.receive_config,
            TX_CFG => self.transmit_config,
            HW_CFG => self.hardware_config,
            RX_FIFO_INF => self.receive.filling(),
            TX_FIFO_INF => self.transmit.filling(TX_SPACE),
            PMT_CTRL => PMT_READY,
            GPT_CFG | GPT_CNT => 0xFFFF,
            RX_DROP => core::mem::take(&mut self.dropped),
            MAC_CSR_CMD => self.mac.command(),
            MAC_CSR_DATA => self.mac.data(),
            E2P_CMD => E2P_LOADED,
            RING => self.ring.address(),
            _ => 0,
        }
    }

    /// Takes a store of `size` bytes at `offset` of the window. The frame it completes is still in the
    /// memory.
    pub fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u32,
        memory: &mut impl FrameMemory,
    ) -> Option<Sent> {
        // The bus of the chip is as wide as a word.
        if size != 4 {
            return None;
        }
        match offset & WINDOW_MASK {
            TX_DATA_FIRST..=TX_DATA_LAST => return self.transmit_word(value, memory),
            IRQ_CFG => self.irq_config = value & IRQ_CFG_WRITABLE,
            INT_STS => self.acknowledge(value),
            INT_EN => {
                self.enable = value;
                // The interrupt for software comes with its enable (5.3.4).
                self.status |= value & SW_INT;
            }
            FIFO_INT => {
                self.fifo_levels = value;
                self.look_at_levels();
            }
            RX_CFG => self.configure_receive(value),
            TX_CFG => self.configure_transmit(value),
            HW_CFG if value & HW_SRST != 0 => self.reset_softly(),
            HW_CFG => self.hardware_config = value & HW_WRITABLE | HW_32_BITS,
            RX_DP_CTRL if value & RX_FFWD != 0 => self.receive.skip(),
            MAC_CSR_CMD => self.mac.run(value),
            MAC_CSR_DATA => self.mac.set_data(value),
            RING if HAS_RINGS && value & RING_ON != 0 => self.start_ring(),
            _ => {}
        }
        None
    }

    /// Tells whether this store to the FIFO would complete a frame, which is then to be sent.
    #[must_use]
    pub const fn would_complete(&self, offset: u64) -> bool {
        matches!(offset & WINDOW_MASK, TX_DATA_FIRST..=TX_DATA_LAST) && self.transmit.would_complete()
    }

    /// Returns where a frame of `bytes` bytes, CRC included, goes whose first bytes are `head`: in at most
    /// two pieces. The switch asks before it copies the frame. None if the guest does not want it, or has no
    /// room for it.
    pub fn offer(&mut self, head: [u32; 2], bytes: u32, memory: &mut impl FrameMemory) -> Option<Arrival> {
        let kind = self.mac.wants(head)?;
        let mut arrival = self.receive.room(bytes, kind);
        // A FIFO that is shut has no room.
        if arrival.is_none() && self.ring.is_on() {
            arrival = self.ring.room(bytes, memory);
        }
        if arrival.is_none() {
            self.dropped = self.dropped.saturating_add(1);
            self.status |= RSFF_INT;
        }
        arrival
    }

    /// Notes that the frame that was offered has been copied. Returns true if the guest wants an interrupt
    /// that the level of the line does not show: a guest with a ring has nothing to acknowledge.
    pub fn arrived(&mut self, arrival: &Arrival, memory: &mut impl FrameMemory) -> bool {
        if self.ring.is_on() {
            self.ring.commit(arrival, memory);
            return self.enable & RSFL_INT != 0 && self.irq_config & IRQ_EN != 0;
        }
        self.receive.commit(arrival);
        self.has_moved = true;
        self.status |= RXD_INT;
        self.look_at_levels();
        false
    }

    /// Clears what follows a frame of `bytes` bytes that the guest has written to the memory itself, where
    /// receivers find the CRC: nothing of an earlier frame leaves with this one.
    pub fn close(bytes: u32, memory: &mut impl FrameMemory) {
        let index = Self::TRANSMIT_AT.wrapping_add(bytes >> 2);
        let filled = (bytes & 3).wrapping_mul(8);
        let last = memory.word(index) & !u32::MAX.wrapping_shl(filled);
        memory.set_word(index, last);
        memory.set_word(index.wrapping_add(1), 0);
    }

    /// Tells whether frames are handed over in memory that the guest sees.
    #[must_use]
    pub const fn has_ring(&self) -> bool {
        self.ring.is_on()
    }

    /// Hands frames over in the memory, if the guest sees it: keeps them out of the FIFOs, and takes lengths
    /// in the place of frames to send.
    #[cold]
    #[inline(never)]
    const fn start_ring(&mut self) {
        if self.ring.start() {
            self.receive = Receive::shut();
            self.transmit = Transmit::of_lengths();
            // Nothing of the FIFO is left that an interrupt could stand for.
            self.status &= !(RXD_INT | RSFL_INT | RSFF_INT);
            self.has_moved = false;
        }
    }

    /// Clears interrupts (5.3.3). The interrupt of a FIFO above its level stays, as on the chip, but only if
    /// the FIFO has moved since the last time. There are drivers that acknowledge, leave the FIFO to the task
    /// that the interrupt keeps from running, and rely on the chip's pause between two interrupts (5.3.2),
    /// for which a device would need a clock; with this they get to it, and none that came meanwhile is lost.
    const fn acknowledge(&mut self, interrupts: u32) {
        self.status &= !interrupts;
        if self.has_moved {
            self.has_moved = interrupts & OF_LEVELS == 0;
            self.look_at_levels();
        }
    }

    /// Raises the interrupts that say that a FIFO is filled to its level (5.3.6).
    const fn look_at_levels(&mut self) {
        if self.receive.statuses() > self.fifo_levels & 0xFF {
            self.status |= RSFL_INT;
        }
        if self.transmit.statuses() > self.fifo_levels >> 16 & 0xFF {
            self.status |= TSFL_INT;
        }
        // All of the FIFO is free but for the frame being written; its level is in units of 64 bytes.
        if TX_SPACE >> 6 > self.fifo_levels >> 24 {
            self.status |= TDFA_INT;
        }
    }

    fn transmit_word(&mut self, value: u32, memory: &mut impl FrameMemory) -> Option<Sent> {
        let done = self.transmit.push(value, memory)?;
        if done.interrupts {
            self.status |= TX_IOC_INT;
        }
        self.status |= match done.bytes {
            Some(_) => 0,
            None => TXE_INT,
        };
        if done.overflow {
            self.status |= TSFF_INT;
        }
        self.has_moved = true;
        self.look_at_levels();
        done.bytes.map(|bytes| Sent { bytes })
    }

    fn configure_receive(&mut self, value: u32) {
        self.receive_config = value & RX_CFG_WRITABLE;
        if value & RX_CFG_DUMP != 0 && !self.ring.is_on() {
            self.receive = Receive::new();
        }
        if !self.mac.receives() {
            self.status |= RXSTOP_INT;
        }
    }

    fn configure_transmit(&mut self, value: u32) {
        self.transmit_config = value & TX_CFG_WRITABLE;
        if value & TX_CFG_TXD_DUMP != 0 && !self.ring.is_on() {
            self.transmit.forget_frame();
        }
        if value & TX_CFG_TXS_DUMP != 0 {
            self.transmit.forget_statuses();
        }
        if value & TX_CFG_STOP != 0 {
            self.transmit_config = 0;
            self.status |= TXSTOP_INT;
        }
    }

    /// Does the soft reset of HW_CFG.SRST (5.3.9): all but the address, which is loaded anew.
    fn reset_softly(&mut self) {
        self.reset(self.mac.loaded(), self.ring.address());
    }

    /// Becomes a device that [`Self::new`] returns.
    #[cold]
    #[inline(never)]
    pub const fn reset(&mut self, address: [u8; 6], memory_at: u32) {
        *self = Self::new(address, memory_at);
    }
}

#[cfg(test)]
mod tests;
