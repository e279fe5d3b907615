// SPDX-License-Identifier: Apache-2.0
//! Hypercall numbers, object kinds, rights and error codes.

use crate::parts::Part;
use crate::size::{TABLES, Tables};

/// First function identifier of our hypercalls: SMCCC fast call, 64-bit, vendor-specific hypervisor
/// service (owner 6), Arm DEN 0028F section 2.5 and table 6-1.
pub const FUNCTION_BASE: u32 = 0xC600_0000;

/// Class `armv7m`: the instruction with which a VM calls, `UDF #0xB1`. SVC is an instruction of the VM's own,
/// and an undefined instruction is none that a program uses; a task uses `SVC #0`.
pub const HYPERCALL_INSTRUCTION: u16 = 0xDEB1;

/// Class `armv8m`: the address to which a VM branches to call, with bit 0 set and the place to return to in
/// LR. Memory there is Secure on every board, so the CPU refuses the branch, and the hypervisor gets control.
/// A VM whose own UsageFault is not enabled can use [`HYPERCALL_INSTRUCTION`] as well. A task uses `SVC #0`.
pub const HYPERCALL_GATE: u32 = 0x1FFF_FB10;

/// Returns the SMCCC function identifier of `operation`.
#[must_use]
pub const fn function_id(operation: Operation) -> u32 {
    FUNCTION_BASE | operation as u32
}

