// SPDX-License-Identifier: Apache-2.0
//! A vCPU: its control block, its registers, and what its last exit left to do. No code that decides.

use crate::svm::{self, Vmcb};
use crate::trees::Word;
use bulkhead_abi::log;
use bulkhead_arch_api::{MAX_VCPUS, PartitionKind, Ticks, VcpuId, VcpuPlan};
use bulkhead_arch_support::ClaimTable;
use bulkhead_arch_x86_64_core::decode::{Access, Register};
use bulkhead_arch_x86_64_core::known::Known;
use bulkhead_arch_x86_64_core::lapic::Window;
use core::cell::UnsafeCell;

/// RAX and RSP among the general registers.
pub(crate) const RAX: usize = 0;
pub(crate) const RCX: usize = 1;
pub(crate) const RDX: usize = 2;
pub(crate) const RBX: usize = 3;
pub(crate) const RSP: usize = 4;
pub(crate) const RSI: usize = 6;
pub(crate) const RDI: usize = 7;
pub(crate) const R8: usize = 8;
pub(crate) const R9: usize = 9;
pub(crate) const R10: usize = 10;
pub(crate) const R11: usize = 11;

/// Instructions that a vCPU knows. The low bits of the address say which place is an instruction's.
pub(crate) const KNOWN: usize = 4;

/// The work that the answer to the last exit finishes.
#[derive(Clone, Copy)]
pub(crate) enum Pending {
    /// Nothing.
    Nothing,
    /// An access to memory, and the address after the instruction.
    Memory { access: Access, next: u64 },
    /// An IN of so many bytes, or an OUT.
    Port { size: u8, next: u64 },
    /// A RDMSR or WRMSR.
    Register { is_read: bool, next: u64 },
    /// A hypercall, which is over already.
    Call,
}

/// The guest's state that a step over an instruction changes besides.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// RFLAGS.TF.
    pub(crate) trap: u64,
    /// DR6.
    pub(crate) status: u64,
}

/// Registers of the x87 unit, MMX and SSE, as FXSAVE64 stores them.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub(crate) struct FpRegisters(pub(crate) [u64; 64]);

impl FpRegisters {
    /// The state after a reset: FCW 0x37F as FNINIT leaves it, MXCSR 0x1F80.
    pub(crate) const RESET: Self = {
        let mut words = [0; 64];
        words[0] = 0x37F;
        words[3] = 0x1F80;
        Self(words)
    };
}

/// A vCPU. The control block is first, where the hardware wants a page of its own.
#[repr(C)]
pub(crate) struct Context {
    pub(crate) vmcb: Vmcb,
    /// General registers in the order of instructions. RAX and RSP are in the control block while it runs.
    pub(crate) general: [u64; 16],
    /// Registers of floating point, while another vCPU has the pCPU.
    pub(crate) fp: FpRegisters,
    pub(crate) id: VcpuId,
    pub(crate) plan: VcpuPlan,
    /// Its counters in the log area, from boot.
    pub(crate) counters: Option<&'static log::Vcpu>,
    pub(crate) pending: Pending,
    /// The exception that [`bulkhead_arch_api::Vcpus::fault`] reflects.
    pub(crate) reflect: u64,
    /// The last fault can be completed as if it had no effect: the address of the next instruction.
    pub(crate) skip_to: Option<u64>,
    /// The event that the next entry delivers.
    pub(crate) event: u64,
    /// The guest's counter less the hardware's.
    pub(crate) offset: u64,
    /// When the vCPU ceased to be current, if its time is frozen then.
    pub(crate) since: u64,
    /// Until when an idle vCPU waits; 0 if it is not idle.
    pub(crate) idle_until: u64,
    /// When its own timers interrupt next, as of the last look at its interrupts.
    pub(crate) due: Ticks,
    /// It is in HLT: no entry until there is an interrupt.
    pub(crate) halted: bool,
    /// It handles a non-maskable interrupt, so the next one waits for an IRET.
    pub(crate) in_nmi: bool,
    /// The IRET that ends that is stepped over.
    pub(crate) step: Option<Step>,
    /// TSC_AUX.
    pub(crate) auxiliary: u64,
    /// DR0 to DR3 while another vCPU has the pCPU, from the first use on. Until then an access exits.
    pub(crate) debug: Option<[u64; 4]>,
    /// vCPUs that a start-up IPI has named and the kernel not yet, and the page of their first instruction.
    pub(crate) starting: (u8, u8),
    /// It shares the identifier of its address space with other vCPUs.
    pub(crate) shares_space: bool,
    /// A switch to the vCPU has more to do than usual.
    pub(crate) rare: bool,
    /// Its address space must be forgotten at the next entry.
    pub(crate) forget: bool,
    /// The upper half of the task priority, as the control block has it, and the local APIC: who changes one
    /// changes all.
    pub(crate) task_priority: u8,
    /// The window that the control block asks for.
    pub(crate) window: Window,
    /// Instructions that have accessed memory.
    pub(crate) known: [Option<Known<Word>>; KNOWN],
}

