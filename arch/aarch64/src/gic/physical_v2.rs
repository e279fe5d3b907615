// SPDX-License-Identifier: Apache-2.0
//! The physical distributor of a GICv2 (Arm IHI 0048B, 4.3). The functions are the same as for a GICv3.
//!
//! Groups are left alone. Without the security extensions everything is in group 0. Seen from the non-secure
//! state everything is in group 1. The same bit enables it either way. Private lines are banked by the
//! accessing pCPU.

use super::lines::{GicConfig, LineRegisters, mask, quiet};
use bulkhead_arch_support::{Mmio, SetOnce};

/// `GICD_CTLR.Enable`.
const GICD_CTLR: usize = 0;
const CTLR_ENABLE: u32 = 1;
const GICD_TYPER: usize = 4;
/// `GICD_ITARGETSR`: of private lines, the accessing pCPU's bit.
const GICD_ITARGETSR: usize = 0x800;
const GICD_SGIR: usize = 0xF00;

/// The controller, as found by [`init_distributor`].
pub(super) struct Controller {
    distributor: Mmio,
    /// The CPU interface of the pCPU that accesses these registers.
    pub(super) interface: Mmio,
    /// The control of the virtual CPU interface of the pCPU that accesses these registers.
    pub(super) hypervisor: Mmio,
    pub(super) config: GicConfig,
}

static CONTROLLER: SetOnce<Controller> = SetOnce::new();

/// Returns the controller, or `None` before [`init_distributor`].
#[inline]
pub(super) fn controller() -> Option<&'static Controller> {
    CONTROLLER.get()
}

/// Returns the address and the bytes of the virtual CPU interface, which is mapped into a VM.
pub(super) fn virtual_interface() -> Option<(u64, u64)> {
    let [.., (base, size)] = controller()?.config.windows;
    Some((base as u64, size as u64))
}

/// Brings up the distributor: everything off, then forwarding on. Returns false if there is one already.
///
/// # Safety
/// The windows belong to a GICv2 with virtualization extensions and are mapped as device memory for good.
pub(super) unsafe fn init_distributor(config: &GicConfig) -> bool {
    let [
        (distributor, distributor_size),
        (interface, interface_size),
        (hypervisor, hypervisor_size),
        _,
    ] = config.windows;
    // SAFETY: the caller's promise.
    let distributor = unsafe { Mmio::new(distributor, distributor_size) };
    // SAFETY: the same.
    let interface = unsafe { Mmio::new(interface, interface_size) };
    // SAFETY: the same.
    let hypervisor = unsafe { Mmio::new(hypervisor, hypervisor_size) };
    let Some(controller) = CONTROLLER.set(Controller {
        distributor,
        interface,
        hypervisor,
        config: *config,
    }) else {
        return false;
    };
    let registers = &controller.distributor;
    registers.write32(GICD_CTLR, 0);
    let words = (registers.read32(GICD_TYPER) as usize & 0x1F) + 1;
    for word in 1..words {
        mask(registers, word);
        quiet(registers, word);
    }
    registers.write32(GICD_CTLR, CTLR_ENABLE);
    true
}

impl Controller {
    /// Waits until the distributor has taken a change, which it does at once: all accesses to one device stay
    /// in order, and it has no state between (IHI 0048B).
    pub(super) fn settle(&self) -> bool {
        true
    }

    /// Returns the registers of a shared line.
    pub(super) fn shared(&self, line: u32) -> LineRegisters {
        LineRegisters::new(self.distributor, line)
    }

    /// Returns the value for [`Controller::set_route`] that delivers to the pCPU this runs on: its bit in a
    /// list of targets. A controller with one CPU interface reads as zero.
    pub(super) fn route_to(&self, _mpidr: u64) -> u64 {
        u64::from(self.distributor.read32(GICD_ITARGETSR) & 0xFF).max(1)
    }

    /// Delivers a shared line to a pCPU.
    pub(super) fn set_route(&self, line: u32, route: u64) {
        self.distributor
            .write8(GICD_ITARGETSR + line as usize, route as u8);
    }

    /// Sends a software-generated interrupt: `GICD_SGIR`.
    pub(super) fn send(&self, value: u32) {
        self.distributor.write32(GICD_SGIR, value);
    }

    /// Returns the part of the distributor that is this pCPU's own.
    pub(super) fn redistributor(&self, _affinity: u64) -> Option<Redistributor> {
        Some(Redistributor {
            private: self.distributor,
        })
    }
}

/// The banked part of the distributor: each pCPU sees its own.
#[derive(Clone, Copy)]
pub(super) struct Redistributor {
    private: Mmio,
}

impl Redistributor {
    /// Quiets all private lines.
    pub(super) fn init(&self) -> bool {
        mask(&self.private, 0);
        quiet(&self.private, 0);
        true
    }

    /// Returns the registers of a private line.
    pub(super) fn line(&self, line: u32) -> LineRegisters {
        LineRegisters::new(self.private, line & 31)
    }

    /// Lets all lines of `mask` interrupt.
    pub(super) fn enable(&self, mask: u32) {
        super::lines::enable(&self.private, mask);
    }

    /// Keeps all lines of `mask` from interrupting.
    pub(super) fn disable(&self, mask: u32) {
        super::lines::disable(&self.private, mask);
    }
}
