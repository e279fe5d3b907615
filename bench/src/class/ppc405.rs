// SPDX-License-Identifier: Apache-2.0
//! Class `ppc405`: the page with its blessed figures, and the measurement: programs on the bare board and as
//! the only partition (`guests/bench/ppc-bench`, `ppc-bench-turns`, `ppc-bench-more`, `ppc-whetstone`), and
//! two VMs that have turns.

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
        let mut systems = Vec::new();
        for text in PROGRAMS
            .map(|program| alone(&board.name, program))
            .iter()
            .chain([&turns(&board.name)])
        {
            systems.push(prepare(text, progress)?);
        }
        let mut results = Results::default();
        progress.step("measuring on the bare board", || {
            for program in PROGRAMS {
                let image = Workspace::locate()?.program(&format!("guest-{program}"));
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
        let fresh = prepare(&alone(&board.name, FIRST), progress)?;
        progress.step("measuring a fresh system", || {
            let image = Workspace::locate()?.program(&format!("guest-{FIRST}"));
            results.cold = [measure_bare(emulator, &image, &[1])?, run(emulator, &fresh)?];
            Ok(())
        })?;
        let first = systems
            .first()
            .ok_or_else(|| Problem::new("nothing to measure"))?;
        first.class_binary().clone_into(&mut results.class_binary);
        Ok(results)
    }
}

/// The programs that are measured alone.
const PROGRAMS: [&str; 4] = ["ppc-bench", "ppc-bench-turns", "ppc-bench-more", "ppc-whetstone"];

/// The program that does each operation of the first one once.
const FIRST: &str = "ppc-bench-first";

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
    pace: 0,
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
    models: &[],
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
    row("whetstone", "Whetstone, a million of its instructions", None),
    row(
        "fetch-miss",
        "miss of an instruction's address, its handler and the fetch",
        None,
    ),
    row(
        "load-miss",
        "miss of a data address, its handler and the load",
        None,
    ),
    row(
        "data-storage",
        "data storage interrupt, its handler and return",
        None,
    ),
    row(
        "instruction-storage",
        "instruction storage interrupt, its handler and return",
        None,
    ),
    row("external", "external interrupt, its handler and return", None),
    row("turn", "switch at the end of a turn, vm to vm", None),
];

/// Bars that do not hold yet.
const WAIVERS: &[Waiver] = &[waiver(
    SIZE,
    209708,
    "the variant for one VM has all rules of the image and all of its class, in instructions of four bytes",
)];
