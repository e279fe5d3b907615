// SPDX-License-Identifier: Apache-2.0
//! Contexts of vCPUs: plain data, and the table that has the only way to them.

use bulkhead_arch_api::{MAX_VCPUS, PartitionId, PartitionKind, VcpuId};
use bulkhead_arch_ppc405_core::exception::KEPT;
use bulkhead_arch_ppc405_core::fill::real_zones;
use bulkhead_arch_ppc405_core::registers::{Cpu, Frame, esr, msr};
use bulkhead_arch_ppc405_core::transfer::Transfer;
use bulkhead_arch_support::ClaimTable;
use core::cell::UnsafeCell;
use core::mem::offset_of;

/// The facts of an interrupt, which `entry` stores beside the registers.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Trap {
    /// SRR1: MSR at the interrupt.
    pub(crate) state: u32,
    /// ESR.
    pub(crate) syndrome: u32,
    /// DEAR.
    pub(crate) address: u32,
}

/// The part of a context that `entry` knows.
#[repr(C)]
pub(crate) struct Registers {
    pub(crate) frame: Frame,
    pub(crate) trap: Trap,
    /// MSR to run with.
    pub(crate) state: u32,
    /// The stack pointer of the hypervisor while the guest runs.
    host_stack: u32,
}

/// MSR of a guest: problem state, both translations, interrupts. Critical interrupts and machine checks are
/// off: the hypervisor has none, and they would come while it handles another interrupt.
const GUEST_STATE: u32 = 0xC030;

impl Registers {
    /// Makes registers of no vCPU yet.
    pub(crate) const fn new(state: u32) -> Self {
        Self {
            frame: Frame::ZERO,
            trap: Trap {
                state: 0,
                syndrome: 0,
                address: 0,
            },
            state,
            host_stack: 0,
        }
    }
}

/// Offsets for `entry`.
pub(crate) const CONDITION: usize = offset_of!(Registers, frame.condition);
pub(crate) const LINK: usize = offset_of!(Registers, frame.link);
pub(crate) const COUNT: usize = offset_of!(Registers, frame.count);
pub(crate) const XER: usize = offset_of!(Registers, frame.xer);
pub(crate) const PC: usize = offset_of!(Registers, frame.pc);
pub(crate) const TRAP_STATE: usize = offset_of!(Registers, trap.state);
pub(crate) const TRAP_SYNDROME: usize = offset_of!(Registers, trap.syndrome);
pub(crate) const TRAP_ADDRESS: usize = offset_of!(Registers, trap.address);
pub(crate) const STATE: usize = offset_of!(Registers, state);
pub(crate) const HOST_STACK: usize = offset_of!(Registers, host_stack);
const _: () = assert!(offset_of!(Registers, frame.general) == 0);

/// The largest stretch of the partition's memory that it may use in every way, for the short path.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Main {
    /// The first address that the partition sees.
    pub(crate) guest: u32,
    /// The last byte, from the first one on.
    pub(crate) last: u32,
    /// The difference of an address on the bus to the one that the partition sees.
    pub(crate) distance: u32,
}

impl Main {
    /// No stretch: no page begins there.
    pub(crate) const NONE: Self = Self {
        guest: 1,
        last: 0,
        distance: 0,
    };
}

/// Words of the short path. It loads all after the first one with one instruction, in the order of registers.
#[repr(C)]
pub(crate) struct Words {
    /// Bits of MSR that an interrupt leaves as they are.
    pub(crate) kept: u32,
    /// Bits of MSR that a 405 has.
    pub(crate) all: u32,
    /// Bits of MSR whose change is more than one of interrupts that are allowed.
    pub(crate) careful: u32,
    /// Bits of the guest's MSR that the long path has to do with: a wait, and interrupts that are pending.
    pub(crate) stops: u32,
    /// The syndrome that the short path serves in the guest's present mode: ESR.PPR for a VM in supervisor
    /// state, else [`NEVER`].
    pub(crate) serves: u32,
    /// MSR of the hypervisor while it reads by the guest's translation.
    reads: u32,
}

/// The part of a context that only the short path needs (`entry::short`).
#[repr(C, align(32))]
pub(crate) struct Short {
    /// Instructions from the guest's PC on, or the line that it is in, and a word that is none.
    pub(crate) line: [u32; 9],
    /// The words that each program interrupt needs, loaded at once.
    pub(crate) words: Words,
    /// 0 if only the long path may change the mode: in tasks, and as long as there are entries for the
    /// present mode.
    pub(crate) may_change: u32,
    /// The real zones for the guest's supervisor state, and for its problem state.
    pub(crate) zones: [u32; 2],
    /// Traps for instructions, and for system calls, that are not counted yet.
    pub(crate) instructions: u32,
    pub(crate) calls: u32,
    /// Misses of the translation buffer that are not counted yet.
    pub(crate) misses: u32,
    /// The memory that the short path makes entries for.
    pub(crate) main: Main,
}

