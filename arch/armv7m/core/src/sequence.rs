// SPDX-License-Identifier: Apache-2.0
//! Entry and return of the guest's exceptions (Arm DDI 0403E.e, B1.5.6 to B1.5.11), on its own frames.
//!
//! Entry: the live frame stays where it is and becomes the exception frame. A new frame below the main stack
//! becomes the live one. It has the same registers, but the handler's PC, LR and xPSR. So the CPU pops itself
//! into the handler and leaves the main stack pointer where the architecture wants it.
//!
//! Return: the attempt to execute an EXC_RETURN value has pushed a frame, which is forgotten. The frame that
//! the guest's stack pointer points to becomes the live one. If another exception is urgent enough then,
//! nothing is popped: its handler starts on the same exception frame (tail-chaining).
//!
//! Where the architecture leaves registers UNKNOWN (r0-r3, r12 and the flags in a handler), they keep
//! the values the interrupted code had.

use crate::exception::{ExcReturn, Exception, Stack, Target, frame_size};
use crate::fault::{Fault, Lockup, UsageStatus};
use crate::guest::Guest;
use crate::processor::VirtualCore;
use crate::status::{MSTKERR, MUNSTKERR};

/// xPSR: the frame was moved down by 4 bytes to be aligned.
pub(crate) const PADDED: u32 = 1 << 9;
const THUMB: u32 = 1 << 24;
/// The flags N, Z, C, V, Q and GE.
pub(crate) const FLAGS: u32 = 0xF80F_0000;
pub(crate) const IPSR: u32 = 0x1FF;
/// Bytes of a frame without floating-point registers.
const BASIC: u32 = 0x20;
/// SCR.SLEEPONEXIT.
const SLEEPONEXIT: u32 = 1 << 1;
/// CCR.NONBASETHRDENA.
const NONBASETHRDENA: u32 = 1;

/// The next step after a trap has been handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Return to the guest.
    Run,
    /// The guest sleeps until [`VirtualCore::has_work`].
    Sleep,
}

impl VirtualCore {
    /// Returns the guest's stack pointer, as it sees it: above the live frame.
    #[must_use]
    pub fn stack_pointer(&self, guest: &impl Guest) -> u32 {
        let padding = if guest.xpsr() & PADDED != 0 { 4 } else { 0 };
        guest
            .frame()
            .wrapping_add(frame_size(guest.extended()))
            .wrapping_add(padding)
    }

    /// Takes the most urgent exception if it is urgent enough. To be called before every return to
    /// the guest; [`VirtualCore::advance`] before it.
    ///
    /// # Errors
    /// [`Lockup`]: the CPU would stop here for good.
    pub fn deliver(&mut self, guest: &mut impl Guest) -> Result<(), Lockup> {
        match self.pending() {
            Some(exception) => self.enter(guest, exception),
            None => Ok(()),
        }
    }

    /// Does what [`VirtualCore::deliver`] does, on the shortest way: after what ends no line, does nothing to
    /// the timer, and has not changed anything that the backend has to act on ([`VirtualCore::has_changed`]).
    /// False if something remains to be done before the guest goes on.
    ///
    /// # Errors
    /// [`Lockup`]: the CPU would stop here for good.
    #[inline(always)]
    pub fn deliver_quickly(&mut self, guest: &mut impl Guest) -> Result<bool, Lockup> {
        let Some(exception) = self.pending() else {
            return Ok(true);
        };
        self.enter(guest, exception)?;
        Ok(self.view_is_shown())
    }

    /// Does what [`VirtualCore::supervisor_call`] does, on the shortest way, for a thread that nothing masks,
    /// while nothing waits. False, and nothing has been done, if it is not so.
    ///
    /// # Errors
    /// [`Lockup`]: the CPU would stop here for good.
    pub fn call_quickly(&mut self, guest: &mut impl Guest) -> Result<bool, Lockup> {
        if !self.is_open() || guest.extended() {
            return Ok(false);
        }
        self.enter(guest, Exception::SUPERVISOR_CALL)?;
        Ok(true)
    }

