// SPDX-License-Identifier: Apache-2.0
//! The emulator's log of executed instructions, one line for each (`-singlestep -d exec,nochain`).
//!
//! Some instructions do not come to their end: an interrupt comes first, or the instruction accesses a device
//! and is done again by itself. Such an instruction has a line of its own that says so.

use bulkhead::problem::Problem;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The arguments of an emulator that logs each instruction to its standard error output.
const LOGGED: [&str; 3] = ["-singlestep", "-d", "exec,nochain"];

/// The longest time of a run on the wall.
const LONGEST: Duration = Duration::from_secs(100);

/// A line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// The instruction at this address was begun.
    Begun(u32),
    /// The instruction that was begun last was not executed.
    Undone,
    /// Something else.
    Other,
}

impl Line {
    /// Returns what a line of the log says.
    pub(crate) fn of(line: &[u8]) -> Self {
        if line.starts_with(b"Trace ") {
            address(line).map_or(Self::Other, Self::Begun)
        } else if line.starts_with(b"Stopped execution")
            || line.windows(17).any(|part| part == b"rewound execution")
        {
            Self::Undone
        } else {
            Self::Other
        }
    }
}

/// Returns the address in a line such as `Trace 0: 0x7f0 [00000000/00000100/00000000/ff002201] name`.
fn address(line: &[u8]) -> Option<u32> {
    let digits = line.split(|byte| *byte == b'/').nth(1)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// An emulator that ends with this value, or after the longest time.
struct Emulator {
    child: Arc<Mutex<Child>>,
    /// Dropped with this value, which ends the thread that waits for the longest time.
    _over: Sender<()>,
}

impl Emulator {
    /// Watches an emulator.
    fn new(child: Child) -> Self {
        let child = Arc::new(Mutex::new(child));
        let (over, is_over) = channel();
        let watched = Arc::clone(&child);
        thread::spawn(move || {
            if is_over.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
                end(&watched);
            }
        });
        Self { child, _over: over }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        end(&self.child);
    }
}

/// Ends an emulator, which may have ended by itself.
fn end(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = child.kill();
    let _ = child.wait();
}

/// Runs an emulator, and hands on the address of each instruction that it executes, until `take` returns
/// true.
///
/// # Errors
/// The emulator ends before, by itself or after the longest time.
pub(crate) fn follow(command: &[String], mut take: impl FnMut(u32) -> bool) -> Result<(), Problem> {
    let (program, arguments) = command.split_first().ok_or_else(|| Problem::new("no emulator"))?;
    let child = Command::new(program)
        .args(arguments)
        .args(LOGGED)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(Problem::io(program))?;
    let log = child.stderr.take();
    let _emulator = Emulator::new(child);
    let log = log.ok_or_else(|| Problem::new("no log"))?;
    let mut log = BufReader::with_capacity(1 << 20, log);
    let (mut line, mut begun) = (Vec::new(), None);
    while log.read_until(b'\n', &mut line).map_err(Problem::io("the log"))? != 0 {
        match Line::of(&line) {
            Line::Begun(next) => {
                if begun.replace(next).is_some_and(&mut take) {
                    return Ok(());
                }
            }
            Line::Undone => begun = None,
            Line::Other => {}
        }
        line.clear();
    }
    Err(Problem::new("the emulator ended before the measurement did"))
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn a_line_begins_an_instruction_or_takes_it_back() {
        for (line, means) in [
            (
                "Trace 0: 0x7f0 [00000000/00000102/00000000/ff002201] two\n",
                Line::Begun(0x102),
            ),
            (
                "Stopped execution of TB chain before 0x7f0 [00000102] two\n",
                Line::Undone,
            ),
            (
                "cpu_io_recompile: rewound execution of TB to 00000102\n",
                Line::Undone,
            ),
            ("Taking exception 5 [IRQ] on CPU 0\n", Line::Other),
        ] {
            assert_eq!(Line::of(line.as_bytes()), means, "{line}");
        }
    }
}
