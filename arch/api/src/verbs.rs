// SPDX-License-Identifier: Apache-2.0
//! The groups of verbs a class implements.

use crate::device::NoWords;
use crate::{
    Access, AccessKind, ClassFacts, Dump, Exit, FaultReport, FrameWords, GuestPhys, HostPhys, Line,
    PartitionId, PcpuId, Reply, Ticks, VcpuId, VcpuSet, VirtualDevice, VirtualLine, Window,
};
use bulkhead_abi::atomic::AtomicU64;
use bulkhead_abi::hypercall::UPCALL_WORDS;
use bulkhead_abi::log::{Area, RegisterFile};
use bulkhead_abi::trace::Entry;
use core::sync::atomic::Ordering;

/// One pCPU's view of its machine: all groups of verbs.
pub trait Arch: Cpus + Vcpus + Spaces + Irqs + Clock + Frames + Traces {
    /// The way to wait inside a spin loop, so that a lock's holder on another pCPU makes progress.
    type Relax: spin::RelaxStrategy;
    /// The facts of this class.
    const CAPS: ClassFacts;
    /// The register files that the reports of its vCPUs have.
    const FILES: &'static [&'static RegisterFile];
}

/// Physical CPUs.
pub trait Cpus {
    /// Returns the pCPU this handle belongs to. Worst case: constant.
    fn current(&self) -> PcpuId;
    /// Starts another pCPU at the class binary's secondary entry.
    ///
    /// # Errors
    /// [`StartError`] if the firmware refuses.
    fn start(&mut self, pcpu: PcpuId) -> Result<(), StartError>;
    /// Makes another pCPU return [`Exit::Signal`] (or leave [`Cpus::wait`]) soon. Writes made before
    /// are visible there by then. Worst case: constant.
    fn signal(&mut self, pcpu: PcpuId);
    /// Waits, without a partition, for what the next [`Vcpus::run`] could return besides exits of the vCPU
    /// itself, and returns it: [`Exit::Interrupt`], [`Exit::Deadline`], [`Exit::Signal`] or [`Exit::Wake`].
    fn wait(&mut self) -> Exit;
    /// Returns what [`Cpus::wait`] would return, or `None` at once if there is nothing. The kernel calls it
    /// between the chunks of its own long work, so that no interrupt waits for the end of that work.
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

/// The kind of a partition: a machine or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionKind {
    /// Runs an operating system on virtual hardware.
    Vm,
    /// Runs one unprivileged program.
    Task,
}

/// The way time passes for a partition while it is ready but not running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeMode {
    /// It goes on.
    Real,
    /// It stands still. Only for partitions with one vCPU.
    Frozen,
}

/// The facts that the backend must know of a vCPU for good; given once, at boot, on the vCPU's own pCPU.
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
    /// The way time passes while the vCPU is ready but not running.
    pub time: TimeMode,
    /// The state in which the vCPU 0 of its partition starts.
    pub entry_state: EntryState,
    /// True if an idle instruction may wait in the partition, because nothing else runs on the pCPU.
    pub idle_in_place: bool,
    /// True if its calls of a debugger are answered. Only if [`ClassFacts::semihosting`].
    pub semihosting: bool,
    /// Address of the words in which its code keeps its masks (guest-physical), or 0. Only class armv7m.
    pub masks: u32,
    /// True if it takes the interrupts of its pCPU itself, without an exit. It is then the only vCPU of its
    /// pCPU, which the kernel arms no deadline on. Only if [`ClassFacts::direct`].
    pub direct: bool,
}

impl VcpuPlan {
    /// The plan of a vCPU that has none yet.
    pub const BLANK: Self = Self {
        partition: PartitionId(0),
        kind: PartitionKind::Vm,
        index: 0,
        first: VcpuId(0),
        count: 1,
        time: TimeMode::Real,
        entry_state: EntryState::USUAL,
        idle_in_place: false,
        semihosting: false,
        masks: 0,
        direct: false,
    };
}

/// The state in which a vCPU starts: its number in [`ClassFacts::entry_states`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryState(pub u8);

