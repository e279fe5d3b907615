// SPDX-License-Identifier: Apache-2.0
//! Virtual CPUs: contexts, the switch between them, reset, answers and reflected faults.
//!
//! A [`Context`] stays where it was put at boot. At any time at most one vCPU is *current*: its space and its
//! configuration are in the hardware, whether it runs or not. They move only when another vCPU runs. Registers are in the context
//! and in the frame on the guest's own stack whenever Rust code runs.

use crate::entry::{RETURN_BASIC, Registers, bulkhead_enter};
use crate::fp::{self, FpRegisters};
use crate::irq::own_deadline;
use crate::live::Live;
use crate::machine::Machine;
use crate::pool::Pool;
use crate::quick::Plain;
use crate::space::Space;
use crate::system::{self, CCR};
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::{
    Clock, DUMP_REGISTERS, Dump, Exit, FaultReport, MAX_VCPUS, PartitionId, PartitionKind, Reply, ResetKind,
    Ticks, VcpuId, VcpuPlan, VcpuReset, VcpuSet, Vcpus, VirtualLine,
};
use bulkhead_arch_deprivileged::{Fault, Guest, VirtualCore, frame_size};
use core::ptr::NonNull;

/// [`Exit::Failed`] code: the vCPU was not adopted, or its partition has no space.
const FAILED_NOT_ADOPTED: u64 = 1;
/// CCR: STKALIGN, which frames rely on, and DIV_0_TRP, which the guest decides about (B3.2.8).
const CCR_ALIGNED: u32 = 1 << 9;
const CCR_DIVISION: u32 = 1 << 4;
/// xPSR.T.
const THUMB: u32 = 1 << 24;
/// Syndrome of a guest whose processor would have stopped for good.
const LOCKUP: u64 = 0xF << 32;
/// Names of the general registers.
const NAMES: &[&str] = &[
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr",
];

/// What the last exit left to be answered.
#[derive(Clone, Copy)]
pub(crate) enum Pending {
    /// Nothing.
    Nothing,
    /// A load or store that the kernel answers.
    Access,
    /// A fault that the guest can be shown.
    Fault(Fault),
    /// A frame that could not be pushed, with its address.
    Stacking(u32, Fault),
    /// A store of the task's that the bus has refused after it was left.
    Late(Fault),
    /// The guest's processor would have stopped: nothing helps but a reset.
    Stuck,
}

const _: () = assert!(core::mem::offset_of!(Context, registers) == 0);

/// A vCPU.
#[repr(C)]
pub(crate) struct Context {
    pub(crate) registers: Registers,
    pub(crate) core: VirtualCore,
    /// Floating-point registers, unless the hardware holds them.
    pub(crate) fp: FpRegisters,
    /// What the kernel said of it at boot, as far as it is needed.
    pub(crate) partition: PartitionId,
    kind: PartitionKind,
    semihosting: bool,
    /// What is to be answered.
    pub(crate) pending: Pending,
}

impl Context {
    /// Whether it runs a program instead of a machine.
    pub(crate) fn is_task(&self) -> bool {
        self.kind == PartitionKind::Task
    }
}

/// The contexts in use, in memory of the pool. There is one table, the machine's; so whoever borrows it has the only way to them.
pub(crate) struct ContextTable {
    adopted: [Option<NonNull<Context>>; MAX_VCPUS],
}

impl ContextTable {
    pub(crate) const fn new() -> Self {
        Self {
            adopted: [None; MAX_VCPUS],
        }
    }

    /// The context of a vCPU that has been adopted.
    #[inline]
    pub(crate) fn get(&mut self, vcpu: VcpuId) -> Option<&mut Context> {
        let mut place = self.adopted.get(usize::from(vcpu.0)).copied().flatten()?;
        // SAFETY: `adopt` has put a context there, which only this table knows; references come from it only, and borrow it.
        Some(unsafe { place.as_mut() })
    }

    /// Once for each vCPU; without memory for it, it is not adopted.
    fn adopt(&mut self, vcpu: VcpuId, context: Context, pool: &mut Pool) {
        if let Some(slot) = self.adopted.get_mut(usize::from(vcpu.0))
            && slot.is_none()
        {
            *slot = pool.put(context);
        }
    }
}

/// A vCPU at its trap, its processor, and its space.
pub(crate) struct Trapped<'m> {
    pub(crate) core: &'m mut VirtualCore,
    pub(crate) registers: &'m mut Registers,
    pub(crate) pending: &'m mut Pending,
    pub(crate) space: &'m Space,
    pub(crate) is_task: bool,
    /// Whether its calls of a debugger are answered.
    pub(crate) semihosting: bool,
}

