// SPDX-License-Identifier: Apache-2.0
//! Registers with one bit a line: group, enabled, pending, active.
//!
//! A change that concerns a held line reaches its list register in one way only: words and request bits are
//! changed, and the holder is told to recheck. The way is the same whether the holder makes the change itself
//! or another vCPU does. The order within a change matters. A request is posted first and the holder is
//! looked at second, so that either the holder finds the request before it releases the line, or the line is
//! seen released here.

use crate::lines::{Lines, clear};
use crate::state::{NOBODY, RECHECK, word_flag};
use crate::{Bank, FIRST_SPECIAL, Hardware, Vgic, bit, bits};
use core::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};

/// Registers with one bit a line, by bits 9:7 of the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Group,
    SetEnable,
    ClearEnable,
    SetPending,
    ClearPending,
    SetActive,
    ClearActive,
}

/// One word of lines, the vCPU that accesses it, and the vCPU that owns it if the lines are private.
#[derive(Clone, Copy)]
struct FieldOwner<'a> {
    me: usize,
    index: usize,
    word: u32,
    lines: &'a Lines,
}

impl FieldOwner<'_> {
    fn who(&self) -> (usize, usize) {
        (self.me, self.index)
    }

    /// Linked lines whose physical side this pCPU can see and change: not the private ones of another.
    fn reachable(&self) -> u32 {
        if self.word == 0 && self.index != self.me {
            0
        } else {
            self.lines.linked.load(SeqCst)
        }
    }
}

/// Enables or disables lines; those for which that is new.
#[inline(always)]
fn set_enable(lines: &Lines, value: u32, on: bool) -> u32 {
    if on {
        value & !lines.enabled.fetch_or(value, SeqCst)
    } else {
        value & lines.enabled.fetch_and(!value, SeqCst)
    }
}

/// Enables or disables lines and returns only those that concern another vCPU: they have a physical line, or
/// they want delivery or have it.
#[inline(always)]
pub(crate) fn set_enable_quietly(lines: &Lines, value: u32, on: bool) -> u32 {
    let changed = set_enable(lines, value, on);
    changed & (lines.linked.load(Relaxed) | lines.held.load(SeqCst) | lines.wanting())
}

