// SPDX-License-Identifier: Apache-2.0
//! The memory-mapped registers of a GICv2's distributor (Arm IHI 0048B, 4.3), without security extensions.
//!
//! Registers of private lines are banked: every vCPU sees its own. A GICv2 differs from a GICv3 in two ways.
//! It has targets instead of routes. Software-generated interrupts are sent by a register here and stay apart
//! by sender: each (sender, number) is an interrupt of its own, of which a vCPU has at most one in a list
//! register.
//!
//! The CPU interface is the hardware's and does not come this way, with one exception: `GICC_DIR`, which has
//! a page of its own and is not let through. If an active interrupt had to leave its list register, the
//! hardware would only count that there was a deactivation, not of which interrupt.
//!
//! Registers are 32 bits wide. `IPRIORITYR`, `ITARGETSR`, `CPENDSGIR` and `SPENDSGIR` have byte access as
//! well. Any other access reads as zero and changes nothing.

use crate::fields::Field;
use crate::lines::shared_word;
use crate::registers::{Array, RegisterAccess, layout};
use crate::state::{NOWHERE, RECHECK};
use crate::{Bank, Hardware, MAX_VCPUS, Vgic, bit, bits};
use core::sync::atomic::{AtomicU8, Ordering::SeqCst};

/// Software-generated interrupts.
const SGIS: u32 = 16;
/// `GICD_IIDR`: GIC-400, r0p1.
const IIDR: u32 = 0x0200_143B;
const TARGETS: u32 = 0x800;
const SEND: u32 = 0xF00;
/// `GICD_SGIR.TargetListFilter`: 0, the list.
const FILTER: u32 = 3 << 24;
const CLEAR_SENT: u32 = 0xF10;
const SET_SENT: u32 = 0xF20;
const SENT_END: u32 = 0xF30;