/// An operation on the object that the capability of a hypercall names.
///
/// The number is the low 16 bits of the function identifier. The upper byte of it is the object kind
/// the operation belongs to, so that numbers of one kind stay together as the list grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Operation {
    /// Does nothing and needs no capability: the cost of the path itself.
    ///
    /// Without this call, no program could measure the cost of a call itself.
    Null = 0x0000,
    /// ABI revision in x1: `major << 16 | minor`. Needs no capability.
    ///
    /// Without this call, a program could not tell whether the hypervisor has the calls that it was compiled
    /// for.
    Version = 0x0001,
    /// Partition: state, restart count and last health class in x1 (see [`crate::status::StatusWord`]), how
    /// and why it started in x2 (see [`crate::status::StartWord`]). Right: `READ`.
    ///
    /// Without this call, a supervisor would learn of faults and restarts only by messages that a dead
    /// partition cannot send.
    PartitionStatus = 0x0100,
    /// Partition: start it if it is stopped, as x2 says (see [`crate::status::StartOptions`]). Right:
    /// `CONTROL`.
    ///
    /// Without this call, a partition that the manifest leaves stopped could never run.
    PartitionStart = 0x0101,
    /// Partition: stop it. Right: `CONTROL`.
    ///
    /// Without this call, a supervisor could not take a partition out of service.
    PartitionStop = 0x0102,
    /// Partition: stop it and start it, as x2 says (see [`crate::status::StartOptions`]). Right: `CONTROL`.
    ///
    /// Without this call, a stop and a start by two calls would leave a moment in which a second supervisor
    /// starts the partition another way.
    PartitionRestart = 0x0103,
    /// Partition: restart its watchdog period; a caller can do so for itself without a right. Right:
    /// `CONTROL`.
    ///
    /// Without this call, a partition that hangs would look like one that computes.
    PartitionKick = 0x0104,
    /// Partition: a measurement, of it or of what runs it, as x2 says (see
    /// [`crate::measurement::Measurement`]). Result x1 to x4: SHA-256, little-endian. Right: `READ`.
    ///
    /// Without this call, no program could tell a verifier far away what runs here.
    PartitionMeasure = 0x0105,
    /// Event gate: block until an event is pending, or until x2 (nanoseconds since boot, 0 = for ever).
    /// Result x1: the events, a bitmap, which are consumed. Right: `READ`.
    ///
    /// Without this call, a task would have to poll, and would take time from others for nothing.
    EventWait = 0x0200,
    /// Event gate: like `EventWait`, but never blocks. Right: `READ`.
    ///
    /// Without this call, a periodic program could not look for events without the risk to lose its release.
    EventPoll = 0x0201,
    /// Event gate: raise the events in x2. Right: `WRITE`.
    ///
    /// Without this call, partitions without shared memory could not wake each other.
    EventSignal = 0x0202,
    /// Event gate: lets a task be interrupted. As soon as an event is pending, or the time x5 has come
    /// (nanoseconds since boot, 0 = never), the task goes on at x3 with x4 in its first register. The place
    /// where it was is then in the words at x4 ([`UPCALL_WORDS`]). That happens once; the event stays
    /// pending. x3 = 0: not any more. If x2 is not 0, the call does not return: the task goes on from the
    /// place in the words at x2. `EventWait` takes the upcall back. In a call that blocks, the upcall
    /// comes when the call has ended. `WrongState` for a VM. Right: `READ`.
    ///
    /// Without this call, a task with threads of its own could not preempt the one that runs.
    EventUpcall = 0x0203,
    /// Timer: the time since boot in nanoseconds, result x1. Right: `READ`.
    ///
    /// Without this call, a task, which has no clock register, would have no time.
    TimerNow = 0x0300,
    /// Timer: block until x2 nanoseconds since boot. Right: `READ`.
    ///
    /// Without this call, a task, which has no timer, could not be periodic.
    TimerSleep = 0x0301,
    /// Console: write up to 32 bytes; x2 = length, x3..x6 = the bytes, little-endian. Result x1: bytes taken.
    /// Right: `WRITE`.
    ///
    /// Without this call, a task without a UART could not print.
    ConsoleWrite = 0x0400,
    /// Console: read up to 24 bytes; result x1 = length, x2..x4 = the bytes, little-endian. Right: `READ`.
    ///
    /// Without this call, a task without a UART could not be typed to.
    ConsoleRead = 0x0401,
    /// Own capability space: copy the capability x1 with the rights x2 (a subset). Result x1: the new index.
    ///
    /// Without this call, a program could not give away less than all that it has.
    CapabilityDerive = 0x0500,
    /// Partition (x1, right `GRANT`): derive the capability x2 with rights x3 into that partition's
    /// space. Result x1: the index there.
    ///
    /// Without this call, a supervisor could not hand on an authority that the manifest left to its
    /// judgement.
    CapabilityGrant = 0x0501,
    /// Own capability space: destroy everything derived from the capability x1, not itself.
    ///
    /// Without this call, what was handed on could never be taken back, while its giver keeps it.
    CapabilityRevoke = 0x0502,
    /// Own capability space: destroy the capability x1 and everything derived from it.
    ///
    /// Without this call, a full capability space could never have room again.
    CapabilityDelete = 0x0503,
    /// Own capability space: kind and rights of the capability x1. Result x1: `kind << 32 | rights`.
    ///
    /// Without this call, a program could not tell what a capability that it was granted allows.
    CapabilityInspect = 0x0504,
    /// Own capability space: find the capability that the manifest gives the name in x2..x5 (32 bytes,
    /// little-endian, padded with NUL). Result x1: its index; x2: `kind << 32 | rights` as of now.
    /// `NoCapability` if there is no such name, or if its slot no longer has the capability.
    ///
    /// Without this call, each program would have the index of a capability compiled in, and the manifest
    /// could not order capabilities anew.
    CapabilityFind = 0x0505,
    /// Schedule: result x1 = number of the schedule in force, x2 = of the one that the next frame follows
    /// (the same if no change is pending), x3 = when the one in force began, in nanoseconds since boot.
    /// Right: `READ`.
    ///
    /// Without this call, a program of a mode could not tell whether its mode has begun (ARINC 653, part 1,
    /// GET_MODULE_SCHEDULE_STATUS).
    ScheduleStatus = 0x0600,
    /// Schedule: from the end of the frame in force on, the schedule with number x2. A later call before that
    /// takes the place of an earlier one. Right: `CONTROL`.
    ///
    /// Without this call, a system could not change its mode (ARINC 653, part 1, SET_MODULE_SCHEDULE).
    ScheduleChange = 0x0601,
    /// Port: send the message of x3 bytes at x2. x4 = a capability of the caller that goes with the message:
    /// its index in bits 15:0 (0 = none), the rights for the receiver in bits 23:16; that asks for the right
    /// `GRANT` on the port. Never blocks: if no receiver waits and the port is full, the answer is `NoSpace`.
    /// With [`SEND_REPLACES`] in x4 a full port drops its oldest message first, if that is a plain one of the
    /// caller's own partition. Right: `WRITE`.
    ///
    /// Without this call, a program that must not wait could send nothing.
    PortSend = 0x0700,
    /// Port: block until a message comes, or until x4 (nanoseconds since boot, 0 = for ever); it is stored at
    /// x2. x3 = bytes there, at least the port's message size. Result x1: bytes of the message; x2: number of
    /// the sender plus one if the port identifies senders, else 0; x3: index of the capability to reply by,
    /// of 32 bits, 0 = the sender waits for no reply; x4: index of the capability that came with it, 0 =
    /// none. Right: `READ`.
    ///
    /// Without this call, a server would have to poll.
    PortReceive = 0x0701,
    /// Port: like `PortReceive`, but never blocks. Without a message the answer is `TimedOut`. Right: `READ`.
    ///
    /// Without this call, a periodic server could not look for messages without the risk to lose its release.
    PortTryReceive = 0x0702,
    /// Port: send the message of x3 bytes at x2, and block until the reply comes, or until x6 (nanoseconds
    /// since boot, 0 = for ever). The reply is stored at x4. x5 = bytes there. Results as `PortReceive`.
    /// Answer `DonationCycle` if the receiver waits for the caller, through calls and locks on any pCPUs.
    /// Right: `WRITE`.
    ///
    /// Without this call, a client would pay two entries for each request, and a server could answer before
    /// the client waits.
    PortSendReceive = 0x0703,
    /// Port: like `PortSendReceive`. Until the reply comes, the receiver runs in the caller's place: at its
    /// priority, on its budget. That needs both on one pCPU. Right: `WRITE`.
    ///
    /// Without this call, an important client would wait at the priority of its server.
    PortSendReceiveDonate = 0x0704,
    /// Port: send the x4 bytes at x2 as the reply by the capability x5, as `PortReply` does, unless x5 is 0;
    /// then receive as `PortReceive` does, into the x3 bytes at x2, with the deadline x6. The place that the
    /// client lends goes back, and the receiver waits, in one step. Right: `READ`.
    ///
    /// Without this call, a server would pay two entries for each request, and lose the donated place between
    /// them.
    PortReceiveDonate = 0x0705,
    /// Go on to wait for the reply of the call that an interrupt ended, until x2 (nanoseconds since boot, 0 =
    /// for ever). Results as `PortReceive`. `WrongState` if no call is open, `DonationCycle` if the receiver
    /// has come to wait for the caller: the call stays open. Needs no capability.
    ///
    /// Without this call, an interrupt of a VM would end its call for good, and the reply would be lost.
    PortResume = 0x0706,
    /// Reply capability: send the reply of x3 bytes at x2, with a capability as `PortSend` says in x4. The
    /// reply capability is then gone, and its index free. `NoSpace` if the caller has less room: the call
    /// ends with `NoSpace` for both. Right: `WRITE`.
    ///
    /// Without this call, a server could not answer one client while it goes on with another.
    PortReply = 0x0800,
    /// Lock: block until the caller owns the lock, or until x2 (nanoseconds since boot, 0 = for ever). Until
    /// then the owner runs in the caller's place, if both are on one pCPU. Result x1: 1 if the last owner
    /// ended without a release, so that what the lock guards may be half-done, else 0. Answer `WrongState` if
    /// the caller owns the lock already, `DonationCycle` if the owner waits for the caller. Right: `WRITE`.
    ///
    /// Without this call, partitions that share memory could exclude each other only by spinning, without
    /// priority inheritance.
    LockTake = 0x0900,
    /// Lock: like `LockTake`, but never blocks. If another vCPU owns the lock, the answer is `TimedOut`.
    /// Right: `WRITE`.
    ///
    /// Without this call, a program that must not wait could not use a lock.
    LockTryTake = 0x0901,
    /// Lock: give it to the most important vCPU that waits. If no vCPU waits, the lock is free. `WrongState`
    /// if the caller does not own the lock. Right: `WRITE`.
    ///
    /// Without this call, a lock could have one owner only.
    LockRelease = 0x0902,
    /// Device: map its registers at the window that the manifest gives the caller. Loads are allowed, and
    /// stores if the capability and the window allow them. Results as `ChannelPlace`; bit 16 of x3 is about
    /// this hold. The hold ends when the capability goes. `WrongState` if the caller has no window for the
    /// device, or holds it. Right: `READ`.
    ///
    /// Without this call, two drivers could not take turns at one device.
    DeviceHold = 0x0A00,
    /// Device: end the hold, and unmap the registers. Results as `ChannelPlace`. `WrongState` if nothing is
    /// held. Right: `READ`.
    ///
    /// Without this call, a driver could not give a device back before its partition ends.
    DeviceRelease = 0x0A01,
    /// Interrupt: from now on each interrupt of the line is a message at the port that the capability x2
    /// names, which needs the right `READ`. The message is 8 bytes, the index x1 as a number. A receiver
    /// finds [`LINE_SENDER`] where the number of the sender would be. The line is masked from the interrupt
    /// until `InterruptDone`. One message of the port's depth is kept for the line. `WrongState` if the line
    /// is bound already, `NoSpace` if the port has no room to keep, `InvalidArgument` if its messages are
    /// shorter than 8 bytes. Right: `READ`.
    ///
    /// Without this call, a task could not wait for a device.
    InterruptBind = 0x0B00,
    /// Interrupt: the message was received, and the device served: the line may interrupt again.
    /// `WrongState` if the caller has not bound the line by this capability, or no message was received since
    /// the last call. Right: `READ`.
    ///
    /// Without this call, a level-sensitive line would interrupt again before its driver has served the
    /// device.
    InterruptDone = 0x0B01,
    /// Interrupt: the line interrupts no more. A message that waits in the port is gone. `WrongState` if the
    /// caller has not bound the line by this capability. Right: `READ`.
    ///
    /// Without this call, a driver that gives its device back would go on to receive interrupts of the next
    /// driver.
    InterruptUnbind = 0x0B02,
    /// Secret: the secret of the caller. Result x1 to x4: its 32 bytes, little-endian. The capability is then
    /// gone until the partition starts anew. Right: `READ`.
    ///
    /// Without this call, a partition would need a secret in its image, which is the same on each board and
    /// which everybody can read who has the image.
    SecretTake = 0x0C00,
    /// Channel: where the caller sees it. Result x1: the guest address; x2: its bytes; x3: the caller's side
    /// in bits 7:0, the number of sides in bits 15:8, bit 16 set if the caller may write the memory.
    /// `WrongState` if the caller is no side of it. Right: `READ`.
    ///
    /// Without this call, a program would have the address of the memory compiled in.
    ChannelPlace = 0x0D00,
    /// Channel: ring at the sides in the bitmap x2, at all if it is 0, and never at the caller's own. Each
    /// gets the interrupt or the event that the manifest gives it. Right: `WRITE`.
    ///
    /// Without this call, the other sides would have to poll the memory.
    ChannelDoorbell = 0x0D01,
    /// Channel: map the memory of the caller's side, which the manifest says is mapped only while it is held.
    /// Loads are allowed, and stores if the capability and the side allow them. Results as `ChannelPlace`;
    /// bit 16 of x3 is about this hold. The hold ends when the capability goes. `WrongState` if the caller
    /// has no such side, or holds it. Right: `READ`.
    ///
    /// Without this call, two partitions could not take turns at one side of a channel.
    ChannelHold = 0x0D02,
    /// Channel: end the hold of the caller's side, and unmap the memory. Results as `ChannelPlace`.
    /// `WrongState` if nothing is held. Right: `READ`.
    ///
    /// Without this call, a holder could not give the memory back before its partition ends.
    ChannelRelease = 0x0D03,
    /// Service: take the access of a client that waits for an answer, of the most important client first.
    /// Result x1: the number of the access; x2: the window in bits 7:0, the bytes in bits 15:8, bit 16 set
    /// for a store; x3: the offset in the window; x4: what is stored. `TimedOut` if no client waits. Right:
    /// `READ`.
    ///
    /// Without this call, a device model in a task would not see what its client accesses.
    ServiceTake = 0x0E00,
    /// Service: answer the access with the number x2; x3 = what a load reads. `WrongState` if no client waits
    /// for the answer any more. Right: `WRITE`.
    ///
    /// Without this call, the client of a device model would wait for ever.
    ServiceAnswer = 0x0E01,
    /// Service: the windows with news, which are taken. Result x1: windows whose clients have notified them;
    /// x2: windows whose clients, or whose server, have started anew, and whose memory can be reached again;
    /// x3: the windows of x2 whose clients have started anew. All are bitmaps. Right: `READ`.
    ///
    /// Without this call, a device model with many clients would look at each after every event.
    ServiceNews = 0x0E02,
    /// Service: add the causes x3 of the interrupt of the window x2, and take the causes x4 away. The line of
    /// the client is high while there is a cause. `WrongState` as `ServiceRead`. Right: `WRITE`.
    ///
    /// Without this call, a device model could not interrupt its client.
    ServiceInterrupt = 0x0E03,
    /// Service: copy x4 bytes, at most 1024, from the memory of the client of window x2 at x3 into the
    /// caller's own at x5. `WrongState` if the client has started anew and `ServiceNews` has not said so yet,
    /// or if it is not running. `OutOfReach` if the window grants no such memory. Right: `READ`.
    ///
    /// Without this call, a device model could not see the buffers of its client, unless it had all memory of
    /// the client.
    ServiceRead = 0x0E04,
    /// Service: copy x4 bytes from the caller's own memory at x5 into the memory of the client of window x2
    /// at x3, else as `ServiceRead`. Right: `WRITE`.
    ///
    /// Without this call, a device model could not fill the buffers of its client, unless it had all memory
    /// of the client.
    ServiceWrite = 0x0E05,
    /// Service: where a device of the caller finds memory. x2: a window, for the memory that its client
    /// grants, or 255, for the mapping of the caller's own that has the address x3. Result x1: the first
    /// address, as the owner sees it; x2: bytes, 0 if the client has started anew and `ServiceNews` has not
    /// said so yet; x3: the bus address of the first; x4: the number of times that the caller's devices were
    /// stopped or are being stopped because a client started anew, twice for a stop that is over. Only for
    /// the server itself, and only if it owns a device: else `NotSupported`. Right: `WRITE`.
    ///
    /// Without this call, a device model with a device of its own would copy each block that the device reads
    /// or writes.
    ServiceReach = 0x0E06,
    /// Service: keep the words x4, x5 and x6 beside the window x2, as those from word x3 on, a multiple of 3
    /// below 15. They outlive the server, and are 0 again when the client starts anew. `WrongState` as
    /// `ServiceRead`. Right: `WRITE`.
    ///
    /// Without this call, a device model that starts anew would lose its place in its clients' rings.
    ServiceKeep = 0x0E07,
    /// Service: the three words that were kept beside the window x2 from word x3 on. Result x1 to x3: the
    /// words. The group of its fellows is full. Right: `READ`.
    ///
    /// Without this call, a device model that starts anew could not go on where the one before it stopped.
    ServiceKept = 0x0F00,
}

