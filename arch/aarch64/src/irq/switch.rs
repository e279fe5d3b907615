// SPDX-License-Identifier: Apache-2.0
//! The interrupt state of a vCPU comes into the hardware of its pCPU and leaves it.
//!
//! Nearly always the guest has ended what it was given, and then little moves (`Redistributor::leave`, `enter`); that is
//! inlined into the switch. Everything else takes the long way of `arch/vgic`.

use super::interface::{self, Interface};
use super::local::Local;
use super::{PcpuIrq, VcpuIrq, hand_over};
use bulkhead_arch_vgic::Hardware;

/// One vCPU follows another, both by the short way and without a call. [`enable_private`] must follow once the timers of
/// `before` are off. False: nothing was done.
#[inline(always)]
pub(crate) fn exchange(p: &mut PcpuIrq, before: &mut VcpuIrq, v: &mut VcpuIrq) -> bool {
    let (Some(old), Some(own)) = (before.own, v.own) else {
        return false;
    };
    if !old.may_leave(&before.bank, &Interface) || !own.may_enter(&v.bank) {
        return false;
    }
    old.leave_now(&mut before.bank, &Interface);
    own.enter_now(&mut v.bank, &mut Interface);
    p.loaded = Some(v.id);
    true
}

/// This pCPU's private lines interrupt as the vCPU wants it. What was changed meanwhile is marked for a recheck.
#[inline(always)]
pub(crate) fn enable_private(p: &mut PcpuIrq, v: &VcpuIrq) {
    let mirrored = v.bank.mirrored();
    if p.private_enabled != mirrored {
        Local {
            pcpu: p,
            first: v.first,
        }
        .enable_private(mirrored);
    }
}

/// The vCPU becomes current. Before its timers are restored.
#[inline(always)]
pub(crate) fn load(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    let Some(own) = v.own else {
        return interface::close();
    };
    p.loaded = Some(v.id);
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

/// The vCPU ceases to be current. Before its timers are saved and switched off. If it had no virtual interrupt in the
/// hardware, the virtual interface stays as it is: [`load`] or [`close`] follows before a guest runs.
#[inline(always)]
pub(crate) fn unload(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    let Some(own) = v.own else { return };
    // The private lines stay enabled: the timers behind them are about to be switched off.
    if !own.leave(&mut v.bank, &Interface) {
        unload_all(p, v);
    }
    p.loaded = None;
}

/// No vCPU is current.
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
    // What its list registers asked for is nobody's concern any more.
    interface::close();
    let wake = p.take_wake();
    hand_over(p, wake);
}
