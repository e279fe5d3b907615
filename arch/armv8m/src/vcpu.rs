// SPDX-License-Identifier: Apache-2.0
//! Virtual CPUs as the kernel asks for them: adopted, reset, run, answered, dumped.

use crate::attribution::Attribution;
use crate::context::{Context, Pending, RETURN_TASK, RETURN_VM, Registers};
use crate::enter::bulkhead_enter;
use crate::fp::FpRegisters;
use crate::live::Live;
use crate::machine::Machine;
use crate::pair::IS_PAIR;
use crate::protection::Space;
use crate::sysreg::{self, CFSR, NVIC_ICPR, NVIC_ISPR, other_space};
use crate::wish::{Wish, forget};
use crate::world::{self, World};
use crate::{line_set, log};
use bulkhead_abi::hypercall::UPCALL_WORDS;
use bulkhead_abi::log::registers;
use bulkhead_arch_api::{
    DUMP_REGISTERS, Dump, Exit, FaultReport, GuestPhys, PartitionId, Reply, Ticks, TimeMode, VcpuId,
    VcpuPlan, VcpuReset, VcpuSet, Vcpus, VirtualLine, class,
};
use bulkhead_arch_armv7m_core::{Guest, answer_hypercall, frame_size, refuse_hypercall};
use bulkhead_arch_armv8m_core::transfer::Transfer;
use bulkhead_arch_one_pcpu::told;

/// [`Exit::Failed`] code: the vCPU was not adopted, or its partition has no space.
const FAILED_NOT_ADOPTED: u64 = 1;
/// xPSR.T.
const THUMB: u32 = 1 << 24;
/// xPSR: the parts that a task may change: the flags, and the state of an IT block or of an LDM or STM.
const OF_TASK: u32 = 0xFE0F_FC00;
/// xPSR: the frame has a word that makes its address a multiple of 8 (B3.19). It belongs to the frame.
const PADDED: u32 = 1 << 9;

/// Writes the registers of a first instruction, below the initial stack pointer. Returns false if that is not
/// the partition's memory.
fn first_frame(context: &mut Context, space: &Space, reset: &VcpuReset) -> bool {
    let frame = (reset.stack as u32 & !7).wrapping_sub(frame_size(false));
    let is_task = context.is_task();
    context.registers = Registers {
        general: [0; 8],
        frame,
        exc_return: if is_task { RETURN_TASK } else { RETURN_VM },
    };
    let mut live = Live::new(&mut context.registers, space);
    if !live.has_frame() {
        return false;
    }
    let argument = if is_task { reset.argument as u32 } else { 0 };
    for number in [0, 1, 2, 3, 12] {
        live.set_register(number, 0);
    }
    live.set_register(0, argument);
    live.set_register(14, u32::MAX);
    live.set_register(15, reset.entry.0 as u32 & !1);
    live.set_xpsr(if reset.entry.0 & 1 != 0 { THUMB } else { 0 });
    context.world = World::new(frame, reset.argument as u32);
    true
}

impl Vcpus for Machine {
    const HAS_UPCALLS: bool = class::ARMV8M.upcalls;

    fn adopt(&mut self, vcpu: VcpuId, plan: &VcpuPlan) {
        let context = Context {
            registers: Registers::NOTHING,
            world: World::new(0, 0),
            fp: FpRegisters::ZERO,
            levels: [0; line_set::WORDS],
            partition: plan.partition,
            kind: plan.kind,
            time: plan.time,
            own_faults: 0,
            pending: Pending::Stuck,
        };
        self.contexts.adopt(vcpu, context, &mut self.pool);
        if let Some(slot) = self.first.get_mut(usize::from(plan.partition.0)) {
            *slot = Some(vcpu);
        }
    }

    fn reset(&mut self, vcpu: VcpuId, reset: &VcpuReset) {
        self.detach(vcpu);
        let Some(trapped) = self.trapped(vcpu) else { return };
        forget(trapped.context.partition);
        trapped.context.fp = FpRegisters::ZERO;
        trapped.context.levels = [0; line_set::WORDS];
        trapped.context.own_faults = 0;
        let fits = first_frame(trapped.context, trapped.space, reset);
        trapped.context.pending = if fits { Pending::Nothing } else { Pending::Stuck };
    }

