// SPDX-License-Identifier: Apache-2.0
//! From a task's first instructions, which are the CPU's own, to its `main`.

use super::{console, exit, startup_page};
use crate::environment;
use crate::startup_page::StartupPage;

unsafe extern "Rust" {
    /// Runs the task's program, defined by [`task_main!`](crate::task_main).
    fn bulkhead_task_main(page: StartupPage<'static>);
}

pub(super) extern "C" fn task_start(page: usize) -> ! {
    #[cfg(not(target_arch = "arm"))]
    super::variables::begin();
    environment::set_task();
    if let Some(page) = startup_page(page) {
        console::attach(&page);
        // SAFETY: `task_main!` defines the symbol with this signature; the linker fails without it.
        unsafe { bulkhead_task_main(page) }
    }
    exit()
}
