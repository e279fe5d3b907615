// SPDX-License-Identifier: Apache-2.0
//! Virtual CPUs for the kernel: adoption, reset, entry, answers and reflected faults.

use crate::board::BOARD;
use crate::bring_up::{direct_ports, maps};
use crate::context::{
    CONTEXTS, Context, FpRegisters, KNOWN, Pending, R8, R9, R10, R11, RAX, RBX, RCX, RDI, RDX, RSI, RSP,
};
use crate::machine::Machine;
use crate::space::TASK_ROOT;
use crate::{direct, emulate, entry, log, platform, ports, registers, space, svm, sysreg, traps, trees};
use bulkhead_abi::hypercall::UPCALL_WORDS;
use bulkhead_arch_api::class::x86_64::{BOOT_GDT, BOOT_GDT_SIZE, FLAT_32, LONG_64, LONG_MODE_ROOT};
use bulkhead_arch_api::{
    DUMP_REGISTERS, Dump, Exit, FaultReport, GuestPhys, PartitionId, PartitionKind, RegisterAccess, Reply,
    ShortCalls, Ticks, TimeMode, VcpuId, VcpuPlan, VcpuReset, VcpuSet, Vcpus, VirtualLine,
};
use bulkhead_arch_x86_64_core::lapic::Window;

/// The vCPU was not adopted by this pCPU.
const NOT_ADOPTED: Exit = Exit::Failed { code: 1 };

/// Attributes of segments: type, S, DPL and P, then AVL, L, D and G.
const CODE_16: u16 = 0x09B;
const CODE_32: u16 = 0xC9B;
const CODE_64: u16 = 0xA9B;
const CODE_TASK: u16 = 0xAFB;
const DATA_16: u16 = 0x093;
const DATA_32: u16 = 0xC93;
const DATA_TASK: u16 = 0xCF3;
const LOCAL_TABLE: u16 = 0x082;
const TASK_STATE: u16 = 0x08B;
const DATA_SEGMENTS: [usize; 5] = [svm::ES, svm::SS, svm::DS, svm::FS, svm::GS];

/// CR0: PE and ET; PG; NE and MP. After a reset: caches off, ET.
const CR0_FLAT: u64 = 0x11;
const CR0_LONG: u64 = CR0_FLAT | 1 << 31;
const CR0_TASK: u64 = CR0_LONG | 0x22;
const CR0_RESET: u64 = 0x6000_0010;
/// CR4: PAE; OSFXSR and OSXMMEXCPT.
const CR4_LONG: u64 = 0x20;
const CR4_TASK: u64 = 0x620;
/// EFER: LME and LMA; NXE.
const EFER_LONG: u64 = 0x500;
const EFER_TASK: u64 = 0xD00;
/// PAT after a reset (AMD APM volume 2, 7.8.2).
const PAT_RESET: u64 = 0x0007_0406_0007_0406;
/// DR6, DR7 and RFLAGS after a reset.
const DR6_RESET: u64 = 0xFFFF_0FF0;
const DR7_RESET: u64 = 0x400;
const RFLAGS_RESET: u64 = 2;
/// RFLAGS with interrupts on.
const RFLAGS_TASK: u64 = 0x202;
/// The flags of RFLAGS that an instruction without privileges computes: CF, PF, AF, ZF, SF, DF and OF.
const RFLAGS_COMPUTED: u64 = 0xCD5;
/// The registers of an upcall's place: the registers of a call, then the others that a function need not
/// keep.
const CALLING: [usize; 9] = [RDI, RSI, RDX, RCX, R8, R9, RAX, R10, R11];

