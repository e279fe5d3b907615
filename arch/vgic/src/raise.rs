// SPDX-License-Identifier: Apache-2.0
//! The sources of interrupts: levels of virtual devices, physical lines, and the vCPUs themselves.
//!
//! `me` is the vCPU on whose behalf the pCPU acts, which will pass through `service` by itself. A pCPU that
//! acts for no vCPU of this VM passes [`NONE`](crate::NO_VCPU).

use crate::lines::shared_word;
use crate::state::{NOBODY, RECHECK, STRUCK, word_flag};
use crate::{Distributor, FIRST_SPECIAL, Hardware, NO_VCPU, PRIVATE_LINES, Vgic, bit, bits};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Which of the three registers a guest used to send a software-generated interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sgi {
    /// `ICC_SGI0R_EL1`.
    Group0,
    /// `ICC_SGI1R_EL1`.
    Group1,
    /// `ICC_ASGI1R_EL1`: group 1 of the other security state, which is not there.
    OtherGroup1,
}

/// `ICC_SGI1R_EL1.IRM`: all but the sender.
const EVERYONE_ELSE: u64 = 1 << 40;
/// Aff3, RS, Aff2 and Aff1 name a cluster that is not there, unless they are zero.
const OTHER_CLUSTER: u64 = 0x00FF_F0FF_00FF_0000;

/// Lines that a vCPU readmits in one step.
const READMITTED: usize = 8;
/// Looks at what decides whether a physical line is on, in a row.
const FOLLOW_STEPS: usize = 4;

/// The findings of [`Distributor::latch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latched {
    /// The line was pending already, or there is no such line: nothing is to be done.
    Already,
    /// This vCPU has the line in a list register, and has to look (`Redistributor::note`).
    Held(u8),
    /// No vCPU has the line.
    Loose,
}

impl Distributor {
    /// Latches a shared line. The vCPU that has the line is not asked for a recheck: nothing but the latch
    /// has changed, as when a software-generated interrupt is sent again.
    #[inline(always)]
    pub fn latch(&self, line: u32) -> Latched {
        let word = (line / 32).wrapping_sub(1) as usize;
        let (Some(lines), Some(holders)) = (self.shared.get(word), self.holder.get(word)) else {
            return Latched::Already;
        };
        if line >= self.lines.load(Relaxed) || lines.latch.fetch_or(bit(line), SeqCst) & bit(line) != 0 {
            return Latched::Already;
        }
        match holders
            .get((line & 31) as usize)
            .map(|holder| holder.load(SeqCst))
        {
            Some(holder) if holder != NOBODY => Latched::Held(holder),
            _ => Latched::Loose,
        }
    }
}

impl crate::Redistributor {
    /// Marks the word of a line that was [`Latched::Held`]. Returns whether the vCPU is loaded, so that a
    /// kick reaches it.
    #[inline(always)]
    pub fn note(&self, line: u32) -> bool {
        self.dirty.fetch_or(word_flag(line), SeqCst);
        self.is_present()
    }

    /// Notes that the physical line of a private line has been acknowledged on the vCPU's pCPU and is
    /// active.
    #[inline]
    pub fn raise(&self, line: u32) {
        if line < PRIVATE_LINES {
            self.private.latch.fetch_or(bit(line), SeqCst);
            self.dirty.fetch_or(1, SeqCst);
        }
    }
}

