// SPDX-License-Identifier: Apache-2.0
//! The memory-mapped registers of a GICv3 (IHI 0069, 12.8, 12.10 and 12.11), with one security state
//! (`GICD_CTLR.DS` = 1), affinity routing always on, no LPIs and no message-based interrupts. QEMU's `virt`
//! board shows the same to software at EL1.
//!
//! Registers are 32 bits wide. `IPRIORITYR` has byte access as well, `IROUTER` and `GICR_TYPER` have 64-bit
//! access. Any other access reads as zero and changes nothing.

use crate::fields::{Field, set_enable_quietly as set_enable};
use crate::lines::shared_word;
use crate::state::RECHECK;
use crate::{Bank, FIRST_SPECIAL, Hardware, PRIVATE_LINES, Redistributor, Vgic, bit};
use core::sync::atomic::Ordering::SeqCst;

/// Which registers an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The distributor, 64 KiB.
    Distributor,
    /// The distributor of a GICv2, 4 KiB.
    Version2,
    /// The second page of a GICv2's CPU interface, 4 KiB, in which only `GICC_DIR` is.
    Deactivate,
    /// Both frames of the redistributor of this vCPU, 128 KiB.
    Redistributor(usize),
}

/// A guest's load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterAccess {
    /// Which registers.
    pub frame: Frame,
    /// Offset in the frame.
    pub offset: u32,
    /// Bytes.
    pub size: u8,
}

/// The register at an offset that both frames lay out alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Array {
    Bits(Field, u32),
    /// First line; one byte each.
    Priority(u32),
    /// Index of the register; 16 lines each.
    Config(u32),
}

/// `GICD_IIDR`, `GICR_IIDR`: product 'B', implementer Arm's JEP106 code, as other virtual GICs have it.
const IIDR: u32 = 0x4200_043B;
/// `GICD_CTLR.ARE_NS` and `.DS`, both fixed.
const CTLR_FIXED: u32 = 1 << 4 | 1 << 6;
/// `GICD_TYPER`: 10 interrupt identifier bits, affinity level 3 valid.
const TYPER_FIXED: u32 = 9 << 19 | 1 << 24;
const SGI_FRAME: u32 = 0x1_0000;
/// `GICR_ISENABLER0` and `GICR_ICENABLER0`, from the beginning of a redistributor.
const OWN_ENABLE: u32 = SGI_FRAME + 0x100;
const OWN_DISABLE: u32 = SGI_FRAME + 0x180;
/// `GICC_DIR.Interrupt_ID`. The sender of a software-generated interrupt follows. Each sender has one active
/// at most.
const INTERRUPT_MASK: u32 = 0x3FF;
const IROUTER: u32 = 0x6000;
const IROUTER_END: u32 = 0x8000;
/// `GICD_IROUTER.Interrupt_Routing_Mode`.
const ROUTING_MODE: u32 = 1 << 31;
/// `GICR_WAKER.ProcessorSleep` and `.ChildrenAsleep`.
const PROCESSOR_SLEEP: u32 = 1 << 1;
const CHILDREN_ASLEEP: u32 = 1 << 2;

