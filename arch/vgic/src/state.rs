// SPDX-License-Identifier: Apache-2.0
//! The state of a VM's interrupt controller.

use crate::lines::{Lines, shared_word};
use crate::waiting::Waiting;
use crate::{
    Control, CpuInterface, ListRegister, MAX_LINES, MAX_SLOTS, MAX_VCPUS, PRIVATE_LINES, SHARED_WORDS, bit,
};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Dirty flag: list registers and requests must be looked at, not only words.
pub(crate) const RECHECK: u64 = 1 << 32;
/// Dirty flag: a vCPU waits for `acknowledged` to be brought up to date.
pub(crate) const SYNC: u64 = 1 << 33;
/// Dirty flag: shared lines are kept from interrupting until this vCPU looks, see [`Redistributor::struck`].
pub(crate) const STRUCK: u64 = 1 << 34;
/// Dirty flags of all words.
pub(crate) const ALL_WORDS: u64 = 0xFFFF_FFFF;
/// [`Distributor::holder`]: no vCPU.
pub(crate) const NOBODY: u8 = u8::MAX;
/// [`Distributor::route`]: to no vCPU.
pub(crate) const NOWHERE: u32 = 0xFF;

/// The state that all vCPUs of a VM share.
#[derive(Debug)]
pub struct Distributor {
    /// `GICD_CTLR.EnableGrp0` and `.EnableGrp1`.
    pub(crate) control: AtomicU32,
    /// Lines there are, private ones included.
    pub(crate) lines: AtomicU32,
    pub(crate) shared: [Lines; SHARED_WORDS],
    /// The vCPU each shared line goes to, as [`Distributor::route`] says: [`Distributor::settle_route`]
    /// follows it.
    pub(crate) routed: [Routes; SHARED_WORDS],
    /// Affinity each shared line is routed to, as in `GICD_IROUTER` with Aff3 in bits 31:24.
    pub(crate) route: [[AtomicU32; 32]; SHARED_WORDS],
    /// `GICD_IROUTER.Interrupt_Routing_Mode`.
    pub(crate) any: [AtomicU32; SHARED_WORDS],
    /// Some bit of `any` has been set since the reset.
    pub(crate) has_open_routes: AtomicBool,
    /// `GICD_ITARGETSR` of a GICv2, four lines a word, where it names several vCPUs; 0: as `route` says.
    pub(crate) targets: [[AtomicU32; 8]; SHARED_WORDS],
    /// vCPU that has the line in a list register or active outside; [`NOBODY`].
    pub(crate) holder: [[AtomicU8; 32]; SHARED_WORDS],
}

impl Distributor {
    /// Returns the state before [`Vgic::reset_shared`].
    #[must_use]
    pub const fn new() -> Self {
        Self {
            control: AtomicU32::new(0),
            lines: AtomicU32::new(PRIVATE_LINES),
            shared: [const { Lines::new() }; SHARED_WORDS],
            routed: [const { Routes::new() }; SHARED_WORDS],
            route: [const { [const { AtomicU32::new(0) }; 32] }; SHARED_WORDS],
            any: [const { AtomicU32::new(0) }; SHARED_WORDS],
            has_open_routes: AtomicBool::new(false),
            targets: [const { [const { AtomicU32::new(0) }; 8] }; SHARED_WORDS],
            holder: [const { [const { AtomicU8::new(NOBODY) }; 32] }; SHARED_WORDS],
        }
    }

    /// Sets how many lines there are (rounded down to a multiple of 32, within what is possible).
    pub fn set_lines(&self, lines: u32) {
        self.lines
            .store((lines & !31).clamp(PRIVATE_LINES, MAX_LINES), SeqCst);
    }

    /// Gives a shared line its physical line. At boot; the physical line is off.
    pub fn link(&self, line: u32, physical: u32) {
        if let Some(lines) = shared_word(line).and_then(|word| self.shared.get(word)) {
            lines.link(line, physical);
        }
    }

