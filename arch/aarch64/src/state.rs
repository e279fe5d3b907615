// SPDX-License-Identifier: Apache-2.0
//! EL1 and EL0 registers of a vCPU that is not current.
//!
//! The list is every register of the EL1&0 regime that an Armv8.0 guest can use without a trap, plus
//! registers of later extensions that the ID registers still advertise (none so far). Registers that only
//! AArch32 at EL1 can reach are not switched, because a VM's EL1 is AArch64 (HCR_EL2.RW).
//!
//! Order of loading: on Cortex-A57 and A72 (errata 1319537, 1319367) a speculative address translation may be
//! made with a mix of two guests' registers and stay in the TLB. So [`El1State::save`] shuts walks off (EPD0,
//! EPD1 and M set). Then everything else changes. Last, [`El1State::load`] gives SCTLR_EL1 and TCR_EL1 the
//! new guest's values. While no vCPU is current, walks are shut off.

use crate::sysreg::{instruction, read_register, write_guest_register};

/// SPSR_EL2 of a VM's first instruction: EL1h, all interrupts masked (Arm DDI 0487 D1.9.2).
pub(crate) const RESET_PSTATE: u64 = 0x3C5;
/// SPSR_EL2 of a task's first instruction: EL0t, nothing masked.
pub(crate) const TASK_PSTATE: u64 = 0;

/// SCTLR_EL1 after reset: RES1 bits of Armv8.0 and the bits that Cortex-A cores reset to 1; MMU and caches
/// off.
const SCTLR_RESET: u64 = 0x30D5_0838;
/// SCTLR_EL1 of a task: RES1, and at EL0: UCI, UCT, DZE, nTWE, nTWI; I, so that code is cacheable.
const SCTLR_TASK: u64 = 0x30D0_0800 | 1 << 26 | 1 << 15 | 1 << 14 | 1 << 18 | 1 << 16 | 1 << 12;
/// CPACR_EL1.FPEN: FP and SIMD do not trap to EL1.
const CPACR_FP: u64 = 3 << 20;
/// CNTKCTL_EL1.EL0VCTEN: EL0 may read CNTVCT_EL0.
const CNTKCTL_VIRTUAL_COUNTER: u64 = 1 << 1;
/// TCR_EL1.EPD0 and EPD1: no walk by either table.
pub(crate) const NO_WALKS: u64 = 1 << 7 | 1 << 23;
/// The same bits for every state: PD0 and PD1 shut walks off in a TTBCR of short descriptors.
pub(crate) const NO_WALKS_AARCH32: u64 = NO_WALKS | 1 << 4 | 1 << 5;
/// SCTLR_EL1.M.
const SCTLR_M: u64 = 1;
/// PSTATE.M: mask and value of EL1 with its own stack pointer.
const PSTATE_MODE: u64 = 0x1F;
const PSTATE_EL1H: u64 = 0x5;

macro_rules! el1_registers {
    // The registers are listed in pairs, so that the compiler moves two at a time.
    ($($field:ident = $name:literal, $other:ident = $other_name:literal;)*) => {
        /// Registers of EL1 and EL0.
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub(crate) struct El1State {
            pub(crate) sctlr: u64,
            pub(crate) tcr: u64,
            $(pub(crate) $field: u64, pub(crate) $other: u64),*
        }

        impl El1State {
            /// Every register zero.
            pub(crate) const ZERO: Self = Self { sctlr: 0, tcr: 0, $($field: 0, $other: 0),* };

            /// Reads all from the hardware, and makes translation-table walks of the EL1&0 regime impossible:
            /// by these bits of TCR_EL1.
            #[inline(always)]
            pub(crate) fn save(&mut self, no_walks: u64) {
                (self.sctlr, self.tcr) = (read_register!("sctlr_el1"), read_register!("tcr_el1"));
                shut_translation(self.sctlr, self.tcr | no_walks);
                $((self.$field, self.$other) = (read_register!($name), read_register!($other_name));)*
            }

            /// Writes all to the hardware, translation last.
            #[inline(always)]
            pub(crate) fn load(&self) {
                $({
                    let (first, second) = (self.$field, self.$other);
                    write_guest_register!($name, first);
                    write_guest_register!($other_name, second);
                })*
                let (sctlr, tcr) = (self.sctlr, self.tcr);
                instruction!("isb");
                write_guest_register!("sctlr_el1", sctlr);
                instruction!("isb");
                write_guest_register!("tcr_el1", tcr);
            }
        }
    };
}

el1_registers! {
    cpacr = "cpacr_el1", ttbr0 = "ttbr0_el1";
    ttbr1 = "ttbr1_el1", esr = "esr_el1";
    far = "far_el1", mair = "mair_el1";
    vbar = "vbar_el1", contextidr = "contextidr_el1";
    tpidr_el0 = "tpidr_el0", tpidrro_el0 = "tpidrro_el0";
    tpidr_el1 = "tpidr_el1", csselr = "csselr_el1";
    sp_el0 = "sp_el0", sp_el1 = "sp_el1";
    elr = "elr_el1", spsr = "spsr_el1";
    par = "par_el1", cntkctl = "cntkctl_el1";
}

