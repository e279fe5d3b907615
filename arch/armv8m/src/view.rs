// SPDX-License-Identifier: Apache-2.0
//! The hypervisor's own accesses to the memory of VMs, on a system with two pCPUs.
//!
//! The blocks of all VMs are Non-secure for their memory protection controllers, so Secure code reaches them
//! by Non-secure transactions only: the SAU of the CPU must say so too. It does for the VM whose world is
//! open here. For any other one a [`View`] has the SAU show the memory of that VM for as long as the view
//! lives. No VM and no task runs on this CPU meanwhile.

use crate::attribution::{BLOCK_REGION, Share, set_region};
use crate::pair::{IS_PAIR, PLACES, Shown, address};
use crate::sysreg::{self, SAU_CTRL, SAU_RBAR, SAU_RLAR, SAU_RNR};

/// The state of the SAU before.
struct Before {
    control: u32,
    regions: [[u32; 2]; BLOCK_REGION as usize],
}

/// A VM's memory that this CPU reaches while the value lives.
pub(crate) struct View([Option<Before>; PLACES]);

impl View {
    /// Shows the memory of a partition, unless the CPU reaches it anyway: as the memory of a task, or of the
    /// VM that has the world.
    #[inline(always)]
    pub(crate) fn of(share: &Share, shown: &Shown) -> Self {
        if !IS_PAIR || shown.is(address(share)) || share.is_of_task() {
            return Self([const { None }; PLACES]);
        }
        Self([const { None }; PLACES].map(|_: Option<Before>| Some(show(share))))
    }
}

impl Drop for View {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(Some(before)) = self.0.first() {
            hide(before);
        }
    }
}

#[inline(never)]
fn show(share: &Share) -> Before {
    let before = Before {
        control: sysreg::read(SAU_CTRL),
        regions: core::array::from_fn(|number| {
            sysreg::write(SAU_RNR, number as u32);
            [sysreg::read(SAU_RBAR), sysreg::read(SAU_RLAR)]
        }),
    };
    sysreg::write(SAU_CTRL, 0);
    for number in 0..BLOCK_REGION {
        let stretch = share.stretches.as_slice().get(number as usize);
        set_region(number, stretch.map_or([0, 0], |stretch| stretch.non_secure()));
    }
    sysreg::write(SAU_CTRL, 1);
    sysreg::synchronize();
    before
}

#[inline(never)]
fn hide(before: &Before) {
    sysreg::write(SAU_CTRL, 0);
    for (number, region) in (0..).zip(before.regions) {
        set_region(number, region);
    }
    sysreg::write(SAU_CTRL, before.control);
    sysreg::synchronize();
}
