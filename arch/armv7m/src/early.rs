// SPDX-License-Identifier: Apache-2.0
//! Handlers that start early: while the hypervisor still works, or while another guest runs.
//!
//! The manifest can say of one partition that the handlers of its devices start *early*, and for how long
//! they may run so. Its lines have the priority that preempts the hypervisor, as prompt lines have
//! (`arrival`). While the partition sleeps in a thread that nothing masks, it is *armed*: the way into the
//! handlers is known (`starts`). When such a line interrupts then, its handler in `early_entry` masks the
//! line, keeps all that it interrupts (registers, protection unit, fault status), loads the partition's
//! regions and registers, and returns into the guest's handler: unprivileged, in Thread mode, on the
//! partition's stack, over the hypervisor's own exception (CCR.NONBASETHRDENA).
//!
//! **The end.** The start is over at the first thing that the guest's handler cannot do alone: its end, a
//! replaced instruction, an access that is refused, a call. BASEPRI keeps all exceptions away that the
//! hypervisor itself is a handler of, so each of these is a HardFault. SysTick ends the start when the time
//! is over. The end keeps the guest's registers here, gives the CPU back as it was, and asks for PendSV.
//! Nothing of what ended the start has been done: the guest is at that instruction, executes it when it
//! goes on as any vCPU does, and has its trap then. So a fault, a call, a budget are the kernel's business
//! as ever, and the kernel never knows of an early start: it is told of the line's interrupt.
//!
//! **No state is shared.** Between arming and the end neither the guest's context nor its virtual CPU is
//! touched. The next verb about the vCPU *settles*: it disarms, and tells the virtual CPU of a handler that
//! has started. All of this interrupts the hypervisor and has ended before the hypervisor goes on, so plain
//! words and one exchange of the state are enough.
//!
//! **Bounds.** A line is masked from its early start until its handler has ended in the guest's own time, so
//! there is at most one early start for each time that the guest ran and slept again. A second line, or one
//! that comes while the partition is not armed, takes the usual way. An early start takes the time of the
//! interrupted work: at most the manifest's time, and the time of the way in and out.

use crate::context::{Context, Pending, RETURN_BASIC};
use crate::live::Live;
use crate::machine::Machine;
use crate::masks;
use crate::starts::{EARLY, IS_THERE, arm, disarm, has_ended, load, store, store_all};
use crate::sysreg::{self, CCR_ALIGNED, CCR_DIVISION, ICSR};
use bulkhead_arch_api::{Exit, Line, VcpuId, VcpuSet};
use bulkhead_arch_armv7m_core::status::IMPRECISERR;
use bulkhead_arch_armv7m_core::{Guest, LineEntry, frame_size};

/// CCR.NONBASETHRDENA (B3.2.8).
const THREAD_ABOVE: u32 = 1;
/// ICSR.PENDSVSET and PENDSVCLR (B3.2.4).
const SET_PENDSV: u32 = 1 << 28;
const CLEAR_PENDSV: u32 = 1 << 27;
/// Number of HardFault.
const HARD_FAULT: u32 = 3;
/// SVC with any number, but for its number (A7.7.175).
const SVC: u16 = 0xDF00;
/// Vectors before the first line's.
const SYSTEM_VECTORS: u32 = 16;

impl Machine {
    /// Lets handlers of this vCPU start early, if its next interrupt is a plain one. Called when the vCPU
    /// has begun to sleep.
    pub(crate) fn arm_early(&mut self, vcpu: VcpuId) {
        if !IS_THERE || self.early != Some(vcpu) {
            return;
        }
        let Some(context) = self.contexts.get(vcpu) else {
            return;
        };
        let Some(space) = self.spaces.get(context.partition) else {
            return;
        };
        let live = Live::new(&mut context.registers, space);
        let Some(entry) = context.core.line_entry(&live) else {
            return;
        };
        let vectors = 4 * (SYSTEM_VECTORS + u32::from(self.model.lines));
        if !space.writable(entry.frame, frame_size(false)) || !space.readable(entry.vectors, vectors) {
            return;
        }
        let LineEntry {
            frame,
            mut words,
            vectors,
        } = entry;
        let [.., pc, _] = &mut words;
        *pc = vectors;
        store_all(&EARLY.words, &words);
        store_all(&EARLY.general, &context.registers.general);
        store(&EARLY.frame, frame);
        store(&EARLY.regions, space.loaded.registers().as_ptr() as u32);
        let division = context.core.configuration() & CCR_DIVISION;
        store(&EARLY.configuration, CCR_ALIGNED | THREAD_ABOVE | division);
        masks::close(&mut context.masks);
        arm();
    }

