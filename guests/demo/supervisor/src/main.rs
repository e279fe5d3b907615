// SPDX-License-Identifier: Apache-2.0
//! A task that watches partitions and prints every change of their state.
//!
//! Everything it does comes from its startup page. It watches each partition for which it has a readable
//! capability, and sleeps at its event gate until the hypervisor says that one of them changed.
//!
//! - With a `timer` capability it also wakes up every 50 ms.
//! - With a partition capability named `watchdog` (for itself) it kicks its own watchdog whenever it wakes
//!   up.
//! - If it has the right `control` on a partition, it starts that partition again when the partition has
//!   failed.
//! - Without an event gate but with a timer it looks at all partitions whenever it wakes up.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::status::{StatusWord, state_change_event};
use bulkhead_guest::abi::{Error, HealthClass, ObjectKind, PartitionState, Rights};
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::{Capability, StartupPage};

bulkhead_guest::task_main!(main);

/// Most partitions it watches: one per event.
const MAX_WATCHED: usize = 64;
/// The longest sleep if it has a timer, in nanoseconds.
const ROUND: u64 = 50_000_000;
/// Name of the capability that makes it kick its own watchdog.
const WATCHDOG: &str = "watchdog";

/// A partition it watches.
#[derive(Clone, Copy)]
struct Watched {
    name: &'static str,
    handle: Handle,
    event: u64,
    last: Option<StatusWord>,
    controlled: bool,
}

impl Watched {
    fn new(capability: &Capability<'static>) -> Self {
        Self {
            name: capability.name,
            handle: Handle(capability.index),
            event: state_change_event(capability.object as u8),
            last: None,
            controlled: capability.rights.contains(Rights::CONTROL),
        }
    }

    /// Asks for the partition's state, and prints it if it is not the one printed last.
    fn look(&mut self) {
        match hypercall::partition_status(self.handle) {
            Ok(status) if self.last == Some(status) => {}
            Ok(status) => {
                self.last = Some(status);
                print_status(self.name, status);
                if self.controlled && status.state == PartitionState::Failed {
                    self.start();
                }
            }
            Err(error) => println!("supervisor: {} cannot be read: {error:?}", self.name),
        }
    }

    fn start(&self) {
        match hypercall::partition_start(self.handle) {
            Ok(()) => println!("supervisor: {} starts again", self.name),
            Err(error) => println!("supervisor: {} cannot be started: {error:?}", self.name),
        }
    }
}

fn print_status(name: &str, status: StatusWord) {
    let state = match status.state {
        PartitionState::Stopped => "stopped",
        PartitionState::Loading => "loading",
        PartitionState::Running => "running",
        PartitionState::Failed => "failed",
        PartitionState::Stopping => "stopping",
    };
    let reason = match status.last_event {
        None => "",
        Some(HealthClass::Memory) => " (memory)",
        Some(HealthClass::System) => " (system)",
        Some(HealthClass::Hypercall) => " (hypercall)",
        Some(HealthClass::Watchdog) => " (watchdog)",
        Some(HealthClass::Task) => " (task)",
    };
    if status.restarts == 0 {
        println!("supervisor: {name} is {state}{reason}");
    } else {
        println!(
            "supervisor: {name} is {state}{reason}, restarts {}",
            status.restarts
        );
    }
}

/// The capabilities that it sleeps on.
struct Alarm {
    gate: Option<Handle>,
    timer: Option<Handle>,
}

impl Alarm {
    fn new(page: &StartupPage<'static>) -> Self {
        let handle = |kind| page.first(kind).map(|capability| Handle(capability.index));
        Self {
            gate: handle(ObjectKind::EventGate),
            timer: handle(ObjectKind::Timer),
        }
    }

    /// Sleeps; returns the events that came (all of them if there is no gate to say which).
    fn sleep(&self) -> Result<u64, Error> {
        let deadline = match self.timer {
            Some(timer) => hypercall::timer_now(timer)? + ROUND,
            None => 0,
        };
        match (self.gate, self.timer) {
            (Some(gate), _) => match hypercall::event_wait(gate, deadline) {
                Err(Error::TimedOut) => Ok(0),
                answer => answer,
            },
            (None, Some(timer)) => hypercall::timer_sleep(timer, deadline).map(|()| u64::MAX),
            (None, None) => Err(Error::NoCapability),
        }
    }
}

fn main(page: StartupPage<'static>) {
    let mut watched = [const { None::<Watched> }; MAX_WATCHED];
    let partitions = page.capabilities().filter(|capability| {
        capability.kind == ObjectKind::Partition
            && capability.rights.contains(Rights::READ)
            && Handle(capability.index) != hypercall::SELF
            && capability.name != WATCHDOG
    });
    for (slot, capability) in watched.iter_mut().zip(partitions) {
        println!("supervisor: watching {}", capability.name);
        *slot = Some(Watched::new(&capability));
    }
    let watchdog = page.find(WATCHDOG).map(|capability| Handle(capability.index));
    let alarm = Alarm::new(&page);
    let mut events = u64::MAX;
    loop {
        for partition in watched
            .iter_mut()
            .flatten()
            .filter(|partition| partition.event & events != 0)
        {
            partition.look();
        }
        if let Some(watchdog) = watchdog {
            // A refusal shows as the expiry of the watchdog, which is the manifest's business.
            let _ = hypercall::partition_kick(watchdog);
        }
        match alarm.sleep() {
            Ok(pending) => events = pending,
            Err(error) => {
                println!("supervisor: cannot sleep: {error:?}");
                return;
            }
        }
    }
}
