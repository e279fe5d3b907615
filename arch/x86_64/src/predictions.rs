// SPDX-License-Identifier: Apache-2.0
//! Predictions of branches ([`Predictions`]), and the instruction that waits for them.

use crate::sysreg;
use bulkhead_arch_translating::Predictions;

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

/// Returns the predictions of this pCPU, whose processor has the barrier or not.
pub(crate) fn of_this_cpu() -> Predictions {
    let [last, ..] = sysreg::cpuid(0x8000_0000, 0);
    let has_barrier = last >= CAPACITIES && {
        let [_, features, ..] = sysreg::cpuid(CAPACITIES, 0);
        features & HAS_BARRIER != 0
    };
    Predictions::new(has_barrier)
}

/// Has this pCPU forget what it predicts.
pub(crate) fn forget() {
    sysreg::write_msr(PREDICTION_COMMAND, BARRIER);
}

/// Makes LFENCE wait on this pCPU, so that guests can keep their own loads from running ahead.
pub(crate) fn make_fences_wait() {
    let [signature, ..] = sysreg::cpuid(1, 0);
    if family(signature) >= FIRST_FAMILY {
        sysreg::write_msr(DECODER, sysreg::read_msr(DECODER) | FENCE_WAITS);
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