/// Returns these operations in the order of their numbers.
const fn in_order<const N: usize>(mut all: [Operation; N]) -> [Operation; N] {
    let mut end = 1;
    while end < N {
        let mut at = end;
        while at > 0 && all[at - 1] as u16 > all[at] as u16 {
            (all[at - 1], all[at]) = (all[at], all[at - 1]);
            at -= 1;
        }
        end += 1;
    }
    all
}

/// Makes [`Group`], and a type for the operations of each group. So the code of a part meets no operation of
/// another part.
macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident: $operations:ident of $part:expr, { $($operation:ident),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            #[repr(u16)]
            pub enum $operations {
                $(
                    #[doc = concat!("The operation [`Operation::", stringify!($operation), "`].")]
                    $operation = Operation::$operation as u16,
                )*
            }
        )*

        /// An operation, as one of its group: the core, or a part of the kernel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Group {
            $($(#[$doc])* $group($operations),)*
        }

        impl Operation {
            /// All operations, in numeric order.
            pub const ALL: &'static [Self] = &in_order([$($(Self::$operation,)*)*]);

            /// Returns the part of the kernel that the operation belongs to, `None` for the core.
            #[must_use]
            pub const fn part(self) -> Option<Part> {
                match self.group() {
                    $(Group::$group(_) => $part,)*
                }
            }

            /// Returns the operation as one of its group.
            #[inline]
            #[must_use]
            pub const fn group(self) -> Group {
                match self {
                    $($(Self::$operation => Group::$group($operations::$operation),)*)*
                }
            }
        }
    };
}

