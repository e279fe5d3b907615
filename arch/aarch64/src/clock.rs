// SPDX-License-Identifier: Apache-2.0
//! Time: the physical counter, and the hypervisor's timer CNTHP for deadlines (Arm DDI 0487 D11.2).

use crate::machine::Machine;
use crate::sysreg::{read_register, write_guest_register};
use crate::timer;
use bulkhead_arch_api::{Clock, Ticks};

/// CNTHP_CTL_EL2.ENABLE.
const ENABLE: u64 = 1;

impl Clock for Machine {
    #[inline]
    fn now(&self) -> Ticks {
        timer::counter()
    }

    fn hertz(&self) -> u64 {
        read_register!("cntfrq_el0")
    }

    #[inline]
    fn arm(&mut self, deadline: Ticks) {
        write_guest_register!("cnthp_cval_el2", deadline.0);
        write_guest_register!("cnthp_ctl_el2", ENABLE);
    }

    #[inline]
    fn disarm(&mut self) {
        write_guest_register!("cnthp_ctl_el2", 0);
    }
}
