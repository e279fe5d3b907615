// SPDX-License-Identifier: Apache-2.0
//! System registers that trap: what each of them is to a guest.
//!
//! One rule for identification (HCR_EL2.TID3): a feature that is not virtualized is not advertised. Each
//! register is the hardware's value under a mask of the fields a guest can use without our help; registers
//! without an entry read as zero, which is what the architecture demands of unallocated ones. A feature that
//! the guest could then only reach by ignoring those registers (PMU, SVE, pointer authentication, RAS,
//! LORegions, trace) and anything else that traps (implementation-defined registers, EL2's own) is
//! [absent](Read::Absent).

/// Returns the name of a system register as one number: op0, op1, CRn, CRm, op2, packed as in the ISS.
#[must_use]
pub const fn register(op0: u64, op1: u64, crn: u64, crm: u64, op2: u64) -> u64 {
    op0 << 20 | op2 << 17 | op1 << 14 | crn << 10 | crm << 1
}

/// Fields of the ISS that name the register.
pub const NAME: u64 = register(3, 7, 15, 15, 7);
/// The register of the frequent software-generated interrupt.
pub const ICC_SGI1R_EL1: u64 = register(3, 0, 12, 11, 5);

const ACTLR_EL1: u64 = register(3, 0, 1, 0, 1);
const ICC_ASGI1R_EL1: u64 = register(3, 0, 12, 11, 6);
const ICC_SGI0R_EL1: u64 = register(3, 0, 12, 11, 7);
const ICC_SRE_EL1: u64 = register(3, 0, 12, 12, 5);
const ICC_DIR_EL1: u64 = register(3, 0, 12, 11, 1);
const CNTPCT_EL0: u64 = register(3, 3, 14, 0, 1);
const CNTP_TVAL_EL0: u64 = register(3, 3, 14, 2, 0);
const CNTP_CTL_EL0: u64 = register(3, 3, 14, 2, 1);
const CNTP_CVAL_EL0: u64 = register(3, 3, 14, 2, 2);

const OSDTRRX_EL1: u64 = register(2, 0, 0, 0, 2);
const MDCCINT_EL1: u64 = register(2, 0, 0, 2, 0);
const MDSCR_EL1: u64 = register(2, 0, 0, 2, 2);
const OSDTRTX_EL1: u64 = register(2, 0, 0, 3, 2);
const OSECCR_EL1: u64 = register(2, 0, 0, 6, 2);
const MDRAR_EL1: u64 = register(2, 0, 1, 0, 0);
const OSLAR_EL1: u64 = register(2, 0, 1, 0, 4);
const OSLSR_EL1: u64 = register(2, 0, 1, 1, 4);
const OSDLR_EL1: u64 = register(2, 0, 1, 3, 4);
const DBGPRCR_EL1: u64 = register(2, 0, 1, 4, 4);
const DBGCLAIMSET_EL1: u64 = register(2, 0, 7, 8, 6);
const DBGCLAIMCLR_EL1: u64 = register(2, 0, 7, 9, 6);
const DBGAUTHSTATUS_EL1: u64 = register(2, 0, 7, 14, 6);
const MDCCSR_EL0: u64 = register(2, 3, 0, 1, 0);
const DBGDTR_EL0: u64 = register(2, 3, 0, 4, 0);
const DBGDTRX_EL0: u64 = register(2, 3, 0, 5, 0);

/// ICC_SRE_EL1: SRE, and no bypass (DFB, DIB).
const SYSTEM_INTERFACE_ENABLE: u64 = 7;
/// DBGCLAIMSET_EL1 reads as ones: eight claim bits exist.
const CLAIM_BITS: u64 = 0xFF;

/// The form of a VM's CPU interface of the interrupt controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuInterface {
    /// A GICv3's: system registers.
    Registers,
    /// A GICv2's: memory.
    Memory,
}

