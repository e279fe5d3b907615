// SPDX-License-Identifier: Apache-2.0
//! Why a vCPU stopped running, and what it is told before it goes on.

use crate::{AddressSpace, DUMP_REGISTERS, GuestPhys, Line, Ticks, VcpuSet};
use bulkhead_abi::HealthClass;
use bulkhead_abi::log::RegisterFile;
use bulkhead_abi::size::Register;

/// Why [`crate::Vcpus::run`] returned. Everything that only one CPU class knows has been finished
/// inside the backend by then. The tag is a byte of its own, because every exit asks for the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// A physical interrupt of the hypervisor's own (routed to no partition by [`crate::Irqs::route`]). It
    /// has been acknowledged; the kernel handles it and calls [`crate::Irqs::complete`].
    Interrupt(Line),
    /// The time armed with [`crate::Clock::arm`] has come.
    Deadline,
    /// Another pCPU called [`crate::Cpus::signal`] for this one.
    Signal,
    /// An interrupt or an action of the vCPU gave these vCPUs something to do; the ones that
    /// are idle become ready. (Members on other pCPUs are reached through their mailbox.)
    Wake(VcpuSet),
    /// A physical line of a partition ([`crate::Irqs::route`]) gave these vCPUs something to do; else as
    /// `Wake`.
    Device(VcpuSet, Line),
    /// The vCPU asked for something. Answered with [`Reply::Hypercall`].
    Hypercall(Hypercall),
    /// The vCPU touched an address in its space that is no memory: a virtual device, or nothing.
    /// Answered with [`Reply::Read`] or [`Reply::Written`].
    Access(Access),
    /// The vCPU touched a register in its window of [`crate::Vcpus::shorten`]. Answered with
    /// [`crate::Vcpus::answer`].
    Register(RegisterAccess),
    /// The vCPU has nothing to do before an interrupt, or before `until` (its own timer). No answer:
    /// the instruction has been completed. The backend has looked before: no deliverable interrupt waits, and
    /// the kernel is told of all that comes later.
    Idle {
        /// When the vCPU's own timer will want it, [`Ticks::NEVER`] if it is off.
        until: Ticks,
    },
    /// The vCPU asks to switch on a vCPU of its own partition. Answered with [`Reply::CpuOn`].
    CpuOn {
        /// Index of the target within the partition (in range).
        target: u8,
        /// First instruction.
        entry: GuestPhys,
        /// Argument register at the first instruction.
        argument: u64,
    },
    /// The vCPU asks for the power state of a vCPU of its own partition. Answered with [`Reply::CpuPower`].
    CpuPower {
        /// Index of the target within the partition (in range).
        target: u8,
    },
    /// The vCPU switched itself off. No answer.
    CpuOff,
    /// The vCPU asks for the end or a new start of its partition. No answer.
    Reset(ResetKind),
    /// The vCPU did something it may not. Answered by [`crate::Vcpus::fault`] if the health action
    /// is to reflect it, by [`crate::Vcpus::skip`] if it is to log only, else by what the health action
    /// does to the partition.
    Fault(FaultReport),
    /// The vCPU asks a debugger or emulator for a service. Only if [`crate::ClassFacts::semihosting`].
    /// Answered with [`Reply::Host`]; if it is not answered, or not to the end, it is made again when the
    /// vCPU runs next.
    Host(HostCall),
    /// The backend cannot go on with this vCPU for a reason that is no fault of the partition.
    Failed {
        /// The finding of the backend, in its own numbering, for the crash record.
        code: u64,
    },
}

/// A hypercall as it arrived, nothing checked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hypercall {
    /// The operation's number.
    pub operation: u16,
    /// x1..x6 (or the class's equivalent): capability index and arguments.
    pub arguments: [u64; 6],
}

