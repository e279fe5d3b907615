// SPDX-License-Identifier: Apache-2.0
//! Between words and list registers: what the pCPU of a loaded vCPU does before it enters the guest.
//!
//! [`Vgic::service`] has three steps. *Fold*: slots the guest has emptied are released. *Recheck* (only if
//! asked for): requests of others are carried out, and what is no longer deliverable as it was loaded goes
//! back into the words. *Fill*: dirty words are looked at, and what waits goes into slots, most urgent first.
//! All of it takes the same time however many lines there are. A step looks at [`DIRTY_LOOKS`] dirty words at
//! most and fills each slot once. The rest is done in a further step. Before that step the pCPU takes
//! interrupts.
//!
//! Level-triggered virtual lines are resampled when the guest ends them. As long as the input is high, the
//! list register asks for a maintenance interrupt at the end. The maintenance interrupt marks nothing dirty
//! itself, but then the fold finds that the released line still wants delivery. The vCPU that sees the input
//! low clears the request, so that the usual interrupt (input low before its end) has no extra exit.

use crate::lines::{Lines, clear};
use crate::state::{ALL_WORDS, NOBODY, PLAIN, RECHECK, STRUCK, SYNC, word_flag};
use crate::waiting::{DIRTY_LOOKS, LOOKS, WAIT_LOOKS, first_looks};
use crate::{
    Bank, Control, CpuInterface, Hardware, ListRegister, MAX_SLOTS, PRIVATE_LINES, Redistributor, Vgic, bit,
    bits,
};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

impl Redistributor {
    /// Makes `plain_lines` and `plain_slots` of the bank anew.
    pub(crate) fn remember(&self, bank: &mut Bank) {
        bank.forget();
        if bank.is_crowded() || bank.made_active || bank.control != Control::default() {
            return;
        }
        bank.plain_slots = PLAIN;
        let seen = self.private.acknowledged.load(Relaxed) | self.private.repended.load(Relaxed);
        // Slots above are no short way.
        for slot in bits(bank.used & bank.from_latch & 0xF) {
            let value = bank.slot(slot);
            let line = value.line();
            let last = bank.private_slots.get(line as usize).map(|last| u32::from(*last));
            if last == Some(slot) && value.is_plain(line) && seen & bit(line) == 0 {
                bank.plain_lines |= bit(line);
                bank.plain_slots |= bit(slot);
            }
        }
    }

    /// Returns the slot of private line `line` and the value written there, if both can be used once more.
    /// That needs three things: the guest has ended that interrupt, nothing else waits for the slot, and the
    /// line is in no other state.
    ///
    /// Nothing about the line can have changed since it was loaded. A change of a held line asks for a
    /// recheck, and until the recheck is done `dirty` says so. `acknowledged` and `repended` are written on
    /// this pCPU only.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "masked indices are below the lengths")]
    fn reusable<C: CpuInterface>(&self, bank: &Bank, hardware: &C, line: u32) -> Option<(u32, ListRegister)> {
        if bank.plain_lines & bit(line) == 0 {
            return None;
        }
        let slot = u32::from(bank.private_slots[(line & 31) as usize]);
        (hardware.empty_slots().wrapping_shr(slot) & 1 != 0).then(|| (slot, bank.slots[(slot & 15) as usize]))
    }

    /// Delivers a frequent interrupt by a short way of [`Redistributor::raise`] and [`Vgic::service`]. The
    /// way is for a private line (timer, SGI) of this vCPU, loaded on this pCPU, that becomes pending, when
    /// nothing else is to be done and the list register of the line is still where it was. The list register
    /// is then written once more. False: nothing was done.
    ///
    /// No read-modify-write of a shared word is needed. If another pCPU changes something after the look at
    /// `dirty`, it kicks this pCPU, which then takes back what was loaded here. A latch set meanwhile is
    /// found then, too. So it is as if the change came after the delivery.
    #[inline(always)]
    pub fn deliver_now<C: CpuInterface>(&self, bank: &mut Bank, hardware: &mut C, line: u32) -> bool {
        if self.dirty.load(SeqCst) != 0 || self.private.latch.load(Relaxed) & bit(line) != 0 {
            return false;
        }
        let Some((slot, value)) = self.reusable(bank, hardware, line) else {
            return false;
        };
        hardware.set_near_register(slot, value);
        true
    }

