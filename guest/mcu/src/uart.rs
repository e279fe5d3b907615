// SPDX-License-Identifier: Apache-2.0
//! The CMSDK APB UART (Arm DDI 0479D, section 4.3), polled for output; [`crate::println!`] writes to the
//! first one.

use crate::register;
use core::fmt::{self, Write};

const DATA: usize = 0x00;
const STATE: usize = 0x04;
const CONTROL: usize = 0x08;
const INTERRUPT: usize = 0x0c;
const DIVIDER: usize = 0x10;

const TRANSMIT_FULL: u32 = 1 << 0;
const RECEIVE_FULL: u32 = 1 << 1;
const TRANSMIT_ENABLE: u32 = 1 << 0;
const RECEIVE_ENABLE: u32 = 1 << 1;
const RECEIVE_INTERRUPT: u32 = 1 << 3;
/// In the interrupt register.
const RECEIVED: u32 = 1 << 1;

/// 115200 Bd at 25 MHz.
const RATE: u32 = 217;

// SAFETY: the linker gives the symbol the address of the UART (`device.x`). Nothing reads it.
unsafe extern "C" {
    static __console: u8;
}

/// A UART.
#[derive(Clone, Copy, Debug)]
pub struct Uart {
    base: usize,
}

impl Uart {
    /// The UARTs of an MPS2 board, in the order of their numbers.
    pub const ALL: [Self; 3] = [
        Self { base: 0x4000_4000 },
        Self { base: 0x4000_5000 },
        Self { base: 0x4000_6000 },
    ];

    /// Returns the one that the console is on. A program for a board with this UART elsewhere says so in its
    /// `memory.x`.
    #[must_use]
    pub fn console() -> Self {
        Self::at((&raw const __console).addr())
    }

    /// Returns the address of its first register.
    #[must_use]
    pub const fn base(self) -> usize {
        self.base
    }

    /// Returns the UART with registers at an address, on another board.
    #[must_use]
    pub const fn at(base: usize) -> Self {
        Self { base }
    }

    /// Switches the transmitter on.
    pub fn enable(self) {
        register::write(self.base + DIVIDER, RATE);
        register::write(self.base + CONTROL, TRANSMIT_ENABLE);
    }

    /// Switches transmitter and receiver on, with an interrupt for each byte received.
    pub fn enable_receive(self) {
        register::write(self.base + DIVIDER, RATE);
        register::write(
            self.base + CONTROL,
            TRANSMIT_ENABLE | RECEIVE_ENABLE | RECEIVE_INTERRUPT,
        );
    }

    /// Takes a byte that has been received, and ends its interrupt. In this order: the next byte comes as
    /// soon as this one is read, and its interrupt is another.
    pub fn receive(self) -> Option<u8> {
        register::write(self.base + INTERRUPT, RECEIVED);
        let full = register::read(self.base + STATE) & RECEIVE_FULL != 0;
        full.then(|| register::read(self.base + DATA) as u8)
    }

    /// Sends a byte.
    pub fn send(self, byte: u8) {
        while register::read(self.base + STATE) & TRANSMIT_FULL != 0 {
            cortex_m::asm::nop();
        }
        register::write(self.base + DATA, byte.into());
    }
}

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                self.send(b'\r');
            }
            self.send(byte);
        }
        Ok(())
    }
}

/// Writes to the console's UART, which it switches on.
pub fn print(arguments: fmt::Arguments<'_>) {
    let mut uart = Uart::console();
    uart.enable();
    // Writing to this UART cannot fail.
    let _ = uart.write_fmt(arguments);
}

/// Writes a line to the console's UART.
#[macro_export]
macro_rules! println {
    ($($argument:tt)*) => {
        $crate::uart::print(core::format_args!("{}\n", core::format_args!($($argument)*)))
    };
}
