// SPDX-License-Identifier: Apache-2.0
//! From a task's first instructions, which are the CPU's own, to its `main`.

use super::{console, exit, startup_page, variables};
use crate::startup_page::StartupPage;
use crate::{cpu, kind};

unsafe extern "Rust" {
    /// Runs the task's program, defined by [`task_main!`](crate::task_main).
    fn bulkhead_task_main(page: StartupPage<'static>);
}

pub(crate) extern "C" fn task_start(page: usize) -> ! {
    if cpu::KEEPS_VALUES {
        variables::begin();
    }
    kind::set_task();
    if let Some(page) = startup_page(page) {
        console::attach(&page);
        // SAFETY: `task_main!` defines the symbol with this signature; the linker fails without it.
        unsafe { bulkhead_task_main(page) }
    }
    exit()
}