impl Context {
    /// Sets all registers as a reset leaves them.
    fn blank(&mut self) {
        let is_task = self.is_task();
        self.vmcb.control(maps(), is_task);
        if self.plan.direct {
            self.vmcb.direct(direct_ports());
        }
        let vmcb = &mut self.vmcb;
        vmcb.set(svm::NESTED_ROOT, trees::root_of(self.plan.partition));
        let spaces = BOARD.get().map_or(1, |board| board.spaces);
        let own = u32::from(self.id.0) + 1;
        // vCPUs that have no identifier of their own share the last one.
        self.shares_space = own >= spaces - 1;
        vmcb.set_space(if self.shares_space { spaces - 1 } else { own });
        for segment in DATA_SEGMENTS {
            vmcb.set_segment(segment, 0, DATA_16, 0);
        }
        vmcb.set_segment(svm::CS, 0, CODE_16, 0);
        vmcb.set_segment(svm::LDTR, 0, LOCAL_TABLE, 0);
        vmcb.set_segment(svm::TR, 0, TASK_STATE, 0);
        vmcb.set_segment(svm::GDTR, 0, 0, 0);
        vmcb.set_segment(svm::IDTR, 0, 0, 0);
        for (field, value) in [
            (svm::EFER, sysreg::EFER_SVME),
            (svm::CR0, CR0_RESET),
            (svm::DR6, DR6_RESET),
            (svm::DR7, DR7_RESET),
            (svm::RFLAGS, RFLAGS_RESET),
            (svm::PAT, PAT_RESET),
            (svm::TSC_OFFSET, 0),
        ] {
            vmcb.set(field, value);
        }
        self.general = [0; 16];
        self.fp = FpRegisters::RESET;
        self.pending = Pending::Nothing;
        (self.reflect, self.skip_to, self.event) = (0, None, 0);
        (self.offset, self.since, self.idle_until) = (0, 0, 0);
        (self.auxiliary, self.starting, self.task_priority) = (0, (0, 0), 0);
        self.debug = None;
        (self.forget, self.halted, self.due) = (true, false, Ticks(0));
        (self.in_nmi, self.step, self.window) = (false, None, Window::Nothing);
        self.known = [None; KNOWN];
    }

    /// Sets the state in which the usual vCPU starts: after a start-up IPI.
    fn start_real(&mut self, entry: u64) {
        let page = entry >> 12 & 0xFF;
        self.vmcb
            .set_segment(svm::CS, (page << 8) as u16, CODE_16, page << 12);
        self.vmcb.set(svm::RIP, entry & 0xFFF);
    }

    /// Sets what both protected states have in common.
    fn start_protected(&mut self, entry: u64, code: u16) {
        let vmcb = &mut self.vmcb;
        vmcb.set_segment(svm::CS, 0x10, code, 0);
        for segment in DATA_SEGMENTS {
            vmcb.set_segment(segment, 0x18, DATA_32, 0);
        }
        vmcb.set(svm::GDTR, (BOOT_GDT_SIZE - 1) << 32);
        vmcb.set(svm::GDTR + 8, BOOT_GDT);
        vmcb.set(svm::RIP, entry);
    }

    fn start_long(&mut self, entry: u64, argument: u64) {
        self.start_protected(entry, CODE_64);
        let vmcb = &mut self.vmcb;
        vmcb.set(svm::CR0, CR0_LONG);
        vmcb.set(svm::CR3, LONG_MODE_ROOT);
        vmcb.set(svm::CR4, CR4_LONG);
        vmcb.set(svm::EFER, sysreg::EFER_SVME | EFER_LONG);
        self.set_general(RSI, argument);
    }

    fn start_flat(&mut self, entry: u64, argument: u64) {
        self.start_protected(entry, CODE_32);
        self.vmcb.set(svm::CR0, CR0_FLAT);
        self.set_general(RBX, argument);
    }

    /// Sets the state of a task: 64-bit mode at privilege level 3, with no handler for anything.
    fn start_task(&mut self, reset: &VcpuReset) {
        let vmcb = &mut self.vmcb;
        vmcb.set_segment(svm::CS, 0x33, CODE_TASK, 0);
        for segment in DATA_SEGMENTS {
            vmcb.set_segment(segment, 0x2B, DATA_TASK, 0);
        }
        for (field, value) in [
            (svm::CPL, 3 << 24),
            (svm::CR0, CR0_TASK),
            (svm::CR3, TASK_ROOT),
            (svm::CR4, CR4_TASK),
            (svm::EFER, sysreg::EFER_SVME | EFER_TASK),
            (svm::RFLAGS, RFLAGS_TASK),
            (svm::RIP, reset.entry.0),
        ] {
            vmcb.set(field, value);
        }
        self.set_general(RDI, reset.argument);
        self.set_general(RSP, reset.stack);
    }
}

