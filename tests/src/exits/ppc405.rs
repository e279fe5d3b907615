// SPDX-License-Identifier: Apache-2.0
//! The emulator's record of exceptions on class `ppc405`. An exception has a line with the address of the
//! next instruction, and the kind of the exception.
//!
//! The line does not say in which state the processor was. The hypervisor takes interrupts in one place only,
//! the loop that waits while no vCPU runs. So exceptions of that loop are left out, and all others are a
//! partition's.

use super::{ACCESS, CALL, Exits, INSTRUCTION, INTERRUPT, OTHER};
use object::{Object, ObjectSymbol};
use std::ops::Range;
use std::path::Path;

/// The symbol of the loop that waits.
const WAITS: &str = "bulkhead_idle";

/// Returns the addresses of the loop that waits: from its symbol to the next one.
///
/// # Errors
/// The class binary cannot be read, or has no such symbol.
pub(super) fn waits(class_binary: &Path) -> Result<Range<u32>, String> {
    let bytes =
        std::fs::read(class_binary).map_err(|error| format!("{}: {error}", class_binary.display()))?;
    let elf = object::File::parse(&*bytes).map_err(|error| format!("the class binary: {error}"))?;
    let start = elf.symbols().find(|symbol| symbol.name() == Ok(WAITS));
    let start = start.map(|symbol| symbol.address());
    let next = |start| {
        elf.symbols()
            .map(|symbol| symbol.address())
            .filter(|at| *at > start)
            .min()
    };
    match start.and_then(|start| Some((start, next(start)?))) {
        Some((start, end)) => Ok(start as u32..end as u32),
        None => Err(format!("the class binary has no `{WAITS}`")),
    }
}

/// Counts the exceptions of partitions in a record.
pub(super) fn count(text: &str, waits: &Range<u32>) -> Exits {
    let mut exits = Exits::new();
    let counts = exits.entry(0).or_default();
    for (at, kind) in text.lines().filter_map(exception) {
        if !waits.contains(&at) {
            counts[cause(kind)] += 1;
        }
    }
    exits
}

/// Reads `Raise exception at ADDRESS => KIND (NUMBER) error=CODE`.
fn exception(line: &str) -> Option<(u32, &str)> {
    let (at, kind) = line.strip_prefix("Raise exception at ")?.split_once(" => ")?;
    Some((u32::from_str_radix(at, 16).ok()?, kind.split(' ').next()?))
}

/// Returns the cause of an exception, by the emulator's name for its kind.
fn cause(kind: &str) -> usize {
    match kind {
        "EXTERNAL" | "PIT" => INTERRUPT,
        "SYSCALL" => CALL,
        "PROGRAM" => INSTRUCTION,
        "DTLB" | "DSI" | "ITLB" | "ISI" => ACCESS,
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "Raise exception at 00012100 => ITLB (14) error=00
Raise exception at 00012138 => PROGRAM (6) error=32
syscall r0=00000000c6000400 r3=0000000000000001 nip=400009fc
Raise exception at 400009fc => SYSCALL (8) error=00
Raise exception at 01010a10 => PIT (74) error=00
Raise exception at 01010a24 => PIT (74) error=00
";

    #[test]
    fn what_interrupts_the_loop_that_waits_is_no_exit() {
        let mut expected = [0; 7];
        for cause in [ACCESS, INSTRUCTION, CALL, INTERRUPT] {
            expected[cause] = 1;
        }
        let waits = 0x0101_0A10..0x0101_0A24;
        assert_eq!(count(RECORD, &waits), Exits::from([(0, expected)]));
    }
}