    /// Delivers a software-generated interrupt of a GICv2 that this vCPU sends to itself, like
    /// [`Redistributor::deliver_now`]. `sender` is the bit of this vCPU. The interrupt of another sender is
    /// another interrupt.
    #[inline(always)]
    pub fn deliver_sent<C: CpuInterface>(
        &self,
        bank: &mut Bank,
        hardware: &mut C,
        line: u32,
        sender: u8,
    ) -> bool {
        if self.dirty.load(SeqCst) != 0 || self.private.latch.load(Relaxed) & bit(line) != 0 {
            return false;
        }
        match self.reusable(bank, hardware, line) {
            Some((slot, value)) if value.sender() == sender => {
                hardware.set_near_register(slot, value);
                true
            }
            _ => false,
        }
    }

    /// Tells by the short way of [`Vgic::has_work`] that there is no work: the vCPU is loaded, nothing is
    /// marked, nothing waits for a slot, and the guest has ended what was in one.
    #[inline(always)]
    pub fn is_quiet<C: CpuInterface>(&self, bank: &Bank, hardware: &C) -> bool {
        self.is_present()
            && !self.is_dirty()
            && bank.plain_slots & PLAIN != 0
            && bank.used & !hardware.empty_slots() == 0
    }

    /// Takes the short way of [`Vgic::service`] for a private line that another vCPU has latched.
    #[inline(always)]
    pub fn deliver_again<C: CpuInterface>(&self, bank: &mut Bank, hardware: &mut C) -> bool {
        let latch = &self.private.latch;
        let line = latch.load(SeqCst).trailing_zeros();
        let Some((slot, value)) = self.reusable(bank, hardware, line) else {
            return false;
        };
        let sender = if hardware.names_senders() {
            value.sender()
        } else {
            0
        };
        if sender != 0 && !self.is_sent_by(line, sender) {
            return false;
        }
        let dirty = self.dirty.swap(0, SeqCst);
        let latched = if dirty == 1 {
            latch.fetch_and(!bit(line), SeqCst)
        } else {
            0
        };
        if sender != 0 && latched & bit(line) != 0 {
            self.take_sent(line, sender);
        }
        if latched == bit(line) {
            hardware.set_near_register(slot, value);
            return true;
        }
        if latched & bit(line) != 0 {
            hardware.set_near_register(slot, value);
        }
        // More is to be done, and the mark of it may just have been taken.
        self.dirty.fetch_or(dirty | 1, SeqCst);
        false
    }

    /// Tells whether software-generated interrupt `line` waits, of this sender only (GICv2).
    #[inline(always)]
    fn is_sent_by(&self, line: u32, sender: u8) -> bool {
        self.senders
            .get(line as usize)
            .is_some_and(|senders| senders.load(SeqCst) == sender)
    }

    /// Notes that software-generated interrupt `line` of this sender waits no longer (GICv2), and its latch
    /// was cleared. The interrupt of a sender that came meanwhile keeps the latch. It is marked, because its
    /// own mark may be the one that was taken.
    #[inline(always)]
    fn take_sent(&self, line: u32, sender: u8) {
        if let Some(senders) = self.senders.get(line as usize)
            && senders.fetch_and(!sender, SeqCst) & !sender != 0
        {
            self.private.latch.fetch_or(bit(line), SeqCst);
            self.dirty.fetch_or(1, SeqCst);
        }
    }
}

impl Bank {
    /// Tells whether nothing waits for the vCPU, by the list registers and the bank. The vCPU is loaded on
    /// this pCPU and asks for nothing but an interrupt. If another pCPU has marked something, it has also
    /// kicked this pCPU for that, or is about to.
    #[inline(always)]
    pub fn is_idle<C: CpuInterface>(&self, hardware: &C) -> bool {
        self.plain_slots & PLAIN != 0 && self.used & !hardware.empty_slots() == 0
    }
}

