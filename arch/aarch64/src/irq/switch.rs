// SPDX-License-Identifier: Apache-2.0
//! The interrupt state of a vCPU comes into the hardware of its pCPU and leaves it.
//!
//! Nearly always the guest has ended what it was given, and then little moves (`Redistributor::leave`, `enter`); that is
//! inlined into the switch. Everything else takes the long way of `arch/vgic`.

use super::interface::{self, Interface};
use super::local::Local;
use super::{PcpuIrq, VcpuIrq, hand_over};
use bulkhead_arch_vgic::Hardware;

/// The vCPU becomes current. Before its timers are restored.
#[inline(always)]
pub(crate) fn load(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    let Some(own) = v.own else { return };
    p.loaded = Some(v.id);
    if !own.enter(&mut v.bank, &mut Interface) {
        return load_all(p, v);
    }
    // What was changed meanwhile is marked for a recheck.
    let mirrored = v.bank.mirrored();
    if p.private_enabled != mirrored {
        Local {
            pcpu: p,
            first: v.first,
        }
        .enable_private(mirrored);
    }
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

/// The vCPU ceases to be current. Before its timers are saved and switched off.
#[inline(always)]
pub(crate) fn unload(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    let Some(own) = v.own else { return };
    // The private lines stay enabled: the timers behind them are about to be switched off.
    if !own.leave(&mut v.bank, &mut Interface) {
        unload_all(p, v);
    }
    interface::close();
    p.loaded = None;
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
    let wake = p.take_wake();
    hand_over(p, wake);
}
