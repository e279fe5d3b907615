// SPDX-License-Identifier: Apache-2.0
//! The duties of every backend, as one list of checks.
//!
//! The kernel relies on what `arch/api` says of its verbs, for every class alike. Here those sentences are
//! executed: [`checks`] lists functions that use a backend as the kernel would, and that say what was wrong.
//! The list runs on the mock in the host tests, so the kernel's own tests rest on a mock that keeps the
//! contract. The same list runs on each class in its emulator, linked into a class binary of its own instead
//! of the kernel.
//!
//! The trait [`Bench`] is all that the checks need: where a partition's memory is, guest programs (described
//! by [`Step`]s, because each class has its own instructions), and what the class does not have ([`Need`]): a
//! check that needs it is not run there, and the report says why. The mock has one, and a board has the one
//! of [`start`], which is the same for all classes but for the facts of a [`Class`]. Checks share
//! few partitions ([`Role`]), because a microcontroller has few; each starts its vCPU anew, as the kernel
//! restarts a partition.
//!
//! No heap, no panic: it is linked into a class binary for the emulator.
#![no_std]
#![forbid(unsafe_code)]

mod board;
mod ground;
mod guest;
mod memory;
mod program;
mod report;
mod time;
mod vcpu;

use bulkhead_arch_api::{
    Arch, Console, GuestPhys, HostPhys, MemoryKind, PartitionId, PartitionKind, Permissions, Region, VcpuId,
    VcpuReset, VirtualDevice, VirtualLine,
};

pub use board::{Class, start};
pub use ground::Ground;
pub use program::{Dialect, Record, operation};
pub use report::Tally;

use program::RECORDS;

/// The result of a check: a sentence says what was wrong.
pub type Outcome = Result<(), &'static str>;

/// A check and what it shows.
#[derive(Debug)]
pub struct Check<B> {
    /// The property that it shows.
    pub name: &'static str,
    /// The ability that the class must have for it.
    pub need: Need,
    /// Runs it.
    pub run: fn(&mut Ground<'_, B>) -> Outcome,
}

/// An ability that a class may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing but what every class has.
    Nothing,
    /// Signals between pCPUs.
    Signals,
    /// Loads and stores of 64 bits that are one access.
    Wide,
    /// An interrupt controller that forgets an interrupt whose level is taken back.
    Levels,
    /// A vCPU that switches itself off.
    SwitchingOff,
    /// A guest that waits for an interrupt exits.
    Idle,
    /// A guest that asks for a reset exits.
    Resets,
    /// Memory that a VM may read and not write.
    Constants,
    /// Rights that change while a partition runs ([`bulkhead_arch_api::ClassFacts::protects`]).
    Protection,
}

/// The purpose of a partition. Each has its own number and its own vCPU, which has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A VM.
    Vm,
    /// A task.
    Task,
    /// Another VM.
    Other,
    /// Its space is never built.
    Refused,
}

impl Role {
    /// Returns its partition.
    #[must_use]
    pub const fn partition(self) -> PartitionId {
        PartitionId(self as u8)
    }

    /// Returns its vCPU.
    #[must_use]
    pub const fn vcpu(self) -> VcpuId {
        VcpuId(self as u8)
    }

    /// Returns its kind.
    #[must_use]
    pub const fn kind(self) -> PartitionKind {
        match self {
            Self::Task => PartitionKind::Task,
            _ => PartitionKind::Vm,
        }
    }
}

/// A place in a partition's space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// So many bytes after the beginning of its RAM.
    Ram(u64),
    /// So many bytes after the beginning of what it may only read.
    Constant(u64),
    /// So many bytes after an address where nothing is.
    Nowhere(u64),
    /// So many bytes after the bus address of [`Role::Other`]'s RAM, which is no address of anybody else's.
    Foreign(u64),
}

