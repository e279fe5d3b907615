// SPDX-License-Identifier: Apache-2.0
//! The generic timer as an EL1 guest has it (Arm ARM DDI 0487 chapter D12): one counter in two views, a timer
//! on each.

use core::arch::asm;

use super::{cpu, gic};

/// Which view of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// `CNTVCT`, `CNTV_*`.
    Virtual,
    /// `CNTPCT`, `CNTP_*`.
    Physical,
}

/// Timer is on (`CNTx_CTL_EL0.ENABLE`).
const ENABLE: u64 = 1;
/// The interrupt is kept back (`CNTx_CTL_EL0.IMASK`).
const MASK: u64 = 1 << 1;
/// The condition is met (`CNTx_CTL_EL0.ISTATUS`).
const STATUS: u64 = 1 << 2;

macro_rules! read {
    ($name:literal) => {{
        let value: u64;
        // SAFETY: reads a timer register; the barrier keeps it from being read early (D12.1.2).
        unsafe { asm!("isb", concat!("mrs {}, ", $name), out(reg) value, options(nostack)) }
        value
    }};
}

macro_rules! write {
    ($name:literal, $value:expr) => {
        // SAFETY: a timer can only raise its own interrupt.
        unsafe { asm!(concat!("msr ", $name, ", {}"), "isb", in(reg) $value, options(nostack)) }
    };
}

/// Length of one nap of [`nap_until`], in microseconds.
const NAP: u64 = 20;

impl Timer {
    /// Returns the interrupt of the timer on the default machine.
    #[must_use]
    pub const fn line(self) -> u32 {
        match self {
            Self::Virtual => 27,
            Self::Physical => 30,
        }
    }

    /// Returns the counter.
    #[must_use]
    #[inline]
    pub fn now(self) -> u64 {
        match self {
            Self::Virtual => read!("cntvct_el0"),
            Self::Physical => read!("cntpct_el0"),
        }
    }

    /// Returns the comparator.
    #[must_use]
    pub fn deadline(self) -> u64 {
        match self {
            Self::Virtual => read!("cntv_cval_el0"),
            Self::Physical => read!("cntp_cval_el0"),
        }
    }

    /// Fires at `deadline`.
    pub fn arm(self, deadline: u64) {
        match self {
            Self::Virtual => {
                write!("cntv_cval_el0", deadline);
                write!("cntv_ctl_el0", ENABLE);
            }
            Self::Physical => {
                write!("cntp_cval_el0", deadline);
                write!("cntp_ctl_el0", ENABLE);
            }
        }
    }

    /// Fires `ticks` from now, by the 32-bit down-counter view.
    pub fn arm_relative(self, ticks: u32) {
        match self {
            Self::Virtual => {
                write!("cntv_tval_el0", u64::from(ticks));
                write!("cntv_ctl_el0", ENABLE);
            }
            Self::Physical => {
                write!("cntp_tval_el0", u64::from(ticks));
                write!("cntp_ctl_el0", ENABLE);
            }
        }
    }

    /// Counts `ticks` down and keeps its interrupt to itself.
    pub fn count_down(self, ticks: u32) {
        match self {
            Self::Virtual => {
                write!("cntv_tval_el0", u64::from(ticks));
                write!("cntv_ctl_el0", ENABLE | MASK);
            }
            Self::Physical => {
                write!("cntp_tval_el0", u64::from(ticks));
                write!("cntp_ctl_el0", ENABLE | MASK);
            }
        }
    }

    /// Takes the interrupt's level back.
    pub fn disarm(self) {
        match self {
            Self::Virtual => write!("cntv_ctl_el0", 0_u64),
            Self::Physical => write!("cntp_ctl_el0", 0_u64),
        }
    }

    /// Returns `CNTx_CTL_EL0`.
    #[must_use]
    pub fn control(self) -> u64 {
        match self {
            Self::Virtual => read!("cntv_ctl_el0"),
            Self::Physical => read!("cntp_ctl_el0"),
        }
    }

    /// Tells whether the deadline has come.
    #[must_use]
    pub fn has_fired(self) -> bool {
        self.control() & STATUS != 0
    }
}

/// Returns the number of ticks per second of both counters.
#[must_use]
pub fn frequency() -> u64 {
    read!("cntfrq_el0")
}

/// Nanoseconds of `ticks`; right for up to 18 s worth of ticks.
#[must_use]
pub fn nanoseconds(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000_000) / frequency().max(1)
}

/// Returns the number of ticks of `microseconds`.
#[must_use]
pub fn ticks(microseconds: u64) -> u64 {
    microseconds.saturating_mul(frequency()) / 1_000_000
}

/// Sleeps for `microseconds`, CPU idle, after setting the interrupt controller up for it. For programs that
/// use no interrupt otherwise; the others have [`nap`].
pub fn sleep(microseconds: u64) {
    gic::init_distributor();
    gic::init_cpu();
    gic::enable(Timer::Virtual.line());
    nap(microseconds);
}

/// Sleeps for `microseconds`, CPU idle: the virtual timer's interrupt, which must be enabled and
/// have no other use meanwhile, wakes the CPU while interrupts are masked, and is taken and ended here.
pub fn nap(microseconds: u64) {
    let timer = Timer::Virtual;
    timer.arm(timer.now() + ticks(microseconds));
    while !timer.has_fired() {
        cpu::wait_for_interrupt();
    }
    let interrupt = gic::acknowledge();
    timer.disarm();
    if interrupt < gic::FIRST_SPECIAL {
        gic::end(interrupt);
    }
}

/// Naps until `done` or for `microseconds` at most; whether it became true. Unlike a spinning wait it lets
/// another vCPU of the same pCPU run.
pub fn nap_until(microseconds: u64, mut done: impl FnMut() -> bool) -> bool {
    let end = Timer::Virtual.now() + ticks(microseconds);
    loop {
        if done() {
            return true;
        }
        if Timer::Virtual.now() > end {
            return false;
        }
        nap(NAP);
    }
}

/// Waits for `microseconds` without using an interrupt, CPU busy.
pub fn pause(microseconds: u64) {
    let end = Timer::Virtual.now() + ticks(microseconds);
    while Timer::Virtual.now() < end {
        cpu::relax();
    }
}
