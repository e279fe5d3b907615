// SPDX-License-Identifier: Apache-2.0
//! What every backend must do, as one list of checks.
//!
//! The kernel relies on what `arch/api` says of its verbs, for every class alike. Here those sentences are
//! executed: [`checks`] lists functions that use a backend as the kernel would and say what was wrong. The
//! same list runs on the mock in the host tests, so that the kernel's own tests rest on a mock that keeps the
//! contract, and on a class in its emulator.
//!
//! A check needs three things that only a class can give, the trait [`Bench`]: memory of the board, guest
//! programs (described by [`Step`]s, because each class has its own instructions), and a guest that accepts an
//! interrupt line. Each check has a partition and a vCPU of its own, so the list runs in one go on a board that
//! cannot be reset in between.
//!
//! No heap, no panic: it is linked into a class binary for the emulator.
#![no_std]
#![forbid(unsafe_code)]

mod memory;
mod time;
mod vcpu;

use bulkhead_arch_api::{
    Arch, Exit, GuestPhys, HostPhys, MemoryKind, PartitionId, PartitionKind, Permissions, Region, Spaces,
    TimeMode, VcpuId, VcpuPlan, VcpuReset, Vcpus, VirtualLine,
};

/// What a check says: what was wrong, in a sentence.
pub type Outcome = Result<(), &'static str>;

/// A check and what it shows.
#[derive(Debug)]
pub struct Check<B> {
    /// What it shows.
    pub name: &'static str,
    /// Runs it on the partition and the vCPU that are its own.
    pub run: fn(&mut B, Place) -> Outcome,
}

/// Where a check works.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// A partition without a space so far.
    pub partition: PartitionId,
    /// A vCPU that nobody has adopted so far.
    pub vcpu: VcpuId,
}

/// One step of a guest program. A program that comes to its end keeps the CPU busy for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Loads so many bytes from an address into the accumulator.
    Load(u64, u8),
    /// Stores so many bytes of a value to an address.
    Store(u64, u8, u64),
    /// Makes the hypercall with this number and the accumulator as its first argument; the first result goes to the
    /// accumulator.
    Call(u16),
    /// Waits for an interrupt.
    Idle,
    /// Switches the vCPU off.
    Off,
}