impl EntryState {
    /// The usual one. A vCPU that another one switches on starts in it, unless the class has the partition's
    /// entry state hold for all of its vCPUs.
    pub const USUAL: Self = Self(0);
}

/// First state of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VcpuReset {
    /// The state of the processor. A class with one entry state ignores it.
    pub state: EntryState,
    /// First instruction.
    pub entry: GuestPhys,
    /// First argument register (aarch64: x0; the device tree or startup page).
    pub argument: u64,
    /// Stack pointer; only tasks get one, VMs start with none.
    pub stack: u64,
}

/// The registers of a hypercall: the operation and its arguments, afterwards 0 and its four results.
pub type CallRegisters = [u64; 7];

/// Hypercalls that need no decision: they change nothing about who runs on this pCPU. The kernel lends them
/// to the backend for one [`Vcpus::run_answering`].
pub trait ShortCalls<M> {
    /// Returns whom `caller` rings at by a doorbell with these arguments, if that is exactly one VM: the
    /// line that is to be pulsed ([`Vcpus::pulse`]). Requires: the call is `ChannelDoorbell`. It has no
    /// results. Worst case: constant.
    fn bell(&self, caller: PartitionId, registers: &CallRegisters) -> Option<(PartitionId, VirtualLine)>;
    /// Carries out any other hypercall of `caller`, which runs. Returns `None` if that takes more, and has
    /// changed nothing then: [`Exit::Hypercall`] follows. Otherwise the results are in `registers`, and the
    /// vCPUs that became due are returned: [`Exit::Wake`] follows unless there are none. Bounded by the
    /// length of a message.
    fn answer(&self, machine: &mut M, caller: VcpuId, registers: &mut CallRegisters) -> Option<VcpuSet>;
    /// Answers an access by `caller`, which runs, to the register at `offset` in the window of
    /// [`Vcpus::shorten`], or of the console's ports. Returns the value as for [`Vcpus::answer`]. Returns
    /// `None` if the access may have an effect beside the device, and has done nothing then:
    /// [`Exit::Register`] follows. Worst case: constant.
    fn register(&self, caller: PartitionId, offset: u64, size: u8, stored: Option<u64>) -> Option<u64>;
}

