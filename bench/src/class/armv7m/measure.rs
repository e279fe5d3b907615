// SPDX-License-Identifier: Apache-2.0
//! The measurement of class armv7m: one C image (`guests/bench/mcu-bench`) on the bare board and as the only
//! partition.
//!
//! The image measures the everyday operations of an RTOS, with a kernel of its own. A second image
//! (`guests/bench/mcu-bench-freertos`) does the same with FreeRTOS.

use crate::ping;
use crate::rows::{Row, row};
use crate::runs::{Figures, Reader, Results, launch, prepare, run};
use bulkhead::build::artifacts::Workspace;
use bulkhead::emulator::bare::Bare;
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
    row("freertos-critical-section", "FreeRTOS: critical section", None),
    row("freertos-mutex", "FreeRTOS: mutex, taken and given", None),
    row("freertos-switch", "FreeRTOS: context switch (taskYIELD)", None),
    row(
        "freertos-semaphore",
        "FreeRTOS: semaphore to a more urgent task and back",
        None,
    ),
    row(
        "freertos-message",
        "FreeRTOS: queue to a more urgent task and back",
        None,
    ),
    row(
        "freertos-interrupt",
        "FreeRTOS: interrupt to a more urgent task and back",
        None,
    ),
    ping::ROWS[0],
    ping::ROWS[1],
    ping::ROWS[2],
    ping::ROWS[3],
];

/// The images, and the bytes of RAM of each.
const IMAGES: &[(&str, &str)] = &[("mcu-bench", "64K"), ("mcu-bench-freertos", "64K")];

/// Measures on the emulator of a board.
pub(super) fn measure(board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem> {
    let mut results = Results::default();
    for (image, memory) in IMAGES {
        let first = format!("{image}-first");
        let system = prepare(&text(&board.name, image, memory), progress)?;
        progress.step(&format!("measuring {image} on the bare board"), || {
            results.bare.append(&mut bare(emulator, image)?);
            Ok(())
        })?;
        progress.step(&format!("measuring {image} in a VM"), || {
            results.hypervised.append(&mut run(emulator, &system)?);
            Ok(())
        })?;
        system.class_binary().clone_into(&mut results.class_binary);
        let text = text(&board.name, &first, memory);
        cold(&text, &slower(emulator), &first, progress, &mut results)?;
    }
    ping::measure(board, emulator, progress, &mut results)?;
    Ok(results)
}

/// Returns the system of an image as the only partition.
fn text(board: &str, image: &str, memory: &str) -> String {
    format!(
        "board = \"{board}\"\n[partition.bench]\nkind = \"vm\"\nimage = \"@guests/{image}\"\nmemory = \"{memory}\"\n\
         vcpus = [{{ pcpu = 0 }}]\ndevices = [\"timer1\"]\n"
    )
}

/// Adds the figures of a fresh system: an image that does each operation once.
fn cold(
    text: &str,
    emulator: &Emulator,
    image: &str,
    progress: &Progress,
    results: &mut Results,
) -> Result<(), Problem> {
    let system = prepare(text, progress)?;
    progress.step(&format!("measuring {image}"), || {
        let [on_board, in_vm] = &mut results.cold;
        on_board.append(&mut bare(emulator, image)?);
        in_vm.append(&mut run(emulator, &system)?);
        Ok(())
    })
}

/// Returns the emulator with 32 ns for an instruction. A tick of the board's timer takes 40 ns: too long for
/// one operation at a nanosecond for an instruction.
fn slower(emulator: &Emulator) -> Emulator {
    let mut slower = emulator.clone();
    for word in &mut slower.deterministic {
        *word = word.replace("shift=0", "shift=5");
    }
    slower
}

/// Returns the figures of an image on the bare board.
fn bare(emulator: &Emulator, image: &str) -> Result<Figures, Problem> {
    let program = Workspace::locate()?.program(&format!("guest-{image}"));
    let mut reader = Reader::default();
    Bare::new(emulator, &program)?.run(&launch(), Vec::new(), &mut reader)?;
    reader.figures()
}
