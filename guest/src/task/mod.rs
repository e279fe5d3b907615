// SPDX-License-Identifier: Apache-2.0
//! A task partition: one program at EL0 directly on the hypervisor.
//!
//! The hypervisor enters [`_task_start`](start) with the address of the startup page in x0 and the stack at
//! the end of the task's memory. The task's `main` is named by [`task_main!`](crate::task_main).

pub mod console;
mod start;

use core::arch::asm;

use crate::hypercall;
use crate::startup_page::{PAGE_SIZE, StartupPage};

/// Names the function that is the task's program: `fn(StartupPage<'static>)`. When it returns, the task
/// stops itself.
#[macro_export]
macro_rules! task_main {
    ($main:path) => {
        #[unsafe(no_mangle)]
        fn bulkhead_task_main(page: $crate::startup_page::StartupPage<'static>) {
            $main(page)
        }
    };
}

/// Stops the own partition.
pub fn exit() -> ! {
    // Slot 0 has every right on the own partition, so this does not return; should it, failing is right.
    let _ = hypercall::partition_stop(hypercall::SELF);
    fail()
}

/// Ends the task with a health event of class `task`: the program cannot go on.
pub fn fail() -> ! {
    loop {
        // SAFETY: BRK only raises an exception, which is not the task's to handle.
        unsafe { asm!("brk #1", options(nomem, nostack)) }
    }
}

/// Executes an instruction that the architecture leaves permanently undefined.
pub fn undefined_instruction() {
    // SAFETY: UDF only raises an exception, which is not the task's to handle.
    unsafe { asm!("udf #0", options(nomem, nostack)) }
}

/// Reads a byte that is not the task's own. Returns if the health action lets it.
pub fn read_foreign(address: u64) -> u8 {
    let value: u32;
    // SAFETY: a load changes no memory; the address is outside the task by the caller's intent, and the
    // worst outcome is the end of the task.
    unsafe { asm!("ldrb {0:w}, [{1}]", out(reg) value, in(reg) address, options(readonly, nostack)) }
    value as u8
}

/// The startup page at `address`.
fn startup_page(address: usize) -> Option<StartupPage<'static>> {
    let pointer = core::ptr::with_exposed_provenance::<[u8; PAGE_SIZE]>(address);
    // SAFETY: the hypervisor maps one read-only page there for as long as the task runs (head of
    // `bulkhead_abi::startup`), page aligned, and nobody writes it.
    let bytes = unsafe { pointer.as_ref() }?;
    StartupPage::new(bytes)
}
