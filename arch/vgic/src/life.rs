// SPDX-License-Identifier: Apache-2.0
//! A vCPU comes to its pCPU, leaves it, starts anew.
//!
//! A vCPU that leaves takes only active interrupts along in its saved list registers; what is merely
//! pending goes back into the words, where every other vCPU sees it as it is. Linked private lines (the
//! timers) are one physical line for all vCPUs of a pCPU: their active state is put into the physical GIC
//! for the vCPU that is loaded, and a pending one is left to the physical line, which is still high. So a pending state that
//! the guest gave a timer's line by software does not survive the vCPU's leaving.

use crate::lines::clear;
use crate::state::{ALL_WORDS, NOBODY, RECHECK, SYNC};
use crate::{Bank, Hardware, ListRegister, PRIVATE_LINES, PhysicalLines, Vgic, bits};
use core::sync::atomic::Ordering::SeqCst;

/// Words of shared lines that [`Vgic::reset_shared`] resets at a time: while it does, the pCPU takes no interrupt.
const RESET_WORDS: usize = 2;
/// SGIs are edge-triggered for good; everything else starts level-triggered.
const PRIVATE_EDGE: u32 = 0xFFFF;

impl Vgic<'_> {
    /// Puts the state of vCPU `me` onto this pCPU.
    pub fn load<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let Some(own) = self.redistributor(me) else { return };
        own.present.store(true, SeqCst);
        hardware.set_machine_control(bank.machine_control);
        hardware.set_active_priorities(&bank.active_priorities);
        for slot in bits(bank.used) {
            let value = bank.slot(slot);
            hardware.set_list_register(slot, value);
            if let Some(physical) = private_link(value) {
                hardware.set_active(physical, true);
            }
        }
        bank.control = bank.wanted_control();
        hardware.set_control(bank.control);
        self.mirror_private(me, hardware);
    }

    /// Takes the state of vCPU `me` off this pCPU.
    pub fn unload<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let Some(own) = self.redistributor(me) else { return };
        let mut words = self.fold(me, bank, hardware, false);
        if !bank.evicted.is_empty() {
            words |= self.end_counted(me, bank, hardware);
        }
        words |= self.take_back(me, bank, hardware);
        for slot in bits(bank.used) {
            let value = hardware.list_register(slot);
            bank.set_slot(slot, value);
            hardware.set_list_register(slot, ListRegister::EMPTY);
            if let Some(physical) = private_link(value) {
                hardware.set_active(physical, false);
            }
        }
        for line in bits(own.private.linked.load(SeqCst) & own.private.latch.load(SeqCst)) {
            self.give_back(&own.private, line, hardware);
        }
        bank.machine_control = hardware.machine_control();
        bank.active_priorities = hardware.active_priorities();
        self.mark(me, words);
        own.present.store(false, SeqCst);
        if own.sync.swap(false, SeqCst) {
            own.dirty.fetch_and(!SYNC, SeqCst);
        }
    }

    /// vCPU `me` stops for good or starts anew: everything of it on this pCPU is dropped.
    /// If it was loaded it is not any more.
    pub fn detach<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let Some(own) = self.redistributor(me) else { return };
        if own.is_present() {
            self.unload(me, bank, hardware);
        }
        for slot in bits(bank.used) {
            let value = bank.slot(slot);
            // Private lines are inactive in the physical GIC since the vCPU was unloaded.
            if let Some(physical) = value.physical().filter(|_| value.line() >= PRIVATE_LINES) {
                hardware.set_active(physical, false);
            }
            self.release(me, value.line(), hardware);
        }
        self.drop_active(me, hardware);
        *bank = Bank::new();
        own.online.store(false, SeqCst);
    }

    /// Cold reset of vCPU `me`, which is then online and not loaded.
    pub fn reset<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        self.detach(me, bank, hardware);
        let Some(own) = self.redistributor(me) else { return };
        own.private.reset(PRIVATE_EDGE);
        own.sleeping.store(true, SeqCst);
        own.online.store(true, SeqCst);
        own.dirty.store(ALL_WORDS | RECHECK, SeqCst);
    }

    /// A part of the cold reset of what the vCPUs share, from the word `first` of shared lines on; returns where to
    /// go on, `None` at the end. Requires: all vCPUs detached. Words that the guest has no lines in are as they were made.
    pub fn reset_shared<P: PhysicalLines>(&self, first: usize, hardware: &mut P) -> Option<usize> {
        self.distributor.control.store(0, SeqCst);
        let used = (self.distributor.lines.load(SeqCst) / 32).saturating_sub(1) as usize;
        let next = first.saturating_add(RESET_WORDS);
        let words = self.distributor.shared.iter().enumerate().take(used);
        for (index, lines) in words.skip(first).take(RESET_WORDS) {
            for n in bits(lines.linked.load(SeqCst)) {
                let Some(physical) = lines.physical_of(n) else {
                    continue;
                };
                hardware.set_enabled(physical, false);
                hardware.set_pending(physical, false);
                hardware.set_active(physical, false);
                hardware.set_target(physical, 0);
            }
            lines.reset(0);
            if let Some(any) = self.distributor.any.get(index) {
                any.store(0, SeqCst);
            }
            for route in self.distributor.route.get(index).into_iter().flatten() {
                route.store(0, SeqCst);
            }
            for holder in self.distributor.holder.get(index).into_iter().flatten() {
                holder.store(NOBODY, SeqCst);
            }
        }
        (next < used).then_some(next)
    }

    /// Active interrupts of `me` outside the list registers end.
    fn drop_active<H: Hardware>(&self, me: usize, hardware: &mut H) {
        for (index, lines) in self.distributor.shared.iter().enumerate() {
            let word = (index as u32).wrapping_add(1);
            for n in bits(lines.active.load(SeqCst)) {
                let line = word.wrapping_mul(32) | n;
                let holder = self
                    .distributor
                    .holder_of(line)
                    .map_or(NOBODY, |holder| holder.load(SeqCst));
                if usize::from(holder) == me {
                    self.end_outside(me, line, hardware);
                }
            }
        }
        if let Some(own) = self.redistributor(me) {
            clear(&own.private.active, u32::MAX);
            clear(&own.private.latch, u32::MAX);
            clear(&own.private.held, u32::MAX);
        }
    }
}

/// The physical line behind an active private one.
fn private_link(value: ListRegister) -> Option<u32> {
    value
        .physical()
        .filter(|_| value.line() < PRIVATE_LINES && value.is_active())
}