impl Vgic<'_> {
    /// Loads 32 bits from the distributor by the short way: registers that are one word and need no look at a
    /// list register. `None`: use [`Vgic::read`].
    #[inline(always)]
    #[must_use]
    pub fn read_word(&self, offset: u32) -> Option<u32> {
        match offset {
            0x0000 => Some(self.distributor.control.load(SeqCst) | CTLR_FIXED),
            0x0004 => Some(self.typer()),
            0x0008 => Some(IIDR),
            _ => None,
        }
    }

    /// Stores 32 bits to the distributor by the short way: `GICD_ISENABLER` and `GICD_ICENABLER`. `None`:
    /// nothing was done, use [`Vgic::write`]. Not 0: [`Vgic::written_word`] must follow.
    #[inline(always)]
    #[must_use]
    pub fn write_word(&self, offset: u32, value: u32) -> Option<u32> {
        // 0x104..0x17C sets, 0x184..0x1FC clears; the first word is elsewhere, the last one has gaps.
        let word = offset >> 2 & 31;
        if offset >> 8 != 1 || offset & 3 != 0 || word.wrapping_sub(1) >= FIRST_SPECIAL / 32 - 1 {
            return None;
        }
        let changed = set_enable(self.word(0, word)?, value, offset & 0x80 == 0);
        Some(changed)
    }

    /// Does the second half of [`Vgic::write_word`], for the loaded vCPU `me`, which passes through `service`
    /// afterwards.
    pub fn written_word<H: Hardware>(&self, me: usize, offset: u32, changed: u32, hardware: &mut H) {
        self.enabled_shared(me, offset >> 2 & 31, changed, hardware);
    }

    /// Loads 32 bits of the loaded vCPU's redistributor by the short way: `GICR_CTLR`, `GICR_TYPER`, and the
    /// enabled lines. `None`: use [`Vgic::read`].
    #[inline(always)]
    #[must_use]
    pub fn read_own_word(&self, me: usize, own: Option<&Redistributor>, offset: u32) -> Option<u32> {
        match offset {
            0x0000 => Some(0),
            0x0008 => Some(self.affinity(me) as u32),
            OWN_ENABLE | OWN_DISABLE => Some(own?.private.enabled.load(SeqCst)),
            _ => None,
        }
    }

    /// Does a load by the loaded vCPU `me`. Does not change what the guest could see.
    pub fn read<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        access: RegisterAccess,
    ) -> u64 {
        let RegisterAccess { frame, offset, size } = access;
        if offset & u32::from(size).wrapping_sub(1) != 0 {
            return 0;
        }
        let (index, offset) = match frame {
            Frame::Version2 => return self.read_version2(me, bank, hardware, access),
            Frame::Deactivate => return 0,
            Frame::Distributor => match (offset, size) {
                (0x0000..0x000C, 4) => return self.read_word(offset).map_or(0, u64::from),
                (IROUTER..IROUTER_END, 4 | 8) => return self.read_route(offset, size),
                (0xFFD0..=0xFFFC, 4) => return u64::from(identification(offset, 0x92)),
                _ => (me, offset),
            },
            Frame::Redistributor(index) if offset < SGI_FRAME => {
                return self.read_control_frame(index, offset, size);
            }
            Frame::Redistributor(index) => (index, offset.wrapping_sub(SGI_FRAME)),
        };
        match array(frame, offset, size) {
            Some(Array::Bits(field, word)) => self.read_bits(me, bank, hardware, (index, word, field)),
            Some(Array::Priority(line)) => u64::from(self.read_priority(index, line, size)),
            Some(Array::Config(register)) => u64::from(self.read_config(index, register)),
            None => 0,
        }
    }

    /// Does a store by the loaded vCPU `me`. `me` passes through `service` afterwards.
    pub fn write<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        access: RegisterAccess,
        value: u64,
    ) {
        self.write_register(me, bank, hardware, access, value);
        if let Frame::Redistributor(index) = access.frame
            && let Some(written) = self.redistributor(index)
        {
            written.touched.store(true, SeqCst);
        }
    }

    fn write_register<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        access: RegisterAccess,
        value: u64,
    ) {
        let RegisterAccess { frame, offset, size } = access;
        if offset & u32::from(size).wrapping_sub(1) != 0 {
            return;
        }
        let (index, offset) = match frame {
            Frame::Version2 => return self.write_version2(me, bank, hardware, access, value),
            Frame::Deactivate if (offset, size) == (0, 4) => {
                return self.deactivate(me, bank, hardware, value as u32 & INTERRUPT_MASK);
            }
            Frame::Deactivate => return,
            Frame::Distributor => match (offset, size) {
                (0x0000, 4) => return self.write_control(me, value as u32, hardware),
                (IROUTER..IROUTER_END, 4 | 8) => return self.write_route(me, offset, size, value, hardware),
                _ => (me, offset),
            },
            Frame::Redistributor(index) if offset < SGI_FRAME => {
                if (offset, size) == (0x14, 4)
                    && let Some(redistributor) = self.redistributor(index)
                {
                    redistributor
                        .sleeping
                        .store(value as u32 & PROCESSOR_SLEEP != 0, SeqCst);
                }
                return;
            }
            Frame::Redistributor(index) => (index, offset.wrapping_sub(SGI_FRAME)),
        };
        match array(frame, offset, size) {
            Some(Array::Bits(field, word)) => {
                self.write_bits(me, bank, hardware, (index, word, field), value as u32);
            }
            Some(Array::Priority(line)) => {
                self.write_priority((me, index), line, size, value as u32, hardware)
            }
            Some(Array::Config(register)) => self.write_config(index, register, value as u32),
            None => {}
        }
    }

    fn typer(&self) -> u32 {
        TYPER_FIXED | (self.distributor.lines.load(SeqCst) / 32).saturating_sub(1)
    }

    /// Returns `GICR_TYPER` (IHI 0069, 12.11.35): affinity, number, and whether it is the last one.
    #[inline(always)]
    fn affinity(&self, index: usize) -> u64 {
        let last = index.wrapping_add(1) == self.redistributors.len();
        (index as u64) << 32 | (index as u64) << 8 | u64::from(last) << 4
    }

    fn read_control_frame(&self, index: usize, offset: u32, size: u8) -> u64 {
        let Some(redistributor) = self.redistributor(index) else {
            return 0;
        };
        let typer = self.affinity(index);
        match (offset, size) {
            (0x0004, 4) => u64::from(IIDR),
            (0x0008, 8) => typer,
            (0x0008, 4) => typer & 0xFFFF_FFFF,
            (0x000C, 4) => typer >> 32,
            (0x0014, 4) if redistributor.sleeping.load(SeqCst) => {
                u64::from(PROCESSOR_SLEEP | CHILDREN_ASLEEP)
            }
            (0xFFD0..=0xFFFC, 4) => u64::from(identification(offset, 0x93)),
            _ => 0,
        }
    }

    pub(crate) fn write_control<H: Hardware>(&self, me: usize, value: u32, hardware: &mut H) {
        let new = value & 3;
        if self.distributor.control.swap(new, SeqCst) != new {
            // A vCPU that is off holds nothing. One that comes on line from here on sees the new value.
            for (index, other) in self.redistributors.iter().enumerate() {
                if other.online.load(SeqCst) {
                    self.notify(me, index, RECHECK, hardware);
                }
            }
        }
    }

    pub(crate) fn read_priority(&self, index: usize, line: u32, size: u8) -> u32 {
        let Some(lines) = self.lines_of(index, line) else {
            return 0;
        };
        if size == 1 {
            return u32::from(lines.priority_of(line));
        }
        lines.priorities(line)
    }

    pub(crate) fn write_priority<H: Hardware>(
        &self,
        (me, index): (usize, usize),
        line: u32,
        size: u8,
        value: u32,
        hardware: &mut H,
    ) {
        let Some(lines) = self.lines_of(index, line) else {
            return;
        };
        let (value, count) = if size == 1 {
            (value.wrapping_shl((line & 3).wrapping_mul(8)), 1)
        } else {
            (value, 4)
        };
        let changed = 1u32.wrapping_shl(count).wrapping_sub(1).wrapping_shl(line & 31);
        lines.set_priorities(line, changed, value);
        for line in line..line.saturating_add(count) {
            if let Some(physical) = lines.physical_of(line).filter(|_| line >= PRIVATE_LINES) {
                hardware.set_priority(physical, lines.priority_of(line));
            }
        }
        self.touched((me, index), line / 32, changed, hardware);
    }

    pub(crate) fn read_config(&self, index: usize, register: u32) -> u32 {
        let Some(lines) = self.word(index, register / 2) else {
            return 0;
        };
        let half = lines
            .edge
            .load(SeqCst)
            .wrapping_shr((register & 1).wrapping_mul(16))
            & 0xFFFF;
        (0..16).fold(0, |value, n| value | half.wrapping_shr(n) << 31 >> 30 << n << n)
    }

    pub(crate) fn write_config(&self, index: usize, register: u32, value: u32) {
        let Some(lines) = self.word(index, register / 2).filter(|_| register != 0) else {
            return;
        };
        let half = (0..16u32).fold(0, |edge, n| {
            edge | value.wrapping_shr(n.wrapping_mul(2).wrapping_add(1)) << 31 >> 31 << n
        });
        let shift = (register & 1).wrapping_mul(16);
        let (mask, edge) = (0xFFFFu32.wrapping_shl(shift), half.wrapping_shl(shift));
        let _ = lines
            .edge
            .fetch_update(SeqCst, SeqCst, |old| Some(old & !mask | edge));
    }

    fn read_route(&self, offset: u32, size: u8) -> u64 {
        let line = offset.wrapping_sub(IROUTER) / 8;
        if self.lines_of(0, line).is_none() {
            return 0;
        }
        let (Some(route), Some(word)) = (self.distributor.route_of(line), shared_word(line)) else {
            return 0;
        };
        let affinity = route.load(SeqCst);
        let any = self.distributor.any.get(word).map_or(0, |any| any.load(SeqCst));
        let mode = if any & bit(line) != 0 { ROUTING_MODE } else { 0 };
        let low = u64::from(affinity & 0x00FF_FFFF | mode);
        let high = u64::from(affinity >> 24);
        match (size, offset & 4) {
            (8, _) => high << 32 | low,
            (_, 0) => low,
            _ => high,
        }
    }

    fn write_route<H: Hardware>(&self, me: usize, offset: u32, size: u8, value: u64, hardware: &mut H) {
        let line = offset.wrapping_sub(IROUTER) / 8;
        let Some(lines) = self.lines_of(0, line) else {
            return;
        };
        let (Some(route), Some(word)) = (self.distributor.route_of(line), shared_word(line)) else {
            return;
        };
        let (mask, affinity) = match (size, offset & 4) {
            (8, _) => (
                u32::MAX,
                value as u32 & 0x00FF_FFFF | ((value >> 32) as u32) << 24,
            ),
            (_, 0) => (0x00FF_FFFF, value as u32),
            _ => (0xFF00_0000, (value as u32) << 24),
        };
        let _ = route.fetch_update(SeqCst, SeqCst, |old| Some(old & !mask | affinity & mask));
        if let Some(any) = self.distributor.any.get(word).filter(|_| mask & 1 != 0) {
            if value as u32 & ROUTING_MODE != 0 {
                self.distributor.has_open_routes.store(true, SeqCst);
                any.fetch_or(bit(line), SeqCst);
            } else {
                any.fetch_and(!bit(line), SeqCst);
            }
        }
        self.distributor.settle_route(line);
        self.rerouted(lines, line, hardware);
        self.touched((me, me), line / 32, bit(line), hardware);
    }
}

