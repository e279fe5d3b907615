// SPDX-License-Identifier: Apache-2.0
//! The groups of verbs a class implements.

use crate::window::NoWords;
use crate::{
    AccessKind, Dump, Exit, FaultReport, FrameWords, GuestPhys, HostPhys, Line, PartitionId, PcpuId, Place,
    Reply, Ticks, VcpuId, VcpuSet, VirtualLine, Window,
};
use bulkhead_abi::log::Area;
use bulkhead_abi::trace::Entry;

/// One pCPU's view of its machine: all groups of verbs.
pub trait Arch: Cpus + Vcpus + Spaces + Irqs + Clock + Console + Network + Traces {
    /// How to wait inside a spin loop, so that a lock's holder on another pCPU makes progress.
    type Relax: spin::RelaxStrategy;
    /// What this class can do.
    const CAPS: ArchCaps;
}

/// What a class can do; the host tool checks a manifest against it before the board is powered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchCaps {
    /// Name of the class, as in the board file.
    pub class: &'static str,
    /// Number of the class in a system image.
    pub class_number: u32,
    /// Granule of memory mappings in bytes.
    pub page_size: u64,
    /// First guest-physical address that cannot be mapped.
    pub guest_address_limit: u64,
    /// vCPUs a partition can have.
    pub max_vcpus_per_partition: u8,
    /// Whether a VM's time can stand still while it is not running.
    pub frozen_time: bool,
    /// Virtual interrupt lines a VM can have.
    pub max_virtual_lines: u32,
    /// Whether [`Irqs::admit`] does anything.
    pub masks_lines: bool,
    /// Whether its VMs' calls of a debugger can be answered ([`Exit::Host`]).
    pub semihosting: bool,
}

/// Physical CPUs.
pub trait Cpus {
    /// The pCPU this handle belongs to. Worst case: constant.
    fn current(&self) -> PcpuId;
    /// Starts another pCPU at the class binary's secondary entry.
    ///
    /// # Errors
    /// [`StartError`] if the firmware refuses.
    fn start(&mut self, pcpu: PcpuId) -> Result<(), StartError>;
    /// Makes another pCPU return [`Exit::Signal`] (or leave [`Cpus::wait`]) soon. Writes made before
    /// are visible there by then. Worst case: constant.
    fn signal(&mut self, pcpu: PcpuId);
    /// Waits, without a partition, for what the next [`Vcpus::run`] could return besides exits of the
    /// vCPU itself, and returns it: [`Exit::Interrupt`], [`Exit::Deadline`], [`Exit::Signal`] or [`Exit::Wake`].
    fn wait(&mut self) -> Exit;
    /// Like [`Cpus::wait`], but returns `None` at once if there is nothing. The kernel calls it between
    /// the chunks of its own long work, so that nobody's interrupt waits for the end of that work.
    /// Worst case: constant.
    fn poll(&mut self) -> Option<Exit>;
    /// Ends this pCPU's part for good (lockdown). Interrupts stay masked.
    fn stop(&mut self) -> !;
    /// Switches the whole board off if the firmware can; returns if it cannot.
    fn power_off(&mut self);
}

/// Why a pCPU did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartError {
    /// The firmware's own code.
    pub code: i64,
}

/// Whether a partition is a machine or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionKind {
    /// Runs an operating system on virtual hardware.
    Vm,
    /// Runs one unprivileged program.
    Task,
}

/// What time does for a partition while it is ready but not running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeMode {
    /// It goes on.
    Real,
    /// It stands still. Only for partitions with one vCPU.
    Frozen,
}

/// What the backend must know of a vCPU for good; given once, at boot, on the vCPU's own pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VcpuPlan {
    /// Its partition.
    pub partition: PartitionId,
    /// Kind of the partition.
    pub kind: PartitionKind,
    /// Index within the partition.
    pub index: u8,
    /// First vCPU of the partition; the partition's vCPUs are consecutive.
    pub first: VcpuId,
    /// vCPUs of the partition.
    pub count: u8,
    /// What time does while the vCPU is ready but not running.
    pub time: TimeMode,
    /// Whether it starts in AArch32 state, for a class that has another.
    pub aarch32: bool,
    /// Whether an idle instruction may wait in the partition, because nothing else runs on the pCPU.
    pub idle_in_place: bool,
    /// Whether its calls of a debugger are answered. Only if [`ArchCaps::semihosting`].
    pub semihosting: bool,
}

/// First state of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VcpuReset {
    /// First instruction.
    pub entry: GuestPhys,
    /// First argument register (aarch64: x0; the device tree or startup page).
    pub argument: u64,
    /// Stack pointer; only tasks get one, VMs start with none.
    pub stack: u64,
}