/// One step of a guest program. A program that comes to its end keeps the CPU busy for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Loads so many bytes into the accumulator, which is zero at first.
    Load(At, u8),
    /// Stores so many bytes of a value.
    Store(At, u8, u64),
    /// Makes the hypercall with this number and the accumulator as its first argument; the first result goes
    /// to the accumulator, unless the call fails.
    Call(u16),
    /// Lets the vCPU's interrupt controller deliver [`Bench::line`].
    Accept,
    /// Waits for an interrupt.
    Idle,
    /// Switches the vCPU off.
    Off,
    /// Asks for a reset of the partition.
    Reset,
}

/// A partition's space.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// [`RAM_SIZE`] bytes, readable and writable.
    pub ram: Region,
    /// A [`PAGE`], readable only, not beside RAM.
    pub constant: Region,
    /// Where the guests' code is, if it is not in RAM.
    pub program: Option<Region>,
}

/// Returns a region of RAM that can be read; `write` and `execute` say what else.
#[must_use]
pub const fn ram_region(guest: u64, host: u64, size: u64, write: bool, execute: bool) -> Region {
    Region {
        guest: GuestPhys(guest),
        host: HostPhys(host),
        size,
        permissions: Permissions {
            read: true,
            write,
            execute,
        },
        kind: MemoryKind::Ram,
    }
}

/// The parts that a class gives to the checks.
pub trait Bench {
    /// The backend under test: the handle of the pCPU that runs the checks.
    type Machine: Arch;
    /// Returns the backend under test.
    fn machine(&mut self) -> &mut Self::Machine;
    /// Returns the board's serial line, for the report.
    fn console(&mut self) -> &mut impl Console;
    /// Returns the space of a partition. [`Role::Other`] shares no memory with the others, which may share
    /// theirs.
    fn space(&self, role: Role) -> Space;
    /// Returns an address where no partition has anything, a multiple of a page.
    fn nowhere(&self) -> GuestPhys;
    /// Returns the windows of the virtual interrupt controller of a VM, if it is in the space, and its lines.
    fn controller(&self) -> Option<([VirtualDevice; 2], u32)> {
        None
    }
    /// Returns a line of it.
    fn line(&self) -> VirtualLine;
    /// Returns the number of bits of a general register.
    fn register_bits(&self) -> u32;
    /// Tells whether the guests' loads and stores put the high byte first.
    fn is_big_endian(&self) -> bool {
        false
    }
    /// Returns the reason why the class does not have that, if it does not.
    fn lacks(&self, _need: Need) -> Option<&'static str> {
        None
    }
    /// Makes `steps` the program of the role's vCPU: what to reset it with. Its space is built; what of a
    /// program lies in RAM lies after [`PROGRAM`].
    fn load(&mut self, role: Role, steps: &'static [Step]) -> VcpuReset;
    /// Returns an address of a role's space.
    fn address(&self, role: Role, at: At) -> GuestPhys {
        let (base, offset) = match at {
            At::Ram(offset) => (self.space(role).ram.guest, offset),
            At::Constant(offset) => (self.space(role).constant.guest, offset),
            At::Nowhere(offset) => (self.nowhere(), offset),
            At::Foreign(offset) => (GuestPhys(self.space(Role::Other).ram.host.0), offset),
        };
        GuestPhys(base.0.wrapping_add(offset))
    }
}

/// Bytes of a partition's RAM.
pub const RAM_SIZE: u64 = 0x4000;
/// Bytes of a page.
pub const PAGE: u64 = 0x1000;
/// From here on RAM is the guest program's; its stack ends here.
pub const PROGRAM: u64 = 0x2000;
/// Exits that are no vCPU's fault (an interrupt of the board, say) before a check gives up waiting for its
/// own.
const PATIENCE: usize = 1000;

