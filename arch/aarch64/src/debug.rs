// SPDX-License-Identifier: Apache-2.0
//! Self-hosted debug for guests: breakpoints, watchpoints and single step of their own.
//!
//! Every debug register traps (MDCR_EL2.TDA, TDRA, TDOSA) and works on a shadow. The comparators are really
//! loaded only while the shadow has debug exceptions switched on (MDSCR_EL1.SS, KDE or MDE, and the OS lock
//! open), so that the common switch moves one register. The hypervisor is never the target of a guest's debug
//! exceptions. They go to EL1 (MDCR_EL2.TDE is 0), and none is generated at a level above their target (Arm
//! DDI 0487 D2.2).

use crate::sysreg::{read_register, write_guest_register};
use bulkhead_arch_aarch64_core::registers::Comparator;

/// MDCR_EL2: TDRA, TDOSA, TDA; TPM and TPMCR; TPMS, TTRF.
const MDCR_TRAPS: u64 = 1 << 11 | 1 << 10 | 1 << 9 | 1 << 6 | 1 << 5 | 1 << 14 | 1 << 19;
/// MDCR_EL2.HPMN: counters of EL1, kept at the hardware's number.
const MDCR_HPMN: u64 = 0x1F;
/// MDSCR_EL1 bits that generate debug exceptions: SS, KDE, MDE.
const MDSCR_ACTIVE: u64 = 1 | 1 << 13 | 1 << 15;
/// MDSCR_EL1 bits that reach the hardware: TDCC besides, but no halting debug and no external debugger's
/// flags.
const MDSCR_EFFECTIVE: u64 = MDSCR_ACTIVE | 1 << 12;
/// MDSCR_EL1 bits that a guest can change. Beside the bits above, ERR, TDCC and INTdis are plain storage.
const MDSCR_WRITABLE: u64 = 0xFFFF_FFFF;

/// Debug registers of a vCPU.
#[derive(Clone, Copy)]
pub(crate) struct Debug {
    comparators: [[u64; 16]; 4],
    mdscr: u64,
    locked: bool,
    /// A comparator may differ from 0.
    written: bool,
}

/// Writes the first `$count` of `$values` to the registers `$name`0 to `$name`15, as many as there are.
macro_rules! write_comparators {
    ($name:literal, $values:expr, $count:expr) => {
        write_comparators!(@ $name, $values, $count, "0" "1" "2" "3" "4" "5" "6" "7" "8" "9" "10" "11" "12" "13" "14" "15")
    };
    (@ $name:literal, $values:expr, $count:expr, $($number:literal)*) => {{
        let mut values = $values.iter().take($count);
        $(if let Some(value) = values.next() {
            write_guest_register!($name $number "_el1", *value);
        })*
    }};
}

/// Sets this pCPU's traps.
pub(crate) fn init() {
    let counters = read_register!("mdcr_el2") & MDCR_HPMN;
    write_guest_register!("mdcr_el2", counters | MDCR_TRAPS);
    write_guest_register!("oslar_el1", 0);
    write_guest_register!("mdscr_el1", 0);
}

impl Debug {
    /// Nothing set.
    pub(crate) const ZERO: Self = Self {
        comparators: [[0; 16]; 4],
        mdscr: 0,
        locked: false,
        written: false,
    };

    /// Resets the debug registers as a cold reset does: the OS lock is set (H9.2.x, OSLSR_EL1.OSLK).
    pub(crate) fn reset(&mut self) {
        if self.written {
            self.comparators = [[0; 16]; 4];
        }
        (self.mdscr, self.locked, self.written) = (0, true, false);
    }

    /// Tells whether debug exceptions are switched on, so that the registers are really loaded.
    pub(crate) const fn active(&self) -> bool {
        self.mdscr & MDSCR_ACTIVE != 0 && !self.locked
    }

    /// Loads the registers into the hardware, where MDSCR_EL1 is 0.
    #[inline]
    pub(crate) fn load(&self) {
        if self.active() {
            self.apply();
        }
    }

    /// Takes the registers out of the hardware. There is nothing to save: the shadow has the true values.
    /// MDSCR_EL1 is 0 afterwards.
    #[inline]
    pub(crate) fn unload(&self) {
        if self.active() {
            write_guest_register!("mdscr_el1", 0);
        }
    }

    /// Brings the hardware of the current vCPU in line with the shadow.
    fn apply(&self) {
        if !self.active() {
            write_guest_register!("mdscr_el1", 0);
            return;
        }
        let features = read_register!("id_aa64dfr0_el1");
        let breakpoints = (features >> 12 & 0xF) as usize + 1;
        let watchpoints = (features >> 20 & 0xF) as usize + 1;
        let [break_values, break_controls, watch_values, watch_controls] = &self.comparators;
        write_comparators!("dbgbvr", break_values, breakpoints);
        write_comparators!("dbgbcr", break_controls, breakpoints);
        write_comparators!("dbgwvr", watch_values, watchpoints);
        write_comparators!("dbgwcr", watch_controls, watchpoints);
        write_guest_register!("mdscr_el1", self.mdscr & MDSCR_EFFECTIVE);
    }

    /// Returns a comparator register as the guest reads it, or `None` if the hardware has no such register.
    pub(crate) fn comparator(&mut self, kind: Comparator, number: usize) -> Option<&mut u64> {
        let features = read_register!("id_aa64dfr0_el1");
        let field = match kind {
            Comparator::BreakValue | Comparator::BreakControl => features >> 12,
            Comparator::WatchValue | Comparator::WatchControl => features >> 20,
        };
        if number > (field & 0xF) as usize {
            return None;
        }
        self.comparators.get_mut(kind as usize)?.get_mut(number)
    }

    /// Writes a comparator of the current vCPU. Returns false if the hardware has no such comparator.
    pub(crate) fn write_comparator(&mut self, kind: Comparator, number: usize, value: u64) -> bool {
        let Some(register) = self.comparator(kind, number) else {
            return false;
        };
        *register = value;
        self.written = true;
        if self.active() {
            self.apply();
        }
        true
    }

    /// Returns MDSCR_EL1 as the guest reads it.
    pub(crate) const fn mdscr(&self) -> u64 {
        self.mdscr
    }

    /// Writes MDSCR_EL1 for the guest.
    pub(crate) fn write_mdscr(&mut self, value: u64) {
        self.mdscr = value & MDSCR_WRITABLE;
        self.apply();
    }

    /// Returns OSLSR_EL1: an OS lock is implemented (OSLM = 0b10), OSLK is its state.
    pub(crate) const fn os_lock_status(&self) -> u64 {
        1 << 3 | (self.locked as u64) << 1
    }

    /// Writes OSLAR_EL1 for the guest.
    pub(crate) fn write_os_lock(&mut self, value: u64) {
        self.locked = value & 1 != 0;
        self.apply();
    }

    /// Tells whether the next instruction must be stepped to, after an instruction that the hypervisor has
    /// completed (PSTATE.SS is consumed).
    #[inline]
    pub(crate) const fn stepping(&self) -> bool {
        self.mdscr & 1 != 0
    }
}
