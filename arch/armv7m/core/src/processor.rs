// SPDX-License-Identifier: Apache-2.0
//! The state of a virtual CPU, and which of its exceptions is the most urgent (Arm DDI 0403E.e, B1.5.4).

use crate::exception::{Exception, Stack};
use crate::lines::{LINE_WORDS, Lines, NO_PRIORITY};
use crate::mpu::Mpu;
use crate::systick::SysTick;

/// The facts that the guest is told about its chip, besides the facts of the CPU itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// CPUID.
    pub cpuid: u32,
    /// The identification registers from 0xE000ED40 (ID_PFR0) on, and MVFR0 to MVFR2.
    pub features: [u32; 16],
    /// The identification of the system control space: the lowest bytes of the words from 0xE000EFD0 on.
    pub identification: [u8; 12],
    /// Lines of the interrupt controller.
    pub lines: u8,
    /// The bits of a priority that are there.
    pub priority_bits: u8,
    /// SYST_CALIB.
    pub systick_calibration: u32,
    /// Cycles of the processor clock in one of SysTick's reference clock, 0 if there is none.
    pub systick_reference: u32,
    /// Regions of the guest's memory protection unit.
    pub mpu_regions: u8,
    /// True if there is a floating-point unit.
    pub floating_point: bool,
}

/// The changes that a guest made to its virtual CPU and that the backend has to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Changes {
    /// The enables of its lines are others, or it took pending states away.
    pub lines: bool,
    /// Its memory protection unit is another, or what that is asked for: by privilege, HardFault, NMI or
    /// FAULTMASK.
    pub regions: bool,
    /// CPACR, FPCCR, FPDSCR or CCR is another, or a privilege that CPACR asks for.
    pub configuration: bool,
    /// It asked for a reset (AIRCR.SYSRESETREQ).
    pub reset: bool,
}

/// Returns the bits of the system exceptions, numbered by exception.
pub(crate) const fn bit(exception: Exception) -> u32 {
    1_u32.wrapping_shl(exception.0 as u32)
}

/// Exceptions that SHCSR enables; all others of the system are always enabled (B3.2.13).
pub(crate) const SWITCHABLE: u32 =
    bit(Exception::MEMORY_FAULT) | bit(Exception::BUS_FAULT) | bit(Exception::USAGE_FAULT);

/// Reset value of CCR: frames are aligned to 8 bytes (B3.2.8).
const CCR_RESET: u32 = 1 << 9;

/// SCR (B3.2.7).
const SEVONPEND: u32 = 1 << 4;

/// Both bits of FPCCR in [`VirtualCore::fp_context`].
pub(crate) const FP_CONTROL: u32 = 3;

/// Bits of [`VirtualCore::view`].
const PROTECTED: u8 = 1;
const FLOATING_POINT: u8 = 1 << 2;

/// A virtual CPU: everything a guest can see of an Armv7-M processor, but for r0 to r15, the flags and
/// the floating-point registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualCore {
    pub(crate) model: &'static Model,
    pub(crate) lines: Lines,
    pub(crate) systick: SysTick,
    pub(crate) mpu: Mpu,
    /// The system's exceptions: one bit each, by number.
    pub(crate) system_enabled: u32,
    pub(crate) system_pending: u32,
    pub(crate) system_active: u32,
    /// SHPR1 to SHPR3: exceptions 4 to 15.
    pub(crate) system_priority: [u8; 12],
    /// Number of the exception whose handler runs, 0 in a thread.
    pub(crate) ipsr: u16,
    pub(crate) primask: bool,
    pub(crate) faultmask: bool,
    pub(crate) basepri: u8,
    /// CONTROL.nPRIV.
    pub(crate) unprivileged: bool,
    /// CONTROL.SPSEL.
    pub(crate) process_stack: bool,
    /// MSP and PSP; the entry of the one in use is stale, its value follows from the live frame.
    pub(crate) main_sp: u32,
    pub(crate) process_sp: u32,
    pub(crate) vector_table: u32,
    pub(crate) priority_group: u8,
    pub(crate) system_control: u32,
    pub(crate) configuration: u32,
    pub(crate) fault_status: u32,
    pub(crate) hard_fault_status: u32,
    pub(crate) memory_fault_address: u32,
    pub(crate) bus_fault_address: u32,
    pub(crate) coprocessor_access: u32,
    /// FPCAR, a multiple of 8, and below that bits 31 and 30 of FPCCR: ASPEN and LSPEN.
    pub(crate) fp_context: u32,
    pub(crate) fp_default_status: u32,
    pub(crate) debug_control: u32,
    /// The event register (B1.5.18).
    pub(crate) event: bool,
    /// The number of bytes of semihosting's file of features that have been read.
    pub(crate) features_read: u8,
    /// The exceptions that were pending when SCR.SEVONPEND was last looked at: system exceptions and lines.
    seen_pending: [u32; LINE_WORDS + 1],
    /// DWT_CTRL.CYCCNTENA, and what the clock and the counter differ by (running) or what the
    /// counter shows (stopped).
    pub(crate) cycles_enabled: bool,
    pub(crate) cycles: u32,
    pub(crate) changes: Changes,
    /// True if the live frame is one that the guest itself returns to, and nothing has changed its rights
    /// since.
    pub(crate) is_returning: bool,
    /// The view of the guest that the backend was told last.
    shown_view: u8,
    /// Highest priority among the active exceptions, grouping not applied.
    active_priority: i16,
    /// The pending and enabled exception with the highest priority, grouping not applied.
    most_urgent: Option<(i16, Exception)>,
}

