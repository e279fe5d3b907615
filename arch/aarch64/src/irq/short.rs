// SPDX-License-Identifier: Apache-2.0
//! The short ways of what comes again and again: the running vCPU's virtual timer, kicks, words of the
//! distributor, software-generated interrupts to one vCPU. docs/paths.md counts them.
//!
//! Each of them is inlined into an exit handler, does its work without a call, and either does all of it or says
//! that it did nothing; the long way in the parent module then does it.

use super::interface::{self, Interface};
use super::local::Local;
use super::{DISTRIBUTOR_SIZE, KICKED, PcpuIrq, SGI_KICK, VERSION_2, VIRTUAL_TIMER_LINE, VcpuIrq};
use bulkhead_arch_api::{GuestPhys, VcpuId, VcpuSet};
use bulkhead_arch_vgic::Vgic;
use core::sync::atomic::Ordering::SeqCst;

/// The short way of the running vCPU's virtual timer. False: nothing was done.
#[inline(always)]
pub(crate) fn deliver_timer(p: &PcpuIrq, v: &mut VcpuIrq, line: u32) -> bool {
    let Some(own) = v.own.filter(|_| line == p.virtual_timer) else {
        return false;
    };
    own.deliver_now(&mut v.bank, &mut Interface, VIRTUAL_TIMER_LINE)
}

/// The short way of a kick for the running vCPU, which looks for itself on its way back. False: nothing was done.
#[inline(always)]
pub(crate) fn take_kick(p: &PcpuIrq, v: &VcpuIrq, line: u32) -> bool {
    let Some(kicked) = KICKED.get(usize::from(p.id.0)).filter(|_| line == SGI_KICK) else {
        return false;
    };
    let me = VcpuSet::of(v.id).0;
    if kicked.compare_exchange(me, 0, SeqCst, SeqCst).is_err() {
        return false;
    }
    interface::deactivate(line);
    true
}

/// The short way of a guest's load of a word. `None`: nothing was done.
#[inline(always)]
pub(crate) fn read_word(v: &VcpuIrq, address: GuestPhys) -> Option<u32> {
    let offset = address.0.wrapping_sub(v.distributor);
    if offset >= DISTRIBUTOR_SIZE {
        return None;
    }
    let vgic = v.vgic.as_ref()?;
    if VERSION_2 {
        return vgic.read_word_version2(offset as u32);
    }
    vgic.read_word(offset as u32)
}

/// The short way of a guest's store of a word. `None`: nothing was done. Not 0: [`enable_changed`] must follow.
#[inline(always)]
pub(crate) fn write_word(v: &VcpuIrq, address: GuestPhys, value: u32) -> Option<u32> {
    let offset = address.0.wrapping_sub(v.distributor);
    if offset >= DISTRIBUTOR_SIZE {
        return None;
    }
    v.vgic.as_ref()?.write_word(offset as u32, value)
}

/// What [`write_word`] left to do.
pub(crate) fn enable_changed(p: &mut PcpuIrq, v: &VcpuIrq, address: GuestPhys, changed: u32) -> VcpuSet {
    let offset = address.0.wrapping_sub(v.distributor);
    let mut local = Local {
        pcpu: p,
        first: v.first,
    };
    if let Some(vgic) = v.vgic() {
        vgic.written_word(v.index, offset as u32, changed, &mut local);
    }
    p.take_wake()
}

/// The vCPU and the line, if a guest's store of a word sends a software-generated interrupt to one vCPU: a GICv2 has a register
/// of its distributor for that.
#[inline(always)]
pub(crate) fn sent_by_word(v: &VcpuIrq, address: GuestPhys, value: u32) -> Option<(usize, u32)> {
    if !VERSION_2 {
        return None;
    }
    Vgic::single_target_version2(address.0.wrapping_sub(v.distributor), value)
}

/// The short way of a software-generated interrupt to one vCPU, if it is this one. False: nothing was done.
#[inline(always)]
pub(crate) fn send_to_self(v: &mut VcpuIrq, target: usize, line: u32) -> bool {
    let Some(own) = v.own.filter(|_| target == v.index) else {
        return false;
    };
    if VERSION_2 {
        let sender = VcpuSet::of(VcpuId(v.index as u8)).0 as u8;
        return own.deliver_sent(&mut v.bank, &mut Interface, line, sender);
    }
    own.deliver_now(&mut v.bank, &mut Interface, line)
}

/// The same to any one vCPU.
#[inline(always)]
pub(crate) fn send_to_one(p: &mut PcpuIrq, v: &VcpuIrq, target: usize, line: u32) -> VcpuSet {
    let mut local = Local {
        pcpu: p,
        first: v.first,
    };
    if let Some(vgic) = v.vgic.as_ref() {
        if VERSION_2 {
            vgic.send_single_version2(v.index, (target, line), &mut local);
        } else {
            vgic.send_single(v.index, (target, line), &mut local);
        }
    }
    p.take_wake()
}