/// One kind of comparator register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// `DBGBVR<n>_EL1`.
    BreakValue,
    /// `DBGBCR<n>_EL1`.
    BreakControl,
    /// `DBGWVR<n>_EL1`.
    WatchValue,
    /// `DBGWCR<n>_EL1`.
    WatchControl,
}

/// The physical timer and counter, which trap for a vCPU with frozen time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhysicalTimer {
    /// CNTPCT_EL0.
    Counter,
    /// CNTP_TVAL_EL0.
    Value,
    /// CNTP_CTL_EL0.
    Control,
    /// CNTP_CVAL_EL0.
    Compare,
}

/// Registers of the interrupt controller's CPU interface that trap when written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptRegister {
    /// ICC_SGI1R_EL1.
    Sgi1r,
    /// ICC_ASGI1R_EL1.
    Asgi1r,
    /// ICC_SGI0R_EL1.
    Sgi0r,
    /// ICC_DIR_EL1.
    Dir,
}

/// The outcome of reading a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// [`identification`] has the value.
    Identification,
    /// Always this.
    Constant(u64),
    /// The hardware's ACTLR_EL1.
    Auxiliary,
    /// The physical timer, in the guest's time.
    PhysicalTimer(PhysicalTimer),
    /// The guest's MDSCR_EL1.
    DebugControl,
    /// The state of the guest's OS lock.
    OsLockStatus,
    /// A comparator of the guest's, if the hardware has one with this number.
    Comparator(Comparator, usize),
    /// Nothing a guest should touch.
    Absent,
}

/// The outcome of writing a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Nothing.
    Ignored,
    /// The virtual interrupt controller acts.
    Interrupt(InterruptRegister),
    /// The physical timer is set, in the guest's time.
    PhysicalTimer(PhysicalTimer),
    /// MDSCR_EL1 changes.
    DebugControl,
    /// The OS lock is closed or opened.
    OsLock,
    /// A comparator changes, if the hardware has one with this number.
    Comparator(Comparator, usize),
    /// Nothing a guest should touch.
    Absent,
}

/// Gives the outcome of reading the register with this name.
#[must_use]
pub const fn read(name: u64, interface: CpuInterface) -> Read {
    if name >> 20 & 3 == 3 && name >> 10 & 15 == 0 {
        return Read::Identification;
    }
    match name {
        ACTLR_EL1 => Read::Auxiliary,
        ICC_SRE_EL1 if matches!(interface, CpuInterface::Registers) => {
            Read::Constant(SYSTEM_INTERFACE_ENABLE)
        }
        CNTPCT_EL0 => Read::PhysicalTimer(PhysicalTimer::Counter),
        CNTP_TVAL_EL0 => Read::PhysicalTimer(PhysicalTimer::Value),
        CNTP_CTL_EL0 => Read::PhysicalTimer(PhysicalTimer::Control),
        CNTP_CVAL_EL0 => Read::PhysicalTimer(PhysicalTimer::Compare),
        MDSCR_EL1 => Read::DebugControl,
        OSLSR_EL1 => Read::OsLockStatus,
        DBGCLAIMSET_EL1 => Read::Constant(CLAIM_BITS),
        OSDTRRX_EL1 | OSDTRTX_EL1 | MDCCINT_EL1 | OSECCR_EL1 | MDRAR_EL1 | OSDLR_EL1 | DBGPRCR_EL1
        | DBGCLAIMCLR_EL1 | DBGAUTHSTATUS_EL1 | MDCCSR_EL0 | DBGDTR_EL0 | DBGDTRX_EL0 => Read::Constant(0),
        _ => match comparator(name) {
            Some((kind, number)) => Read::Comparator(kind, number),
            None => Read::Absent,
        },
    }
}