impl Machine {
    /// Runs `action` on the context of an adopted vCPU.
    #[inline(always)]
    pub(crate) fn with<R>(
        &mut self,
        vcpu: VcpuId,
        action: impl FnOnce(&mut Self, &mut Context) -> R,
    ) -> Option<R> {
        self.with_adopted(vcpu, None, |machine, context| Some(action(machine, context)))
    }

    /// Runs `action` on the context of a vCPU. Returns `otherwise` if it is not adopted.
    #[inline(always)]
    fn with_adopted<R>(
        &mut self,
        vcpu: VcpuId,
        otherwise: R,
        action: impl FnOnce(&mut Self, &mut Context) -> R,
    ) -> R {
        let Some(context) = self.adopted(vcpu) else {
            return otherwise;
        };
        // SAFETY: this pCPU claimed the slot in `adopt`, `&mut self` is the only handle of this pCPU, and no
        // other function of it holds a reference to a context while it calls this one.
        action(self, unsafe { &mut *context })
    }

    /// Runs a vCPU until something needs the kernel. Meanwhile others do not tell the kernel what they have
    /// for it, but its pCPU. `ask` answers an access to the console, or returns false and has done nothing.
    #[inline(always)]
    fn run_context(
        &mut self,
        context: &mut Context,
        ask: impl Fn(&mut Context, &RegisterAccess) -> bool,
    ) -> Exit {
        if context.plan.direct
            && let Some(exit) = self.begin_direct()
        {
            return exit;
        }
        let Some(local) = platform::local(context.id) else {
            return NOT_ADOPTED;
        };
        local.note_running(true);
        // Another vCPU may have run meanwhile, and one that has waited may be due. The acts of others are in
        // its news.
        self.looks |= context.halted || !core::ptr::eq(self.current, context);
        loop {
            let exit = self.run_noted(context);
            if let Some(Exit::Register(access)) = &exit
                && ask(context, access)
            {
                continue;
            }
            local.note_running(false);
            if let Some(Exit::Idle { .. }) = exit {
                // Something may have come between the decision to idle and the note.
                if !(local.is_changed() && self.has_work_for(context)) {
                    // Two words, where the exit is more.
                    return Exit::Idle {
                        until: Ticks(context.idle_until),
                    };
                }
            } else if let Some(exit) = exit {
                return exit;
            }
            local.note_running(true);
            self.looks = true;
        }
    }

    /// Runs a vCPU that is noted as running. Each turn is an exit; a pending interrupt of the pCPU ends the
    /// next one at once, so no guest can stay here beyond the kernel's deadline. The result is an exit
    /// always: as an option it stays where the handlers put it.
    #[inline(never)]
    fn run_noted(&mut self, context: &mut Context) -> Option<Exit> {
        if !core::ptr::eq(self.current, context) {
            self.switch_to(context);
        }
        context.idle_until = 0;
        let mut exit = if context.halted { self.halt(context) } else { None };
        loop {
            if exit.is_none() {
                exit = self.prepare(context);
            }
            if exit.is_some() {
                return exit;
            }
            if context.plan.direct {
                match self.enter_direct(context) {
                    direct::Entered::Ran => {}
                    direct::Entered::Noted => continue,
                    direct::Entered::Left(left) => return Some(left),
                }
            } else {
                // SAFETY: the context is adopted by this pCPU and prepared; nothing else refers to it until
                // the return.
                unsafe { entry::bulkhead_enter(context, self.host) }
            }
            exit = traps::handle(self, context);
        }
    }
}

impl Vcpus for Machine {
    const HAS_UPCALLS: bool = bulkhead_arch_api::class::X86_64.upcalls;