impl Vgic<'_> {
    /// Loads like [`Vgic::read_word`], from a GICv2.
    #[inline(always)]
    #[must_use]
    pub fn read_word_version2(&self, offset: u32) -> Option<u32> {
        match offset {
            0x000 => Some(self.distributor.control.load(SeqCst)),
            0x004 => Some(self.type_version2()),
            0x008 => Some(IIDR),
            _ => None,
        }
    }

    /// Does a load by the loaded vCPU `me`, naturally aligned.
    pub(crate) fn read_version2<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        access: RegisterAccess,
    ) -> u64 {
        let RegisterAccess { offset, size, .. } = access;
        let value = match (offset, size) {
            (0x000..0x00C, 4) => self.read_word_version2(offset).unwrap_or(0),
            (TARGETS..0xC00, 1 | 4) => {
                let lines = offset.wrapping_sub(TARGETS);
                self.each_byte(lines, size, |line| self.targets_of(me, line))
            }
            (CLEAR_SENT..SENT_END, 1 | 4) => {
                self.take_back_sent(me, bank, hardware);
                self.each_byte(offset & 15, size, |line| {
                    self.senders(me, line).map_or(0, |senders| senders.load(SeqCst))
                })
            }
            (0xFD0..=0xFFC, 4) => identification(offset),
            _ => match layout(offset, size) {
                Some((Array::Bits(field, word), _)) => {
                    return self.read_bits(me, bank, hardware, (me, word, field));
                }
                Some((Array::Priority(line), _)) => self.read_priority(me, line, size),
                Some((Array::Config(register), _)) => self.read_config(me, register),
                None => 0,
            },
        };
        u64::from(value)
    }

    /// Does a store by the loaded vCPU `me`, naturally aligned. `me` passes through `service` afterwards.
    pub(crate) fn write_version2<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        access: RegisterAccess,
        value: u64,
    ) {
        let RegisterAccess { offset, size, .. } = access;
        let value = value as u32;
        match (offset, size) {
            (0x000, 4) => self.write_control(me, value, hardware),
            (TARGETS..0xC00, 1 | 4) => {
                let lines = offset.wrapping_sub(TARGETS);
                for (line, targets) in (lines..).zip(value.to_le_bytes()).take(size.into()) {
                    self.set_targets(me, line, targets, hardware);
                }
            }
            (SEND, 4) => self.send_version2(me, value, hardware),
            (CLEAR_SENT..SENT_END, 1 | 4) => {
                self.take_back_sent(me, bank, hardware);
                for (line, senders) in (offset & 15..).zip(value.to_le_bytes()).take(size.into()) {
                    self.write_sent(me, line, senders, offset >= SET_SENT);
                }
                self.mark(me, 1 | RECHECK);
            }
            _ => match layout(offset, size) {
                Some((Array::Bits(field, word), _)) => {
                    // Software-generated interrupts become pending, or cease to, by their own registers only,
                    // and are always enabled (DDI 0471, chapter 3).
                    let keeps = matches!(
                        field,
                        Field::ClearEnable | Field::SetPending | Field::ClearPending
                    );
                    let kept = if keeps && word == 0 { 0xFFFF } else { 0 };
                    self.write_bits(me, bank, hardware, (me, word, field), value & !kept);
                }
                Some((Array::Priority(line), _)) => {
                    self.write_priority((me, me), line, size, value, hardware);
                }
                Some((Array::Config(register), _)) => self.write_config(me, register, value),
                None => {}
            },
        }
    }

    #[inline(always)]
    fn type_version2(&self) -> u32 {
        let lines = (self.distributor.lines.load(SeqCst) / 32).saturating_sub(1);
        let others = self.redistributors.len().saturating_sub(1) as u32;
        lines | others << 5
    }

    fn each_byte(&self, first: u32, size: u8, value: impl Fn(u32) -> u8) -> u32 {
        let lines = (first..first.saturating_add(size.into())).zip([0, 8, 16, 24]);
        lines.fold(0, |word, (line, shift)| word | u32::from(value(line)) << shift)
    }

    /// Returns all vCPUs there are, one bit each.
    fn everyone(&self) -> u8 {
        u8::MAX.wrapping_shr((MAX_VCPUS as u32).saturating_sub(self.redistributors.len() as u32))
    }

    /// `GICD_ITARGETSR`: of a private line, for any vCPU that asks. With one vCPU there is nothing to choose.
    fn targets_of(&self, me: usize, line: u32) -> u8 {
        if self.redistributors.len() == 1 || self.lines_of(me, line).is_none() {
            return 0;
        }
        let index = match self.distributor.route_of(line) {
            None => me as u32,
            Some(route) => {
                let several = self
                    .several_of(line)
                    .map_or(0, |(word, shift)| word.load(SeqCst).wrapping_shr(shift) as u8);
                if several != 0 {
                    return several;
                }
                route.load(SeqCst)
            }
        };
        if index < MAX_VCPUS as u32 {
            bit(index) as u8
        } else {
            0
        }
    }

    fn several_of(&self, line: u32) -> Option<(&core::sync::atomic::AtomicU32, u32)> {
        let words = self.distributor.targets.get(shared_word(line)?)?;
        let word = words.get((line >> 2 & 7) as usize)?;
        Some((word, (line & 3).wrapping_mul(8)))
    }

    /// Sets the targets of a line. Of several targets the first is as good as any (IHI 0048B, 1.4.3: the 1-N
    /// model).
    fn set_targets<H: Hardware>(&self, me: usize, line: u32, targets: u8, hardware: &mut H) {
        let Some(lines) = self.lines_of(me, line).filter(|_| self.redistributors.len() > 1) else {
            return;
        };
        let (Some(route), Some((several, shift))) = (self.distributor.route_of(line), self.several_of(line))
        else {
            return;
        };
        let targets = targets & self.everyone();
        let noted = if targets.count_ones() > 1 { targets } else { 0 };
        let mask = 0xFFu32.wrapping_shl(shift);
        let _ = several.fetch_update(SeqCst, SeqCst, |old| {
            Some(old & !mask | u32::from(noted).wrapping_shl(shift))
        });
        let index = if targets == 0 {
            NOWHERE
        } else {
            targets.trailing_zeros()
        };
        route.store(index, SeqCst);
        self.distributor.settle_route(line);
        self.rerouted(lines, line, hardware);
        self.touched((me, me), line / 32, bit(line), hardware);
    }

    /// `GICD_SGIR`.
    fn send_version2<H: Hardware>(&self, me: usize, value: u32, hardware: &mut H) {
        let line = value & 15;
        let targets = match (value & FILTER) >> 24 {
            0 => (value >> 16) as u8,
            1 => !(bit(me as u32) as u8),
            2 => bit(me as u32) as u8,
            _ => 0,
        };
        for index in bits(u32::from(targets & self.everyone())) {
            self.send_single_version2(me, index as usize, line, hardware);
        }
    }

    /// Returns the vCPU and the line, if a store of `value` at `offset` of the distributor goes to
    /// `GICD_SGIR` and names one vCPU only. The vCPU need not exist.
    #[inline(always)]
    #[must_use]
    pub fn single_target_version2(offset: u64, value: u32) -> Option<(usize, u32)> {
        let targets = value >> 16 & 0xFF;
        (offset == u64::from(SEND) && value & FILTER == 0 && targets.is_power_of_two())
            .then(|| (targets.trailing_zeros() as usize, value & 15))
    }

    /// Takes the short way of a store to `GICD_SGIR`, see [`Vgic::single_target_version2`].
    #[inline(always)]
    pub fn send_single_version2<H: Hardware>(&self, me: usize, index: usize, line: u32, hardware: &mut H) {
        if let (Some(target), Some(senders)) = (self.redistributor(index), self.senders(index, line)) {
            // The order matters: code that sees the latch finds the sender.
            senders.fetch_or(bit(me as u32) as u8, SeqCst);
            target.touched.store(true, SeqCst);
            target.private.latch.fetch_or(bit(line), SeqCst);
            self.notify_now(me, index, 1, hardware);
        }
    }

    /// Returns the senders whose interrupt `line` waits for a list register of vCPU `index`.
    /// Software-generated interrupts only.
    #[inline]
    pub(crate) fn senders(&self, index: usize, line: u32) -> Option<&AtomicU8> {
        self.redistributor(index)?.senders.get(line as usize)
    }

    /// Returns the sender whose interrupt goes into a list register now, and whether there are more.
    #[inline]
    pub(crate) fn take_sender(&self, me: usize, line: u32) -> Option<(u8, bool)> {
        let senders = self.senders(me, line)?;
        let all = senders.load(SeqCst);
        let one = all & all.wrapping_neg();
        if one == 0 {
            return None;
        }
        senders.fetch_and(!one, SeqCst);
        Some((one, all != one))
    }

    /// Software-generated interrupts of `me` that are loaded and not acknowledged go back among the waiting.
    fn take_back_sent<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        for slot in bits(bank.used) {
            if bank.slot(slot).line() < SGIS {
                let words = self.take_back_slot(me, bank, hardware, slot);
                self.mark(me, words);
            }
        }
    }

    /// `GICD_SPENDSGIR` and `GICD_CPENDSGIR`: `me` gets, or loses, the interrupts of these senders.
    fn write_sent(&self, me: usize, line: u32, senders: u8, on: bool) {
        let (Some(lines), Some(waiting)) = (self.word(me, 0), self.senders(me, line)) else {
            return;
        };
        if on {
            let senders = senders & self.everyone();
            waiting.fetch_or(senders, SeqCst);
            if senders != 0 {
                lines.latch.fetch_or(bit(line), SeqCst);
            }
        } else if waiting.fetch_and(!senders, SeqCst) & !senders == 0 {
            lines.latch.fetch_and(!bit(line), SeqCst);
            // Another vCPU may have sent meanwhile.
            if waiting.load(SeqCst) != 0 {
                lines.latch.fetch_or(bit(line), SeqCst);
            }
        }
    }
}

/// Identification registers of a GIC-400 (IHI 0048B, 4.3.18).
fn identification(offset: u32) -> u32 {
    match offset {
        0xFD0 => 0x04,
        0xFE0 => 0x90,
        0xFE4 => 0xB4,
        0xFE8 => 0x2B,
        0xFF0 => 0x0D,
        0xFF4 => 0xF0,
        0xFF8 => 0x05,
        0xFFC => 0xB1,
        _ => 0,
    }
}