    /// Lets no handler of this vCPU start early before it sleeps again. If one has, its virtual CPU is told.
    /// Returns the line then. Called by every verb that reads or changes the vCPU.
    #[inline]
    pub(crate) fn settle_early(&mut self, vcpu: VcpuId) -> Option<Line> {
        if !IS_THERE || self.early != Some(vcpu) {
            return None;
        }
        let line = self.settle(vcpu)?;
        // Not each verb can tell the kernel: it is told by the exit of PendSV.
        self.early_untold = Some(line);
        sysreg::write(ICSR, SET_PENDSV);
        Some(line)
    }

    /// Tells whether the kernel is to be told of an early start of this vCPU.
    #[inline(always)]
    pub(crate) fn has_untold_early(&self, vcpu: VcpuId) -> bool {
        IS_THERE && self.early == Some(vcpu) && (has_ended() || self.early_untold.is_some())
    }

    /// Forgets that the kernel is to be told: the vCPU runs, or starts anew.
    #[inline(always)]
    pub(crate) fn forget_early(&mut self, vcpu: VcpuId) {
        if IS_THERE && self.early == Some(vcpu) && self.early_untold.take().is_some() {
            sysreg::write(ICSR, CLEAR_PENDSV);
        }
    }

    #[inline(never)]
    fn settle(&mut self, vcpu: VcpuId) -> Option<Line> {
        if !disarm() {
            return None;
        }
        sysreg::write(ICSR, CLEAR_PENDSV);
        let line = load(&EARLY.line);
        self.irq.hold(line);
        let context = self.contexts.get(vcpu)?;
        let space = self.spaces.get(context.partition)?;
        let virtual_line = self.irq.route_of(line)?.virtual_line;
        masks::take_slowly(&context.masks, &mut context.core);
        context
            .core
            .line_entered(&Live::new(&mut context.registers, space), virtual_line);
        let registers = &mut context.registers;
        for (register, kept) in registers.general.iter_mut().zip(&EARLY.general) {
            *register = load(kept);
        }
        registers.frame = load(&EARLY.frame);
        registers.exc_return = RETURN_BASIC;
        if space.writable(registers.frame, frame_size(false)) {
            finish_call(context, space);
        } else {
            // The stack pointer has left the RAM, so there is no frame to go on with.
            context.pending = Pending::Stuck;
        }
        if load(&EARLY.faults) & IMPRECISERR != 0 {
            context.core.late_bus_fault();
        }
        Some(Line(line))
    }

    /// Returns the exit for an early start that has not been told yet.
    #[inline(never)]
    pub(crate) fn early_exit(&mut self) -> Option<Exit> {
        let vcpu = self.early.filter(|_| IS_THERE)?;
        let untold = self.early_untold.take();
        let line = self.settle(vcpu).or(untold)?;
        Some(Exit::Device(VcpuSet::of(vcpu), line))
    }
}

/// Does the guest's SVC, if that has ended the early start. Unlike all other instructions that end one, it is
/// over already: the frame has the address after it. An SVC leaves no mark in CFSR. No code after an SVC is
/// executed in an early start, unless it is jumped to, because the SVC ends the start.
fn finish_call(context: &mut Context, space: &crate::protection::Space) {
    if load(&EARLY.end) != HARD_FAULT || load(&EARLY.faults) & !IMPRECISERR != 0 {
        return;
    }
    let mut live = Live::new(&mut context.registers, space);
    let before = live.pc().wrapping_sub(2);
    if live.fetch(before).is_some_and(|code| code & 0xFF00 == SVC)
        && context.core.supervisor_call(&mut live).is_err()
    {
        context.pending = Pending::Stuck;
    }
}