    fn run(&mut self, vcpu: VcpuId) -> Exit {
        let is_there = self.current == Some(vcpu) && (!self.parked || self.tenant != Some(vcpu));
        if !is_there && !self.switch_to(vcpu) {
            return Exit::Failed {
                code: FAILED_NOT_ADOPTED,
            };
        }
        self.runs = true;
        if let Some(mut trapped) = self.trapped(vcpu) {
            match trapped.context.pending {
                Pending::Stuck => return trapped.stuck(),
                Pending::Late => return trapped.late(),
                Pending::Shown => trapped.show_fault(),
                _ => {}
            }
        }
        self.set_timer();
        self.raise_levels(vcpu);
        let Some(context) = self.contexts.get(vcpu) else {
            return Exit::Failed {
                code: FAILED_NOT_ADOPTED,
            };
        };
        let registers = core::ptr::from_mut(context).cast();
        let machine = core::ptr::from_mut(self);
        // SAFETY: the registers are the first field of the current vCPU's context. `reset` or the CPU has put
        // the vCPU's frame into the vCPU's own memory. The machine is lent to `on_trap` until the return, and
        // no code uses it meanwhile.
        unsafe { bulkhead_enter(registers, machine, log::exits(Some(vcpu))) }
        told(&mut self.exit)
    }

    fn reply(&mut self, vcpu: VcpuId, reply: Reply) {
        let Some(mut trapped) = self.trapped(vcpu) else {
            return;
        };
        let was_access = trapped.context.pending == Pending::Access;
        if trapped.context.pending != Pending::Late {
            trapped.context.pending = Pending::Nothing;
        }
        let mut live = trapped.live();
        match reply {
            Reply::Hypercall(Ok(results)) => answer_hypercall(&mut live, &results),
            Reply::Hypercall(Err(error)) => refuse_hypercall(&mut live, error),
            Reply::Read(value) if was_access => complete(&mut live, value as u32),
            Reply::Written if was_access => complete(&mut live, 0),
            // A partition has one vCPU, and no debugger is called.
            Reply::Read(_) | Reply::Written | Reply::Host(_) | Reply::CpuOn(_) | Reply::CpuPower(_) => {}
        }
    }

    fn inject(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        if IS_PAIR {
            return self.ask(partition, line, Wish::High);
        }
        self.set_level(partition, line, true);
        self.pulse(partition, line)
    }

    fn pulse(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        if IS_PAIR {
            return self.ask(partition, line, Wish::Once);
        }
        let Some(vcpu) = self.first_of(partition) else {
            return VcpuSet::EMPTY;
        };
        self.set_line(vcpu, line.0, true);
        VcpuSet::of(vcpu)
    }

    fn withdraw(&mut self, partition: PartitionId, line: VirtualLine) {
        if IS_PAIR {
            self.ask(partition, line, Wish::Low);
            return;
        }
        self.set_level(partition, line, false);
        if let Some(vcpu) = self.first_of(partition) {
            self.set_line(vcpu, line.0, false);
        }
    }

    fn has_work(&mut self, vcpu: VcpuId) -> bool {
        let is_tenant = self.tenant == Some(vcpu);
        let now = self.counter.read();
        let Some(context) = self.contexts.get(vcpu).filter(|context| !context.is_task()) else {
            return false;
        };
        let is_held = self.irq.is_held(context.partition);
        if !is_tenant {
            let timer_is_due = context.time == TimeMode::Real && context.world.timer_due() <= now;
            return is_held || timer_is_due || context.world.has_work();
        }
        // The state of lines is in the context only while the VM's own lines interrupt the hypervisor.
        is_held || self.lines_are_out && context.world.has_lines() || world::has_work()
    }

    fn pause(&mut self, vcpu: VcpuId) -> Ticks {
        if self.has_work(vcpu) {
            return Ticks(0);
        }
        if self.tenant != Some(vcpu) || self.parked {
            return Ticks::NEVER;
        }
        // The world stays in the hardware, so its timer goes on.
        let now = self.counter.read();
        Attribution::open_block();
        let left = world::timer_left();
        Attribution::close_block();
        left.map_or(Ticks::NEVER, |left| Ticks(now.saturating_add(left.into())))
    }

    fn fault(&mut self, vcpu: VcpuId, _report: &FaultReport) -> bool {
        let is_there = self.tenant == Some(vcpu) && !self.parked;
        let Some(mut trapped) = self.trapped(vcpu).filter(|trapped| !trapped.context.is_task()) else {
            return false;
        };
        match trapped.context.pending {
            Pending::Fault | Pending::Access if is_there => trapped.show_fault(),
            Pending::Fault | Pending::Access => trapped.context.pending = Pending::Shown,
            Pending::Nothing | Pending::Shown | Pending::Late | Pending::Stuck => return false,
        }
        true
    }

