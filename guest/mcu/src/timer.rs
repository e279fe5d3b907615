// SPDX-License-Identifier: Apache-2.0
//! The CMSDK APB timers (Arm DDI 0479D, section 4.1), as clocks for alarms; the first is often the system's
//! own.
//!
//! One counts down with the CPU's clock and starts over from `reload`, so what it has counted since then is
//! how late a handler is.

use crate::register;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

const CONTROL: usize = 0;
const VALUE: usize = 4;
const RELOAD: usize = 8;
const INTERRUPT: usize = 0xc;

const ENABLE: u32 = 1 << 0;
const ENABLE_INTERRUPT: u32 = 1 << 3;

/// A timer.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    base: usize,
}

impl Timer {
    /// The timers of an MPS2 board, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self { base: 0x4000_0000 }, Self { base: 0x4000_1000 }];

    /// Asks for an interrupt every `ticks` of the clock.
    pub fn start(self, ticks: u32) {
        register::write(self.base + CONTROL, 0);
        register::write(self.base + RELOAD, ticks.wrapping_sub(1));
        register::write(self.base + VALUE, ticks.wrapping_sub(1));
        self.acknowledge();
        register::write(self.base + CONTROL, ENABLE | ENABLE_INTERRUPT);
    }

    /// Tells whether it neither counts nor interrupts, as after a reset of the board. It remembers all the
    /// same what it has counted out before.
    #[must_use]
    pub fn is_quiet(self) -> bool {
        register::read(self.base + CONTROL) == 0
    }

    /// Tells whether it has gone off since the last acknowledgement.
    #[must_use]
    pub fn has_gone_off(self) -> bool {
        register::read(self.base + INTERRUPT) != 0
    }

    /// Ends the interrupt.
    #[inline]
    pub fn acknowledge(self) {
        register::write(self.base + INTERRUPT, 1);
    }

    /// Returns the time that is left until the next alarm.
    #[inline]
    #[must_use]
    pub fn left(self) -> u32 {
        register::read(self.base + VALUE)
    }
}

/// A timer that goes off for ever, and how late its handler was at best and at worst.
#[derive(Debug)]
pub struct Alarms {
    timer: Timer,
    period: u32,
    count: AtomicU32,
    earliest: AtomicU32,
    latest: AtomicU32,
}

impl Alarms {
    /// Alarms every `period` ticks, once they are started.
    #[must_use]
    pub const fn new(timer: Timer, period: u32) -> Self {
        Self {
            timer,
            period,
            count: AtomicU32::new(0),
            earliest: AtomicU32::new(u32::MAX),
            latest: AtomicU32::new(0),
        }
    }

    /// Starts the alarms, from now on.
    pub fn start(&self) {
        self.timer.start(self.period);
    }

    /// Notes an alarm and how late it is. The handler alone calls this, before anything else.
    #[inline]
    pub fn note(&self) {
        let late = self.period - 1 - self.timer.left();
        self.timer.acknowledge();
        // No other code writes these registers while alarms come.
        self.earliest
            .store(self.earliest.load(Relaxed).min(late), Relaxed);
        self.latest.store(self.latest.load(Relaxed).max(late), Relaxed);
        self.count.store(self.count.load(Relaxed) + 1, Relaxed);
    }

    /// Returns the number of alarms there were.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count.load(Relaxed)
    }

    /// Returns how late the handler was at best and at worst, in nanoseconds where an instruction takes one.
    #[must_use]
    pub fn lateness(&self) -> [u32; 2] {
        /// Instructions of a tick there.
        const NANOSECONDS: u32 = 40;
        [&self.earliest, &self.latest].map(|ticks| ticks.load(Relaxed) * NANOSECONDS)
    }
}