impl Context {
    const fn new() -> Self {
        Self {
            vmcb: Vmcb::new(),
            general: [0; 16],
            fp: FpRegisters::RESET,
            id: VcpuId(0),
            plan: VcpuPlan::BLANK,
            counters: None,
            pending: Pending::Nothing,
            reflect: 0,
            skip_to: None,
            event: 0,
            offset: 0,
            since: 0,
            idle_until: 0,
            due: Ticks::NEVER,
            halted: false,
            in_nmi: false,
            step: None,
            auxiliary: 0,
            debug: None,
            starting: (0, 0),
            shares_space: true,
            rare: true,
            forget: true,
            task_priority: 0,
            window: Window::Nothing,
            known: [None; KNOWN],
        }
    }

    /// Tells whether it runs a program instead of a machine.
    #[inline]
    pub(crate) fn is_task(&self) -> bool {
        self.plan.kind == PartitionKind::Task
    }

    /// Returns a general register.
    #[inline(always)]
    pub(crate) fn general(&self, number: usize) -> u64 {
        self.general.get(number).copied().unwrap_or(0)
    }

    /// Sets a general register.
    #[inline(always)]
    pub(crate) fn set_general(&mut self, number: usize, value: u64) {
        if let Some(register) = self.general.get_mut(number) {
            *register = value;
        }
    }

    /// Returns a part of a general register, in the low bits.
    pub(crate) fn read(&self, register: Register) -> u64 {
        let value = self.general(register.number.into());
        if register.is_high { value >> 8 } else { value }
    }

    /// Sets a part of a general register. A write of 4 bytes clears the upper ones.
    pub(crate) fn write(&mut self, register: Register, size: u8, value: u64) {
        let number = register.number.into();
        let old = self.general(number);
        let new = match (size, register.is_high) {
            (1, true) => old & !0xFF00 | (value & 0xFF) << 8,
            (1, false) => old & !0xFF | value & 0xFF,
            (2, _) => old & !0xFFFF | value & 0xFFFF,
            (4, _) => value & 0xFFFF_FFFF,
            _ => value,
        };
        self.set_general(number, new);
    }

    /// Sets the address of the next instruction, and ends an interrupt shadow.
    #[inline(always)]
    pub(crate) fn go_to(&mut self, next: u64) {
        self.vmcb.set(svm::RIP, next);
        let shadow = self.vmcb.get(svm::SHADOW);
        self.vmcb.set(svm::SHADOW, shadow & !1);
    }

    /// Sets the task priority, of which the control block has the upper half.
    #[inline(always)]
    pub(crate) fn set_task_priority(&mut self, priority: u8) {
        self.task_priority = priority >> 4;
        self.vmcb.set_task_priority(priority >> 4);
    }

    /// Returns the guest's counter.
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        crate::sysreg::counter().wrapping_add(self.offset)
    }
}

/// The contexts of all vCPUs.
#[unsafe(link_section = ".contexts")]
pub(crate) static CONTEXTS: ClaimTable<Context, MAX_VCPUS> =
    ClaimTable::new([const { UnsafeCell::new(Context::new()) }; MAX_VCPUS]);
