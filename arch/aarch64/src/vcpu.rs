// SPDX-License-Identifier: Apache-2.0
//! Virtual CPUs for the kernel: adoption, reset, entry, answers and reflected faults.

use crate::abort::faulting_address;
use crate::banked::Banked;
use crate::context::{
    CONTEXTS, Context, Pending, RARE_AARCH32, RARE_AUXILIARY, RARE_CPU, RARE_FROZEN, RARE_LATE, RARE_RAS,
};
use crate::enter::{self, LEAVE_CPU_ON, LEAVE_HYPERCALL, LEAVE_IDLE, LEAVE_REGISTER};
use crate::fp::FpRegisters;
use crate::machine::Machine;
use crate::short_call::lend;
use crate::state::{Auxiliary, El1State, RESET_PSTATE, TASK_PSTATE};
use crate::timer::{self, Timers};
use crate::{gic, inject, log, space, state, undescribed};
use bulkhead_abi::hypercall::UPCALL_WORDS;
use bulkhead_abi::log::registers;
use bulkhead_abi::{Error, HealthClass};
use bulkhead_arch_aarch64_core::aarch32;
use bulkhead_arch_aarch64_core::data::stored;
use bulkhead_arch_aarch64_core::psci::{ALREADY_ON, ON_PENDING, SUCCESS};
use bulkhead_arch_aarch64_core::syndrome::{self, data_register, is_write, length};
use bulkhead_arch_aarch64_core::transfer::Progress;
use bulkhead_arch_api::{
    Access, AccessKind, CpuOnResult, CpuPower, DUMP_REGISTERS, Dump, Exit, FaultReport, GuestPhys, Hypercall,
    PartitionId, PartitionKind, RegisterAccess, Reply, ShortCalls, Ticks, TimeMode, VcpuId, VcpuPlan,
    VcpuReset, VcpuSet, Vcpus, VirtualLine,
};

/// Machine type that says "see the device tree" (kernel documentation, `arch/arm/booting`).
const NO_MACHINE_TYPE: u64 = 0xFFFF_FFFF;

/// Bytes of an instruction in AArch64 state.
const TRANSFER_LENGTH: u64 = 4;

/// [`Exit::Failed`] code: the vCPU was not adopted by this pCPU.
const FAILED_NOT_ADOPTED: u64 = 1;
/// [`Exit::Failed`] code: the CPU has no AArch32 state at EL1.
const FAILED_NO_AARCH32: u64 = 2;

/// HCR_EL2 (Arm DDI 0487 D19.2.48), common: VM, SWIO, PTW, FMO, IMO, AMO, TWI, TSC, TIDCP, RW.
const HCR_COMMON: u64 = 1 | 1 << 1 | 1 << 2 | 7 << 3 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 31;
/// A VM besides: TID3, TACR, TLOR, TERR.
const HCR_VM: u64 = HCR_COMMON | 1 << 18 | 1 << 21 | 1 << 35 | 1 << 36;
/// HCR_EL2 of a task, which has two bits besides: TGE, so that every exception comes here, and DC, so that
/// its memory is cacheable although it has no stage-1 translation.
const HCR_TASK: u64 = HCR_COMMON | 1 << 27 | 1 << 12;
/// PSTATE.NZCV: the part of its state that a task sets itself.
const CONDITION_FLAGS: u64 = 0xF << 28;
/// HCR_EL2.RW: EL1 is AArch64.
const HCR_RW: u64 = 1 << 31;
/// HCR_EL2.TWI: an idle instruction traps.
const HCR_TWI: u64 = 1 << 13;

impl Context {
    /// Sets all registers as a reset leaves them, except those that a start names. The vCPU must not be
    /// current, and the pCPU must not hold its FP registers.
    fn make_blank(&mut self) {
        self.is_blank = true;
        self.general = [0; 31];
        self.pending = Pending::Nothing;
        if self.fp_used {
            (self.fp, self.fp_used) = (FpRegisters::ZERO, false);
        }
        self.debug.reset();
        self.note_debug();
        self.drop_serror();
        self.rare &= !RARE_LATE;
        self.auxiliary = Auxiliary::ZERO;
        self.timers = Timers::ZERO;
        self.pstate = if self.is_task() { TASK_PSTATE } else { RESET_PSTATE };
        self.el1 = El1State::RESET;
        if self.is_aarch32() {
            self.el1.sctlr = aarch32::SCTLR_RESET;
        }
    }

