// SPDX-License-Identifier: Apache-2.0
//! Class `x86_64`: the page with its blessed figures, and the measurement: one program
//! (`guests/bench/x86-bench`) on the bare PC and in VMs.

use super::Bench;
use crate::page::Page;
use crate::rows::{RESET, Row, row};
use crate::runs::{Figures, Results, measure_bare, prepare, run, run_to_line};
use crate::systems::{self, Guest};
use crate::waivers::{SIZE, Waiver, waiver};
use bulkhead::build::artifacts::Workspace;
use bulkhead::build::prepare::Prepared;
use bulkhead::emulator::launch::TemporaryFile;
use bulkhead::log::log_area::LogArea;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::X86_64;
use bulkhead_image::{Image, Portable};
use bulkhead_manifest::Board;
use bulkhead_manifest::board::Emulator;
use std::path::Path;

/// The program: its image and its memory in a manifest, and its file.
const GUEST: Guest = Guest {
    image: "@guests/x86-bench",
    memory: "2M",
};
const FILE: &str = "guest-x86-bench";
/// The program that does each operation of that one once.
const FIRST: Guest = Guest {
    image: "@guests/x86-bench-first",
    memory: "2M",
};
const FIRST_FILE: &str = "guest-x86-bench-first";
/// The parts of the program, and the vCPUs that each needs.
const PARTS: [(&str, &str); 3] = [
    ("single", "{ pcpu = 0 }"),
    ("pair", "{ pcpu = 0 }, { pcpu = 1 }"),
    ("switch", "{ pcpu = 0 }, { pcpu = 0 }"),
];

/// Bytes of the payloads that are only there for their digests. They have no lanes, as the program has none.
const PAYLOADS: [usize; 2] = [4 << 10, 60 << 10];

/// The VM that takes its interrupts itself. Its runs: the beginning of their rows' keys, the releases of its
/// loop that are compared, and the image of another VM with a pCPU for itself, if there is one.
const DIRECT: &str = "direct";
const DIRECT_RUNS: [(&str, u64, Option<&str>); 2] = [
    ("direct", 1000, None),
    ("direct-beside", 100, Some("@guests/x86-control")),
];

/// The class.
pub(super) struct X86;

impl Bench for X86 {
    fn facts(&self) -> &'static ClassFacts {
        &X86_64
    }

    fn page(&self) -> Page {
        PAGE
    }

    fn measure(&self, board: &Board, emulator: &Emulator, progress: &Progress) -> Result<Results, Problem> {
        let text = |(part, vcpus)| systems::of_guest(&GUEST, &board.name, part, vcpus, None);
        let [first, ..] = PARTS;
        let single = prepare(&text(first), progress)?;
        let mut results = Results::default();
        progress.step("measuring on the bare board", || {
            results.bare = bare(emulator, FILE)?;
            Ok(())
        })?;
        for part in PARTS {
            let system = prepare(&text(part), progress)?;
            results.hypervised.append(&mut run(emulator, &system)?);
        }
        results.cold = cold(&board.name, emulator, progress)?;
        // Every part reports its own start. The start of the smallest system counts.
        let start = run(emulator, &single)?;
        results.hypervised.extend(
            start
                .get_key_value(RESET)
                .map(|(key, ticks)| (key.clone(), *ticks)),
        );
        results.digests = digests(emulator, &text(first), &single, progress)?;
        single.class_binary().clone_into(&mut results.class_binary);
        for (key, releases, beside) in DIRECT_RUNS {
            let found = of_direct(&board.name, releases, beside, emulator, progress)?;
            for (end, figure) in [("exits", found.exits), ("spread", found.spread)] {
                results.hypervised.insert(format!("{key}-{end}"), figure);
            }
        }
        Ok(results)
    }
}

/// Returns the figures of the very first turns, on the bare PC and in VMs.
fn cold(board: &str, emulator: &Emulator, progress: &Progress) -> Result<[Figures; 2], Problem> {
    let mut systems = Vec::new();
    for (part, vcpus) in PARTS {
        systems.push(prepare(
            &systems::of_guest(&FIRST, board, part, vcpus, None),
            progress,
        )?);
    }
    progress.step("measuring fresh systems", || {
        let mut hypervised = Figures::new();
        for system in &systems {
            hypervised.append(&mut run(emulator, system)?);
        }
        // A start is cold in any case.
        hypervised.remove(RESET);
        Ok([bare(emulator, FIRST_FILE)?, hypervised])
    })
}

