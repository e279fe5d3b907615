// SPDX-License-Identifier: Apache-2.0
//! The switch between vCPUs of a pCPU, and the last look at a vCPU before it is entered.

use crate::context::{Context, RAX, RSP};
use crate::emulate::woken;
use crate::machine::Machine;
use crate::platform::{Local, News};
use crate::{entry, nmi, platform, predictions, svm, sysreg};
use bulkhead_arch_api::{Exit, Ticks, TimeMode, VcpuSet};
use bulkhead_arch_x86_64_core::lapic::Window;
use bulkhead_arch_x86_64_core::time::own_time;
use core::sync::atomic::Ordering;

/// RFLAGS.IF.
const INTERRUPTS_ON: u64 = 1 << 9;
/// Bit 0 of the interrupt state: the shadow of STI or MOV SS.
const SHADOW: u64 = 1;

impl Machine {
    /// Makes a vCPU the one whose floating-point registers are in the hardware.
    #[inline(never)]
    pub(crate) fn switch_to(&mut self, context: &mut Context) {
        let before = core::mem::replace(&mut self.current, context);
        let save = if before.is_null() {
            core::ptr::null_mut()
        } else {
            // SAFETY: `current` is the context of an adopted vCPU or null, and `context` is another one's:
            // this pCPU alone refers to both, and holds no other reference to the one before.
            let before = unsafe { &mut *before };
            leave(before);
            before.fp.0.as_mut_ptr()
        };
        // SAFETY: both are 512 bytes at a multiple of 16, or null where that is allowed.
        unsafe { entry::bulkhead_fp_switch(save, context.fp.0.as_ptr()) }
        sysreg::write_msr(sysreg::TSC_AUX, context.auxiliary);
        if context.rare {
            self.load_rare(context);
        }
    }

    /// Does the rest of a switch to a vCPU that is not as most are.
    #[inline(never)]
    fn load_rare(&mut self, context: &mut Context) {
        self.predictions
            .belong_to(context.plan.partition, predictions::forget);
        if let Some(debug) = context.debug {
            sysreg::write_debug(debug);
        }
        if context.plan.time == TimeMode::Frozen {
            thaw(context);
        }
        context.forget |= context.shares_space;
    }

    /// Takes the current vCPU's floating-point registers out of the hardware.
    pub(crate) fn unload(&mut self) {
        let before = core::mem::take(&mut self.current);
        if before.is_null() {
            return;
        }
        // SAFETY: as in `switch_to`.
        let before = unsafe { &mut *before };
        leave(before);
        let registers = before.fp.0.as_mut_ptr();
        // SAFETY: 512 bytes at a multiple of 16; the registers are loaded with what they hold.
        unsafe { entry::bulkhead_fp_switch(registers, registers) }
    }

    /// Prepares an entry: interrupts are delivered, or asked for as soon as the guest can take them. Returns
    /// the exit to make instead.
    ///
    /// A look at the interrupts is dear. It is left out where the last one found nothing to deliver, and
    /// neither the guest nor anybody else has changed anything since.
    #[inline(always)]
    pub(crate) fn prepare(&mut self, context: &mut Context) -> Option<Exit> {
        let looks = core::mem::take(&mut self.looks);
        if context.is_task() {
            self.set_timer(Ticks::NEVER);
        } else if let Some(local) = platform::local(context.id) {
            let news = platform::take_news(local);
            if news.is_any() || looks {
                let exit = self.look(context, local, news);
                if exit.is_some() {
                    return exit;
                }
            } else {
                self.set_timer(context.due);
            }
        }
        context.vmcb.forget_space(core::mem::take(&mut context.forget));
        context.vmcb.set(svm::EVENT, context.event);
        context.event = 0;
        context.vmcb.set(svm::RAX, context.general(RAX));
        context.vmcb.set(svm::RSP, context.general(RSP));
        None
    }

    /// Looks at the interrupts of a vCPU. Returns the exit to make instead of an entry.
    #[inline(always)]
    fn look(&mut self, context: &mut Context, local: &Local, news: News) -> Option<Exit> {
        if news.has_event() || context.starting.0 != 0 {
            let exit = self.take_events(context);
            if exit.is_some() {
                return exit;
            }
        }
        let now = context.now();
        let first = platform::vm_of_first(&context.plan);
        let mut pit = platform::pit_due(first);
        if pit <= now {
            let exit = self.advance_pit(context, now);
            if exit.is_some() {
                return exit;
            }
            pit = platform::pit_due(first);
        }
        if platform::external_asks(first) || context.step.is_some() {
            self.deliver_rarely(context, local, now, pit);
        } else {
            self.deliver(context, local, now, pit);
        }
        None
    }