impl VirtualCore {
    /// Makes a CPU as it is after a reset, with the vector table at `vector_table` and the main stack at
    /// `main_sp`.
    #[must_use]
    pub const fn new(model: &'static Model, vector_table: u32, main_sp: u32) -> Self {
        let systick = SysTick::new(model.systick_calibration, model.systick_reference);
        Self {
            lines: Lines::new(model.lines),
            systick,
            mpu: Mpu::new(model.mpu_regions),
            system_enabled: !SWITCHABLE,
            system_pending: 0,
            system_active: 0,
            system_priority: [0; 12],
            ipsr: 0,
            primask: false,
            faultmask: false,
            basepri: 0,
            unprivileged: false,
            process_stack: false,
            main_sp: main_sp & !3,
            process_sp: 0,
            vector_table,
            priority_group: 0,
            system_control: 0,
            configuration: CCR_RESET,
            fault_status: 0,
            hard_fault_status: 0,
            memory_fault_address: 0,
            bus_fault_address: 0,
            coprocessor_access: 0,
            fp_context: if model.floating_point { FP_CONTROL } else { 0 },
            fp_default_status: 0,
            debug_control: 0,
            event: false,
            features_read: 0,
            seen_pending: [0; LINE_WORDS + 1],
            cycles_enabled: false,
            cycles: 0,
            is_returning: false,
            changes: Changes {
                lines: false,
                regions: false,
                configuration: false,
                reset: false,
            },
            shown_view: 0,
            active_priority: NO_PRIORITY,
            most_urgent: None,
            model,
        }
    }

    /// Puts the CPU into its state after a reset.
    pub fn reset(&mut self, vector_table: u32, main_sp: u32) {
        *self = Self::new(self.model, vector_table, main_sp);
    }

    /// Returns the number of the exception whose handler runs, 0 in a thread (IPSR).
    #[must_use]
    pub const fn handler(&self) -> u16 {
        self.ipsr
    }

    /// Tells whether the guest's code may do what only privileged code may.
    #[must_use]
    pub const fn privileged(&self) -> bool {
        self.ipsr != 0 || !self.unprivileged
    }

    /// Returns the stack in use.
    #[must_use]
    pub const fn stack(&self) -> Stack {
        if self.ipsr == 0 && self.process_stack {
            Stack::Process
        } else {
            Stack::Main
        }
    }

    pub(crate) const fn banked(&self, stack: Stack) -> u32 {
        match stack {
            Stack::Main => self.main_sp,
            Stack::Process => self.process_sp,
        }
    }

    pub(crate) const fn set_banked(&mut self, stack: Stack, value: u32) {
        match stack {
            Stack::Main => self.main_sp = value,
            Stack::Process => self.process_sp = value,
        }
    }