/// Gives the outcome of writing the register with this name.
#[must_use]
pub const fn write(name: u64, interface: CpuInterface) -> Write {
    match name {
        ICC_SGI1R_EL1 => Write::Interrupt(InterruptRegister::Sgi1r),
        ICC_ASGI1R_EL1 => Write::Interrupt(InterruptRegister::Asgi1r),
        ICC_SGI0R_EL1 => Write::Interrupt(InterruptRegister::Sgi0r),
        ICC_DIR_EL1 => Write::Interrupt(InterruptRegister::Dir),
        // Hints of the CPU's implementation and debug-channel registers no code listens on.
        ACTLR_EL1 | OSDTRRX_EL1 | OSDTRTX_EL1 | MDCCINT_EL1 | OSECCR_EL1 | OSDLR_EL1 | DBGPRCR_EL1
        | DBGCLAIMSET_EL1 | DBGCLAIMCLR_EL1 | DBGDTR_EL0 | DBGDTRX_EL0 => Write::Ignored,
        // The interrupt controller's CPU interface has no other form than system registers.
        ICC_SRE_EL1 if matches!(interface, CpuInterface::Registers) => Write::Ignored,
        CNTP_TVAL_EL0 => Write::PhysicalTimer(PhysicalTimer::Value),
        CNTP_CTL_EL0 => Write::PhysicalTimer(PhysicalTimer::Control),
        CNTP_CVAL_EL0 => Write::PhysicalTimer(PhysicalTimer::Compare),
        MDSCR_EL1 => Write::DebugControl,
        OSLAR_EL1 => Write::OsLock,
        _ => match comparator(name) {
            Some((kind, number)) => Write::Comparator(kind, number),
            None => Write::Absent,
        },
    }
}

/// `DBGBVR<n>`, `DBGBCR<n>`, `DBGWVR<n>`, `DBGWCR<n>`: op0 2, op1 0, CRn 0, CRm n, op2 4..7.
const fn comparator(name: u64) -> Option<(Comparator, usize)> {
    let number = (name >> 1 & 15) as usize;
    let same_family = name & !(register(0, 0, 0, 15, 3)) == register(2, 0, 0, 0, 4);
    if !same_family {
        return None;
    }
    let kind = match name >> 17 & 3 {
        0 => Comparator::BreakValue,
        1 => Comparator::BreakControl,
        2 => Comparator::WatchValue,
        _ => Comparator::WatchControl,
    };
    Some((kind, number))
}

