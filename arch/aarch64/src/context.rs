// SPDX-License-Identifier: Apache-2.0
//! The context of a vCPU: its registers while they are not in the hardware, and the work that its last exit
//! left.
//!
//! A [`Context`] lives in static storage and belongs to the pCPU that adopted its vCPU. General registers are
//! in the context whenever Rust code outside a handler runs.

use crate::banked::Banked;
use crate::debug::Debug;
use crate::fp::{CPTR_TRAP, FpRegisters};
use crate::gic::VcpuIrq;
use crate::state::{Auxiliary, El1State};
use crate::timer::Timers;
use bulkhead_abi::log::Exits;
use bulkhead_arch_aarch64_core::data::Load;
use bulkhead_arch_aarch64_core::pstate::stepped;
use bulkhead_arch_aarch64_core::transfer::{Progress, STACK_POINTER};
use bulkhead_arch_api::class::AARCH32;
use bulkhead_arch_api::{Exit, MAX_VCPUS, PartitionKind, VcpuId, VcpuPlan};
use bulkhead_arch_support::ClaimTable;
use core::cell::UnsafeCell;

/// HCR_EL2.VSE: an SError is pending for EL1. The hardware clears it when the SError is taken.
pub(crate) const HCR_VSE: u64 = 1 << 8;

/// The work that the last exit left to finish in the guest's registers.
#[derive(Clone, Copy)]
pub(crate) enum Pending {
    /// Nothing.
    Nothing,
    /// A load that the kernel answers, and the bytes of the instruction that are still to be stepped over.
    Load { load: Load, length: u64 },
    /// A store that the kernel answers.
    Store { length: u64 },
    /// Accesses that the syndrome does not describe, and that the kernel answers one by one.
    Transfer(Progress),
    /// A forbidden MRS, MSR or SYS, which can be skipped. `target` is the register that an MRS
    /// writes, or 31 if the instruction writes none.
    Register { target: u8, length: u64 },
}

/// The vCPU has AArch32 state.
pub(crate) const RARE_AARCH32: u8 = 1;
/// The vCPU's time is frozen while it is not current.
pub(crate) const RARE_FROZEN: u8 = 1 << 1;
/// The vCPU's debug exceptions are on.
pub(crate) const RARE_DEBUG: u8 = 1 << 2;
/// The CPU has [`Auxiliary`] registers.
pub(crate) const RARE_AUXILIARY: u8 = 1 << 3;
/// The short ways are not for this CPU: its interface has more active priorities than they look at, or its
/// predictions need a barrier.
pub(crate) const RARE_CPU: u8 = 1 << 5;
/// A virtual SError that the vCPU was given may be pending still.
pub(crate) const RARE_SERROR: u8 = 1 << 4;
/// The CPU has the RAS extension.
pub(crate) const RARE_RAS: u8 = 1 << 6;
/// An SError of the vCPU's own came when the vCPU was not current any more, and is its next exit.
pub(crate) const RARE_LATE: u8 = 1 << 7;

/// [`Context::window`] of a vCPU without one: no guest-physical address is so high.
pub(crate) const NO_WINDOW: u64 = u64::MAX << 12;

/// A vCPU. The fields that every switch moves come first, where one instruction reaches two words.
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
    /// Reasons for the slow switch: `RARE_*`.
    pub(crate) rare: u8,
    /// List registers and all other state that `gic` keeps per vCPU.
    pub(crate) irq: VcpuIrq,
    /// Implementation-defined registers, while the vCPU is not current.
    pub(crate) auxiliary: Auxiliary,
    /// Registers that only AArch32 has, while the vCPU is not current.
    pub(crate) banked: Banked,
    /// FP/SIMD registers, unless the pCPU holds them.
    pub(crate) fp: FpRegisters,
    /// The vCPU has used the FP registers since its reset.
    pub(crate) fp_used: bool,
    /// Debug registers as the guest sees them.
    pub(crate) debug: Debug,
    /// Number.
    pub(crate) id: VcpuId,
    /// The kernel's plan of the vCPU, from boot.
    pub(crate) plan: VcpuPlan,
    /// The counters of its exits in the log area, from boot.
    pub(crate) exits: Option<&'static Exits>,
    /// The vCPU is off, and its registers have the values of a reset.
    pub(crate) is_blank: bool,
    /// The SError of [`RARE_LATE`], as ESR_EL2 had it.
    pub(crate) late: u64,
    /// The first address of the window whose registers have a short exit, from boot. No address without one.
    pub(crate) window: u64,
    /// ESR_EL2 of the last exit for a register of that window.
    pub(crate) trapped: u64,
    /// The work that the answer to the last exit finishes.
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
            plan: VcpuPlan::BLANK,
            exits: None,
            late: 0,
            window: NO_WINDOW,
            trapped: 0,
            pending: Pending::Nothing,
            exit: Exit::Signal,
        }
    }

    /// Returns register `number` as an instruction reads it. Register 31 is the zero register.
    #[inline]
    pub(crate) fn read_general(&self, number: u8) -> u64 {
        self.general.get(usize::from(number)).copied().unwrap_or(0)
    }

    /// Writes register `number`. Register 31 is the zero register.
    #[inline]
    pub(crate) fn write_general(&mut self, number: u8, value: u64) {
        if let Some(register) = self.general.get_mut(usize::from(number)) {
            *register = value;
        }
    }

    /// Tells whether the partition starts in AArch32 state.
    #[inline]
    pub(crate) fn is_aarch32(&self) -> bool {
        self.plan.entry_state == AARCH32
    }

    /// Tells whether it runs a program instead of a machine.
    #[inline]
    pub(crate) fn is_task(&self) -> bool {
        self.plan.kind == PartitionKind::Task
    }

    /// Notes whether debug exceptions are on: the guest may have switched them.
    pub(crate) fn note_debug(&mut self) {
        let debug = if self.debug.active() { RARE_DEBUG } else { 0 };
        self.rare = self.rare & !RARE_DEBUG | debug;
    }

    /// Takes back a virtual SError: none is pending for the vCPU any more.
    pub(crate) fn drop_serror(&mut self) {
        self.hcr &= !HCR_VSE;
        self.rare &= !RARE_SERROR;
    }

    /// Steps over the instruction that led to the last exit.
    #[inline]
    pub(crate) fn advance(&mut self, length: u64) {
        self.pc = self.pc.wrapping_add(length);
        self.pstate = stepped(self.pstate);
    }

    /// Gives a load its value.
    #[inline]
    pub(crate) fn finish_load(&mut self, load: Load, value: u64) {
        self.write_general(load.register, load.result(value));
    }

    /// Gives a transfer whose accesses are all done its registers. Returns the new stack pointer if that is
    /// the base.
    pub(crate) fn finish_transfer(&mut self, progress: &Progress) -> Option<u64> {
        for (register, value) in progress.loaded() {
            self.write_general(register, value);
        }
        match progress.moved_base() {
            Some((STACK_POINTER, value)) => Some(value),
            Some((base, value)) => {
                self.write_general(base, value);
                None
            }
            None => None,
        }
    }
}

/// The contexts of all vCPUs.
pub(crate) static CONTEXTS: ClaimTable<Context, MAX_VCPUS> =
    ClaimTable::new([const { UnsafeCell::new(Context::new()) }; MAX_VCPUS]);
