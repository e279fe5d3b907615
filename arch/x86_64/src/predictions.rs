// SPDX-License-Identifier: Apache-2.0
//! Predictions of branches, which a partition must not make for another one (CVE-2017-5715).

use crate::sysreg;
use bulkhead_arch_api::PartitionId;

/// PRED_CMD, and its bit IBPB (AMD, "Indirect Branch Control Extension").
const PREDICTION_COMMAND: u32 = 0x49;
const BARRIER: u64 = 1;
/// CPUID: capacities of the processor, and the bit of EBX for that register.
const CAPACITIES: u32 = 0x8000_0008;
const HAS_BARRIER: u32 = 1 << 12;
/// DE_CFG, and its bit that makes LFENCE wait for all instructions before it. Guests are told that it is set.
const DECODER: u32 = 0xC001_1029;
const FENCE_WAITS: u64 = 1 << 1;
/// The first family of processors with that register.
const FIRST_FAMILY: u32 = 0x10;

/// The owner of the predictions of a pCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predictions {
    /// The partition that ran last, if the processor has the barrier.
    taught: Option<PartitionId>,
}

impl Predictions {
    /// Of a processor that was not asked yet, or has no barrier.
    pub(crate) const UNKNOWN: Self = Self { taught: None };

    /// Asks this pCPU for its barrier, and makes LFENCE wait.
    pub(crate) fn of_this_cpu() -> Self {
        let [signature, ..] = sysreg::cpuid(1, 0);
        let [last, ..] = sysreg::cpuid(0x8000_0000, 0);
        if family(signature) >= FIRST_FAMILY {
            sysreg::write_msr(DECODER, sysreg::read_msr(DECODER) | FENCE_WAITS);
        }
        let has_barrier = last >= CAPACITIES && {
            let [_, features, ..] = sysreg::cpuid(CAPACITIES, 0);
            features & HAS_BARRIER != 0
        };
        Self {
            taught: has_barrier.then_some(PartitionId(u8::MAX)),
        }
    }

    /// Tells whether the processor has the barrier.
    pub(crate) const fn need_barrier(&self) -> bool {
        self.taught.is_some()
    }

    /// Makes the pCPU forget them if another partition has taught them.
    pub(crate) fn belong_to(&mut self, partition: PartitionId) {
        if let Some(taught) = &mut self.taught
            && *taught != partition
        {
            *taught = partition;
            sysreg::write_msr(PREDICTION_COMMAND, BARRIER);
        }
    }
}

/// Returns the family of a processor by EAX of CPUID leaf 1.
const fn family(signature: u32) -> u32 {
    let base = signature >> 8 & 0xF;
    if base == 0xF {
        base + (signature >> 20 & 0xFF)
    } else {
        base
    }
}
