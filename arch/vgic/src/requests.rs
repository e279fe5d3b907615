// SPDX-License-Identifier: Apache-2.0
//! The work of a vCPU's own pCPU for others: requests about held lines, and active interrupts that had to
//! leave their list register.

use crate::lines::{Lines, clear};
use crate::state::{NOBODY, RECHECK, STRUCK, SYNC, word_flag};
use crate::{Bank, Hardware, ListRegister, PRIVATE_LINES, Vgic, bit, bits};
use core::sync::atomic::Ordering::SeqCst;

/// Steps to wait for another pCPU to say what its list registers hold. It answers from within one exit;
/// if it is in the middle of something longer, what it said last has to do.
const SYNC_STEPS: u32 = 96;

/// The number of these steps that an answer to another pCPU takes. vCPUs that ask all the time do not make
/// the wait longer.
const ANSWER_STEPS: u32 = 16;

/// `ICH_VMCR_EL2.VEOIM`: the guest ends in two steps.
const SPLIT_END: u64 = 1 << 9;

impl Vgic<'_> {
    /// Marks `flags` dirty for vCPU `index` and sees to it that it looks soon. vCPU `me` looks by itself.
    #[inline(never)]
    pub(crate) fn notify<H: Hardware>(&self, me: usize, index: usize, flags: u64, hardware: &mut H) {
        self.notify_now(me, index, flags, hardware);
    }

    /// Does [`Vgic::notify`] in place, for a short way that calls nothing.
    #[inline(always)]
    pub(crate) fn notify_now<H: Hardware>(&self, me: usize, index: usize, flags: u64, hardware: &mut H) {
        let Some(target) = self.redistributor(index) else {
            return;
        };
        crate::step();
        target.dirty.fetch_or(flags, SeqCst);
        if index != me {
            hardware.kick(index, target.is_present());
        }
    }

    /// Carries out what was asked of `me`; the words to look at again.
    pub(crate) fn attend<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        dirty: u64,
    ) -> u64 {
        let Some(own) = self.redistributor(me) else {
            return 0;
        };
        let mut words = 0;
        if !bank.evicted.is_empty() {
            words |= self.end_counted(me, bank, hardware);
        }
        if dirty & RECHECK != 0 {
            for slot in bits(bank.used) {
                words |= self.recheck(me, bank, hardware, slot);
            }
            self.mirror_private(me, bank, hardware);
        }
        if dirty & STRUCK != 0 {
            self.readmit(me, hardware);
        }
        if dirty & SYNC != 0 {
            words |= self.publish(me, bank, hardware);
            own.sync.store(false, SeqCst);
        }
        words
    }

    /// Lets exactly those linked private lines of this pCPU interrupt that the guest has enabled.
    pub(crate) fn mirror_private<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let Some(lines) = self.word(me, 0) else { return };
        let on = lines.linked.load(SeqCst) & lines.enabled.load(SeqCst);
        let physical = bits(on).filter_map(|line| lines.physical_of(line));
        bank.mirrored = physical.fold(0, |mask, line| mask | bit(line));
        hardware.enable_private(bank.mirrored);
        for line in bits(lines.linked.load(SeqCst) & lines.latch.load(SeqCst) & !on) {
            self.give_back(lines, line, hardware);
        }
    }

    /// Brings `acknowledged` and the latches up to date with the list registers; the words concerned.
    pub(crate) fn publish<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) -> u64 {
        bank.forget();
        let mut words = self.fold(me, bank, hardware, false);
        for slot in bits(bank.used) {
            let now = hardware.list_register(slot);
            if now.is_active() {
                words |= self.take_back_slot(me, bank, hardware, slot);
            } else if let Some(lines) = self.lines_of(me, bank.slot(slot).line()) {
                // Active when last looked at, ended since, and pending again.
                clear(&lines.acknowledged, bit(bank.slot(slot).line()));
            }
        }
        words
    }

    /// Brings one slot in line with the words and the requests.
    fn recheck<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H, slot: u32) -> u64 {
        let line = bank.slot(slot).line();
        let Some(lines) = self.lines_of(me, line) else {
            return 0;
        };
        let now = hardware.list_register(slot);
        let mask = bit(line);
        if now.is_active() {
            return self.recheck_active(me, bank, hardware, slot);
        }
        clear(&lines.acknowledged, mask);
        let reason =
            lines.physical_of(line).is_some() || bank.from_latch & bit(slot) != 0 || lines.high() & mask != 0;
        let as_loaded = now.is_pending()
            && reason
            && lines.clear_pending.load(SeqCst) & mask == 0
            && lines.active.load(SeqCst) & mask == 0
            && self.as_loaded(me, lines, now);
        if as_loaded {
            clear(&lines.clear_active, mask);
            self.resample(lines, slot, hardware);
            return 0;
        }
        let words = self.take_back_slot(me, bank, hardware, slot);
        if lines.enabled.load(SeqCst) & mask == 0 {
            self.give_back(lines, line, hardware);
        }
        words
    }

    fn recheck_active<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H, slot: u32) -> u64 {
        let line = bank.slot(slot).line();
        let Some(lines) = self.lines_of(me, line) else {
            return 0;
        };
        let mask = bit(line);
        let before = hardware.list_register(slot);
        let mut now = before;
        lines.acknowledged.fetch_or(mask, SeqCst);
        clear(&lines.active, mask);
        if lines.clear_pending.load(SeqCst) & mask != 0 {
            clear(&lines.clear_pending, mask);
            now = now.with_pending(false);
        }
        if now.is_pending() && !self.as_loaded(me, lines, now) {
            lines.latch.fetch_or(mask, SeqCst);
            now = now.with_pending(false);
        }
        if !now.is_pending() {
            clear(&lines.repended, mask);
        }
        if lines.clear_active.load(SeqCst) & mask != 0 {
            clear(&lines.clear_active, mask);
            clear(&lines.acknowledged, mask);
            now = now.with_active(false);
            self.end_physical(lines, line, hardware);
        }
        if now.is_empty() {
            // All of it: an empty one whose end is to be noticed would interrupt for ever.
            hardware.set_list_register(slot, ListRegister::EMPTY);
            bank.used &= !bit(slot);
            return self.release(me, line, hardware);
        }
        if now != before {
            hardware.set_list_register(slot, now);
        }
        self.resample(lines, slot, hardware);
        0
    }

    /// Arranges that the end of a virtual line is noticed if, and only if, the line wants delivery again as
    /// things are now.
    fn resample<H: Hardware>(&self, lines: &Lines, slot: u32, hardware: &mut H) {
        let now = hardware.list_register(slot);
        // A latch is another interrupt than the loaded one if that is active, or was sent by another vCPU.
        let wanting = if now.is_active() || now.sender() != 0 {
            lines.wanting()
        } else {
            lines.high()
        };
        let notice = wanting & bit(now.line()) != 0;
        if now.physical().is_none() && now.notices_end() != notice {
            hardware.set_list_register(slot, now.with_end_notice(notice));
        }
    }

    /// Tells whether a pending interrupt would be loaded now as it is in `value`.
    pub(crate) fn as_loaded(&self, me: usize, lines: &Lines, value: ListRegister) -> bool {
        let (line, mask) = (value.line(), bit(value.line()));
        let group = if value.is_group1() { 2 } else { 1 };
        lines.enabled.load(SeqCst) & mask != 0
            && self.distributor.control.load(SeqCst) & group != 0
            && (lines.group1.load(SeqCst) & mask != 0) == value.is_group1()
            && lines.priority_of(line) == value.priority()
            && (line < PRIVATE_LINES || self.target(line) == Some(me))
    }

    /// Gives a linked level-triggered line that is latched but cannot be delivered back to the physical line.
    /// The physical line stays high by itself and keeps the state, and it is not active meanwhile.
    pub(crate) fn give_back<H: Hardware>(&self, lines: &Lines, line: u32, hardware: &mut H) {
        let Some(physical) = lines.physical_of(line) else {
            return;
        };
        if lines.latch.load(SeqCst) & bit(line) != 0 && !hardware.is_edge(physical) {
            lines.latch.fetch_and(!bit(line), SeqCst);
            hardware.set_active(physical, false);
        }
    }

    /// Has every vCPU that holds one of `held` in a list register bring the words up to date, within a bound.
    pub(crate) fn synchronize<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        word: u32,
        held: u32,
    ) {
        let (holders, _) = self.holders(word, held);
        let mut others = 0;
        for index in bits(holders & !bit(me as u32)) {
            if let Some(other) = self.redistributor(index as usize)
                && other.is_present()
            {
                others |= bit(index);
                other.sync.store(true, SeqCst);
                self.notify(me, index as usize, SYNC, hardware);
            }
        }
        self.await_sync(me, bank, hardware, others);
    }

    /// Has vCPU `index` bring the words of its private lines up to date, within a bound. Returns the ones of
    /// its held lines that are only parked.
    pub(crate) fn synchronize_private<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        index: usize,
    ) -> u32 {
        let Some(other) = self.redistributor(index).filter(|_| index != me) else {
            return 0;
        };
        if !other.is_present() {
            let parked = other.parked.load(SeqCst);
            // Still not: what was read is of the time between.
            if !other.is_present() {
                return parked;
            }
        }
        if other.private.held.load(SeqCst) != 0 {
            other.sync.store(true, SeqCst);
            self.notify(me, index, SYNC, hardware);
            self.await_sync(me, bank, hardware, 1u32.wrapping_shl(index as u32));
        }
        0
    }

    /// Answers for a vCPU that is loaded and does not run, if a vCPU waits to hear what its list registers
    /// hold. A vCPU that runs answers on its way back into the guest. Returns whether one waited.
    pub fn answer<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) -> bool {
        let Some(own) = self.redistributor(me).filter(|own| own.is_present()) else {
            return false;
        };
        let is_asked = own.sync.load(SeqCst);
        if is_asked {
            let words = self.publish(me, bank, hardware);
            self.mark(me, words);
            // This is the last step: the vCPU that asked looks at the words after this.
            own.sync.store(false, SeqCst);
        }
        is_asked
    }

    /// Waits for the vCPUs in `others`, and answers them if they wait for us.
    fn await_sync<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H, others: u32) {
        // A vCPU that has left meanwhile need not answer: the contents of its list registers are in the words
        // again, or parked.
        let waits = |index: u32| {
            self.redistributor(index as usize)
                .is_some_and(|r| r.sync.load(SeqCst) && r.is_present())
        };
        let mut left = SYNC_STEPS;
        while left > 0 && bits(others).any(waits) {
            let is_asked = self.answer(me, bank, hardware);
            left = left.saturating_sub(if is_asked { ANSWER_STEPS } else { 1 });
            hardware.relax();
        }
    }

    /// Ends `line` by `ICC_DIR_EL1`, trapped while active interrupts are outside the list registers, or by
    /// `GICC_DIR`, always trapped.
    pub fn deactivate<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H, line: u32) {
        bank.forget();
        let slot = bits(bank.used & !hardware.empty_slots()).find(|slot| bank.slot(*slot).line() == line);
        let Some(lines) = self.lines_of(me, line) else {
            return;
        };
        match slot.map(|slot| (slot, hardware.list_register(slot))) {
            Some((slot, now)) if now.is_active() => {
                self.end_physical(lines, line, hardware);
                hardware.set_list_register(slot, now.with_active(false));
            }
            Some(_) => {}
            None if self.is_mine(me, line) => {
                bank.evicted.remove(line);
                self.end_outside(me, line, hardware);
            }
            None => {}
        }
        self.mark(me, word_flag(line));
    }

    /// Ends interrupts outside the list registers, as many as the hardware counted. With EOImode 1 an end
    /// only drops the priority, and the deactivation that follows is trapped. Some hardware counts it all the
    /// same.
    pub(crate) fn end_counted<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) -> u64 {
        let count = hardware.take_end_count().min(31);
        if hardware.machine_control() & SPLIT_END != 0 {
            return 0;
        }
        let mut words = 0;
        for _ in 0..count {
            let Some(line) = bank.evicted.pop().filter(|line| self.is_mine(me, *line)) else {
                continue;
            };
            self.end_outside(me, line, hardware);
            words |= word_flag(line);
        }
        words
    }

    /// Ends an active interrupt outside the list registers.
    pub(crate) fn end_outside<H: Hardware>(&self, me: usize, line: u32, hardware: &mut H) {
        let Some(lines) = self.lines_of(me, line) else {
            return;
        };
        if lines.active.fetch_and(!bit(line), SeqCst) & bit(line) == 0 {
            return;
        }
        if let Some(holder) = self.distributor.holder_of(line) {
            holder.store(NOBODY, SeqCst);
        }
        self.end_physical(lines, line, hardware);
        // Pending meanwhile, and routed to another vCPU.
        if line >= PRIVATE_LINES
            && lines.wanting() & bit(line) != 0
            && let Some(target) = self.target(line).filter(|target| *target != me)
        {
            self.notify(me, target, word_flag(line), hardware);
        }
    }

    pub(crate) fn end_physical<H: Hardware>(&self, lines: &Lines, line: u32, hardware: &mut H) {
        if let Some(physical) = lines.physical_of(line) {
            hardware.set_active(physical, false);
        }
    }

    /// Tells whether an active interrupt outside the list registers is this vCPU's.
    fn is_mine(&self, me: usize, line: u32) -> bool {
        line < PRIVATE_LINES
            || self
                .distributor
                .holder_of(line)
                .is_some_and(|holder| holder.load(SeqCst) == me as u8)
    }
}
