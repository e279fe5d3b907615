// SPDX-License-Identifier: Apache-2.0
//! The state that the pCPUs share: one value, a `static` of the class binary.
//!
//! Everything in this value is either constant after boot, an atomic, or guarded by a short lock of its own.
//! There is no lock over all of it. The order of locks, where two are held: a virtual UART or network
//! interface comes before the backend's own lock. A flash comes before no other lock. A port comes before a
//! seat, and a seat before the capability spaces ([`crate::port`]). A lock of partitions comes before a seat.
//! A server comes before an access ([`crate::service`]). A window of a server, and the holds, come before the
//! backend's own lock.
//! No other pair is ever held together.

use crate::cap::Spaces;
use crate::event::Gate;
use crate::flash::{FLASHES, Flash};
use crate::function::MAX_FUNCTIONS;
use crate::health::Record;
use crate::lent::hold::Holds;
use crate::lent::line::Lines;
use crate::lock::{self, Lock, PerLock};
use crate::mailbox::{Mailbox, bit};
use crate::network::{NIC_ENTRIES, Nic, PerNic};
use crate::partition::Control;
use crate::parts::HAS_SEATS;
use crate::port::{self, Messages, PerPort, Port, Seat};
use crate::record::Recorder;
use crate::secret::{self, Secrets};
use crate::service::Services;
use crate::system::System;
use crate::table::{PerPartition, PerPcpu, Table};
use crate::terminal::{Reader, Terminal};
use crate::time::Timebase;
use bulkhead_abi::PartitionState;
use bulkhead_abi::atomic::AtomicU64;
use bulkhead_abi::status::StatusWord;
use bulkhead_arch_api::{MAX_PARTITIONS, MAX_PCPUS, MAX_VCPUS, PartitionId, Ticks, VcpuId};
use bulkhead_devices::ivshmem::Function;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use spin::RelaxStrategy;
use spin::mutex::TicketMutex;
use spin::once::Once;

/// The state of one partition that several pCPUs touch.
#[derive(Debug)]
pub struct Partition<R> {
    control: TicketMutex<Control, R>,
    /// A copy of the control block's state, for readers without the lock. The copy is written under the lock.
    state: AtomicU8,
    /// The time at which the partition's watchdog period began.
    kicked: AtomicU64,
    /// The event gate of the partition.
    pub gate: Gate,
    /// The health of the partition.
    pub health: Record,
    /// The virtual UART of the partition, or the console input that the partition has not read yet.
    pub reader: TicketMutex<Reader, R>,
}

impl<R: RelaxStrategy> Partition<R> {
    const fn new() -> Self {
        Self {
            control: TicketMutex::new(Control::new()),
            state: AtomicU8::new(PartitionState::Stopped as u8),
            kicked: AtomicU64::new(0),
            gate: Gate::new(),
            health: Record::new(),
            reader: TicketMutex::new(Reader::new()),
        }
    }

    /// Changes the control block. `change` is short and takes no other lock.
    pub fn control<T>(&self, change: impl FnOnce(&mut Control) -> T) -> T {
        let mut control = self.control.lock();
        let result = change(&mut control);
        self.state.store(control.state() as u8, Ordering::SeqCst);
        result
    }

    /// Looks at the control block, or changes something in it that no reader without the lock sees. The
    /// action must not change the state. The action is short and takes no other lock, as for
    /// [`Partition::control`].
    #[inline]
    pub fn with_control<T>(&self, action: impl FnOnce(&mut Control) -> T) -> T {
        action(&mut self.control.lock())
    }

    /// Returns the life cycle state.
    pub fn state(&self) -> PartitionState {
        PartitionState::from_number(self.state.load(Ordering::SeqCst)).unwrap_or(PartitionState::Stopped)
    }

    /// Returns the status that a holder of a read capability sees.
    pub fn status(&self) -> StatusWord {
        StatusWord {
            state: self.state(),
            last_event: self.health.last(),
            restarts: u16::try_from(self.health.restarts()).unwrap_or(u16::MAX),
            events: self.health.events(),
        }
    }

    /// Returns the results of `PartitionStatus`.
    pub fn words(&self) -> [u64; 4] {
        let start = self.with_control(|control| control.start());
        [self.status().encode(), start.encode(), 0, 0]
    }

    /// Starts a new watchdog period. The home pCPU notices this when the old period would have ended.
    pub fn kick(&self, now: Ticks) {
        self.kicked.store(now.0, Ordering::Relaxed);
    }

    /// Returns the time at which the watchdog period began.
    pub fn kicked(&self) -> Ticks {
        Ticks(self.kicked.load(Ordering::Relaxed))
    }
}

/// Entries of the table of seats. A class without ports needs none.
const SEATS: usize = if HAS_SEATS { MAX_VCPUS } else { 1 };