    /// Takes what others have for the vCPU beside interrupts, and starts what it has started itself.
    #[inline(never)]
    fn take_events(&mut self, context: &mut Context) -> Option<Exit> {
        if context.starting.0 != 0 {
            self.looks = true;
            return Some(start_next(context));
        }
        if platform::take_init(context.id) {
            return Some(Exit::CpuOff);
        }
        nmi::deliver(context);
        None
    }

    /// Lets the PIT interrupt. Returns the exit for vCPUs that are to be told.
    #[inline(never)]
    fn advance_pit(&mut self, context: &Context, now: u64) -> Option<Exit> {
        let mut wake = platform::advance_pit(context.plan.partition, now, self.pcpu);
        wake.0 &= !VcpuSet::of(context.id).0;
        self.looks = true;
        woken(wake)
    }

    /// Lets the timer of the local APIC expire, sets the pCPU's own timer for the next time, and chooses the
    /// event that the entry delivers. `pit`: when the PIT interrupts next.
    #[inline(never)]
    fn deliver(&mut self, context: &mut Context, local: &Local, now: u64, pit: u64) {
        let mut apic = local.apic();
        apic.advance(now);
        let mut window = Window::Nothing;
        if apic.has_requests() {
            // A vector that the guest cannot take yet makes a window: a reason to exit as soon as it can.
            window = if context.event == 0
                && is_open(context)
                && let Some(vector) = apic.take_deliverable()
            {
                context.event = svm::interrupt(vector);
                Window::Nothing
            } else {
                apic.window()
            };
        }
        let expiry = apic.expiry();
        drop(apic);
        self.settle(context, window, expiry.unwrap_or(u64::MAX).min(pit), now);
    }

    /// Does the same where there is more than the local APIC ([`choose`]).
    #[cold]
    #[inline(never)]
    fn deliver_rarely(&mut self, context: &mut Context, local: &Local, now: u64, pit: u64) {
        let mut apic = local.apic();
        apic.advance(now);
        let expiry = apic.expiry();
        drop(apic);
        let window = choose(context, local);
        self.settle(context, window, expiry.unwrap_or(u64::MAX).min(pit), now);
    }

    /// Asks for the exits that an entry needs: for a window, and at the time `due` of the guest.
    #[inline(always)]
    fn settle(&mut self, context: &mut Context, window: Window, due: u64, now: u64) {
        // Until interrupts are on, every entry looks. A change of the priority looks itself.
        self.looks = window == Window::Interrupts;
        if window != context.window {
            context.window = window;
            context.vmcb.set_window(context.task_priority, window);
        }
        context.due = match due {
            u64::MAX => Ticks::NEVER,
            time => Ticks(own_time(time, context.offset, now)),
        };
        self.set_timer(context.due);
    }

    /// Lets a vCPU be in HLT until there is an interrupt for it: here on a pCPU that has nothing else to do,
    /// or by an exit. Returns that exit, or another one to be made meanwhile.
    #[inline(always)]
    pub(crate) fn halt(&mut self, context: &mut Context) -> Option<Exit> {
        context.halted = true;
        let exit = self.look_halted(context);
        if exit.is_some() || !context.halted {
            return exit;
        }
        if context.plan.idle_in_place {
            return self.stay_halted(context);
        }
        let until = next_of(context);
        context.idle_until = until.0;
        Some(Exit::Idle { until })
    }

    /// Looks at the interrupts of a vCPU in HLT, which is over if there is one.
    ///
    /// As before an entry, a look is left out if nothing has changed since the last one, which has found
    /// nothing to deliver: neither an interrupt nor a time before `due`.
    #[inline(always)]
    fn look_halted(&mut self, context: &mut Context) -> Option<Exit> {
        let local = platform::local(context.id)?;
        // Before the look, so that a change after it is seen by the next one.
        let looks = core::mem::take(&mut self.looks);
        let news = platform::take_news(local);
        if news.is_any() || looks {
            let exit = self.look(context, local, news);
            if exit.is_some() {
                return exit;
            }
        }
        context.halted = context.event == 0;
        None
    }

    /// Waits for what ends the HLT, on a pCPU that has nothing else to do.
    #[inline(never)]
    fn stay_halted(&mut self, context: &mut Context) -> Option<Exit> {
        loop {
            self.set_timer(next_of(context));
            let vector = wait(context);
            let exit = self.handle_vector(vector);
            if exit.is_some() {
                return exit;
            }
            let exit = self.look_halted(context);
            if exit.is_some() || !context.halted {
                return exit;
            }
        }
    }

    /// Returns until when an idle vCPU rests: in the past if there is something to do.
    pub(crate) fn rest(&mut self, context: &mut Context) -> Ticks {
        if context.is_task() {
            return Ticks::NEVER;
        }
        if has_work_at(context, context.now()) {
            return Ticks(0);
        }
        next_of(context)
    }

