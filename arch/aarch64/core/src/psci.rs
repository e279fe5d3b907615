// SPDX-License-Identifier: Apache-2.0
//! PSCI 1.1 (Arm DEN 0022E) and SMCCC 1.2 (DEN 0028F) for guests: the answer to each call.
//!
//! A call that needs no decision is answered at once; power states and the end of a partition are the
//! kernel's. An unknown function is `NOT_SUPPORTED` and never a fault: that is how software probes. A 32-bit
//! function takes the low halves of its arguments.

use bulkhead_abi::hypercall::{ABI_VERSION, FUNCTION_BASE, Operation, function_id};
use bulkhead_arch_api::ResetKind;

/// Return code (DEN 0022E section 5.2.2), as a register's value: done.
pub const SUCCESS: u64 = 0;
/// Return code: the function is not there.
pub const NOT_SUPPORTED: u64 = -1i64 as u64;
/// Return code: an argument is none of its values.
pub const INVALID_PARAMETERS: u64 = -2i64 as u64;
/// Return code of CPU_ON: the CPU is on already.
pub const ALREADY_ON: u64 = -4i64 as u64;
/// Return code of CPU_ON: an earlier request is under way.
pub const ON_PENDING: u64 = -5i64 as u64;
/// Return code: the entry point is no address of the caller's memory.
pub const INVALID_ADDRESS: u64 = -9i64 as u64;

/// PSCI_VERSION.
pub const PSCI_VERSION: u32 = 0x8400_0000;
/// CPU_ON with 32-bit arguments.
pub const CPU_ON: u32 = 0x8400_0003;
/// CPU_ON with 64-bit arguments.
pub const CPU_ON_64: u32 = CPU_ON | SMC64;
/// The null hypercall. It asks nothing of the kernel.
pub const NULL_HYPERCALL: u32 = function_id(Operation::Null);
/// The answer to PSCI_VERSION: 1.1, as `major << 16 | minor`.
pub const PSCI_1_1: u64 = 1 << 16 | 1;

const CPU_SUSPEND: u32 = 0x8400_0001;
const CPU_OFF: u32 = 0x8400_0002;
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

/// The vCPU that calls.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// vCPUs of its partition.
    pub vcpus: u8,
    /// Its kernel is 32-bit.
    pub aarch32: bool,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This goes into x0.
    Value(u64),
    /// These go into x0 and x1.
    Pair([u64; 2]),
    /// These go into x0..x3.
    Values([u64; 4]),
    /// The kernel is asked: its own hypercall.
    Hypercall,
    /// The kernel is asked to start a vCPU: target, entry and argument, of which the first two are checked.
    Start([u64; 3]),
    /// The kernel is asked to switch the caller off.
    Off,
    /// The kernel is asked whether a vCPU of the caller's partition is on.
    Power(u8),
    /// The kernel is asked to end the partition or to start it anew.
    Reset(ResetKind),
    /// The caller waits for an interrupt, and x0 says success.
    Wait,
}

/// Tells whether a call from AArch32 state names a function that is not there: there are no 64-bit functions
/// of the firmware's.
#[must_use]
pub const fn is_beyond_aarch32(function: u32) -> bool {
    function & SMC64 != 0 && function & 0xFFFF_0000 != FUNCTION_BASE
}