    pub(crate) fn route_of(&self, line: u32) -> Option<&AtomicU32> {
        self.route.get(shared_word(line)?)?.get((line & 31) as usize)
    }

    /// Lets a line go where its [`Distributor::route`] says, after that was written. If another vCPU writes
    /// the route meanwhile, the last one finds the final value. A VM whose vCPUs all write the same route all
    /// the time may have its line at any of those vCPUs.
    pub(crate) fn settle_route(&self, line: u32) {
        let (Some(route), Some(routed)) = (
            self.route_of(line),
            shared_word(line).and_then(|word| self.routed.get(word)),
        ) else {
            return;
        };
        let mut target = route.load(SeqCst);
        for _ in 0..MAX_VCPUS {
            routed.set(line, target);
            let now = route.load(SeqCst);
            if now == target {
                break;
            }
            target = now;
        }
    }

    pub(crate) fn holder_of(&self, line: u32) -> Option<&AtomicU8> {
        self.holder.get(shared_word(line)?)?.get((line & 31) as usize)
    }
}

/// To which vCPU each of 32 shared lines goes.
#[derive(Debug)]
pub(crate) struct Routes {
    /// The bits of the vCPU's number, a word each, the least significant first.
    number: [AtomicU32; 3],
    /// To none.
    nowhere: AtomicU32,
}

impl Routes {
    const fn new() -> Self {
        Self {
            number: [const { AtomicU32::new(0) }; 3],
            nowhere: AtomicU32::new(0),
        }
    }

    /// Sends all lines to the first vCPU, or to none.
    pub(crate) fn reset(&self, to_nobody: bool) {
        for word in &self.number {
            word.store(0, Relaxed);
        }
        self.nowhere.store(if to_nobody { u32::MAX } else { 0 }, Relaxed);
    }

    /// Returns the lines that go to vCPU `index`.
    pub(crate) fn of(&self, index: usize) -> u32 {
        let nowhere = self.nowhere.load(SeqCst);
        let words = self.number.iter().zip(0u32..);
        words.fold(!nowhere, |lines, (word, shift)| {
            let ones = word.load(SeqCst);
            lines & if index >> shift & 1 != 0 { ones } else { !ones }
        })
    }

    /// Lets a line go to a vCPU; a number that no vCPU can have is none.
    fn set(&self, line: u32, target: u32) {
        let change = |word: &AtomicU32, on: bool| {
            if on {
                word.fetch_or(bit(line), SeqCst);
            } else {
                word.fetch_and(!bit(line), SeqCst);
            }
        };
        for (word, shift) in self.number.iter().zip(0u32..) {
            change(word, target >> shift & 1 != 0);
        }
        change(&self.nowhere, target >= MAX_VCPUS as u32);
    }
}

impl Default for Distributor {
    fn default() -> Self {
        Self::new()
    }
}

/// The state of each vCPU that others may touch.
#[derive(Debug)]
#[repr(C)]
pub struct Redistributor {
    /// The words that [`Vgic::service`] must look at: bit n for word n, [`RECHECK`], [`SYNC`]. The way into
    /// each guest looks here first, and an acquiring load has no offset.
    pub(crate) dirty: AtomicU64,
    pub(crate) private: Lines,
    /// GICv2 only: vCPUs whose software-generated interrupt of each number waits for a list register.
    pub(crate) senders: [AtomicU8; 16],
    /// While the vCPU is not loaded: private lines that are held only so that their list register can be used
    /// again. The guest has ended them.
    pub(crate) parked: AtomicU32,
    /// The vCPU is loaded on its pCPU.
    pub(crate) present: AtomicBool,
    /// The vCPU has been reset since it was last detached.
    pub(crate) online: AtomicBool,
    /// A vCPU waits for [`SYNC`] to be done.
    pub(crate) sync: AtomicBool,
    /// Linked private lines that the guest made active or pending by its redistributor since the vCPU was
    /// loaded. Their physical lines may still be active or pending.
    pub(crate) altered: AtomicU32,
    /// `GICR_WAKER.ProcessorSleep`.
    pub(crate) sleeping: AtomicBool,
    /// Linked shared lines that have interrupted this vCPU's pCPU while the vCPU was not loaded there, since
    /// it looked last. Each has cost another vCPU time, once. While they are routed to this vCPU they are
    /// off physically.
    pub(crate) struck: [AtomicU32; SHARED_WORDS],
    /// While the vCPU is off line: true if another vCPU was the last to write its private words, and not
    /// [`Redistributor::make_blank`].
    pub(crate) touched: AtomicBool,
}

