// SPDX-License-Identifier: Apache-2.0
//! Costs of Linux's own operations, on the bare board and in a VM.
//!
//! Debian's kernel starts the same program (`guests/bench/linux-bench`) as its first process in both runs,
//! with one CPU and the same memory. An operation that needs no exit costs the same in both runs, plus its
//! share of the exits of the tick. The bare board has no EL2, as a VM has none, so the kernel does the same
//! in both runs.

use super::board_named;
use super::runs::{Reader, counting, emulator_of, launch, prepare, run};
use bulkhead::build::artifacts::Workspace;
use bulkhead::build::host::cache_folder;
use bulkhead::build::payloads::{Payloads, Request};
use bulkhead::build::tables::table;
use bulkhead::emulator::launch::TemporaryFile;
use bulkhead::emulator::session::{self, Limits, NoInput};
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::board::Emulator;
use bulkhead_manifest::with_init;
use std::collections::BTreeMap;
use std::path::PathBuf;

const BOARD: &str = "qemu-virt-aarch64";
const KERNEL: &str = "linux-arm64";
const ARCHIVE: &str = "initramfs";
const PROGRAM: &str = "guest-linux-bench";
const MEMORY: &str = "256M";
const BOOTARGS: &str = "console=ttyAMA0 quiet nokaslr";

/// Most that an operation may cost more in a VM, in percent.
const BAR: u64 = 5;
/// The slack of a figure, in nanoseconds: a smaller figure differs by more than the bar without a cause.
const SLACK: u64 = 100;

/// The slack of the lateness of sleeps, in nanoseconds. Ticks and background work of the kernel fall among
/// the sleeps of one run and not of the other, so this lateness has a slack of its own.
const LATER: u64 = 10_000;
const SLEEP: &str = "sleep";

/// The measured operations: the name, and the title for people.
const ROWS: &[(&str, &str)] = &[
    ("syscall", "system call (getppid)"),
    ("read", "read of a byte from /dev/zero"),
    ("write", "write of a byte to /dev/null"),
    ("stat", "stat"),
    ("open", "open and close"),
    ("signal-install", "signal handler installed"),
    ("signal", "signal to itself, handled"),
    ("map", "mmap and munmap of 256 KiB"),
    ("fault", "page fault of anonymous memory"),
    ("pipe", "byte to another process and back, pipe"),
    ("socket", "byte to another process and back, socket"),
    ("fork", "fork, exit, wait"),
    ("exec", "fork, exec, exit, wait"),
    (SLEEP, "how late a sleep of 1 ms ends"),
];

/// Instructions of each operation, by its name: bare, and in a VM.
#[derive(Debug, Default)]
pub struct Linux {
    bare: BTreeMap<String, u64>,
    hypervised: BTreeMap<String, u64>,
}

/// Measures both.
///
/// # Errors
/// Something is missing, or a run fails.
pub fn measure(progress: &Progress) -> Result<Linux, Problem> {
    let board = board_named(BOARD)?;
    let emulator = emulator_of(&board)?;
    let system = prepare(&manifest(), progress)?;
    let mut found = Linux::default();
    progress.step("measuring Linux on the bare board", || {
        found.bare = run_bare(emulator, progress)?;
        Ok(())
    })?;
    progress.step("measuring Linux in a VM", || {
        found.hypervised = run(emulator, &system)?;
        Ok(())
    })?;
    Ok(found)
}

fn manifest() -> String {
    format!(
        "board = \"{BOARD}\"\n[partition.linux]\nkind = \"vm\"\nimage = \"@debian/{KERNEL}\"\nramdisk = \"@debian/{ARCHIVE}\"\n\
         init = \"@guests/linux-bench\"\nbootargs = \"{BOOTARGS}\"\nmemory = \"{MEMORY}\"\nvcpus = [{{ pcpu = 0 }}]\n"
    )
}

/// Returns the file of a payload from Debian.
fn payload(name: &str, progress: &Progress) -> Result<PathBuf, Problem> {
    let request = Request::read(name).ok_or_else(|| Problem::new(format!("no payload `{name}`")))?;
    Payloads::new(cache_folder()).provide(request, progress)
}