    /// Takes `exception`, which has just happened and may be taken, unless a more urgent one waits: then it
    /// waits after that.
    pub(crate) fn take(&mut self, guest: &mut impl Guest, exception: Exception) -> Result<(), Lockup> {
        if self.is_most_urgent(exception) {
            return self.enter(guest, exception);
        }
        self.set_pending(exception);
        self.deliver(guest)
    }

    /// Enters `exception`, which interrupts the code of the live frame.
    #[inline(never)]
    fn enter(&mut self, guest: &mut impl Guest, exception: Exception) -> Result<(), Lockup> {
        let mut words = guest.words();
        let extended = guest.extended();
        if extended {
            guest.settle_floating_point();
            self.note_fp_context(guest.frame());
        }
        let stack = self.stack();
        let target = Target {
            handler: self.ipsr != 0,
            stack,
        };
        self.set_banked(stack, guest.frame());
        let [.., xpsr] = words;
        let state = xpsr & !IPSR | u32::from(self.ipsr);
        if state != xpsr {
            guest.set_xpsr(state);
        }
        self.start(guest, exception, ExcReturn::new(target, extended), &mut words)
    }

    /// Starts the handler of `exception`; the exception frame is in place. Registers that the architecture
    /// leaves open come from `words`, which become the frame that leads to the handler. (B1.5.6,
    /// ExceptionTaken.)
    fn start(
        &mut self,
        guest: &mut impl Guest,
        exception: Exception,
        link: ExcReturn,
        words: &mut [u32; 8],
    ) -> Result<(), Lockup> {
        let (exception, vector) = self.fetch_vector(guest, exception)?;
        self.activate(exception);
        self.event = true;
        self.ipsr = u16::from(exception.0);
        self.process_stack = false;
        let [.., lr, pc, xpsr] = words;
        let padding = if self.main_sp & 4 != 0 { PADDED } else { 0 };
        let thumb = if vector & 1 != 0 { THUMB } else { 0 };
        *xpsr = *xpsr & FLAGS | thumb | padding;
        *pc = vector & !1;
        *lr = link.0;
        let address = (self.main_sp & !7).wrapping_sub(BASIC);
        if !guest.push(address, words) {
            return Err(Lockup::HandlerStack {
                exception,
                stack: self.main_sp,
            });
        }
        guest.set_frame(address, false);
        Ok(())
    }

    /// Fetches the vector of `exception`, or HardFault's if it cannot be read (HFSR.VECTTBL, B1.5.6).
    fn fetch_vector(&mut self, guest: &impl Guest, exception: Exception) -> Result<(Exception, u32), Lockup> {
        if let Some(vector) = guest.load(self.vector_address(exception)) {
            return Ok((exception, vector));
        }
        self.hard_fault_status |= 1 << 1;
        let hard = Exception::HARD_FAULT;
        match guest.load(self.vector_address(hard)) {
            Some(vector) if self.execution_priority() > -1 => Ok((hard, vector)),
            _ => Err(Lockup::VectorTable {
                address: self.vector_table,
            }),
        }
    }