/// What a class gives to the checks.
pub trait Bench {
    /// The backend under test: the handle of the pCPU that runs the checks.
    type Machine: Arch;
    /// The backend under test.
    fn machine(&mut self) -> &mut Self::Machine;
    /// [`MEMORY`] bytes of the board's memory for this partition, aligned to a page.
    fn memory(&self, partition: PartitionId) -> HostPhys;
    /// Makes `steps` the program of the vCPU: what to reset it with. The partition's space is built; a program that lies in
    /// memory lies in the last page of [`RAM`].
    fn load(&mut self, place: Place, steps: &'static [Step]) -> VcpuReset;
    /// Makes the vCPU's interrupt controller deliver this shared line.
    fn accept(&mut self, place: Place, line: VirtualLine);
}

/// Bytes of memory a check uses.
pub const MEMORY: u64 = 0x8000;
/// Where a partition sees the first half of its memory, readable, writable and executable.
pub const RAM: GuestPhys = GuestPhys(0x4000_0000);
/// Bytes there.
pub const RAM_SIZE: u64 = 0x4000;
/// Where it sees the next page, readable only.
pub const CONSTANT: GuestPhys = GuestPhys(0x5000_0000);
/// Where nothing is.
pub const NOWHERE: GuestPhys = GuestPhys(0x6000_0000);
/// Bytes of a page.
pub const PAGE: u64 = 0x1000;
/// Exits that are nobody's fault (an interrupt of the board, say) before a check gives up waiting for its own.
const PATIENCE: usize = 1000;

/// All checks. Partition and vCPU `n` belong to check `n`.
#[must_use]
pub const fn checks<B: Bench>() -> [Check<B>; 21] {
    macro_rules! list {
        ($($name:literal => $run:expr),* $(,)?) => { [$(Check { name: $name, run: $run }),*] };
    }
    list! {
        "the clock never goes back, its frequency is constant" => time::clock::<B>,
        "a deadline is never early and comes once armed" => time::deadline::<B>,
        "a deadline in the past comes at once, a disarmed one never" => time::past_and_disarmed::<B>,
        "a deadline ends a guest that does not exit" => time::deadline_ends_guest::<B>,
        "a signal to oneself arrives once" => time::signal::<B>,
        "what is copied out is copied in" => memory::copies::<B>,
        "a copy stops at the first byte that is not the partition's" => memory::copy_bounds::<B>,
        "clearing clears what it says and nothing else" => memory::clears::<B>,
        "addresses translate inside regions and nowhere else" => memory::translates::<B>,
        "a bad space is refused" => memory::refuses::<B>,
        "what is revoked is gone, what is beside it is not" => memory::revokes::<B>,
        "guest and hypervisor see the same memory" => memory::guest_sees_memory::<B>,
        "a guest cannot write what it may only read" => memory::read_only::<B>,
        "a load from nowhere exits and takes the answer" => vcpu::load_exits::<B>,
        "a store to nowhere exits with its value" => vcpu::store_exits::<B>,
        "a hypercall arrives whole and takes its result" => vcpu::hypercall::<B>,
        "a fault is reflected into a VM" => vcpu::fault_in_vm::<B>,
        "a fault cannot be reflected into a task" => vcpu::fault_in_task::<B>,
        "a guest without work exits as idle, an interrupt is work" => vcpu::idle_and_inject::<B>,
        "a reset of the shared state drops interrupts" => vcpu::reset_shared::<B>,
        "a detached vCPU starts anew after its reset" => vcpu::starts_anew::<B>,
    }
}

/// Runs all checks; `report` hears about each. True if all passed.
pub fn run_all<B: Bench>(bench: &mut B, mut report: impl FnMut(&mut B, &'static str, Outcome)) -> bool {
    let mut passed = true;
    for (check, number) in checks::<B>().iter().zip(0..) {
        let place = Place {
            partition: PartitionId(number),
            vcpu: VcpuId(number),
        };
        let outcome = (check.run)(bench, place);
        passed &= outcome.is_ok();
        report(bench, check.name, outcome);
    }
    passed
}

/// `Err(message)` unless `condition`.
fn ensure(condition: bool, message: &'static str) -> Outcome {
    if condition { Ok(()) } else { Err(message) }
}

/// The partition's regions: memory and constants.
fn regions(host: HostPhys) -> [Region; 2] {
    let region = |guest, host, size, write| Region {
        guest,
        host,
        size,
        permissions: Permissions {
            read: true,
            write,
            execute: write,
        },
        kind: MemoryKind::Ram,
    };
    [
        region(RAM, host, RAM_SIZE, true),
        region(CONSTANT, HostPhys(host.0.wrapping_add(RAM_SIZE)), PAGE, false),
    ]
}

/// Gives the check's partition its space.
fn build<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    let regions = regions(bench.memory(place.partition));
    bench
        .machine()
        .build(place.partition, &regions, None)
        .map_err(|_| "a good space was refused")
}

/// Gives the check's partition its space, and a vCPU with a program.
fn start<B: Bench>(bench: &mut B, place: Place, kind: PartitionKind, steps: &'static [Step]) -> Outcome {
    build(bench, place)?;
    let plan = VcpuPlan {
        partition: place.partition,
        kind,
        index: 0,
        first: place.vcpu,
        count: 1,
        time: TimeMode::Real,
        aarch32: false,
        idle_in_place: false,
    };
    bench.machine().adopt(place.vcpu, &plan);
    vcpu::reset_all_shared(bench, place);
    let reset = bench.load(place, steps);
    bench.machine().reset(place.vcpu, &reset);
    Ok(())
}

/// Runs the vCPU until it exits for a reason of its own.
fn run<B: Bench>(bench: &mut B, place: Place) -> Result<Exit, &'static str> {
    for _ in 0..PATIENCE {
        let exit = bench.machine().run(place.vcpu);
        match exit {
            Exit::Interrupt(line) => bulkhead_arch_api::Irqs::complete(bench.machine(), line),
            Exit::Deadline => bulkhead_arch_api::Clock::disarm(bench.machine()),
            Exit::Signal | Exit::Wake(_) | Exit::Device(..) => {}
            own => return Ok(own),
        }
    }
    Err("the vCPU never exits")
}