impl Vgic<'_> {
    /// Notes that the input of a shared line goes high.
    pub fn raise<H: Hardware>(&self, me: usize, line: u32, hardware: &mut H) {
        let Some(lines) = self.shared(line) else { return };
        let mask = bit(line);
        let before = lines.level.fetch_or(mask, SeqCst);
        if lines.edge.load(SeqCst) & mask != 0 {
            if before & mask != 0 {
                return;
            }
            lines.latch.fetch_or(mask, SeqCst);
        }
        self.announce(me, line, hardware);
    }

    /// Makes a shared line pending, as a write to `GICD_SETSPI_NSR` does for an edge-triggered line (IHI
    /// 0069, 12.9.36). A level-triggered one is pending until it is acknowledged, as after a write to
    /// `GICD_ISPENDR`.
    pub fn pulse<H: Hardware>(&self, me: usize, line: u32, hardware: &mut H) {
        match self.distributor.latch(line) {
            Latched::Already => {}
            Latched::Held(holder) => self.notify(me, usize::from(holder), word_flag(line), hardware),
            Latched::Loose => self.announce(me, line, hardware),
        }
    }

    /// Does the rest of [`Vgic::pulse`] for a line that was [`Latched::Loose`].
    pub fn pulsed<H: Hardware>(&self, me: usize, line: u32, hardware: &mut H) {
        self.announce(me, line, hardware);
    }

    /// Notes that the input of a shared line goes low. A vCPU that already has the line in a list register
    /// takes it back at its next exit, and is not interrupted for that.
    pub fn lower(&self, line: u32) {
        let Some(lines) = self.shared(line) else { return };
        lines.level.fetch_and(!bit(line), SeqCst);
        if lines.held.load(SeqCst) & bit(line) != 0
            && let Some(holder) = self.distributor.holder_of(line)
        {
            self.mark(usize::from(holder.load(SeqCst)), RECHECK);
        }
    }

    /// Notes that the physical line of a shared line has been acknowledged and is active.
    pub fn raise_linked<H: Hardware>(&self, me: usize, line: u32, hardware: &mut H) {
        if let Some(lines) = self.shared(line) {
            lines.latch.fetch_or(bit(line), SeqCst);
            self.announce(me, line, hardware);
            if me == NO_VCPU && self.redistributors.len() > 1 {
                self.intruded(lines, line, hardware);
            }
        }
    }

    /// Returns the vCPUs that a shared line concerns, as a bitmap: the one that has it, and the one that gets
    /// it next if it is enabled.
    #[must_use]
    pub fn takers(&self, line: u32) -> u32 {
        let (Some(lines), Some(holder)) = (self.shared(line), self.distributor.holder_of(line)) else {
            return 0;
        };
        let holder = holder.load(SeqCst);
        let holder = (holder != NOBODY).then_some(usize::from(holder));
        let enabled = lines.enabled.load(SeqCst) & bit(line) != 0;
        let next = enabled.then(|| self.target(line)).flatten();
        let of = |vcpu: Option<usize>| vcpu.map_or(0, |index| bit(index as u32));
        of(holder) | of(next)
    }

    /// Switches off a line that has interrupted a pCPU on which no vCPU of this VM runs. The line is active
    /// now, but the VM has vCPUs on other pCPUs that can change that at once and as often as they like: end
    /// it, clear its pending state, disable or route it. So the line stays off until the vCPU it was meant
    /// for has been here.
    #[cold]
    #[inline(never)]
    fn intruded<H: Hardware>(&self, lines: &crate::Lines, line: u32, hardware: &mut H) {
        let target = self.target(line);
        match target.and_then(|index| self.redistributor(index)) {
            Some(other) if other.is_present() => {
                // The target waits here, or two vCPUs have routed the line at the same time.
                if let (Some(physical), Some(index)) = (lines.physical_of(line), target) {
                    hardware.set_target(physical, index);
                }
            }
            Some(other) => {
                if let Some(struck) = shared_word(line).and_then(|word| other.struck.get(word)) {
                    struck.fetch_or(bit(line), SeqCst);
                }
                self.follow(lines, line, hardware);
                self.notify(NO_VCPU, target.unwrap_or(NO_VCPU), STRUCK, hardware);
            }
            None => self.follow(lines, line, hardware),
        }
    }

    /// Tells whether the physical line of a shared line may interrupt. The guest must want it, and it
    /// must go to a vCPU. It must not have cost anybody else time since that vCPU looked last.
    fn lets_in(&self, lines: &crate::Lines, line: u32) -> bool {
        let struck = self
            .target(line)
            .and_then(|index| self.redistributor(index))
            .zip(shared_word(line))
            .and_then(|(other, word)| other.struck.get(word));
        lines.enabled.load(SeqCst) & bit(line) != 0
            && struck.is_some_and(|struck| struck.load(SeqCst) & bit(line) == 0)
    }

    /// Switches the physical line of a shared line on or off, after something that decides about it has
    /// changed. If another vCPU changes something meanwhile, one of the two finds it. If a vCPU changes it
    /// all the time, the line is as it was at some time.
    pub(crate) fn follow<H: Hardware>(&self, lines: &crate::Lines, line: u32, hardware: &mut H) {
        let Some(physical) = lines.physical_of(line) else {
            return;
        };
        for _ in 0..FOLLOW_STEPS {
            let on = self.lets_in(lines, line);
            hardware.set_enabled(physical, on);
            if on == self.lets_in(lines, line) {
                break;
            }
        }
    }

    /// Readmits lines when the vCPU `me` looks: those that have interrupted its pCPU without it may do so
    /// again. A step is about [`READMITTED`] lines.
    #[cold]
    pub(crate) fn readmit<H: Hardware>(&self, me: usize, hardware: &mut H) {
        let Some(own) = self.redistributor(me) else { return };
        let used = (self.distributor.lines.load(SeqCst) / 32).saturating_sub(1) as usize;
        let words = own.struck.iter().zip(&self.distributor.shared).zip(1u32..);
        let mut left = READMITTED;
        for ((struck, lines), word) in words.take(used) {
            for n in bits(struck.load(SeqCst)).take(left) {
                struck.fetch_and(!bit(n), SeqCst);
                self.rerouted(lines, word.wrapping_mul(32) | n, hardware);
                left = left.saturating_sub(1);
            }
            if left == 0 {
                own.dirty.fetch_or(STRUCK, SeqCst);
                return hardware.look_again(me);
            }
        }
    }

    /// vCPU `me` has gone off line: what any vCPU takes, and has interrupted its pCPU without it, goes to the
    /// first one that is on line.
    #[cold]
    pub(crate) fn pass_on<H: Hardware>(&self, me: usize, first: Option<usize>, hardware: &mut H) {
        let next = first.and_then(|index| Some((index, self.redistributor(index)?)));
        let (Some(own), Some((index, next))) = (self.redistributor(me), next) else {
            return;
        };
        let mut moved = 0;
        for ((from, to), any) in own.struck.iter().zip(&next.struck).zip(&self.distributor.any) {
            let struck = from.load(SeqCst) & any.load(SeqCst);
            if struck != 0 {
                to.fetch_or(struck, SeqCst);
                from.fetch_and(!struck, SeqCst);
                moved |= struck;
            }
        }
        if moved != 0 {
            self.notify(me, index, STRUCK, hardware);
        }
    }

    /// Sends a linked shared line to another vCPU, or to none.
    pub(crate) fn rerouted<H: Hardware>(&self, lines: &crate::Lines, line: u32, hardware: &mut H) {
        let Some(physical) = lines.physical_of(line) else {
            return;
        };
        // The line must not be for a moment at a pCPU where it may not interrupt.
        if !self.lets_in(lines, line) {
            hardware.set_enabled(physical, false);
        }
        if let Some(target) = self.target(line) {
            hardware.set_target(physical, target);
        }
        self.follow(lines, line, hardware);
    }

    /// Returns the vCPU and the line, if `value` (as for [`Vgic::send`]) names one vCPU only. The vCPU need
    /// not exist.
    #[inline(always)]
    #[must_use]
    pub fn single_target(value: u64) -> Option<(usize, u32)> {
        let targets = value as u32 & 0xFFFF;
        (value & (EVERYONE_ELSE | OTHER_CLUSTER) == 0 && targets.is_power_of_two())
            .then(|| (targets.trailing_zeros() as usize, (value >> 24) as u32 & 15))
    }

    /// Handles a write of `value` to a register that sends a software-generated interrupt (IHI 0069,
    /// 12.11.15).
    pub fn send<H: Hardware>(&self, me: usize, register: Sgi, value: u64, hardware: &mut H) {
        let line = (value >> 24) as u32 & 15;
        let everyone = 0xFFu32.wrapping_shr(8u32.saturating_sub(self.redistributors.len() as u32));
        let targets = if value & EVERYONE_ELSE != 0 {
            everyone & !1u32.wrapping_shl(me as u32)
        } else if value & OTHER_CLUSTER != 0 {
            0
        } else {
            everyone & value as u32
        };
        for index in bits(targets) {
            self.send_to(me, index as usize, register, line, hardware);
        }
    }

    /// Takes the short way of [`Vgic::send`] by `ICC_SGI1R_EL1` to one vCPU, see [`Vgic::single_target`].
    #[inline(always)]
    pub fn send_single<H: Hardware>(&self, me: usize, index: usize, line: u32, hardware: &mut H) {
        if let Some(target) = self.redistributor(index)
            && target.private.latch.fetch_or(bit(line), SeqCst) & bit(line) == 0
        {
            self.notify_now(me, index, 1, hardware);
        }
    }

    fn send_to<H: Hardware>(&self, me: usize, index: usize, register: Sgi, line: u32, hardware: &mut H) {
        let Some(target) = self.redistributor(index) else {
            return;
        };
        let lines = &target.private;
        // With one security state, group 1 requests reach either group, the others group 0 only (IHI 0069,
        // 8.1.10).
        if register != Sgi::Group1 && lines.group1.load(SeqCst) & bit(line) != 0 {
            return;
        }
        if lines.latch.fetch_or(bit(line), SeqCst) & bit(line) == 0 {
            self.notify(me, index, 1, hardware);
        }
    }

    /// Tells the vCPUs that have to look that a shared line wants delivery.
    fn announce<H: Hardware>(&self, me: usize, line: u32, hardware: &mut H) {
        let holder = self
            .distributor
            .holder_of(line)
            .map_or(NOBODY, |holder| holder.load(SeqCst));
        if holder != NOBODY {
            self.notify(me, usize::from(holder), word_flag(line) | RECHECK, hardware);
        } else if let Some(lines) = self.shared(line)
            && lines.enabled.load(SeqCst) & bit(line) != 0
            && let Some(target) = self.target(line)
        {
            // Not enabled: the vCPU that enables it looks whether it wants delivery.
            self.notify(me, target, word_flag(line), hardware);
        }
    }

    /// Tells the vCPUs that have to look that lines of a word of shared ones want delivery. Each vCPU
    /// concerned is told once.
    pub(crate) fn announce_all<H: Hardware>(
        &self,
        me: usize,
        word: u32,
        lines: &crate::Lines,
        concerned: u32,
        hardware: &mut H,
    ) {
        let flag = word_flag(word.wrapping_mul(32));
        let (holders, loose) = self.holders(word, concerned);
        for index in bits(holders) {
            self.notify(me, index as usize, flag | RECHECK, hardware);
        }
        // Not enabled: the vCPU that enables it looks whether it wants delivery.
        let loose = loose & lines.enabled.load(SeqCst);
        for index in 0..self.redistributors.len() {
            if loose & self.routed(index, word) != 0 {
                self.notify(me, index, flag, hardware);
            }
        }
    }

    /// Returns the vCPUs that have one of these lines of a word of shared ones, as a bitmap, and the lines
    /// that no vCPU has.
    pub(crate) fn holders(&self, word: u32, lines: u32) -> (u32, u32) {
        let holders = shared_word(word.wrapping_mul(32)).and_then(|word| self.distributor.holder.get(word));
        let Some(holders) = holders else { return (0, lines) };
        bits(lines).fold((0, 0), |(found, loose), n| {
            match holders.get(n as usize).map(|holder| holder.load(SeqCst)) {
                Some(holder) if holder != NOBODY => (found | bit(u32::from(holder)), loose),
                _ => (found, loose | bit(n)),
            }
        })
    }

    fn shared(&self, line: u32) -> Option<&crate::Lines> {
        self.lines_of(0, line)
            .filter(|_| (PRIVATE_LINES..FIRST_SPECIAL).contains(&line))
    }
}