impl Vgic<'_> {
    /// `(vCPU whose private lines, word, field)`.
    pub(crate) fn read_bits<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        (index, word, field): (usize, u32, Field),
    ) -> u64 {
        let Some(lines) = self.word(index, word) else {
            return 0;
        };
        let place = FieldOwner {
            me,
            index,
            word,
            lines,
        };
        let value = match field {
            Field::Group => lines.group1.load(SeqCst),
            Field::SetEnable | Field::ClearEnable => lines.enabled.load(SeqCst),
            Field::SetPending | Field::ClearPending => {
                let parked = self.bring_up_to_date(me, bank, hardware, index, word);
                let seen = lines.acknowledged.load(SeqCst) & !lines.repended.load(SeqCst);
                let held = lines.held.load(SeqCst) & !seen & !parked;
                lines.wanting() | held | self.physical_pending(place, hardware)
            }
            Field::SetActive | Field::ClearActive => {
                self.bring_up_to_date(me, bank, hardware, index, word);
                lines.active.load(SeqCst) | lines.held.load(SeqCst) & lines.acknowledged.load(SeqCst)
            }
        };
        u64::from(value)
    }

    pub(crate) fn write_bits<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        (index, word, field): (usize, u32, Field),
        value: u32,
    ) {
        let Some(lines) = self.word(index, word) else {
            return;
        };
        let place = FieldOwner {
            me,
            index,
            word,
            lines,
        };
        // The last word ends with numbers that are no lines.
        let value = if word == FIRST_SPECIAL / 32 {
            value & !(u32::MAX << (FIRST_SPECIAL % 32))
        } else {
            value
        };
        match field {
            Field::Group => {
                let changed = lines.group1.swap(value, SeqCst) ^ value;
                self.touched(place.who(), word, changed, hardware);
            }
            Field::SetEnable | Field::ClearEnable => {
                let on = field == Field::SetEnable;
                let changed = set_enable(lines, value, on);
                self.enable_changed(place, changed, hardware);
            }
            Field::SetPending => {
                if value & lines.linked.load(SeqCst) != 0 {
                    self.bring_up_to_date(me, bank, hardware, index, word);
                }
                self.set_pending(place, value, hardware);
            }
            Field::ClearPending => self.clear_pending(place, value, hardware),
            Field::SetActive => {
                // The guest may have ended what is to be made active: look first.
                self.bring_up_to_date(me, bank, hardware, index, word);
                self.set_active(place, value, hardware);
                bank.forget();
                bank.made_active |= value != 0;
                bank.set_control(hardware);
            }
            Field::ClearActive => self.clear_active(place, value, hardware),
        }
    }

    /// Makes words say what list registers hold, other vCPUs' within a bound. Returns the lines that
    /// are held, but only parked.
    fn bring_up_to_date<H: Hardware>(
        &self,
        me: usize,
        bank: &mut Bank,
        hardware: &mut H,
        index: usize,
        word: u32,
    ) -> u32 {
        let words = self.publish(me, bank, hardware);
        self.mark(me, words);
        let held = self.word(index, word).map_or(0, |lines| lines.held.load(SeqCst));
        if word != 0 {
            self.synchronize(me, bank, hardware, word, held);
        } else if index != me && held != 0 {
            return self.synchronize_private(me, bank, hardware, index);
        }
        0
    }

    /// Linked lines whose physical line is pending; lines of another pCPU cannot be seen.
    fn physical_pending<H: Hardware>(&self, place: FieldOwner<'_>, hardware: &H) -> u32 {
        let lines = place.lines;
        bits(place.reachable())
            .filter(|n| {
                lines
                    .physical_of(*n)
                    .is_some_and(|physical| hardware.is_pending(physical))
            })
            .fold(0, |mask, n| mask | bit(n))
    }

    /// Something that decides about the delivery of the lines `changed` is different now.
    pub(crate) fn touched<H: Hardware>(
        &self,
        (me, index): (usize, usize),
        word: u32,
        changed: u32,
        hardware: &mut H,
    ) {
        let Some(lines) = self.word(index, word) else {
            return;
        };
        let concerned = changed & (lines.held.load(SeqCst) | lines.wanting());
        if concerned == 0 {
            return;
        }
        if word == 0 {
            self.notify(me, index, 1 | RECHECK, hardware);
            return;
        }
        self.announce_all(me, word, lines, concerned, hardware);
    }

    /// Shared lines of a word were enabled or disabled by vCPU `me`.
    pub(crate) fn enabled_shared<H: Hardware>(&self, me: usize, word: u32, changed: u32, hardware: &mut H) {
        if let Some(lines) = self.word(me, word) {
            let index = me;
            self.enable_changed(
                FieldOwner {
                    me,
                    index,
                    word,
                    lines,
                },
                changed,
                hardware,
            );
        }
    }

    #[inline(never)]
    fn enable_changed<H: Hardware>(&self, place: FieldOwner<'_>, changed: u32, hardware: &mut H) {
        let FieldOwner {
            me,
            index,
            word,
            lines,
        } = place;
        let linked = changed & lines.linked.load(SeqCst);
        if linked != 0 && word == 0 {
            // The vCPU's own pCPU does it.
            self.notify(me, index, RECHECK, hardware);
        }
        for n in bits(if word == 0 { 0 } else { linked }) {
            let on = lines.enabled.load(SeqCst) & bit(n) != 0;
            self.follow(lines, word.wrapping_mul(32) | n, hardware);
            if !on && lines.held.load(SeqCst) & bit(n) == 0 {
                self.give_back(lines, n, hardware);
            }
        }
        self.touched((me, index), word, changed, hardware);
    }

    /// Linked lines are made pending physically, so that what the guest will end has begun there.
    fn set_pending<H: Hardware>(&self, place: FieldOwner<'_>, value: u32, hardware: &mut H) {
        let FieldOwner { word, lines, .. } = place;
        // Parked lines do not matter here: they are another vCPU's private ones, whose physical side is out
        // of reach.
        let already = lines.latch.load(SeqCst) | lines.held.load(SeqCst) & !lines.acknowledged.load(SeqCst);
        let linked = value & !already & place.reachable();
        self.note_altered(&place, linked);
        for n in bits(linked) {
            if let Some(physical) = lines.physical_of(n) {
                hardware.set_pending(physical, true);
            }
        }
        let plain = value & !lines.linked.load(SeqCst);
        lines.latch.fetch_or(plain, SeqCst);
        self.touched(place.who(), word, plain, hardware);
    }

    /// Notes that the physical sides of these lines of the vCPU's own must not outlast its stay.
    fn note_altered(&self, place: &FieldOwner<'_>, linked: u32) {
        if let (0, Some(own)) = (place.word, self.redistributor(place.me)) {
            own.altered.fetch_or(linked, SeqCst);
        }
    }

    fn clear_pending<H: Hardware>(&self, place: FieldOwner<'_>, value: u32, hardware: &mut H) {
        let lines = place.lines;
        self.request(place, value, &lines.clear_pending, hardware);
        let gone = lines
            .latch
            .fetch_and(!(value & !lines.linked.load(SeqCst)), SeqCst)
            & value;
        for n in bits(value & place.reachable()) {
            let Some(physical) = lines.physical_of(n) else {
                continue;
            };
            hardware.set_pending(physical, false);
            if gone & bit(n) != 0 {
                lines.latch.fetch_and(!bit(n), SeqCst);
                hardware.set_active(physical, false);
            }
        }
    }

    fn set_active<H: Hardware>(&self, place: FieldOwner<'_>, value: u32, hardware: &mut H) {
        let FieldOwner { word, lines, .. } = place;
        lines.active.fetch_or(value, SeqCst);
        let mut loose = 0;
        for n in bits(value) {
            // The holder is the vCPU whose `ICC_DIR_EL1` ends the line.
            if let Some(holder) = self.distributor.holder_of(word.wrapping_mul(32) | n)
                && holder
                    .compare_exchange(NOBODY, place.me as u8, SeqCst, SeqCst)
                    .is_ok()
                // Another vCPU can have ended the line before it had this holder, who would keep it for ever.
                && (lines.active.load(SeqCst) | lines.held.load(SeqCst)) & bit(n) == 0
            {
                let _ = holder.compare_exchange(place.me as u8, NOBODY, SeqCst, SeqCst);
                loose |= bit(n);
            }
        }
        let linked = value & place.reachable();
        self.note_altered(&place, linked);
        for n in bits(linked) {
            if let Some(physical) = lines.physical_of(n) {
                hardware.set_active(physical, true);
            }
        }
        self.touched(
            place.who(),
            word,
            value & lines.held.load(SeqCst) | loose,
            hardware,
        );
    }

    fn clear_active<H: Hardware>(&self, place: FieldOwner<'_>, value: u32, hardware: &mut H) {
        let FieldOwner { word, lines, .. } = place;
        let gone = lines.active.fetch_and(!value, SeqCst) & value;
        for n in bits(gone) {
            let line = word.wrapping_mul(32) | n;
            if lines.held.load(SeqCst) & bit(n) != 0 {
                continue;
            }
            if let Some(holder) = self.distributor.holder_of(line) {
                holder.store(NOBODY, SeqCst);
            }
            if let Some(physical) = lines.physical_of(n)
                && place.reachable() & bit(n) != 0
            {
                hardware.set_active(physical, false);
            }
        }
        self.request(place, value, &lines.clear_active, hardware);
        self.touched(place.who(), word, gone, hardware);
    }

    /// Posts a request about those lines of `value` that are held.
    fn request<H: Hardware>(&self, place: FieldOwner<'_>, value: u32, request: &AtomicU32, hardware: &mut H) {
        let FieldOwner {
            me,
            index,
            word,
            lines,
        } = place;
        let held = value & lines.held.load(SeqCst);
        if held == 0 {
            return;
        }
        request.fetch_or(held, SeqCst);
        let released = held & !lines.held.load(SeqCst);
        clear(request, released);
        let flags = RECHECK | word_flag(word.wrapping_mul(32));
        if word == 0 {
            return self.notify(me, index, flags, hardware);
        }
        let (holders, gone) = self.holders(word, held & !released);
        clear(request, gone);
        for index in bits(holders) {
            self.notify(me, index as usize, flags, hardware);
        }
    }
}
