// SPDX-License-Identifier: Apache-2.0
//! A vCPU that takes the interrupts of its pCPU itself.
//!
//! INTR and HLT are not intercepted, and V_INTR_MASKING is 0 (AMD APM volume 2, 15.21.1). The guest's IF
//! masks physical interrupts, which the processor delivers by the guest's own table. The 8259 is at LINT0 of
//! that pCPU alone, and ends interrupts by itself where the guest says so (AEOI), so an interrupt is no exit.
//! The registers of the local APIC stay emulated: those in memory are one page, and with the register
//! that ends an interrupt a guest would have the one that interrupts and resets other pCPUs.
//!
//! The hypervisor reaches such a pCPU by a non-maskable interrupt, which leaves the guest in any state.
//! Its reason is in a note, because the interrupt itself is lost if the hypervisor runs there.

use crate::board::BOARD;
use crate::context::Context;
use crate::machine::Machine;
use crate::note::{self, KICKED, SIGNALLED};
use crate::{entry, physical, svm, sysreg};
use bulkhead_arch_api::{Cpus, Exit, Ticks};

/// Interrupts taken before the guest is entered: interrupts of the hypervisor's own that may be pending.
const BURST: usize = 4;
/// A pCPU without its guest looks for notes so many times in a second, because it can miss the interrupt.
const LOOKS: u64 = 1000;
/// The mask of the master 8259.
const PIC_MASK: u16 = 0x21;
/// The exit code of a guest that was not entered. No exit has it.
const NOT_ENTERED: u64 = u64::MAX - 1;

/// Masks the 8259, which a guest that is stopped has left as it was.
pub(crate) fn silence() {
    sysreg::write_port8(PIC_MASK, 0xFF);
}

/// The outcome of an entry of a vCPU that takes the interrupts of its pCPU itself.
pub(crate) enum Entered {
    /// The guest ran, and has left by an exit.
    Ran,
    /// A note came just before, and was taken. The vCPU is to be prepared anew.
    Noted,
    /// The kernel is needed. The guest did not run.
    Left(Exit),
}

impl Machine {
    /// Makes this pCPU one whose vCPU takes interrupts itself.
    pub(crate) fn own_direct(&mut self) {
        self.direct = true;
        note::own(self.own_id());
        silence();
        physical::open_external();
    }

    /// Returns the APIC id of this pCPU.
    fn own_id(&self) -> usize {
        let ids = BOARD.get().map(|board| &board.hardware_ids);
        let id = ids.and_then(|ids| ids.get(usize::from(self.pcpu.0)));
        id.map_or(usize::MAX, |id| *id as usize)
    }

    /// Takes the note for this pCPU. Returns the exit that it asks for.
    pub(crate) fn take_note(&mut self) -> Option<Exit> {
        if !self.direct {
            return None;
        }
        let pieces = note::take(self.own_id());
        self.looks |= pieces & KICKED != 0;
        (pieces & SIGNALLED != 0).then_some(Exit::Signal)
    }

    /// Returns when a pCPU that waits looks for a note again.
    pub(crate) fn next_look(&mut self) -> Ticks {
        if !self.direct {
            return Ticks::NEVER;
        }
        if core::mem::take(&mut self.quiet) {
            // The timer stands still, for whichever time it was set.
            self.armed = Ticks(0);
        }
        let board = BOARD.get();
        Ticks(sysreg::counter() + board.map_or(0, |board| board.hertz / LOOKS))
    }

    /// Stops the pCPU's timer, and takes what the hypervisor's own interrupts have left pending.
    fn quieten(&mut self) -> Option<Exit> {
        if core::mem::replace(&mut self.quiet, true) {
            return None;
        }
        self.armed = Ticks(0);
        self.set_timer(Ticks::NEVER);
        (0..BURST).find_map(|_| self.take_interrupt())
    }

    /// Does what precedes the run of a vCPU that takes the interrupts of its pCPU itself. Returns an exit if
    /// something needs the kernel.
    ///
    /// A deadline is set only when another pCPU stops the vCPU's partition too often. The vCPU is held until
    /// then, because nothing could end its turn at that time.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_direct(&mut self) -> Option<Exit> {
        let exit = self.quieten();
        if exit.is_none() && self.deadline != Ticks::NEVER {
            return Some(self.hold());
        }
        exit
    }

    /// Waits for the kernel's deadline, with the 8259 masked.
    fn hold(&mut self) -> Exit {
        let mask = sysreg::read_port8(PIC_MASK);
        silence();
        let exit = self.wait();
        sysreg::write_port8(PIC_MASK, mask);
        exit
    }

    /// Enters the guest, unless a note says that this pCPU is wanted.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter_direct(&mut self, context: &mut Context) -> Entered {
        let note = note::place(self.own_id());
        if note.is_null() {
            // No board has such a processor: the ids of class x86_64 are bytes.
            return Entered::Left(Exit::Failed { code: NOT_ENTERED });
        }
        context.vmcb.set(svm::EXIT_CODE, NOT_ENTERED);
        // SAFETY: as in `run_noted`; the note is a byte that lives for ever, and is only read.
        unsafe { entry::bulkhead_enter_direct(context, self.host, note) }
        if context.vmcb.get(svm::EXIT_CODE) == NOT_ENTERED {
            context.event = context.vmcb.get(svm::EVENT);
            return self.take_note().map_or(Entered::Noted, Entered::Left);
        }
        Entered::Ran
    }
}