/// Virtual CPUs. A vCPU is only ever touched by the pCPU it is bound to, except by the verbs that
/// say *any pCPU*.
pub trait Vcpus {
    /// Tells the backend about a vCPU. Once, at boot, before any other verb for it.
    fn adopt(&mut self, vcpu: VcpuId, plan: &VcpuPlan);
    /// Puts the vCPU into the state its architecture gives after a cold reset, with `reset` applied;
    /// its virtual per-CPU interrupt state is cleared. Worst case: constant.
    fn reset(&mut self, vcpu: VcpuId, reset: &VcpuReset);
    /// Runs the vCPU until something needs the kernel. The only way into a partition.
    /// Requires: `adopt` and `reset` done, and the previous exit answered if it says so.
    fn run(&mut self, vcpu: VcpuId) -> Exit;
    /// Answers the vCPU's last exit. Worst case: constant.
    fn reply(&mut self, vcpu: VcpuId, reply: Reply);
    /// Raises a level on a virtual interrupt line of the partition's shared lines. *Any pCPU.*
    /// Returns the vCPUs that must be made ready if they are idle; those the backend can reach while
    /// they run on another pCPU, it has told already.
    fn inject(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet;
    /// Takes the level back. *Any pCPU.* What has become pending by it stays so if the class's interrupt controller keeps it.
    fn withdraw(&mut self, partition: PartitionId, line: VirtualLine);
    /// Whether a deliverable interrupt waits for the vCPU, so that it must not sleep. On its own pCPU.
    fn has_work(&mut self, vcpu: VcpuId) -> bool;
    /// The same about a vCPU that has just answered [`Exit::Idle`]: whether it may be left waiting. A backend that has looked
    /// before it made that exit, and is told of whatever comes later, need not look again.
    fn may_wait(&mut self, vcpu: VcpuId) -> bool {
        !self.has_work(vcpu)
    }
    /// The vCPU, which has just exited and is current, is about to wait for something of the kernel's: when its own
    /// timers will interrupt it, in the past if they do already, [`Ticks::NEVER`] if they will not. Until it runs
    /// again, time passes for it as for an idle one. Worst case: constant.
    fn pause(&mut self, vcpu: VcpuId) -> Ticks;
    /// Reflects a fault into the vCPU as its architecture would report it, if it is a VM.
    /// Returns false if that is impossible (a task): the caller must then stop the partition.
    fn fault(&mut self, vcpu: VcpuId, report: &FaultReport) -> bool;
    /// Completes what led to the vCPU's last [`Exit::Fault`] as if it had no effect: what it reads is zero,
    /// what it writes is ignored. Returns false, and changes nothing, if the backend cannot do that for this fault.
    fn skip(&mut self, vcpu: VcpuId) -> bool;
    /// The vCPU's registers.
    fn dump(&mut self, vcpu: VcpuId) -> Dump;
    /// The vCPU stops being run for reasons of its partition (stop, restart): whatever of it is still
    /// on this pCPU (FP registers, list registers, active interrupts) is saved or dropped.
    fn detach(&mut self, vcpu: VcpuId);
}

/// What a mapping lets the partition do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Loads.
    pub read: bool,
    /// Stores.
    pub write: bool,
    /// Instruction fetches.
    pub execute: bool,
}

/// What is behind a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Cacheable memory.
    Ram,
    /// Registers of a device passed through.
    Device,
}

/// One contiguous mapping of a partition's space. All numbers are multiples of the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address the partition sees.
    pub guest: GuestPhys,
    /// First address on the bus.
    pub host: HostPhys,
    /// Bytes.
    pub size: u64,
    /// What the partition may do.
    pub permissions: Permissions,
    /// What is there.
    pub kind: MemoryKind,
}

/// Kind of virtual interrupt controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerKind {
    /// Arm GICv3: window 0 is the distributor, window 1 the redistributors.
    GicV3,
    /// Arm GICv2: window 0 is the distributor, window 1 the CPU interface.
    GicV2,
}

/// The virtual interrupt controller of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualController {
    /// Which one.
    pub kind: ControllerKind,
    /// Its register windows: base and size.
    pub windows: [(GuestPhys, u64); 2],
    /// Interrupt lines, private ones included (a multiple of 32).
    pub lines: u32,
}

/// Why a space could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// The memory the system image reserves for translation tables is used up.
    TablesExhausted,
    /// A region is not page aligned, is empty or leaves the address space.
    BadRegion(GuestPhys),
    /// Two regions overlap.
    Overlap(GuestPhys),
}

