// SPDX-License-Identifier: Apache-2.0
//! UART 0 of the MPS2 boards (Arm CMSDK APB UART, DDI 0479), polled.

use core::fmt::{self, Write};

use crate::cpu::{load, store};

const UART: u32 = 0x4000_4000;
const DATA: u32 = UART;
const STATE: u32 = UART + 0x4;
const CONTROL: u32 = UART + 0x8;
const DIVISOR: u32 = UART + 0x10;
/// STATE: the transmit buffer is full.
const FULL: u32 = 1;

/// Switches the transmitter on.
pub fn start() {
    store(DIVISOR, 16);
    store(CONTROL, 1);
}

/// Formatted output.
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while load(STATE) & FULL != 0 {}
            store(DATA, byte.into());
        }
        Ok(())
    }
}

/// Prints on the console.
macro_rules! print {
    ($($argument:tt)*) => {{
        use core::fmt::Write as _;
        // The console never fails.
        let _ = write!($crate::console::Console, $($argument)*);
    }};
}
pub(crate) use print;
