// SPDX-License-Identifier: Apache-2.0
//! The private peripheral bus as a guest sees it (Arm DDI 0403E.e, B3.1.1): dispatch by address, and
//! the registers of the interrupt controller.
//!
//! Words only, but for those the architecture lets be read and written by bytes and halfwords: the interrupt
//! controller's, SHPR and CFSR. Any other narrower access reads 0 and writes nothing, as does what is not
//! there.

use crate::exception::frame_size;
use crate::processor::{FP_CONTROL, VirtualCore};
use bulkhead_arch_regions::GuestView;

/// First address of the private peripheral bus.
pub const PRIVATE_BUS: u32 = 0xE000_0000;
/// Its length.
pub const PRIVATE_BUS_SIZE: u32 = 0x0010_0000;

const DWT: u32 = 0xE000_1000;
const DWT_CYCCNT: u32 = DWT + 4;
const TYPE: u32 = 0xE000_E004;
const SYSTICK: u32 = 0xE000_E010;
const SYSTICK_END: u32 = 0xE000_E0FF;
const LINES: u32 = 0xE000_E100;
const LINES_END: u32 = 0xE000_E7FF;
const SYSTEM: u32 = 0xE000_ED00;
const SYSTEM_END: u32 = 0xE000_ED8F;
const MPU: u32 = 0xE000_ED90;
const MPU_END: u32 = 0xE000_EDEF;
/// DEMCR.
const DEBUG_CONTROL: u32 = 0xE000_EDFC;
const TRIGGER: u32 = 0xE000_EF00;
const FLOATING_POINT: u32 = 0xE000_EF30;
const FLOATING_POINT_END: u32 = 0xE000_EF4F;
const IDENTIFICATION: u32 = 0xE000_EFD0;
const IDENTIFICATION_END: u32 = 0xE000_EFFF;

/// FPCCR.LSPEN: an exception entry notes in FPCAR where floating-point registers are to be stored.
const LSPEN: u32 = 1 << 30;

/// CCR.USERSETMPEND: unprivileged code may use STIR.
const USERSETMPEND: u32 = 1 << 1;
const CYCCNTENA: u32 = 1;
const TRCENA: u32 = 1 << 24;

/// The access ends in a bus fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusError;

impl VirtualCore {
    /// Loads `size` (1, 2 or 4) bytes at `address`.
    ///
    /// # Errors
    /// [`BusError`] for unprivileged code, and for sizes and addresses that the bus does not take.
    pub fn read(&mut self, address: u32, size: u8, now: u64) -> Result<u32, BusError> {
        if !self.privileged() {
            return Err(BusError);
        }
        check(address, size)?;
        self.advance(now);
        Ok(match address {
            SYSTICK..=SYSTICK_END => {
                if size != 4 {
                    return Err(BusError);
                }
                self.systick.read(address.wrapping_sub(SYSTICK), now)
            }
            LINES..=LINES_END => self.read_lines(address.wrapping_sub(LINES), size),
            SYSTEM..=SYSTEM_END => self.read_system(address.wrapping_sub(SYSTEM), size),
            _ if size != 4 => 0,
            TYPE => u32::from(self.lines.count().div_ceil(32)).saturating_sub(1),
            DWT => u32::from(self.cycles_enabled),
            DWT_CYCCNT => self.cycle_count(now),
            MPU..=MPU_END => self.mpu.read(address.wrapping_sub(MPU)),
            DEBUG_CONTROL => self.debug_control,
            FLOATING_POINT..=FLOATING_POINT_END => {
                self.read_floating_point(address.wrapping_sub(FLOATING_POINT))
            }
            IDENTIFICATION..=IDENTIFICATION_END => {
                let index = address.wrapping_sub(IDENTIFICATION) >> 2;
                self.model
                    .identification
                    .get(index as usize)
                    .copied()
                    .unwrap_or(0)
                    .into()
            }
            _ => 0,
        })
    }

    /// Stores `size` (1, 2 or 4) bytes at `address`.
    ///
    /// # Errors
    /// [`BusError`] for unprivileged code (but for STIR if CCR lets it), and for sizes and addresses
    /// that the bus does not take.
    pub fn write(&mut self, address: u32, size: u8, value: u32, now: u64) -> Result<(), BusError> {
        let allowed = self.privileged() || address == TRIGGER && self.configuration & USERSETMPEND != 0;
        if !allowed {
            return Err(BusError);
        }
        check(address, size)?;
        self.advance(now);
        match address {
            SYSTICK..=SYSTICK_END => {
                if size != 4 {
                    return Err(BusError);
                }
                self.systick.write(address.wrapping_sub(SYSTICK), value, now);
            }
            LINES..=LINES_END => self.write_lines(address.wrapping_sub(LINES), size, value),
            SYSTEM..=SYSTEM_END => self.write_system(address.wrapping_sub(SYSTEM), size, value),
            _ if size != 4 => {}
            DWT => self.enable_cycle_count(value & CYCCNTENA != 0, now),
            DWT_CYCCNT => {
                let base = if self.cycles_enabled { now as u32 } else { 0 };
                self.cycles = value.wrapping_sub(base);
            }
            MPU..=MPU_END => {
                let changed = self.mpu.write(address.wrapping_sub(MPU), value);
                self.changes.regions |= changed;
                self.is_returning = false;
            }
            DEBUG_CONTROL => self.debug_control = value & TRCENA,
            TRIGGER => {
                let line = (value & 0x1FF) as u16;
                if let Ok(line) = u8::try_from(line) {
                    self.pulse_line(line);
                }
            }
            FLOATING_POINT..=FLOATING_POINT_END => {
                self.write_floating_point(address.wrapping_sub(FLOATING_POINT), value);
            }
            _ => {}
        }
        Ok(())
    }