impl Trapped<'_> {
    /// The guest with its frame.
    pub(crate) fn parts(&mut self) -> (&mut VirtualCore, Live<'_>) {
        (self.core, Live::new(self.registers, self.space))
    }

    /// What the shortest ways need to know of it; of a task nothing, it takes none.
    fn plain(&self) -> Plain {
        if self.is_task {
            Plain::NOTHING
        } else {
            self.space.plain()
        }
    }

    /// Why it cannot run, if it cannot.
    fn cannot_go_on(&mut self) -> Option<Exit> {
        match *self.pending {
            Pending::Stuck => Some(self.stuck()),
            Pending::Late(fault) => Some(self.task_fault(fault)),
            _ => None,
        }
    }

    /// The guest's processor has stopped.
    pub(crate) fn stuck(&mut self) -> Exit {
        *self.pending = Pending::Stuck;
        let has_frame = self.space.writable(self.registers.frame, frame_size(false));
        let pc = if has_frame { self.parts().1.register(15) } else { 0 };
        Exit::Fault(FaultReport {
            class: HealthClass::System,
            syndrome: LOCKUP,
            pc: pc.into(),
            address: None,
            virtual_address: None,
        })
    }
}

impl Machine {
    /// A vCPU that has been adopted and whose partition has a space.
    pub(crate) fn trapped(&mut self, vcpu: VcpuId) -> Option<Trapped<'_>> {
        let context = self.contexts.get(vcpu)?;
        let space = self.spaces.get(context.partition)?;
        let is_task = context.is_task();
        let semihosting = context.semihosting;
        Some(Trapped {
            core: &mut context.core,
            registers: &mut context.registers,
            pending: &mut context.pending,
            space,
            is_task,
            semihosting,
        })
    }

    /// The first vCPU of a partition.
    pub(crate) fn first_of(&self, partition: PartitionId) -> Option<VcpuId> {
        self.first.get(usize::from(partition.0)).copied().flatten()
    }

    /// Brings the current vCPU up to now, before it goes on: what became pending meanwhile is taken, and what its guest changed
    /// about its processor is done to the real one. The exit if that is not possible.
    #[inline(never)]
    pub(crate) fn prepare(&mut self, vcpu: VcpuId) -> Option<Exit> {
        let now = self.now();
        let deadline = self.deadline;
        let context = self.contexts.get(vcpu)?;
        if context.is_task() {
            self.set_timer(deadline);
            return None;
        }
        let partition = context.partition;
        let space = self.spaces.get(partition)?;
        let core = &mut context.core;
        while let Some(line) = core.take_ended_line() {
            self.irq.ended(partition, line);
        }
        core.advance(now.0);
        if core
            .deliver(&mut Live::new(&mut context.registers, space))
            .is_err()
        {
            return self.trapped(vcpu).map(|mut trapped| trapped.stuck());
        }
        let changes = core.take_changes();
        if changes.lines {
            self.irq.follow(partition, core);
        }
        if changes.regions {
            space.load(core.guest_regions().as_ref());
        }
        let own = own_deadline(core).max(self.earliest_own);
        if changes.configuration {
            self.configure(vcpu);
        }
        if changes.reset {
            return Some(Exit::Reset(ResetKind::Warm));
        }
        self.set_timer(deadline.min(own));
        self.hold_back(partition);
        None
    }

    /// What of the current guest's configuration the hardware itself does.
    fn configure(&mut self, vcpu: VcpuId) {
        let has_unit = self.model.floating_point;
        let Some(context) = self.contexts.get(vcpu) else {
            return;
        };
        let (_, allowed) = context.core.floating_point_access();
        let allowed = has_unit && (allowed || context.is_task());
        system::write(CCR, CCR_ALIGNED | context.core.configuration() & CCR_DIVISION);
        if !has_unit {
            return;
        }
        let (default_status, control) = context.core.floating_point_control();
        fp::configure(default_status, control);
        fp::allow(allowed);
        if !allowed || self.fp_owner == Some(vcpu) {
            return;
        }
        if let Some(owner) = self.fp_owner.and_then(|owner| self.contexts.get(owner)) {
            owner.fp.save();
        }
        if let Some(context) = self.contexts.get(vcpu) {
            context.fp.load();
        }
        self.fp_owner = Some(vcpu);
    }

    /// The current vCPU is not any more: what its stores and its frame still owe is settled, so that nothing is the next one's.
    fn leave_current(&mut self) {
        let now = self.now().0;
        if let Some(mut trapped) = self.current.take().and_then(|current| self.trapped(current)) {
            trapped.settle_faults(now);
            let (_, mut live) = trapped.parts();
            live.leave_floating_point();
        }
    }

    /// Makes a vCPU the current one. What this costs does not depend on who was it before, or where that one was interrupted.
    fn switch_to(&mut self, vcpu: VcpuId) -> bool {
        self.leave_current();
        let Some(trapped) = self.trapped(vcpu) else {
            return false;
        };
        trapped.space.load(trapped.core.guest_regions().as_ref());
        self.plain = trapped.plain();
        self.current = Some(vcpu);
        self.configure(vcpu);
        // Whatever the timer is set for, it is set again.
        self.armed = Ticks(0);
        true
    }

    /// What the kernel is told. Most exits are a word or two, so not all that an exit can be is copied.
    #[inline(always)]
    pub(crate) fn told(&self) -> Exit {
        match self.exit {
            Exit::Device(vcpus, line) => Exit::Device(vcpus, line),
            Exit::Idle { until } => Exit::Idle { until },
            Exit::Interrupt(line) => Exit::Interrupt(line),
            Exit::Deadline => Exit::Deadline,
            other => other,
        }
    }

    /// The space of a partition has changed.
    pub(crate) fn reload_space(&mut self, partition: PartitionId) {
        let current = self.current.filter(|_| {
            self.current
                .and_then(|vcpu| self.contexts.get(vcpu))
                .is_some_and(|context| context.partition == partition)
        });
        if let Some(trapped) = current.and_then(|vcpu| self.trapped(vcpu)) {
            trapped.space.load(trapped.core.guest_regions().as_ref());
            self.plain = trapped.plain();
        }
    }
}

