// SPDX-License-Identifier: Apache-2.0
//! The board as a device crate describes it: names of the interrupts, their part of the vector table, bits of
//! priority.
//!
//! Names and numbers: Arm DAI 0386D, table 4-2. The crate that `svd2rust` makes of a chip has the same items,
//! and frameworks such as RTIC ask for them by these names. A handler is a function with the name of its
//! interrupt; the linker script `device.x` gives interrupts without one `DefaultHandler`.

use cortex_m::interrupt::InterruptNumber;

/// Bits of a priority that programs for this board use (CMSIS header of the board). The emulator's NVIC has
/// all eight.
pub const NVIC_PRIO_BITS: u8 = 3;

macro_rules! interrupts {
    ($($name:ident = $number:literal: $meaning:literal,)*) => {
        /// An external interrupt of the board.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Interrupt {
            $(#[doc = $meaning] $name = $number,)*
        }

        // SAFETY: the linker takes these from the program or from `device.x`; the CPU calls them as handlers.
        unsafe extern "C" {
            $(safe fn $name();)*
        }

        /// Interrupts' part of the vector table, as `cortex-m-rt` wants it; unused lines have 0.
        // SAFETY: `link.x` of `cortex-m-rt` puts this section after the exceptions' vectors, which is where
        // the CPU looks.
        #[unsafe(link_section = ".vector_table.interrupts")]
        // SAFETY: `cortex-m-rt` with its feature `device` asks for this name, and no other code has it.
        #[unsafe(no_mangle)]
        #[used]
        pub static __INTERRUPTS: [Option<extern "C" fn()>; 32] = {
            let mut table: [Option<extern "C" fn()>; 32] = [None; 32];
            $(table[$number] = Some($name);)*
            table
        };
    };
}

interrupts! {
    UARTRX0 = 0: "UART 0, receive.",
    UARTTX0 = 1: "UART 0, transmit.",
    UARTRX1 = 2: "UART 1, receive.",
    UARTTX1 = 3: "UART 1, transmit.",
    UARTRX2 = 4: "UART 2, receive.",
    UARTTX2 = 5: "UART 2, transmit.",
    GPIO0 = 6: "GPIO 0, all pins.",
    GPIO1 = 7: "GPIO 1, all pins.",
    TIMER0 = 8: "Timer 0.",
    TIMER1 = 9: "Timer 1.",
    DUALTIMER = 10: "Dual timer.",
    SPI = 11: "SPI.",
    UARTOVF = 12: "A UART lost a byte.",
    ETHERNET = 13: "Ethernet.",
    I2S = 14: "Audio.",
    TOUCH = 15: "Touch screen.",
}

/// The name by which RTIC and `cortex-m-rt` ask for [`Interrupt`].
pub use Interrupt as interrupt;

// SAFETY: the numbers are the board's NVIC lines, all below 32, and each is given once.
unsafe impl InterruptNumber for Interrupt {
    fn number(self) -> u16 {
        self as u16
    }
}
