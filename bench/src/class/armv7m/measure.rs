// SPDX-License-Identifier: Apache-2.0
//! The measurement of class armv7m: one C image (`guests/bench/mcu-bench`) on the bare board and as the only
//! partition.
//!
//! The image measures the everyday operations of an RTOS, with a kernel of its own.

use crate::bare::Bare;
use crate::ping;
use crate::rows::{Row, row};
use crate::runs::{Reader, Results, prepare, run};
use bulkhead::build::artifacts::Workspace;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::board::{Board, Emulator};

/// Everything that is measured, in the order of the table.
pub(super) const ROWS: &[Row] = &[
    row("read-primask", "MRS PRIMASK", Some(150)),
    row("read-basepri", "MRS BASEPRI", Some(150)),
    row("write-basepri", "MSR BASEPRI", Some(150)),
    row("read-psp", "MRS PSP", Some(150)),
    row("write-psp", "MSR PSP", Some(150)),
    row("cps-pair", "CPSID or CPSIE", Some(150)),
    row("read-private", "load of a register of the CPU (ICSR)", None),
    row("read-systick", "load of the SysTick counter", None),
    row(
        "write-private",
        "store to a register of the CPU (NVIC_ISER)",
        None,
    ),
    row("write-priority", "store of an interrupt's priority, a byte", None),
    row("call", "SVC, its handler and its return", None),
    row("pendsv", "PendSV by ICSR, its handler and its return", None),
    row(
        "interrupt",
        "interrupt by NVIC_ISPR, its handler and its return",
        None,
    ),
    row("critical-section", "critical section of the RTOS (BASEPRI)", None),
    row("mutex", "mutex of the RTOS, locked and unlocked", None),
    row("rtos-switch", "context switch of the RTOS", None),
    row("rtos-semaphore", "semaphore to a more urgent task and back", None),
    row("rtos-message", "message to a more urgent task and back", None),
    row("rtos-interrupt", "interrupt to a more urgent task and back", None),
    ping::ROWS[0],
    ping::ROWS[1],
    ping::ROWS[2],
    ping::ROWS[3],
];

/// Measures on the emulator of a board.
pub(super) fn measure(board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem> {
    let manifest = format!(
        "board = \"{}\"\n[partition.bench]\nkind = \"vm\"\nimage = \"@guests/mcu-bench\"\nmemory = \"64K\"\n\
         vcpus = [{{ pcpu = 0 }}]\ndevices = [\"timer1\"]\n",
        board.name
    );
    let system = prepare(&manifest, progress)?;
    let mut results = Results::default();
    progress.step("measuring on the bare board", || {
        let image = Workspace::locate()?.program("guest-mcu-bench");
        let mut reader = Reader::default();
        Bare::new(emulator, &image)?.run(Vec::new(), &mut reader)?;
        results.bare = reader.figures()?;
        Ok(())
    })?;
    progress.step("measuring in a VM", || {
        results.hypervised = run(emulator, &system)?;
        Ok(())
    })?;
    let figures = (&mut results.bare, &mut results.hypervised);
    ping::measure(board, emulator, progress, figures)?;
    system.class_binary().clone_into(&mut results.class_binary);
    Ok(results)
}
