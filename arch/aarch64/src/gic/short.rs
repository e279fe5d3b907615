// SPDX-License-Identifier: Apache-2.0
//! The short ways of the most frequent events: the running vCPU's virtual timer, kicks, words of the
//! distributor and of the vCPU's redistributor, software-generated interrupts to one vCPU. docs/paths.md
//! counts their instructions.
//!
//! Each short way is inlined into an exit handler and works without a call. It either does all of its work or
//! says that it did nothing. In the second case the long way in the parent module does the work.

use super::guest::REDISTRIBUTOR_SHIFT;
use super::interface::{self, Interface};
use super::local::Local;
use super::state::{DISTRIBUTOR_SIZE, PcpuIrq, SGI_KICK, VERSION_2, VIRTUAL_TIMER_LINE, VcpuIrq, WIRES};
use bulkhead_arch_api::{GuestPhys, VcpuId, VcpuSet};
use bulkhead_arch_vgic::Vgic;
use core::sync::atomic::Ordering::SeqCst;

/// Delivers the running vCPU's virtual timer on the short way. Returns false if nothing was done.
#[inline(always)]
pub(crate) fn deliver_timer(p: &PcpuIrq, v: &mut VcpuIrq, line: u32) -> bool {
    let Some(own) = v.own.filter(|_| line == p.virtual_timer) else {
        return false;
    };
    own.deliver_now(&mut v.bank, &mut Interface, VIRTUAL_TIMER_LINE)
}

/// Takes a kick for the running vCPU on the short way. The vCPU looks for interrupts on its way back. Returns
/// false if nothing was done.
#[inline(always)]
pub(crate) fn take_kick(p: &PcpuIrq, v: &VcpuIrq, line: u32) -> bool {
    let Some(kicked) = WIRES.kicked.get(usize::from(p.id.0)).filter(|_| line == SGI_KICK) else {
        return false;
    };
    let me = VcpuSet::of(v.id).0;
    if kicked.compare_exchange(me, 0, SeqCst, SeqCst).is_err() {
        return false;
    }
    interface::deactivate(line);
    true
}

/// Answers a guest's load of a word on the short way. Returns `None` if nothing was done.
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

/// Does a guest's store of a word on the short way. Returns `None` if nothing was done. After an answer that
/// is not 0, [`enable_changed`] must follow.
#[inline(always)]
pub(crate) fn write_word(v: &VcpuIrq, address: GuestPhys, value: u32) -> Option<u32> {
    let offset = address.0.wrapping_sub(v.distributor);
    if offset >= DISTRIBUTOR_SIZE {
        return None;
    }
    v.vgic.as_ref()?.write_word(offset as u32, value)
}

/// Returns the offset of an address in the running vCPU's redistributor, if the address is there.
#[inline(always)]
pub(crate) fn own_offset(v: &VcpuIrq, address: GuestPhys) -> Option<u32> {
    let offset = address.0.wrapping_sub(v.frame);
    (!VERSION_2 && offset >> REDISTRIBUTOR_SHIFT == 0).then_some(offset as u32)
}

/// Does [`read_word`] in the running vCPU's redistributor.
#[inline(always)]
pub(crate) fn read_own_word(v: &VcpuIrq, offset: u32) -> Option<u32> {
    v.vgic.as_ref()?.read_own_word(v.index, v.own, offset)
}

/// Does [`write_word`] in the running vCPU's redistributor.
#[inline(always)]
pub(crate) fn write_own_word(v: &VcpuIrq, offset: u32, value: u32) -> Option<u32> {
    v.own?.write_word(offset, value)
}

/// Does the work that [`write_word`] or [`write_own_word`] has left. Only the place of the word among the
/// registers of one kind counts. It is in the lowest bits of the address, because the distributor and the
/// redistributors are whole pages.
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

/// Returns the vCPU and the line, if a guest's store of a word sends a software-generated interrupt to one
/// vCPU. A GICv2 has a register of its distributor for that.
#[inline(always)]
pub(crate) fn sent_by_word(v: &VcpuIrq, address: GuestPhys, value: u32) -> Option<(usize, u32)> {
    if !VERSION_2 {
        return None;
    }
    Vgic::single_target_version2(address.0.wrapping_sub(v.distributor), value)
}

/// Sends a software-generated interrupt to one vCPU on the short way, if the target is this vCPU. Returns
/// false if nothing was done.
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

/// Sends a software-generated interrupt to any one vCPU on the short way.
#[inline(always)]
pub(crate) fn send_to_one(p: &mut PcpuIrq, v: &VcpuIrq, target: usize, line: u32) -> VcpuSet {
    let mut local = Local {
        pcpu: p,
        first: v.first,
    };
    if let Some(vgic) = v.vgic.as_ref() {
        if VERSION_2 {
            vgic.send_single_version2(v.index, target, line, &mut local);
        } else {
            vgic.send_single(v.index, target, line, &mut local);
        }
    }
    p.take_wake()
}
