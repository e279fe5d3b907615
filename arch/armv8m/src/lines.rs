// SPDX-License-Identifier: Apache-2.0
//! Interrupt lines: their owners, and the times in which they may interrupt.
//!
//! **The lines of the VM that runs** are Non-secure: the VM enables them, gives them priorities and takes
//! their interrupts, and the hypervisor does not know of it. Lines of virtual devices are Non-secure for
//! every VM: no hardware drives them. All other lines stay Secure and masked, also those that the board's
//! tables do not name: a device of a neighbour may drive them.
//!
//! **The lines of a VM that does not run** are Secure. Those that the VM has enabled interrupt the hypervisor
//! if the kernel has *admitted* the VM: a wake-up would change who runs. Such a line interrupts once. Then
//! the line is *held*: masked, and pending for the VM when the VM runs again.
//!
//! **Priorities.** All Secure exceptions and lines have the highest priority, so nothing interrupts the
//! hypervisor. AIRCR.PRIS keeps all priorities of the Non-secure world below.

use crate::line_set::{Lines, WORDS, bit_of, insert, is_empty, remove, word_of};
use crate::pair;
use crate::sysreg::{
    self, ICTR, MAX_LINES, NVIC_ICER, NVIC_ICPR, NVIC_IPR, NVIC_ISER, NVIC_ISPR, NVIC_ITNS, control_space,
};
use bulkhead_arch_api::{MAX_PARTITIONS, PartitionId};
use bulkhead_arch_one_pcpu::Pool;

/// The owner of a line, and the way to the owner.
#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) partition: PartitionId,
    pub(crate) critical: bool,
}

/// The bytes of the pool that a line takes.
pub(crate) const BYTES_OF_LINE: usize = size_of::<Option<Route>>();

/// All lines.
pub(crate) struct Interrupts {
    /// The routes by line, as many as the controller has lines.
    pub(crate) routes: &'static mut [Option<Route>],
    /// Lines of each partition.
    pub(crate) of: [Lines; MAX_PARTITIONS],
    /// Lines of the hypervisor's own.
    pub(crate) own: Lines,
    /// Lines of virtual devices.
    pub(crate) shared: Lines,
    /// Lines of VMs that interrupted the hypervisor and wait for their VM.
    pub(crate) held: Lines,
    /// Lines of partitions that may interrupt the code that runs now.
    pub(crate) admitted: Lines,
    /// Lines that VMs have enabled which do not run.
    pub(crate) enabled: Lines,
    /// True if the lines of virtual devices are Non-secure.
    pub(crate) is_shared: bool,
    /// Lines that were masked during a run of the hypervisor's own Non-secure instructions.
    pub(crate) deferred: Lines,
}

/// Writes the bit of a line in one of the controller's banks of registers.
pub(crate) fn strike(bank: usize, line: u32) {
    sysreg::write(bank + 4 * word_of(line), bit_of(line));
}

/// Returns the number of lines of the controller (D1.2.145), as far as there are vectors for them.
pub(crate) fn lines() -> u32 {
    (32 * ((sysreg::read(ICTR) & 0xF) + 1)).min(MAX_LINES)
}

/// Returns the Secure lines that would interrupt if the hypervisor did not run, of one word.
fn pending(word: usize) -> u32 {
    let secure = !sysreg::read(NVIC_ITNS + 4 * word);
    sysreg::read(NVIC_ISPR + 4 * word) & sysreg::read(NVIC_ISER + 4 * word) & secure
}

/// Tells whether a line, or the timer of the second pCPU, would interrupt if the hypervisor did not run.
pub(crate) fn is_pending() -> bool {
    (0..WORDS).any(|word| pending(word) != 0) || pair::second_stack().is_some() && pair::has_ticked()
}

/// Takes a line that would interrupt if the hypervisor did not run. The line is then no longer pending.
pub(crate) fn take_pending() -> Option<u32> {
    for word in 0..WORDS {
        let pending = pending(word);
        if pending != 0 {
            let line = 32 * word as u32 + pending.trailing_zeros();
            strike(NVIC_ICPR, line);
            return Some(line);
        }
    }
    None
}

