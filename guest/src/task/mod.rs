// SPDX-License-Identifier: Apache-2.0
//! A task partition: one program without privileges directly on the hypervisor.
//!
//! The hypervisor enters `_task_start` with the address of the startup page in the first register and the
//! stack at the end of the task's memory. The task's `main` is named by [`task_main!`](crate::task_main).

pub mod cell;
pub mod console;
pub(crate) mod context;
pub mod memory;
pub mod process;
pub mod releases;
pub(crate) mod start;
mod variables;

pub use crate::cpu::end::{read_foreign, undefined_instruction};

use crate::cpu;
use crate::hypercall;
use crate::startup_page::{HEADER_SIZE, PAGE_SIZE, StartupPage};

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
        cpu::end::trap();
    }
}

/// Returns the startup page at `address`.
fn startup_page(address: usize) -> Option<StartupPage<'static>> {
    let head = core::ptr::with_exposed_provenance::<[u8; HEADER_SIZE]>(address);
    // SAFETY: the hypervisor maps the page read-only for as long as the task runs (head of
    // `bulkhead_abi::startup`), page aligned, and no code writes it.
    let size = StartupPage::size(unsafe { head.as_ref() }?)?;
    let first = core::ptr::with_exposed_provenance(address);
    // After the records there may be a list of windows. Only a microcontroller has no whole page there.
    let size = if cpu::HAS_PAGES { PAGE_SIZE } else { size };
    // SAFETY: as above; the page is as long as its head says, and a whole page where memory is mapped in
    // pages.
    let bytes = unsafe { core::slice::from_raw_parts(first, size) };
    StartupPage::new(bytes)
}