impl Redistributor {
    /// Stores 32 bits to the loaded vCPU's redistributor by the short way: `GICR_ISENABLER0` and
    /// `GICR_ICENABLER0`. `None`: nothing was done, use [`Vgic::write`]. Not 0: [`Vgic::written_word`] must
    /// follow.
    #[inline(always)]
    #[must_use]
    pub fn write_word(&self, offset: u32, value: u32) -> Option<u32> {
        if offset != OWN_ENABLE && offset != OWN_DISABLE {
            return None;
        }
        Some(set_enable(&self.private, value, offset == OWN_ENABLE))
    }
}

/// Decodes what both frames lay out alike. The distributor has the shared lines, a redistributor the private.
fn array(frame: Frame, offset: u32, size: u8) -> Option<Array> {
    let private = matches!(frame, Frame::Redistributor(_));
    let (found, is_private) = layout(offset, size)?;
    (private == is_private).then_some(found)
}

/// Returns the register that all versions lay out alike, and whether it is about private lines.
pub(crate) fn layout(offset: u32, size: u8) -> Option<(Array, bool)> {
    Some(match (offset, size) {
        (0x080..0x400, 4) => {
            let word = (offset & 0x7F) / 4;
            (Array::Bits(field(offset)?, word), word == 0)
        }
        (0x400..0x800, 1 | 4) => {
            let line = offset.wrapping_sub(0x400);
            (Array::Priority(line), line < PRIVATE_LINES)
        }
        (0xC00..0xD00, 4) => {
            let register = (offset & 0xFF) / 4;
            (Array::Config(register), register < 2)
        }
        _ => return None,
    })
}

fn field(offset: u32) -> Option<Field> {
    Some(match offset >> 7 {
        1 => Field::Group,
        2 => Field::SetEnable,
        3 => Field::ClearEnable,
        4 => Field::SetPending,
        5 => Field::ClearPending,
        6 => Field::SetActive,
        7 => Field::ClearActive,
        _ => return None,
    })
}

/// Identification registers (IHI 0069, 12.2.6 "Identification registers"): `PIDR0` tells distributor and
/// redistributor apart, `PIDR2` says GICv3.
fn identification(offset: u32, pidr0: u32) -> u32 {
    match offset {
        0xFFD0 => 0x44,
        0xFFE0 => pidr0,
        0xFFE4 => 0xB4,
        0xFFE8 => 0x3B,
        0xFFF0 => 0x0D,
        0xFFF4 => 0xF0,
        0xFFF8 => 0x05,
        0xFFFC => 0xB1,
        _ => 0,
    }
}
