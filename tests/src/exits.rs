// SPDX-License-Identifier: Apache-2.0
//! Compares the hypervisor's count of exits with the emulator's own record of exceptions.
//!
//! The emulator writes each exception that it takes into a file (`-d int`), or each exit of a guest on class
//! `x86_64` (`-d in_asm`). Those that came to the hypervisor out of a partition are counted by pCPU and
//! cause. The log area must have the same numbers: no exit is left out, and none is counted twice. The run
//! has to end by itself, because only then no exception is under way when both counts are read.

mod arm;
mod ppc405;
mod x86_64;

use crate::registers;
use bulkhead::build::prepare::Prepared;
use bulkhead::emulator::session::Outcome;
use bulkhead::log::exits::{CAUSES, ExitCounts};
use bulkhead::log::log_area::LogArea;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::ops::Range;
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
    kind: Kind,
}

/// The kinds of records, which differ with the class.
#[derive(Debug)]
enum Kind {
    Aarch64,
    Armv7m,
    Armv8m,
    /// With the addresses of the code that waits while no vCPU runs.
    Ppc405(Range<u32>),
    X86,
}

impl Exceptions {
    /// Makes the record of a run of `prepared`.
    ///
    /// # Errors
    /// The class binary cannot be read, or has not what its class needs here.
    pub(crate) fn new(prepared: &Prepared) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("bulkhead-exceptions-{}-{number}", std::process::id());
        let kind = match prepared.system().board().class.name() {
            "armv7m" => Kind::Armv7m,
            "armv8m" => Kind::Armv8m,
            "ppc405" => Kind::Ppc405(ppc405::waits(prepared.class_binary())?),
            "x86_64" => Kind::X86,
            "aarch64" => Kind::Aarch64,
            other => {
                return Err(format!(
                    "the emulator's record for class `{other}` is not understood"
                ));
            }
        };
        Ok(Self {
            file: std::env::temp_dir().join(name),
            kind,
        })
    }

    /// Tells what the emulator has to be told.
    pub(crate) fn arguments(&self) -> [String; 4] {
        let file = self.file.display().to_string();
        let what = match self.kind {
            Kind::X86 => "in_asm",
            _ => "int",
        };
        ["-d".to_owned(), what.to_owned(), "-D".to_owned(), file]
    }

    /// Returns how the log area of the run differs from the record, if it differs.
    pub(crate) fn difference(&self, outcome: &Outcome) -> Option<String> {
        let text = match self.text() {
            Ok(text) => text,
            Err(why) => return Some(why),
        };
        let emulated = match &self.kind {
            Kind::Aarch64 => arm::count(&text, arm::aarch64),
            Kind::Armv7m => arm::count(&text, arm::armv7m),
            Kind::Armv8m => arm::count(&text, arm::armv8m),
            Kind::Ppc405(waits) => ppc405::count(&text, waits),
            Kind::X86 => x86_64::count(&text),
        };
        let Some(area) = outcome.log_area.as_deref().and_then(LogArea::at_start) else {
            return Some("there is no log area to compare with the emulator's exceptions".to_owned());
        };
        let mut counted = counted(&area);
        if matches!(self.kind, Kind::X86) {
            counted = together(&counted);
        }
        differ(&counted, &emulated)
    }

    /// Returns how the system registers whose accesses came to the hypervisor differ from the registers of
    /// the documentation, if they differ.
    pub(crate) fn other_registers(&self) -> Option<String> {
        match self.text() {
            Ok(text) => registers::difference(&arm::trapped(&text), registers::PUBLISHED),
            Err(why) => Some(why),
        }
    }

    /// Returns the record. Instructions of guests in it can be any bytes.
    fn text(&self) -> Result<String, String> {
        match fs::read(&self.file) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => Err(format!("the emulator's record of exceptions: {error}")),
        }
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

/// Returns the sums of all pCPUs, as if they were one: the record of class `x86_64` names no pCPU.
fn together(exits: &Exits) -> Exits {
    let mut sums = ExitCounts::default();
    for counts in exits.values() {
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    Exits::from([(0, sums)])
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

#[cfg(test)]
mod tests {
    use super::*;

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
