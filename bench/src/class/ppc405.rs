// SPDX-License-Identifier: Apache-2.0
//! Class `ppc405`: the page with its blessed figures, and the measurement: programs on the bare board and as
//! the only partition (`guests/bench/ppc-bench`, `ppc-bench-turns`), and two VMs that have turns.

use super::Bench;
use crate::page::Page;
use crate::rows::{Row, row};
use crate::runs::{Results, measure_bare, prepare, run};
use crate::waivers::{SIZE, Waiver, waiver};
use bulkhead::build::artifacts::Workspace;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::PPC405;
use bulkhead_manifest::Board;
use bulkhead_manifest::board::Emulator;

/// The class.
pub(super) struct Ppc405;

impl Bench for Ppc405 {
    fn facts(&self) -> &'static ClassFacts {
        &PPC405
    }

    fn page(&self) -> Page {
        PAGE
    }

    fn measure(&self, board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem> {
        let systems = [
            prepare(&alone(&board.name, "ppc-bench"), progress)?,
            prepare(&alone(&board.name, "ppc-bench-turns"), progress)?,
            prepare(&turns(&board.name), progress)?,
        ];
        let mut results = Results::default();
        progress.step("measuring on the bare board", || {
            for program in ["guest-ppc-bench", "guest-ppc-bench-turns"] {
                let image = Workspace::locate()?.program(program);
                results.bare.append(&mut measure_bare(emulator, &image, &[1])?);
            }
            Ok(())
        })?;
        progress.step("measuring in a VM", || {
            for system in &systems {
                results.hypervised.append(&mut run(emulator, system)?);
            }
            Ok(())
        })?;
        let [system, ..] = &systems;
        system.class_binary().clone_into(&mut results.class_binary);
        Ok(results)
    }
}

/// Returns the system of one program as the only VM.
fn alone(board: &str, program: &str) -> String {
    format!(
        "board = \"{board}\"\n[partition.bench]\nkind = \"vm\"\nimage = \"@guests/{program}\"\nmemory = \"1M\"\n\
         vcpus = [{{ pcpu = 0 }}]\n"
    )
}

/// Returns the system in which a VM has its turn after another one.
fn turns(board: &str) -> String {
    let side = |name: &str, part: &str| {
        format!(
            "[pcpu.0.domain.{name}]\nbudget = \"1ms\"\n[[channel.stamps.side]]\npartition = \"{name}\"\n\
             [partition.{name}]\nkind = \"vm\"\nimage = \"@guests/ppc-bench-turns\"\nmemory = \"1M\"\n\
             bootargs = \"part={part}\"\nvcpus = [{{ pcpu = 0, domain = \"{name}\" }}]\n\
             capabilities = {{ stamps = {{ channel = \"stamps\" }} }}\n"
        )
    };
    format!("board = \"{board}\"\n[pcpu.0]\npolicy = \"domains\"\n[channel.stamps]\nsize = \"4K\"\n")
        + &side("busy", "stamps")
        + &side("client", "turns")
}

/// The page.
const PAGE: Page = Page {
    file: "docs/timing-ppc405.md",
    board: "ref405ep",
    rows: ROWS,
    waivers: WAIVERS,
    size_bar: 64 << 10,
    ram_bar: None,
    crates: &[
        "abi",
        "sched",
        "image",
        "arch/api",
        "arch/support",
        "arch/one-pcpu",
        "arch/ppc405/core",
        "arch/ppc405",
        "devices",
        "drivers",
        "kernel",
        "hypervisor/ppc405",
    ],
};

/// Everything that is measured, in the order of the table.
const ROWS: &[Row] = &[
    row("compute", "multiplication and addition", None),
    row("mfmsr", "mfmsr", Some(60)),
    row("mtmsr", "mtmsr, nothing changes", Some(60)),
    row("wrteei-pair", "wrteei 1 and wrteei 0", Some(120)),
    row("mfspr-srr0", "mfspr SRR0", Some(60)),
    row("mtspr-srr0", "mtspr SRR0", Some(60)),
    row("mfspr-sprg3", "mfspr SPRG3", Some(60)),
    row("mtspr-sprg3", "mtspr SPRG3", Some(60)),
    row("mtspr-sprg4", "mtspr SPRG4", Some(60)),
    row("mtspr-pid", "mtspr PID", Some(60)),
    row("rfi", "mtspr SRR0, mfmsr, mtspr SRR1 and rfi", None),
    row("system-call", "sc, its handler and its rfi", None),
    row("tlbwe-pair", "both words of an entry by tlbwe", None),
    row("null-call", "null hypercall", Some(400)),
    row(
        "version-call",
        "version by hypercall, which the kernel answers",
        None,
    ),
    row("status-call", "status of a partition by hypercall", None),
    row(
        "pit",
        "PIT: its interrupt, handler and return, and a round of a loop",
        None,
    ),
    row("dhrystone", "Dhrystone, a thousand rounds", None),
    row("turn", "switch at the end of a turn, vm to vm", None),
];

/// Bars that do not hold yet.
const WAIVERS: &[Waiver] = &[waiver(
    SIZE,
    207_748,
    "the variant for one VM has all rules of the image and all of its class, in instructions of four bytes",
)];