impl Interrupts {
    pub(crate) fn new(pool: &mut Pool) -> Self {
        Self {
            routes: pool.table(None, lines() as usize).unwrap_or(&mut []),
            of: [[0; WORDS]; MAX_PARTITIONS],
            own: [0; WORDS],
            shared: [0; WORDS],
            held: [0; WORDS],
            admitted: [u32::MAX; WORDS],
            enabled: [0; WORDS],
            is_shared: false,
            deferred: [0; WORDS],
        }
    }

    pub(crate) fn route_of(&self, line: u32) -> Option<Route> {
        self.routes.get(line as usize).copied().flatten()
    }

    /// Makes a line the hypervisor's own, and opens it.
    pub(crate) fn own(&mut self, line: u32) {
        self.reserve(line);
        strike(NVIC_ISER, line);
    }

    /// Keeps a line from the VMs, and masks it until [`Interrupts::own`].
    pub(crate) fn reserve(&mut self, line: u32) {
        insert(&mut self.own, line);
        remove(&mut self.shared, line);
    }

    /// Gives a line to a partition.
    pub(crate) fn give(&mut self, line: u32, route: Route) {
        if let Some(slot) = self.routes.get_mut(line as usize) {
            *slot = Some(route);
            remove(&mut self.shared, line);
            if let Some(lines) = self.of.get_mut(usize::from(route.partition.0)) {
                insert(lines, line);
            }
        }
    }

    fn all_of(&self, partition: PartitionId) -> Lines {
        let none = [0; WORDS];
        self.of.get(usize::from(partition.0)).copied().unwrap_or(none)
    }

    /// Tells whether a partition owns lines.
    pub(crate) fn has_lines(&self, partition: PartitionId) -> bool {
        let lines = self.of.get(usize::from(partition.0));
        lines.is_some_and(|lines| !is_empty(lines))
    }

    /// Tells whether a line of a partition has interrupted and waits for it.
    pub(crate) fn is_held(&self, partition: PartitionId) -> bool {
        let lines = self.all_of(partition);
        lines.iter().zip(&self.held).any(|(own, held)| own & held != 0)
    }

    /// Makes the lines of virtual devices Non-secure for good. At boot, when all others have an owner.
    fn share(&mut self) {
        for (word, shared) in (0..WORDS).zip(self.shared) {
            sysreg::write(NVIC_ITNS + 4 * word, shared);
        }
        self.is_shared = true;
    }

    /// Makes the lines of a VM Non-secure, with nothing enabled. Called before the VM's world is put into the
    /// hardware.
    pub(crate) fn lend(&mut self, partition: PartitionId) {
        if !self.is_shared {
            self.share();
        }
        if !self.has_lines(partition) {
            return;
        }
        for (word, own) in (0..WORDS).zip(self.all_of(partition)) {
            if own != 0 {
                sysreg::write(NVIC_ICER + 4 * word, own);
                let others = sysreg::read(NVIC_ITNS + 4 * word);
                sysreg::write(NVIC_ITNS + 4 * word, others | own);
            }
        }
    }

    /// Takes the Non-secure lines back from a VM whose lines have been saved, but for those whose handlers
    /// are `active`: with the priority of the hypervisor, an active line would keep everything from the CPU.
    pub(crate) fn take_back(&self, partition: PartitionId, active: &Lines) {
        if !self.has_lines(partition) {
            return;
        }
        for ((word, own), active) in (0..WORDS).zip(self.all_of(partition)).zip(active) {
            let own = own & !active;
            if own != 0 {
                let others = sysreg::read(NVIC_ITNS + 4 * word);
                sysreg::write(NVIC_ICER + 4 * word, own);
                sysreg::write(NVIC_ITNS + 4 * word, others & !own);
                self.lower(word, own);
            }
        }
    }