groups! {
    /// The operations of the core.
    Core: CoreOperation of None, {
        Null, Version, PartitionStatus, PartitionStart, PartitionStop, PartitionRestart, PartitionKick,
        EventWait, EventPoll, EventSignal, TimerNow, TimerSleep, ConsoleWrite, ConsoleRead, CapabilityDerive,
        CapabilityGrant, CapabilityRevoke, CapabilityDelete, CapabilityInspect, CapabilityFind, ScheduleStatus,
        ScheduleChange,
    }
    /// The operation about upcalls.
    Upcall: UpcallOperation of Some(Part::Upcalls), { EventUpcall }
    /// The operations about ports and replies.
    Port: PortOperation of Some(Part::Ports), {
        PortSend, PortReceive, PortTryReceive, PortSendReceive, PortSendReceiveDonate, PortReceiveDonate,
        PortResume, PortReply,
    }
    /// The operations about locks.
    Lock: LockOperation of Some(Part::Locks), { LockTake, LockTryTake, LockRelease }
    /// The operations about channels.
    Channel: ChannelOperation of Some(Part::Channels), { ChannelPlace, ChannelDoorbell }
    /// The operations about what a partition has only while it holds it.
    Lent: LentOperation of Some(Part::Lent), {
        DeviceHold, DeviceRelease, ChannelHold, ChannelRelease, InterruptBind, InterruptDone, InterruptUnbind,
    }
    /// The operations of servers.
    Service: ServiceOperation of Some(Part::Services), {
        ServiceTake, ServiceAnswer, ServiceNews, ServiceInterrupt, ServiceRead, ServiceWrite, ServiceReach,
        ServiceKeep, ServiceKept,
    }
    /// The operations about secrets.
    Secret: SecretOperation of Some(Part::Secrets), { SecretTake, PartitionMeasure }
}