/// Figures of a VM that takes its interrupts itself.
struct Direct {
    /// The exits that it has in so many releases: the difference between a run with that many more and one
    /// with fewer, by the hypervisor's counters.
    exits: u64,
    /// The most ticks between two releases, less the fewest.
    spread: u64,
}

fn of_direct(
    board: &str,
    releases: u64,
    beside: Option<&str>,
    emulator: &Emulator,
    progress: &Progress,
) -> Result<Direct, Problem> {
    let (mut exits, mut spread) = (Vec::new(), 0);
    for releases in [releases, 2 * releases] {
        let system = prepare(&direct(board, releases, beside), progress)?;
        let seen = run_to_line(emulator, &system, &format!("partition {DIRECT}: stopped"))?;
        let area = seen.log_area.as_deref().and_then(LogArea::at_start);
        let area = area.ok_or_else(|| Problem::new("the log of the hypervisor cannot be read"))?;
        exits.push(exits_of(DIRECT, &area)?);
        let cost = |name| {
            let found = seen.costs.get(name).copied();
            found.ok_or_else(|| Problem::new(format!("`{DIRECT}` did not report `{name}`")))
        };
        spread = cost("apart")?.saturating_sub(cost("close")?);
    }
    let [few, many] = exits[..] else {
        return Err(Problem::new("nothing to compare"));
    };
    let exits = many.saturating_sub(few);
    Ok(Direct { exits, spread })
}

/// Returns the exits of a partition's first vCPU.
fn exits_of(name: &str, area: &LogArea<'_>) -> Result<u64, Problem> {
    let (names, vcpus) = area.tables();
    let is_own = |[partition, ..]: &[u8; 3]| {
        let found = names.get(usize::from(*partition));
        found.is_some_and(|found| found == name)
    };
    let number = vcpus.iter().position(is_own);
    let number = number.ok_or_else(|| Problem::new(format!("`{name}` has no vCPU")))?;
    Ok(area.exits(number).iter().sum())
}

/// Returns the system with a VM that takes its interrupts itself. The first pCPU has the board's console.
fn direct(board: &str, releases: u64, beside: Option<&str>) -> String {
    let mut text = format!(
        "board = \"{board}\"\n[pcpu.1]\npolicy = \"pinned\"\n[partition.hello]\nkind = \"vm\"\n\
         image = \"@guests/x86-hello\"\nmemory = \"2M\"\nvcpus = [{{ pcpu = 0 }}]\n\
         [partition.{DIRECT}]\nkind = \"vm\"\nimage = \"@guests/x86-direct\"\nmemory = \"2M\"\ndirect = true\n\
         bootargs = \"releases={releases}\"\nvcpus = [{{ pcpu = 1 }}]\n"
    );
    if let Some(image) = beside {
        text += &format!(
            "[pcpu.2]\npolicy = \"pinned\"\n[partition.second]\nkind = \"vm\"\nimage = \"{image}\"\n\
             memory = \"2M\"\nvcpus = [{{ pcpu = 2 }}]\n"
        );
    }
    text
}

/// Returns a partition that never starts, with a payload that has a digest.
fn idle(payload: &Path) -> String {
    let image = GUEST.image;
    format!(
        "capabilities = {{ idle = {{ partition = \"idle\", rights = [\"control\"] }} }}\n\
         [partition.idle]\nkind = \"vm\"\nimage = \"{image}\"\nramdisk = {payload:?}\nmemory = \"16M\"\n\
         vcpus = [{{ pcpu = 0 }}]\nautostart = false\n"
    )
}

/// Returns the bytes of a system image that have a digest: tables and payloads, without what is between them.
fn digested(image: &[u8]) -> Result<u64, Problem> {
    let checked = Image::check(image, &X86_64, &Portable);
    let checked = checked.map_err(|error| Problem::new(format!("the image: {error:?}")))?;
    let lengths = (0..).take(checked.payloads().len());
    let payloads: usize = lengths.map(|index| checked.payload(index).len()).sum();
    Ok(payloads as u64 + checked.tables_len())
}

/// Returns the instructions that all digests of `system` take. Its manifest is `text`. Two systems that
/// differ in the length of a payload that is not loaded show what a byte costs.
fn digests(emulator: &Emulator, text: &str, system: &Prepared, progress: &Progress) -> Result<u64, Problem> {
    let mut measured = Vec::new();
    for size in PAYLOADS {
        let payload = TemporaryFile::write("bin", &vec![0xA5; size])?;
        let system = prepare(&format!("{text}{}", idle(payload.path())), progress)?;
        let figures = run(emulator, &system)?;
        let reset = figures.get(RESET).copied();
        let reset = reset.ok_or_else(|| Problem::new("the guest did not report its start"))?;
        measured.push((reset, system.image().len() as u64));
    }
    let [(early, short), (late, long)] = measured[..] else {
        return Err(Problem::new("nothing to compare"));
    };
    let bytes = digested(system.image())?;
    Ok(late.saturating_sub(early).saturating_mul(bytes) / long.saturating_sub(short).max(1))
}

