// SPDX-License-Identifier: Apache-2.0
//! Time: a free-running counter of 32 bits, and one timer for whatever comes first.
//!
//! The counter wraps after some minutes, so the timer is never set further ahead than half of that, and whoever reads the
//! counter notices that it has wrapped. The timer interrupts for the kernel's deadline and for the guest's own timer; for the latter
//! not again before [`OWN_RATE`] allows, or a guest whose SysTick has a tiny reload value would keep the CPU in the hypervisor.

use crate::machine::Machine;
use bulkhead_arch_api::{Clock, Ticks};
use bulkhead_arch_support::Mmio;
use core::cell::Cell;

/// Offset of the free-running counter among the board's own registers (Arm DAI 0386C 4.5, FPGAIO COUNTER).
const COUNTER: usize = 0x18;
/// The furthest ahead that the timer is set.
const FURTHEST: u64 = 1 << 31;

/// How often in a second the timer interrupts for guests' own timers at most.
const OWN_RATE: u64 = 100_000;

/// The counter, with the bits it does not have.
pub(crate) struct Counter {
    registers: Mmio,
    high: Cell<u32>,
    low: Cell<u32>,
}

impl Counter {
    pub(crate) const fn new(registers: Mmio) -> Self {
        Self {
            registers,
            high: Cell::new(0),
            low: Cell::new(0),
        }
    }

    /// Its address.
    pub(crate) const fn address(&self) -> usize {
        self.registers.address(COUNTER)
    }

    /// The bits that it has.
    #[inline(always)]
    pub(crate) fn low(&self) -> u32 {
        self.registers.read32(COUNTER)
    }

    /// Ticks since the counter started. Requires: asked at least once while it goes round.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        let low = self.registers.read32(COUNTER);
        if low < self.low.get() {
            self.high.set(self.high.get().wrapping_add(1));
        }
        self.low.set(low);
        u64::from(self.high.get()) << 32 | u64::from(low)
    }
}

impl Machine {
    /// Sets the timer for `wanted`.
    #[inline]
    pub(crate) fn set_timer(&mut self, wanted: Ticks) {
        if wanted != self.armed {
            self.start_timer(wanted);
        }
    }

    #[inline(never)]
    fn start_timer(&mut self, wanted: Ticks) {
        let ahead = wanted.since(self.now()).0.clamp(1, FURTHEST);
        self.timer.start(ahead as u32);
        self.armed = wanted;
    }

    /// The timer has interrupted.
    pub(crate) fn timer_fired(&mut self) {
        self.timer.stop();
        let apart = u64::from(self.hertz) / OWN_RATE;
        self.earliest_own = Ticks(self.now().0.saturating_add(apart));
        // Whatever is wanted next is not what the timer is set for.
        self.armed = Ticks(0);
    }

    /// Whether the kernel's deadline has come; then it is forgotten.
    pub(crate) fn take_deadline(&mut self) -> bool {
        let has_come = self.deadline <= self.now();
        if has_come {
            self.deadline = Ticks::NEVER;
        }
        has_come
    }
}

impl Clock for Machine {
    #[inline]
    fn now(&self) -> Ticks {
        Ticks(self.counter.read())
    }

    fn hertz(&self) -> u64 {
        u64::from(self.hertz)
    }

    #[inline]
    fn arm(&mut self, deadline: Ticks) {
        self.deadline = deadline;
    }

    #[inline]
    fn disarm(&mut self) {
        self.deadline = Ticks::NEVER;
    }
}
