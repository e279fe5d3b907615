// SPDX-License-Identifier: Apache-2.0
//! Registers of a line that are the same in all versions of the controller, wherever the frame is (IHI 0069,
//! 12.8 to 12.11; IHI 0048B, 4.3).
//!
//! There are two bands of priority. The hypervisor's lines are more urgent than all lines of guests. The
//! guests' own priorities are followed within the lower half.

use bulkhead_arch_support::Mmio;

const ISENABLER: usize = 0x100;
const ICENABLER: usize = 0x180;
const ISPENDR: usize = 0x200;
const ICPENDR: usize = 0x280;
const ISACTIVER: usize = 0x300;
const ICACTIVER: usize = 0x380;
const IPRIORITYR: usize = 0x400;
const ICFGR: usize = 0xC00;
/// Priority of the timer that ends a vCPU's turn: no storm of interrupts can keep this timer from coming.
const PRIORITY_DEADLINE: u8 = 0x20;
/// Priority of the hypervisor's own lines, and the most urgent a guest's line can get.
const PRIORITY_OWN: u8 = 0x40;
const PRIORITY_GUEST: u8 = 0x80;

/// The addresses of the controller, and the lines of the hypervisor and of the timers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GicConfig {
    /// Register windows in the order of the image's record: address and bytes.
    pub(crate) windows: [(usize, usize); 4],
    /// Maintenance interrupt of the virtual CPU interface.
    pub(crate) maintenance: u32,
    /// EL2 physical timer.
    pub(crate) hypervisor_timer: u32,
    /// EL1 virtual timer.
    pub(crate) virtual_timer: u32,
    /// EL1 physical timer.
    pub(crate) physical_timer: u32,
}

/// Lets all lines of `mask`, of the first word, interrupt.
pub(super) fn enable(registers: &Mmio, mask: u32) {
    registers.write32(ISENABLER, mask);
}

/// Keeps all lines of `mask`, of the first word, from interrupting.
pub(super) fn disable(registers: &Mmio, mask: u32) {
    registers.write32(ICENABLER, mask);
}

/// Keeps 32 lines from interrupting.
pub(super) fn mask(registers: &Mmio, word: usize) {
    registers.write32(ICENABLER + 4 * word, u32::MAX);
}

/// Resets 32 lines: nothing pending or active, a guest's priority, level-triggered. Requires: the controller
/// has taken [`mask`], because the trigger of an enabled line must not change (IHI 0069, 12.9.9).
pub(super) fn quiet(registers: &Mmio, word: usize) {
    registers.write32(ICPENDR + 4 * word, u32::MAX);
    registers.write32(ICACTIVER + 4 * word, u32::MAX);
    for quarter in 0..8 {
        registers.write32(
            IPRIORITYR + 32 * word + 4 * quarter,
            u32::from_ne_bytes([PRIORITY_GUEST; 4]),
        );
    }
    registers.write32(ICFGR + 8 * word, 0);
    registers.write32(ICFGR + 8 * word + 4, 0);
}

/// A frame, and the line in it to act on.
#[derive(Clone, Copy)]
pub(super) struct LineRegisters {
    registers: Mmio,
    line: usize,
}

impl LineRegisters {
    pub(super) fn new(registers: Mmio, line: u32) -> Self {
        Self {
            registers,
            line: line as usize,
        }
    }

    fn read(self, field: usize) -> bool {
        self.registers.read32(field + self.line / 32 * 4) & 1 << (self.line % 32) != 0
    }

    fn write(self, field: usize) {
        self.registers
            .write32(field + self.line / 32 * 4, 1 << (self.line % 32));
    }

    /// Lets the line interrupt.
    pub(super) fn enable(self) {
        self.write(ISENABLER);
    }

    /// Keeps the line from interrupting. Takes effect soon, not at once.
    pub(super) fn disable(self) {
        self.write(ICENABLER);
    }

    /// Tells whether the line is pending, or its input is high.
    pub(super) fn is_pending(self) -> bool {
        self.read(ISPENDR)
    }

    /// Makes the line pending by software, or not any more.
    pub(super) fn set_pending(self, on: bool) {
        self.write(if on { ISPENDR } else { ICPENDR });
    }

    /// Makes the line active, or not any more. The change is complete when this returns.
    pub(super) fn set_active(self, on: bool) {
        self.write(if on { ISACTIVER } else { ICACTIVER });
        crate::sysreg::instruction!("dsb sy");
    }

    /// Tells whether the line is edge-triggered.
    pub(super) fn is_edge(self) -> bool {
        self.registers.read32(ICFGR + self.line / 16 * 4) & 2 << (self.line % 16 * 2) != 0
    }

    /// Makes the line edge- or level-triggered. The line is off.
    pub(super) fn set_edge(self, edge: bool) {
        let offset = ICFGR + self.line / 16 * 4;
        let bit = 2 << (self.line % 16 * 2);
        let others = self.registers.read32(offset) & !bit;
        self.registers
            .write32(offset, if edge { others | bit } else { others });
    }

    /// Gives the line a priority of the hypervisor's band.
    pub(super) fn set_own_priority(self) {
        self.registers.write8(IPRIORITYR + self.line, PRIORITY_OWN);
    }

    /// Gives the line the priority of the hypervisor's timer.
    pub(super) fn set_deadline_priority(self) {
        self.registers.write8(IPRIORITYR + self.line, PRIORITY_DEADLINE);
    }

    /// Gives the line a guest's priority, moved into the band of guests.
    pub(super) fn set_guest_priority(self, priority: u8) {
        self.registers
            .write8(IPRIORITYR + self.line, PRIORITY_GUEST | priority >> 1);
    }
}