    /// Returns the exit for which `bulkhead_enter` returned, if the reason is not [`LEAVE_IDLE`].
    #[inline(never)]
    fn exit(&self, reason: u64) -> Exit {
        if reason == LEAVE_CPU_ON {
            let [_, target, entry, argument, ..] = self.general;
            return Exit::CpuOn {
                target: target as u8,
                entry: GuestPhys(entry),
                argument,
            };
        }
        if reason == LEAVE_HYPERCALL {
            let [x0, x1, x2, x3, x4, x5, x6, ..] = self.general;
            return Exit::Hypercall(Hypercall {
                operation: x0 as u16,
                arguments: [x1, x2, x3, x4, x5, x6],
            });
        }
        self.exit
    }

    /// Returns the access of an exit for a register.
    #[inline(always)]
    fn register_access(&self) -> RegisterAccess {
        let syndrome = self.trapped;
        let size = syndrome::size(syndrome);
        RegisterAccess {
            address: faulting_address(),
            size,
            kind: if is_write(syndrome) {
                AccessKind::Write(stored(self.read_general(data_register(syndrome)), size, false))
            } else {
                AccessKind::Read
            },
        }
    }

    /// Returns the exit of a vCPU that is current and cannot be entered. The reason is an SError that came
    /// late, as [`Machine::switch_to`] found, or a CPU that cannot run the vCPU.
    #[inline(never)]
    fn exit_at_once(&mut self) -> Exit {
        if self.rare & RARE_LATE == 0 {
            return Exit::Failed {
                code: FAILED_NO_AARCH32,
            };
        }
        self.rare &= !RARE_LATE;
        self.pending = Pending::Nothing;
        Exit::Fault(FaultReport {
            class: HealthClass::Memory,
            syndrome: self.late,
            pc: self.pc,
            address: None,
            virtual_address: None,
        })
    }

    /// Gives the vCPU the answer to its last exit.
    #[inline(never)]
    fn answer(&mut self, reply: Reply) {
        match reply {
            // The answer is done where it is given, or was never asked for.
            Reply::Hypercall(_) | Reply::Read(_) | Reply::Written | Reply::CpuOn(_) | Reply::Host(_) => {
                return;
            }
            Reply::CpuPower(power) => self.write_general(
                0,
                match power {
                    CpuPower::On => 0,
                    CpuPower::Off => 1,
                    CpuPower::OnPending => 2,
                },
            ),
        }
        self.pending = Pending::Nothing;
    }

    /// Gives the vCPU the answer to a hypercall. On an error the registers of results keep their values.
    #[inline(always)]
    fn answer_call(&mut self, answer: Result<[u64; 4], Error>) {
        match answer {
            Ok([first, second, third, fourth]) => {
                let [x0, x1, x2, x3, x4, ..] = &mut self.general;
                (*x0, *x1, *x2, *x3, *x4) = (0, first, second, third, fourth);
            }
            Err(error) => self.write_general(0, error as Error as i64 as u64),
        }
        self.pending = Pending::Nothing;
    }

    /// Gives the vCPU the answer to an access.
    fn answer_access(&mut self, value: u64, is_current: bool) {
        match self.pending {
            Pending::Load { load, length } => {
                self.finish_load(load, value);
                self.advance(length);
            }
            Pending::Store { length } => self.advance(length),
            Pending::Transfer(progress) => return self.answer_transfer(progress, value, is_current),
            Pending::Nothing | Pending::Register { .. } => {}
        }
        self.pending = Pending::Nothing;
    }

    /// Gives the vCPU the answer to one access of a transfer, and ends the instruction with the last one.
    #[cold]
    fn answer_transfer(&mut self, mut progress: Progress, value: u64, is_current: bool) {
        progress.answered(value);
        if progress.next().is_some() {
            self.pending = Pending::Transfer(progress);
            return;
        }
        if let Some(stack) = self.finish_transfer(&progress) {
            if is_current {
                state::write_stack_pointer(self.pstate, stack);
            } else {
                self.el1.set_stack_pointer(self.pstate, stack);
            }
        }
        self.advance(TRANSFER_LENGTH);
        self.pending = Pending::Nothing;
    }
}

