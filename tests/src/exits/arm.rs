// SPDX-License-Identifier: Apache-2.0
//! The emulator's record of exceptions on the classes of Arm.

use super::{ACCESS, CALL, Exits, FP, IDLE, INSTRUCTION, INTERRUPT, OTHER};
use crate::registers::Access;
use std::collections::BTreeSet;

/// An exception, as the emulator tells of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Exception {
    /// The pCPU.
    cpu: u32,
    /// The emulator's number of the kind.
    kind: u32,
    /// Exception levels before and in the exception; a microcontroller has none.
    levels: Option<(u8, u8)>,
    /// Number of the exception that a microcontroller takes in the end.
    vector: Option<u32>,
    /// True if the Secure world takes it.
    secure: bool,
    /// Exception class of the syndrome, if there is a syndrome.
    class: Option<u8>,
    /// The syndrome.
    syndrome: u32,
}

/// Counts the exceptions of a record to which `cause` gives a cause.
pub(super) fn count(text: &str, cause: fn(&Exception) -> Option<usize>) -> Exits {
    let mut emulated = Exits::new();
    for exception in exceptions(text) {
        if let Some(cause) = cause(&exception) {
            emulated.entry(exception.cpu).or_default()[cause] += 1;
        }
    }
    emulated
}

/// Returns the accesses to system registers that came to the hypervisor of class aarch64. `None` is another
/// trapped instruction.
pub(super) fn trapped(text: &str) -> BTreeSet<Option<Access>> {
    /// A trapped MRS, MSR or system instruction of AArch64 state (Arm DDI 0487 D19.2.37).
    const SYSTEM: u8 = 0x18;
    exceptions(text)
        .filter(|exception| aarch64(exception) == Some(INSTRUCTION))
        .map(|exception| (exception.class == Some(SYSTEM)).then(|| Access::of(exception.syndrome)))
        .collect()
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
            } else if let Some(vector) = line.strip_prefix("...taking pending secure exception ") {
                exception.vector = vector.parse().ok();
                exception.secure = true;
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
pub(super) fn aarch64(exception: &Exception) -> Option<usize> {
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
pub(super) const fn armv7m(exception: &Exception) -> Option<usize> {
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

/// Returns the cause of an exit on class armv8m: each exception of the Secure world but PendSV, with which
/// the hypervisor begins. A VM's own exceptions are the Non-secure world's.
pub(super) const fn armv8m(exception: &Exception) -> Option<usize> {
    if !exception.secure {
        return None;
    }
    // Arm DDI 0553B, B3.8.
    match exception.vector {
        Some(3) => Some(OTHER),
        Some(4 | 5 | 7) => Some(ACCESS),
        Some(6) => Some(INSTRUCTION),
        Some(11) => Some(CALL),
        Some(16..) => Some(INTERRUPT),
        // SysTick only follows a line, which is counted.
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
}
