// SPDX-License-Identifier: Apache-2.0
//! Virtual CPUs: contexts, the switch between them, reset, answers and reflected faults.
//!
//! A [`Context`] lives in static storage and belongs to the pCPU that adopted its vCPU. At any time at
//! most one vCPU is *current* on a pCPU: its EL1 registers, timers and list registers are in the
//! hardware, whether it runs or not, and stay there over hypercalls and idle time. They move only when
//! another vCPU runs, or when the kernel asks for something (reset, detach, fault) that is simpler done
//! on memory. General registers are in the context whenever Rust code outside a handler runs.

use crate::aarch32::Banked;
use crate::debug::Debug;
use crate::fp::{CPTR_TRAP, FpRegisters};
use crate::irq::{self, VcpuIrq};
use crate::machine::Machine;
use crate::state::{Auxiliary, El1State, RESET_PSTATE, TASK_PSTATE};
use crate::sysreg::{instruction, write_guest_register};
use crate::timer::{self, Timers};
use crate::traps::stepped;
use crate::{aarch32, entry, inject, serror, space, state};
use bulkhead_abi::{Error, HealthClass};
use bulkhead_arch_api::{
    CpuOnResult, CpuPower, Dump, Exit, FaultReport, GuestPhys, Hypercall, MAX_PARTITIONS, MAX_VCPUS,
    PartitionId, PartitionKind, Reply, Ticks, TimeMode, VcpuId, VcpuPlan, VcpuReset, VcpuSet, Vcpus,
    VirtualLine,
};
use bulkhead_arch_support::ClaimTable;
use core::cell::UnsafeCell;

/// Reason of `bulkhead_enter`: a hypercall whose arguments are in the general registers.
pub(crate) const LEAVE_HYPERCALL: u64 = 1;
/// Reason of `bulkhead_enter`: what [`Context::exit`] says.
pub(crate) const LEAVE_EXIT: u64 = 2;

/// Reason of `bulkhead_enter`: [`Exit::Idle`], the time is in the context's timers.
pub(crate) const LEAVE_IDLE: u64 = 4;

/// Reason of `bulkhead_enter`: [`Exit::CpuOn`] with the vCPU, entry and argument in x1..x3.
pub(crate) const LEAVE_CPU_ON: u64 = 5;

/// [`Exit::Failed`] code: the vCPU was not adopted by this pCPU.
const FAILED_NOT_ADOPTED: u64 = 1;
/// [`Exit::Failed`] code: the CPU has no AArch32 state at EL1.
const FAILED_NO_AARCH32: u64 = 2;

/// HCR_EL2 (Arm DDI 0487 D19.2.48), common: VM, SWIO, PTW, FMO, IMO, AMO, TWI, TSC, TIDCP, RW.
const HCR_COMMON: u64 = 1 | 1 << 1 | 1 << 2 | 7 << 3 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 31;
/// A VM besides: TID3, TACR, TLOR, TERR.
const HCR_VM: u64 = HCR_COMMON | 1 << 18 | 1 << 21 | 1 << 35 | 1 << 36;
/// A task besides: TGE, so that every exception comes here, and DC, so that its memory is cacheable
/// although it has no stage-1 translation.
const HCR_TASK: u64 = HCR_COMMON | 1 << 27 | 1 << 12;
/// HCR_EL2.RW: EL1 is AArch64.
const HCR_RW: u64 = 1 << 31;
/// HCR_EL2.TWI: an idle instruction traps.
const HCR_TWI: u64 = 1 << 13;

/// What the last exit left to finish in the guest's registers.
#[derive(Clone, Copy)]
pub(crate) enum Pending {
    /// Nothing.
    Nothing,
    /// A load that the kernel answers, and the bytes of the instruction that are still to be stepped over.
    Load { load: Load, length: u64 },
    /// A store that the kernel answers.
    Store { length: u64 },
    /// A forbidden MRS, MSR or SYS, which can be skipped; the register an MRS writes, else 31.
    Register { target: u8, length: u64 },
}

/// Where the value of a load goes: register, bytes, whether to extend the sign, whether the register is 64 bits wide, and
/// whether its bytes come in the other order.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) register: u8,
    pub(crate) size: u8,
    pub(crate) sign_extend: bool,
    pub(crate) wide: bool,
    pub(crate) big_endian: bool,
}

