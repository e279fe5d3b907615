// SPDX-License-Identifier: Apache-2.0
//! Instructions between two moments, counted exactly in the emulator's log of executed instructions.
//!
//! Time cannot be read at a breakpoint: QEMU 7.2 takes a CPU that stands still for one that waits, and its
//! clock goes on. So from the arrival on, the machine executes one instruction at a time and logs each
//! (`-d exec`), and each exception (`-d int`), until it stops at the user's code. The log of a sample is some
//! hundred kilobytes. Outside of samples the machine runs at full speed.

use super::remote::Remote;
use crate::steps::Line;
use bulkhead::emulator::launch::TemporaryFile;
use bulkhead::problem::Problem;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// The commands to the emulator before the measurement and after it.
const BEGIN: [&str; 2] = ["singlestep on", "log exec,int,nochain"];
const END: [&str; 2] = ["log none", "singlestep off"];

/// The emulator's log.
pub(super) struct Log(TemporaryFile);

/// The number of executed instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
    /// The number of instructions since the exception was taken, if it was.
    pub(super) since_exception: Option<u64>,
    /// All.
    pub(super) all: u64,
}

impl Log {
    /// Makes an empty log.
    pub(super) fn new() -> Result<Self, Problem> {
        TemporaryFile::write("log", &[]).map(Self)
    }

    /// Returns the arguments with which the emulator starts.
    pub(super) fn arguments(&self) -> [String; 2] {
        ["-D".to_owned(), self.0.path().display().to_string()]
    }

    /// Runs a stopped machine until it stops again.
    pub(super) fn count(&self, remote: &mut Remote, exception: u32) -> Result<Steps, Problem> {
        let failed = |why| Problem::io(self.0.path().display())(why);
        // The emulator appends to the log, so the log is emptied first.
        File::create(self.0.path()).map_err(failed)?;
        for command in BEGIN {
            remote.tell(command)?;
        }
        remote.resume()?;
        remote.stopped()?;
        for command in END {
            remote.tell(command)?;
        }
        let log = File::open(self.0.path()).map_err(failed)?;
        count(BufReader::new(log), exception).map_err(failed)
    }
}

/// Counts the instructions in a log.
fn count(log: impl BufRead, exception: u32) -> std::io::Result<Steps> {
    let taken = format!("exception {exception}");
    let mut steps = Steps {
        since_exception: None,
        all: 0,
    };
    let mut lines = log.split(b'\n');
    while let Some(line) = lines.next().transpose()? {
        let more = match Line::of(&line) {
            Line::Begun(_) => 1,
            Line::Undone => -1,
            Line::Other => {
                let line = String::from_utf8_lossy(&line);
                if line.starts_with("...taking pending") && line.ends_with(&taken) {
                    steps.since_exception.get_or_insert(0);
                }
                0
            }
        };
        steps.all = steps.all.saturating_add_signed(more);
        steps.since_exception = steps
            .since_exception
            .map(|count| count.saturating_add_signed(more));
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
Trace 0: 0x7f0 [00000000/00000100/00000000/ff002201] one\n\
Trace 0: 0x7f0 [00000000/00000102/00000000/ff002201] two\n\
cpu_io_recompile: rewound execution of TB to 00000102\n\
Trace 0: 0x7f0 [00000000/00000102/00000000/ff002201] two\n\
Stopped execution of TB chain before 0x7f0 [00000102] two\n\
Taking exception 5 [IRQ] on CPU 0\n\
...taking pending nonsecure exception 18\n\
...loading from element 18 of non-secure vector table at 0x48\n\
Trace 0: 0x7f0 [00000000/00000200/00000000/ff002201] isr\n\
Trace 0: 0x7f0 [00000000/00000202/00000000/ff002201] isr\n";

    #[test]
    fn what_was_executed_is_counted_and_what_was_not_is_not() {
        let steps = count(LOG.as_bytes(), 18).unwrap();
        assert_eq!((steps.all, steps.since_exception), (3, Some(2)));
        let steps = count(LOG.as_bytes(), 8).unwrap();
        assert_eq!((steps.all, steps.since_exception), (3, None));
    }
}