    fn skip(&mut self, _vcpu: VcpuId) -> bool {
        false
    }

    fn divert(&mut self, vcpu: VcpuId, entry: GuestPhys, argument: u64) -> Option<[u64; UPCALL_WORDS]> {
        let mut trapped = self.trapped(vcpu).filter(|trapped| trapped.context.is_task())?;
        let mut live = trapped.live();
        if !live.has_frame() {
            return None;
        }
        let mut place = [0; UPCALL_WORDS];
        let [pc, state, calling @ ..] = &mut place;
        (*pc, *state) = (live.register(15).into(), live.xpsr().into());
        for (word, number) in calling.iter_mut().zip(0..) {
            *word = live.register(number).into();
        }
        live.set_register(0, argument as u32);
        live.set_register(15, entry.0 as u32 & !1);
        live.set_xpsr(live.xpsr() & PADDED | THUMB);
        Some(place)
    }

    fn go_on(&mut self, vcpu: VcpuId, place: [u64; UPCALL_WORDS]) -> bool {
        let Some(mut trapped) = self.trapped(vcpu).filter(|trapped| trapped.context.is_task()) else {
            return false;
        };
        let mut live = trapped.live();
        let [pc, state, calling @ ..] = place;
        for (word, number) in calling.into_iter().zip(0..) {
            live.set_register(number, word as u32);
        }
        live.set_register(15, pc as u32 & !1);
        // A task goes on in Thread mode, and its only instructions are T32.
        let padded = live.xpsr() & PADDED;
        live.set_xpsr(state as u32 & OF_TASK | padded | THUMB);
        trapped.context.pending = Pending::Nothing;
        true
    }

    fn dump(&mut self, vcpu: VcpuId) -> Dump {
        let mut dump = Dump {
            general: [0; DUMP_REGISTERS],
            file: &registers::M_PROFILE,
            sp: 0,
            pc: 0,
            state: 0,
        };
        let is_there = self.tenant == Some(vcpu);
        let Some(mut trapped) = self.trapped(vcpu) else {
            return dump;
        };
        dump.sp = trapped.context.registers.frame;
        let live = trapped.live();
        // Without a frame, r4 to r11 are known, and where the stack is.
        if live.has_frame() {
            dump.sp = dump.sp.wrapping_add(frame_size(live.extended()));
        }
        // Where the last exception came from (B3.19), and what its fault was.
        let from = live.load(dump.sp.wrapping_add(6 * 4)).unwrap_or(0);
        let status = if is_there { other_space().read32(CFSR) } else { 0 };
        let general = (0_u8..13).chain([14]).map(|number| live.register(number));
        let registers = general.chain([from, status]);
        for (place, register) in dump.general.iter_mut().zip(registers) {
            *place = register;
        }
        dump.pc = live.register(15);
        dump.state = live.xpsr();
        dump
    }

    fn detach(&mut self, vcpu: VcpuId) {
        self.return_floats();
        if self.tenant == Some(vcpu) {
            self.evict();
        }
        if self.current == Some(vcpu) {
            self.current = None;
        }
        if let Some(context) = self.contexts.get(vcpu) {
            context.pending = Pending::Stuck;
            let partition = context.partition;
            self.irq.forget(partition);
        }
    }
}

/// Ends the load or store at the PC, which the kernel has answered.
fn complete(live: &mut Live<'_>, value: u32) {
    if let Some(transfer) = Transfer::at_pc(live) {
        transfer.complete(live, value);
    }
}

impl Machine {
    /// Notes the level of a virtual line.
    fn set_level(&mut self, partition: PartitionId, line: VirtualLine, level: bool) {
        let vcpu = self.first_of(partition);
        if let Some(context) = vcpu.and_then(|vcpu| self.contexts.get(vcpu)) {
            line_set::set(&mut context.levels, line.0, level);
        }
    }

    /// Makes a line of a VM pending, or not.
    pub(crate) fn set_line(&mut self, vcpu: VcpuId, line: u32, is_pending: bool) {
        if line >= sysreg::MAX_LINES {
            return;
        }
        if self.tenant == Some(vcpu) {
            let bank = if is_pending { NVIC_ISPR } else { NVIC_ICPR };
            let word = 4 * (line as usize >> 5);
            other_space().write32(bank + word, 1_u32.wrapping_shl(line));
        }
        if (self.tenant != Some(vcpu) || self.lines_are_out)
            && let Some(context) = self.contexts.get(vcpu)
        {
            line_set::set(&mut context.world.lines.pending, line, is_pending);
        }
    }
}