/// It has AArch32 state.
pub(crate) const RARE_AARCH32: u8 = 1;
/// Its time is frozen while it is not current.
const RARE_FROZEN: u8 = 1 << 1;
/// Its debug exceptions are on.
pub(crate) const RARE_DEBUG: u8 = 1 << 2;
/// The CPU has [`Auxiliary`] registers.
const RARE_AUXILIARY: u8 = 1 << 3;
/// The CPU interface has more active priorities than the short way looks at.
const RARE_PRIORITIES: u8 = 1 << 5;
/// An SError that it was given may be pending still.
pub(crate) const RARE_SERROR: u8 = 1 << 4;
/// The CPU has the RAS extension.
pub(crate) const RARE_RAS: u8 = 1 << 6;
/// An SError of its own came when it was not current any more, and is its next exit.
pub(crate) const RARE_LATE: u8 = 1 << 7;

/// A vCPU. What every switch moves comes first, where one instruction reaches two words.
#[repr(C)]
pub(crate) struct Context {
    /// x0..x30; `entry` saves and loads them by these offsets.
    pub(crate) general: [u64; 31],
    /// ELR_EL2.
    pub(crate) pc: u64,
    /// SPSR_EL2.
    pub(crate) pstate: u64,
    /// EL1 and EL0 registers, while the vCPU is not current.
    pub(crate) el1: El1State,
    /// Timers, while the vCPU is not current.
    pub(crate) timers: Timers,
    /// HCR_EL2 while it is current.
    pub(crate) hcr: u64,
    /// VMPIDR_EL2 while it is current.
    pub(crate) vmpidr: u64,
    /// VTTBR_EL2 while it is current.
    pub(crate) space: u64,
    /// CPTR_EL2 while it is current.
    pub(crate) cptr: u64,
    /// What a switch must see to besides: `RARE_*`.
    pub(crate) rare: u8,
    /// List registers and what else `irq` keeps per vCPU.
    pub(crate) irq: VcpuIrq,
    /// Implementation-defined registers, while the vCPU is not current.
    pub(crate) auxiliary: Auxiliary,
    /// What only AArch32 has, while the vCPU is not current.
    pub(crate) banked: Banked,
    /// FP/SIMD registers, unless the pCPU holds them.
    pub(crate) fp: FpRegisters,
    /// Since its reset it has used them.
    pub(crate) fp_used: bool,
    /// Debug registers as the guest sees them.
    pub(crate) debug: Debug,
    /// Number.
    pub(crate) id: VcpuId,
    /// What the kernel said of it at boot.
    pub(crate) plan: VcpuPlan,
    /// It is off, and its registers are those of a reset.
    pub(crate) is_blank: bool,
    /// The SError of [`RARE_LATE`], as ESR_EL2 had it.
    pub(crate) late: u64,
    /// What [`Vcpus::reply`] must finish.
    pub(crate) pending: Pending,
    /// The exit, if `bulkhead_enter` returned [`LEAVE_EXIT`].
    pub(crate) exit: Exit,
}

impl Context {
    const fn new() -> Self {
        Self {
            general: [0; 31],
            pc: 0,
            pstate: 0,
            el1: El1State::ZERO,
            timers: Timers::ZERO,
            hcr: 0,
            vmpidr: 0,
            space: 0,
            cptr: CPTR_TRAP,
            rare: 0,
            irq: VcpuIrq::new(),
            auxiliary: Auxiliary::ZERO,
            banked: Banked::ZERO,
            fp: FpRegisters::ZERO,
            fp_used: false,
            debug: Debug::ZERO,
            id: VcpuId(0),
            is_blank: false,
            plan: VcpuPlan {
                partition: PartitionId(0),
                kind: PartitionKind::Vm,
                index: 0,
                first: VcpuId(0),
                count: 1,
                time: bulkhead_arch_api::TimeMode::Real,
                aarch32: false,
                idle_in_place: false,
                semihosting: false,
            },
            late: 0,
            pending: Pending::Nothing,
            exit: Exit::Signal,
        }
    }

    /// Register `number` as an instruction reads it; 31 is the zero register.
    #[inline]
    pub(crate) fn read_general(&self, number: u8) -> u64 {
        self.general.get(usize::from(number)).copied().unwrap_or(0)
    }

