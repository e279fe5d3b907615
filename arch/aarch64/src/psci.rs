// SPDX-License-Identifier: Apache-2.0
//! PSCI 1.1 (Arm DEN 0022E) and SMCCC 1.2 (DEN 0028F) for guests, by HVC and SMC alike.
//!
//! What needs no decision is answered here; power states and the end of a partition are the kernel's.
//! An unknown function is `NOT_SUPPORTED` and never a fault: that is how software probes. A 32-bit
//! function takes the low halves of its arguments.

use crate::vcpu::{Context, LEAVE_CPU_ON, LEAVE_EXIT, LEAVE_HYPERCALL};
use crate::{entry::RESUME, space, traps};
use bulkhead_abi::hypercall::{FUNCTION_BASE, Operation, function_id};
use bulkhead_arch_api::{Exit, GuestPhys, ResetKind};

/// Return codes (DEN 0022E section 5.2.2), as register values.
pub(crate) const SUCCESS: u64 = 0;
const NOT_SUPPORTED: u64 = -1i64 as u64;
const INVALID_PARAMETERS: u64 = -2i64 as u64;
/// CPU_ON: it is on already.
pub(crate) const ALREADY_ON: u64 = -4i64 as u64;
/// CPU_ON: an earlier request is under way.
pub(crate) const ON_PENDING: u64 = -5i64 as u64;
const INVALID_ADDRESS: u64 = -9i64 as u64;

const PSCI_VERSION: u32 = 0x8400_0000;
const CPU_SUSPEND: u32 = 0x8400_0001;
const CPU_OFF: u32 = 0x8400_0002;
const CPU_ON: u32 = 0x8400_0003;
const AFFINITY_INFO: u32 = 0x8400_0004;
const MIGRATE_INFO_TYPE: u32 = 0x8400_0006;
const SYSTEM_OFF: u32 = 0x8400_0008;
const SYSTEM_RESET: u32 = 0x8400_0009;
const PSCI_FEATURES: u32 = 0x8400_000A;
const SYSTEM_RESET2: u32 = 0x8400_0012;
/// SMCCC: the call uses 64-bit arguments.
const SMC64: u32 = 1 << 30;

const SMCCC_VERSION: u32 = 0x8000_0000;
const SMCCC_ARCH_FEATURES: u32 = 0x8000_0001;
/// SMCCC general queries of the vendor-specific hypervisor service: UID and revision (DEN 0028F section 6.2).
const HYPERVISOR_UID: u32 = 0x8600_FF01;
const HYPERVISOR_REVISION: u32 = 0x8600_FF03;

/// PSCI 1.1 and SMCCC 1.2, `major << 16 | minor`.
const PSCI_1_1: u64 = 1 << 16 | 1;
const SMCCC_1_2: u64 = 1 << 16 | 2;
/// MIGRATE_INFO_TYPE: no trusted OS that would need migration.
const NO_TRUSTED_OS: u64 = 2;
/// Our UID 8e3b7c52-4f1d-4a96-9b20-62756c6b6864, in the byte order of DEN 0028F section 6.2.
const UID: [u64; 4] = [0x527c_3b8e, 0x964a_1d4f, 0x7562_209b, 0x6468_6b6c];
/// MPIDR affinity fields in a target argument (DEN 0022E section 5.1.4); the others must be zero.
const AFFINITY_0: u64 = 0xFF;
/// CPU_SUSPEND power state, original format: StateType 1 is power-down.
const POWER_DOWN: u64 = 1 << 16;
/// Bits of it that must be zero: all but StateID, StateType and the power level.
const POWER_STATE_RESERVED: u64 = !(0xFFFF | 1 << 16 | 3 << 24) & 0xFFFF_FFFF;

/// The null hypercall's function id. It asks nothing of the kernel, so it is answered here.
const NULL: u32 = function_id(Operation::Null);

/// An HVC or SMC of a VM, the PC already behind it.
#[inline(always)]
pub(crate) fn call(context: &mut Context, immediate: u64) -> u64 {
    let function = context.read_general(0) as u32;
    if immediate == 0 && function == PSCI_VERSION {
        return answer(context, PSCI_1_1);
    }
    if immediate == 0 && function == NULL {
        let [x0, x1, x2, x3, x4, ..] = &mut context.general;
        (*x0, *x1, *x2, *x3, *x4) = (SUCCESS, 0, 0, 0, 0);
        return RESUME;
    }
    call_seldom(context, immediate)
}

/// Any other call. That of a start is looked for first, here: a third constant above would make the other two longer.
#[inline(never)]
fn call_seldom(context: &mut Context, immediate: u64) -> u64 {
    if immediate == 0 && context.read_general(0) as u32 == CPU_ON | SMC64 {
        return cpu_on(context);
    }
    call_other(context, immediate)
}

/// An HVC or SMC from AArch32 state: arguments have 32 bits, and there are no 64-bit functions of the firmware's.
pub(crate) fn call_narrow(context: &mut Context, immediate: u64) -> u64 {
    for number in 0..7 {
        context.write_general(number, u64::from(context.read_general(number) as u32));
    }
    let function = context.read_general(0) as u32;
    if function & SMC64 != 0 && function & 0xFFFF_0000 != FUNCTION_BASE {
        return answer(context, NOT_SUPPORTED);
    }
    call(context, immediate)
}

