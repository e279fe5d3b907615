// SPDX-License-Identifier: Apache-2.0
//! Class `ppc405`: the page with its blessed figures, and the measurement: one program
//! (`guests/bench/ppc-bench`) on the bare board and as the only partition.

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
        let manifest = format!(
            "board = \"{}\"\n[partition.bench]\nkind = \"vm\"\nimage = \"@guests/ppc-bench\"\nmemory = \"1M\"\n\
             vcpus = [{{ pcpu = 0 }}]\n",
            board.name
        );
        let system = prepare(&manifest, progress)?;
        let mut results = Results::default();
        progress.step("measuring on the bare board", || {
            let image = Workspace::locate()?.program("guest-ppc-bench");
            results.bare = measure_bare(emulator, &image, &[1])?;
            Ok(())
        })?;
        progress.step("measuring in a VM", || {
            results.hypervised = run(emulator, &system)?;
            Ok(())
        })?;
        system.class_binary().clone_into(&mut results.class_binary);
        Ok(results)
    }
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
    row("null-call", "null hypercall", None),
];

/// Bars that do not hold yet.
const WAIVERS: &[Waiver] = &[waiver(
    SIZE,
    230_500,
    "the variant for one VM has all rules of the image and all of its class, in instructions of four bytes",
)];
