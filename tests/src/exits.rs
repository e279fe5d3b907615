// SPDX-License-Identifier: Apache-2.0
//! Compares the hypervisor's count of exits with the emulator's own record of exceptions.
//!
//! The emulator writes each exception that it takes into a file (`-d int`). The exceptions that came to the
//! hypervisor out of a partition are counted by pCPU and cause. The log area must have the same numbers: no
//! exit is left out, and none is counted twice. The run has to end by itself, because only then no
//! exception is under way when both counts are read.

use crate::registers::{self, Access};
use bulkhead::build::prepare::Prepared;
use bulkhead::emulator::session::Outcome;
use bulkhead::log::exits::{CAUSES, ExitCounts};
use bulkhead::log::log_area::LogArea;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Exits by cause, in the order of [`CAUSES`], for each pCPU.
type Exits = BTreeMap<u32, ExitCounts>;

const INTERRUPT: usize = 0;
const CALL: usize = 1;
const ACCESS: usize = 2;
const INSTRUCTION: usize = 3;
const IDLE: usize = 4;
const FP: usize = 5;
const OTHER: usize = 6;

/// The emulator's record of one run.
#[derive(Debug)]
pub(crate) struct Exceptions {
    file: PathBuf,
    cause: fn(&Exception) -> Option<usize>,
}

/// An exception, as the emulator tells of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Exception {
    /// The pCPU.
    cpu: u32,
    /// The emulator's number of the kind.
    kind: u32,
    /// Exception levels before and in the exception; a microcontroller has none.
    levels: Option<(u8, u8)>,
    /// Number of the exception that a microcontroller takes in the end.
    vector: Option<u32>,
    /// Exception class of the syndrome, if there is a syndrome.
    class: Option<u8>,
    /// The syndrome.
    syndrome: u32,
}

impl Exceptions {
    /// Makes the record of a run of `prepared`.
    pub(crate) fn new(prepared: &Prepared) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("bulkhead-exceptions-{}-{number}", std::process::id());
        let is_small = prepared.system().board().class.name() == "armv7m";
        Self {
            file: std::env::temp_dir().join(name),
            cause: if is_small { armv7m } else { aarch64 },
        }
    }

    /// Tells what the emulator has to be told.
    pub(crate) fn arguments(&self) -> [String; 4] {
        let file = self.file.display().to_string();
        ["-d".to_owned(), "int".to_owned(), "-D".to_owned(), file]
    }

    /// Returns how the log area of the run differs from the record, if it differs.
    pub(crate) fn difference(&self, outcome: &Outcome) -> Option<String> {
        let text = match fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) => return Some(format!("the emulator's record of exceptions: {error}")),
        };
        let mut emulated = Exits::new();
        for exception in exceptions(&text) {
            if let Some(cause) = (self.cause)(&exception) {
                emulated.entry(exception.cpu).or_default()[cause] += 1;
            }
        }
        let Some(area) = outcome.log_area.as_deref().and_then(LogArea::at_start) else {
            return Some("there is no log area to compare with the emulator's exceptions".to_owned());
        };
        differ(&counted(&area), &emulated)
    }

    /// Returns how the system registers whose accesses came to the hypervisor differ from those of the
    /// documentation, if they differ.
    pub(crate) fn other_registers(&self) -> Option<String> {
        /// A trapped MRS, MSR or system instruction of AArch64 state (Arm DDI 0487 D19.2.37).
        const SYSTEM: u8 = 0x18;
        let text = match fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) => return Some(format!("the emulator's record of exceptions: {error}")),
        };
        let seen = exceptions(&text)
            .filter(|exception| aarch64(exception) == Some(INSTRUCTION))
            .map(|exception| (exception.class == Some(SYSTEM)).then(|| Access::of(exception.syndrome)))
            .collect();
        registers::difference(&seen, registers::PUBLISHED)
    }
}