/// The registers of a first instruction, below the initial stack pointer. False if that is not the guest's memory.
fn first_frame(registers: &mut Registers, space: &Space, reset: &VcpuReset, argument: u32) -> bool {
    let frame = (reset.stack as u32 & !7).wrapping_sub(frame_size(false));
    *registers = Registers {
        general: [0; 8],
        frame,
        exc_return: RETURN_BASIC,
    };
    if !space.writable(frame, frame_size(false)) {
        return false;
    }
    let mut live = Live::new(registers, space);
    for number in [0, 1, 2, 3, 12] {
        live.set_register(number, 0);
    }
    live.set_register(0, argument);
    live.set_register(14, u32::MAX);
    live.set_register(15, reset.entry.0 as u32 & !1);
    live.set_xpsr(if reset.entry.0 & 1 != 0 { THUMB } else { 0 });
    true
}

impl Vcpus for Machine {
    fn adopt(&mut self, vcpu: VcpuId, plan: &VcpuPlan) {
        let context = Context {
            registers: crate::cpu::idle_registers(),
            core: VirtualCore::new(self.model, 0, 0),
            fp: FpRegisters::ZERO,
            partition: plan.partition,
            kind: plan.kind,
            semihosting: plan.semihosting,
            pending: Pending::Stuck,
        };
        self.contexts.adopt(vcpu, context, &mut self.pool);
        if let Some(slot) = self.first.get_mut(usize::from(plan.partition.0)) {
            *slot = Some(vcpu);
        }
    }

    fn reset(&mut self, vcpu: VcpuId, reset: &VcpuReset) {
        if self.current == Some(vcpu) {
            self.detach(vcpu);
        }
        let Some(context) = self.contexts.get(vcpu) else {
            return;
        };
        context.fp = FpRegisters::ZERO;
        let is_task = context.is_task();
        let Some(trapped) = self.trapped(vcpu) else { return };
        trapped.core.reset(reset.argument as u32, reset.stack as u32);
        let argument = if is_task { reset.argument as u32 } else { 0 };
        let fits = first_frame(trapped.registers, trapped.space, reset, argument);
        *trapped.pending = if fits { Pending::Nothing } else { Pending::Stuck };
    }

    fn run(&mut self, vcpu: VcpuId) -> Exit {
        if self.current != Some(vcpu) && !self.switch_to(vcpu) {
            return Exit::Failed {
                code: FAILED_NOT_ADOPTED,
            };
        }
        self.runs = true;
        let has_ended = |context: &mut Context| matches!(context.pending, Pending::Stuck | Pending::Late(_));
        if self.contexts.get(vcpu).is_some_and(has_ended)
            && let Some(mut trapped) = self.trapped(vcpu)
            && let Some(exit) = trapped.cannot_go_on()
        {
            return exit;
        }
        if let Some(exit) = self.prepare(vcpu) {
            return exit;
        }
        let Some(registers) = self
            .contexts
            .get(vcpu)
            .map(|context| core::ptr::from_mut(context).cast())
        else {
            return Exit::Failed {
                code: FAILED_NOT_ADOPTED,
            };
        };
        let machine = core::ptr::from_mut(self);
        // SAFETY: the registers are the first field of the current vCPU's context, and whose frame `reset` or the CPU has put into its own memory; the
        // machine is lent to `on_trap` until the return, and nobody uses it meanwhile.
        unsafe { bulkhead_enter(registers, machine) }
        self.told()
    }