    /// Writes register `number`; 31 is the zero register.
    #[inline]
    pub(crate) fn write_general(&mut self, number: u8, value: u64) {
        if let Some(register) = self.general.get_mut(usize::from(number)) {
            *register = value;
        }
    }

    /// Whether it runs a program instead of a machine.
    #[inline]
    pub(crate) fn is_task(&self) -> bool {
        self.plan.kind == PartitionKind::Task
    }

    /// All registers as a reset leaves them, but for what a start names. It must not be current, and the pCPU must not hold its
    /// FP registers.
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
        if self.plan.aarch32 {
            self.el1.sctlr = aarch32::SCTLR_RESET;
        }
    }

    /// The exit that `bulkhead_enter` returned for, if it is not [`LEAVE_IDLE`].
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

    /// The guest may have switched its debug exceptions on or off.
    pub(crate) fn note_debug(&mut self) {
        let debug = if self.debug.active() { RARE_DEBUG } else { 0 };
        self.rare = self.rare & !RARE_DEBUG | debug;
    }

    /// What leaving takes besides, for a vCPU that is `rare`.
    #[inline(never)]
    fn save_rare(&mut self) {
        if self.rare & RARE_FROZEN != 0 {
            self.timers.freeze();
        }
        if self.rare & RARE_DEBUG != 0 {
            self.debug.unload();
        }
        if self.rare & RARE_AARCH32 != 0 {
            self.banked.save();
        }
        if self.rare & RARE_AUXILIARY != 0 {
            self.auxiliary.save();
        }
        if self.rare & RARE_SERROR != 0 && !inject::serror_is_pending() {
            self.drop_serror();
        }
    }

    /// What coming takes besides, for a vCPU that is `rare`.
    #[inline(never)]
    fn load_rare(&mut self) {
        if self.rare & RARE_FROZEN != 0 {
            self.timers.thaw();
        }
        if self.rare & RARE_DEBUG != 0 {
            self.debug.load();
        }
        if self.rare & RARE_AARCH32 != 0 {
            self.banked.load();
            write_guest_register!("cptr_el2", self.cptr);
        }
        if self.rare & RARE_AUXILIARY != 0 {
            self.auxiliary.load();
        }
        if self.rare & RARE_RAS != 0 {
            state::forget_deferred();
        }
        if self.rare & RARE_SERROR != 0 {
            inject::describe_serror();
        }
    }

    /// The exit if it is current and cannot be entered: an SError that came late, as [`Machine::switch_to`] found, or this CPU
    /// cannot run it.
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

    /// No SError is pending for it.
    fn drop_serror(&mut self) {
        self.hcr &= !inject::HCR_VSE;
        self.rare &= !RARE_SERROR;
    }

    /// Steps over the instruction that led to the last exit.
    #[inline]
    fn advance(&mut self, length: u64) {
        self.pc = self.pc.wrapping_add(length);
        self.pstate = stepped(self.pstate);
    }

    /// Gives it the answer to its last exit.
    #[inline(never)]
    fn answer(&mut self, reply: Reply) {
        match reply {
            Reply::Hypercall(Ok([first, second, third, fourth])) => {
                let [x0, x1, x2, x3, x4, ..] = &mut self.general;
                (*x0, *x1, *x2, *x3, *x4) = (0, first, second, third, fourth);
            }
            Reply::Hypercall(Err(error)) => self.write_general(0, error as Error as i64 as u64),
            Reply::Read(value) => {
                if let Pending::Load { load, length } = self.pending {
                    self.finish_load(load, value);
                    self.advance(length);
                }
            }
            Reply::Written => {
                if let Pending::Store { length } = self.pending {
                    self.advance(length);
                }
            }
            // Done where it is given, or never asked for.
            Reply::CpuOn(_) | Reply::Host(_) => return,
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

    /// Gives a load its value, extended as the instruction says.
    #[inline]
    pub(crate) fn finish_load(&mut self, load: Load, value: u64) {
        let Load {
            register,
            size,
            sign_extend,
            wide,
            big_endian,
        } = load;
        let shift = 64 - 8 * u32::from(size.clamp(1, 8));
        let aligned = if big_endian {
            value.swap_bytes()
        } else {
            value << shift
        };
        let extended = if sign_extend {
            (aligned as i64 >> shift) as u64
        } else {
            aligned >> shift
        };
        self.write_general(
            register,
            if wide {
                extended
            } else {
                u64::from(extended as u32)
            },
        );
    }
}

static CONTEXTS: ClaimTable<Context, MAX_VCPUS> =
    ClaimTable::new([const { UnsafeCell::new(Context::new()) }; MAX_VCPUS]);

impl Machine {
    /// The context of a vCPU this pCPU has adopted.
    fn adopted(&self, vcpu: VcpuId) -> Option<*mut Context> {
        self.owned
            .contains(vcpu)
            .then(|| CONTEXTS.slot(usize::from(vcpu.0) % MAX_VCPUS))
    }

    /// Runs `action` on the context of an adopted vCPU that is not current (any more).
    fn with_stored<R>(
        &mut self,
        vcpu: VcpuId,
        action: impl FnOnce(&mut Self, &mut Context) -> R,
    ) -> Option<R> {
        let context = self.adopted(vcpu)?;
        if self.current == context {
            self.unload();
        }
        // SAFETY: this pCPU claimed the slot in `adopt`, `&mut self` is the only handle of this pCPU,
        // and no other function of it holds a reference to a context while it calls this one.
        Some(action(self, unsafe { &mut *context }))
    }

    /// Makes `vcpu` the current one; false if this CPU cannot run it, or must not enter it before its next exit. Nearly always the one before it was waiting and both have
    /// nothing unusual: that way is in one function without calls.
    #[inline(never)]
    fn switch_to(&mut self, vcpu: VcpuId, context: &mut Context) -> bool {
        let before = self.current;
        if before.is_null() {
            return self.come(vcpu, context);
        }
        // SAFETY: `current` is the context of an adopted vCPU or null, and `context` is another one's; see `with_stored`.
        let before = unsafe { &mut *before };
        match before.rare | context.rare {
            0 => {}
            RARE_RAS => state::forget_deferred(),
            _ => return self.switch_slowly(context),
        }
        if !irq::exchange(&mut self.irq, &mut before.irq, &mut context.irq, vcpu) {
            return self.switch_slowly(context);
        }
        instruction!("dsb sy");
        // AArch32 is rare. The ISB that the look at SErrors needs is in there.
        before.el1.save(state::NO_WALKS);
        if serror::is_pending() {
            return self.switch_late(before, context);
        }
        self.finish_switch(before, context)
    }

    /// The rest of [`Machine::switch_to`] if the vCPU that leaves has caused an SError.
    #[cold]
    #[inline(never)]
    fn switch_late(&mut self, before: &mut Context, context: &mut Context) -> bool {
        serror::charge(before);
        self.finish_switch(before, context)
    }

    /// The rest of [`Machine::switch_to`]: the registers of EL1 are saved and translation is shut.
    #[inline(always)]
    fn finish_switch(&mut self, before: &mut Context, context: &mut Context) -> bool {
        Timers::exchange(&mut before.timers, &context.timers);
        self.current = context;
        self.enter_space(context);
        context.el1.load();
        true
    }

    /// [`Machine::switch_to`] if none was current.
    #[inline(never)]
    fn come(&mut self, vcpu: VcpuId, context: &mut Context) -> bool {
        if context.rare != 0 || !irq::come(&mut self.irq, &mut context.irq, vcpu) {
            return self.switch_slowly(context);
        }
        self.current = context;
        self.enter_space(context);
        context.timers.load();
        context.el1.load();
        true
    }

    /// What is done before a start, if it was not when the vCPU was switched off: at its first start, or if it starts anew without
    /// having been off. The partition's space is built once, before that.
    #[inline(never)]
    fn prepare(&mut self, context: &mut Context) {
        context.space = space::of(context.plan.partition);
        irq::find_registers(&mut context.irq);
        if !context.is_blank {
            self.fp_drop(context);
            context.make_blank();
        }
    }

    /// [`Machine::switch_to`], whatever there is to do.
    #[inline(never)]
    fn switch_slowly(&mut self, context: &mut Context) -> bool {
        if context.plan.aarch32 && !aarch32::is_supported() {
            return false;
        }
        self.take_out();
        self.current = context;
        self.enter_space(context);
        irq::load(&mut self.irq, &mut context.irq);
        if context.rare != 0 {
            self.load_status(context);
            context.load_rare();
        }
        context.timers.load();
        context.el1.load();
        context.rare & RARE_LATE == 0
    }

    /// The registers of EL2 that are the vCPU's.
    #[inline(always)]
    fn enter_space(&mut self, context: &Context) {
        let (hcr, vmpidr) = (context.hcr, context.vmpidr);
        let (space, cptr) = (context.space, context.cptr);
        write_guest_register!("hcr_el2", hcr);
        write_guest_register!("vmpidr_el2", vmpidr);
        write_guest_register!("cptr_el2", cptr);
        space::enter(space);
        self.forget_sibling(context);
    }

    /// Two vCPUs of a partition may use the same ASIDs for different things, and on one pCPU they share
    /// a VMID: what the other one left in the TLB must go (Arm DDI 0487 D8.13, "vCPU" TLB sharing).
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "a remainder is below the length")]
    fn forget_sibling(&mut self, context: &Context) {
        let partition = usize::from(context.plan.partition.0) % MAX_PARTITIONS;
        if self.last_index[partition] != context.plan.index {
            self.last_index[partition] = context.plan.index;
            instruction!("tlbi vmalle1");
            instruction!("ic iallu");
            // The ISB to it is the exception return.
            instruction!("dsb nsh");
        }
    }

    /// Takes the current vCPU's state out of the hardware.
    #[inline(never)]
    pub(crate) fn unload(&mut self) {
        self.take_out();
        irq::close();
    }

    /// The same, before another one becomes current.
    fn take_out(&mut self) {
        let context = core::mem::take(&mut self.current);
        if context.is_null() {
            return;
        }
        // SAFETY: `current` is the context of an adopted vCPU or null; see `with_stored`.
        let context = unsafe { &mut *context };
        instruction!("dsb sy");
        instruction!("isb");
        if serror::is_pending() {
            serror::charge(context);
        }
        irq::unload(&mut self.irq, &mut context.irq);
        context.timers.save();
        context.el1.save(state::NO_WALKS_NARROW);
        if context.rare != 0 {
            context.save_rare();
            self.save_status(context);
        }
    }

    /// Another pCPU may ask what the list registers of the current vCPU hold, which does not run.
    pub(crate) fn answer(&mut self) {
        let context = self.current;
        if context.is_null() {
            return;
        }
        // SAFETY: `current` is the context of an adopted vCPU or null; see `with_stored`.
        let context = unsafe { &mut *context };
        irq::answer(&mut self.irq, &mut context.irq);
    }

    /// The context of the vCPU whose FP registers this pCPU holds, if it is another than `vcpu`.
    pub(crate) fn fp_owner_context(&mut self, vcpu: VcpuId) -> Option<*mut Context> {
        let owner = self.fp_owner.filter(|owner| *owner != vcpu)?;
        self.adopted(owner)
    }
}

