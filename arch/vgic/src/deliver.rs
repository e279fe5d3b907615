// SPDX-License-Identifier: Apache-2.0
//! Between words and list registers: what the pCPU of a loaded vCPU does before it enters the guest.
//!
//! [`Vgic::service`] has three steps. *Fold*: slots the guest has emptied are released. *Recheck* (only if
//! asked for): requests of others are carried out, and what is no longer deliverable as it was loaded goes
//! back into the words. *Fill*: what dirty words have to deliver goes into free slots, most urgent first.
//!
//! Level-triggered virtual lines are resampled when the guest ends them: as long as the input is high,
//! their list register asks for a maintenance interrupt at its end, which marks nothing dirty itself but
//! makes the fold find the released line still wanting. Whoever sees the input low clears the
//! request, so that the usual interrupt (input low before its end) has no extra exit.

use crate::lines::{Lines, clear};
use crate::state::{ALL_WORDS, NOBODY, PLAIN, RECHECK, STRUCK, SYNC, word_flag};
use crate::{
    Bank, Control, CpuInterface, Hardware, ListRegister, MAX_SLOTS, PRIVATE_LINES, Redistributor, Vgic, bit,
    bits,
};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Something deliverable.
#[derive(Clone, Copy, Default)]
struct Candidate {
    line: u32,
    priority: u8,
}

/// The most urgent candidates found so far, most urgent first; equal priorities by line number.
struct Selection {
    best: [Candidate; MAX_SLOTS],
    count: usize,
    room: usize,
    overflow: bool,
}

impl Selection {
    const fn new(room: usize) -> Self {
        Self {
            best: [Candidate { line: 0, priority: 0 }; MAX_SLOTS],
            count: 0,
            room,
            overflow: false,
        }
    }

    /// Inserts, lines arriving in ascending order, and forgets the least urgent if there is no room.
    fn offer(&mut self, new: Candidate) {
        let mut carried = new;
        for place in self.best.iter_mut().take(self.count) {
            if carried.priority < place.priority {
                core::mem::swap(place, &mut carried);
            }
        }
        match self.best.get_mut(self.count) {
            Some(place) if self.count < self.room => {
                *place = carried;
                self.count = self.count.saturating_add(1);
            }
            _ => self.overflow = true,
        }
    }
}

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

    /// The slot of private line `line`, and what was written there, if both can be used once more: the guest has ended
    /// that interrupt, nothing else waits for the slot, and the line is in no other state.
    ///
    /// Nothing about the line can have changed since it was loaded: a change of a held line asks for a recheck, and
    /// until the recheck is done `dirty` says so. `acknowledged` and `repended` are written on this pCPU only.
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "masked indices are below the lengths")]
    fn reusable<C: CpuInterface>(&self, bank: &Bank, hardware: &C, line: u32) -> Option<(u32, ListRegister)> {
        if bank.plain_lines & bit(line) == 0 {
            return None;
        }
        let slot = u32::from(bank.private_slots[(line & 31) as usize]);
        (hardware.empty_slots().wrapping_shr(slot) & 1 != 0).then(|| (slot, bank.slots[(slot & 15) as usize]))
    }

    /// The short cut of [`Redistributor::raise`] and [`Vgic::service`] for what comes again and again: a private line
    /// (timer, SGI) of this vCPU, loaded on this pCPU, becomes pending, nothing else is to be done, and its list
    /// register is still where it was. It is written once more. False: nothing was done.
    ///
    /// No read-modify-write of a shared word is needed. If another pCPU changes something after the look at `dirty`, it
    /// kicks this one, which then takes back what was loaded here; a latch set meanwhile is found
    /// then, too. So it is as if the change came after the delivery.
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

    /// The same for a software-generated interrupt of a GICv2 that this vCPU, of which `sender` is the bit, sends to itself. That of
    /// another sender is another interrupt.
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

    /// The short cut of [`Vgic::has_work`]: the vCPU is loaded, nothing is marked, nothing waits for a slot, and the
    /// guest has ended whatever was in one.
    #[inline(always)]
    pub fn is_quiet<C: CpuInterface>(&self, bank: &Bank, hardware: &C) -> bool {
        self.is_present()
            && !self.is_dirty()
            && bank.plain_slots & PLAIN != 0
            && bank.used & !hardware.empty_slots() == 0
    }

    /// The short cut of [`Vgic::service`] for a private line that somebody else has latched.
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

    /// Whether software-generated interrupt `line` waits, of this sender only (GICv2).
    #[inline(always)]
    fn is_sent_by(&self, line: u32, sender: u8) -> bool {
        self.senders
            .get(line as usize)
            .is_some_and(|senders| senders.load(SeqCst) == sender)
    }

    /// Software-generated interrupt `line` of this sender waits no longer (GICv2), and its latch was cleared. That of a sender who came
    /// meanwhile keeps the latch, and is marked: its own mark may be the one that was taken.
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
    /// Whether what the list registers and the bank say is that nothing waits for the vCPU, which is loaded on this pCPU and asks
    /// for nothing but an interrupt. What another pCPU has marked it has also kicked this one for, or is about to.
    #[inline(always)]
    pub fn is_idle<C: CpuInterface>(&self, hardware: &C) -> bool {
        self.plain_slots & PLAIN != 0 && self.used & !hardware.empty_slots() == 0
    }
}