    fn adopt(&mut self, vcpu: VcpuId, plan: &VcpuPlan) {
        if !CONTEXTS.claim(usize::from(vcpu.0)) {
            return;
        }
        self.owned.insert_all(VcpuSet::of(vcpu));
        platform::adopt(vcpu, plan, self.pcpu);
        if plan.kind == PartitionKind::Task {
            // A task without tables faults at its first instruction, which the kernel reports.
            let _is_reported = space::build_task(plan.partition);
        }
        // Messages for a vCPU that is off find it by its number.
        platform::reset_local(vcpu, plan.index, false);
        if plan.direct {
            self.own_direct();
        }
        self.with(vcpu, |_, context| {
            (context.id, context.plan) = (vcpu, *plan);
            context.counters = log::counters(vcpu);
        });
    }

    fn reset(&mut self, vcpu: VcpuId, reset: &VcpuReset) {
        self.with(vcpu, |machine, context| {
            if core::ptr::eq(machine.current, context) {
                machine.unload();
            }
            context.blank();
            platform::reset_local(vcpu, context.plan.index, context.plan.index != 0);
            // The family is in EDX after a reset; nothing else is told there.
            context.set_general(RDX, 0);
            if context.is_task() {
                context.start_task(reset);
            } else if reset.state == LONG_64 {
                context.start_long(reset.entry.0, reset.argument);
            } else if reset.state == FLAT_32 {
                context.start_flat(reset.entry.0, reset.argument);
            } else {
                context.start_real(reset.entry.0);
            }
            context.rare = context.shares_space
                || context.plan.time == TimeMode::Frozen
                || machine.predictions.need_barrier();
        });
    }

    fn run(&mut self, vcpu: VcpuId) -> Exit {
        let ask = |_: &mut Context, _: &RegisterAccess| false;
        self.with_adopted(vcpu, NOT_ADOPTED, |machine, context| {
            machine.run_context(context, ask)
        })
    }

    fn run_answering(&mut self, vcpu: VcpuId, calls: &impl ShortCalls<Self>) -> Exit {
        let ask = |context: &mut Context, access: &RegisterAccess| ports::ask(context, access, calls);
        self.with_adopted(vcpu, NOT_ADOPTED, |machine, context| {
            machine.run_context(context, ask)
        })
    }

    /// An access to the console is [`Exit::Register`] always, so there is nothing to be told.
    const SHORTENS: bool = true;

    fn answer(&mut self, vcpu: VcpuId, value: u64) {
        self.with(vcpu, |_, context| ports::finish(context, value));
    }

    fn reply(&mut self, vcpu: VcpuId, reply: Reply) {
        self.with(vcpu, |_, context| match reply {
            Reply::Hypercall(Ok([first, second, third, fourth])) => {
                for (register, value) in [(RAX, 0), (RDI, first), (RSI, second), (RDX, third), (RCX, fourth)]
                {
                    context.set_general(register, value);
                }
                context.pending = Pending::Nothing;
            }
            Reply::Hypercall(Err(error)) => {
                context.set_general(RAX, error as bulkhead_abi::Error as i64 as u64);
                context.pending = Pending::Nothing;
            }
            Reply::Read(value) => finish(context, value),
            Reply::Written => finish(context, 0),
            // A start-up IPI has no answer, and nothing else is asked for.
            Reply::CpuOn(_) | Reply::CpuPower(_) | Reply::Host(_) => {}
        });
    }

    fn inject(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        platform::set_line(partition, line, true, self.pcpu)
    }

    fn withdraw(&mut self, partition: PartitionId, line: VirtualLine) {
        // A line that goes low gives no vCPU anything to do.
        let _nobody = platform::set_line(partition, line, false, self.pcpu);
    }

    fn has_work(&mut self, vcpu: VcpuId) -> bool {
        self.with(vcpu, Self::has_work_for).unwrap_or(false)
    }

    fn pause(&mut self, vcpu: VcpuId) -> Ticks {
        self.with(vcpu, |machine, context| {
            let until = machine.rest(context);
            context.idle_until = until.0;
            until
        })
        .unwrap_or(Ticks::NEVER)
    }

    fn fault(&mut self, vcpu: VcpuId, _report: &FaultReport) -> bool {
        self.with(vcpu, |_, context| {
            context.pending = Pending::Nothing;
            if context.is_task() || context.reflect == 0 {
                return false;
            }
            context.event = context.reflect;
            true
        })
        .unwrap_or(false)
    }