/// Virtual CPUs. A vCPU is only ever touched by the pCPU it is bound to, except by the verbs that
/// say *any pCPU*.
pub trait Vcpus {
    /// The fact of the class ([`crate::ClassFacts::upcalls`]). If it is true, the class has [`Vcpus::divert`]
    /// and [`Vcpus::go_on`].
    const HAS_UPCALLS: bool;
    /// Tells the backend about a vCPU. Once, at boot, before any other verb for it.
    fn adopt(&mut self, vcpu: VcpuId, plan: &VcpuPlan);
    /// True if there is [`Exit::Register`]: [`Vcpus::shorten`] has an effect, or the class leaves so for the
    /// console's ports.
    const SHORTENS: bool = false;
    /// Tells the backend that a device of the kernel has all registers in the [`crate::REGISTER_WINDOW`]
    /// bytes from `window` on, which is a multiple of that number. From now on an ordinary load or store of
    /// the vCPU there may be an [`Exit::Register`] instead of an [`Exit::Access`]. Once at most, after
    /// `adopt`.
    fn shorten(&mut self, _vcpu: VcpuId, _window: GuestPhys) {}
    /// Answers an [`Exit::Register`], and completes the instruction. `value` is the result of a load,
    /// zero-extended; a store has none. Worst case: constant.
    fn answer(&mut self, _vcpu: VcpuId, _value: u64) {}
    /// Puts the vCPU into the state its architecture gives after a cold reset, with `reset` applied;
    /// its virtual per-CPU interrupt state is cleared. Worst case: constant.
    fn reset(&mut self, vcpu: VcpuId, reset: &VcpuReset);
    /// Runs the vCPU until something needs the kernel. The only way into a partition.
    /// Requires: `adopt` and `reset` done, and the previous exit answered if it says so.
    /// Guarantees: each exception taken on the way is counted once, by its cause, in the vCPU's
    /// [`Exits`](bulkhead_abi::log::Exits), also one that the backend answers by itself.
    fn run(&mut self, vcpu: VcpuId) -> Exit;
    /// Does [`Vcpus::run`], and may let `calls` answer hypercalls meanwhile, without an exit. A class without
    /// that leaves with [`Exit::Hypercall`] for each.
    #[inline(always)]
    fn run_answering(&mut self, vcpu: VcpuId, _calls: &impl ShortCalls<Self>) -> Exit
    where
        Self: Sized,
    {
        self.run(vcpu)
    }
    /// Answers the vCPU's last exit. Worst case: constant.
    fn reply(&mut self, vcpu: VcpuId, reply: Reply);
    /// Returns the second access of the instruction whose first access, an [`Exit::Access`], has just been
    /// answered. The answer to the second one completes the instruction. A class without such instructions
    /// returns `None`. Worst case: constant.
    fn second_access(&mut self, _vcpu: VcpuId, _first: &Access) -> Option<Access> {
        None
    }
    /// Raises a level on a virtual interrupt line of the partition's shared lines, or sends a vector to its
    /// vCPU 0 ([`VirtualLine::vector`]). *Any pCPU.*
    /// Returns the vCPUs that must be made ready if they are idle; those the backend can reach while
    /// they run on another pCPU, it has told already.
    fn inject(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet;
    /// Takes the level back; a vector has none. *Any pCPU.* An interrupt that has become pending by the level
    /// stays so if the class's interrupt controller keeps it.
    fn withdraw(&mut self, partition: PartitionId, line: VirtualLine);
    /// Makes the interrupt of a shared line pending once, with any trigger that the guest has chosen for
    /// it, or sends a vector. *Any pCPU.* Returns what [`Vcpus::inject`] returns. An interrupt that is
    /// pending already stays one. A handler that begins after the call sees what the caller wrote before it.
    ///
    /// A class on which several pCPUs can do this at the same time has a way of its own: here the level of
    /// one caller could hide the edge of another.
    fn pulse(&mut self, partition: PartitionId, line: VirtualLine) -> VcpuSet {
        let woken = self.inject(partition, line);
        self.withdraw(partition, line);
        woken
    }
    /// Tells whether a deliverable interrupt waits for the vCPU, so that it must not sleep. On its own pCPU.
    fn has_work(&mut self, vcpu: VcpuId) -> bool;
    /// Prepares the current vCPU, which has just exited, to wait for something of the kernel's. Returns when
    /// its own timers will interrupt it, in the past if a deliverable interrupt waits for it already,
    /// [`Ticks::NEVER`] if they will not.
    /// Until it runs again, time passes for it as for an idle one. Worst case: constant.
    fn pause(&mut self, vcpu: VcpuId) -> Ticks;
    /// Reflects a fault into the vCPU as its architecture would report it, if it is a VM.
    /// Returns false if that is impossible (a task): the caller must then stop the partition.
    fn fault(&mut self, vcpu: VcpuId, report: &FaultReport) -> bool;
    /// Completes what led to the vCPU's last [`Exit::Fault`] as if it had no effect: what it reads is zero,
    /// what it writes is ignored. Returns false, and changes nothing, if the backend cannot do that for this
    /// fault.
    fn skip(&mut self, vcpu: VcpuId) -> bool;
    /// Makes the vCPU, a task that is in no call and not being answered, go on at `entry` with `argument` in
    /// its first register. Returns the place where it was ([`UPCALL_WORDS`]). A class without upcalls keeps
    /// the default. Worst case: constant.
    fn divert(&mut self, _vcpu: VcpuId, _entry: GuestPhys, _argument: u64) -> Option<[u64; UPCALL_WORDS]> {
        None
    }
    /// Makes the vCPU, a task whose hypercall is not answered yet, go on at a place that
    /// [`Vcpus::divert`] has returned, or that the task has made up: nothing in it gives a task more than it
    /// has. This is the answer to the hypercall. Returns false, and does nothing, if the class has no
    /// upcalls. Worst case: constant.
    fn go_on(&mut self, _vcpu: VcpuId, _place: [u64; UPCALL_WORDS]) -> bool {
        false
    }
    /// Returns the vCPU's registers.
    fn dump(&mut self, vcpu: VcpuId) -> Dump;
    /// Stops running the vCPU for reasons of its partition (stop, restart): all of it that is still
    /// on this pCPU (FP registers, list registers, active interrupts) is saved or dropped.
    fn detach(&mut self, vcpu: VcpuId);
}

/// The rights that a mapping gives to the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Loads.
    pub read: bool,
    /// Stores.
    pub write: bool,
    /// Instruction fetches.
    pub execute: bool,
}

