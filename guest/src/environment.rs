// SPDX-License-Identifier: Apache-2.0
//! The environment of a guest of either kind: a console to print on and a way to end.
//!
//! A VM prints on its UART, a task through the console capability of its startup page. The kind is
//! noted by the startup code before `main`; nothing else in a guest asks for it.

use core::fmt::{self, Write};
use core::panic::PanicInfo;

use crate::{cpu, task};

pub use crate::kind::is_task;

/// The guest's console.
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if is_task() {
            task::console::write(text.as_bytes());
        } else {
            cpu::console::write(text.as_bytes());
        }
        Ok(())
    }
}

/// Prints on the guest's console. The macros [`print!`](crate::print) and [`println!`](crate::println) call
/// it.
pub fn print(arguments: fmt::Arguments<'_>) {
    // `Console` never fails, and a guest could do nothing about it.
    let _ = Console.write_fmt(arguments);
}

/// Prints on the guest's console.
#[macro_export]
macro_rules! print {
    ($($argument:tt)*) => { $crate::environment::print(format_args!($($argument)*)) };
}

/// Prints a line on the guest's console.
#[macro_export]
macro_rules! println {
    () => { $crate::environment::print(format_args!("\n")) };
    ($($argument:tt)*) => { $crate::environment::print(format_args!("{}\n", format_args!($($argument)*))) };
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    println!("{info}");
    if cpu::HAS_VMS && !is_task() {
        cpu::end::end_vm()
    }
    task::fail()
}
