// SPDX-License-Identifier: Apache-2.0
//! The way of a vCPU's interrupt state into the hardware of its pCPU and out of it.
//!
//! Nearly always the guest has ended all interrupts that it was given, and then little moves
//! (`Redistributor::leave`, `enter`). That case is inlined into the switch. Everything else takes the long
//! way of `arch/vgic`.

use super::interface::{self, Interface};
use super::local::Local;
use super::state::{MaybeVcpu, PcpuIrq, VcpuIrq, hand_over};
use bulkhead_arch_api::VcpuId;
use bulkhead_arch_vgic::Hardware;

/// Switches from one vCPU to another with this number, both by the short way and without a call. Returns
/// false if nothing was done. Requires: the interface has coarse active priorities only.
#[inline(always)]
pub(crate) fn switch_fast(p: &mut PcpuIrq, before: &mut VcpuIrq, v: &mut VcpuIrq, vcpu: VcpuId) -> bool {
    let (Some(old), Some(own)) = (before.own, v.own) else {
        return false;
    };
    // Lines that the vCPU does not want are as in `enable_private`.
    let wanted = v.bank.mirrored();
    if !old.has_ended_all(&before.bank, &Interface)
        || interface::coarse_priorities() != 0
        || !own.may_enter(&v.bank)
        || wanted & !p.private_enabled != 0
    {
        return false;
    }
    p.wanted = wanted;
    old.leave_now(&mut before.bank, &Interface);
    own.enter_now(&mut v.bank, &mut Interface);
    p.loaded = MaybeVcpu::some(vcpu);
    true
}

/// Loads a vCPU with this number where none was current, by the short way and without a call. Returns false
/// if nothing was done.
#[inline(always)]
pub(crate) fn load_fast(p: &mut PcpuIrq, v: &mut VcpuIrq, vcpu: VcpuId) -> bool {
    let Some(own) = v.own else { return false };
    let wanted = v.bank.mirrored();
    if !own.may_enter(&v.bank) || wanted & !p.private_enabled != 0 {
        return false;
    }
    p.wanted = wanted;
    own.enter_now(&mut v.bank, &mut Interface);
    p.loaded = MaybeVcpu::some(vcpu);
    true
}

/// Enables this pCPU's private lines as the vCPU wants them. Lines that were changed meanwhile are marked for
/// a recheck. A line that is enabled already, and which the vCPU does not want, stays enabled until it
/// interrupts: mostly its timer is off, and the next vCPU wants the line.
#[inline(always)]
fn enable_private(p: &mut PcpuIrq, v: &VcpuIrq) {
    p.wanted = v.bank.mirrored();
    if p.wanted & !p.private_enabled != 0 {
        enable_wanted(p);
    }
}

#[inline(never)]
fn enable_wanted(p: &mut PcpuIrq) {
    let wanted = p.wanted;
    Local { pcpu: p, first: 0 }.enable_private(wanted);
}

/// Makes the vCPU current. Call this before its timers are restored.
#[inline(always)]
pub(crate) fn load(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    let Some(own) = v.own else {
        return interface::close();
    };
    p.loaded = MaybeVcpu::some(v.id);
    if !own.enter(&mut v.bank, &mut Interface) {
        return load_all(p, v);
    }
    enable_private(p, v);
}

#[inline(never)]
fn load_all(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    if let Some(vgic) = v.vgic() {
        vgic.load(
            v.index,
            &mut v.bank,
            &mut Local {
                pcpu: p,
                first: v.first,
            },
        );
    }
}

/// Ends the vCPU's time as the current one. Call this before its timers are saved and switched off. If the
/// vCPU had no virtual interrupt in the hardware, the virtual interface stays as it is: [`load`] or [`close`]
/// follows before a guest runs.
#[inline(always)]
pub(crate) fn unload(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    let Some(own) = v.own else { return };
    // The private lines stay enabled: their timers are about to be switched off.
    if !own.leave(&mut v.bank, &Interface) {
        unload_all(p, v);
    }
    p.loaded = MaybeVcpu::NONE;
}

/// Switches the virtual interface off, because no vCPU is current.
pub(crate) fn close() {
    interface::close();
}

#[inline(never)]
fn unload_all(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    if let Some(vgic) = v.vgic() {
        vgic.unload(
            v.index,
            &mut v.bank,
            &mut Local {
                pcpu: p,
                first: v.first,
            },
        );
    }
    // No vCPU waits for the requests of its list registers any more.
    interface::close();
    let wake = p.take_wake();
    hand_over(p, wake);
}