impl Drop for Exceptions {
    fn drop(&mut self) {
        // Only disk space is at stake.
        let _ = fs::remove_file(&self.file);
    }
}

/// Returns the hypervisor's own counts.
fn counted(area: &LogArea<'_>) -> Exits {
    let (_, homes) = area.tables();
    let mut exits: Exits = (0..).zip(area.exits_of_nobody()).collect();
    for (number, [_, _, pcpu]) in homes.into_iter().enumerate() {
        let own = exits.entry(u32::from(pcpu)).or_default();
        for (sum, count) in own.iter_mut().zip(area.exits(number)) {
            *sum += count;
        }
    }
    exits
}

/// Describes every difference of the two counts, and a count of nothing.
fn differ(counted: &Exits, emulated: &Exits) -> Option<String> {
    if emulated.values().flatten().all(|count| *count == 0) {
        return Some("the emulator took no exception to the hypervisor".to_owned());
    }
    let mut text = String::new();
    for pcpu in emulated
        .keys()
        .chain(counted.keys().filter(|pcpu| !emulated.contains_key(pcpu)))
    {
        let none = [0; CAUSES.len()];
        let (ours, theirs) = (
            counted.get(pcpu).unwrap_or(&none),
            emulated.get(pcpu).unwrap_or(&none),
        );
        for ((ours, theirs), (cause, _)) in ours.iter().zip(theirs).zip(CAUSES) {
            if ours != theirs {
                let _ = write!(
                    text,
                    "\n    pCPU {pcpu}, {cause}: {ours} counted, {theirs} emulated"
                );
            }
        }
    }
    (!text.is_empty()).then(|| format!("the exits are not the emulator's:{text}"))
}

/// Reads the emulator's record.
fn exceptions(text: &str) -> impl Iterator<Item = Exception> {
    let mut lines = text.lines().peekable();
    std::iter::from_fn(move || {
        let mut exception = lines.by_ref().find_map(first_line)?;
        while let Some(line) = lines.next_if(|line| first_line(line).is_none()) {
            if let Some(levels) = line.strip_prefix("...from EL") {
                exception.levels = levels
                    .split_once(" to EL")
                    .and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
            } else if let Some(syndrome) = line.strip_prefix("...with ESR 0x") {
                let number = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
                let parts = syndrome.split_once('/');
                exception.class = parts.and_then(|(class, _)| u8::from_str_radix(class, 16).ok());
                exception.syndrome = parts.and_then(|(_, all)| number(all)).unwrap_or(0);
            } else if let Some(vector) = line.strip_prefix("...taking pending nonsecure exception ") {
                exception.vector = vector.parse().ok();
            }
        }
        Some(exception)
    })
}

/// Reads `Taking exception KIND [NAME] on CPU N`.
fn first_line(line: &str) -> Option<Exception> {
    let (kind, rest) = line.strip_prefix("Taking exception ")?.split_once(' ')?;
    let (_, cpu) = rest.rsplit_once(" on CPU ")?;
    Some(Exception {
        cpu: cpu.trim().parse().ok()?,
        kind: kind.parse().ok()?,
        ..Exception::default()
    })
}

/// Returns the cause of an exit on class aarch64, which is an exception from EL1 or EL0 to EL2.
fn aarch64(exception: &Exception) -> Option<usize> {
    /// The emulator's numbers of IRQ, FIQ and SError.
    const ASYNCHRONOUS: [(u32, usize); 3] = [(5, INTERRUPT), (6, INTERRUPT), (24, OTHER)];
    exception.levels.filter(|(from, to)| *from < 2 && *to == 2)?;
    let asynchronous = ASYNCHRONOUS.iter().find(|(kind, _)| *kind == exception.kind);
    if let Some((_, cause)) = asynchronous {
        return Some(*cause);
    }
    // Arm DDI 0487 D19.2.37.
    Some(match exception.class? {
        0x12 | 0x13 | 0x15 | 0x16 | 0x17 => CALL,
        0x24 => ACCESS,
        0x03..=0x06 | 0x08 | 0x0C | 0x18 => INSTRUCTION,
        0x01 => IDLE,
        0x07 => FP,
        _ => OTHER,
    })
}