impl Machine {
    /// Does [`Vcpus::run`].
    #[inline(always)]
    fn go_into(&mut self, vcpu: VcpuId) -> Exit {
        let Some(context) = self.adopted(vcpu) else {
            return Exit::Failed {
                code: FAILED_NOT_ADOPTED,
            };
        };
        let machine: *mut Self = self;
        let exits = {
            let is_current = self.current == context;
            // SAFETY: as in `with_stored`; the reference ends before the handlers make theirs.
            let context = unsafe { &mut *context };
            if !is_current && !self.switch_to(vcpu, context) {
                return context.exit_at_once();
            }
            context.timers.busy();
            gic::resume(&mut self.irq, &mut context.irq);
            context.exits
        };
        // SAFETY: the context is adopted and current; `self` is lent to the handlers until the return.
        let reason = unsafe { enter::bulkhead_enter(context, machine, exits) };
        // SAFETY: as above; the handlers' references ended when they returned.
        let context = unsafe { &mut *context };
        if reason == LEAVE_REGISTER {
            return Exit::Register(context.register_access());
        }
        if reason == LEAVE_IDLE {
            return Exit::Idle {
                until: context.timers.idle_until(),
            };
        }
        context.exit(reason)
    }

    /// Does the work before a start that was not done when the vCPU was switched off: at its first start, or
    /// if it starts anew without having been off. The partition's space is built once, before that.
    #[inline(never)]
    fn prepare(&mut self, context: &mut Context) {
        context.space = space::of(context.plan.partition);
        gic::find_registers(&mut context.irq);
        if !context.is_blank {
            self.fp_drop(context);
            context.make_blank();
        }
    }
}

/// Sets the first state of a vCPU: r0 and r2 hold the argument, r1 no machine type. That serves Linux, which
/// reads the address of the device tree from r2, and CPU_ON, whose context is in r0.
fn reset_aarch32(context: &mut Context, entry: u64, argument: u64) {
    context.write_general(0, argument);
    context.write_general(1, NO_MACHINE_TYPE);
    context.write_general(2, argument);
    let first = aarch32::start(entry);
    (context.pc, context.pstate) = (first.pc, first.pstate);
    context.banked = Banked::ZERO;
}

impl Vcpus for Machine {
    const HAS_UPCALLS: bool = bulkhead_arch_api::class::AARCH64.upcalls;

    const SHORTENS: bool = true;

    fn shorten(&mut self, vcpu: VcpuId, window: GuestPhys) {
        self.with_stored(vcpu, |_, context| context.window = window.0);
    }

    #[inline(always)]
    fn answer(&mut self, vcpu: VcpuId, value: u64) {
        let Some(context) = self.adopted(vcpu) else { return };
        // SAFETY: as in `reply`.
        let context = unsafe { &mut *context };
        let syndrome = context.trapped;
        if !is_write(syndrome) {
            context.write_general(data_register(syndrome), value);
        }
        context.advance(length(syndrome));
    }

