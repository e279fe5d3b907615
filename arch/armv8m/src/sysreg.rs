// SPDX-License-Identifier: Apache-2.0
//! Registers of the processor itself: the system control space of the Secure world, and the Non-secure one as
//! Secure software reaches it (Arm DDI 0553B, section B10.1).

use bulkhead_arch_support::Mmio;

/// Offsets in the system control space (D1.1).
pub(crate) const ICTR: usize = 0x004;
pub(crate) const CPPWR: usize = 0x00C;
pub(crate) const SYST_CSR: usize = 0x010;
pub(crate) const SYST_RVR: usize = 0x014;
pub(crate) const SYST_CVR: usize = 0x018;
pub(crate) const NVIC_ISER: usize = 0x100;
pub(crate) const NVIC_ICER: usize = 0x180;
pub(crate) const NVIC_ISPR: usize = 0x200;
pub(crate) const NVIC_ICPR: usize = 0x280;
pub(crate) const NVIC_IABR: usize = 0x300;
pub(crate) const NVIC_ITNS: usize = 0x380;
pub(crate) const NVIC_IPR: usize = 0x400;
pub(crate) const ICSR: usize = 0xD04;
pub(crate) const VTOR: usize = 0xD08;
pub(crate) const AIRCR: usize = 0xD0C;
pub(crate) const SCR: usize = 0xD10;
pub(crate) const SHPR1: usize = 0xD18;
pub(crate) const SHPR3: usize = 0xD20;
pub(crate) const SHCSR: usize = 0xD24;
pub(crate) const CFSR: usize = 0xD28;
pub(crate) const HFSR: usize = 0xD2C;
pub(crate) const MMFAR: usize = 0xD34;
pub(crate) const BFAR: usize = 0xD38;
pub(crate) const CPACR: usize = 0xD88;
pub(crate) const NSACR: usize = 0xD8C;
pub(crate) const MPU_TYPE: usize = 0xD90;
pub(crate) const MPU_RNR: usize = 0xD98;
pub(crate) const MPU_RBAR: usize = 0xD9C;
pub(crate) const MPU_RLAR: usize = 0xDA0;
pub(crate) const MPU_MAIR0: usize = 0xDC0;
pub(crate) const SAU_CTRL: usize = 0xDD0;
pub(crate) const SAU_TYPE: usize = 0xDD4;
pub(crate) const SAU_RNR: usize = 0xDD8;
pub(crate) const SAU_RBAR: usize = 0xDDC;
pub(crate) const SAU_RLAR: usize = 0xDE0;
pub(crate) const SFSR: usize = 0xDE4;
pub(crate) const SFAR: usize = 0xDE8;
pub(crate) const FPCCR: usize = 0xF34;
pub(crate) const MVFR0: usize = 0xF40;

/// Lines of the interrupt controller that the vector table has vectors for.
pub(crate) const MAX_LINES: u32 = 128;

/// CCR: STKALIGN, which frames rely on, and DIV_0_TRP (D1.2.9).
pub(crate) const CCR_ALIGNED: u32 = 1 << 9;

/// Returns the registers of the Secure system control space.
pub(crate) const fn control_space() -> Mmio {
    // SAFETY: the system control space is at this address on every Armv8-M CPU (B10.1) and always device
    // memory. A write there changes the memory that partitions reach, never memory that the compiler knows
    // of.
    unsafe { Mmio::new(0xE000_E000, 0x1000) }
}

/// Returns the registers of the Non-secure system control space.
pub(crate) const fn other_space() -> Mmio {
    // SAFETY: as for `control_space`: its alias for Secure software.
    unsafe { Mmio::new(0xE002_E000, 0x1000) }
}

#[inline(always)]
pub(crate) fn read(offset: usize) -> u32 {
    control_space().read32(offset)
}

#[inline(always)]
pub(crate) fn write(offset: usize, value: u32) {
    control_space().write32(offset, value);
}

/// Makes all writes to the control space take effect for the code that follows (B6.4).
#[inline(always)]
pub(crate) fn synchronize() {
    // SAFETY: barriers without any other effect.
    unsafe { core::arch::asm!("dsb", "isb", options(nostack, preserves_flags)) }
}

/// Makes Secure Thread mode unprivileged or not: CONTROL_S.nPRIV. The hypervisor itself is in Handler mode.
pub(crate) fn set_unprivileged(unprivileged: bool) {
    // SAFETY: in Handler mode this bit takes effect only at the place that the next exception return leads
    // to. SPSEL cannot be changed there, and FPCA only decides about the hypervisor's own frames.
    unsafe {
        core::arch::asm!("msr control, {}", "isb", in(reg) u32::from(unprivileged), options(nostack, preserves_flags));
    }
}

/// Returns the limit of the Secure main stack (MSPLIM_S); 0 is no limit.
pub(crate) fn own_main_limit() -> u32 {
    let value: u32;
    // SAFETY: reads a special register, without any other effect.
    unsafe { core::arch::asm!("mrs {}, msplim", out(reg) value, options(nomem, nostack, preserves_flags)) }
    value
}

macro_rules! special {
    ($($(#[$meta:meta])* $get:ident, $set:ident: $name:literal;)*) => { $(
        $(#[$meta])*
        #[inline(always)]
        pub(crate) fn $get() -> u32 {
            let value: u32;
            // SAFETY: reads a special register, without any other effect.
            unsafe { core::arch::asm!(concat!("mrs {}, ", $name), out(reg) value, options(nomem, nostack, preserves_flags)) }
            value
        }

        #[inline(always)]
        pub(crate) fn $set(value: u32) {
            // SAFETY: a register of the Non-secure world, which no code of the hypervisor uses.
            unsafe { core::arch::asm!(concat!("msr ", $name, ", {}"), in(reg) value, options(nostack, preserves_flags)) }
        }
    )* };
}

special! {
    /// Returns the main stack pointer of the Non-secure world.
    main_stack, set_main_stack: "MSP_NS";
    /// Returns the process stack pointer of the Non-secure world.
    process_stack, set_process_stack: "PSP_NS";
    /// Returns the limit of its main stack.
    main_limit, set_main_limit: "MSPLIM_NS";
    /// Returns the limit of its process stack.
    process_limit, set_process_limit: "PSPLIM_NS";
    /// Returns the privilege and the stack of Thread mode in the Non-secure world.
    control, set_control: "CONTROL_NS";
    /// Returns the Non-secure world's mask of all exceptions with a priority.
    primask, set_primask: "PRIMASK_NS";
    /// Returns the Non-secure world's mask of all exceptions but the non-maskable one.
    faultmask, set_faultmask: "FAULTMASK_NS";
}