/// Returns the cause of an exit on class armv7m: each exception but PendSV, with which the hypervisor begins.
/// The guest's own exceptions are none of the CPU's.
const fn armv7m(exception: &Exception) -> Option<usize> {
    // Arm DDI 0403E.e B1.5.2.
    match exception.vector {
        Some(3) => Some(OTHER),
        Some(4 | 5) => Some(ACCESS),
        Some(6) => Some(INSTRUCTION),
        Some(11) => Some(CALL),
        Some(16..) => Some(INTERRUPT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "\
Taking exception 5 [IRQ] on CPU 1
...from EL1 to EL2
...with ESR 0x24/0x93810007
...to EL2 PC 0x40200480 PSTATE 0x3c9
Taking exception 2 [SVC] on CPU 0
...from EL0 to EL1
...with ESR 0x15/0x56000000
Exception return from AArch64 EL2 to AArch64 EL1 PC 0x40400000
Taking exception 4 [Data Abort] on CPU 0
...from EL1 to EL2
...with ESR 0x24/0x93810007
";

    #[test]
    fn exceptions_to_the_hypervisor_are_counted_by_cause_and_cpu() {
        let causes: Vec<_> = exceptions(RECORD)
            .map(|exception| (exception.cpu, aarch64(&exception)))
            .collect();
        assert_eq!(causes, [(1, Some(INTERRUPT)), (0, None), (0, Some(ACCESS))]);
    }

    const SMALL_RECORD: &str = "\
Loaded reset SP 0x0 PC 0x3d8001 from vector table
Taking exception 5 [IRQ] on CPU 0
...taking pending nonsecure exception 14
...loaded new PC 0x3d8241
Taking exception 8 [QEMU v7M exception exit] on CPU 0
Exception return: magic PC fffffffd previous exception 14
...successful exception return
Taking exception 4 [Data Abort] on CPU 0
...at fault address 0x40004010
...with CFSR.DACCVIOL and MMFAR 0x40004010
...taking pending nonsecure exception 4
Taking exception 8 [QEMU v7M exception exit] on CPU 0
...tailchaining to pending nonsecure exception 26
...taking pending nonsecure exception 26
";

    #[test]
    fn a_microcontroller_takes_its_exceptions_by_their_vectors() {
        let causes: Vec<_> = exceptions(SMALL_RECORD)
            .map(|exception| armv7m(&exception))
            .collect();
        assert_eq!(causes, [None, None, Some(ACCESS), Some(INTERRUPT)]);
    }

    #[test]
    fn one_exit_too_many_or_too_few_is_a_difference() {
        let of = |pairs: &[(u32, usize, u64)]| {
            let mut exits = Exits::new();
            for (pcpu, cause, count) in pairs {
                exits.entry(*pcpu).or_default()[*cause] += count;
            }
            exits
        };
        let emulated = of(&[(0, ACCESS, 852), (1, INTERRUPT, 3)]);
        assert_eq!(differ(&emulated, &emulated), None);
        for other in [
            of(&[(0, ACCESS, 851), (1, INTERRUPT, 3)]),
            of(&[(0, ACCESS, 852)]),
            of(&[(0, ACCESS, 852), (1, INTERRUPT, 3), (2, FP, 1)]),
            of(&[(0, ACCESS, 852), (1, IDLE, 3)]),
            of(&[(1, ACCESS, 852), (0, INTERRUPT, 3)]),
        ] {
            assert!(differ(&other, &emulated).is_some(), "{other:?}");
        }
        assert!(differ(&of(&[]), &of(&[])).is_some(), "nothing was compared");
    }
}