impl El1State {
    /// After a cold reset.
    pub(crate) const RESET: Self = Self {
        sctlr: SCTLR_RESET,
        ..Self::ZERO
    };

    /// Returns the state of a task, which runs at EL0 with `stack`.
    pub(crate) const fn task(stack: u64) -> Self {
        Self {
            sctlr: SCTLR_TASK,
            cpacr: CPACR_FP,
            cntkctl: CNTKCTL_VIRTUAL_COUNTER,
            sp_el0: stack,
            ..Self::ZERO
        }
    }

    /// Moves the registers that a task can change: reads them from the hardware, and writes the registers of
    /// the task that follows. All other registers are the same for every task ([`El1State::task`]).
    #[inline(always)]
    pub(crate) fn exchange_task(&mut self, next: &Self) {
        (self.sp_el0, self.tpidr_el0) = (read_register!("sp_el0"), read_register!("tpidr_el0"));
        write_guest_register!("sp_el0", next.sp_el0);
        write_guest_register!("tpidr_el0", next.tpidr_el0);
    }

    /// Returns the stack pointer that code with this PSTATE uses.
    pub(crate) const fn stack_pointer(&self, pstate: u64) -> u64 {
        if pstate & PSTATE_MODE == PSTATE_EL1H {
            self.sp_el1
        } else {
            self.sp_el0
        }
    }

    /// Changes the stack pointer that code with this PSTATE uses.
    pub(crate) const fn set_stack_pointer(&mut self, pstate: u64, value: u64) {
        if pstate & PSTATE_MODE == PSTATE_EL1H {
            self.sp_el1 = value;
        } else {
            self.sp_el0 = value;
        }
    }
}

/// Returns the stack pointer of the current vCPU, whose code has this PSTATE.
pub(crate) fn read_stack_pointer(pstate: u64) -> u64 {
    if pstate & PSTATE_MODE == PSTATE_EL1H {
        read_register!("sp_el1")
    } else {
        read_register!("sp_el0")
    }
}

/// Writes the stack pointer of the current vCPU, whose code has this PSTATE.
pub(crate) fn write_stack_pointer(pstate: u64, value: u64) {
    if pstate & PSTATE_MODE == PSTATE_EL1H {
        write_guest_register!("sp_el1", value);
    } else {
        write_guest_register!("sp_el0", value);
    }
}

/// Makes translation-table walks of the EL1&0 regime impossible until [`El1State::load`], by a `tcr` that
/// says so.
#[inline(always)]
pub(crate) fn shut_translation(sctlr: u64, tcr: u64) {
    write_guest_register!("tcr_el1", tcr);
    instruction!("isb");
    write_guest_register!("sctlr_el1", sctlr | SCTLR_M);
    instruction!("isb");
}

/// Registers whose meaning is the implementation's. Where a CPU has only constants there, nothing is
/// switched.
#[derive(Clone, Copy)]
pub(crate) struct Auxiliary {
    afsr0: u64,
    afsr1: u64,
    amair: u64,
}

/// Tells whether EL1 of this CPU can be in AArch32 state (ID_AA64PFR0_EL1.EL1).
pub(crate) fn has_aarch32() -> bool {
    read_register!("id_aa64pfr0_el1") >> 4 & 0xF == 2
}

/// Tells whether the CPU has PAN (ID_AA64MMFR1_EL1.PAN).
pub(crate) fn has_pan() -> bool {
    read_register!("id_aa64mmfr1_el1") >> 20 & 0xF != 0
}

/// Tells whether the CPU has the RAS extension (ID_AA64PFR0_EL1.RAS).
pub(crate) fn has_ras() -> bool {
    read_register!("id_aa64pfr0_el1") >> 28 & 0xF != 0
}

/// Forgets the record that `ESB` left of a virtual SError. Guests are not told of the RAS extension, so
/// no code may rely on the record. The register of their `DISR_EL1` would however be one for all of them.
/// Only if the CPU [has the extension](has_ras).
#[inline(always)]
pub(crate) fn forget_deferred() {
    // VDISR_EL2, which assemblers know with the extension only.
    write_guest_register!("s3_4_c12_c1_1", 0);
}

impl Auxiliary {
    /// Every register zero.
    pub(crate) const ZERO: Self = Self {
        afsr0: 0,
        afsr1: 0,
        amair: 0,
    };

    /// Tells whether this CPU's registers can be changed. No guest's values are in them.
    pub(crate) fn exist() -> bool {
        write_guest_register!("afsr0_el1", u64::MAX);
        write_guest_register!("afsr1_el1", u64::MAX);
        write_guest_register!("amair_el1", u64::MAX);
        instruction!("isb");
        let mut found = Self::ZERO;
        found.save();
        Self::ZERO.load();
        found.afsr0 | found.afsr1 | found.amair != 0
    }

    /// Reads all from the hardware.
    pub(crate) fn save(&mut self) {
        self.afsr0 = read_register!("afsr0_el1");
        self.afsr1 = read_register!("afsr1_el1");
        self.amair = read_register!("amair_el1");
    }

    /// Writes all to the hardware.
    pub(crate) fn load(&self) {
        write_guest_register!("afsr0_el1", self.afsr0);
        write_guest_register!("afsr1_el1", self.afsr1);
        write_guest_register!("amair_el1", self.amair);
    }
}