/// Why guest memory could not be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyError {
    /// First address that is not the partition's, or not writable.
    pub address: GuestPhys,
}

/// Bytes of a partition's memory that may be cleared without a look at interrupts.
pub const CLEAR_AT_ONCE: u64 = 16 * 1024;

/// Address spaces of partitions. Built once at boot, by one pCPU, before any vCPU of theirs runs.
pub trait Spaces {
    /// Builds the space of a partition. Bounded by the number of translation tables it needs.
    ///
    /// # Errors
    /// [`BuildError`]; the space must not be used then.
    fn build(
        &mut self,
        partition: PartitionId,
        regions: &[Region],
        controller: Option<&VirtualController>,
    ) -> Result<(), BuildError>;
    /// Takes the mapping of `size` bytes from `guest` on away; no CPU can use it afterwards. Where the hardware maps coarser pieces than it was
    /// asked for, the rest of a piece goes with them.
    fn revoke(&mut self, partition: PartitionId, guest: GuestPhys, size: u64);
    /// Where an address of the partition is on the bus, if it is mapped.
    fn translate(&self, partition: PartitionId, guest: GuestPhys) -> Option<HostPhys>;
    /// Copies from the partition's memory. Bounded by the length of `bytes`.
    ///
    /// # Errors
    /// [`CopyError`] at the first byte that is not mapped memory; `bytes` is then undefined.
    fn copy_in(&self, partition: PartitionId, guest: GuestPhys, bytes: &mut [u8]) -> Result<(), CopyError>;
    /// Copies into the partition's memory, whatever its own permissions are, and makes the bytes
    /// visible to its instruction fetches and to accesses with its caches off. Bounded by the length of `bytes`.
    ///
    /// # Errors
    /// [`CopyError`] at the first byte that is not mapped memory.
    fn copy_out(&mut self, partition: PartitionId, guest: GuestPhys, bytes: &[u8]) -> Result<(), CopyError>;
    /// Like [`Spaces::copy_out`] with `length` zero bytes.
    ///
    /// # Errors
    /// [`CopyError`] at the first byte that is not mapped memory.
    fn clear(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError>;
    /// Like [`Spaces::clear`], but stops after some of it when an interrupt is pending, so that none has to wait for all;
    /// says how many bytes it has cleared, at least one. Bounded by `length`, and without a look at interrupts by
    /// [`CLEAR_AT_ONCE`]: a backend that does not look clears no more than that.
    ///
    /// # Errors
    /// [`CopyError`] at the first byte that is not mapped memory.
    fn clear_some(
        &mut self,
        partition: PartitionId,
        guest: GuestPhys,
        length: u64,
    ) -> Result<u64, CopyError> {
        let behind = (guest.0 / CLEAR_AT_ONCE)
            .saturating_add(1)
            .saturating_mul(CLEAR_AT_ONCE);
        let length = length.min(behind.saturating_sub(guest.0));
        self.clear(partition, guest, length).map(|()| length)
    }
    /// Makes what the caches hold of `length` bytes of the partition's memory visible to its instruction fetches and
    /// to accesses with its caches off. Bounded by `length`.
    ///
    /// # Errors
    /// [`CopyError`] at the first byte that is not mapped memory.
    fn clean(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError>;
    /// Reads or writes a register for the partition that owns it; returns what was read, or 0. Requires: inside a
    /// window of the system image's registers table, aligned to `size`, which is 1, 2, 4 or 8. Worst case: one bus access.
    fn forward(&mut self, register: HostPhys, size: u8, kind: AccessKind) -> u64;
    /// Puts the partition's virtual interrupt controller and everything else its vCPUs share into the state
    /// after a cold reset, a part at a time: the first is 0, each call returns the next, `None` at the end. Requires: all
    /// its vCPUs detached until the end. Worst case of a part: constant; nobody's interrupt is taken meanwhile.
    fn reset_shared(&mut self, partition: PartitionId, part: u32) -> Option<u32>;
}

/// How a physical line of a partition is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRoute {
    /// As what the guest sees it.
    pub virtual_line: VirtualLine,
    /// It is edge-triggered, else level-triggered.
    pub edge: bool,
    /// Each of its interrupts is answered by [`Exit::Device`], whatever its vCPU is doing. An interrupt of any other line is so only
    /// if a vCPU that does not run has something to do by it.
    pub critical: bool,
    /// How long after its arrival an interrupt of it lets its vCPU go on, not earlier, if that runs next; 0: as soon as possible. A class
    /// whose guests take their interrupts themselves ignores it.
    pub latency: Ticks,
}

/// Physical interrupts.
pub trait Irqs {
    /// Gives a physical line to a partition, on the pCPU of vCPU 0 until the guest routes it.
    /// From now on the backend delivers it, and the guest's end of interrupt ends it. At boot.
    fn route(&mut self, line: Line, partition: PartitionId, route: LineRoute);
    /// Lets a line of the hypervisor's own interrupt this pCPU.
    fn enable(&mut self, line: Line, edge: bool);
    /// The reverse of [`Irqs::enable`].
    fn disable(&mut self, line: Line);
    /// Only that these vCPUs become ready would change who runs: lines of other partitions need not interrupt before the next
    /// call. What they ask for must not be lost. Only called if [`ArchCaps::masks_lines`]. Worst case: one step per line.
    fn admit(&mut self, _vcpus: VcpuSet) {}
    /// Ends an [`Exit::Interrupt`].
    fn complete(&mut self, line: Line);
}

/// Time: one counter for all pCPUs, one one-shot timer per pCPU.
pub trait Clock {
    /// Ticks since some point before boot.
    fn now(&self) -> Ticks;
    /// Ticks per second. Constant.
    fn hertz(&self) -> u64;
    /// From `deadline` on, run and wait return [`Exit::Deadline`]; replaces an earlier deadline.
    fn arm(&mut self, deadline: Ticks);
    /// No deadline.
    fn disarm(&mut self);
}

/// The board's serial line.
pub trait Console {
    /// Hands bytes to the transmitter without waiting; returns how many it took.
    fn send(&mut self, bytes: &[u8]) -> usize;
    /// Takes a received byte, if there is one.
    fn receive(&mut self) -> Option<u8>;
    /// The line on which the receiver interrupts.
    fn receive_line(&self) -> Option<Line>;
    /// Waits until everything sent has left. Only for lockdown and power-off. Bounded by the FIFO's depth.
    fn flush(&mut self);
}

/// A frame that the board's network interface has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its bytes, CRC included.
    pub bytes: u32,
    /// The first of them.
    pub head: [u32; 2],
}

