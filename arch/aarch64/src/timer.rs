// SPDX-License-Identifier: Apache-2.0
//! The virtual and the physical timer of a vCPU (Arm DDI 0487 D11).
//!
//! While a vCPU is current both timers are in the hardware and count, whether the vCPU runs or waits. While
//! the vCPU is not current, they are off. The kernel then wakes an idle vCPU by the time that the vCPU's
//! [`bulkhead_arch_api::Exit::Idle`] named.
//!
//! Real time: CNTVOFF_EL2 is zero and the guest uses both timers directly. Frozen time: the guest's counters
//! are the hardware's minus an offset that grows by the time the vCPU was ready but not current. No hardware
//! of this class offsets the physical counter, so there CNTPCT_EL0 and CNTP_* trap and are converted. Time
//! spent idle is not frozen. If the vCPU was idle when it left, time stands still from the moment for which
//! its own timer was set.

use crate::sysreg::{read_register, write_guest_register};
use bulkhead_arch_aarch64_core::registers::PhysicalTimer;
use bulkhead_arch_api::Ticks;

/// CNTx_CTL.ENABLE and IMASK: a timer that can interrupt is enabled and not masked.
const ENABLE: u64 = 1;
const IMASK: u64 = 1 << 1;
/// CNTHCTL_EL2.EL1PCTEN and EL1PCEN (E2H = 0): EL1 and EL0 reach CNTPCT_EL0 and CNTP_* directly.
const CNTHCTL_DIRECT: u64 = 3;

/// Timers and time of a vCPU that is not current.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Timers {
    virtual_control: u64,
    virtual_compare: u64,
    physical_control: u64,
    /// In the hardware's time.
    physical_compare: u64,
    /// The hardware's counter minus the guest's.
    offset: u64,
    /// The time when the vCPU ceased to be current, or when its own timer wanted it back. `NEVER` if it was
    /// never current.
    frozen_since: Ticks,
    /// The time when an idle vCPU's own timer wants it back. In the past if the vCPU is not idle.
    idle_until: Ticks,
}

/// Sets this pCPU's counters up for real time: EL1 reaches them directly, and both are the hardware's.
pub(crate) fn real_time() {
    write_guest_register!("cnthctl_el2", CNTHCTL_DIRECT);
    write_guest_register!("cntvoff_el2", 0);
}

/// Returns the counter, read in program order.
#[inline]
pub(crate) fn counter() -> Ticks {
    crate::sysreg::instruction!("isb");
    Ticks(read_register!("cntpct_el0"))
}

impl Timers {
    /// Both off, no offset.
    pub(crate) const ZERO: Self = Self {
        virtual_control: 0,
        virtual_compare: 0,
        physical_control: 0,
        physical_compare: 0,
        offset: 0,
        frozen_since: Ticks::NEVER,
        idle_until: Ticks(0),
    };

    /// Takes both timers out of the hardware and switches them off. `gic` has taken their interrupts before.
    #[inline]
    pub(crate) fn save(&mut self) {
        (self.virtual_control, self.virtual_compare) =
            (read_register!("cntv_ctl_el0"), read_register!("cntv_cval_el0"));
        (self.physical_control, self.physical_compare) =
            (read_register!("cntp_ctl_el0"), read_register!("cntp_cval_el0"));
        write_guest_register!("cntv_ctl_el0", 0);
        write_guest_register!("cntp_ctl_el0", 0);
    }

    /// Does [`Timers::save`] of one vCPU and [`Timers::load`] of the one that follows it. Their levels settle
    /// before an interrupt can be taken.
    #[inline(always)]
    pub(crate) fn switch(before: &mut Self, after: &Self) {
        let (control, compare) = (after.virtual_control, after.virtual_compare);
        (before.virtual_control, before.virtual_compare) =
            (read_register!("cntv_ctl_el0"), read_register!("cntv_cval_el0"));
        write_guest_register!("cntv_cval_el0", compare);
        write_guest_register!("cntv_ctl_el0", control);
        let (control, compare) = (after.physical_control, after.physical_compare);
        (before.physical_control, before.physical_compare) =
            (read_register!("cntp_ctl_el0"), read_register!("cntp_cval_el0"));
        write_guest_register!("cntp_cval_el0", compare);
        write_guest_register!("cntp_ctl_el0", control);
    }

