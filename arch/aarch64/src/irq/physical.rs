// SPDX-License-Identifier: Apache-2.0
//! The physical distributor and redistributors (IHI 0069, 12.8 to 12.11).
//!
//! Everything is in group 1 of the non-secure state, routed by affinity. Bands of priority: what belongs
//! to the hypervisor is more urgent than anything of a guest, whose own priorities are followed within
//! the lower half. Written here and not taken from a crate: of what the ready-made GICv3 drivers offer we need
//! a dozen registers, and what we need besides (active state, per-line routing at run time) they do not offer.

use bulkhead_arch_support::{Mmio, relax};
use spin::once::Once;

/// Offsets that the distributor and the SGI frame of a redistributor share.
const IGROUPR: usize = 0x080;
const ISENABLER: usize = 0x100;
const ICENABLER: usize = 0x180;
const ISPENDR: usize = 0x200;
const ICPENDR: usize = 0x280;
const ISACTIVER: usize = 0x300;
const ICACTIVER: usize = 0x380;
const IPRIORITYR: usize = 0x400;
const ICFGR: usize = 0xC00;

/// `GICD_CTLR`: EnableGrp1, EnableGrp1A, ARE_NS; RWP.
const GICD_CTLR: usize = 0;
const CTLR_ENABLE: u32 = 1 | 1 << 1 | 1 << 4;
const CTLR_PENDING: u32 = 1 << 31;
const GICD_TYPER: usize = 4;
const GICD_IROUTER: usize = 0x6000;
/// `GICR_CTLR.RWP`.
const GICR_CTLR: usize = 0;
const GICR_CTLR_PENDING: u32 = 1 << 3;
const GICR_TYPER: usize = 8;
const GICR_TYPER_LAST: u64 = 1 << 4;
const GICR_TYPER_VLPIS: u64 = 1 << 1;
const GICR_WAKER: usize = 0x14;
const WAKER_PROCESSOR_SLEEP: u32 = 1 << 1;
const WAKER_CHILDREN_ASLEEP: u32 = 1 << 2;
const SGI_FRAME: usize = 0x1_0000;
const FRAMES: usize = 0x2_0000;
/// Frames of a redistributor that has those of GICv4 too.
const FRAMES_V4: usize = 0x4_0000;
/// Priority of the timer that ends a vCPU's turn: nothing that storms can keep it from coming.
const PRIORITY_DEADLINE: u8 = 0x20;
/// Priority of the hypervisor's own lines, and the most urgent a guest's line can get.
const PRIORITY_OWN: u8 = 0x40;
const PRIORITY_GUEST: u8 = 0x80;
/// Polls of a register-write-pending bit; hardware needs a few cycles.
const POLLS: u32 = 10_000;

/// Where the controller is and which lines are the hypervisor's and the timers'.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GicConfig {
    /// Address of the distributor.
    pub(crate) distributor: usize,
    /// Address of the first redistributor.
    pub(crate) redistributors: usize,
    /// Bytes of all redistributors.
    pub(crate) redistributors_size: usize,
    /// Maintenance interrupt of the virtual CPU interface.
    pub(crate) maintenance: u32,
    /// EL2 physical timer.
    pub(crate) hypervisor_timer: u32,
    /// EL1 virtual timer.
    pub(crate) virtual_timer: u32,
    /// EL1 physical timer.
    pub(crate) physical_timer: u32,
}

/// The controller, as found by [`init_distributor`].
pub(super) struct Controller {
    distributor: Mmio,
    redistributors: Mmio,
    pub(super) config: GicConfig,
}

static CONTROLLER: Once<Controller, crate::Relax> = Once::new();

/// The controller; `None` before [`init_distributor`].
#[inline]
pub(super) fn controller() -> Option<&'static Controller> {
    CONTROLLER.get()
}

/// Brings up the distributor: everything off, then forwarding on.
///
/// # Safety
/// The addresses are those of a GICv3 and mapped as device memory for good.
pub(super) unsafe fn init_distributor(config: &GicConfig) {
    let controller = CONTROLLER.call_once(|| {
        // SAFETY: the caller's promise. The distributor is 64 KiB (IHI 0069, 12.8).
        let distributor = unsafe { Mmio::new(config.distributor, 0x1_0000) };
        // SAFETY: the caller's promise.
        let redistributors = unsafe { Mmio::new(config.redistributors, config.redistributors_size) };
        Controller {
            distributor,
            redistributors,
            config: *config,
        }
    });
    let registers = &controller.distributor;
    registers.write32(GICD_CTLR, 0);
    controller.settle();
    let words = (registers.read32(GICD_TYPER) as usize & 0x1F) + 1;
    for word in 1..words {
        quiet(registers, word);
    }
    registers.write32(GICD_CTLR, CTLR_ENABLE);
    controller.settle();
}

/// 32 lines: group 1, off, nothing pending or active, a guest's priority, level-triggered.
fn quiet(registers: &Mmio, word: usize) {
    registers.write32(ICENABLER + 4 * word, u32::MAX);
    registers.write32(ICPENDR + 4 * word, u32::MAX);
    registers.write32(ICACTIVER + 4 * word, u32::MAX);
    registers.write32(IGROUPR + 4 * word, u32::MAX);
    for quarter in 0..8 {
        registers.write32(
            IPRIORITYR + 32 * word + 4 * quarter,
            u32::from_ne_bytes([PRIORITY_GUEST; 4]),
        );
    }
    registers.write32(ICFGR + 8 * word, 0);
    registers.write32(ICFGR + 8 * word + 4, 0);
}