    /// Handles the execution of an address of 0xF0000000 or above: in a handler the end of the exception,
    /// in a thread an attempt to execute what no program may. (B1.5.8.)
    ///
    /// # Errors
    /// [`Lockup`]: the CPU would stop here for good.
    pub fn exception_return(&mut self, guest: &mut impl Guest) -> Result<Next, Lockup> {
        if self.ipsr == 0 {
            self.raise(guest, Fault::NO_EXECUTE)?;
            return Ok(Next::Run);
        }
        // The CPU stacked the value as a PC, without its lowest bit, which is 1 in every valid one.
        let value = ExcReturn(guest.register(15) | 1);
        self.main_sp = self.stack_pointer(guest);
        if guest.extended() {
            guest.drop_floating_point();
        }
        let returning = Exception(self.ipsr as u8);
        let listed = self.ipsr <= u16::from(u8::MAX) && self.is_active(returning);
        if listed && returning != Exception::NMI {
            self.faultmask = false;
        }
        if listed {
            self.deactivate(returning);
        }
        let nested = self.any_active();
        let thread_allowed = !nested || self.configuration & NONBASETHRDENA != 0;
        let target = value.target().filter(|target| {
            let level = if target.handler { nested } else { thread_allowed };
            listed && level && (self.model.floating_point || !value.extended())
        });
        let Some(target) = target else {
            return self.refuse_return(guest, value, UsageStatus::INVALID_RETURN);
        };
        if let Some(next) = self.pending() {
            let mut words = guest.words();
            self.start(guest, next, value, &mut words)?;
            return Ok(Next::Run);
        }
        self.unstack(guest, target, value)
    }

    /// Makes the exception frame the live one.
    fn unstack(&mut self, guest: &mut impl Guest, target: Target, value: ExcReturn) -> Result<Next, Lockup> {
        let address = self.banked(target.stack);
        if address & 3 != 0 || !guest.reaches(address, frame_size(value.extended())) {
            self.memory_status(MUNSTKERR);
            let fault = self.escalate(Exception::MEMORY_FAULT)?;
            self.set_pending(fault);
            return self.chain(guest, value);
        }
        let xpsr = guest.load(address.wrapping_add(28)).unwrap_or(0);
        let number = (xpsr & IPSR) as u16;
        if target.handler != (number != 0) {
            return self.refuse_return(guest, value, UsageStatus::INVALID_RETURN);
        }
        self.ipsr = number;
        self.process_stack = target.stack == Stack::Process;
        self.event = true;
        self.is_returning = true;
        guest.set_frame(address, value.extended());
        if number != 0 {
            guest.set_xpsr(xpsr & !IPSR);
        }
        let sleeps = !target.handler && self.system_control & SLEEPONEXIT != 0;
        Ok(if sleeps { Next::Sleep } else { Next::Run })
    }

    /// Refuses a return that is not valid: a UsageFault on the exception frame as it is.
    fn refuse_return(
        &mut self,
        guest: &mut impl Guest,
        value: ExcReturn,
        status: UsageStatus,
    ) -> Result<Next, Lockup> {
        self.usage_status(status);
        let fault = self.escalate(Exception::USAGE_FAULT)?;
        self.set_pending(fault);
        self.chain(guest, value)
    }

    /// Starts the most urgent exception on the exception frame that is there already.
    fn chain(&mut self, guest: &mut impl Guest, value: ExcReturn) -> Result<Next, Lockup> {
        let link = ExcReturn(ExcReturn::LOWEST | value.0);
        // The exception that has just been made pending passed `escalate`, so there is one.
        let exception = self.pending().unwrap_or(Exception::HARD_FAULT);
        let mut words = guest.words();
        self.start(guest, exception, link, &mut words)?;
        Ok(Next::Run)
    }

    /// Handles a live frame that the CPU could not push or pop: the guest's stack pointer points where it may
    /// not write, by the plan of its partition or by its own unit. Its registers but r4-r11 are lost. As on a
    /// chip the stack pointer is below the frame that is not there, and the fault is taken from there
    /// (B1.5.6, derived exceptions). `frame`: that frame's address.
    ///
    /// # Errors
    /// [`Lockup`] if there is no other stack to handle it on.
    pub fn stacking_failed(
        &mut self,
        guest: &mut impl Guest,
        frame: u32,
        fault: Fault,
    ) -> Result<(), Lockup> {
        let stack = self.stack();
        let extended = guest.extended();
        let target = Target {
            handler: self.ipsr != 0,
            stack,
        };
        self.set_banked(stack, frame);
        if stack == Stack::Main && !guest.reaches(frame, frame_size(extended)) {
            return Err(Lockup::HandlerStack {
                exception: Exception::HARD_FAULT,
                stack: frame,
            });
        }
        let exception = self.record(&fault);
        let exception = self.escalate(exception)?;
        self.set_pending(exception);
        let exception = self.pending().unwrap_or(exception);
        self.start(guest, exception, ExcReturn::new(target, extended), &mut [0; 8])
    }

