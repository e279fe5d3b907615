// SPDX-License-Identifier: Apache-2.0
//! The environment of a guest of either kind: a console to print on and a way to end.
//!
//! A VM prints through its PL011, a task through the console capability of its startup page. The kind is
//! noted by the startup code before `main`; nothing else in a guest asks for it.

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_arch = "x86_64")]
use crate::pc;
#[cfg(target_arch = "powerpc")]
use crate::powerpc;
use crate::task;
#[cfg(target_arch = "aarch64")]
use crate::vm;

static IS_TASK: AtomicBool = AtomicBool::new(false);

/// Notes that the program runs as a task. Called by the startup code.
pub(crate) fn set_task() {
    IS_TASK.store(true, Ordering::Relaxed);
}

/// Tells whether the program runs as a task (else as a VM).
#[must_use]
pub fn is_task() -> bool {
    IS_TASK.load(Ordering::Relaxed)
}

/// The guest's console.
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if is_task() {
            task::console::write(text.as_bytes());
        } else {
            write_as_vm(text);
        }
        Ok(())
    }
}

#[cfg(target_arch = "aarch64")]
fn write_as_vm(text: &str) {
    vm::pl011::write(text.as_bytes());
}

#[cfg(target_arch = "powerpc")]
fn write_as_vm(text: &str) {
    powerpc::uart::write(text.as_bytes());
}

#[cfg(target_arch = "x86_64")]
fn write_as_vm(text: &str) {
    pc::uart::write(text.as_bytes());
}

/// VMs of microcontrollers have runtime libraries of their own.
#[cfg(target_arch = "arm")]
fn write_as_vm(_: &str) {}

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
    #[cfg(target_arch = "aarch64")]
    if !is_task() {
        vm::psci::system_off()
    }
    #[cfg(target_arch = "powerpc")]
    if !is_task() {
        powerpc::end()
    }
    #[cfg(target_arch = "x86_64")]
    if !is_task() {
        pc::power_off()
    }
    task::fail()
}