/// The kind of memory of a mapping.
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
    /// The rights of the partition.
    pub permissions: Permissions,
    /// The kind of memory there.
    pub kind: MemoryKind,
}

/// The parts of a partition's space.
#[derive(Clone, Copy, Debug)]
pub struct SpacePlan<'a> {
    /// Its mappings.
    pub regions: &'a [Region],
    /// Interrupt lines of its virtual controller, private ones included; 0 if it has none.
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

/// Bytes of a message that are copied at a time, unless the backend has a way of its own.
const MESSAGE_PIECE: usize = 64;

/// Returns the address `bytes` after `guest`.
fn after(guest: GuestPhys, bytes: usize) -> Result<GuestPhys, CopyError> {
    guest
        .offset(bytes as u64)
        .map_err(|_| CopyError { address: guest })
}

/// Address spaces of partitions. Built once at boot, by one pCPU, before any vCPU of theirs runs.
pub trait Spaces {
    /// Builds the space of a partition. The backend answers the virtual `devices` that it knows, its
    /// interrupt controller above all. Bounded by the number of translation tables it needs.
    ///
    /// # Errors
    /// [`BuildError`]; the space must not be used then.
    fn build(
        &mut self,
        partition: PartitionId,
        plan: &SpacePlan<'_>,
        devices: impl Iterator<Item = VirtualDevice>,
    ) -> Result<(), BuildError>;
    /// Changes the rights of the partition to `size` bytes from `guest` on. The hypervisor's own copies do
    /// not ask. Returns when every CPU obeys. A refused load or store is an [`Exit::Access`] in a window of a
    /// virtual flash ([`crate::class::DeviceRole::Flash`]), and an [`Exit::Fault`] elsewhere. Requires: such
    /// a window, or the side of a channel that is mapped only while it is held. Bounded by the blocks and
    /// pages that are mapped. A class whose facts say that it does not protect keeps the default.
    fn protect(&mut self, _partition: PartitionId, _guest: GuestPhys, _size: u64, _permissions: Permissions) {
    }
    /// Copies from the partition's memory. Bounded by the length of `bytes`.
    ///
    /// # Errors
    /// [`CopyError`] at the first byte that is not mapped memory; `bytes` is then undefined.
    fn copy_in(&self, partition: PartitionId, guest: GuestPhys, bytes: &mut [u8]) -> Result<(), CopyError>;
    /// Copies into the partition's memory, without regard to its own permissions, and makes the bytes visible
    /// to its instruction fetches and to accesses with its caches off. Bounded by the length of `bytes`.
    ///
    /// # Errors
    /// [`CopyError`] at the first byte that is not mapped memory.
    fn copy_out(&mut self, partition: PartitionId, guest: GuestPhys, bytes: &[u8]) -> Result<(), CopyError>;
    /// Tells whether all of `length` bytes from `guest` on are memory, no registers, that the partition
    /// itself may load, or store to if `is_store`. Bounded by the number of pages.
    fn may_access(&self, partition: PartitionId, guest: GuestPhys, length: u64, is_store: bool) -> bool;
    /// Copies a message from the partition's memory into `words`, the first byte of a word in its bits 7:0.
    /// The memory is what the partition sees, also with its caches off. Requires: `guest` is a multiple of
    /// 8, and [`Spaces::may_access`] has just said yes. Bounded by `length`.
    ///
    /// # Errors
    /// [`CopyError`] if the memory has been taken away meanwhile.
    fn load_message(
        &self,
        (partition, guest): (PartitionId, GuestPhys),
        length: usize,
        words: &[AtomicU64],
    ) -> Result<(), CopyError> {
        let pieces = words.chunks(MESSAGE_PIECE / 8);
        for (piece, at) in pieces.zip((0..length).step_by(MESSAGE_PIECE)) {
            let mut bytes = [0; MESSAGE_PIECE];
            let (used, _) = bytes.split_at_mut(length.saturating_sub(at).min(MESSAGE_PIECE));
            self.copy_in(partition, after(guest, at)?, used)?;
            for (word, bytes) in piece.iter().zip(bytes.as_chunks().0) {
                word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
            }
        }
        Ok(())
    }
    /// Copies a message from `words` into the partition's memory, as [`Spaces::load_message`] does in the
    /// other direction.
    ///
    /// # Errors
    /// [`CopyError`] if the memory has been taken away meanwhile.
    fn store_message(
        &mut self,
        (partition, guest): (PartitionId, GuestPhys),
        length: usize,
        words: &[AtomicU64],
    ) -> Result<(), CopyError> {
        let pieces = words.chunks(MESSAGE_PIECE / 8);
        for (piece, at) in pieces.zip((0..length).step_by(MESSAGE_PIECE)) {
            let mut bytes = [0; MESSAGE_PIECE];
            for (word, bytes) in piece.iter().zip(bytes.as_chunks_mut().0) {
                *bytes = word.load(Ordering::Relaxed).to_le_bytes();
            }
            let (used, _) = bytes.split_at(length.saturating_sub(at).min(MESSAGE_PIECE));
            self.copy_out(partition, after(guest, at)?, used)?;
        }
        Ok(())
    }
    /// Copies a message from the memory of one partition to another one's, or of the same one. Both may
    /// have their caches off. Requires: both addresses are multiples of 8, and
    /// [`Spaces::may_access`] has said yes of both. Bounded by `length`.
    ///
    /// # Errors
    /// [`CopyError`] if the memory has been taken away meanwhile.
    fn pass_message(
        &mut self,
        (sender, from): (PartitionId, GuestPhys),
        (receiver, to): (PartitionId, GuestPhys),
        length: usize,
    ) -> Result<(), CopyError> {
        for at in (0..length).step_by(MESSAGE_PIECE) {
            let mut bytes = [0; MESSAGE_PIECE];
            let (used, _) = bytes.split_at_mut(length.saturating_sub(at).min(MESSAGE_PIECE));
            self.copy_in(sender, after(from, at)?, used)?;
            self.copy_out(receiver, after(to, at)?, used)?;
        }
        Ok(())
    }
    /// Clears some of `length` bytes, as [`Spaces::copy_out`] of zeros would. Stops when an interrupt is
    /// pending, so that none has to wait for all. Returns how many bytes it has cleared, at least one.
    /// Bounded by `length`, and without a look at interrupts by [`CLEAR_AT_ONCE`]: a backend that does not
    /// look clears no more than that.
    ///
    /// # Errors
    /// [`CopyError`] at the first byte that is not mapped memory.
    fn clear(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<u64, CopyError>;
    /// Makes what the caches hold of `length` bytes of the partition's memory visible to its instruction
    /// fetches and to accesses with its caches off. Bounded by `length`.
    ///
    /// # Errors
    /// [`CopyError`] at the first byte that is not mapped memory.
    fn clean(&mut self, partition: PartitionId, guest: GuestPhys, length: u64) -> Result<(), CopyError>;
    /// Reads or writes a register for the partition that owns it; returns what was read, or 0. Requires:
    /// inside a window of the system image's registers table, aligned to `size`, which is 1, 2, 4 or 8. Worst
    /// case: one bus access.
    fn forward(&mut self, register: HostPhys, size: u8, kind: AccessKind) -> u64;
    /// Puts the partition's virtual interrupt controller and everything else its vCPUs share into the state
    /// after a cold reset, a part at a time: the first is 0, each call returns the next, `None` at the end.
    /// Requires: all its vCPUs detached until the end. Worst case of a part: constant; no interrupt is taken
    /// meanwhile.
    fn reset_shared(&mut self, partition: PartitionId, part: u32) -> Option<u32>;
}

/// The way a physical line of a partition is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRoute {
    /// As what the guest sees it.
    pub virtual_line: VirtualLine,
    /// It is edge-triggered, else level-triggered.
    pub edge: bool,
    /// Each of its interrupts is answered by [`Exit::Device`], in every state of its vCPU. An interrupt
    /// of any other line is so only if a vCPU that does not run has something to do by it.
    pub critical: bool,
    /// The time from the arrival of an interrupt of the line until its vCPU goes on, if that vCPU runs next.
    /// The vCPU does not go on earlier; 0: as soon as possible. A class whose guests take their interrupts
    /// themselves ignores it.
    pub latency: Ticks,
    /// The vCPU's handler of the line may start before the hypervisor has done with its other work, and run
    /// so for up to `latency`, which is no time of arrival then. A class without
    /// [`ClassFacts::delays_interrupts`] ignores it.
    pub early: bool,
}