impl Redistributor {
    /// Returns the state before [`Vgic::reset`].
    #[must_use]
    pub const fn new() -> Self {
        Self {
            private: Lines::new(),
            senders: [const { AtomicU8::new(0) }; 16],
            parked: AtomicU32::new(0),
            dirty: AtomicU64::new(0),
            present: AtomicBool::new(false),
            online: AtomicBool::new(false),
            sync: AtomicBool::new(false),
            altered: AtomicU32::new(0),
            sleeping: AtomicBool::new(true),
            struck: [const { AtomicU32::new(0) }; SHARED_WORDS],
            touched: AtomicBool::new(true),
        }
    }

    /// Tells whether [`Vgic::service`] has something to do. This is the one check on the way into the guest.
    #[inline(always)]
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.dirty.load(SeqCst) != 0
    }

    /// Tells whether [`Redistributor::deliver_again`] may have something to do: the word of the private lines
    /// is marked.
    #[inline(always)]
    #[must_use]
    pub fn has_private_mark(&self) -> bool {
        self.dirty.load(Relaxed) & 1 != 0
    }

    /// Tells whether the vCPU is loaded on its pCPU, so that a kick reaches it.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.present.load(SeqCst)
    }

    /// Gives a private line a physical line of the vCPU's pCPU. At boot.
    pub fn link(&self, line: u32, physical: u32) {
        if line < PRIVATE_LINES {
            self.private.link(line, physical);
        }
    }
}

impl Default for Redistributor {
    fn default() -> Self {
        Self::new()
    }
}

/// Active interrupts outside the list registers, outermost first. The least urgent leaves first, and a guest
/// ends the most urgent first (IHI 0069, 4.8.2), so the last one in is the next to end. There are no more
/// than preemption levels.
#[derive(Clone, Debug)]
pub(crate) struct Evicted {
    lines: [u16; 32],
    count: usize,
}