impl Vgic<'_> {
    /// Brings the list registers of the loaded vCPU `me` up to date.
    pub fn service<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let Some(own) = self.redistributor(me) else { return };
        bank.forget();
        let dirty = own.dirty.swap(0, SeqCst);
        let mut words = (dirty & ALL_WORDS) | bank.leftover;
        let plain = dirty & (RECHECK | SYNC | STRUCK) == 0;
        words |= self.fold(me, bank, hardware, plain);
        if !plain || !bank.evicted.is_empty() {
            words |= self.attend(me, bank, hardware, dirty);
        }
        if words != 0 {
            self.fill(me, bank, hardware, words);
        }
        own.remember(bank);
    }

    /// A maintenance interrupt came while `me` was loaded.
    pub fn maintain<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let words = self.end_counted(me, bank, hardware);
        self.mark(me, words);
        self.service(me, bank, hardware);
    }

    /// Releases the slots the guest has emptied; the words to look at again. With `keep`, private lines that want
    /// nothing stay where they are, for [`Redistributor::deliver_again`].
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

    /// The line left its list register, not active any more. Its word, if it wants delivery again here; another
    /// vCPU, to which it may have been routed meanwhile, is told.
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

    /// After the latch was cleared: a software-generated interrupt that another vCPU has sent keeps it.
    fn latch_senders(&self, me: usize, line: u32, lines: &Lines) {
        if self
            .senders(me, line)
            .is_some_and(|senders| senders.load(SeqCst) != 0)
        {
            lines.latch.fetch_or(bit(line), SeqCst);
        }
    }

    /// Candidates of one word: wanting, enabled, not active, not held, and this vCPU's.
    #[inline]
    pub(crate) fn deliverable(&self, me: usize, word: u32, lines: &Lines) -> u32 {
        self.deliverable_besides(me, word, lines, lines.held.load(SeqCst))
    }

    /// The same if these lines of the word are held.
    fn deliverable_besides(&self, me: usize, word: u32, lines: &Lines, held: u32) -> u32 {
        let control = self.distributor.control.load(SeqCst);
        let group1 = lines.group1.load(SeqCst);
        let groups = if control & 2 != 0 { group1 } else { 0 } | if control & 1 != 0 { !group1 } else { 0 };
        let found =
            lines.wanting() & lines.enabled.load(SeqCst) & !lines.active.load(SeqCst) & !held & groups;
        if word == 0 || found == 0 {
            return found;
        }
        let base = word.wrapping_mul(32);
        bits(found)
            .filter(|n| self.target(base | n) == Some(me))
            .fold(0, |mask, n| mask | bit(n))
    }

    /// Moves what `words` have to deliver into list registers. The usual case: everything fits, so its order does
    /// not matter, the hardware sorts.
    #[inline]
    fn fill<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H, words: u64) {
        let slots = hardware.slots().clamp(1, MAX_SLOTS as u32);
        let all = u32::MAX.wrapping_shr(32u32.wrapping_sub(slots));
        bank.leftover = 0;
        let mut again = 0;
        let mut again_words = 0;
        for word in bits(words as u32) {
            let Some(lines) = self.word(me, word) else {
                continue;
            };
            again |= lines.latch.load(SeqCst) & lines.held.load(SeqCst) & !lines.linked.load(SeqCst);
            for n in bits(self.deliverable(me, word, lines)) {
                let mut free = all & !bank.used;
                if free == 0 {
                    again_words |= self.fold(me, bank, hardware, false);
                    free = all & !bank.used;
                }
                if free == 0 {
                    return self.choose(me, bank, hardware, words | again_words);
                }
                let line = word.wrapping_mul(32) | n;
                self.place(me, bank, hardware, (free.trailing_zeros(), lines, line));
            }
        }
        bank.leftover |= again_words;
        if again != 0 {
            self.repend(me, bank, hardware);
        }
        bank.set_control(hardware);
    }

    /// The same if there is more to deliver than list registers: the most urgent get one.
    #[cold]
    #[inline(never)]
    fn choose<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H, words: u64) {
        let slots = hardware.slots().clamp(1, MAX_SLOTS as u32);
        let all = u32::MAX.wrapping_shr(32u32.wrapping_sub(slots));
        // What is loaded but not yet acknowledged competes again.
        let words = words | self.take_back(me, bank, hardware);
        if all & !bank.used == 0 {
            self.evict(me, bank, hardware);
        }
        let selection = self.select(me, words, (all & !bank.used).count_ones() as usize);
        bank.leftover = 0;
        let mut free = bits(all & !bank.used);
        for candidate in selection.best.iter().take(selection.count) {
            let (Some(slot), Some(lines)) = (free.next(), self.lines_of(me, candidate.line)) else {
                break;
            };
            self.place(me, bank, hardware, (slot, lines, candidate.line));
        }
        self.repend(me, bank, hardware);
        if selection.overflow {
            bank.leftover = words;
        }
        bank.set_control(hardware);
    }

    fn select(&self, me: usize, words: u64, room: usize) -> Selection {
        let mut selection = Selection::new(room);
        for word in bits(words as u32) {
            let Some(lines) = self.word(me, word) else {
                continue;
            };
            for n in bits(self.deliverable(me, word, lines)) {
                let line = word.wrapping_mul(32) | n;
                selection.offer(Candidate {
                    line,
                    priority: lines.priority_of(line),
                });
            }
        }
        selection
    }

    /// Puts a deliverable line into a free slot: `(slot, its word, line)`.
    #[inline]
    fn place<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        (slot, lines, line): (u32, &Lines, u32),
    ) {
        if line >= PRIVATE_LINES
            && let Some(holder) = self.distributor.holder_of(line)
            // Another vCPU can see itself as the target while the guest changes the route.
            && holder.compare_exchange(NOBODY, me as u8, SeqCst, SeqCst).is_err()
        {
            return;
        }
        let mask = bit(line);
        lines.held.fetch_or(mask, SeqCst);
        let latched = lines.latch.load(SeqCst) & mask != 0;
        if latched {
            lines.latch.fetch_and(!mask, SeqCst);
        } else if lines.high() & mask == 0 {
            // Taken by another vCPU, or withdrawn, since it was selected.
            bank.leftover |= self.release(me, line, hardware);
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
            // It is pending once more.
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

    /// Held lines that were latched again. Not yet acknowledged: it is the same interrupt. Active: pending once more
    /// in the same list register, or, if it could not be delivered as it was loaded, noticed at its end. Linked
    /// lines stay latched: the end of a linked interrupt shows by the next physical one. So do software-generated
    /// ones of a GICv2: each sender's is an interrupt of its own.
    #[cold]
    #[inline(never)]
    fn repend<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let again = |word: u32| {
            self.word(me, word).map_or(0, |lines| {
                lines.latch.load(SeqCst) & lines.held.load(SeqCst) & !lines.linked.load(SeqCst)
            })
        };
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

    /// The same for one slot. An interrupt that is active as well keeps its slot.
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

    /// Every slot is active and something is pending: the least urgent active interrupt leaves its slot.
    /// The guest's end of it is then counted by the hardware, or trapped.
    fn evict<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let least = bits(bank.used).max_by_key(|slot| hardware.list_register(*slot).priority());
        let Some(slot) = least else { return };
        let line = bank.slot(slot).line();
        let Some(lines) = self.lines_of(me, line) else {
            return;
        };
        let mask = bit(line);
        // `holder` stays: the active interrupt is this vCPU's until it ends.
        lines.active.fetch_or(mask, SeqCst);
        clear(&lines.acknowledged, mask);
        lines.held.fetch_and(!mask, SeqCst);
        self.latch_senders(me, line, lines);
        bank.used &= !bit(slot);
        bank.evicted.push(line);
        hardware.set_list_register(slot, ListRegister::EMPTY);
    }

    /// Whether something that the vCPU's masks let through waits for it.
    /// For its own pCPU, whether the vCPU is loaded or not.
    #[inline(always)]
    pub fn has_work<C: CpuInterface>(&self, me: usize, bank: &Bank, hardware: &C) -> bool {
        let Some(own) = self.redistributor(me) else {
            return false;
        };
        if own.is_quiet(bank, hardware) {
            return false;
        }
        // Its lines are off until it comes: nothing else would tell it of what they have.
        if own.dirty.load(SeqCst) & STRUCK != 0 {
            return true;
        }
        self.finds_work(me, bank, hardware, own.is_present())
    }

    #[inline(never)]
    fn finds_work<C: CpuInterface>(&self, me: usize, bank: &Bank, hardware: &C, loaded: bool) -> bool {
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
        // What the guest has ended since its slots were looked at last is not held any more.
        let ended = if loaded {
            bank.used & (hardware.empty_slots() | hardware.ended_slots())
        } else {
            bank.parked()
        };
        if loaded {
            let mut held = bits(bank.used & !hardware.empty_slots()).map(|slot| hardware.list_register(slot));
            if held.any(|lr| lr.is_pending() && !lr.is_active() && passes(lr.is_group1(), lr.priority())) {
                return true;
            }
        }
        let words = self.distributor.lines.load(SeqCst) / 32;
        (0..words).any(|word| {
            let Some(lines) = self.word(me, word) else {
                return false;
            };
            let group1 = lines.group1.load(SeqCst);
            let gone = bits(ended).map(|slot| bank.slot(slot).line());
            let gone = gone
                .filter(|line| line / 32 == word)
                .fold(0, |mask, line| mask | bit(line));
            let held = lines.held.load(SeqCst) & !gone;
            bits(self.deliverable_besides(me, word, lines, held))
                .any(|n| passes(group1 & bit(n) != 0, lines.priority_of(n)))
        })
    }
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