impl Operation {
    /// Returns the operation with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<Self> {
        let (group, place) = (number as usize >> 8, number as usize & 0xFF);
        if group < GROUPS && place < GROUP_SIZE {
            BY_NUMBER[group * GROUP_SIZE + place]
        } else {
            None
        }
    }

    /// Returns the number of its results. Registers of further results keep their value on class `armv7m`.
    #[must_use]
    pub const fn results(self) -> usize {
        match self {
            Self::Null
            | Self::PartitionStart
            | Self::PartitionStop
            | Self::PartitionRestart
            | Self::PartitionKick
            | Self::EventSignal
            | Self::EventUpcall
            | Self::TimerSleep
            | Self::CapabilityRevoke
            | Self::CapabilityDelete
            | Self::ScheduleChange
            | Self::PortSend
            | Self::PortReply
            | Self::LockRelease
            | Self::InterruptBind
            | Self::InterruptDone
            | Self::InterruptUnbind
            | Self::ChannelDoorbell
            | Self::ServiceAnswer
            | Self::ServiceInterrupt
            | Self::ServiceRead
            | Self::ServiceWrite
            | Self::ServiceKeep => 0,
            Self::Version
            | Self::EventWait
            | Self::EventPoll
            | Self::TimerNow
            | Self::ConsoleWrite
            | Self::CapabilityDerive
            | Self::CapabilityGrant
            | Self::CapabilityInspect
            | Self::LockTake
            | Self::LockTryTake => 1,
            Self::PartitionStatus | Self::CapabilityFind | Self::ServiceNews => 2,
            Self::ScheduleStatus
            | Self::DeviceHold
            | Self::DeviceRelease
            | Self::ChannelPlace
            | Self::ChannelHold
            | Self::ChannelRelease
            | Self::ServiceKept => 3,
            Self::ConsoleRead
            | Self::PortReceive
            | Self::PortTryReceive
            | Self::PortSendReceive
            | Self::PortSendReceiveDonate
            | Self::PortReceiveDonate
            | Self::PortResume
            | Self::PartitionMeasure
            | Self::SecretTake
            | Self::ServiceTake
            | Self::ServiceReach => 4,
        }
    }
}