impl Evicted {
    pub(crate) const NONE: Self = Self {
        lines: [0; 32],
        count: 0,
    };

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    pub(crate) fn push(&mut self, line: u32) {
        if let Some(place) = self.lines.get_mut(self.count) {
            *place = line as u16;
            self.count = self.count.saturating_add(1);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.count = self.count.checked_sub(1)?;
        self.lines.get(self.count).map(|line| u32::from(*line))
    }

    /// Takes `line` out, wherever it is.
    pub(crate) fn remove(&mut self, line: u32) {
        let place = self
            .lines
            .iter()
            .take(self.count)
            .position(|other| u32::from(*other) == line);
        if let (Some(place), Some(last)) = (place, self.count.checked_sub(1)) {
            for (to, from) in (place..last).zip(place.saturating_add(1)..) {
                let line = self.lines.get(from).copied();
                if let (Some(to), Some(line)) = (self.lines.get_mut(to), line) {
                    *to = line;
                }
            }
            self.count = last;
        }
    }
}

/// A bit of [`Bank::plain_slots`]: its contents are true, nothing waits for a slot, and the control bits are
/// those after reset.
pub(crate) const PLAIN: u32 = 1 << 31;

/// No slot. It is never empty.
pub(crate) const NO_SLOT: u32 = 31;

/// The state of each vCPU that only its own pCPU touches.
///
/// `plain_lines` and `plain_slots` only repeat what the other fields and the words say, for the short ways
/// ([`Redistributor::deliver_now`], [`Redistributor::leave`]). Code that may change this begins with
/// `forget`. `Redistributor::remember` makes both fields anew.
#[derive(Clone, Debug)]
pub struct Bank {
    /// Private lines in a near slot, the one that `private_slots` names. They are plain pending interrupts
    /// that came by their latch, and were not seen active or pending again since.
    pub(crate) plain_lines: u32,
    /// The slots of `plain_lines`, and [`PLAIN`].
    pub(crate) plain_slots: u32,
    /// The slot of a shared line that can be delivered again as it was loaded: plain, not linked, and not
    /// seen active or pending again since. [`NO_SLOT`] if there is none.
    pub(crate) shared_slot: u32,
    /// The vCPU did not leave by the short way, and cannot come back by it.
    pub(crate) left_otherwise: bool,
    /// The last value written to each list register; the current value while not loaded.
    pub(crate) slots: [ListRegister; MAX_SLOTS],
    /// Slots in use: written, and not yet found empty.
    pub(crate) used: u32,
    /// Slots whose interrupt was pending by its latch, which is restored if it is taken back.
    pub(crate) from_latch: u32,
    /// Slot each private line was loaded into last.
    pub(crate) private_slots: [u8; PRIVATE_LINES as usize],
    /// While not loaded, unless it left quietly: slots in use whose interrupt the guest has ended. See
    /// [`Bank::parked`].
    pub(crate) parked: u32,
    /// This pCPU's private lines that the guest lets interrupt, when that was looked at last.
    pub(crate) mirrored: u32,
    /// The lines that wait for a list register.
    pub(crate) waiting: Waiting,
    /// Some of them are of a group that the distributor forwards: they did not fit.
    pub(crate) crowded: bool,
    /// The last [`Vgic::service`] left work, and has asked for a further step. The next one does something
    /// before it leaves work again.
    pub(crate) has_postponed: bool,
    /// Active interrupts that had to leave their list register.
    pub(crate) evicted: Evicted,
    /// The guest made something active that it may end by `ICC_DIR_EL1` without a list register.
    pub(crate) made_active: bool,
    pub(crate) control: Control,
    pub(crate) machine_control: u64,
    pub(crate) active_priorities: [[u32; 4]; 2],
}

impl Bank {
    /// Returns the state after reset.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            plain_lines: 0,
            plain_slots: 0,
            shared_slot: NO_SLOT,
            left_otherwise: true,
            slots: [ListRegister::EMPTY; MAX_SLOTS],
            used: 0,
            from_latch: 0,
            private_slots: [0; PRIVATE_LINES as usize],
            parked: 0,
            mirrored: 0,
            waiting: Waiting::EMPTY,
            crowded: false,
            has_postponed: false,
            evicted: Evicted::NONE,
            made_active: false,
            control: Control {
                refill: false,
                trap_deactivate: false,
            },
            machine_control: 0,
            active_priorities: [[0; 4]; 2],
        }
    }

    /// Returns, while not loaded, the slots in use whose interrupt the guest has ended. A vCPU that left
    /// quietly holds no others.
    pub(crate) const fn parked(&self) -> u32 {
        if self.left_otherwise {
            self.parked
        } else {
            self.used
        }
    }

    /// Goes back to the state after reset. Slots that `used` does not name need no look.
    pub(crate) fn clear(&mut self) {
        self.forget();
        self.left_otherwise = true;
        (self.used, self.from_latch, self.parked, self.mirrored) = (0, 0, 0, 0);
        (self.crowded, self.has_postponed) = (false, false);
        self.waiting.clear();
        self.evicted.clear();
        self.made_active = false;
        self.control = Control::default();
        self.machine_control = 0;
        self.active_priorities = [[0; 4]; 2];
    }

    /// Starts a new life, after [`Bank::clear`]: notes what [`Redistributor::remember`] and
    /// [`Redistributor::leave`] would note.
    pub(crate) fn start(&mut self) {
        self.plain_slots = PLAIN;
        self.left_otherwise = false;
    }

    /// Closes the short ways until [`Redistributor::remember`].
    #[inline]
    pub(crate) fn forget(&mut self) {
        (self.plain_lines, self.plain_slots, self.shared_slot) = (0, 0, NO_SLOT);
    }

    /// Returns the pCPU's private lines that are to interrupt while the vCPU is loaded.
    #[inline]
    #[must_use]
    pub const fn mirrored(&self) -> u32 {
        self.mirrored
    }

    /// Returns the active-priorities registers while the vCPU is not loaded; all 0 if it left quietly.
    pub(crate) fn saved_priorities(&self) -> [[u32; 4]; 2] {
        if self.left_otherwise {
            self.active_priorities
        } else {
            [[0; 4]; 2]
        }
    }

    /// Tells whether something waits for a slot, or had to leave one.
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded || !self.evicted.is_empty()
    }

    pub(crate) fn wanted_control(&self) -> Control {
        let trap_deactivate = !self.evicted.is_empty() || self.made_active;
        Control {
            // Work that is left is asked for already.
            refill: self.crowded && !self.has_postponed,
            trap_deactivate,
        }
    }

    /// Brings the hardware's control bits up to date.
    pub(crate) fn set_control<C: CpuInterface>(&mut self, hardware: &mut C) {
        let control = self.wanted_control();
        if control != self.control {
            self.control = control;
            hardware.set_control(control);
        }
    }

    pub(crate) fn slot(&self, slot: u32) -> ListRegister {
        self.slots.get(slot as usize).copied().unwrap_or_default()
    }

    pub(crate) fn set_slot(&mut self, slot: u32, value: ListRegister) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = value;
        }
    }
}

