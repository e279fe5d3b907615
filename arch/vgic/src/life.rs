// SPDX-License-Identifier: Apache-2.0
//! A vCPU comes to its pCPU, leaves it, starts anew.
//!
//! A vCPU that leaves takes only active interrupts along in its saved list registers. Pending interrupts go
//! back into the words, where every other vCPU sees them as they are.
//!
//! Linked private lines (the timers) are one physical line for all vCPUs of a pCPU. Their active state is put
//! into the physical GIC for the vCPU that is loaded, whether a list register holds it or not. A pending one
//! is left to the physical line, which is still high. So a pending state that the guest gave a timer's line
//! by software does not survive the vCPU's leaving, and the guest's changes of the physical line are undone.
//!
//! A vCPU that has ended all its interrupts leaves without touching the words of its lines (`park`).

use crate::lines::{Lines, clear};
use crate::state::{ALL_WORDS, NO_SLOT, NOBODY, NOWHERE, PLAIN, STRUCK, word_flag};
use crate::{
    Bank, CpuInterface, Hardware, ListRegister, PRIVATE_LINES, PhysicalLines, Redistributor, Vgic, bit, bits,
};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU32, fence};

/// The words of shared lines that [`Vgic::reset_shared`] resets at a time. The pCPU takes no interrupt
/// meanwhile.
const RESET_WORDS: usize = 2;
/// The software-generated interrupts.
const SGIS: u32 = 0xFFFF;
/// SGIs are edge-triggered for good; everything else starts level-triggered.
const PRIVATE_EDGE: u32 = SGIS;

impl Redistributor {
    /// Tells whether [`Redistributor::leave`] has a short way: the guest has ended all its interrupts, and
    /// all held ones are plain.
    #[inline(always)]
    fn may_leave<C: CpuInterface>(&self, bank: &Bank, hardware: &C) -> bool {
        self.has_ended_all(bank, hardware) && !hardware.has_active_priorities()
    }

    /// Tells whether the guest has ended all its interrupts and all held ones are plain. Active priorities
    /// that no list register has any more do not count.
    #[inline(always)]
    pub fn has_ended_all<C: CpuInterface>(&self, bank: &Bank, hardware: &C) -> bool {
        let busy = bank.used & !hardware.empty_slots();
        let strange = (bank.used | PLAIN) & !bank.plain_slots;
        if self.is_dirty() || (busy | strange | self.altered.load(Relaxed)) != 0 {
            return false;
        }
        // Private lines have no level of their own. Another pCPU also marks all that it latches from now on.
        let kept = bank.plain_lines | self.private.linked.load(Relaxed);
        self.private.latch.load(Relaxed) & kept == 0
    }

    /// Does the work of [`Redistributor::leave`]. Requires: the guest has ended all its interrupts, and no
    /// priority is active.
    #[inline(always)]
    pub fn leave_now<C: CpuInterface>(&self, bank: &mut Bank, hardware: &C) {
        bank.left_otherwise = false;
        bank.machine_control = hardware.machine_control();
        self.parked.store(bank.plain_lines, Relaxed);
        self.present.store(false, SeqCst);
    }

    /// Takes the short way of [`Vgic::unload`], which is the usual one. Held lines stay held and keep their
    /// slots, so that the next interrupts have a short way ([`Redistributor::deliver_now`]). `parked` tells
    /// the others what that means. False: nothing was done.
    #[inline(always)]
    pub fn leave<C: CpuInterface>(&self, bank: &mut Bank, hardware: &C) -> bool {
        let may = self.may_leave(bank, hardware);
        if may {
            self.leave_now(bank, hardware);
        }
        may
    }

    /// Tells whether [`Redistributor::enter`] has a short way.
    #[inline(always)]
    pub fn may_enter(&self, bank: &Bank) -> bool {
        u32::from(bank.left_otherwise) | self.private.active.load(Relaxed) == 0
    }

    /// Makes private lines as after a cold reset, so that a start finds them so. A GIC-400 has its
    /// software-generated interrupts enabled for good. Requires: the vCPU is off line, or about to be.
    pub fn make_blank(&self, is_version2: bool) {
        self.touched.store(false, SeqCst);
        self.private
            .reset(PRIVATE_EDGE, if is_version2 { SGIS } else { 0 });
        for senders in &self.senders {
            senders.store(0, Relaxed);
        }
    }

