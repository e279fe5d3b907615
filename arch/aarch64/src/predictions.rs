// SPDX-License-Identifier: Apache-2.0
//! Predictions of branches, which a partition must not make for another one (CVE-2017-5715).
//!
//! Where a CPU needs a barrier, its vCPUs take the slow way of a switch. So the barrier costs nothing on
//! other CPUs.

use crate::firmware::firmware;
use crate::sysreg::read_register;
use bulkhead_arch_aarch64_core::predictions::{Answers, needs_barrier};
use bulkhead_arch_api::PartitionId;

/// PSCI_FEATURES (Arm DEN 0022E 5.15).
const PSCI_FEATURES: u64 = 0x8400_000A;
/// Calls of Arm DEN 0028F, section 7.
const SMCCC_VERSION: u64 = 0x8000_0000;
const ARCH_FEATURES: u64 = 0x8000_0001;
const WORKAROUND_1: u64 = 0x8000_8000;

/// The owner of the predictions of a pCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predictions {
    /// The partition that ran last, if the CPU needs the barrier.
    taught: Option<PartitionId>,
}

impl Predictions {
    /// Of a CPU that was not asked yet, or needs no barrier.
    pub(crate) const UNKNOWN: Self = Self { taught: None };

    /// Asks this CPU, and the firmware about it.
    pub(crate) fn of_this_cpu() -> Self {
        // An SMCCC call answers with 32 bits.
        let ask = |function, of| firmware(function, [of, 0, 0]) as i32;
        let needs = needs_barrier(&Answers {
            processor: read_register!("id_aa64pfr0_el1"),
            has_version: || ask(PSCI_FEATURES, SMCCC_VERSION),
            version: || ask(SMCCC_VERSION, 0),
            has_barrier: || ask(ARCH_FEATURES, WORKAROUND_1),
        });
        Self {
            taught: needs.then_some(PartitionId(u8::MAX)),
        }
    }

    /// Tells whether the CPU needs the barrier.
    pub(crate) const fn need_barrier(&self) -> bool {
        self.taught.is_some()
    }

    /// Makes the CPU forget them if another partition has taught them.
    pub(crate) fn belong_to(&mut self, partition: PartitionId) {
        if let Some(taught) = &mut self.taught
            && *taught != partition
        {
            *taught = partition;
            firmware(WORKAROUND_1, [0; 3]);
        }
    }
}