    /// Returns the part of the guest's state that decides what the physical CPU lets its code do: bit 0: its
    /// memory protection unit checks; bit 1: it then checks privileged code; bit 2: it may use the
    /// floating-point unit.
    fn view(&self) -> u8 {
        let protection = match (self.protected(), self.privileged()) {
            (false, _) => 0,
            (true, false) => PROTECTED,
            (true, true) => PROTECTED | 1 << 1,
        };
        let (_, floating_point) = self.floating_point_access();
        protection | if floating_point { FLOATING_POINT } else { 0 }
    }

    /// Tells whether anything but a write of a register, which is noted as a change, can change the view.
    #[inline(always)]
    const fn has_view(&self) -> bool {
        self.mpu.enabled() || self.coprocessor_access >> 20 & 3 == 1
    }

    /// Tells whether the memory protection unit checks what the guest does now (B3.5.1).
    pub(crate) fn protected(&self) -> bool {
        let boosted = self.ipsr == u16::from(Exception::NMI.0)
            || self.ipsr == u16::from(Exception::HARD_FAULT.0)
            || self.faultmask;
        self.mpu.enabled() && (!boosted || self.mpu.enabled_in_faults())
    }

    /// Takes the changes since the last call.
    pub fn take_changes(&mut self) -> Changes {
        let view = self.view();
        let mut changes = self.changes;
        let changed = view ^ self.shown_view;
        changes.regions |= changed & !FLOATING_POINT != 0;
        changes.configuration |= changed & FLOATING_POINT != 0;
        self.shown_view = view;
        self.changes = Changes {
            lines: false,
            regions: false,
            configuration: false,
            reset: false,
        };
        changes
    }

    /// Tells whether something is to be done before the guest goes on: an exception to be taken, an ended
    /// line or a change to be asked for. If not, and its timer has not been touched, the guest can go on at
    /// once.
    #[inline]
    #[must_use]
    pub fn is_restless(&self) -> bool {
        self.has_changed() || self.pending().is_some() || self.lines.has_ended() || !self.view_is_shown()
    }

    /// Tells whether [`VirtualCore::take_changes`] has something to tell besides the view.
    #[inline(always)]
    #[must_use]
    pub fn has_changed(&self) -> bool {
        let Changes {
            lines,
            regions,
            configuration,
            reset,
        } = self.changes;
        lines | regions | configuration | reset
    }

    /// Answers [`VirtualCore::is_restless`] after an exception was taken that was the only one.
    #[inline(always)]
    #[must_use]
    pub fn view_is_shown(&self) -> bool {
        !self.has_view() || self.view() == self.shown_view
    }

    /// Catches up with the clock. To be called before anything else that depends on time.
    #[inline(always)]
    pub fn advance(&mut self, now: u64) {
        if self.systick.runs() && self.systick.advance(now) {
            self.system_pending |= bit(Exception::SYSTICK);
            self.refresh_pending();
        }
    }

    /// Returns when the CPU's own timer will have something to do next.
    #[must_use]
    pub const fn next_deadline(&self) -> Option<u64> {
        self.systick.next()
    }

    /// Sets a device's line high or low.
    pub fn set_line(&mut self, line: u8, high: bool) {
        self.lines.set_level(line, high);
        self.refresh_pending();
    }

    /// Takes a rising edge of a device's line.
    pub fn pulse_line(&mut self, line: u8) {
        self.lines.pend(line);
        self.look_for_event();
        if self.lines.is_pending_and_enabled(line) {
            self.consider(Exception::of_line(line));
        }
    }

    /// Considers `exception`, which is pending and enabled: it may be more urgent than what was.
    pub(crate) fn consider(&mut self, exception: Exception) {
        if self.is_most_urgent(exception) {
            self.most_urgent = Some((self.priority(exception), exception));
        }
    }

    /// Takes one of the lines whose handler has ended since they were asked for last.
    pub fn take_ended_line(&mut self) -> Option<u8> {
        self.lines.take_ended()
    }

    /// Tells whether the guest has enabled the line, or wants to be woken by any.
    #[must_use]
    pub fn line_enabled(&self, line: u8) -> bool {
        self.events_on_pend() || self.lines.is_enabled(line)
    }

