// SPDX-License-Identifier: Apache-2.0
//! Predictions of branches ([`Predictions`]).
//!
//! Where a CPU needs a barrier, its vCPUs take the slow way of a switch. So the barrier costs nothing on
//! other CPUs.

use crate::firmware::firmware;
use crate::sysreg::read_register;
use bulkhead_arch_aarch64_core::predictions::{Answers, needs_barrier};
use bulkhead_arch_translating::Predictions;

/// PSCI_FEATURES (Arm DEN 0022E 5.15).
const PSCI_FEATURES: u64 = 0x8400_000A;
/// Calls of Arm DEN 0028F, section 7.
const SMCCC_VERSION: u64 = 0x8000_0000;
const ARCH_FEATURES: u64 = 0x8000_0001;
const WORKAROUND_1: u64 = 0x8000_8000;

/// Returns the predictions of this CPU, after asking the CPU and its firmware.
pub(crate) fn of_this_cpu() -> Predictions {
    // An SMCCC call answers with 32 bits.
    let ask = |function, of| firmware(function, [of, 0, 0]) as i32;
    Predictions::new(needs_barrier(&Answers {
        processor: read_register!("id_aa64pfr0_el1"),
        has_version: || ask(PSCI_FEATURES, SMCCC_VERSION),
        version: || ask(SMCCC_VERSION, 0),
        has_barrier: || ask(ARCH_FEATURES, WORKAROUND_1),
    }))
}

/// Has this CPU forget what it predicts.
pub(crate) fn forget() {
    firmware(WORKAROUND_1, [0; 3]);
}
