// SPDX-License-Identifier: Apache-2.0
//! First instructions of a task.
//!
//! | register | in | out (to `task_start`) |
//! |---|---|---|
//! | x0 | address of the startup page | unchanged |
//! | sp | end of the task's memory | unchanged |

use core::arch::global_asm;

use super::{console, exit, startup_page};
use crate::environment;
use crate::startup_page::StartupPage;

global_asm!(
    ".pushsection .text.start.task, \"ax\"",
    ".global _task_start",
    "_task_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "adrp x1, __bss_start",
    "add x1, x1, :lo12:__bss_start",
    "adrp x2, __bss_end",
    "add x2, x2, :lo12:__bss_end",
    "1: cmp x1, x2",
    "b.hs 2f",
    "stp xzr, xzr, [x1], #16",
    "b 1b",
    "2: bl {start}",
    ".popsection",
    start = sym task_start,
);

unsafe extern "Rust" {
    /// The task's program, defined by [`task_main!`](crate::task_main).
    fn bulkhead_task_main(page: StartupPage<'static>);
}

extern "C" fn task_start(page: usize) -> ! {
    environment::set_task();
    if let Some(page) = startup_page(page) {
        console::attach(&page);
        // SAFETY: `task_main!` defines the symbol with this signature; the linker fails without it.
        unsafe { bulkhead_task_main(page) }
    }
    exit()
}