/// Physical interrupts.
pub trait Irqs {
    /// Gives a physical line to a partition, on the pCPU of vCPU 0 until the guest routes it.
    /// From now on the backend delivers it, and the guest's end of interrupt ends it. At boot.
    fn route(&mut self, line: Line, partition: PartitionId, route: LineRoute);
    /// Lets a line of the hypervisor's own interrupt this pCPU.
    fn enable(&mut self, line: Line, edge: bool);
    /// Lets a line of the hypervisor's own interrupt, as a line of these partitions (a bitmap; see
    /// [`Irqs::admit`]). At boot. Only called where there are networks.
    fn share(&mut self, line: Line, _partitions: u32) {
        self.enable(line, false);
    }
    /// Keeps the line from interrupting this pCPU: the reverse of [`Irqs::enable`].
    fn disable(&mut self, line: Line);
    /// Names the vCPUs whose readiness would change the decision in force. Lines of other partitions need not
    /// interrupt before the next call. The interrupts of those lines must not be lost. Only called if
    /// [`ClassFacts::masks_lines`]. Worst case: one step per line.
    fn admit(&mut self, _vcpus: VcpuSet) {}
    /// Ends an [`Exit::Interrupt`].
    fn complete(&mut self, line: Line);
}

/// Time: one counter for all pCPUs, one one-shot timer per pCPU.
pub trait Clock {
    /// Returns the number of ticks since some point before boot.
    fn now(&self) -> Ticks;
    /// Returns the number of ticks per second; 0 on a board whose system image was refused. Constant.
    fn hertz(&self) -> u64;
    /// Makes run and wait return [`Exit::Deadline`] from `deadline` on; replaces an earlier deadline.
    fn arm(&mut self, deadline: Ticks);
    /// Takes the deadline away.
    fn disarm(&mut self);
}