    /// Tells whether the line neither waits for its handler nor has it running.
    #[must_use]
    pub fn line_is_idle(&self, line: u8) -> bool {
        let (word, mask) = (usize::from(line >> 5), 1_u32 << (line & 31));
        let busy = [&self.lines.pending, &self.lines.active];
        busy.iter()
            .all(|bits| bits.get(word).is_none_or(|bits| bits & mask == 0))
    }

    /// Returns CCR, for what of it the physical CPU does (unaligned accesses, division by zero).
    #[must_use]
    pub const fn configuration(&self) -> u32 {
        self.configuration
    }

    /// Returns CPACR, and whether the guest's code as it runs now may use the floating-point unit.
    #[must_use]
    pub const fn floating_point_access(&self) -> (u32, bool) {
        let access = self.coprocessor_access >> 20 & 3;
        (
            self.coprocessor_access,
            access == 3 || access == 1 && self.privileged(),
        )
    }

    /// Returns FPDSCR and the ASPEN and LSPEN bits of FPCCR.
    #[must_use]
    pub const fn floating_point_control(&self) -> (u32, u32) {
        (self.fp_default_status, self.fp_context_control())
    }

    /// Returns the ASPEN and LSPEN bits of FPCCR.
    pub(crate) const fn fp_context_control(&self) -> u32 {
        self.fp_context << 30
    }

    /// Returns the address at which the vector of an exception is.
    #[must_use]
    pub const fn vector_address(&self, exception: Exception) -> u32 {
        self.vector_table.wrapping_add(exception.vector_offset())
    }

    /// Returns a priority without its subpriority: what decides about preemption (B1.5.4).
    pub(crate) const fn group(&self, priority: i16) -> i16 {
        if priority < 0 || priority >= NO_PRIORITY {
            return priority;
        }
        let subpriority = 2_i16.wrapping_shl(self.priority_group as u32).wrapping_sub(1);
        priority & !subpriority
    }

    #[inline(always)]
    pub(crate) fn priority(&self, exception: Exception) -> i16 {
        match exception.0 {
            0 | 1 => -3,
            2 => -2,
            3 => -1,
            number @ 4..=15 => {
                let index = usize::from(number.wrapping_sub(4));
                self.system_priority
                    .get(index)
                    .map_or(NO_PRIORITY, |priority| i16::from(*priority))
            }
            number => i16::from(self.lines.priority(number.wrapping_sub(16))),
        }
    }

    /// Returns the priority of what runs, boosts included.
    #[must_use]
    pub fn execution_priority(&self) -> i16 {
        let floor = self.waking_priority();
        if self.primask { floor.min(0) } else { floor }
    }

    /// Returns the execution priority if PRIMASK were 0.
    fn waking_priority(&self) -> i16 {
        let mut result = self.group(self.active_priority);
        if self.basepri != 0 {
            result = result.min(self.group(i16::from(self.basepri)));
        }
        if self.faultmask {
            result = result.min(-1);
        }
        result
    }

    /// Returns the exception the guest must take now, if there is one.
    #[inline(always)]
    #[must_use]
    pub fn pending(&self) -> Option<Exception> {
        match self.most_urgent {
            Some((priority, exception)) => self.is_taken_at(priority).then_some(exception),
            None => None,
        }
    }

    /// Tells whether an exception of this priority is taken now.
    #[inline(never)]
    fn is_taken_at(&self, priority: i16) -> bool {
        self.group(priority) < self.execution_priority()
    }

    /// Returns what ICSR.VECTPENDING shows.
    pub(crate) fn most_urgent_pending(&self) -> Option<Exception> {
        self.most_urgent.map(|(_, exception)| exception)
    }