/// A call of a program to the debugger or emulator that it takes for granted (semihosting), as far as the
/// call needs more than the program's own memory and the time. The program may load or store the memory that
/// it names; that is at least one byte, and at most [`crate::HOST_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCall {
    /// Its console is to print this. Answered with how many bytes of it were taken.
    Write(GuestPhys, u8),
    /// Its console's input. Answered with how many bytes were there.
    Read(GuestPhys, u8),
    /// One byte of it. Answered with the byte.
    ReadByte,
    /// The name of its partition, and a zero. Answered with how many bytes that is; what does not fit is left
    /// out.
    Name(GuestPhys, u8),
    /// It has ended with an error. No answer. (One that ended well: [`Exit::Reset`].)
    Failed(u32),
}

/// A load or store that no memory answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// In which address space.
    pub space: AddressSpace,
    /// Where: an address, or the number of a port or of a register.
    pub address: GuestPhys,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Which way.
    pub kind: AccessKind,
    /// The report to use if it turns out that nothing is there.
    pub report: FaultReport,
}

/// A load or store of a register that is known to be there. It is aligned to its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterAccess {
    /// Where. Of ports the first one of the window times [`REGISTER_WINDOW`], and which one of the window.
    pub address: GuestPhys,
    /// Bytes: 1, 2 or 4.
    pub size: u8,
    /// Which way.
    pub kind: AccessKind,
}

impl RegisterAccess {
    /// Returns where in the window the access is.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.address.0 % REGISTER_WINDOW
    }
}

/// The bytes of a window of [`crate::Vcpus::shorten`].
pub const REGISTER_WINDOW: u64 = 0x1000;

/// Direction and value of an [`Access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A load.
    Read,
    /// A store of this value, zero-extended.
    Write(u64),
}

/// A fault of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultReport {
    /// Class, which selects the health action.
    pub class: HealthClass,
    /// The CPU's own description (Arm: ESR_EL2).
    pub syndrome: u64,
    /// The instruction.
    pub pc: u64,
    /// The guest-physical address concerned, if any.
    pub address: Option<GuestPhys>,
    /// The guest-virtual address concerned, if any (Arm: FAR_EL2).
    pub virtual_address: Option<u64>,
}

/// A reset that a partition asked for: to end, or to start anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetKind {
    /// Power off.
    Off,
    /// Start anew, memory included.
    Cold,
    /// Start anew with memory as it is.
    Warm,
}

/// Answer to [`Exit::CpuOn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuOnResult {
    /// It will start.
    Started,
    /// It is on already.
    AlreadyOn,
    /// An earlier request is still under way.
    Pending,
}

/// Power state of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPower {
    /// Running or able to run.
    On,
    /// Off.
    Off,
    /// Asked to go on, not there yet.
    OnPending,
}

/// The answer to a vCPU's last exit, which it is told before it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To [`Exit::Hypercall`]: status and up to four results. On an error the result registers keep
    /// their value.
    Hypercall(Result<[u64; 4], bulkhead_abi::Error>),
    /// To a reading [`Exit::Access`]: the value. The backend does width and sign extension.
    Read(u64),
    /// To a writing [`Exit::Access`].
    Written,
    /// To [`Exit::Host`], as the call says.
    Host(u8),
    /// To [`Exit::CpuOn`].
    CpuOn(CpuOnResult),
    /// To [`Exit::CpuPower`].
    CpuPower(CpuPower),
}

/// Registers of a vCPU, for fault reports. Meaning of the entries is the class's own
/// (aarch64: x0..x30, SP of the current level, PC, PSTATE; armv7m: r0..r12 and LR, SP, PC, xPSR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dump {
    /// Registers in the class's order: the general ones without the stack pointer, and those that say which
    /// exception the vCPU took last.
    pub general: [Register; DUMP_REGISTERS],
    /// The register file that these are.
    pub file: &'static RegisterFile,
    /// Stack pointer.
    pub sp: Register,
    /// Program counter.
    pub pc: Register,
    /// Processor state.
    pub state: Register,
}