    fn adopt(&mut self, vcpu: VcpuId, plan: &VcpuPlan) {
        if !CONTEXTS.claim(usize::from(vcpu.0)) {
            return;
        }
        self.owned.insert_all(VcpuSet::of(vcpu));
        let pcpu = self.pcpu;
        self.with_stored(vcpu, |machine, context| {
            context.id = vcpu;
            context.plan = *plan;
            let is_aarch32 = context.is_aarch32();
            context.exits = log::exits(vcpu);
            let in_place = if plan.idle_in_place { HCR_TWI } else { 0 };
            context.hcr = match plan.kind {
                PartitionKind::Vm if is_aarch32 => HCR_VM & !in_place & !HCR_RW,
                PartitionKind::Vm => HCR_VM & !in_place,
                PartitionKind::Task => HCR_TASK,
            };
            if plan.kind == PartitionKind::Task {
                space::note_task(plan.partition);
            }
            context.vmpidr = 1 << 31 | u64::from(plan.index);
            let rare = [
                (is_aarch32, RARE_AARCH32),
                (plan.time == TimeMode::Frozen, RARE_FROZEN),
                (machine.auxiliary, RARE_AUXILIARY),
                (
                    gic::has_fine_priorities() || machine.predictions.need_barrier(),
                    RARE_CPU,
                ),
                (state::has_ras(), RARE_RAS),
            ];
            context.rare = rare
                .iter()
                .filter(|(is, _)| *is)
                .fold(0, |all, (_, rare)| all | rare);
            gic::adopt(&mut context.irq, vcpu, plan, pcpu);
            // A vCPU waits for the start of the other vCPUs.
            if plan.index != 0 {
                context.make_blank();
            }
            if is_aarch32 {
                machine.measure_status(context);
            }
        });
    }

    /// Resets a vCPU. Most of the state at its start is made when the vCPU is switched off, if it was on
    /// before. Little then remains to be done while a vCPU waits for the start.
    fn reset(&mut self, vcpu: VcpuId, reset: &VcpuReset) {
        self.with_stored(vcpu, |machine, context| {
            // A reset CPU has empty TLBs: entries that the vCPU's VMID left here must not serve the next
            // life.
            if let Some(last) = machine.last_index.get_mut(usize::from(context.plan.partition.0)) {
                *last = u8::MAX;
            }
            if !context.is_blank || context.space == 0 {
                machine.prepare(context);
            }
            gic::reset(&mut machine.irq, &mut context.irq);
            context.is_blank = false;
            let [x0, ..] = &mut context.general;
            *x0 = reset.argument;
            context.pc = reset.entry.0;
            if context.is_task() {
                context.el1 = El1State::task(reset.stack);
            }
            if context.is_aarch32() {
                reset_aarch32(context, reset.entry.0, reset.argument);
            }
        });
    }

    #[inline(always)]
    fn run(&mut self, vcpu: VcpuId) -> Exit {
        self.lent = None;
        self.go_into(vcpu)
    }

    #[inline(always)]
    fn run_answering(&mut self, vcpu: VcpuId, calls: &impl ShortCalls<Self>) -> Exit {
        self.lent = lend(calls);
        self.go_into(vcpu)
    }

    /// Gives an answer to a vCPU. The caller knows the kind of the answer, so little of this code is left
    /// there after inlining.
    #[inline(always)]
    fn reply(&mut self, vcpu: VcpuId, reply: Reply) {
        let Some(context) = self.adopted(vcpu) else { return };
        let is_current = self.current == context;
        // SAFETY: as in `with_stored`; general registers are in the context between two runs, current or not.
        let context = unsafe { &mut *context };
        match reply {
            Reply::CpuOn(result) => {
                let [x0, ..] = &mut context.general;
                *x0 = match result {
                    CpuOnResult::Started => SUCCESS,
                    CpuOnResult::AlreadyOn => ALREADY_ON,
                    CpuOnResult::Pending => ON_PENDING,
                };
            }
            Reply::Hypercall(answer) => context.answer_call(answer),
            Reply::Read(value) => context.answer_access(value, is_current),
            Reply::Written => context.answer_access(0, is_current),
            _ => context.answer(reply),
        }
    }

    #[inline(always)]
    fn second_access(&mut self, vcpu: VcpuId, first: &Access) -> Option<Access> {
        let context = self.adopted(vcpu)?;
        // SAFETY: as in `reply`.
        let context = unsafe { &*context };
        match context.pending {
            Pending::Transfer(_) => undescribed::second(context, first),
            _ => None,
        }
    }

    fn inject(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        gic::inject(&mut self.irq, partition, line)
    }

    fn pulse(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        gic::pulse(&mut self.irq, partition, line)
    }

    fn withdraw(&mut self, partition: PartitionId, line: VirtualLine) {
        gic::withdraw(&mut self.irq, partition, line);
    }