macro_rules! identification_registers {
    ($($(#[$what:meta])* $register:ident = ($crm:literal, $op2:literal) & $mask:expr;)*) => {
        /// Identification registers that say something to a guest, of the ID group (op0 3, op1 0, CRn 0, CRm
        /// 1..7).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum IdRegister {
            $($(#[$what])* $register),*
        }

        /// Returns the register with this CRm and op2, and the fields of it that a guest sees.
        const fn identification_register(crm: u64, op2: u64) -> Option<(IdRegister, u64)> {
            match (crm, op2) {
                $(($crm, $op2) => Some((IdRegister::$register, $mask)),)*
                _ => None,
            }
        }
    };
}

identification_registers! {
    /// ID_PFR0_EL1 without RAS, AMU.
    Pfr0 = (1, 0) & 0x0F0F_FFFF;
    /// ID_PFR1_EL1 without virtualization.
    Pfr1 = (1, 1) & 0x000F_0FFF;
    /// ID_DFR0_EL1 without trace, PMU.
    Dfr0 = (1, 2) & 0x0000_0FFF;
    /// ID_MMFR0_EL1.
    Mmfr0 = (1, 4) & u64::MAX;
    /// ID_MMFR1_EL1.
    Mmfr1 = (1, 5) & u64::MAX;
    /// ID_MMFR2_EL1.
    Mmfr2 = (1, 6) & u64::MAX;
    /// ID_MMFR3_EL1.
    Mmfr3 = (1, 7) & u64::MAX;
    /// ID_ISAR0_EL1.
    Isar0 = (2, 0) & u64::MAX;
    /// ID_ISAR1_EL1.
    Isar1 = (2, 1) & u64::MAX;
    /// ID_ISAR2_EL1.
    Isar2 = (2, 2) & u64::MAX;
    /// ID_ISAR3_EL1.
    Isar3 = (2, 3) & u64::MAX;
    /// ID_ISAR4_EL1.
    Isar4 = (2, 4) & u64::MAX;
    /// ID_ISAR5_EL1.
    Isar5 = (2, 5) & u64::MAX;
    /// ID_MMFR4_EL1 without EVT, SpecSEI.
    Mmfr4 = (2, 6) & 0x0FFF_FFF0;
    /// MVFR0_EL1.
    Mvfr0 = (3, 0) & u64::MAX;
    /// MVFR1_EL1.
    Mvfr1 = (3, 1) & u64::MAX;
    /// MVFR2_EL1.
    Mvfr2 = (3, 2) & u64::MAX;
    /// ID_AA64PFR0_EL1: EL0, FP, AdvSIMD, DIT, CSV3; no EL2, EL3, RAS, SVE, AMU, MPAM. [`identification`]
    /// adds EL1, GIC and CSV2.
    Aa64Pfr0 = (4, 0) & 0xF00F_0000_00FF_000F;
    /// ID_AA64PFR1_EL1: BT, SSBS.
    Aa64Pfr1 = (4, 1) & 0xFF;
    /// ID_AA64DFR0_EL1: DebugVer, breakpoints, watchpoints, context comparators; no PMU, trace, SPE.
    Aa64Dfr0 = (5, 0) & 0xF0F0_F00F;
    /// ID_AA64ISAR0_EL1: all but TME.
    Aa64Isar0 = (6, 0) & !(0xF << 24);
    /// ID_AA64ISAR1_EL1: all but pointer authentication, LS64, XS.
    Aa64Isar1 = (6, 1) & 0x00FF_FFFF_00FF_F00F;
    /// ID_AA64MMFR0_EL1: no stage-2 granules, FGT, ECV. [`identification`] adds the physical addresses.
    Aa64Mmfr0 = (7, 0) & 0xFFFF_FFF0;
    /// ID_AA64MMFR1_EL1: HAFDBS, HPDS, PAN, ETS.
    Aa64Mmfr1 = (7, 1) & 0x0000_00F0_00F0_F00F;
    /// ID_AA64MMFR2_EL1: CnP, UAO, LSM, VARange, CCIDX, ST, AT, TTL, BBM, E0PD.
    Aa64Mmfr2 = (7, 2) & 0xF0FF_000F_F0FF_0FFF;
}

/// Returns the value of an identification register, of which `hardware` has the CPU's.
#[must_use]
pub fn identification(name: u64, interface: CpuInterface, hardware: impl FnOnce(IdRegister) -> u64) -> u64 {
    const EL1_AARCH64: u64 = 1 << 4;
    const NO_DOUBLE_LOCK: u64 = 0xF << 36;
    /// ID_AA64MMFR0_EL1.PARange: the guest-physical addresses of stage 2.
    const FORTY_BITS: u64 = 2;
    let Some((register, mask)) = identification_register(name >> 1 & 15, name >> 17 & 7) else {
        return 0;
    };
    let value = hardware(register);
    let gic = matches!(interface, CpuInterface::Registers) as u64;
    let besides = match register {
        IdRegister::Pfr1 => gic << 28,
        // EL1 is AArch64 only (HCR_EL2.RW). CSV2 2 and above would promise SCXTNUM_ELx.
        IdRegister::Aa64Pfr0 => EL1_AARCH64 | gic << 24 | (value >> 56 & 0xF).min(1) << 56,
        IdRegister::Aa64Dfr0 => NO_DOUBLE_LOCK,
        IdRegister::Aa64Mmfr0 => (value & 0xF).min(FORTY_BITS),
        _ => 0,
    };
    value & mask | besides
}