impl Vcpus for Machine {
    fn adopt(&mut self, vcpu: VcpuId, plan: &VcpuPlan) {
        if !CONTEXTS.claim(usize::from(vcpu.0)) {
            return;
        }
        self.owned.insert_all(VcpuSet::of(vcpu));
        let pcpu = self.pcpu;
        self.with_stored(vcpu, |machine, context| {
            context.id = vcpu;
            context.plan = *plan;
            let in_place = if plan.idle_in_place { HCR_TWI } else { 0 };
            context.hcr = match plan.kind {
                PartitionKind::Vm if plan.aarch32 => HCR_VM & !in_place & !HCR_RW,
                PartitionKind::Vm => HCR_VM & !in_place,
                PartitionKind::Task => HCR_TASK,
            };
            context.vmpidr = 1 << 31 | u64::from(plan.index);
            let rare = [
                (plan.aarch32, RARE_AARCH32),
                (plan.time == TimeMode::Frozen, RARE_FROZEN),
                (machine.auxiliary, RARE_AUXILIARY),
                (irq::has_fine_priorities(), RARE_PRIORITIES),
                (state::has_ras(), RARE_RAS),
            ];
            context.rare = rare
                .iter()
                .filter(|(is, _)| *is)
                .fold(0, |all, (_, rare)| all | rare);
            irq::adopt(&mut context.irq, vcpu, plan, pcpu);
            // Somebody waits for the others' start.
            if plan.index != 0 {
                context.make_blank();
            }
            if plan.aarch32 {
                machine.measure_status(context);
            }
        });
    }