/// Returns all checks.
#[must_use]
pub const fn checks<B: Bench>() -> [Check<B>; 29] {
    macro_rules! list {
        ($($name:literal $need:ident => $run:expr),* $(,)?) => {
            [$(Check { name: $name, need: Need::$need, run: $run }),*]
        };
    }
    list! {
        "the clock never goes back, its frequency is constant" Nothing => time::clock::<B>,
        "a deadline is never early and comes once armed" Nothing => time::deadline::<B>,
        "a deadline in the past comes at once, a disarmed one never" Nothing => time::past_and_disarmed::<B>,
        "a deadline ends a guest that does not exit" Nothing => time::deadline_ends_guest::<B>,
        "a signal to oneself arrives once" Signals => time::signal::<B>,
        "what is copied out is copied in" Nothing => memory::copies::<B>,
        "a copy stops at the first byte that is not the partition's" Nothing => memory::copy_bounds::<B>,
        "clearing clears what it says and nothing else" Nothing => memory::clears::<B>,
        "clearing in parts gets to the end" Nothing => memory::clears_in_parts::<B>,
        "a partition may access its regions and nothing else" Nothing => memory::accesses::<B>,
        "a bad space is refused" Nothing => memory::refuses::<B>,
        "rights go and come back, what is beside them stays" Protection => memory::protects::<B>,
        "guest and hypervisor see the same memory" Nothing => memory::guest_sees_memory::<B>,
        "a guest cannot write what it may only read" Constants => memory::read_only::<B>,
        "a guest does not reach another partition's memory" Nothing => memory::foreign::<B>,
        "a load from nowhere exits and takes the answer" Nothing => vcpu::load_exits::<B>,
        "a load of 64 bits from nowhere is one access" Wide => vcpu::wide_load_exits::<B>,
        "a store to nowhere exits with its value" Nothing => vcpu::store_exits::<B>,
        "a store of 64 bits to nowhere is one access" Wide => vcpu::wide_store_exits::<B>,
        "a hypercall arrives whole and takes its result" Nothing => vcpu::hypercall::<B>,
        "a fault is reflected into a VM" Nothing => vcpu::fault_in_vm::<B>,
        "a fault cannot be reflected into a task" Nothing => vcpu::fault_in_task::<B>,
        "a guest without work exits as idle, an interrupt is work" Idle => vcpu::idle_and_inject::<B>,
        "an interrupt whose level is taken back is no work" Levels => vcpu::withdraws::<B>,
        "a reset of the shared state drops interrupts" Idle => vcpu::reset_shared::<B>,
        "a detached vCPU starts anew after its reset" Nothing => vcpu::starts_anew::<B>,
        "vCPUs that take turns keep their registers" Nothing => vcpu::take_turns::<B>,
        "a guest can ask for a reset of its partition" Resets => vcpu::asks_for_reset::<B>,
        "a vCPU can switch itself off" SwitchingOff => vcpu::switches_off::<B>,
    }
}

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The backend did what it must.
    Passed,
    /// It did not: what was wrong.
    Failed(&'static str),
    /// The class does not have what the check is about: why.
    NotOfThisClass(&'static str),
}

/// Runs all checks; `report` hears about each.
pub fn run_all<B: Bench>(bench: &mut B, mut report: impl FnMut(&mut B, &'static str, Verdict)) {
    let mut ground = Ground::new(bench);
    for check in checks::<B>() {
        let verdict = match lacks(ground.bench, check.need) {
            Some(why) => Verdict::NotOfThisClass(why),
            None => match (check.run)(&mut ground) {
                Ok(()) => Verdict::Passed,
                Err(reason) => Verdict::Failed(reason),
            },
        };
        report(ground.bench, check.name, verdict);
    }
}

/// Returns the reason why the class does not have that, if it does not.
fn lacks<B: Bench>(bench: &B, need: Need) -> Option<&'static str> {
    match need {
        Need::Nothing => None,
        Need::Protection if !<B::Machine as Arch>::CAPS.protects => Some("rights to memory never change"),
        _ => bench.lacks(need),
    }
}

/// Returns `Err(message)` unless `condition`.
fn ensure(condition: bool, message: &'static str) -> Outcome {
    if condition { Ok(()) } else { Err(message) }
}

fn behind(base: HostPhys, offset: u64) -> HostPhys {
    HostPhys(base.0.wrapping_add(offset))
}
