// SPDX-License-Identifier: Apache-2.0
//! Virtual CPUs as the kernel asks for them: adopted, reset, run, answered, shown a fault, dumped.

use crate::context::{Context, Pending, RETURN_BASIC, Registers, own_deadline};
use crate::entry::bulkhead_enter;
use crate::fp::FpRegisters;
use crate::live::Live;
use crate::log;
use crate::machine::Machine;
use crate::masks::Masks;
use crate::protection::Space;
use crate::starts;
use bulkhead_abi::log::registers;
use bulkhead_arch_api::{
    Clock, DUMP_REGISTERS, Dump, Exit, FaultReport, PartitionId, Reply, Ticks, VcpuId, VcpuPlan, VcpuReset,
    VcpuSet, Vcpus, VirtualLine,
};
use bulkhead_arch_armv7m_core::{Fault, Guest, VirtualCore, answer_hypercall, frame_size, refuse_hypercall};
use bulkhead_arch_one_pcpu::told;

/// [`Exit::Failed`] code: the vCPU was not adopted, or its partition has no space.
const FAILED_NOT_ADOPTED: u64 = 1;
/// xPSR.T.
const THUMB: u32 = 1 << 24;
/// Writes the registers of a first instruction, below the initial stack pointer. Returns false if that is not
/// the guest's memory.
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
    const HAS_UPCALLS: bool = bulkhead_arch_api::class::ARMV7M.upcalls;

    fn adopt(&mut self, vcpu: VcpuId, plan: &VcpuPlan) {
        let context = Context {
            registers: Registers::NOTHING,
            core: VirtualCore::new(self.model, 0, 0),
            unit: None,
            fp: FpRegisters::ZERO,
            partition: plan.partition,
            kind: plan.kind,
            semihosting: plan.semihosting,
            masks: Masks::of(plan.masks),
            pending: Pending::Stuck,
        };
        self.contexts.adopt(vcpu, context, &mut self.pool);
        // One partition has such lines. Of several the first one is served.
        if starts::IS_THERE && self.irq.has_early(plan.partition) {
            self.early.get_or_insert(vcpu);
        }
        if let Some(slot) = self.first.get_mut(usize::from(plan.partition.0)) {
            *slot = Some(vcpu);
        }
    }

    fn reset(&mut self, vcpu: VcpuId, reset: &VcpuReset) {
        self.settle_early(vcpu);
        self.forget_early(vcpu);
        if self.current == Some(vcpu) {
            self.detach(vcpu);
        }
        let Some(context) = self.contexts.get(vcpu) else {
            return;
        };
        context.fp = FpRegisters::ZERO;
        context.unit = None;
        let is_task = context.is_task();
        let Some(trapped) = self.trapped(vcpu) else { return };
        trapped.core.reset(reset.argument as u32, reset.stack as u32);
        let argument = if is_task { reset.argument as u32 } else { 0 };
        let fits = first_frame(trapped.registers, trapped.space, reset, argument);
        *trapped.pending = if fits { Pending::Nothing } else { Pending::Stuck };
    }

    fn run(&mut self, vcpu: VcpuId) -> Exit {
        self.settle_early(vcpu);
        self.forget_early(vcpu);
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
        // SAFETY: the registers are the first field of the current vCPU's context. `reset` or the CPU has put
        // the vCPU's frame into the vCPU's own memory. The machine is lent to `on_trap` until the return, and
        // no code uses it meanwhile.
        unsafe { bulkhead_enter(registers, machine, log::exits(Some(vcpu))) }
        told(&mut self.exit)
    }

    fn reply(&mut self, vcpu: VcpuId, reply: Reply) {
        self.settle_early(vcpu);
        let Some(mut trapped) = self.trapped(vcpu) else {
            return;
        };
        let was_access = matches!(trapped.pending, Pending::Access);
        *trapped.pending = Pending::Nothing;
        let (core, mut live) = trapped.parts();
        match reply {
            Reply::Hypercall(Ok(results)) => answer_hypercall(&mut live, &results),
            Reply::Hypercall(Err(error)) => refuse_hypercall(&mut live, error),
            Reply::Read(value) if was_access => {
                core.complete_access(&mut live, value as u32);
            }
            Reply::Written if was_access => {
                core.complete_access(&mut live, 0);
            }
            Reply::Host(answer) => core.host_answers(&mut live, answer.into()),
            // A partition has one vCPU, so none asks for the power of another one.
            Reply::Read(_) | Reply::Written | Reply::CpuOn(_) | Reply::CpuPower(_) => {}
        }
    }

    fn inject(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        let Some(vcpu) = self.first_of(partition) else {
            return VcpuSet::EMPTY;
        };
        self.settle_early(vcpu);
        if let Some(context) = self.contexts.get(vcpu) {
            context.core.set_line(line.0 as u8, true);
        }
        VcpuSet::of(vcpu)
    }

    fn pulse(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        let Some(vcpu) = self.first_of(partition) else {
            return VcpuSet::EMPTY;
        };
        self.settle_early(vcpu);
        if let Some(context) = self.contexts.get(vcpu) {
            context.core.pulse_line(line.0 as u8);
        }
        VcpuSet::of(vcpu)
    }

    fn withdraw(&mut self, partition: PartitionId, line: VirtualLine) {
        let vcpu = self.first_of(partition);
        if let Some(vcpu) = vcpu {
            self.settle_early(vcpu);
        }
        if let Some(context) = vcpu.and_then(|vcpu| self.contexts.get(vcpu)) {
            context.core.set_line(line.0 as u8, false);
        }
    }

    fn has_work(&mut self, vcpu: VcpuId) -> bool {
        if self.has_untold_early(vcpu) {
            return true;
        }
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
        self.settle_early(vcpu);
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
        // A processor that stops because of the fault is another event, which has its own action.
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
            file: &registers::M_PROFILE,
            sp: 0,
            pc: 0,
            state: 0,
        };
        self.settle_early(vcpu);
        let Some(mut trapped) = self.trapped(vcpu) else {
            return dump;
        };
        if !trapped.space.writable(trapped.registers.frame, frame_size(false)) {
            dump.sp = trapped.registers.frame;
            return dump;
        }
        let (core, live) = trapped.parts();
        dump.sp = core.stack_pointer(&live);
        // Where the last exception came from (B1.5.6), and what its fault was.
        let from = live.load(dump.sp.wrapping_add(6 * 4)).unwrap_or(0);
        let general = (0_u8..13).chain([14]).map(|number| live.register(number));
        let registers = general.chain([from, core.fault_status()]);
        for (place, register) in dump.general.iter_mut().zip(registers) {
            *place = register;
        }
        dump.pc = live.register(15);
        // A thread of the CPU's runs the guest's handlers as well.
        dump.state = live.xpsr() | u32::from(core.handler());
        dump
    }

    fn detach(&mut self, vcpu: VcpuId) {
        self.settle_early(vcpu);
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
