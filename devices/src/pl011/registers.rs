// SPDX-License-Identifier: Apache-2.0
//! Registers of the PL011 and their bits (Arm DDI 0183G, chapter 3).

/// A register of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    /// UARTDR, 3.3.1.
    Data,
    /// UARTRSR and UARTECR, 3.3.2.
    ReceiveStatus,
    /// UARTFR, 3.3.3.
    Flags,
    /// UARTILPR, 3.3.4.
    IrdaLowPower,
    /// UARTIBRD, 3.3.5.
    IntegerBaud,
    /// UARTFBRD, 3.3.6.
    FractionalBaud,
    /// UARTLCR_H, 3.3.7.
    LineControl,
    /// UARTCR, 3.3.8.
    Control,
    /// UARTIFLS, 3.3.9.
    FifoLevels,
    /// UARTIMSC, 3.3.10.
    Mask,
    /// UARTRIS, 3.3.11.
    RawStatus,
    /// UARTMIS, 3.3.12.
    MaskedStatus,
    /// UARTICR, 3.3.13.
    Clear,
    /// UARTDMACR, 3.3.14.
    DmaControl,
    /// UARTPeriphID0..3 and UARTPCellID0..3, 3.3.15 and 3.3.16.
    Id(u8),
}

impl Register {
    /// Returns the register that an access of `size` bytes at `offset` falls into, and the byte of it where
    /// it starts.
    pub(super) const fn at(offset: u64, size: u8) -> Option<(Self, u64)> {
        let lane = offset & 3;
        if !matches!(size, 1 | 2 | 4) || lane.saturating_add(size as u64) > 4 {
            return None;
        }
        match Self::of(offset) {
            Some(register) => Some((register, lane)),
            None => None,
        }
    }

    /// Returns the register that an offset is in.
    #[inline(always)]
    pub(super) const fn of(offset: u64) -> Option<Self> {
        Some(match offset & !3 {
            0x000 => Self::Data,
            0x004 => Self::ReceiveStatus,
            FLAGS => Self::Flags,
            0x020 => Self::IrdaLowPower,
            0x024 => Self::IntegerBaud,
            0x028 => Self::FractionalBaud,
            0x02C => Self::LineControl,
            0x030 => Self::Control,
            0x034 => Self::FifoLevels,
            0x038 => Self::Mask,
            0x03C => Self::RawStatus,
            0x040 => Self::MaskedStatus,
            0x044 => Self::Clear,
            0x048 => Self::DmaControl,
            id @ 0xFE0..=0xFFC => Self::Id(((id & 0x1C) >> 2) as u8),
            _ => return None,
        })
    }
}

/// Offset of [`Register::Flags`].
pub(super) const FLAGS: u64 = 0x018;

/// The identification registers in order: part 0x011, designer 0x41 (Arm), revision 3 (r1p5), PrimeCell.
pub(super) const CELL_ID: [u8; 8] = [0x11, 0x10, 0x34, 0x00, 0x0D, 0xF0, 0x05, 0xB1];

/// UARTRSR.OE; eight bits higher in UARTDR.
pub(super) const STATUS_OVERRUN: u16 = 1 << 3;

pub(super) const MODEM_CTS: u16 = 1 << 0;
pub(super) const MODEM_DSR: u16 = 1 << 1;
pub(super) const MODEM_DCD: u16 = 1 << 2;
pub(super) const FLAG_BUSY: u16 = 1 << 3;
pub(super) const FLAG_RXFE: u16 = 1 << 4;
pub(super) const FLAG_TXFF: u16 = 1 << 5;
pub(super) const FLAG_RXFF: u16 = 1 << 6;
pub(super) const FLAG_TXFE: u16 = 1 << 7;
pub(super) const MODEM_RI: u16 = 1 << 8;

pub(super) const LCR_FIFO_ENABLE: u16 = 1 << 4;

pub(super) const CR_LOOPBACK: u16 = 1 << 7;
/// TXE and RXE.
pub(super) const CR_RESET: u16 = 0x300;
/// Both triggers at one half.
pub(super) const IFLS_RESET: u16 = 0x12;

pub(super) const INT_RI: u16 = 1 << 0;
pub(super) const INT_CTS: u16 = 1 << 1;
pub(super) const INT_DCD: u16 = 1 << 2;
pub(super) const INT_DSR: u16 = 1 << 3;
pub(super) const INT_RX: u16 = 1 << 4;
pub(super) const INT_TX: u16 = 1 << 5;
pub(super) const INT_RX_TIMEOUT: u16 = 1 << 6;
pub(super) const INT_OVERRUN: u16 = 1 << 10;
/// All interrupts there are.
pub(super) const INTERRUPTS: u16 = 0x7FF;
