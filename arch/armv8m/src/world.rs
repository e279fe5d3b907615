// SPDX-License-Identifier: Apache-2.0
//! The Non-secure world of a VM: all state of the processor that the VM can change without the hypervisor, as it
//! is while another VM has the hardware.
//!
//! The state of a line that belongs to somebody else reads as zero through the Non-secure alias, and cannot be
//! changed there (D1.2.190, NVIC_ITNS). So the alias alone is enough to move a VM's lines.

use crate::entry::{
    bulkhead_copy, bulkhead_load_regions, bulkhead_save_regions, bulkhead_start_timer, bulkhead_stop_timer,
};
use crate::sysreg::{
    self, AIRCR, CCR, CFSR, CPACR, FPCCR, FPDSCR, ICSR, MMFAR, MPU_CTRL, MPU_MAIR0, MPU_RNR, NVIC_IABR,
    NVIC_ICER, NVIC_ICPR, NVIC_IPR, NVIC_ISER, NVIC_ISPR, SCR, SHCSR, SHPR, VTOR, other_space,
};

/// Words of the controller's banks: 256 lines, of which a Cortex-M33 has at most 480 and we use 128.
const BANK: usize = 4;
/// Groups of eight words that the priorities of 128 lines are.
const PRIORITY_GROUPS: usize = 4;

/// ICSR (D1.2.147): bits that set PendSV and SysTick pending, and their opposites.
const PENDSVSET: u32 = 1 << 28;
const PENDSVCLR: u32 = 1 << 27;
const PENDSTSET: u32 = 1 << 26;
const PENDSTCLR: u32 = 1 << 25;
/// AIRCR (D1.2.2): the key, and PRIGROUP, which each world has.
const KEY: u32 = 0x05FA << 16;
const PRIGROUP: u32 = 7 << 8;
/// SysTick's CSR (D1.2.250).
const ENABLE: u32 = 1;
const TICKINT: u32 = 1 << 1;
const CLKSOURCE: u32 = 1 << 2;

/// Registers of the system control block that are written back as they were read.
const CONTROL_BLOCK: [usize; 11] = [
    VTOR, SCR, CCR, SHPR, SHPR + 4, SHPR + 8, CPACR, FPCCR, FPDSCR, MPU_MAIR0, MPU_MAIR0 + 4,
];

/// The Non-secure world.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct World {
    main_stack: u32,
    process_stack: u32,
    main_limit: u32,
    process_limit: u32,
    control: u32,
    /// PRIMASK, which is set in the hardware while the VM does not run.
    pub(crate) primask: u32,
    basepri: u32,
    faultmask: u32,
    control_block: [u32; CONTROL_BLOCK.len()],
    priority_group: u32,
    handlers: u32,
    fault_address: u32,
    waiting: u32,
    protection: u32,
    region: u32,
    regions: [u32; 32],
    /// SysTick: CSR, RVR and CVR.
    timer: [u32; 3],
    enabled: [u32; BANK],
    pending: [u32; BANK],
    /// Lines whose handlers have begun and not ended.
    pub(crate) active: [u32; BANK],
    priorities: [u32; 8 * PRIORITY_GROUPS],
    /// The time at which the world was left.
    left: u64,
}

fn read(offset: usize) -> u32 {
    other_space().read32(offset)
}

fn write(offset: usize, value: u32) {
    other_space().write32(offset, value);
}

impl World {
    /// The world after a reset (B3.1), with the stack pointer and the vector table of a program.
    pub(crate) const fn new(main_stack: u32, vectors: u32) -> Self {
        let mut control_block = [0; CONTROL_BLOCK.len()];
        // VTOR; CCR.STKALIGN, which reads as one; FPCCR.ASPEN and LSPEN.
        control_block[0] = vectors;
        control_block[2] = sysreg::CCR_ALIGNED | 1;
        control_block[7] = 0xC000_0000;
        Self {
            main_stack,
            process_stack: 0,
            main_limit: 0,
            process_limit: 0,
            control: 0,
            primask: 0,
            basepri: 0,
            faultmask: 0,
            control_block,
            priority_group: 0,
            handlers: 0,
            fault_address: 0,
            waiting: 0,
            protection: 0,
            region: 0,
            regions: [0; 32],
            timer: [0; 3],
            enabled: [0; BANK],
            pending: [0; BANK],
            active: [0; BANK],
            priorities: [0; 8 * PRIORITY_GROUPS],
            left: 0,
        }
    }

    /// Takes the world out of the hardware, but for lines and floating point, at `now`.
    /// Requires: the Non-secure block is open, and no exception of the world can be taken.
    pub(crate) fn save(&mut self, now: u64) {
        self.main_stack = sysreg::main_stack();
        self.process_stack = sysreg::process_stack();
        self.main_limit = sysreg::main_limit();
        self.process_limit = sysreg::process_limit();
        self.control = sysreg::control();
        self.basepri = sysreg::basepri();
        self.faultmask = sysreg::faultmask();
        sysreg::set_main_limit(0);
        sysreg::set_process_limit(0);
        sysreg::set_control(0);
        sysreg::set_basepri(0);
        sysreg::set_faultmask(0);
        for (slot, offset) in self.control_block.iter_mut().zip(CONTROL_BLOCK) {
            *slot = read(offset);
        }
        self.priority_group = read(AIRCR) & PRIGROUP;
        write(AIRCR, KEY);
        self.handlers = read(SHCSR);
        self.fault_address = read(MMFAR);
        self.waiting = read(ICSR) & (PENDSVSET | PENDSTSET);
        self.protection = read(MPU_CTRL);
        self.region = read(MPU_RNR);
        write(MPU_CTRL, 0);
        // SAFETY: `regions` has room for all of them.
        unsafe { bulkhead_save_regions(&raw mut self.regions) }
        // SAFETY: `timer` has room for the three. The Non-secure block is open.
        unsafe { bulkhead_stop_timer(&raw mut self.timer) }
        self.left = now;
    }

