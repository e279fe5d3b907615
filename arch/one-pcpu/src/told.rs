// SPDX-License-Identifier: Apache-2.0
//! The exit that the kernel is told.

use bulkhead_arch_api::Exit;

/// Returns a copy of an exit. Most exits are a word or two, so the common ones are copied without the unused
/// rest. From a shared reference, the compiler would make one copy of the whole again.
#[inline(always)]
#[must_use]
pub fn told(exit: &mut Exit) -> Exit {
    match *exit {
        Exit::Device(vcpus, line) => Exit::Device(vcpus, line),
        Exit::Idle { until } => Exit::Idle { until },
        Exit::Interrupt(line) => Exit::Interrupt(line),
        Exit::Deadline => Exit::Deadline,
        other => other,
    }
}