/// Gives the outcome of a call with x1..x3 as `arguments`. `is_memory` says whether an address is in the
/// caller's memory.
#[inline]
#[must_use]
pub fn answer(
    function: u32,
    arguments: [u64; 3],
    caller: Caller,
    is_memory: impl FnOnce(u64) -> bool,
) -> Answer {
    if function & 0xFFFF_0000 == FUNCTION_BASE {
        return Answer::Hypercall;
    }
    let wide = function & SMC64 != 0;
    let [first, second, third] = if wide {
        arguments
    } else {
        arguments.map(|argument| u64::from(argument as u32))
    };
    match (function & !SMC64, wide) {
        (PSCI_VERSION, false) => Answer::Value(PSCI_1_1),
        (CPU_SUSPEND, _) => suspend(first, second, is_memory),
        (CPU_OFF, false) => Answer::Off,
        (CPU_ON, _) => match refuse_start(caller, first, second) {
            Some(error) => Answer::Value(error),
            None if is_memory(second) => Answer::Start([first, second, third]),
            None => Answer::Value(INVALID_ADDRESS),
        },
        (AFFINITY_INFO, _) => affinity_info(caller, first, second),
        (MIGRATE_INFO_TYPE, false) => Answer::Value(NO_TRUSTED_OS),
        (SYSTEM_OFF, false) => Answer::Reset(ResetKind::Off),
        (SYSTEM_RESET, false) => Answer::Reset(ResetKind::Cold),
        // Type 0 is the architectural warm reset, the only one that is not vendor-specific (DEN 0022E section
        // 5.1.18).
        (SYSTEM_RESET2, _) if first == 0 => Answer::Reset(ResetKind::Warm),
        (SYSTEM_RESET2, _) => Answer::Value(INVALID_PARAMETERS),
        (PSCI_FEATURES, false) => yes_if(is_implemented(first as u32)),
        (SMCCC_VERSION, false) => Answer::Value(SMCCC_1_2),
        (SMCCC_ARCH_FEATURES, false) => yes_if(matches!(first as u32, SMCCC_VERSION | SMCCC_ARCH_FEATURES)),
        (HYPERVISOR_UID, false) => Answer::Values(UID),
        (HYPERVISOR_REVISION, false) => Answer::Pair([u64::from(ABI_VERSION >> 16), 0]),
        _ => Answer::Value(NOT_SUPPORTED),
    }
}

const fn yes_if(known: bool) -> Answer {
    Answer::Value(if known { SUCCESS } else { NOT_SUPPORTED })
}

/// Tells whether PSCI_FEATURES says yes.
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

/// Returns the index of a vCPU of the caller's partition, from its MPIDR.
#[inline(always)]
const fn target_index(caller: Caller, target: u64) -> Option<u8> {
    let index = (target & AFFINITY_0) as u8;
    if target & !AFFINITY_0 == 0 && index < caller.vcpus {
        Some(index)
    } else {
        None
    }
}

/// Returns the error of a CPU_ON whose target or entry point is none. Whether the entry point is memory is
/// still to be looked at.
#[inline(always)]
#[must_use]
pub const fn refuse_start(caller: Caller, target: u64, entry: u64) -> Option<u64> {
    if target_index(caller, target).is_none() {
        return Some(INVALID_PARAMETERS);
    }
    // Bit 0 of an AArch32 entry says T32.
    let thumb = caller.aarch32 && entry & 1 != 0;
    if !thumb && entry & 3 != 0 {
        return Some(INVALID_ADDRESS);
    }
    None
}

fn affinity_info(caller: Caller, target: u64, lowest_level: u64) -> Answer {
    // Levels above 0 may be refused since PSCI 1.0 (DEN 0022E section 5.7.2).
    match target_index(caller, target) {
        Some(target) if lowest_level == 0 => Answer::Power(target),
        _ => Answer::Value(INVALID_PARAMETERS),
    }
}

/// CPU_SUSPEND: every state is as shallow as WFI, which the specification allows. A power-down request that
/// "did not happen" because of a pending wake-up returns success to the caller (5.4.3), and so does ours.
fn suspend(state: u64, entry: u64, is_memory: impl FnOnce(u64) -> bool) -> Answer {
    let state = state & 0xFFFF_FFFF;
    if state & POWER_STATE_RESERVED != 0 {
        return Answer::Value(INVALID_PARAMETERS);
    }
    if state & POWER_DOWN != 0 && (entry & 3 != 0 || !is_memory(entry)) {
        return Answer::Value(INVALID_ADDRESS);
    }
    Answer::Wait
}