    /// Does the work of [`Redistributor::enter`]. Requires: `may_enter` is true.
    #[inline(always)]
    pub fn enter_now<C: CpuInterface>(&self, bank: &mut Bank, hardware: &mut C) {
        self.present.store(true, SeqCst);
        hardware.set_machine_control(bank.machine_control);
        hardware.open();
    }

    /// Takes the short way of [`Vgic::load`] after [`Redistributor::leave`]. The caller still has to take
    /// care of [`Bank::mirrored`]. False: nothing was done.
    #[inline(always)]
    pub fn enter<C: CpuInterface>(&self, bank: &mut Bank, hardware: &mut C) -> bool {
        let may = self.may_enter(bank);
        if may {
            self.enter_now(bank, hardware);
        }
        may
    }
}

impl Vgic<'_> {
    /// Puts the state of vCPU `me` onto this pCPU.
    pub fn load<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let Some(own) = self.redistributor(me) else { return };
        if own.enter(bank, hardware) {
            hardware.enable_private(bank.mirrored);
            return;
        }
        own.present.store(true, SeqCst);
        hardware.set_machine_control(bank.machine_control);
        hardware.set_active_priorities(&bank.saved_priorities());
        let parked = bank.parked();
        bank.left_otherwise = true;
        for slot in bits(bank.used & !parked) {
            let value = bank.slot(slot);
            hardware.set_list_register(slot, value);
            if let Some(physical) = private_link(value) {
                hardware.set_active(physical, true);
            }
        }
        let active = own.private.active.load(Relaxed);
        if active != 0 {
            self.activate(own, active, hardware);
        }
        hardware.set_control(bank.control);
        // Lines that were changed meanwhile are marked for a recheck.
        hardware.enable_private(bank.mirrored);
    }

    /// Active private lines that no list register holds: the linked ones are active physically, too.
    #[cold]
    fn activate<H: Hardware>(&self, own: &Redistributor, active: u32, hardware: &mut H) {
        let linked = active & own.private.linked.load(SeqCst);
        own.altered.fetch_or(linked, SeqCst);
        for physical in bits(linked).filter_map(|line| own.private.physical_of(line)) {
            hardware.set_active(physical, true);
        }
    }

    /// Takes the state of vCPU `me` off this pCPU, whose active-priorities registers are 0 afterwards.
    pub fn unload<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let Some(own) = self.redistributor(me) else { return };
        if own.leave(bank, hardware) || self.let_go(me, bank, hardware) && own.leave(bank, hardware) {
            return;
        }
        bank.left_otherwise = true;
        if !self.park(own, bank, hardware) {
            self.empty(me, own, bank, hardware);
        }
        bank.machine_control = hardware.machine_control();
        bank.active_priorities = hardware.active_priorities();
        hardware.set_active_priorities(&[[0; 4]; 2]);
        own.present.store(false, SeqCst);
    }

    /// Releases the shared line that was kept for [`Vgic::deliver_shared`], if the guest has ended it.
    /// Returns whether a line was released.
    fn let_go<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) -> bool {
        let slot = bank.shared_slot;
        let is_ended = hardware.empty_slots().wrapping_shr(slot) & 1 != 0;
        if is_ended {
            bank.shared_slot = NO_SLOT;
            bank.used &= !bit(slot);
            let words = self.release(me, bank.slot(slot).line(), hardware);
            self.mark(me, words);
        }
        is_ended
    }

    /// Does the work of [`Redistributor::leave`], if all held lines are at least private. False: nothing was
    /// done.
    fn park<H: Hardware>(&self, own: &Redistributor, bank: &mut Bank, hardware: &mut H) -> bool {
        if own.is_dirty()
            || bank.is_crowded()
            || bank.used & !hardware.empty_slots() != 0
            || own.altered.load(Relaxed) != 0
        {
            return false;
        }
        let mut lines = 0;
        for slot in bits(bank.used) {
            let line = bank.slot(slot).line();
            if line >= PRIVATE_LINES {
                return false;
            }
            lines |= bit(line);
        }
        // Private lines have no level of their own. Another pCPU also marks all that it latches from now on.
        if own.private.latch.load(Relaxed) & (lines | own.private.linked.load(Relaxed)) != 0 {
            return false;
        }
        own.remember(bank);
        bank.parked = bank.used;
        own.parked.store(lines, SeqCst);
        true
    }

    /// Leaves in any other way: ended and merely pending interrupts leave their list registers.
    #[inline(never)]
    fn empty<H: Hardware>(&self, me: usize, own: &Redistributor, bank: &mut Bank, hardware: &mut H) {
        bank.forget();
        bank.parked = 0;
        own.parked.store(0, SeqCst);
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
        let active = own.private.active.load(SeqCst) & own.private.linked.load(SeqCst);
        let altered = active | own.altered.swap(0, SeqCst);
        for physical in bits(altered).filter_map(|line| own.private.physical_of(line)) {
            hardware.set_pending(physical, false);
            hardware.set_active(physical, false);
        }
        for line in bits(own.private.linked.load(SeqCst) & own.private.latch.load(SeqCst)) {
            self.give_back(&own.private, line, hardware);
        }
        self.mark(me, words);
        bank.control = bank.wanted_control();
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
        own.parked.store(0, SeqCst);
        self.drop_active(me, bank, hardware);
        bank.clear();
        own.make_blank(hardware.names_senders());
        own.online.store(false, SeqCst);
        fence(SeqCst);
        // This vCPU will not be told again of lines that want delivery now. If such a line is for others, the
        // next look finds that.
        let words = self.wanting_words(false);
        if words != 0 {
            own.dirty.fetch_or(words, SeqCst);
        }
        // Lines that anybody may take were marked for this vCPU alone, if it was the first one online.
        if self.has_open_routes() {
            let first = self.redistributors.iter().position(|r| r.online.load(SeqCst));
            self.pass_on(me, first, hardware);
            let words = self.wanting_words(true);
            if let (Some(first), true) = (first, words != 0) {
                self.notify(me, first, words, hardware);
            }
        }
    }

    /// Does a cold reset of vCPU `me`, which is then online and not loaded. If the vCPU was detached before,
    /// its bank and its private lines are as they were made. Then only the changes of others since that time
    /// have to be undone. The vCPU comes like one that has left by the short way: it holds nothing.
    pub fn reset<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        let Some(own) = self.redistributor(me) else { return };
        if own.online.load(SeqCst) || own.is_present() {
            self.detach(me, bank, hardware);
        }
        // The marks come first: a change of others from here on marks itself, and that mark stays. A line
        // that became pending since the vCPU was detached is marked for the vCPU that it is routed to,
        // whether that one is online or not.
        own.dirty.fetch_and((ALL_WORDS & !1) | STRUCK, SeqCst);
        if own.touched.load(SeqCst) {
            own.make_blank(hardware.names_senders());
        }
        self.go_online(me, own, bank);
    }

    /// Resets like [`Vgic::reset`] a vCPU that was detached before and whose state has not changed since
    /// then. `own` is its redistributor. False: nothing was done.
    #[inline(always)]
    pub fn reset_quietly(&self, me: usize, own: &Redistributor, bank: &mut Bank) -> bool {
        // Changes that another pCPU made before the start was wanted are seen here: the wish came
        // through a lock.
        let is_up = own.online.load(Relaxed) | own.present.load(Relaxed);
        if is_up | own.touched.load(Relaxed) || own.dirty.load(Relaxed) != 0 {
            return false;
        }
        self.go_online(me, own, bank);
        true
    }

    #[inline(always)]
    fn go_online(&self, me: usize, own: &Redistributor, bank: &mut Bank) {
        // Software-generated interrupts leave no other trace.
        own.private.latch.store(0, Relaxed);
        own.sleeping.store(true, Relaxed);
        own.online.store(true, SeqCst);
        bank.start();
        fence(SeqCst);
        // A line that became pending while no vCPU was online has marked none. One that becomes pending
        // after this look finds this vCPU online.
        let is_alone = !self.has_another_online(me);
        if is_alone || self.has_open_routes() {
            self.look_around(own, is_alone);
        }
    }

    /// Marks what is pending and may be a vCPU's that has come on line.
    #[inline(never)]
    fn look_around(&self, own: &Redistributor, is_alone: bool) {
        // Lines that anybody may take are marked for another vCPU, and may be this vCPU's from now on.
        own.dirty.fetch_or(self.wanting_words(!is_alone), SeqCst);
    }

    /// Tells whether another vCPU than `me` is on line. Mostly the first one is.
    #[inline(always)]
    fn has_another_online(&self, me: usize) -> bool {
        match self.redistributors {
            [first, ..] if me != 0 && first.online.load(Relaxed) => true,
            _ => self.finds_another_online(me),
        }
    }

    #[inline(never)]
    fn finds_another_online(&self, me: usize) -> bool {
        let is_online = |(index, other): (usize, &Redistributor)| index != me && other.online.load(Relaxed);
        self.redistributors.iter().enumerate().any(is_online)
    }

    /// Tells whether there may be lines that any vCPU takes.
    fn has_open_routes(&self) -> bool {
        self.distributor.has_open_routes.load(SeqCst)
    }

    /// Words of shared lines in which something wants delivery, to whomever; or, if `open`, to any vCPU.
    fn wanting_words(&self, open: bool) -> u64 {
        let used = (self.distributor.lines.load(Relaxed) / 32).saturating_sub(1) as usize;
        let words = self.distributor.shared.iter().zip(&self.distributor.any);
        let of_interest = |lines: &Lines, any: &AtomicU32| {
            crate::step();
            if open {
                lines.wanting() & any.load(SeqCst) != 0
            } else {
                lines.wants_anything()
            }
        };
        (1u32..)
            .zip(words.take(used))
            .filter(|(_, (lines, any))| of_interest(lines, any))
            .fold(0, |mask, (word, _)| mask | word_flag(word.wrapping_mul(32)))
    }

    /// Does a part of the cold reset of the vCPUs' shared state, from the word `first` of shared lines on.
    /// Returns where to go on, `None` at the end. Requires: all vCPUs detached. Words in which the guest has
    /// no lines are as they were made. A line has no target then if there is a choice (`is_version2`;
    /// DDI 0471, chapter 3), else it goes to the first vCPU.
    pub fn reset_shared<P: PhysicalLines>(
        &self,
        first: usize,
        is_version2: bool,
        hardware: &mut P,
    ) -> Option<usize> {
        self.distributor.control.store(0, SeqCst);
        self.distributor.has_open_routes.store(false, SeqCst);
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
            lines.reset(0, 0);
            if let Some(any) = self.distributor.any.get(index) {
                any.store(0, SeqCst);
            }
            self.reset_routes(index, is_version2 && self.redistributors.len() > 1);
        }
        (next < used).then_some(next)
    }

    /// Resets where the lines of a shared word go, to no vCPU or to the first one, and who has them: no vCPU.
    /// Published when a vCPU goes online.
    fn reset_routes(&self, index: usize, to_nobody: bool) {
        let distributor = self.distributor;
        if let Some(routed) = distributor.routed.get(index) {
            routed.reset(to_nobody);
        }
        if let Some(routes) = distributor.route.get(index) {
            let target = if to_nobody { NOWHERE } else { 0 };
            store_all(routes, |route| route.store(target, Relaxed));
        }
        if let Some(targets) = distributor.targets.get(index) {
            store_all(targets, |targets| targets.store(0, Relaxed));
        }
        if let Some(holders) = distributor.holder.get(index) {
            store_all(holders, |holder| holder.store(NOBODY, Relaxed));
        }
    }

    /// Active interrupts of `me` that had to leave their list register end, and all private ones. A shared
    /// line that the guest made active stays active until the guest ends it or the VM starts anew, as on a
    /// GIC whose CPU goes off.
    fn drop_active<H: Hardware>(&self, me: usize, bank: &mut Bank, hardware: &mut H) {
        while let Some(line) = bank.evicted.pop() {
            self.end_outside(me, line, hardware);
        }
        if let Some(own) = self.redistributor(me) {
            clear(&own.private.active, u32::MAX);
            clear(&own.private.latch, u32::MAX);
            clear(&own.private.held, u32::MAX);
        }
    }
}

/// Stores to each entry of a table, eight a turn, because each start of a partition waits for that.
#[inline(always)]
fn store_all<T>(entries: &[T], store: impl Fn(&T)) {
    let (groups, rest) = entries.as_chunks();
    for [a, b, c, d, e, f, g, h] in groups {
        store(a);
        store(b);
        store(c);
        store(d);
        store(e);
        store(f);
        store(g);
        store(h);
    }
    rest.iter().for_each(store);
}

/// Returns the physical line of an active private one.
fn private_link(value: ListRegister) -> Option<u32> {
    value
        .physical()
        .filter(|_| value.line() < PRIVATE_LINES && value.is_active())
}
