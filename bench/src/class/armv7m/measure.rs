// SPDX-License-Identifier: Apache-2.0
//! The measurement of class armv7m: one C image (`guests/bench/mcu-bench`) on the bare board and as the only
//! partition.
//!
//! The image measures the everyday operations of an RTOS, with a kernel of its own. A second image
//! (`guests/bench/mcu-bench-freertos`) does the same with FreeRTOS.

use crate::ping;
use crate::rows::{Row, row};
use crate::runs::{Figures, Reader, Results, launch, paced, prepare, run};
use bulkhead::build::artifacts::Workspace;
use bulkhead::emulator::bare::Bare;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::board::{Board, Emulator};
use std::ops::Range;

/// The rows of the processor's operations, and the rows of FreeRTOS.
pub(in crate::class) const OF_CPU: Range<usize> = 0..13;
pub(in crate::class) const OF_FREERTOS: Range<usize> = 19..25;

/// Everything that is measured, in the order of the table.
pub(in crate::class) const ROWS: &[Row] = &[
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
    row(
        "words-critical-section",
        "critical section of the RTOS, with mask words",
        Some(90),
    ),
    row("words-mutex", "mutex of the RTOS, with mask words", Some(300)),
    row(
        "words-rtos-switch",
        "context switch of the RTOS, with mask words",
        Some(763),
    ),
    row(
        "words-rtos-semaphore",
        "semaphore of the RTOS to a more urgent task and back, with mask words",
        Some(1722),
    ),
    row(
        "words-rtos-interrupt",
        "interrupt of the RTOS to a more urgent task and back, with mask words",
        None,
    ),
    row(
        "words-freertos-critical-section",
        "FreeRTOS: critical section, with mask words",
        None,
    ),
    row("words-freertos-mutex", "FreeRTOS: mutex, with mask words", None),
    row(
        "words-freertos-switch",
        "FreeRTOS: context switch, with mask words",
        None,
    ),
    row(
        "words-freertos-semaphore",
        "FreeRTOS: semaphore to a more urgent task and back, with mask words",
        None,
    ),
    ping::ROWS[0],
    ping::ROWS[1],
    ping::ROWS[2],
    ping::ROWS[3],
    ping::ROWS[4],
    ping::ROWS[5],
    ping::ROWS[6],
];

/// The images, and the address of the mask words of each: the end of its 64 KiB of RAM, which it leaves free.
const IMAGES: &[(&str, u32)] = &[("mcu-bench", 0x2004_FFE0), ("mcu-bench-freertos", 0x2009_FFE0)];
/// The pace of an image that does each operation once: 32 ns for an instruction. A tick of the board's timer
/// takes 40 ns: too long for one operation at a nanosecond for an instruction.
const SLOWER: u32 = 5;
/// The beginning of the keys of rows with mask words.
const WORDS: &str = "words-";

/// Measures on the emulator of a board.
pub(super) fn measure(board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem> {
    let mut results = Results::default();
    for (image, words) in IMAGES {
        let first = format!("{image}-first");
        let manifest = text(&board.name, image);
        let system = prepare(&manifest, progress)?;
        let with_words = prepare(&format!("{manifest}machine.mask-words = {words}\n"), progress)?;
        progress.step(&format!("measuring {image} on the bare board"), || {
            results.bare.append(&mut bare(emulator, image)?);
            Ok(())
        })?;
        progress.step(&format!("measuring {image} in a VM"), || {
            results.hypervised.append(&mut run(emulator, &system)?);
            Ok(())
        })?;
        progress.step(&format!("measuring {image} in a VM with mask words"), || {
            add_words(&mut results, run(emulator, &with_words)?);
            Ok(())
        })?;
        system.class_binary().clone_into(&mut results.class_binary);
        cold(
            &text(&board.name, &first),
            &paced(emulator, SLOWER),
            &first,
            progress,
            &mut results,
        )?;
    }
    ping::measure(board, emulator, progress, &mut results)?;
    Ok(results)
}

/// Adds the figures with mask words to those that have a row, each with the same figure of the bare board.
fn add_words(results: &mut Results, figures: Figures) {
    for (key, figure) in figures {
        let name = format!("{WORDS}{key}");
        if !ROWS.iter().any(|row| row.key == name) {
            continue;
        }
        if let Some(bare) = results.bare.get(&key).copied() {
            results.bare.insert(name.clone(), bare);
        }
        results.hypervised.insert(name, figure);
    }
}

/// Returns the system of an image as the only partition.
pub(in crate::class) fn text(board: &str, image: &str) -> String {
    format!(
        "board = \"{board}\"\n[partition.bench]\nkind = \"vm\"\nimage = \"@guests/{image}\"\nmemory = \"64K\"\n\
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

/// Returns the figures of an image on the bare board.
fn bare(emulator: &Emulator, image: &str) -> Result<Figures, Problem> {
    let program = Workspace::locate()?.program(&format!("guest-{image}"));
    let mut reader = Reader::default();
    Bare::new(emulator, &program)?.run(&launch(), Vec::new(), &mut reader)?;
    reader.figures()
}