/// A kind of object that a capability can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// A partition, the holder's own or another.
    Partition = 1,
    /// An event gate: 64 events that a partition waits for.
    EventGate = 2,
    /// The system clock and the right to sleep on it.
    Timer = 3,
    /// A console.
    Console = 4,
    /// The schedules of a pCPU (there is no kind 5: the operations on capability spaces have its numbers).
    Schedule = 6,
    /// A port: messages from those who may send to those who may receive.
    Port = 7,
    /// The right to answer one call, once.
    Reply = 8,
    /// A lock: at most one vCPU owns it.
    Lock = 9,
    /// The registers of a device of the board, which can be lent.
    Device = 10,
    /// The interrupt line of such a device.
    Interrupt = 11,
    /// The secret of its holder, which can be taken once.
    Secret = 12,
    /// A channel: memory that its sides share, and a doorbell.
    Channel = 13,
    /// The accesses of clients to the windows that a partition serves.
    Service = 14,
}

/// Groups of operations: the upper byte of a number.
const GROUPS: usize = 16;
/// Operations of a group at most: the lower byte of a number.
const GROUP_SIZE: usize = 8;
/// The operations by number, so that each costs the same.
const BY_NUMBER: [Option<Operation>; GROUPS * GROUP_SIZE] = {
    let mut table = [None; GROUPS * GROUP_SIZE];
    let mut i = 0;
    while i < Operation::ALL.len() {
        let number = Operation::ALL[i] as usize;
        assert!(
            number & 0xFF < GROUP_SIZE,
            "the place would be another operation's"
        );
        table[(number >> 8) * GROUP_SIZE + (number & 0xFF)] = Some(Operation::ALL[i]);
        i += 1;
    }
    table
};

