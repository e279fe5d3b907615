// SPDX-License-Identifier: Apache-2.0
//! The physical distributor and redistributors (IHI 0069, 12.8 to 12.11).
//!
//! Everything is in group 1 of the non-secure state, routed by affinity. The code is written here and not
//! taken from a crate. The hypervisor needs a dozen registers of those that ready-made GICv3 drivers offer.
//! It also needs the active state and per-line routing at run time, which these drivers do not offer.

use super::lines::{GicConfig, LineRegisters, mask, quiet};
use bulkhead_arch_support::{Mmio, SetOnce, relax};

const IGROUPR: usize = 0x080;
/// `GICD_CTLR`: EnableGrp1, EnableGrp1A, ARE_NS; RWP.
const GICD_CTLR: usize = 0;
const CTLR_ENABLE: u32 = 1 | 1 << 1 | 1 << 4;
const CTLR_PENDING: u32 = 1 << 31;
const GICD_TYPER: usize = 4;
const GICD_IROUTER: usize = 0x6000;
/// `GICR_CTLR.RWP`.
const GICR_CTLR: usize = 0;
const GICR_CTLR_PENDING: u32 = 1 << 3;
/// `GICR_CTLR.EnableLPIs` (IHI 0069, 12.11), which firmware may leave set. The hypervisor has no LPIs: one
/// that is taken would never end, because its number is beyond those that the hypervisor ends.
const GICR_CTLR_LPIS: u32 = 1;
const GICR_TYPER: usize = 8;
const GICR_TYPER_LAST: u64 = 1 << 4;
const GICR_TYPER_VLPIS: u64 = 1 << 1;
const GICR_WAKER: usize = 0x14;
const WAKER_PROCESSOR_SLEEP: u32 = 1 << 1;
const WAKER_CHILDREN_ASLEEP: u32 = 1 << 2;
const SGI_FRAME: usize = 0x1_0000;
const FRAMES: usize = 0x2_0000;
/// Bytes of a redistributor that has the frames of GICv4 too.
const FRAMES_V4: usize = 0x4_0000;
/// Polls of a register-write-pending bit. Hardware needs a few cycles.
const POLLS: u32 = 10_000;

/// The controller, as found by [`init_distributor`].
pub(super) struct Controller {
    distributor: Mmio,
    redistributors: Mmio,
    pub(super) config: GicConfig,
}

static CONTROLLER: SetOnce<Controller> = SetOnce::new();

/// Returns the controller, or `None` before [`init_distributor`].
#[inline]
pub(super) fn controller() -> Option<&'static Controller> {
    CONTROLLER.get()
}

/// Brings up the distributor: everything off, then forwarding on. Returns false if the distributor does not
/// take a change.
///
/// # Safety
/// The addresses belong to a GICv3 and are mapped as device memory for good.
pub(super) unsafe fn init_distributor(config: &GicConfig) -> bool {
    // SAFETY: the caller's promise. The distributor is 64 KiB (IHI 0069, 12.8).
    let distributor = unsafe { Mmio::new(config.windows[0].0, 0x1_0000) };
    let (base, size) = config.windows[1];
    // SAFETY: the caller's promise.
    let redistributors = unsafe { Mmio::new(base, size) };
    let Some(controller) = CONTROLLER.set(Controller {
        distributor,
        redistributors,
        config: *config,
    }) else {
        return false;
    };
    let registers = &controller.distributor;
    registers.write32(GICD_CTLR, 0);
    let words = (registers.read32(GICD_TYPER) as usize & 0x1F) + 1;
    for word in 1..words {
        mask(registers, word);
    }
    let is_off = controller.settle();
    for word in 1..words {
        quiet(registers, word);
        registers.write32(IGROUPR + 4 * word, u32::MAX);
    }
    registers.write32(GICD_CTLR, CTLR_ENABLE);
    is_off && controller.settle()
}

/// Waits, for a bounded time, until bits of a register are clear. Returns false if they stay.
fn is_clear(registers: &Mmio, offset: usize, bits: u32) -> bool {
    (0..POLLS).any(|_| {
        let is_clear = registers.read32(offset) & bits == 0;
        if !is_clear {
            relax();
        }
        is_clear
    })
}

impl Controller {
    /// Waits until the distributor has taken a change of its control register, or has lines off. Returns
    /// false if it does not.
    pub(super) fn settle(&self) -> bool {
        is_clear(&self.distributor, GICD_CTLR, CTLR_PENDING)
    }

    /// Returns the registers of a shared line.
    pub(super) fn shared(&self, line: u32) -> LineRegisters {
        LineRegisters::new(self.distributor, line)
    }

    /// Returns the value for [`Controller::set_route`] that delivers to the pCPU this runs on, whose MPIDR is
    /// given.
    pub(super) fn route_to(&self, mpidr: u64) -> u64 {
        mpidr & 0xFF_00FF_FFFF
    }

    /// Delivers a shared line to a pCPU.
    pub(super) fn set_route(&self, line: u32, route: u64) {
        self.distributor.write64(GICD_IROUTER + 8 * line as usize, route);
    }

    /// Returns the redistributor of the pCPU with this affinity (as in MPIDR).
    pub(super) fn redistributor(&self, affinity: u64) -> Option<Redistributor> {
        let wanted = affinity >> 8 & 0xFF00_0000 | affinity & 0x00FF_FFFF;
        let mut offset = 0;
        let (base, size) = self.config.windows[1];
        while offset + FRAMES <= size {
            let typer = self.redistributors.read64(offset + GICR_TYPER);
            if typer >> 32 == wanted {
                // SAFETY: a part of the window that `init_distributor` was given.
                let registers = unsafe { Mmio::new(base + offset, FRAMES) };
                // SAFETY: the same.
                let private = unsafe { Mmio::new(base + offset + SGI_FRAME, SGI_FRAME) };
                return Some(Redistributor { registers, private });
            }
            if typer & GICR_TYPER_LAST != 0 {
                return None;
            }
            offset += if typer & GICR_TYPER_VLPIS != 0 {
                FRAMES_V4
            } else {
                FRAMES
            };
        }
        None
    }
}

/// The redistributor of a pCPU.
#[derive(Clone, Copy)]
pub(super) struct Redistributor {
    registers: Mmio,
    private: Mmio,
}

impl Redistributor {
    /// Wakes the redistributor and quiets all private lines. Returns false if the redistributor does not take
    /// a change.
    pub(super) fn init(&self) -> bool {
        let waker = self.registers.read32(GICR_WAKER);
        self.registers.write32(GICR_WAKER, waker & !WAKER_PROCESSOR_SLEEP);
        let is_awake = is_clear(&self.registers, GICR_WAKER, WAKER_CHILDREN_ASLEEP);
        let control = self.registers.read32(GICR_CTLR);
        if control & GICR_CTLR_LPIS != 0 {
            self.registers.write32(GICR_CTLR, control & !GICR_CTLR_LPIS);
        }
        mask(&self.private, 0);
        let is_off = is_clear(&self.registers, GICR_CTLR, GICR_CTLR_PENDING | GICR_CTLR_LPIS);
        quiet(&self.private, 0);
        self.private.write32(IGROUPR, u32::MAX);
        is_awake && is_off && is_clear(&self.registers, GICR_CTLR, GICR_CTLR_PENDING)
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