    /// Gives these lines of a word the priority of the hypervisor.
    fn lower(&self, word: usize, mut lines: u32) {
        while lines != 0 {
            let line = 32 * word + lines.trailing_zeros() as usize;
            control_space().write8(NVIC_IPR + line, 0);
            lines &= lines - 1;
        }
    }

    /// Lets the lines that a VM has enabled interrupt the hypervisor, but for those whose handlers are
    /// `active`, which the VM has still.
    pub(crate) fn watch(&mut self, partition: PartitionId, enabled: &Lines, active: &Lines) {
        if !self.has_lines(partition) {
            return;
        }
        let lines = self.all_of(partition).into_iter().zip(enabled).zip(active);
        for (word, ((own, enabled), active)) in lines.enumerate() {
            if own == 0 {
                continue;
            }
            if let Some(slot) = self.enabled.get_mut(word) {
                *slot = *slot & !own | own & enabled & !active;
            }
            self.apply(word);
        }
    }

    /// Stops watching the lines of a VM that runs again. Those that interrupted become `pending` for the VM.
    pub(crate) fn unwatch(&mut self, partition: PartitionId, pending: &mut Lines) {
        if !self.has_lines(partition) {
            return;
        }
        let own = self.all_of(partition);
        let watched = self.enabled.iter_mut().zip(&mut self.held);
        for (((enabled, held), own), pending) in watched.zip(own).zip(pending) {
            *enabled &= !own;
            *pending |= *held & own;
            *held &= !own;
        }
    }

    /// Opens and closes the lines of partitions of one word.
    fn apply(&self, word: usize) {
        let at = |lines: &Lines| lines.get(word).copied().unwrap_or(0);
        let open = at(&self.enabled) & !at(&self.held) & at(&self.admitted);
        sysreg::write(NVIC_ICER + 4 * word, at(&self.enabled) & !open);
        sysreg::write(NVIC_ISER + 4 * word, open);
    }

    /// Holds a line that has interrupted, until its VM runs.
    pub(crate) fn hold(&mut self, line: u32) {
        insert(&mut self.held, line);
        strike(NVIC_ICER, line);
    }

    /// Lets the lines that are held interrupt once more. Grows with the words of lines.
    pub(crate) fn repeat(&mut self) {
        for word in 0..WORDS {
            if let Some(held) = self.held.get_mut(word).map(core::mem::take) {
                sysreg::write(NVIC_ISPR + 4 * word, held);
                self.apply(word);
            }
        }
    }

    /// Forgets everything about the lines of a partition that starts anew or has ended.
    pub(crate) fn forget(&mut self, partition: PartitionId) {
        for (word, own) in (0..WORDS).zip(self.all_of(partition)) {
            if let (Some(enabled), Some(held)) = (self.enabled.get_mut(word), self.held.get_mut(word)) {
                *enabled &= !own;
                *held &= !own;
            }
            sysreg::write(NVIC_ICER + 4 * word, own);
            sysreg::write(NVIC_ICPR + 4 * word, own);
        }
    }

    /// Lets only these lines of partitions interrupt from now on. Interrupts of the other lines stay pending.
    pub(crate) fn admit(&mut self, lines: Lines) {
        self.admitted = lines;
        for word in 0..WORDS {
            if self.enabled.get(word).is_some_and(|enabled| *enabled != 0) {
                self.apply(word);
            }
        }
    }

    /// Masks a line that has interrupted until [`Interrupts::reopen`].
    pub(crate) fn defer(&mut self, line: u32) {
        insert(&mut self.deferred, line);
        strike(NVIC_ICER, line);
        strike(NVIC_ISPR, line);
    }

    /// Opens the lines that were masked.
    pub(crate) fn reopen(&mut self) {
        for (word, deferred) in (0..WORDS).zip(&mut self.deferred) {
            if *deferred != 0 {
                sysreg::write(NVIC_ISER + 4 * word, *deferred);
                *deferred = 0;
            }
        }
    }
}
