// SPDX-License-Identifier: Apache-2.0
//! Time: the time base, and the programmable interval timer for the event that comes first.

use crate::machine::Machine;
use crate::sysreg::{self, PIT, TSR};
use bulkhead_arch_api::{Clock, Ticks};

/// The least ahead that the timer is set: QEMU 7.2 takes 1 for a timer that is to stop.
const NEAREST: u64 = 2;
/// The furthest ahead that the timer is set.
const FURTHEST: u64 = 1 << 31;
/// TSR.PIS: the timer has expired.
const EXPIRED: u32 = 0x0800_0000;

impl Machine {
    /// Sets the timer for `wanted`.
    pub(crate) fn set_timer(&mut self, wanted: Ticks) {
        if wanted == self.armed {
            return;
        }
        let ahead = wanted.since(self.now()).0.clamp(NEAREST, FURTHEST);
        // QEMU 7.2 interrupts only when the bit is set anew.
        sysreg::write_spr::<PIT>(0);
        sysreg::write_spr::<TSR>(EXPIRED);
        sysreg::write_spr::<PIT>(ahead as u32);
        self.armed = wanted;
    }

    /// Handles an interrupt of the timer. Tells whether the kernel's deadline has come, which is forgotten
    /// then.
    pub(crate) fn timer_fired(&mut self) -> bool {
        sysreg::write_spr::<TSR>(EXPIRED);
        // The timer is not set for the event that is wanted next.
        self.armed = Ticks(0);
        self.take_deadline()
    }

    /// Tells whether the kernel's deadline has come. Such a deadline is then forgotten.
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
        Ticks(sysreg::time())
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