impl ObjectKind {
    /// Returns the kind with this number, if there is one.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Partition),
            2 => Some(Self::EventGate),
            3 => Some(Self::Timer),
            4 => Some(Self::Console),
            6 => Some(Self::Schedule),
            7 => Some(Self::Port),
            8 => Some(Self::Reply),
            9 => Some(Self::Lock),
            10 => Some(Self::Device),
            11 => Some(Self::Interrupt),
            12 => Some(Self::Secret),
            13 => Some(Self::Channel),
            14 => Some(Self::Service),
            _ => None,
        }
    }
}

/// Rights that a capability gives to its holder: a set of the bits below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Rights(pub u8);

impl Rights {
    /// No right.
    pub const NONE: Self = Self(0);
    /// Look: status, wait, read, receive.
    pub const READ: Self = Self(1);
    /// Write, signal or send.
    pub const WRITE: Self = Self(2);
    /// Start, stop, restart, kick; change the schedule.
    pub const CONTROL: Self = Self(4);
    /// Put capabilities into the partition's space, or send them through the port.
    pub const GRANT: Self = Self(8);
    /// Every right.
    pub const ALL: Self = Self(15);

    /// Tells whether every right of `needed` is in `self`.
    #[must_use]
    pub const fn contains(self, needed: Self) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// Returns the rights in both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the rights in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Why a hypercall was refused; in x0 as a negative number.
///
/// -1 is SMCCC's own "not supported", which is also the answer to a number that is no operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i64)]
pub enum Error {
    /// No such operation.
    NotSupported = -1,
    /// The capability index is outside the space or its slot is empty.
    NoCapability = -2,
    /// The capability names an object of another kind.
    WrongKind = -3,
    /// The capability lacks a right the operation needs.
    NoRight = -4,
    /// An argument is out of range.
    InvalidArgument = -5,
    /// A table of fixed size is full.
    NoSpace = -6,
    /// The object is not in a state in which the operation makes sense.
    WrongState = -7,
    /// The time given with the call has passed.
    TimedOut = -8,
    /// An interrupt waits for the caller, so a blocking call has ended before its time. The caller takes the
    /// interrupt and calls again. Only a VM gets this.
    Interrupted = -9,
    /// The capability was taken back. The index is free from now on, and may name something else.
    Revoked = -10,
    /// The one that would run in the caller's place waits for the caller.
    DonationCycle = -11,
    /// The range is not memory that the client has granted.
    OutOfReach = -12,
}

impl Error {
    /// All errors.
    pub const ALL: &'static [Self] = &[
        Self::NotSupported,
        Self::NoCapability,
        Self::WrongKind,
        Self::NoRight,
        Self::InvalidArgument,
        Self::NoSpace,
        Self::WrongState,
        Self::TimedOut,
        Self::Interrupted,
        Self::Revoked,
        Self::DonationCycle,
        Self::OutOfReach,
    ];