    fn cycle_count(&self, now: u64) -> u32 {
        let base = if self.cycles_enabled { now as u32 } else { 0 };
        self.cycles.wrapping_add(base)
    }

    fn enable_cycle_count(&mut self, enable: bool, now: u64) {
        let shown = self.cycle_count(now);
        self.cycles_enabled = enable;
        self.cycles = if enable {
            shown.wrapping_sub(now as u32)
        } else {
            shown
        };
    }

    /// Reads FPCCR, FPCAR, FPDSCR and the identification of the floating-point unit (B3.2.21).
    fn read_floating_point(&self, offset: u32) -> u32 {
        if !self.model.floating_point {
            return 0;
        }
        match offset {
            0x4 => self.fp_context_control(),
            0x8 => self.fp_context & !7,
            0xC => self.fp_default_status,
            0x10 | 0x14 | 0x18 => {
                let index = (offset.wrapping_sub(0x10) >> 2).wrapping_add(13);
                self.model.features.get(index as usize).copied().unwrap_or(0)
            }
            _ => 0,
        }
    }

    fn write_floating_point(&mut self, offset: u32, value: u32) {
        if !self.model.floating_point {
            return;
        }
        match offset {
            0x4 => self.fp_context = self.fp_context & !FP_CONTROL | value >> 30,
            0x8 => {
                self.set_fp_context_address(value);
                return;
            }
            0xC => self.fp_default_status = value & 0x07C0_0000,
            _ => return,
        }
        self.changes.configuration = true;
    }

    /// Notes that an exception interrupts code whose frame, with floating-point registers, is at `frame`.
    pub(crate) const fn note_fp_context(&mut self, frame: u32) {
        if self.fp_context_control() & LSPEN != 0 {
            self.set_fp_context_address(frame.wrapping_add(frame_size(false)));
        }
    }

    const fn set_fp_context_address(&mut self, address: u32) {
        self.fp_context = self.fp_context & FP_CONTROL | address & !7;
    }

    /// ISER, ICER, ISPR, ICPR, IABR and IPR: `offset` from 0xE000E100.
    fn read_lines(&self, offset: u32, size: u8) -> u32 {
        if (0x300..0x700).contains(&offset) {
            return (0..u32::from(size)).fold(0, |value, byte| {
                let line = offset.wrapping_sub(0x300).wrapping_add(byte);
                let priority = u8::try_from(line).map_or(0, |line| self.lines.priority(line));
                value | u32::from(priority).wrapping_shl(byte.wrapping_mul(8))
            });
        }
        let words = match offset & !0x7F {
            0x000 | 0x080 => &self.lines.enabled,
            0x100 | 0x180 => &self.lines.pending,
            0x200 => &self.lines.active,
            _ => return 0,
        };
        let word = words.get((offset as usize & 0x7F) >> 2).copied().unwrap_or(0);
        narrow(word, offset, size)
    }

    fn write_lines(&mut self, offset: u32, size: u8, value: u32) {
        if (0x300..0x700).contains(&offset) {
            for byte in 0..u32::from(size) {
                let line = offset.wrapping_sub(0x300).wrapping_add(byte);
                let priority = value.wrapping_shr(byte.wrapping_mul(8)) as u8 & self.model.priority_bits;
                if let Ok(line) = u8::try_from(line) {
                    self.lines.set_priority(line, priority);
                }
            }
            self.refresh();
            return;
        }
        let index = (offset as usize & 0x7F) >> 2;
        let bits = widen(value, offset, size) & self.lines.mask(index);
        let lines = &mut self.lines;
        match (
            offset & !0x7F,
            lines.enabled.get_mut(index),
            lines.pending.get_mut(index),
        ) {
            (0x000, Some(enabled), _) => *enabled |= bits,
            (0x080, Some(enabled), _) => *enabled &= !bits,
            (0x100, _, Some(pending)) => *pending |= bits,
            (0x180, _, _) => lines.clear_pending(index, bits),
            _ => return,
        }
        // Enables; and what the guest no longer waits for, its device may ask for again.
        if !(0x100..0x180).contains(&offset) {
            self.changes.lines = true;
        }
        self.refresh_pending();
    }

    /// Returns the regions of the memory protection unit if it checks what the guest does now (B3.5.1).
    #[must_use]
    pub fn guest_regions(&self) -> Option<GuestView<'_>> {
        self.protected().then(|| GuestView {
            regions: self.mpu.regions(),
            background: self.mpu.background() && self.privileged(),
            privileged: self.privileged(),
        })
    }
}

fn check(address: u32, size: u8) -> Result<(), BusError> {
    let inside = address.wrapping_sub(PRIVATE_BUS) < PRIVATE_BUS_SIZE;
    let aligned = matches!(size, 1 | 2 | 4) && address & u32::from(size.wrapping_sub(1)) == 0;
    if inside && aligned { Ok(()) } else { Err(BusError) }
}

/// Returns the `size` bytes of a register that an access at `offset` reads.
pub(crate) const fn narrow(word: u32, offset: u32, size: u8) -> u32 {
    let shifted = word.wrapping_shr((offset & 3).wrapping_mul(8));
    match size {
        1 => shifted & 0xFF,
        2 => shifted & 0xFFFF,
        _ => shifted,
    }
}

/// Returns what an access of `size` bytes at `offset` writes, as a whole register with zeros elsewhere.
pub(crate) const fn widen(value: u32, offset: u32, size: u8) -> u32 {
    narrow(value, 0, size).wrapping_shl((offset & 3).wrapping_mul(8))
}