/// Runs the program on the bare PC, once with two CPUs and once with one: an idle CPU must not disturb what
/// one CPU does.
fn bare(emulator: &Emulator, file: &str) -> Result<Figures, Problem> {
    let image = Workspace::locate()?.program(file);
    measure_bare(emulator, &image, &[2, 1])
}

/// The page.
const PAGE: Page = Page {
    file: "docs/timing-x86.md",
    board: "qemu-q35-x86_64",
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
        "arch/translating",
        "arch/paging",
        "arch/x86_64/core",
        "arch/x86_64",
        "devices",
        "drivers",
        "kernel",
        "hypervisor/x86_64",
    ],
    models: &["services/virtio", "guests/serve/device-server"],
};

/// Everything that is measured, in the order of the table.
const ROWS: &[Row] = &[
    row("cpuid", "CPUID", Some(200)),
    row("null-call", "null hypercall", Some(200)),
    row(
        "version-call",
        "version by hypercall, which the kernel answers",
        None,
    ),
    row("port-read", "read a port: the mask of the 8259", Some(300)),
    row("port-write", "write a port: the mask of the 8259", Some(300)),
    row("pm-timer-read", "read a port: the PM timer", Some(300)),
    row("port-nobody", "read a port without a device", Some(300)),
    row(
        "uart-read",
        "read a port: a register of the UART, which the kernel answers",
        None,
    ),
    row("x2apic-read", "read the id of the local APIC, x2APIC", Some(300)),
    row("x2apic-write", "write the task priority, x2APIC", Some(300)),
    row("apic-read", "read the id of the local APIC, in memory", Some(300)),
    row("apic-write", "write the task priority, in memory", Some(300)),
    row("efer-read", "read EFER", None),
    row("timer-busy", "timer to guest vector, vCPU busy", Some(400)),
    row("timer-idle", "timer to guest vector, vCPU in HLT", Some(400)),
    row("ipi-self", "IPI to itself, to guest vector", Some(400)),
    row(
        "ipi-other-busy",
        "IPI to another vCPU, busy (sum of both CPUs)",
        Some(700),
    ),
    row("ipi-other-idle", "IPI to another vCPU, in HLT (sum)", Some(700)),
    row(
        "switch",
        "vCPU switch: HLT of one to the other's handler",
        Some(600),
    ),
    row(
        "direct-exits",
        "exits of a VM that takes its interrupts itself, in a thousand releases of its loop",
        Some(0),
    ),
    row(
        "direct-spread",
        "spread of the times between these releases, most less least",
        None,
    ),
    row(
        "direct-beside-exits",
        "exits of the same VM beside another VM with a control loop, in a hundred releases",
        Some(0),
    ),
    row(
        "direct-beside-spread",
        "spread of the times between these releases beside that VM",
        None,
    ),
    row(RESET, "reset to guest entry", Some(300_000)),
];

/// The reasons of the waivers.
const DECODED: &str = "the emulator has no decode assists: what is known of an instruction is compared with six words of the \
                       guest's memory";

/// The reason why a first access to the local APIC is beyond its bar.
const REMEMBERED: &str = "the instruction is fetched through the guest's tables, decoded and remembered";

/// Bars that do not hold yet.
const WAIVERS: &[Waiver] = &[
    waiver(
        "reset",
        691646,
        "the counter is measured until it is exact, and tables are checked; earlier figures took the gaps \
         between payloads for digested bytes",
    ),
    waiver(
        "switch",
        603,
        "the addresses of the last x87 instruction are made the hypervisor's own, so that no VM reads another one's",
    ),
    waiver("apic-read", 307, DECODED),
    waiver("apic-write", 317, DECODED),
    waiver("cold:apic-read", 1046, REMEMBERED),
    waiver("cold:apic-write", 1049, REMEMBERED),
    waiver(
        "cold:ipi-other-busy",
        1424,
        "the interrupt is the first one of its vCPU, and two CPUs count",
    ),
    waiver(
        SIZE,
        213221,
        "the variant for one VM has all rules of the image and all of its class",
    ),
];