impl Default for Bank {
    fn default() -> Self {
        Self::new()
    }
}

/// The interrupt controller of one VM.
#[derive(Clone, Copy, Debug)]
pub struct Vgic<'a> {
    pub(crate) distributor: &'a Distributor,
    pub(crate) redistributors: &'a [Redistributor],
}

impl<'a> Vgic<'a> {
    /// Puts the parts together; `redistributors[n]` is vCPU n of the VM. At most [`MAX_VCPUS`] are used.
    #[must_use]
    pub fn new(distributor: &'a Distributor, redistributors: &'a [Redistributor]) -> Self {
        let redistributors = redistributors.get(..MAX_VCPUS).unwrap_or(redistributors);
        Self {
            distributor,
            redistributors,
        }
    }

    pub(crate) fn redistributor(&self, index: usize) -> Option<&'a Redistributor> {
        self.redistributors.get(index)
    }

    /// Returns the word of `line` as vCPU `index` sees it, or `None` if the line does not exist.
    pub(crate) fn lines_of(&self, index: usize, line: u32) -> Option<&'a Lines> {
        self.word(index, line / 32)
    }

    pub(crate) fn word(&self, index: usize, word: u32) -> Option<&'a Lines> {
        if word == 0 {
            return Some(&self.redistributors.get(index)?.private);
        }
        if word >= self.distributor.lines.load(SeqCst) / 32 {
            return None;
        }
        self.distributor.shared.get(word.wrapping_sub(1) as usize)
    }

    /// Returns the vCPU that a shared line is delivered to now.
    pub(crate) fn target(&self, line: u32) -> Option<usize> {
        let any = self.distributor.any.get(shared_word(line)?)?.load(SeqCst) & bit(line) != 0;
        if any {
            return Some(self.first_online());
        }
        let affinity = self.distributor.route_of(line)?.load(SeqCst) as usize;
        (affinity < self.redistributors.len()).then_some(affinity)
    }

    /// Marks `flags` dirty for vCPU `index`.
    pub(crate) fn mark(&self, index: usize, flags: u64) {
        if let Some(redistributor) = self.redistributors.get(index) {
            redistributor.dirty.fetch_or(flags, SeqCst);
        }
    }
}

/// Dirty flag of the word of `line`.
pub(crate) fn word_flag(line: u32) -> u64 {
    1u64.wrapping_shl(line / 32) & ALL_WORDS
}