    /// Puts both into the hardware.
    #[inline]
    pub(crate) fn load(&self) {
        write_guest_register!("cntv_cval_el0", self.virtual_compare);
        write_guest_register!("cntp_cval_el0", self.physical_compare);
        write_guest_register!("cntv_ctl_el0", self.virtual_control);
        write_guest_register!("cntp_ctl_el0", self.physical_control);
    }

    /// Does the part of the work for frozen time that [`Timers::save`] leaves. While no vCPU with frozen time
    /// is current, the hardware is set up for real time.
    pub(crate) fn freeze(&mut self) {
        self.frozen_since = counter();
        real_time();
    }

    /// Does the work for frozen time that must come before [`Timers::load`]: moves the guest's time back by
    /// the time for which the vCPU was ready but not current.
    pub(crate) fn thaw(&mut self) {
        if self.frozen_since != Ticks::NEVER {
            let since = self.frozen_since.max(self.idle_until);
            let stood = counter().since(since).0;
            self.offset = self.offset.wrapping_add(stood);
            self.physical_compare = self.physical_compare.wrapping_add(stood);
        }
        write_guest_register!("cnthctl_el2", 0);
        write_guest_register!("cntvoff_el2", self.offset);
    }

    /// Notes that the vCPU waits until then, or for an interrupt.
    pub(crate) fn idle(&mut self, until: Ticks) {
        self.idle_until = until;
    }

    /// Returns the time that [`Timers::idle`] was told.
    #[inline]
    pub(crate) const fn idle_until(&self) -> Ticks {
        self.idle_until
    }

    /// Notes that the vCPU runs.
    #[inline]
    pub(crate) fn busy(&mut self) {
        self.idle_until = Ticks(0);
    }
}

/// Returns the time at which the first enabled timer of the current vCPU expires, in the hypervisor's ticks.
pub(crate) fn next_expiry(timers: &Timers) -> Ticks {
    let mut first = Ticks::NEVER;
    if read_register!("cntv_ctl_el0") & (ENABLE | IMASK) == ENABLE {
        let expiry = read_register!("cntv_cval_el0").saturating_add(timers.offset);
        first = first.min(Ticks(expiry));
    }
    if read_register!("cntp_ctl_el0") & (ENABLE | IMASK) == ENABLE {
        first = first.min(Ticks(read_register!("cntp_cval_el0")));
    }
    first
}

/// Accesses of a frozen-time vCPU to its physical counter and timer, which trap.
impl Timers {
    /// Reads a register for the guest.
    pub(crate) fn read_physical(&self, register: PhysicalTimer) -> u64 {
        match register {
            PhysicalTimer::Counter => counter().0.wrapping_sub(self.offset),
            PhysicalTimer::Value => u64::from(read_register!("cntp_tval_el0") as u32),
            PhysicalTimer::Control => read_register!("cntp_ctl_el0"),
            PhysicalTimer::Compare => read_register!("cntp_cval_el0").wrapping_sub(self.offset),
        }
    }

    /// Writes a register for the guest.
    pub(crate) fn write_physical(&self, register: PhysicalTimer, value: u64) {
        match register {
            PhysicalTimer::Counter => {}
            PhysicalTimer::Value => write_guest_register!("cntp_tval_el0", value),
            PhysicalTimer::Control => write_guest_register!("cntp_ctl_el0", value),
            PhysicalTimer::Compare => {
                write_guest_register!("cntp_cval_el0", value.wrapping_add(self.offset));
            }
        }
    }
}
