// SPDX-License-Identifier: Apache-2.0
//! Virtual CPUs as the kernel asks for them: adopted, reset, run, answered, shown a fault, dumped.

use crate::context::{Context, NEVER, Pending};
use crate::entry::bulkhead_enter;
use crate::machine::Machine;
use crate::short_call::lend;
use crate::{crash, sysreg};
use bulkhead_abi::hypercall::UPCALL_WORDS;
use bulkhead_abi::log::registers;
use bulkhead_arch_api::{
    Dump, Exit, FaultReport, GuestPhys, PartitionId, Reply, ShortCalls, Ticks, VcpuId, VcpuPlan, VcpuReset,
    VcpuSet, Vcpus, VirtualLine,
};
use bulkhead_arch_ppc405_core::hypercall;
use bulkhead_arch_ppc405_core::registers::{Cpu, Frame, esr, msr};

/// [`Exit::Failed`] code: the vCPU was not adopted, or its partition has no space.
const FAILED_NOT_ADOPTED: u64 = 1;
/// The stack pointer.
const STACK: usize = 1;
/// Bytes of the first frame on a task's stack (System V ABI, PowerPC supplement, section 3): a back chain
/// that ends, and a word for LR.
const FIRST_FRAME: u32 = 16;
/// Registers of a call, in the order of the words of an upcall's place ([`UPCALL_WORDS`]).
const CALLING: [u8; UPCALL_WORDS - 2] = [3, 4, 5, 6, 7, 8, 9, 10, 11, 0];

impl Context {
    /// Shows the guest the fault that led to its last exit.
    fn reflect(&mut self) {
        let frame = &mut self.registers.frame;
        match core::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::ReadDcr(_) | Pending::WriteDcr => self.cpu.program(frame, esr::PIL),
            Pending::Nothing | Pending::Access(_) | Pending::Fault => self.cpu.machine_check(frame),
        }
    }

    /// Completes the access that led to the last exit. False if there was none.
    fn complete(&mut self, value: u32) -> bool {
        let frame = &mut self.registers.frame;
        match core::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Access(transfer) => transfer.complete(frame, value),
            Pending::ReadDcr(target) => {
                frame.set_register(target, value);
                frame.step();
            }
            Pending::WriteDcr => frame.step(),
            other @ (Pending::Nothing | Pending::Fault) => {
                self.pending = other;
                return false;
            }
        }
        true
    }
}

impl Machine {
    /// Lets the vCPU run.
    fn go_into(&mut self, vcpu: VcpuId) -> Exit {
        if self.current != Some(vcpu) && !self.switch_to(vcpu) {
            return Exit::Failed {
                code: FAILED_NOT_ADOPTED,
            };
        }
        self.runs = true;
        if let Some(exit) = self.settle(vcpu) {
            self.runs = false;
            return exit;
        }
        let Some(registers) = self.contexts.get(vcpu).map(|context| &raw mut context.registers) else {
            return Exit::Failed {
                code: FAILED_NOT_ADOPTED,
            };
        };
        let machine = core::ptr::from_mut(self);
        // SAFETY: the registers belong to the current vCPU's context, which stays where it is. The machine
        // is lent to `on_trap` until the return, and no code uses it meanwhile.
        unsafe { bulkhead_enter(registers, machine) }
        self.runs = false;
        self.exit
    }
}

impl Vcpus for Machine {
    const HAS_UPCALLS: bool = bulkhead_arch_api::class::PPC405.upcalls;

    fn adopt(&mut self, vcpu: VcpuId, plan: &VcpuPlan) {
        if let Some(context) = self.contexts.adopt(vcpu) {
            context.partition = plan.partition;
            context.kind = plan.kind;
        }
        if let Some(slot) = self.first.get_mut(usize::from(plan.partition.0)) {
            slot.get_or_insert(vcpu);
        }
    }

    fn reset(&mut self, vcpu: VcpuId, reset: &VcpuReset) {
        if self.current == Some(vcpu) {
            self.current = None;
        }
        let Some(context) = self.contexts.get(vcpu) else {
            return;
        };
        context.cpu = Cpu::new(sysreg::time());
        context.pending = Pending::Nothing;
        context.registers.frame = Frame::ZERO;
        context.short.forbid_changes();
        context.short.words.serves = NEVER;
        let is_task = context.is_task();
        if is_task {
            // The short path serves the supervisor state of VMs only.
            context.cpu.msr = msr::PR;
        }
        let frame = &mut context.registers.frame;
        frame.pc = reset.entry.0 as u32;
        frame.set_register(3, reset.argument as u32);
        if is_task {
            frame.set_register(STACK as u8, (reset.stack as u32 & !15).wrapping_sub(FIRST_FRAME));
        }
    }

    fn run(&mut self, vcpu: VcpuId) -> Exit {
        self.lent = None;
        self.go_into(vcpu)
    }