/// Frames on their way, and the board's network interface. A class without networks keeps the defaults.
///
/// Addresses are bus addresses inside the memory that the system image sets aside for frames, and multiples of 4.
pub trait Network {
    /// Whether the class has networks; if not, nothing of this is called, and the code for it is not built.
    const HAS_NETWORK: bool = false;
    /// [`Vcpus::run`] with a virtual device at `place` that may be asked without an exit.
    fn run_beside(&mut self, vcpu: VcpuId, _place: &Place, _window: &mut impl Window) -> Exit
    where
        Self: Vcpus,
    {
        self.run(vcpu)
    }
    /// Memory for frames, a word at a time.
    fn frame_words(&mut self) -> impl FrameWords {
        NoWords
    }
    /// Copies words of a frame. Worst case: linear in `words`, which are at most those of the longest frame.
    fn copy_frame(&mut self, _from: HostPhys, _to: HostPhys, _words: u32) {}
    /// The line of the board's interface, if the hypervisor drives it.
    fn network_line(&self) -> Option<Line> {
        None
    }
    /// Lets the line of the board's interface interrupt, as a line of these partitions (a bitmap; see [`Irqs::admit`]). At boot.
    fn open_network(&mut self, _partitions: u32) {}
    /// The oldest frame the board's interface has received; bad ones are dropped, one at a call.
    fn next_frame(&mut self) -> Option<Received> {
        None
    }
    /// Moves the next words of that frame, behind its head, to memory. Worst case: linear in `words`.
    fn take_frame(&mut self, _to: HostPhys, _words: u32) {}
    /// Forgets the rest of that frame.
    fn end_frame(&mut self) {}
    /// Sends `bytes` bytes (without CRC) by the board's interface; false if it has no room. Worst case: linear in `bytes`.
    fn send_frame(&mut self, _from: HostPhys, _bytes: u32) -> bool {
        false
    }
}

/// What the hypervisor leaves for those who come after it.
pub trait Traces {
    /// The log area: RAM that a warm reset keeps. Its contents are whatever they were.
    fn log_area(&self) -> &'static Area;
    /// What was stored in the log area in `length` bytes from `offset` on reaches the memory itself, out of any
    /// cache that a reset would empty. Worst case: linear in `length`.
    fn keep(&mut self, offset: usize, length: usize);
    /// This pCPU's ring of the trace, as the system image places it: its length is a power of two, or 0 if nothing
    /// is traced. Its contents are whatever they were, and nobody else writes it.
    fn trace_ring(&self) -> &'static [Entry];
}
