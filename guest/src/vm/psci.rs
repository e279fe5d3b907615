// SPDX-License-Identifier: Apache-2.0
//! Power State Coordination Interface (Arm DEN 0022), by either conduit.

use core::arch::asm;

use super::cpu;

/// The instruction that makes the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduit {
    /// To the hypervisor.
    Hvc,
    /// To the firmware.
    Smc,
}

/// Function identifiers (DEN 0022 section 5, 64-bit ones where there are two).
pub mod function {
    /// `PSCI_VERSION`
    pub const VERSION: u32 = 0x8400_0000;
    /// `CPU_SUSPEND`, 32-bit.
    pub const CPU_SUSPEND_32: u32 = 0x8400_0001;
    /// `CPU_SUSPEND`
    pub const CPU_SUSPEND: u32 = 0xC400_0001;
    /// `CPU_OFF`
    pub const CPU_OFF: u32 = 0x8400_0002;
    /// `CPU_ON`, 32-bit.
    pub const CPU_ON_32: u32 = 0x8400_0003;
    /// `CPU_ON`
    pub const CPU_ON: u32 = 0xC400_0003;
    /// `AFFINITY_INFO`, 32-bit.
    pub const AFFINITY_INFO_32: u32 = 0x8400_0004;
    /// `AFFINITY_INFO`
    pub const AFFINITY_INFO: u32 = 0xC400_0004;
    /// `MIGRATE_INFO_TYPE`
    pub const MIGRATE_INFO_TYPE: u32 = 0x8400_0006;
    /// `SYSTEM_OFF`
    pub const SYSTEM_OFF: u32 = 0x8400_0008;
    /// `SYSTEM_RESET`
    pub const SYSTEM_RESET: u32 = 0x8400_0009;
    /// `SYSTEM_RESET2`
    pub const SYSTEM_RESET2: u32 = 0xC400_0012;
    /// `PSCI_FEATURES`
    pub const FEATURES: u32 = 0x8400_000A;
    /// `SMCCC_VERSION` (Arm DEN 0028).
    pub const SMCCC_VERSION: u32 = 0x8000_0000;
    /// `SMCCC_ARCH_FEATURES` (Arm DEN 0028).
    pub const SMCCC_ARCH_FEATURES: u32 = 0x8000_0001;
}

/// Return codes (DEN 0022 section 5.2.2).
pub mod code {
    /// Done.
    pub const SUCCESS: i64 = 0;
    /// No such function.
    pub const NOT_SUPPORTED: i64 = -1;
    /// An argument is wrong.
    pub const INVALID_PARAMETERS: i64 = -2;
    /// The CPU is on.
    pub const ALREADY_ON: i64 = -4;
    /// The CPU is being switched on.
    pub const ON_PENDING: i64 = -5;
    /// The entry is not an address of the caller.
    pub const INVALID_ADDRESS: i64 = -9;
}

/// Answers of `AFFINITY_INFO` (DEN 0022 section 5.8).
pub mod affinity {
    /// The CPU is on.
    pub const ON: i64 = 0;
    /// The CPU is off.
    pub const OFF: i64 = 1;
    /// The CPU is being switched on.
    pub const ON_PENDING: i64 = 2;
}

/// Makes any SMCCC call with three arguments; returns x0..x3.
pub fn call(conduit: Conduit, function: u32, arguments: [u64; 3]) -> [u64; 4] {
    let [mut x1, mut x2, mut x3] = arguments;
    let mut x0 = u64::from(function);
    match conduit {
        // SAFETY: SMCCC 1.0 (DEN 0028B section 2.2) lets the callee change x0..x17, all declared; the calls
        // of this library that end or start a CPU do so at entries of ours.
        Conduit::Hvc => unsafe {
            asm!("hvc #0", inout("x0") x0, inout("x1") x1, inout("x2") x2, inout("x3") x3, clobber_abi("C"));
        },
        // SAFETY: as above.
        Conduit::Smc => unsafe {
            asm!("smc #0", inout("x0") x0, inout("x1") x1, inout("x2") x2, inout("x3") x3, clobber_abi("C"));
        },
    }
    [x0, x1, x2, x3]
}

/// Makes any SMCCC call; returns the signed code of a 32-bit or 64-bit function.
pub fn code_of(conduit: Conduit, function: u32, arguments: [u64; 3]) -> i64 {
    let [x0, ..] = call(conduit, function, arguments);
    // Bit 30: 64-bit convention. Results of 32-bit calls are 32 bits wide (DEN 0028 section 2.5).
    if function >> 30 & 1 == 1 {
        x0.cast_signed()
    } else {
        i64::from((x0 as u32).cast_signed())
    }
}

/// Switches the machine off.
pub fn system_off() -> ! {
    for conduit in [Conduit::Hvc, Conduit::Smc] {
        call(conduit, function::SYSTEM_OFF, [0; 3]);
    }
    // SYSTEM_OFF does not return (DEN 0022 section 5.9); without PSCI there is nothing left to do.
    loop {
        cpu::wait_for_interrupt();
    }
}

/// Resets the machine.
pub fn system_reset(conduit: Conduit) {
    call(conduit, function::SYSTEM_RESET, [0; 3]);
}

/// Resets the machine and keeps its memory (DEN 0022 section 5.11: reset type 0).
pub fn system_reset_warm(conduit: Conduit) {
    call(conduit, function::SYSTEM_RESET2, [0; 3]);
}

/// Switches the calling CPU off.
pub fn cpu_off(conduit: Conduit) {
    call(conduit, function::CPU_OFF, [0; 3]);
}