fn run_bare(emulator: &Emulator, progress: &Progress) -> Result<BTreeMap<String, u64>, Problem> {
    let read = |path: PathBuf| std::fs::read(&path).map_err(Problem::io(path.display()));
    let kernel = payload(KERNEL, progress)?;
    let archive = read(payload(ARCHIVE, progress)?)?;
    let program = read(Workspace::locate()?.program(PROGRAM))?;
    let disk = TemporaryFile::write("cpio", &with_init(&archive, &program))?;
    let bare = counting(emulator, &emulator.bare);
    let launch = launch();
    let mut command = launch.command(&bare, &kernel, 1, None);
    let disk = disk.path().display().to_string();
    let more = ["-m", MEMORY, "-initrd", &disk, "-append", BOOTARGS];
    command.extend(more.map(str::to_owned));
    let limits = Limits {
        virtual_time: None,
        ..launch.limits()
    };
    let mut reader = Reader::default();
    session::run(&command, limits, None, &mut reader, &mut NoInput, None)?;
    reader.figures()
}

impl Linux {
    fn rows(&self) -> impl Iterator<Item = Measured> {
        ROWS.iter().filter_map(|(key, title)| {
            Some(Measured {
                key,
                title,
                bare: *self.bare.get(*key)?,
                hypervised: *self.hypervised.get(*key)?,
            })
        })
    }

    /// Returns the table for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = table(&["operation of Linux, in instructions", "bare", "in a VM", "ratio"]);
        for row in self.rows() {
            table.add_row([
                row.title.to_owned(),
                row.bare.to_string(),
                row.hypervised.to_string(),
                row.ratio(),
            ]);
        }
        format!("{table}\n")
    }

    /// Returns the operations that cost too much in a VM, and those that were not measured.
    #[must_use]
    pub fn broken(&self) -> Vec<String> {
        let missing = ROWS
            .iter()
            .filter(|(key, _)| !self.bare.contains_key(*key) || !self.hypervised.contains_key(*key));
        let missing = missing.map(|(_, title)| format!("{title}: not measured"));
        let dear = self.rows().filter_map(|row| {
            let (bare, hypervised, most) = (row.bare, row.hypervised, row.most());
            (hypervised > most).then(|| {
                format!(
                    "{}: {hypervised} instructions in a VM, {bare} on the bare board, at most {most} are good enough",
                    row.title
                )
            })
        });
        missing.chain(dear).collect()
    }
}

/// An operation.
struct Measured {
    key: &'static str,
    title: &'static str,
    bare: u64,
    hypervised: u64,
}

impl Measured {
    /// Returns the ratio of the second figure to the first one.
    fn ratio(&self) -> String {
        format!("{:.3}", self.hypervised as f64 / self.bare.max(1) as f64)
    }

    /// Returns the most that the operation may cost in a VM.
    fn most(&self) -> u64 {
        let slack = if self.key == SLEEP { LATER } else { SLACK };
        self.bare.saturating_mul(100 + BAR) / 100 + slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linux(bare: u64, hypervised: u64) -> Linux {
        let all = |figure: u64| ROWS.iter().map(|(key, _)| ((*key).to_owned(), figure)).collect();
        Linux {
            bare: all(bare),
            hypervised: all(hypervised),
        }
    }

    #[test]
    fn an_operation_that_costs_too_much_or_is_missing_is_told() {
        assert!(linux(10_000, 10_600).broken().is_empty());
        let mut dear = linux(10_000, 10_601);
        assert_eq!(dear.broken().len(), ROWS.len() - 1, "a sleep may be later");
        assert_eq!(linux(10_000, 20_501).broken().len(), ROWS.len());
        dear.bare.remove("pipe");
        let broken = dear.broken();
        assert!(broken.contains(&"byte to another process and back, pipe: not measured".to_owned()));
        assert_eq!(broken.len(), ROWS.len() - 1);
    }

    #[test]
    fn ratios_have_three_digits() {
        assert!(linux(1000, 1015).text().contains("1.015"));
        assert!(linux(0, 0).text().contains("0.000"));
    }
}