    /// Takes the state of its lines out of the hardware, active handlers included.
    pub(crate) fn save_lines(&mut self) {
        for word in 0..BANK {
            if let Some(slot) = self.enabled.get_mut(word) {
                *slot = read(NVIC_ISER + 4 * word);
            }
            if let Some(slot) = self.pending.get_mut(word) {
                *slot = read(NVIC_ISPR + 4 * word);
            }
            if let Some(slot) = self.active.get_mut(word) {
                *slot = read(NVIC_IABR + 4 * word);
            }
        }
        let from = other_space().address(NVIC_IPR) as *const u32;
        // SAFETY: the registers are there, and `priorities` has room for these groups.
        unsafe { bulkhead_copy(from, self.priorities.as_mut_ptr(), PRIORITY_GROUPS as u32) }
    }

    /// Empties the hardware of the world that was there: nothing is pending, enabled or active but handlers of
    /// lines.
    pub(crate) fn clear() {
        for word in 0..BANK {
            write(NVIC_ICER + 4 * word, u32::MAX);
            write(NVIC_ICPR + 4 * word, u32::MAX);
        }
        write(ICSR, PENDSVCLR | PENDSTCLR);
        write(SHCSR, 0);
        write(CFSR, u32::MAX);
    }

    /// Puts the world into the hardware at `now`, but for PRIMASK, lines and floating point. With
    /// `real`, its own timer has run on meanwhile. Requires: as for [`World::save`], and [`World::clear`].
    pub(crate) fn load(&self, now: u64, real: bool) {
        let pended = self.start_timer(now, real);
        // SAFETY: `regions` has all of them.
        unsafe { bulkhead_load_regions(&raw const self.regions) }
        for (value, offset) in self.control_block.iter().zip(CONTROL_BLOCK) {
            write(offset, *value);
        }
        write(AIRCR, KEY | self.priority_group);
        write(SHCSR, self.handlers);
        write(MMFAR, self.fault_address);
        write(ICSR, self.waiting | pended);
        write(MPU_RNR, self.region);
        write(MPU_CTRL, self.protection);
        sysreg::set_main_stack(self.main_stack);
        sysreg::set_process_stack(self.process_stack);
        sysreg::set_main_limit(self.main_limit);
        sysreg::set_process_limit(self.process_limit);
        sysreg::set_control(self.control);
        sysreg::set_basepri(self.basepri);
        sysreg::set_faultmask(self.faultmask);
    }

    /// Puts the state of its lines into the hardware.
    pub(crate) fn load_lines(&self) {
        let to = other_space().address(NVIC_IPR) as *mut u32;
        // SAFETY: the registers are there, and `priorities` has these groups.
        unsafe { bulkhead_copy(self.priorities.as_ptr(), to, PRIORITY_GROUPS as u32) }
        for ((word, pending), enabled) in (0..BANK).zip(self.pending).zip(self.enabled) {
            write(NVIC_ISPR + 4 * word, pending);
            write(NVIC_ISER + 4 * word, enabled);
        }
    }

    /// Starts SysTick with the rest of its period, if it ran. Returns PENDSTSET if a period has ended
    /// meanwhile.
    fn start_timer(&self, now: u64, real: bool) -> u32 {
        let [control, reload, left] = self.timer;
        let period = (reload & 0xFF_FFFF).wrapping_add(1);
        let mut rest = left;
        let mut pended = 0;
        // Only the processor's own clock is that of the counter.
        if real && control & (ENABLE | CLKSOURCE) == ENABLE | CLKSOURCE && reload != 0 {
            let passed = now.saturating_sub(self.left);
            if passed < u64::from(left) {
                rest = left.wrapping_sub(passed as u32);
            } else {
                let over = passed.wrapping_sub(u64::from(left));
                let over = match u32::try_from(over) {
                    Ok(over) => over % period,
                    Err(_) => (over % u64::from(period)) as u32,
                };
                rest = period.wrapping_sub(over);
                pended = if control & TICKINT != 0 { PENDSTSET } else { 0 };
            }
        }
        let running = control & ENABLE != 0;
        let rest = if running { rest } else { 0 };
        let timer = [control & 7, reload, rest];
        // SAFETY: the three words are there, and the Non-secure block is open.
        unsafe { bulkhead_start_timer(&raw const timer) }
        pended
    }

    /// Tells whether an interrupt waits that its program has enabled, as far as is known while the world is
    /// not in the hardware.
    pub(crate) fn has_work(&self) -> bool {
        let lines = self.pending.iter().zip(&self.enabled);
        self.waiting != 0 || lines.into_iter().any(|(pending, enabled)| pending & enabled != 0)
    }

    /// Makes a line pending while the world is not in the hardware, or not.
    pub(crate) fn set_pending(&mut self, line: u32, is_pending: bool) {
        let bit = 1_u32.wrapping_shl(line);
        if let Some(word) = self.pending.get_mut(line as usize >> 5) {
            *word = if is_pending { *word | bit } else { *word & !bit };
        }
    }

    /// Returns the lines of this word that its program has enabled.
    pub(crate) fn enabled(&self, word: usize) -> u32 {
        self.enabled.get(word).copied().unwrap_or(0)
    }
}
