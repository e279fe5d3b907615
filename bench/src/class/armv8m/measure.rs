// SPDX-License-Identifier: Apache-2.0
//! The measurement of class `armv8m`.
//!
//! Costs between partitions are the hypervisor's own instructions in the emulator's log, so they are exact,
//! and no program has to read a clock. An instruction takes 64 ns, about as long as on a processor with the
//! board's clock of 20 MHz. So few instructions fit into a turn, and the logs stay short.

use super::calls;
use super::lengths::{WARM_UP, spread};
use super::page::PAGE;
use super::stretches::{Stretch, of_run};
use super::systems::{self, Kind, PAIRS, TASK, VM};
use crate::class::armv7m::measure::text;
use crate::in_turns::{Setting, measure_on};
use crate::runs::{Figures, Reader, Results, launch, paced, prepare, run};
use bulkhead::build::artifacts::Workspace;
use bulkhead::emulator::bare::Bare;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::board::{Board, Emulator};

/// The logarithm of the nanoseconds that an instruction takes.
const PACE: u32 = PAGE.pace;
/// Switches that are seen in a run with turns, in both directions together.
const SWITCHES: usize = 2 * (WARM_UP + 20);
/// Priorities of the client and of the server: the one or the other is more urgent.
const PRIORITIES: [[&str; 2]; 2] = [
    ["priority = 20", "priority = 10"],
    ["priority = 10", "priority = 20"],
];

/// The images with operations of an RTOS: `mcu-bench` and `mcu-bench-freertos` for this class.
const IMAGES: [&str; 2] = ["world-bench", "world-bench-freertos"];

/// Measures on the emulator of a board.
pub(super) fn measure(board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem> {
    let bench = Worlds {
        machine: board,
        board: &board.name,
        emulator: &paced(emulator, PACE),
        progress,
    };
    let mut results = Results::default();
    for image in IMAGES {
        bench.native(image, &mut results)?;
    }
    for kinds in [[VM, VM], [TASK, TASK], [VM, TASK]] {
        bench.turns(kinds, &mut results)?;
    }
    for kinds in PAIRS {
        bench.late(kinds, &mut results)?;
        for (vcpus, is_urgent) in PRIORITIES.into_iter().zip([false, true]) {
            let parts = bench.run(
                "calls",
                &systems::messages(bench.board, kinds, vcpus),
                &kinds,
                usize::MAX,
                &mut results,
            )?;
            calls::add(&mut results, kinds.map(|kind| kind.name), is_urgent, &parts)?;
        }
    }
    bench.busy(&mut results)?;
    bench.in_turns(&mut results)?;
    Ok(results)
}

/// The place where everything is measured.
struct Worlds<'a> {
    machine: &'a Board,
    board: &'a str,
    emulator: &'a Emulator,
    progress: &'a Progress,
}

impl Worlds<'_> {
    /// Returns the figures of an image on the bare board.
    fn bare(&self, image: &str) -> Result<Figures, Problem> {
        let program = Workspace::locate()?.program(&format!("guest-{image}"));
        let bare = Bare::of_a_vm(self.machine, self.emulator, &program, self.progress)?;
        let mut reader = Reader::default();
        bare.run(&launch(), Vec::new(), &mut reader)?;
        reader.figures()
    }

    /// Measures programs of an RTOS that has turns with a busy VM.
    fn in_turns(&self, results: &mut Results) -> Result<(), Problem> {
        let setting = Setting {
            board: self.machine,
            emulator: self.emulator,
            progress: self.progress,
            vm: systems::rtos,
            other: &systems::other(),
            bare: &|image| self.bare(&format!("world-{image}")),
        };
        measure_on(&setting, results)?;
        // The programs print nanoseconds.
        for (key, figure) in results.bare.iter_mut().chain(&mut results.hypervised) {
            let is_time = key.starts_with("mibench-") || key.starts_with("thread-metric-");
            if is_time && !key.contains("mean") {
                *figure >>= PACE;
            }
        }
        Ok(())
    }

    /// Measures operations of an RTOS on the bare board and in a VM.
    fn native(&self, image: &str, results: &mut Results) -> Result<(), Problem> {
        let system = prepare(&text(self.board, image), self.progress)?;
        self.progress.step(&format!("measuring {image}"), || {
            results.bare.append(&mut self.bare(image)?);
            results.hypervised.append(&mut run(self.emulator, &system)?);
            Ok(())
        })
    }

    /// Returns the stretches of the run of a system with these two partitions.
    fn run(
        &self,
        what: &str,
        text: &str,
        kinds: &[Kind],
        count: usize,
        results: &mut Results,
    ) -> Result<Vec<Vec<Stretch>>, Problem> {
        let system = prepare(text, self.progress)?;
        system.class_binary().clone_into(&mut results.class_binary);
        self.progress.step(&format!("measuring {what}"), || {
            of_run(self.emulator, &system, &systems::sides(kinds)?, count)
        })
    }

    /// Measures switches at the end of a turn.
    fn turns(&self, kinds: [Kind; 2], results: &mut Results) -> Result<(), Problem> {
        let what = "switches";
        let parts = self.run(
            what,
            &systems::turns(self.board, kinds),
            &kinds,
            SWITCHES,
            results,
        )?;
        let [client, other] = kinds.map(|kind| kind.name);
        for (to, pair) in [(0, format!("{other}-{client}")), (1, format!("{client}-{other}"))] {
            let lengths = parts
                .iter()
                .flatten()
                .filter(|stretch| stretch.from != stretch.to && stretch.to == to);
            spread(results, "turn", &pair, lengths.map(|stretch| stretch.length));
        }
        Ok(())
    }

    /// Measures the way to a partition that waits, while the other one computes.
    fn late(&self, kinds: [Kind; 2], results: &mut Results) -> Result<(), Problem> {
        let what = "preemptions";
        let parts = self.run(
            what,
            &systems::late(self.board, kinds),
            &kinds,
            usize::MAX,
            results,
        )?;
        let [client, other] = kinds.map(|kind| kind.name);
        let back = |part: &Vec<Stretch>| {
            part.iter()
                .find(|stretch| stretch.from != 0 && stretch.to == 0)
                .copied()
        };
        let lengths = parts.iter().filter_map(back);
        spread(
            results,
            "late",
            &format!("{other}-{client}"),
            lengths.map(|stretch| stretch.length),
        );
        Ok(())
    }

    /// Counts the exits and the hypervisor's instructions of interrupts of a VM that runs.
    fn busy(&self, results: &mut Results) -> Result<(), Problem> {
        let what = "interrupts";
        let parts = self.run(what, &systems::busy(self.board), &[VM], usize::MAX, results)?;
        // In the first half, the hypervisor still prints what it has said at the start.
        let arrivals = parts.get(parts.len() / 2..).unwrap_or_default();
        if arrivals.is_empty() {
            return Err(Problem::new("the guest had no interrupts"));
        }
        let exits = arrivals.iter().flatten().count() as u64;
        let length = arrivals
            .iter()
            .flatten()
            .map(|stretch| stretch.length)
            .sum::<u64>();
        results.hypervised.insert("interrupt-exits".to_owned(), exits);
        results
            .hypervised
            .insert("interrupt-busy".to_owned(), length / arrivals.len() as u64);
        Ok(())
    }
}
