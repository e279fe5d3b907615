// SPDX-License-Identifier: Apache-2.0
//! The UART of the console (Arm CMSDK APB UART, DDI 0479), polled. The linker script says where it is.

use core::fmt::{self, Write};

use crate::cpu::{load, store};

const DATA: u32 = 0;
const STATE: u32 = 0x4;
const CONTROL: u32 = 0x8;
const DIVISOR: u32 = 0x10;
/// STATE: the transmit buffer is full.
const FULL: u32 = 1;

unsafe extern "C" {
    static __console: u8;
}

/// Returns the address of a register.
fn register(offset: u32) -> u32 {
    (&raw const __console) as u32 + offset
}

/// Switches the transmitter on.
pub fn start() {
    store(register(DIVISOR), 16);
    store(register(CONTROL), 1);
}

/// Formatted output.
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while load(register(STATE)) & FULL != 0 {}
            store(register(DATA), byte.into());
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