    /// Handles a live frame at `frame` that the CPU could not pop. If the guest itself returns to the frame,
    /// the fault is the guest's. Else the frame belongs to a trap, which there is none of on a chip: the
    /// guest has just lost its rights to its stack, mostly by switching its own unit on. The guest is shown
    /// what a chip finds at the next instruction, and that no frame could be pushed for it.
    ///
    /// # Errors
    /// As for [`VirtualCore::stacking_failed`].
    pub fn unstacking_failed(
        &mut self,
        guest: &mut impl Guest,
        frame: u32,
        fault: Fault,
    ) -> Result<(), Lockup> {
        let fault = match self.guest_regions() {
            Some(view) if !self.is_returning => {
                let (status, address) = self.next_refused(guest, &view);
                let status = status | MSTKERR;
                Fault::Memory { status, address }
            }
            _ => fault,
        };
        self.stacking_failed(guest, frame, fault)
    }

    /// Handles a replaced instruction that could not push its frame, and with the frame its address is lost.
    /// The guest's own processor pushes a frame there only if the instruction has unmasked what waits. So if
    /// one mask alone keeps that waiting, the instruction is taken to have cleared the mask, and
    /// [`VirtualCore::stacking_failed`] tells the fault that this ends in.
    pub fn unmasks(&mut self) {
        let (primask, basepri) = (self.primask, self.basepri);
        if primask {
            self.primask = false;
        } else {
            self.basepri = 0;
        }
        if self.pending().is_none() {
            (self.primask, self.basepri) = (primask, basepri);
        }
    }

    /// Notes that the guest's SVC waits, which could not push its frame: besides the fault that
    /// [`VirtualCore::stacking_failed`] tells, the call waits.
    pub fn call_waits(&mut self) {
        self.set_pending(Exception::SUPERVISOR_CALL);
    }

    /// Moves the live frame so that the guest's stack pointer becomes `stack_pointer`, and changes
    /// whether it has a floating-point part. False, and nothing is changed, if it cannot be there.
    pub(crate) fn move_frame(&self, guest: &mut impl Guest, stack_pointer: u32, extended: bool) -> bool {
        if guest.extended() {
            guest.settle_floating_point();
        }
        let size = frame_size(extended);
        let address = (stack_pointer & !7).wrapping_sub(size);
        if !guest.reaches(address, size) {
            return false;
        }
        let mut words = [0_u32; (frame_size(true) / 4) as usize];
        let old = guest.frame();
        let length = frame_size(guest.extended()).min(size) as usize >> 2;
        for (index, word) in (0_u32..).zip(words.iter_mut().take(length)) {
            *word = guest.load(old.wrapping_add(index << 2)).unwrap_or(0);
        }
        if let Some(state) = words.get_mut(7) {
            let padding = if stack_pointer & 4 != 0 { PADDED } else { 0 };
            *state = *state & !PADDED | padding;
        }
        let words = words.get(..size as usize >> 2).unwrap_or(&words);
        if !write_frame(guest, address, words) {
            return false;
        }
        guest.set_frame(address, extended);
        true
    }
}

/// Writes a frame, all of it or (if the guest may not write all of it) nothing that counts.
fn write_frame(guest: &mut impl Guest, address: u32, words: &[u32]) -> bool {
    let bytes = u32::try_from(words.len()).unwrap_or(u32::MAX).saturating_mul(4);
    guest.reaches(address, bytes)
        && (0_u32..)
            .zip(words)
            .all(|(index, word)| guest.store(address.wrapping_add(index << 2), *word))
}