/// Frames on their way between VMs. A class without networks keeps the defaults.
///
/// Addresses are bus addresses inside the memory that the system image sets aside for frames, and multiples
/// of 4.
pub trait Frames {
    /// Runs the vCPU as [`Vcpus::run`] does, with a virtual device that may be asked without an exit.
    fn run_beside(&mut self, vcpu: VcpuId, _device: &VirtualDevice, _window: &mut impl Window) -> Exit
    where
        Self: Vcpus,
    {
        self.run(vcpu)
    }
    /// Returns the memory for frames, a word at a time.
    fn frame_words(&mut self) -> impl FrameWords + use<Self> {
        NoWords
    }
    /// Copies words of a frame. Worst case: linear in `words`, at most as many as the longest frame has.
    fn copy_frame(&mut self, _from: HostPhys, _to: HostPhys, _words: u32) {}
}

/// The records that the hypervisor leaves for those who come after it.
pub trait Traces {
    /// Returns the log area: RAM that a warm reset keeps. Its contents stay as they were.
    fn log_area(&self) -> &'static Area;
    /// Writes `length` bytes of the log area, from `offset` on, back to the memory itself, out of any
    /// cache that a reset would empty. Worst case: linear in `length`.
    fn keep(&mut self, offset: usize, length: usize);
    /// Returns this pCPU's ring of the trace, as the system image places it: its length is a power of two, or
    /// 0 if nothing is traced. Its contents stay as they were, and no other code writes it.
    fn trace_ring(&self) -> &'static [Entry];
}