    /// What a vCPU finds at its start is made when it is switched off, if it was on before; then little remains to be done while
    /// somebody waits for it.
    fn reset(&mut self, vcpu: VcpuId, reset: &VcpuReset) {
        self.with_stored(vcpu, |machine, context| {
            // A reset CPU has empty TLBs; what its VMID left here must not serve the next life.
            if let Some(last) = machine.last_index.get_mut(usize::from(context.plan.partition.0)) {
                *last = u8::MAX;
            }
            if !context.is_blank || context.space == 0 {
                machine.prepare(context);
            }
            irq::reset(&mut machine.irq, &mut context.irq);
            context.is_blank = false;
            let [x0, ..] = &mut context.general;
            *x0 = reset.argument;
            context.pc = reset.entry.0;
            if context.is_task() {
                context.el1 = El1State::task(reset.stack);
            }
            if context.plan.aarch32 {
                aarch32::reset(context, reset.entry.0, reset.argument);
            }
        });
    }

    #[inline(always)]
    fn run(&mut self, vcpu: VcpuId) -> Exit {
        let Some(context) = self.adopted(vcpu) else {
            return Exit::Failed {
                code: FAILED_NOT_ADOPTED,
            };
        };
        let machine: *mut Self = self;
        {
            let is_current = self.current == context;
            // SAFETY: as in `with_stored`; the reference ends before the handlers make theirs.
            let context = unsafe { &mut *context };
            if !is_current && !self.switch_to(vcpu, context) {
                return context.exit_at_once();
            }
            context.timers.busy();
            irq::resume(&mut self.irq, &mut context.irq);
        }
        // SAFETY: the context is adopted and current; `self` is lent to the handlers until the return.
        let reason = unsafe { entry::bulkhead_enter(context, machine) };
        // SAFETY: as above; the handlers' references ended when they returned.
        let context = unsafe { &mut *context };
        if reason == LEAVE_IDLE {
            return Exit::Idle {
                until: context.timers.idle_until(),
            };
        }
        context.exit(reason)
    }