    /// Returns the error with this code, if there is one.
    #[must_use]
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.iter().copied().find(|error| *error as i64 == code)
    }

    /// Names of errors in logs and reports, from -1 on, each with a line feed after it.
    pub const NAMES: &'static str = "not-supported\nno-capability\nwrong-kind\nno-right\ninvalid-argument\n\
        no-space\nwrong-state\ntimed-out\ninterrupted\nrevoked\ndonation-cycle\nout-of-reach\n";
}

/// The least time, in nanoseconds, between two stops that a pCPU carries out because partitions on other
/// pCPUs order them. A stop or a restart that comes earlier waits for that time; the partition is
/// `Stopping` meanwhile.
pub const ORDER_SPACE_NS: u64 = 1_000_000;
/// ABI revision: `major << 16 | minor`. A new minor adds operations, a new major changes some.
pub const ABI_VERSION: u32 = 1 << 16 | 7;
/// Indices a partition's capability space can hold in this build.
pub const CAPABILITY_SLOTS: usize = capability_slots(TABLES);
/// Indices a partition's capability space can hold under a class binary with tables of this size.
#[must_use]
pub const fn capability_slots(tables: Tables) -> usize {
    tables.limit(16, 64)
}
/// Bytes that the longest message of a port can have.
pub const MAX_MESSAGE: usize = 1024;
/// Bytes of a client's memory that a server can copy at a time.
pub const MAX_COPY: usize = 1024;
/// The number instead of a window in [`Operation::ServiceReach`] for the caller's own memory.
pub const OWN_MEMORY: u8 = 255;
/// Words that a server can keep beside a window.
pub const KEPT_WORDS: usize = 15;
/// Words of one [`Operation::ServiceKeep`].
pub const KEPT_GROUP: usize = 3;
/// Returns the groups of words that have to be kept again where `known` is kept and `wanted` is to be: the
/// first word of each, and its words.
pub fn groups_to_keep(
    known: &[u64; KEPT_WORDS],
    wanted: &[u64; KEPT_WORDS],
) -> impl Iterator<Item = (usize, [u64; KEPT_GROUP])> {
    let (known, _) = known.as_chunks::<KEPT_GROUP>();
    let (wanted, _) = wanted.as_chunks::<KEPT_GROUP>();
    let groups = known.iter().zip(wanted).zip((0..).step_by(KEPT_GROUP));
    groups.filter_map(|((known, wanted), first)| (known != wanted).then_some((first, *wanted)))
}
/// The event at the gate of a task when a device of the task interrupts.
pub const DEVICE_EVENT: u32 = 59;
/// The bit of x4 of `PortSend` that lets the message take the place of the oldest one of the same sender.
pub const SEND_REPLACES: u64 = 1 << 24;

/// The value that a receiver finds in place of the sender's number if the message is an interrupt of a line
/// that is bound to the port. No partition has this number.
pub const LINE_SENDER: u64 = 1 << 16;
/// Multiple of which the address of a message is.
pub const MESSAGE_ALIGN: u64 = 8;
/// Words, of 64 bits each and in the byte order of the CPU, that say where a task was when its upcall came:
/// the address of the next instruction, the processor's state, and the first ten registers of a call. Class
/// `aarch64`: x0 to x9. Classes `armv7m` and `armv8m`: r0 to r9. Class `ppc405`: r3 to r11 and r0, and the
/// state is CR. Class `x86_64`: rdi, rsi, rdx, rcx, r8, r9, rax, r10, r11 and a zero, and the state is
/// RFLAGS. All other registers keep their values on the way into an upcall and out of it.
pub const UPCALL_WORDS: usize = 12;
/// Index at which every partition finds the capability for itself.
pub const SELF_CAPABILITY: u32 = 0;
/// Name of the capability for the partition itself. No other capability has it.
pub const SELF_NAME: &str = "self";
/// Bytes of the name of a capability at most.
pub const CAPABILITY_NAME: usize = 32;
