// SPDX-License-Identifier: Apache-2.0
//! The system control block of a guest (Arm DDI 0403E.e, B3.2): its registers and what writing them does.

use crate::exception::Exception;
use crate::processor::{SWITCHABLE, VirtualCore, bit, exceptions};
use crate::registers::{narrow, widen};

/// The address of ICSR, and what makes PendSV pending there (B3.2.4).
pub(crate) const INTERRUPT_STATE: u32 = 0xE000_ED04;
pub(crate) const PENDSVSET: u32 = 1 << 28;

const CPUID: u32 = 0x00;
const ICSR: u32 = 0x04;
const VTOR: u32 = 0x08;
const AIRCR: u32 = 0x0C;
const SCR: u32 = 0x10;
const CCR: u32 = 0x14;
const SHPR: u32 = 0x18;
const SHPR_END: u32 = 0x23;
const SHCSR: u32 = 0x24;
const CFSR: u32 = 0x28;
const CFSR_END: u32 = 0x2B;
const HFSR: u32 = 0x2C;
const MMFAR: u32 = 0x34;
const BFAR: u32 = 0x38;
const FEATURES: u32 = 0x40;
const FEATURES_END: u32 = 0x73;
const CPACR: u32 = 0x88;

/// The value that must be written into the upper half of AIRCR, and the one that is read there.
const KEY: u32 = 0x05FA;
const KEY_READ: u32 = 0xFA05_0000;
const SYSRESETREQ: u32 = 1 << 2;
const CCR_WRITABLE: u32 = 0x0000_031B;
const SCR_WRITABLE: u32 = 0x0000_0016;
const HFSR_BITS: u32 = 0xC000_0002;
/// Coprocessors 10 and 11: the floating-point unit.
const CPACR_WRITABLE: u32 = 0x00F0_0000;

/// SHCSR: which bit is which state of which exception.
const SHCSR_ACTIVE: [(u32, Exception); 7] = [
    (0, Exception::MEMORY_FAULT),
    (1, Exception::BUS_FAULT),
    (3, Exception::USAGE_FAULT),
    (7, Exception::SUPERVISOR_CALL),
    (8, Exception::DEBUG_MONITOR),
    (10, Exception::PENDSV),
    (11, Exception::SYSTICK),
];
const SHCSR_PENDING: [(u32, Exception); 4] = [
    (12, Exception::USAGE_FAULT),
    (13, Exception::MEMORY_FAULT),
    (14, Exception::BUS_FAULT),
    (15, Exception::SUPERVISOR_CALL),
];
const SHCSR_ENABLED: [(u32, Exception); 3] = [
    (16, Exception::MEMORY_FAULT),
    (17, Exception::BUS_FAULT),
    (18, Exception::USAGE_FAULT),
];

impl VirtualCore {
    /// Reads the register at `offset` from 0xE000ED00.
    pub(crate) fn read_system(&self, offset: u32, size: u8) -> u32 {
        match offset {
            SHPR..=SHPR_END => (0..u32::from(size)).fold(0, |value, byte| {
                let index = offset.wrapping_sub(SHPR).wrapping_add(byte);
                let priority = self.system_priority.get(index as usize).copied().unwrap_or(0);
                value | u32::from(priority).wrapping_shl(byte.wrapping_mul(8))
            }),
            CFSR..=CFSR_END => narrow(self.fault_status, offset, size),
            _ if size != 4 => 0,
            CPUID => self.model.cpuid,
            ICSR => self.interrupt_state(),
            VTOR => self.vector_table,
            AIRCR => KEY_READ | u32::from(self.priority_group) << 8,
            SCR => self.system_control,
            CCR => self.configuration,
            SHCSR => {
                gather(&SHCSR_ACTIVE, self.system_active)
                    | gather(&SHCSR_PENDING, self.system_pending)
                    | gather(&SHCSR_ENABLED, self.system_enabled)
            }
            HFSR => self.hard_fault_status,
            MMFAR => self.memory_fault_address,
            BFAR => self.bus_fault_address,
            FEATURES..=FEATURES_END => {
                let index = offset.wrapping_sub(FEATURES) >> 2;
                self.model.features.get(index as usize).copied().unwrap_or(0)
            }
            CPACR => self.coprocessor_access,
            _ => 0,
        }
    }