/// A syndrome that no program interrupt has: an instruction is either privileged or illegal.
pub(crate) const NEVER: u32 = esr::PPR | esr::PIL;

impl Short {
    const fn new() -> Self {
        Self {
            line: [0; 9],
            words: Words {
                kept: KEPT,
                all: msr::ALL,
                careful: !(msr::CE | msr::EE | msr::FP | msr::ME | msr::DWE | msr::DE),
                stops: u32::MAX,
                serves: NEVER,
                reads: msr::DR,
            },
            may_change: 0,
            zones: [0; 2],
            instructions: 0,
            calls: 0,
            misses: 0,
            main: Main::NONE,
        }
    }

    /// Leaves changes of the mode to the long path.
    pub(crate) fn forbid_changes(&mut self) {
        self.may_change = 0;
    }

    /// Returns how many traps for instructions, for system calls and for misses of the translation buffer
    /// there were since the last time.
    #[inline]
    pub(crate) fn take_counts(&mut self) -> [u32; 3] {
        [
            core::mem::take(&mut self.instructions),
            core::mem::take(&mut self.calls),
            core::mem::take(&mut self.misses),
        ]
    }
}

/// The answer that the last exit still needs.
#[derive(Clone, Copy)]
pub(crate) enum Pending {
    /// Nothing.
    Nothing,
    /// A load or store that the kernel answers.
    Access(Transfer),
    /// A load of a device control register into this general register.
    ReadDcr(u8),
    /// A store to one.
    WriteDcr,
    /// A fault of a task, or one that a VM is shown as this program interrupt.
    Fault,
}

/// A vCPU.
#[repr(C)]
pub(crate) struct Context {
    pub(crate) registers: Registers,
    pub(crate) short: Short,
    pub(crate) cpu: Cpu,
    pub(crate) partition: PartitionId,
    pub(crate) kind: PartitionKind,
    pub(crate) pending: Pending,
}

const _: () = assert!(offset_of!(Context, registers) == 0);
// The short path finds the place of an instruction in the line by the low bits of its address.
const _: () = assert!(offset_of!(Context, short.line).is_multiple_of(32));

impl Context {
    const fn new() -> Self {
        Self {
            registers: Registers::new(GUEST_STATE),
            short: Short::new(),
            cpu: Cpu::new(0),
            partition: PartitionId(0),
            kind: PartitionKind::Vm,
            pending: Pending::Nothing,
        }
    }

    /// Tells the short path what it may do until the long path comes next.
    pub(crate) fn allow_short(&mut self, may_change: bool) {
        let cpu = &self.cpu;
        let short = &mut self.short;
        short.words.serves = if cpu.is_user() { NEVER } else { esr::PPR };
        short.words.stops = msr::WE | cpu.pending();
        short.may_change = may_change.into();
        short.zones = [false, true].map(|is_user| real_zones(cpu.zones, is_user));
    }

    /// Tells whether it runs a program instead of a machine.
    #[inline]
    pub(crate) fn is_task(&self) -> bool {
        self.kind == PartitionKind::Task
    }
}

static CONTEXTS: ClaimTable<Context, MAX_VCPUS> =
    ClaimTable::new([const { UnsafeCell::new(Context::new()) }; MAX_VCPUS]);

/// The contexts in use. There is one table, the machine's, so a borrow of the table is the only way to them.
pub(crate) struct ContextTable {
    adopted: u64,
}

impl ContextTable {
    /// Makes the table. Called once: the machine is the only owner.
    pub(crate) const fn new() -> Self {
        Self { adopted: 0 }
    }

    /// Adopts a vCPU.
    pub(crate) fn adopt(&mut self, vcpu: VcpuId) -> Option<&mut Context> {
        if CONTEXTS.claim(usize::from(vcpu.0)) {
            self.adopted |= 1 << vcpu.0;
        }
        self.get(vcpu)
    }

    /// Returns the context of a vCPU that has been adopted.
    #[inline]
    pub(crate) fn get(&mut self, vcpu: VcpuId) -> Option<&mut Context> {
        if self.adopted & 1_u64.checked_shl(vcpu.0.into())? == 0 {
            return None;
        }
        // SAFETY: this table has claimed the slot, and references to it borrow the table.
        Some(unsafe { &mut *CONTEXTS.slot(usize::from(vcpu.0)) })
    }
}
