// SPDX-License-Identifier: Apache-2.0
//! The exit that the kernel is told.

use bulkhead_arch_api::Exit;

/// Returns a copy of an exit. Most exits are a word or two, so the common ones are copied without the unused
/// rest.
#[inline(always)]
#[must_use]
pub fn told(exit: &Exit) -> Exit {
    match *exit {
        Exit::Device(vcpus, line) => Exit::Device(vcpus, line),
        Exit::Idle { until } => Exit::Idle { until },
        Exit::Interrupt(line) => Exit::Interrupt(line),
        Exit::Deadline => Exit::Deadline,
        other => other,
    }
}