    /// Writes the register at `offset` from 0xE000ED00.
    pub(crate) fn write_system(&mut self, offset: u32, size: u8, value: u32) {
        match offset {
            SHPR..=SHPR_END => self.write_priorities(offset.wrapping_sub(SHPR), size, value),
            CFSR..=CFSR_END => self.fault_status &= !widen(value, offset, size),
            _ if size != 4 => {}
            ICSR => self.write_interrupt_state(value),
            VTOR => self.vector_table = value & !0x7F,
            AIRCR => self.write_reset_control(value),
            SCR => {
                self.system_control = value & SCR_WRITABLE;
                // SEVONPEND: also lines that are not enabled matter.
                self.changes.lines = true;
            }
            CCR => {
                self.configuration = value & CCR_WRITABLE;
                self.changes.configuration = true;
            }
            SHCSR => {
                scatter(&SHCSR_ACTIVE, value, &mut self.system_active);
                scatter(&SHCSR_PENDING, value, &mut self.system_pending);
                scatter(&SHCSR_ENABLED, value, &mut self.system_enabled);
                self.system_enabled |= !SWITCHABLE;
                self.refresh();
            }
            HFSR => self.hard_fault_status &= !(value & HFSR_BITS),
            MMFAR => self.memory_fault_address = value,
            BFAR => self.bus_fault_address = value,
            CPACR if self.model.floating_point => {
                self.coprocessor_access = value & CPACR_WRITABLE;
                self.changes.configuration = true;
            }
            _ => {}
        }
    }

    /// Returns ICSR (B3.2.4).
    fn interrupt_state(&self) -> u32 {
        let waiting = self
            .most_urgent_pending()
            .map_or(0, |exception| u32::from(exception.0));
        let flag = |condition: bool, position: u32| u32::from(condition) << position;
        let pending = |exception| self.system_pending & bit(exception) != 0;
        u32::from(self.ipsr)
            | flag(self.at_most_one_active(), 11)
            | waiting << 12
            | flag(self.lines.any_pending(), 22)
            | flag(pending(Exception::SYSTICK), 26)
            | flag(pending(Exception::PENDSV), 28)
            | flag(pending(Exception::NMI), 31)
    }

    /// Does the store of PENDSVSET alone.
    #[inline(always)]
    pub(crate) fn pend_switch(&mut self) {
        self.system_pending |= bit(Exception::PENDSV);
        self.look_for_event();
        self.consider(Exception::PENDSV);
    }

    fn write_interrupt_state(&mut self, value: u32) {
        let state = |position: u32, exception| {
            if value & 1_u32.wrapping_shl(position) != 0 {
                bit(exception)
            } else {
                0
            }
        };
        let set = state(31, Exception::NMI) | state(28, Exception::PENDSV) | state(26, Exception::SYSTICK);
        let clear = (state(27, Exception::PENDSV) | state(25, Exception::SYSTICK)) & !set;
        self.system_pending = (self.system_pending | set) & !clear;
        if clear != 0 {
            return self.refresh_pending();
        }
        self.look_for_event();
        for exception in exceptions(set) {
            self.consider(exception);
        }
    }

    fn write_reset_control(&mut self, value: u32) {
        if value >> 16 != KEY {
            return;
        }
        if value & SYSRESETREQ != 0 {
            self.changes.reset = true;
        }
        self.priority_group = (value >> 8 & 7) as u8;
        self.refresh();
    }

    fn write_priorities(&mut self, first: u32, size: u8, value: u32) {
        for byte in 0..u32::from(size) {
            let index = first.wrapping_add(byte);
            // Exceptions 7 to 10 and 13 are none.
            if matches!(index, 3..=6 | 9) {
                continue;
            }
            if let Some(priority) = self.system_priority.get_mut(index as usize) {
                *priority = value.wrapping_shr(byte.wrapping_mul(8)) as u8 & self.model.priority_bits;
            }
        }
        self.refresh();
    }
}

fn gather(table: &[(u32, Exception)], states: u32) -> u32 {
    table.iter().fold(0, |value, (position, exception)| {
        value | u32::from(states & bit(*exception) != 0).wrapping_shl(*position)
    })
}

fn scatter(table: &[(u32, Exception)], value: u32, states: &mut u32) {
    for (position, exception) in table {
        let set = value & 1_u32.wrapping_shl(*position) != 0;
        *states = if set {
            *states | bit(*exception)
        } else {
            *states & !bit(*exception)
        };
    }
}