    /// What the answer is about is known where it is given: little of this is left there.
    #[inline(always)]
    fn reply(&mut self, vcpu: VcpuId, reply: Reply) {
        let Some(context) = self.adopted(vcpu) else { return };
        // SAFETY: as in `with_stored`; general registers are in the context between two runs, current or not.
        let context = unsafe { &mut *context };
        match reply {
            Reply::CpuOn(result) => {
                let [x0, ..] = &mut context.general;
                *x0 = match result {
                    CpuOnResult::Started => crate::psci::SUCCESS,
                    CpuOnResult::AlreadyOn => crate::psci::ALREADY_ON,
                    CpuOnResult::Pending => crate::psci::ON_PENDING,
                };
                context.pending = Pending::Nothing;
            }
            _ => context.answer(reply),
        }
    }

    fn inject(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        irq::inject(&mut self.irq, partition, line)
    }

    fn withdraw(&mut self, partition: PartitionId, line: VirtualLine) {
        irq::withdraw(&mut self.irq, partition, line);
    }

    #[inline]
    fn has_work(&mut self, vcpu: VcpuId) -> bool {
        let Some(context) = self.adopted(vcpu) else {
            return false;
        };
        // SAFETY: as in `with_stored`; `irq` reads the list registers itself if the vCPU is current.
        let context = unsafe { &*context };
        irq::has_work(&context.irq)
    }

    /// The handler of its WFI has looked; whoever has something for it since then has kicked this pCPU.
    #[inline(always)]
    fn may_wait(&mut self, _vcpu: VcpuId) -> bool {
        true
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

    fn dump(&mut self, vcpu: VcpuId) -> Dump {
        let nothing = Dump {
            general: [0; 31],
            names: &[],
            sp: 0,
            pc: 0,
            state: 0,
        };
        self.with_stored(vcpu, |_, context| Dump {
            general: context.general,
            names: if context.plan.aarch32 {
                &aarch32::REGISTER_NAMES
            } else {
                &[]
            },
            sp: if context.plan.aarch32 {
                context.read_general(aarch32::stack_pointer(context.pstate))
            } else {
                context.el1.stack_pointer(context.pstate)
            },
            pc: context.pc,
            state: context.pstate,
        })
        .unwrap_or(nothing)
    }

    fn detach(&mut self, vcpu: VcpuId) {
        self.with_stored(vcpu, |machine, context| {
            machine.fp_drop(context);
            irq::detach(&mut machine.irq, &mut context.irq);
            context.make_blank();
        });
    }
}