#[inline(never)]
fn call_other(context: &mut Context, immediate: u64) -> u64 {
    let function = context.read_general(0) as u32;
    if immediate != 0 {
        return answer(context, NOT_SUPPORTED);
    }
    if function & 0xFFFF_0000 == FUNCTION_BASE {
        return LEAVE_HYPERCALL;
    }
    let wide = function & SMC64 != 0;
    let argument = |context: &Context, number: u8| {
        let value = context.read_general(number);
        if wide { value } else { u64::from(value as u32) }
    };
    match (function & !SMC64, wide) {
        (CPU_SUSPEND, _) => suspend(context, wide),
        (CPU_OFF, false) => leave(context, Exit::CpuOff),
        // A 64-bit one is answered by `call_seldom`.
        (CPU_ON, _) => {
            for number in 1..4 {
                context.write_general(number, argument(context, number));
            }
            cpu_on(context)
        }
        (AFFINITY_INFO, _) => affinity_info(context, argument(context, 1), argument(context, 2)),
        (MIGRATE_INFO_TYPE, false) => answer(context, NO_TRUSTED_OS),
        (SYSTEM_OFF, false) => leave(context, Exit::Reset(ResetKind::Off)),
        (SYSTEM_RESET, false) => leave(context, Exit::Reset(ResetKind::Cold)),
        // Type 0 is the architectural warm reset, the only one that is not vendor-specific (DEN 0022E section 5.1.18).
        (SYSTEM_RESET2, _) if argument(context, 1) == 0 => leave(context, Exit::Reset(ResetKind::Warm)),
        (SYSTEM_RESET2, _) => answer(context, INVALID_PARAMETERS),
        (PSCI_FEATURES, false) => {
            let queried = argument(context, 1) as u32;
            answer(context, if is_implemented(queried) { 0 } else { NOT_SUPPORTED })
        }
        (SMCCC_VERSION, false) => answer(context, SMCCC_1_2),
        (SMCCC_ARCH_FEATURES, false) => {
            let queried = argument(context, 1) as u32;
            let known = matches!(queried, SMCCC_VERSION | SMCCC_ARCH_FEATURES);
            answer(context, if known { 0 } else { NOT_SUPPORTED })
        }
        (HYPERVISOR_UID, false) => {
            let [x0, x1, x2, x3, ..] = &mut context.general;
            [*x0, *x1, *x2, *x3] = UID;
            RESUME
        }
        (HYPERVISOR_REVISION, false) => {
            context.write_general(1, 0);
            answer(context, u64::from(bulkhead_abi::hypercall::ABI_VERSION >> 16))
        }
        _ => answer(context, NOT_SUPPORTED),
    }
}

/// Whether PSCI_FEATURES says yes.
const fn is_implemented(function: u32) -> bool {
    match function {
        PSCI_VERSION | CPU_OFF | MIGRATE_INFO_TYPE | SYSTEM_OFF | SYSTEM_RESET | PSCI_FEATURES
        | SMCCC_VERSION => true,
        _ => matches!(
            function & !SMC64,
            CPU_SUSPEND | CPU_ON | AFFINITY_INFO | SYSTEM_RESET2
        ),
    }
}

/// Puts the result into x0 and goes on.
fn answer(context: &mut Context, result: u64) -> u64 {
    context.write_general(0, result);
    RESUME
}

/// Leaves the guest for the kernel.
fn leave(context: &mut Context, exit: Exit) -> u64 {
    context.exit = exit;
    LEAVE_EXIT
}

/// The index of a vCPU of the caller's partition, from its MPIDR.
fn target_index(context: &Context, target: u64) -> Option<u8> {
    let index = (target & AFFINITY_0) as u8;
    (target & !AFFINITY_0 == 0 && index < context.plan.count).then_some(index)
}

/// CPU_ON with x1..x3 as arguments.
#[inline(never)]
fn cpu_on(context: &mut Context) -> u64 {
    let [_, target, entry, ..] = context.general;
    if target_index(context, target).is_none() {
        return answer(context, INVALID_PARAMETERS);
    }
    // Bit 0 of an AArch32 entry says T32.
    let thumb = context.plan.aarch32 && entry & 1 != 0;
    if !thumb && entry & 3 != 0 {
        return answer(context, INVALID_ADDRESS);
    }
    if space::is_in_largest(context.plan.partition, GuestPhys(entry)) {
        return LEAVE_CPU_ON;
    }
    cpu_on_elsewhere(context, GuestPhys(entry))
}

/// CPU_ON with an entry that is not in the partition's largest region.
#[inline(never)]
fn cpu_on_elsewhere(context: &mut Context, entry: GuestPhys) -> u64 {
    if space::is_memory(context.plan.partition, entry) {
        LEAVE_CPU_ON
    } else {
        answer(context, INVALID_ADDRESS)
    }
}

fn affinity_info(context: &mut Context, target: u64, lowest_level: u64) -> u64 {
    // Levels above 0 may be refused since PSCI 1.0 (DEN 0022E section 5.7.2).
    let target = if lowest_level == 0 {
        target_index(context, target)
    } else {
        None
    };
    match target {
        Some(target) => leave(context, Exit::CpuPower { target }),
        None => answer(context, INVALID_PARAMETERS),
    }
}

/// CPU_SUSPEND: every state is as shallow as WFI, which the specification allows. A power-down request
/// that "did not happen" because of a pending wake-up returns success to the caller (5.4.3), and so does ours.
fn suspend(context: &mut Context, wide: bool) -> u64 {
    let state = context.read_general(1) & 0xFFFF_FFFF;
    if state & POWER_STATE_RESERVED != 0 {
        return answer(context, INVALID_PARAMETERS);
    }
    if state & POWER_DOWN != 0 {
        let mask = if wide { u64::MAX } else { 0xFFFF_FFFF };
        let entry = GuestPhys(context.read_general(2) & mask);
        if entry.0 & 3 != 0 || !space::is_memory(context.plan.partition, entry) {
            return answer(context, INVALID_ADDRESS);
        }
    }
    context.write_general(0, SUCCESS);
    traps::idle(context)
}