    fn skip(&mut self, vcpu: VcpuId) -> bool {
        self.with(vcpu, |_, context| {
            let Some(next) = context.skip_to.filter(|_| !context.is_task()) else {
                return false;
            };
            finish(context, 0);
            context.pending = Pending::Nothing;
            context.go_to(next);
            true
        })
        .unwrap_or(false)
    }

    fn divert(&mut self, vcpu: VcpuId, entry: GuestPhys, argument: u64) -> Option<[u64; UPCALL_WORDS]> {
        self.with(vcpu, |_, context| {
            if !context.is_task() {
                return None;
            }
            let mut place = [0; UPCALL_WORDS];
            let [pc, flags, calling @ ..] = &mut place;
            (*pc, *flags) = (context.vmcb.get(svm::RIP), context.vmcb.get(svm::RFLAGS));
            for (word, register) in calling.iter_mut().zip(CALLING) {
                *word = context.general(register);
            }
            context.set_general(RDI, argument);
            context.vmcb.set(svm::RFLAGS, RFLAGS_TASK);
            context.go_to(canonical(entry.0));
            Some(place)
        })
        .flatten()
    }

    fn go_on(&mut self, vcpu: VcpuId, place: [u64; UPCALL_WORDS]) -> bool {
        self.with(vcpu, |_, context| {
            if !context.is_task() {
                return false;
            }
            let [pc, flags, calling @ ..] = place;
            for (register, word) in CALLING.into_iter().zip(calling) {
                context.set_general(register, word);
            }
            let flags = RFLAGS_TASK | flags & RFLAGS_COMPUTED;
            context.vmcb.set(svm::RFLAGS, flags);
            context.go_to(canonical(pc));
            context.pending = Pending::Nothing;
            true
        })
        .unwrap_or(false)
    }

    fn dump(&mut self, vcpu: VcpuId) -> Dump {
        let mut dump = Dump {
            general: [0; DUMP_REGISTERS],
            file: &bulkhead_abi::log::registers::AMD64,
            sp: 0,
            pc: 0,
            state: 0,
        };
        self.with(vcpu, |_, context| {
            let vmcb = &context.vmcb;
            let general = context.general.iter().enumerate();
            let general = general
                .filter(|(number, _)| *number != RSP)
                .map(|(_, value)| *value);
            let others = [
                svm::CR0,
                svm::CR2,
                svm::CR3,
                svm::CR4,
                svm::EFER,
                svm::CS,
                svm::CS + 8,
                svm::SS,
                svm::DS,
                svm::GDTR + 8,
                svm::IDTR + 8,
                svm::TR + 8,
                svm::EXIT_EVENT,
                svm::EXIT_INFO_1,
                svm::EXIT_INFO_2,
                svm::EXIT_CODE,
            ]
            .map(|field| vmcb.get(field));
            for (place, value) in dump.general.iter_mut().zip(general.chain(others)) {
                *place = value;
            }
            dump.sp = context.general(RSP);
            dump.pc = vmcb.get(svm::RIP);
            dump.state = vmcb.get(svm::RFLAGS);
        });
        dump
    }

    fn detach(&mut self, vcpu: VcpuId) {
        self.with(vcpu, |machine, context| {
            if core::ptr::eq(machine.current, context) {
                machine.unload();
            }
            if context.plan.direct {
                direct::silence();
            }
            context.pending = Pending::Nothing;
        });
    }
}

/// Returns an address whose upper bits are copies of bit 47 (AMD APM volume 2, 5.3.1), as an RIP must be. An
/// address that changes is none of a task's, so the task faults there.
const fn canonical(address: u64) -> u64 {
    ((address << 16) as i64 >> 16) as u64
}

/// Gives an access its answer.
fn finish(context: &mut Context, value: u64) {
    match context.pending {
        Pending::Memory { .. } => emulate::finish(context, value),
        Pending::Port { .. } => ports::finish(context, value),
        Pending::Register { .. } => registers::finish(context, value),
        Pending::Nothing | Pending::Call => {}
    }
}
