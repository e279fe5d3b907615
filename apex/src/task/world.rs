// SPDX-License-Identifier: Apache-2.0
//! The hypervisor's objects, as the partition's state machines use them.

use crate::configuration::{Environment, ScheduleStatus};
use crate::limits::MAX_MESSAGE;
use crate::types::{Answer, Name, PortDirection, ReturnCode, Time};
use bulkhead_guest::abi::{ObjectKind, Rights};
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::port::{self, Message};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

/// The objects of a partition.
pub(super) struct World {
    page: Option<StartupPage<'static>>,
    schedule: Option<Handle>,
    message: Message<MAX_MESSAGE>,
}

impl World {
    pub(super) const fn new() -> Self {
        Self {
            page: None,
            schedule: None,
            message: Message::new(),
        }
    }

    /// Learns the partition's capabilities.
    pub(super) fn attach(&mut self, page: StartupPage<'static>) {
        let schedule = page.first(ObjectKind::Schedule);
        self.schedule = schedule.map(|schedule| Handle(schedule.index));
        self.page = Some(page);
    }

    /// Puts a message where the hypervisor reads it. Returns its length.
    fn fill(&mut self, message: &[u8]) -> usize {
        let length = message.len().min(MAX_MESSAGE);
        self.message.0[..length].copy_from_slice(&message[..length]);
        length
    }
}

impl Environment for World {
    fn open(&mut self, name: &Name, direction: PortDirection) -> Option<u32> {
        let capability = self.page?.find(name.text())?;
        let needed = match direction {
            PortDirection::Source => Rights::WRITE,
            PortDirection::Destination => Rights::READ,
        };
        let fits = capability.kind == ObjectKind::Port && capability.rights.contains(needed);
        fits.then_some(capability.index)
    }

    fn send(&mut self, link: u32, message: &[u8]) -> bool {
        let length = self.fill(message);
        port::send(Handle(link), &self.message, length, None).is_ok()
    }

    fn replace(&mut self, link: u32, message: &[u8]) -> bool {
        let length = self.fill(message);
        port::replace(Handle(link), &self.message, length).is_ok()
    }

    fn receive(&mut self, link: u32, buffer: &mut [u8]) -> Option<usize> {
        let received = port::try_receive(Handle(link), &mut self.message).ok()?;
        let length = received.length.min(buffer.len());
        buffer[..length].copy_from_slice(&self.message.0[..length]);
        Some(length)
    }

    fn report(&mut self, message: &[u8]) {
        println!(
            "apex: message: {}",
            core::str::from_utf8(message).unwrap_or("(no text)")
        );
    }

    fn schedules(&mut self) -> Option<ScheduleStatus> {
        let status = hypercall::schedule_status(self.schedule?).ok()?;
        Some(ScheduleStatus {
            since: status.since as Time,
            current: status.current as i64,
            next: status.next as i64,
        })
    }

    fn change_schedule(&mut self, number: u64) -> Answer {
        let schedule = self.schedule.ok_or(ReturnCode::InvalidConfig)?;
        hypercall::schedule_change(schedule, number).map_err(|_| ReturnCode::InvalidConfig)
    }
}