impl Vgic<'_> {
    /// Brings the list registers of the loaded vCPU `me` up to date. If there is more to do than to look at
    /// one word, and an interrupt waits, the rest is done in a further step.
    pub fn service<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let Some(own) = self.redistributor(me) else { return };
        bank.forget();
        let dirty = own.dirty.swap(0, SeqCst);
        let mut words = dirty & ALL_WORDS;
        let plain = dirty & (RECHECK | SYNC | STRUCK) == 0;
        let is_long = !plain || words & words.wrapping_sub(1) != 0;
        let may_postpone = !core::mem::take(&mut bank.has_postponed);
        if may_postpone && is_long && hardware.is_interrupted() {
            // Another pCPU may wait for the contents of the list registers, and not for long.
            self.answer(me, bank, hardware);
            return self.postpone(me, bank, hardware, dirty);
        }
        words |= self.fold(me, bank, hardware, plain);
        if !plain || !bank.evicted.is_empty() {
            words |= self.attend(me, bank, hardware, dirty);
            if may_postpone && words != 0 && hardware.is_interrupted() {
                return self.postpone(me, bank, hardware, words);
            }
        }
        if dirty & RECHECK != 0 || bank.crowded || words != 0 && !self.fill_one(me, bank, hardware, words) {
            self.fill(me, bank, hardware, words as u32, may_postpone);
        }
        own.remember(bank);
        self.remember_shared(bank);
    }

    /// Leaves this work for a further step, before which the pCPU takes interrupts.
    #[cold]
    fn postpone<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H, dirty: u64) {
        bank.has_postponed = true;
        self.mark(me, dirty);
        hardware.look_again(me);
    }

    /// Makes `shared_slot` of the bank anew, after [`Redistributor::remember`].
    fn remember_shared(&self, bank: &mut Bank) {
        for slot in bits(bank.used & bank.from_latch & 0xF) {
            let value = bank.slot(slot);
            let line = value.line();
            if line >= PRIVATE_LINES
                && value.is_plain(line)
                && value.physical().is_none()
                && let Some(lines) = self.lines_of(0, line)
                && (lines.acknowledged.load(Relaxed) | lines.repended.load(Relaxed)) & bit(line) == 0
                && bank.plain_slots & PLAIN != 0
            {
                bank.shared_slot = slot;
            }
        }
    }

    /// Takes the short way of [`Vgic::service`] for a shared line that another vCPU has latched
    /// ([`Vgic::pulse`]) and that the guest has ended before: the list register is written once more. It is
    /// as with private lines ([`Redistributor::deliver_now`]): any other change of a held line asks for a
    /// recheck. False: nothing was done, or more is to be done and marked.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "a masked index is below the length")]
    pub fn deliver_shared<C: CpuInterface>(
        &self,
        own: &Redistributor,
        bank: &Bank,
        hardware: &mut C,
    ) -> bool {
        let slot = bank.shared_slot;
        if hardware.empty_slots().wrapping_shr(slot) & 1 == 0 {
            return false;
        }
        let value = bank.slots[(slot & 15) as usize];
        let line = value.line();
        let flag = word_flag(line);
        let word = (line / 32).wrapping_sub(1) as usize;
        let Some(lines) = self.distributor.shared.get(word) else {
            return false;
        };
        if own.dirty.compare_exchange(flag, 0, SeqCst, SeqCst).is_err() {
            return false;
        }
        // All that is marked by the flag that was taken is seen here.
        let latched = lines.latch.fetch_and(!bit(line), SeqCst);
        let high = lines.level.load(Relaxed) & !lines.edge.load(Relaxed);
        if latched & bit(line) != 0 {
            hardware.set_near_register(slot, value);
        }
        let is_all = latched == bit(line) && high == 0;
        if !is_all {
            own.dirty.fetch_or(flag, SeqCst);
        }
        is_all
    }

    /// Handles a maintenance interrupt that came while `me` was loaded.
    pub fn maintain<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let words = self.end_counted(me, bank, hardware);
        self.mark(me, words);
        self.service(me, bank, hardware);
    }

    /// Releases the slots that the guest has emptied, and returns the words to look at again. With `keep`,
    /// private lines that want nothing stay where they are, for [`Redistributor::deliver_again`].
    #[inline]
    pub(crate) fn fold<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H, keep: bool) -> u64 {
        let mut words = 0;
        let noticed = hardware.ended_slots();
        for slot in bits(bank.used & (hardware.empty_slots() | noticed)) {
            let line = bank.slot(slot).line();
            if noticed & bit(slot) != 0 {
                hardware.set_list_register(slot, ListRegister::EMPTY);
            } else if keep
                && line < PRIVATE_LINES
                && let Some(lines) = self.word(me, 0)
                && lines.wanting() & bit(line) == 0
            {
                continue;
            }
            bank.used &= !bit(slot);
            words |= self.release(me, line, hardware);
        }
        words
    }

    /// Releases a line that left its list register and is not active any more. Returns the line's word if the
    /// line wants delivery again here. If it may have been routed to another vCPU meanwhile, that vCPU is
    /// told.
    pub(crate) fn release<H: Hardware>(&self, me: usize, line: u32, hardware: &mut H) -> u64 {
        let Some(lines) = self.lines_of(me, line) else {
            return 0;
        };
        let mask = bit(line);
        clear(&lines.acknowledged, mask);
        clear(&lines.repended, mask);
        lines.held.fetch_and(!mask, SeqCst);
        if line >= PRIVATE_LINES
            && let Some(holder) = self.distributor.holder_of(line)
        {
            holder.store(NOBODY, SeqCst);
        }
        clear(&lines.clear_pending, mask);
        clear(&lines.clear_active, mask);
        self.latch_senders(me, line, lines);
        if lines.wanting() & mask == 0 {
            return 0;
        }
        if line >= PRIVATE_LINES
            && let Some(target) = self.target(line).filter(|target| *target != me)
        {
            self.notify(me, target, word_flag(line), hardware);
        }
        word_flag(line)
    }

    /// Latches the line again after its latch was cleared, if another vCPU has sent this software-generated
    /// interrupt.
    fn latch_senders(&self, me: usize, line: u32, lines: &Lines) {
        if self
            .senders(me, line)
            .is_some_and(|senders| senders.load(SeqCst) != 0)
        {
            lines.latch.fetch_or(bit(line), SeqCst);
        }
    }

    /// Takes the short way of [`Vgic::fill`] if there is one word, with one line at most that waits. The
    /// index of what waits stays empty. False: nothing was done.
    #[inline]
    fn fill_one<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H, words: u64) -> bool {
        let word = words.trailing_zeros();
        let Some(lines) = self.word(me, word).filter(|_| words.is_power_of_two()) else {
            return false;
        };
        let found = self.deliverable(me, word, lines);
        let group = if lines.group1.load(Relaxed) & found != 0 {
            2
        } else {
            1
        };
        let free = all_slots(hardware) & !bank.used;
        if bank.waiting.is_noted(3)
            || latched_again(lines) != 0
            || found != 0 && (!found.is_power_of_two() || free == 0 || self.groups() & group == 0)
        {
            return false;
        }
        if found != 0 {
            let line = word.wrapping_mul(32) | found.trailing_zeros();
            self.place(me, bank, hardware, (free.trailing_zeros(), lines, line));
        }
        bank.set_control(hardware);
        true
    }

    /// Looks at these words and moves what waits into list registers, the most urgent first.
    #[inline(never)]
    fn fill<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        words: u32,
        may_postpone: bool,
    ) {
        let (now, mut later) = first_looks(words, DIRTY_LOOKS);
        let mut again = 0;
        for word in bits(now) {
            self.look(me, bank, word);
            again |= self.word(me, word).map_or(0, latched_again);
        }
        let groups = self.groups();
        let mut looks = LOOKS;
        // Each fills a slot for good, but for those that another vCPU takes meanwhile.
        for turn in 0..2 * MAX_SLOTS {
            if (turn != 0 || may_postpone) && hardware.is_interrupted() {
                looks = 0;
            }
            let Some(candidate) = self.next_waiting(me, bank, groups, &mut looks) else {
                break;
            };
            let Some(slot) = self.make_room(me, bank, hardware, candidate.level) else {
                break;
            };
            self.place(me, bank, hardware, (slot, candidate.lines, candidate.line));
        }
        bank.crowded = bank.waiting.is_noted(groups);
        if again != 0 {
            self.repend(me, bank, hardware);
        }
        if looks == 0 && bank.crowded {
            later |= bank.waiting.first_word(groups);
        }
        if later != 0 {
            self.postpone(me, bank, hardware, later.into());
        }
        bank.set_control(hardware);
    }

    /// Finds a slot for a waiting line of this level. The first choice is a free slot. The second is the slot
    /// of the least urgent line that is loaded and not yet acknowledged, if that line is less urgent. If all
    /// are active, it is the slot of the least urgent active line.
    #[inline]
    fn make_room<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H, level: u8) -> Option<u32> {
        let all = all_slots(hardware);
        if all & !bank.used == 0 {
            self.empty_slot(me, bank, hardware, level);
        }
        let free = all & !bank.used;
        (free != 0).then(|| free.trailing_zeros())
    }

    #[cold]
    #[inline(never)]
    fn empty_slot<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H, level: u8) {
        hardware.settle();
        let words = self.fold(me, bank, hardware, false);
        self.look_at_all(me, bank, words);
        if all_slots(hardware) & !bank.used != 0 {
            return;
        }
        let mut least = None;
        for slot in bits(bank.used) {
            let now = hardware.list_register(slot);
            let urgency = now.priority() >> 3;
            if !now.is_active() && least.is_none_or(|(_, other)| other < urgency) {
                least = Some((slot, urgency));
            }
        }
        match least {
            Some((slot, urgency)) if urgency > level => {
                let words = self.take_back_slot(me, bank, hardware, slot);
                self.look_at_all(me, bank, words);
            }
            Some(_) => {}
            None => self.evict(me, bank, hardware),
        }
    }

    /// Notes anew what waits in these words, at most as many as there are slots.
    fn look_at_all(&self, me: usize, bank: &mut Bank, words: u64) {
        for word in bits(words as u32) {
            self.look(me, bank, word);
        }
    }

    /// Puts a deliverable line into a free slot: `(slot, its word, line)`. The index may be out of date for
    /// this word afterwards.
    #[inline]
    fn place<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        (slot, lines, line): (u32, &Lines, u32),
    ) {
        let word = line / 32;
        if line >= PRIVATE_LINES
            && let Some(holder) = self.distributor.holder_of(line)
            // Another vCPU can see itself as the target while the guest changes the route.
            && holder
                .compare_exchange(NOBODY, me as u8, SeqCst, SeqCst)
                .is_err_and(|other| other != me as u8)
        {
            // The vCPU that holds the line tells the vCPU that gets it next.
            self.look_besides(me, bank, word, bit(line));
            return;
        }
        let mask = bit(line);
        lines.held.fetch_or(mask, SeqCst);
        let latched = lines.latch.load(SeqCst) & mask != 0;
        if latched {
            lines.latch.fetch_and(!mask, SeqCst);
        } else if lines.high() & mask == 0 {
            // Taken by another vCPU, or withdrawn, since it was selected.
            self.release(me, line, hardware);
            self.look(me, bank, word);
            return;
        }
        let group1 = lines.group1.load(SeqCst) & mask != 0;
        let mut value = ListRegister::pending(line, lines.priority_of(line), group1);
        match lines.physical_of(line) {
            Some(physical) => value = value.linked_to(physical),
            None => value = value.with_end_notice(lines.high() & mask != 0),
        }
        if let Some((sender, more)) = self.take_sender(me, line) {
            value = value.sent_by(sender).with_end_notice(more);
            // The line is pending once more.
            self.latch_senders(me, line, lines);
        }
        bank.set_slot(slot, value);
        bank.used |= bit(slot);
        if let Some(last) = bank.private_slots.get_mut(line as usize) {
            *last = slot as u8;
        }
        if latched {
            bank.from_latch |= bit(slot);
        } else {
            bank.from_latch &= !bit(slot);
        }
        hardware.set_list_register(slot, value);
    }

    /// Handles held lines that were latched again. A line that is not yet acknowledged is the same interrupt.
    /// An active one becomes pending once more in the same list register. If it could not be delivered as it
    /// was loaded, its end is noticed instead. Linked lines stay latched: the end of a linked interrupt shows
    /// by the next physical one. So do software-generated interrupts of a GICv2: each sender's is an
    /// interrupt of its own.
    #[cold]
    #[inline(never)]
    fn repend<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let again = |word: u32| self.word(me, word).map_or(0, latched_again);
        for slot in bits(bank.used) {
            let line = bank.slot(slot).line();
            let Some(lines) = self
                .lines_of(me, line)
                .filter(|_| again(line / 32) & bit(line) != 0)
            else {
                continue;
            };
            let mut now = hardware.list_register(slot);
            if now.is_empty() {
                // Ended, or parked while another vCPU's interrupt was there.
                now = bank.slot(slot).with_pending(false);
            }
            // Not yet acknowledged and sent again by the same vCPU: it is the same interrupt.
            let same = if now.is_pending() { now.sender() } else { 0 };
            let waits = self
                .senders(me, line)
                .is_some_and(|senders| senders.fetch_and(!same, SeqCst) & !same != 0);
            if waits || now.is_active() && !self.as_loaded(me, lines, now) {
                hardware.set_list_register(slot, now.with_end_notice(true));
                continue;
            }
            lines.latch.fetch_and(!bit(line), SeqCst);
            self.latch_senders(me, line, lines);
            bank.from_latch |= bit(slot);
            if now.is_active() {
                lines.repended.fetch_or(bit(line), SeqCst);
            }
            if !now.is_pending() {
                hardware.set_list_register(slot, now.with_pending(true));
            }
        }
    }

    /// Takes everything back that is loaded and not yet acknowledged; the words concerned.
    pub(crate) fn take_back<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) -> u64 {
        let mut words = 0;
        for slot in bits(bank.used) {
            words |= self.take_back_slot(me, bank, hardware, slot);
        }
        words
    }

    /// Takes back what one slot holds. An interrupt that is active as well keeps its slot.
    pub(crate) fn take_back_slot<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        slot: u32,
    ) -> u64 {
        bank.forget();
        let line = bank.slot(slot).line();
        let now = hardware.list_register(slot);
        let Some(lines) = self.lines_of(me, line) else {
            return 0;
        };
        if now.is_pending() && (bank.from_latch & bit(slot) != 0 || now.is_active()) {
            // In this order: a request that comes in between finds the latch or is found here.
            if let Some(senders) = self.senders(me, line) {
                senders.fetch_or(now.sender(), SeqCst);
            }
            lines.latch.fetch_or(bit(line), SeqCst);
            if lines.clear_pending.load(SeqCst) & bit(line) != 0 {
                lines.latch.fetch_and(!bit(line), SeqCst);
                if !now.is_active() {
                    self.end_physical(lines, line, hardware);
                }
            }
        }
        if now.is_active() {
            lines.acknowledged.fetch_or(bit(line), SeqCst);
            clear(&lines.repended, bit(line));
            bank.from_latch &= !bit(slot);
            if now.is_pending() {
                hardware.set_list_register(slot, now.with_pending(false));
                return word_flag(line);
            }
            return 0;
        }
        if now.is_pending() || now.notices_end() {
            hardware.set_list_register(slot, ListRegister::EMPTY);
        }
        bank.used &= !bit(slot);
        self.release(me, line, hardware)
    }

    /// Frees a slot when every slot is active and something is pending: the least urgent active interrupt
    /// leaves its slot. Then the hardware counts the guest's end of it, or the end is trapped.
    fn evict<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let least = bits(bank.used).max_by_key(|slot| hardware.list_register(*slot).priority());
        let Some(slot) = least else { return };
        let line = bank.slot(slot).line();
        let Some(lines) = self.lines_of(me, line) else {
            return;
        };
        // An interrupt that is pending as well waits in the words.
        self.take_back_slot(me, bank, hardware, slot);
        let mask = bit(line);
        // `holder` stays: the active interrupt is this vCPU's until it ends.
        lines.active.fetch_or(mask, SeqCst);
        clear(&lines.acknowledged, mask);
        lines.held.fetch_and(!mask, SeqCst);
        self.latch_senders(me, line, lines);
        bank.used &= !bit(slot);
        hardware.set_list_register(slot, ListRegister::EMPTY);
        if lines.active.load(SeqCst) & mask == 0 {
            // Another vCPU has ended the line while it was held, and its request finds no slot any more.
            self.end_physical(lines, line, hardware);
            let words = self.release(me, line, hardware);
            self.mark(me, words);
        } else {
            bank.evicted.push(line);
        }
    }

    /// Tells whether something that the vCPU's masks let through waits for it. To be called on the vCPU's own
    /// pCPU, whether the vCPU is loaded or not.
    #[inline(always)]
    pub fn has_work<C: CpuInterface>(&self, me: usize, bank: &mut Bank, hardware: &C) -> bool {
        let Some(own) = self.redistributor(me) else {
            return false;
        };
        if own.is_quiet(bank, hardware) {
            return false;
        }
        // The lines of this vCPU are off until it comes: nothing else would tell it of their interrupts.
        let dirty = own.dirty.load(SeqCst);
        if dirty & STRUCK != 0 {
            return true;
        }
        self.finds_work(me, bank, hardware, own.is_present(), dirty as u32)
    }

    #[inline(never)]
    fn finds_work<C: CpuInterface>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &C,
        loaded: bool,
        dirty: u32,
    ) -> bool {
        let (control, priorities) = if loaded {
            (hardware.machine_control(), hardware.active_priorities())
        } else {
            (bank.machine_control, bank.saved_priorities())
        };
        let running = running_priority(&priorities, hardware.preemption_shift());
        let limit = u32::from((control >> 24) as u8).min(running);
        let passes = |group1: bool, priority: u8| {
            let group_on = control & if group1 { 2 } else { 1 } != 0;
            group_on && u32::from(priority) < limit
        };
        if loaded {
            let mut held = bits(bank.used & !hardware.empty_slots()).map(|slot| hardware.list_register(slot));
            if held.any(|lr| lr.is_pending() && !lr.is_active() && passes(lr.is_group1(), lr.priority())) {
                return true;
            }
        }
        // Interrupts that the guest has ended since the last look at its slots are not held any more.
        let ended = if loaded {
            bank.used & (hardware.empty_slots() | hardware.ended_slots())
        } else {
            bank.parked()
        };
        let groups = self.groups() & control as u32;
        let waits_again = |slot| {
            let line = bank.slot(slot).line();
            self.lines_of(me, line).is_some_and(|lines| {
                let group1 = lines.group1.load(SeqCst) & bit(line) != 0;
                self.deliverable_besides(me, line / 32, lines, 0) & bit(line) != 0
                    && groups & if group1 { 2 } else { 1 } != 0
                    && passes(group1, lines.priority_of(line))
            })
        };
        bits(ended).any(waits_again) || self.waits(me, bank, groups, limit, dirty)
    }

    /// Tells whether something waits in these groups that is more urgent than the priority `limit`. Says so
    /// as well if more words are dirty than can be looked at in one step: the vCPU looks for itself then.
    fn waits(&self, me: usize, bank: &mut Bank, groups: u32, limit: u32, dirty: u32) -> bool {
        let (now, later) = first_looks(dirty, WAIT_LOOKS);
        if later != 0 {
            return true;
        }
        self.look_at_all(me, bank, u64::from(now));
        let mut looks = LOOKS;
        match self.next_waiting(me, bank, groups, &mut looks) {
            Some(candidate) => u32::from(candidate.level) << 3 < limit,
            None => looks == 0 && bank.waiting.is_noted(groups),
        }
    }
}

/// Returns the slots of this hardware.
fn all_slots<H: Hardware>(hardware: &H) -> u32 {
    u32::MAX.wrapping_shr(32u32.wrapping_sub(hardware.slots().clamp(1, MAX_SLOTS as u32)))
}

/// Lines of a word that are held and were latched again, but for linked ones.
fn latched_again(lines: &Lines) -> u32 {
    lines.latch.load(SeqCst) & lines.held.load(SeqCst) & !lines.linked.load(SeqCst)
}

/// Priority of the most urgent active interrupt by the active-priorities registers, 0x100 if none.
fn running_priority(priorities: &[[u32; 4]; 2], shift: u32) -> u32 {
    let mut level = 0u32;
    let [group0, group1] = priorities;
    for (a, b) in group0.iter().zip(group1) {
        let active = a | b;
        if active != 0 {
            return level.wrapping_add(active.trailing_zeros()).wrapping_shl(shift);
        }
        level = level.wrapping_add(32);
    }
    0x100
}