/// A frame and the line to act on in it.
#[derive(Clone, Copy)]
pub(super) struct LineRegisters {
    registers: Mmio,
    line: usize,
}

impl LineRegisters {
    fn read(self, field: usize) -> bool {
        self.registers.read32(field + self.line / 32 * 4) & 1 << (self.line % 32) != 0
    }

    fn write(self, field: usize) {
        self.registers
            .write32(field + self.line / 32 * 4, 1 << (self.line % 32));
    }

    /// Lets it interrupt.
    pub(super) fn enable(self) {
        self.write(ISENABLER);
    }

    /// Keeps it from interrupting. Takes effect soon, not at once.
    pub(super) fn disable(self) {
        self.write(ICENABLER);
    }

    /// Pending, or the input is high.
    pub(super) fn is_pending(self) -> bool {
        self.read(ISPENDR)
    }

    /// Pending by software, or not any more.
    pub(super) fn set_pending(self, on: bool) {
        self.write(if on { ISPENDR } else { ICPENDR });
    }

    /// Active, or not any more; complete when this returns.
    pub(super) fn set_active(self, on: bool) {
        self.write(if on { ISACTIVER } else { ICACTIVER });
        crate::sysreg::instruction!("dsb sy");
    }

    /// Edge-triggered.
    pub(super) fn is_edge(self) -> bool {
        self.registers.read32(ICFGR + self.line / 16 * 4) & 2 << (self.line % 16 * 2) != 0
    }

    /// Edge- or level-triggered. The line is off.
    pub(super) fn set_edge(self, edge: bool) {
        let offset = ICFGR + self.line / 16 * 4;
        let bit = 2 << (self.line % 16 * 2);
        let others = self.registers.read32(offset) & !bit;
        self.registers
            .write32(offset, if edge { others | bit } else { others });
    }

    /// A priority of the hypervisor's band.
    pub(super) fn set_own_priority(self) {
        self.registers.write8(IPRIORITYR + self.line, PRIORITY_OWN);
    }

    /// The priority of the hypervisor's timer.
    pub(super) fn set_deadline_priority(self) {
        self.registers.write8(IPRIORITYR + self.line, PRIORITY_DEADLINE);
    }

    /// A guest's priority, moved into the band of guests.
    pub(super) fn set_guest_priority(self, priority: u8) {
        self.registers
            .write8(IPRIORITYR + self.line, PRIORITY_GUEST | priority >> 1);
    }
}

impl Controller {
    /// Waits until the distributor has taken a change of its control register.
    fn settle(&self) {
        for _ in 0..POLLS {
            if self.distributor.read32(GICD_CTLR) & CTLR_PENDING == 0 {
                break;
            }
            relax();
        }
    }

    /// Registers of a shared line.
    pub(super) fn shared(&self, line: u32) -> LineRegisters {
        LineRegisters {
            registers: self.distributor,
            line: line as usize,
        }
    }

    /// Delivers a shared line to the pCPU with this affinity (as in MPIDR).
    pub(super) fn set_route(&self, line: u32, affinity: u64) {
        self.distributor
            .write64(GICD_IROUTER + 8 * line as usize, affinity & 0xFF_00FF_FFFF);
    }

    /// The redistributor of the pCPU with this affinity (as in MPIDR).
    pub(super) fn redistributor(&self, affinity: u64) -> Option<Redistributor> {
        let wanted = affinity >> 8 & 0xFF00_0000 | affinity & 0x00FF_FFFF;
        let mut offset = 0;
        while offset < self.config.redistributors_size {
            let typer = self.redistributors.read64(offset + GICR_TYPER);
            if typer >> 32 == wanted {
                // SAFETY: a part of the window that `init_distributor` was given.
                let registers = unsafe { Mmio::new(self.config.redistributors + offset, FRAMES) };
                // SAFETY: the same.
                let private =
                    unsafe { Mmio::new(self.config.redistributors + offset + SGI_FRAME, SGI_FRAME) };
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
    /// Wakes it and quiets all private lines.
    pub(super) fn init(&self) {
        let waker = self.registers.read32(GICR_WAKER);
        self.registers.write32(GICR_WAKER, waker & !WAKER_PROCESSOR_SLEEP);
        for _ in 0..POLLS {
            if self.registers.read32(GICR_WAKER) & WAKER_CHILDREN_ASLEEP == 0 {
                break;
            }
            relax();
        }
        quiet(&self.private, 0);
        for _ in 0..POLLS {
            if self.registers.read32(GICR_CTLR) & GICR_CTLR_PENDING == 0 {
                break;
            }
            relax();
        }
    }

    /// Registers of a private line.
    pub(super) fn line(&self, line: u32) -> LineRegisters {
        LineRegisters {
            registers: self.private,
            line: line as usize & 31,
        }
    }

    /// Lets all lines of `mask` interrupt.
    pub(super) fn enable(&self, mask: u32) {
        self.private.write32(ISENABLER, mask);
    }

    /// Keeps all lines of `mask` from interrupting.
    pub(super) fn disable(&self, mask: u32) {
        self.private.write32(ICENABLER, mask);
    }
}