    /// Tells whether a sleeping guest must wake up: an exception is pending that it would take if PRIMASK
    /// were 0 (B1.5.18).
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.most_urgent
            .is_some_and(|(priority, _)| self.group(priority) < self.waking_priority())
    }

    /// Tells whether SCR.SEVONPEND is set: then all that becomes pending is an event, even if it is not
    /// enabled.
    pub(crate) const fn events_on_pend(&self) -> bool {
        self.system_control & SEVONPEND != 0
    }

    #[inline(always)]
    pub(crate) fn look_for_event(&mut self) {
        if self.events_on_pend() {
            self.see_pending();
        }
    }

    #[inline(never)]
    fn see_pending(&mut self) {
        let [low, high] = self.lines.pending;
        let mut new = 0;
        for (seen, now) in self.seen_pending.iter_mut().zip([self.system_pending, low, high]) {
            new |= now & !*seen;
            *seen = now;
        }
        self.event |= new != 0;
    }

    /// Marks an exception pending.
    pub(crate) fn set_pending(&mut self, exception: Exception) {
        match exception.line() {
            Some(line) => self.lines.pend(line),
            None => self.system_pending |= bit(exception),
        }
        self.refresh_pending();
    }

    /// Notes that the handler of `exception` starts.
    pub(crate) fn activate(&mut self, exception: Exception) {
        match exception.line() {
            Some(line) => self.lines.activate(line),
            None => {
                self.system_pending &= !bit(exception);
                self.system_active |= bit(exception);
            }
        }
        self.active_priority = self.active_priority.min(self.priority(exception));
        if self.most_urgent.is_some() {
            self.refresh_pending();
        }
    }

    /// Notes that the handler of `exception` has ended.
    pub(crate) fn deactivate(&mut self, exception: Exception) {
        match exception.line() {
            Some(line) => {
                if self.lines.deactivate(line) {
                    self.refresh_pending();
                }
            }
            None => self.system_active &= !bit(exception),
        }
        if self.any_active() {
            self.refresh_active();
        } else {
            self.active_priority = NO_PRIORITY;
        }
    }

    /// Tells whether a thread runs, nothing is masked and nothing waits: the next exception is taken,
    /// with any number.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.active_priority == NO_PRIORITY
            && self.ipsr == 0
            && !self.primask
            && !self.faultmask
            && self.basepri == 0
            && self.most_urgent.is_none()
    }

    /// Tells whether not more than one exception is active.
    pub(crate) fn at_most_one_active(&self) -> bool {
        let [low, high] = self.lines.active;
        let words = [self.system_active, low, high];
        let several = words.iter().any(|word| word & word.wrapping_sub(1) != 0);
        !several && words.iter().filter(|word| **word != 0).count() <= 1
    }

    /// Tells whether any exception is active.
    pub(crate) fn any_active(&self) -> bool {
        self.system_active != 0 || self.lines.any_active()
    }

    /// Tells whether nothing that waits comes before `exception`.
    pub(crate) fn is_most_urgent(&self, exception: Exception) -> bool {
        let mine = (self.priority(exception), exception);
        self.most_urgent.is_none_or(|other| mine < other)
    }

    pub(crate) fn is_active(&self, exception: Exception) -> bool {
        match exception.line() {
            Some(line) => self.lines.is_active(line),
            None => self.system_active & bit(exception) != 0,
        }
    }

    /// Refreshes what follows from active states and priorities: to be called when they have changed.
    pub(crate) fn refresh(&mut self) {
        self.refresh_active();
        self.refresh_pending();
    }

    fn refresh_active(&mut self) {
        let mut best = self.lines.most_urgent_active();
        for exception in exceptions(self.system_active) {
            best = best.min(self.priority(exception));
        }
        self.active_priority = best;
    }

    /// Refreshes what follows from pending states and enables: to be called when they have changed.
    pub(crate) fn refresh_pending(&mut self) {
        self.look_for_event();
        let mut best = None;
        if self.system_pending & self.system_enabled == 0 && !self.lines.any_pending_and_enabled() {
            self.most_urgent = None;
            return;
        }
        for exception in exceptions(self.system_pending & self.system_enabled) {
            let priority = self.priority(exception);
            if best.is_none_or(|(other, _)| priority < other) {
                best = Some((priority, exception));
            }
        }
        if let Some((priority, line)) = self.lines.most_urgent_pending()
            && best.is_none_or(|(other, _)| priority < other)
        {
            best = Some((priority, Exception::of_line(line)));
        }
        self.most_urgent = best;
    }
}

/// Returns the exceptions whose bits are set, lowest first; at most 32 steps.
pub(crate) fn exceptions(mut bits: u32) -> impl Iterator<Item = Exception> {
    core::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let number = bits.trailing_zeros() as u8;
        bits &= bits.wrapping_sub(1);
        Some(Exception(number))
    })
}