    #[inline]
    fn has_work(&mut self, vcpu: VcpuId) -> bool {
        let Some(context) = self.adopted(vcpu) else {
            return false;
        };
        // SAFETY: as in `with_stored`; `gic` reads the list registers itself if the vCPU is current.
        let context = unsafe { &mut *context };
        gic::has_work(&mut context.irq)
    }

    fn pause(&mut self, vcpu: VcpuId) -> Ticks {
        let Some(context) = self.adopted(vcpu).filter(|context| self.current == *context) else {
            return Ticks::NEVER;
        };
        // SAFETY: as in `with_stored`; the timers are read from the hardware, where a current vCPU has them.
        let context = unsafe { &mut *context };
        if context.is_task() {
            return Ticks::NEVER;
        }
        if gic::has_work(&mut context.irq) {
            return Ticks(0);
        }
        let until = timer::next_expiry(&context.timers);
        context.timers.idle(until);
        until
    }

    fn fault(&mut self, vcpu: VcpuId, report: &FaultReport) -> bool {
        self.with_stored(vcpu, |_, context| {
            if context.is_task() {
                return false;
            }
            context.pending = Pending::Nothing;
            inject::reflect(context, report);
            true
        })
        .unwrap_or(false)
    }

    fn skip(&mut self, vcpu: VcpuId) -> bool {
        let Some(context) = self.adopted(vcpu) else {
            return false;
        };
        // SAFETY: as in `reply`.
        let context = unsafe { &mut *context };
        let Pending::Register { target, length } = context.pending else {
            return false;
        };
        context.pending = Pending::Nothing;
        context.write_general(target, 0);
        context.advance(length);
        true
    }

    fn divert(&mut self, vcpu: VcpuId, entry: GuestPhys, argument: u64) -> Option<[u64; UPCALL_WORDS]> {
        let context = self.adopted(vcpu)?;
        // SAFETY: as in `reply`.
        let context = unsafe { &mut *context };
        if !context.is_task() {
            return None;
        }
        let mut place = [0; UPCALL_WORDS];
        let [pc, pstate, calling @ ..] = &mut place;
        (*pc, *pstate) = (context.pc, context.pstate);
        for (word, register) in calling.iter_mut().zip(context.general) {
            *word = register;
        }
        let [x0, ..] = &mut context.general;
        *x0 = argument;
        (context.pc, context.pstate) = (entry.0, TASK_PSTATE);
        Some(place)
    }

    fn go_on(&mut self, vcpu: VcpuId, place: [u64; UPCALL_WORDS]) -> bool {
        let Some(context) = self.adopted(vcpu) else {
            return false;
        };
        // SAFETY: as in `reply`.
        let context = unsafe { &mut *context };
        if !context.is_task() {
            return false;
        }
        let [pc, state, calling @ ..] = place;
        for (register, word) in context.general.iter_mut().zip(calling) {
            *register = word;
        }
        context.pc = pc;
        context.pstate = TASK_PSTATE | state & CONDITION_FLAGS;
        context.pending = Pending::Nothing;
        true
    }

    fn dump(&mut self, vcpu: VcpuId) -> Dump {
        let mut dump = Dump {
            general: [0; DUMP_REGISTERS],
            file: &registers::A64,
            sp: 0,
            pc: 0,
            state: 0,
        };
        self.with_stored(vcpu, |_, context| {
            let El1State {
                far, elr, esr, vbar, ..
            } = context.el1;
            // One after the other: a chain of both takes five times as many instructions.
            let mut places = dump.general.iter_mut();
            for (register, place) in context.general.iter().zip(places.by_ref()) {
                *place = *register;
            }
            for (register, place) in [far, elr, esr, vbar].iter().zip(places) {
                *place = *register;
            }
            (dump.pc, dump.state) = (context.pc, context.pstate);
            if context.is_aarch32() {
                dump.file = &registers::A32;
                dump.sp = context.read_general(aarch32::stack_pointer(context.pstate));
            } else {
                dump.sp = context.el1.stack_pointer(context.pstate);
            }
        });
        dump
    }

    fn detach(&mut self, vcpu: VcpuId) {
        self.with_stored(vcpu, |machine, context| {
            machine.fp_drop(context);
            gic::detach(&mut machine.irq, &mut context.irq);
            context.make_blank();
        });
    }
}