    fn reply(&mut self, vcpu: VcpuId, reply: Reply) {
        let Some(mut trapped) = self.trapped(vcpu) else {
            return;
        };
        let was_access = matches!(trapped.pending, Pending::Access);
        *trapped.pending = Pending::Nothing;
        let (core, mut live) = trapped.parts();
        match reply {
            Reply::Hypercall(Ok(results)) => {
                live.set_register(0, 0);
                for (value, low) in results.iter().zip([2_u8, 4, 6, 8]) {
                    live.set_register(low, *value as u32);
                    live.set_register(low + 1, (*value >> 32) as u32);
                }
            }
            Reply::Hypercall(Err(error)) => live.set_register(0, error as i64 as u32),
            Reply::Read(value) if was_access => {
                core.complete_access(&mut live, value as u32);
            }
            Reply::Written if was_access => {
                core.complete_access(&mut live, 0);
            }
            Reply::Host(answer) => core.host_answers(&mut live, answer.into()),
            // A partition has one vCPU: nobody asks for the power of another.
            Reply::Read(_) | Reply::Written | Reply::CpuOn(_) | Reply::CpuPower(_) => {}
        }
    }

    fn inject(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        let Some(vcpu) = self.first_of(partition) else {
            return VcpuSet::EMPTY;
        };
        if let Some(context) = self.contexts.get(vcpu) {
            context.core.set_line(line.0 as u8, true);
        }
        VcpuSet::of(vcpu)
    }

    fn withdraw(&mut self, partition: PartitionId, line: VirtualLine) {
        let vcpu = self.first_of(partition);
        if let Some(context) = vcpu.and_then(|vcpu| self.contexts.get(vcpu)) {
            context.core.set_line(line.0 as u8, false);
        }
    }

    fn has_work(&mut self, vcpu: VcpuId) -> bool {
        let now = self.now();
        self.contexts.get(vcpu).is_some_and(|context| {
            context.core.advance(now.0);
            context.core.has_work()
        })
    }

    fn pause(&mut self, vcpu: VcpuId) -> Ticks {
        if self.has_work(vcpu) {
            return Ticks(0);
        }
        match self.contexts.get(vcpu) {
            Some(context) if !context.is_task() => own_deadline(&context.core).max(self.earliest_own),
            _ => Ticks::NEVER,
        }
    }

    fn fault(&mut self, vcpu: VcpuId, report: &FaultReport) -> bool {
        let Some(mut trapped) = self.trapped(vcpu).filter(|trapped| !trapped.is_task) else {
            return false;
        };
        let pending = core::mem::replace(trapped.pending, Pending::Nothing);
        let result = match pending {
            Pending::Fault(fault) => {
                let (core, mut live) = trapped.parts();
                core.raise(&mut live, fault)
            }
            Pending::Access => {
                let address = report.address.map_or(0, |address| address.0 as u32);
                let (core, mut live) = trapped.parts();
                core.raise(&mut live, Fault::bus(address))
            }
            Pending::Stacking(frame, fault) => {
                let mut live = Live::without_frame(trapped.registers, trapped.space);
                trapped.core.stacking_failed(&mut live, frame, fault)
            }
            Pending::Nothing | Pending::Stuck | Pending::Late(_) => return false,
        };
        // A processor that stops because of it is another event, which has its own action.
        if result.is_err() {
            *trapped.pending = Pending::Stuck;
        }
        true
    }

    fn skip(&mut self, _vcpu: VcpuId) -> bool {
        false
    }

    fn dump(&mut self, vcpu: VcpuId) -> Dump {
        let mut dump = Dump {
            general: [0; DUMP_REGISTERS],
            names: NAMES,
            sp: 0,
            pc: 0,
            state: 0,
        };
        let Some(mut trapped) = self.trapped(vcpu) else {
            return dump;
        };
        if !trapped.space.writable(trapped.registers.frame, frame_size(false)) {
            dump.sp = trapped.registers.frame;
            return dump;
        }
        let (core, live) = trapped.parts();
        for (number, place) in (0_u8..13).chain([14]).zip(&mut dump.general) {
            *place = live.register(number);
        }
        dump.sp = core.stack_pointer(&live);
        dump.pc = live.register(15);
        dump.state = live.xpsr();
        dump
    }

    fn detach(&mut self, vcpu: VcpuId) {
        if self.current == Some(vcpu) {
            self.leave_current();
        }
        if self.fp_owner == Some(vcpu) {
            self.fp_owner = None;
        }
        if let Some(context) = self.contexts.get(vcpu) {
            context.pending = Pending::Stuck;
            let partition = context.partition;
            self.forget_lines(partition);
        }
    }
}