/// A flash per partition.
type Flashes<R> = Table<PartitionId, TicketMutex<Flash, R>, FLASHES>;

/// A seat per vCPU.
type Seats<R> = Table<VcpuId, TicketMutex<Seat, R>, SEATS>;

/// The schedule that a pCPU is in, and the schedule that it is asked to change to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScheduleState {
    /// The schedule in force.
    pub current: u8,
    /// The time at which that schedule began.
    pub since: Ticks,
    /// The schedule asked for last, until that schedule is in force.
    pub wanted: Option<u8>,
}

impl ScheduleState {
    const FIRST: Self = Self {
        current: 0,
        since: Ticks(0),
        wanted: None,
    };
}

/// The shared state of the hypervisor.
#[derive(Debug)]
pub struct Shared<'i, R> {
    pub(crate) time: Once<Timebase, R>,
    pub(crate) system: Once<System<'i>, R>,
    pub(crate) mailboxes: PerPcpu<Mailbox>,
    /// The schedule that each pCPU is in.
    pub(crate) schedules: PerPcpu<TicketMutex<ScheduleState, R>>,
    pub(crate) partitions: PerPartition<Partition<R>>,
    pub(crate) capabilities: Spaces<R>,
    pub(crate) terminal: Terminal<'i, R>,
    pub(crate) recorder: Recorder<R>,
    /// The ports.
    pub(crate) ports: PerPort<Port<R>>,
    /// The locks.
    pub(crate) locks: PerLock<Lock<R>>,
    /// The messages that wait in ports.
    pub(crate) messages: Messages,
    /// The waits of vCPUs at ports.
    pub(crate) seats: Seats<R>,
    /// Windows that are mapped while they are held.
    pub(crate) holds: Holds<R>,
    pub(crate) lines: Lines<R>,
    /// The virtual flashes.
    pub(crate) flashes: Flashes<R>,
    /// Windows that partitions answer.
    pub(crate) services: Services<R>,
    /// Interfaces to networks.
    pub(crate) nics: PerNic<TicketMutex<Nic, R>>,
    /// Secrets of partitions.
    pub(crate) secrets: Secrets,
    /// PCI functions.
    pub(crate) functions: [TicketMutex<Function, R>; MAX_FUNCTIONS],
    /// The partitions whose virtual UART has no room for output, as a bitmap.
    starved: AtomicU32,
    /// True if a pCPU is ending the system.
    ending: AtomicBool,
}

impl<R: RelaxStrategy> Default for Shared<'_, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: RelaxStrategy> Shared<'_, R> {
    /// Makes the state before boot.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            time: Once::new(),
            system: Once::new(),
            mailboxes: Table::new([const { Mailbox::new() }; MAX_PCPUS]),
            schedules: Table::new([const { TicketMutex::new(ScheduleState::FIRST) }; MAX_PCPUS]),
            partitions: Table::new([const { Partition::new() }; MAX_PARTITIONS]),
            capabilities: Spaces::new(),
            terminal: Terminal::new(),
            recorder: Recorder::new(),
            ports: Table::new([const { port::port() }; port::PORT_ENTRIES]),
            locks: Table::new([const { lock::lock() }; lock::LOCK_ENTRIES]),
            messages: Messages::new(),
            seats: Table::new([const { TicketMutex::new(Seat::new()) }; SEATS]),
            holds: Holds::new(),
            lines: Lines::new(),
            flashes: Table::new([const { TicketMutex::new(Flash::new()) }; FLASHES]),
            services: Services::new(),
            nics: Table::new([const { TicketMutex::new(Nic::NOTHING) }; NIC_ENTRIES]),
            secrets: secret::none(),
            functions: [const { TicketMutex::new(Function::new()) }; MAX_FUNCTIONS],
            starved: AtomicU32::new(0),
            ending: AtomicBool::new(false),
        }
    }

    /// Returns the state of a partition.
    pub fn partition(&self, partition: PartitionId) -> &Partition<R> {
        self.partitions.of(partition)
    }

    /// Marks a partition whose virtual UART must be told when there is room again.
    pub(crate) fn mark_starved(&self, partition: PartitionId) {
        self.starved.fetch_or(bit(partition.0), Ordering::Relaxed);
    }

    /// Returns the partitions marked since the last call, as a bitmap.
    pub(crate) fn take_starved(&self) -> u32 {
        if self.starved.load(Ordering::Relaxed) == 0 {
            0
        } else {
            self.starved.swap(0, Ordering::Relaxed)
        }
    }

    /// Tells whether the caller is the first to end the system.
    pub(crate) fn claim_end(&self) -> bool {
        !self.ending.swap(true, Ordering::SeqCst)
    }
}