    /// Tells whether a vCPU that rests has something to do.
    pub(crate) fn has_work_for(&mut self, context: &mut Context) -> bool {
        has_work_at(context, context.now())
    }
}

/// Chooses the event that the entry delivers where there is a step over an instruction, or the 8259 asks.
/// Returns the window for what has to wait.
#[inline(never)]
fn choose(context: &mut Context, local: &Local) -> Window {
    if context.step.is_some() {
        // After the step is an exit. An event that comes before the step ends it.
        if context.event != 0 {
            nmi::give_up(context);
        }
        return Window::Nothing;
    }
    let takes = context.event == 0 && is_open(context);
    let asks = platform::external_asks(platform::vm_of_first(&context.plan));
    let mut apic = local.apic();
    if asks && apic.passes_external() {
        if !takes {
            return Window::Interrupts;
        }
        // The 8259 comes first, as its interrupts have no priority here. Its lock comes before this one.
        drop(apic);
        let vector = platform::take_external(context.plan.partition);
        context.event = vector.map_or(0, svm::interrupt);
        return local.apic().window();
    }
    let vector = if takes { apic.take_deliverable() } else { None };
    if let Some(vector) = vector {
        context.event = svm::interrupt(vector);
        return Window::Nothing;
    }
    apic.window()
}

/// Tells whether a vCPU that rests has something to do. `now`: in the guest's ticks.
fn has_work_at(context: &mut Context, now: u64) -> bool {
    if context.is_task() {
        return false;
    }
    let is_told = platform::has_event_for(context.id, context.in_nmi);
    if context.starting.0 != 0 || is_told || context.event != 0 {
        return true;
    }
    let first = platform::vm_of_first(&context.plan);
    if platform::pit_due(first) <= now {
        return true;
    }
    if context.vmcb.get(svm::RFLAGS) & INTERRUPTS_ON == 0 {
        return false;
    }
    let Some(mut apic) = platform::apic(context.id) else {
        return false;
    };
    apic.advance(now);
    apic.deliverable().is_some() || platform::external_asks(first) && apic.passes_external()
}

/// Waits for an interrupt, and takes it. The time is the vCPU's, which has the pCPU to itself, so it is
/// counted here that it was not used.
fn wait(context: &Context) -> u8 {
    let Some(counters) = context.counters else {
        return sysreg::wait_for_interrupt();
    };
    let since = sysreg::counter();
    counters.waiting.store(since, Ordering::Relaxed);
    let vector = sysreg::wait_for_interrupt();
    let waited = counters.waited.load(Ordering::Relaxed);
    let total = waited.wrapping_add(sysreg::counter().wrapping_sub(since));
    counters.waited.store(total, Ordering::Relaxed);
    counters.waiting.store(0, Ordering::Relaxed);
    vector
}

/// Tells whether the guest takes interrupts.
#[inline(always)]
fn is_open(context: &Context) -> bool {
    let vmcb = &context.vmcb;
    vmcb.get(svm::RFLAGS) & INTERRUPTS_ON != 0 && vmcb.get(svm::SHADOW) & SHADOW == 0
}

/// Returns when the vCPU's own timers interrupt a vCPU in HLT next, in the hypervisor's ticks, as of the last
/// look.
fn next_of(context: &Context) -> Ticks {
    if context.vmcb.get(svm::RFLAGS) & INTERRUPTS_ON == 0 {
        return Ticks::NEVER;
    }
    context.due
}

/// Returns the exit for the next vCPU that a start-up IPI names.
#[cold]
fn start_next(context: &mut Context) -> Exit {
    let (set, page) = context.starting;
    let target = set.trailing_zeros() as u8;
    context.starting = (set & set.wrapping_sub(1), page);
    Exit::CpuOn {
        target,
        entry: bulkhead_arch_api::GuestPhys(u64::from(page) << 12),
        argument: 0,
    }
}

/// Notes that a vCPU is not current any more.
fn leave(context: &mut Context) {
    if let Some(debug) = &mut context.debug {
        *debug = sysreg::read_debug();
    }
    if context.plan.time == TimeMode::Frozen {
        context.since = sysreg::counter();
    }
}

/// Moves the guest's time back by the time for which the vCPU was ready but not current. A vCPU with frozen
/// time is the only one of its VM.
fn thaw(context: &mut Context) {
    if context.since != 0 {
        let since = context.since.max(context.idle_until);
        let stood = sysreg::counter().saturating_sub(since);
        context.offset = context.offset.wrapping_sub(stood);
        context.vmcb.set(svm::TSC_OFFSET, context.offset);
    }
}