    fn run_answering(&mut self, vcpu: VcpuId, calls: &impl ShortCalls<Self>) -> Exit {
        self.lent = Some(lend(calls));
        self.go_into(vcpu)
    }

    fn reply(&mut self, vcpu: VcpuId, reply: Reply) {
        let Some(context) = self.contexts.get(vcpu) else {
            return;
        };
        match reply {
            Reply::Hypercall(answer) => hypercall::answer(&mut context.registers.frame, answer),
            Reply::Read(value) => {
                context.complete(value as u32);
            }
            Reply::Written => {
                context.complete(0);
            }
            // A partition has one vCPU, and no program asks a debugger here.
            Reply::Host(_) | Reply::CpuOn(_) | Reply::CpuPower(_) => {}
        }
    }

    fn inject(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        let Some(vcpu) = self.first_of(partition) else {
            return VcpuSet::EMPTY;
        };
        if let Some(context) = self.contexts.get(vcpu) {
            context.cpu.uic.set_line(line.0, true);
        }
        VcpuSet::of(vcpu)
    }

    fn withdraw(&mut self, partition: PartitionId, line: VirtualLine) {
        let vcpu = self.first_of(partition);
        if let Some(context) = vcpu.and_then(|vcpu| self.contexts.get(vcpu)) {
            context.cpu.uic.set_line(line.0, false);
        }
    }

    fn has_work(&mut self, vcpu: VcpuId) -> bool {
        let now = sysreg::time();
        self.contexts.get(vcpu).is_some_and(|context| {
            if context.is_task() {
                return false;
            }
            context.cpu.timers.advance(now);
            context.cpu.has_interrupt() || context.cpu.timers.has_bitten()
        })
    }

    fn pause(&mut self, vcpu: VcpuId) -> Ticks {
        if self.has_work(vcpu) {
            return Ticks(0);
        }
        match self.contexts.get(vcpu) {
            Some(context) if !context.is_task() => Ticks(context.cpu.timers.next_event()),
            _ => Ticks::NEVER,
        }
    }

    fn fault(&mut self, vcpu: VcpuId, _report: &FaultReport) -> bool {
        match self.contexts.get(vcpu) {
            Some(context) if !context.is_task() => {
                context.reflect();
                true
            }
            _ => false,
        }
    }

    fn skip(&mut self, vcpu: VcpuId) -> bool {
        let context = self.contexts.get(vcpu);
        context.is_some_and(|context| context.complete(0))
    }

    fn divert(&mut self, vcpu: VcpuId, entry: GuestPhys, argument: u64) -> Option<[u64; UPCALL_WORDS]> {
        let context = self.contexts.get(vcpu).filter(|context| context.is_task())?;
        let frame = &mut context.registers.frame;
        let mut place = [0; UPCALL_WORDS];
        let [pc, state, calling @ ..] = &mut place;
        (*pc, *state) = (frame.pc.into(), frame.condition.into());
        for (word, number) in calling.iter_mut().zip(CALLING) {
            *word = frame.register(number).into();
        }
        frame.set_register(3, argument as u32);
        frame.pc = entry.0 as u32 & !3;
        Some(place)
    }

    fn go_on(&mut self, vcpu: VcpuId, place: [u64; UPCALL_WORDS]) -> bool {
        let Some(context) = self.contexts.get(vcpu).filter(|context| context.is_task()) else {
            return false;
        };
        let frame = &mut context.registers.frame;
        let [pc, state, calling @ ..] = place;
        for (word, number) in calling.into_iter().zip(CALLING) {
            frame.set_register(number, word as u32);
        }
        (frame.pc, frame.condition) = (pc as u32 & !3, state as u32);
        context.pending = Pending::Nothing;
        true
    }

    fn dump(&mut self, vcpu: VcpuId) -> Dump {
        crash::check_stack();
        let mut dump = Dump {
            general: [0; bulkhead_arch_api::DUMP_REGISTERS],
            file: &registers::POWER,
            sp: 0,
            pc: 0,
            state: 0,
        };
        if let Some(context) = self.contexts.get(vcpu) {
            let frame = &context.registers.frame;
            let others = (0_u8..32).filter(|number| usize::from(*number) != STACK);
            let [from, ..] = context.cpu.saved;
            let exception = [from, context.cpu.syndrome, context.cpu.vectors];
            let all = others.map(|number| frame.register(number)).chain(exception);
            for (register, place) in all.zip(&mut dump.general) {
                *place = register.into();
            }
            dump.sp = frame.register(STACK as u8).into();
            dump.pc = frame.pc.into();
            dump.state = context.cpu.msr.into();
        }
        dump
    }

    fn detach(&mut self, vcpu: VcpuId) {
        if self.current == Some(vcpu) {
            self.current = None;
        }
        let partition = self.contexts.get(vcpu).map(|context| {
            context.pending = Pending::Nothing;
            context.partition
        });
        if let Some(partition) = partition {
            self.forget_lines(partition);
        }
    }
}
