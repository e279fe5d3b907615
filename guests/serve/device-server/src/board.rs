// SPDX-License-Identifier: Apache-2.0
//! The disk of the board: a virtio-mmio transport (Virtio 1.2, sections 4.2 and 5.2) that the task owns.
//!
//! **No copy.** The device gets the bus addresses of the client's own buffers. The hypervisor says where the
//! memory is that the client grants, and this file gives the device no address outside.
//!
//! **One request at a time.** So the most important client waits for at most the one request that the device
//! has in hand.
//!
//! **A client that starts anew.** The device may be writing the client's memory. So the hypervisor closes
//! the window of the client, stops the device, and counts the stop ([`Reach::stops`]). The device then holds
//! no request any more. This file sees the count, prepares the device anew, and asks again for the places of
//! memory before the device gets a request. A request of another client is done again.

use bulkhead_abi::Error;
use bulkhead_abi::hypercall::DEVICE_EVENT;
use bulkhead_devices::virtio_mmio::{
    CAUSE_CONFIGURATION, CAUSE_USED, CONFIGURATION, FEATURE_VERSION_1, INTERRUPT_ACKNOWLEDGE, QUEUE_NOTIFY,
    STATUS, STATUS_ACKNOWLEDGE, STATUS_DRIVER, STATUS_DRIVER_OK, STATUS_FEATURES_OK,
};
use bulkhead_guest::hypercall::{self, Handle};
use bulkhead_guest::service::{self, Reach};
use bulkhead_guest::startup_page::Device;
use bulkhead_guest::vm::bus;
use bulkhead_virtio::block::{Direction, Failed, SECTOR};
use bulkhead_virtio::chain::Ranges;
use bulkhead_virtio::numbers::{DEVICE_BLOCK, NEXT, WRITE};
use core::sync::atomic::{Ordering, fence};

/// Bytes of the memory that the device and this file share.
pub const SHARED: usize = 3 * 4096;
/// Descriptors of the queue: as many as the longest chain of a client has.
const SIZE: u16 = 128;
/// Places in the shared memory (section 2.7): descriptors, what is available, what is used, the header of the
/// request and its status.
const AVAILABLE: u64 = 2048;
const USED: u64 = 4096;
const HEADER: u64 = 8192;
const DONE: u64 = HEADER + HEADER_SIZE;
const HEADER_SIZE: u64 = 16;
/// Registers (section 4.2.2) that the window of a client does not name.
const MAGIC: u64 = 0x000;
const VERSION: u64 = 0x004;
const DEVICE: u64 = 0x008;
const DEVICE_FEATURES: u64 = 0x010;
const DEVICE_FEATURES_SELECT: u64 = 0x014;
const DRIVER_FEATURES: u64 = 0x020;
const DRIVER_FEATURES_SELECT: u64 = 0x024;
const QUEUE_SELECT: u64 = 0x030;
const QUEUE_SIZE_MAX: u64 = 0x034;
const QUEUE_SIZE: u64 = 0x038;
const QUEUE_READY: u64 = 0x044;
const QUEUE_DESCRIPTORS: u64 = 0x080;
const QUEUE_DRIVER: u64 = 0x090;
const QUEUE_DEVICE: u64 = 0x0A0;
/// "virt".
const MAGIC_VALUE: u32 = 0x7472_6976;
/// Features of a disk (section 5.2.3).
const FEATURE_READ_ONLY: u64 = 1 << 5;
const FEATURE_FLUSH: u64 = 1 << 9;
/// Kinds of requests (section 5.2.6).
const READ: u32 = 0;
const WRITE_OUT: u32 = 1;
const FLUSH: u32 = 4;
/// A status that no device writes.
const UNKNOWN: u8 = 0xFF;
/// Times that a request is begun before it fails: each further time a client has started anew meanwhile.
const TRIES: u32 = 16;
/// Looks at the status after a reset.
const LOOKS: u32 = 1000;
/// Nanoseconds for a request, if there is a clock.
const PATIENCE: u64 = 10_000_000_000;

/// The end of a try.
enum Tried {
    /// The device has answered with this status.
    Answered(u8),
    /// The device was stopped.
    Stopped,
    /// The device is silent, or is none.
    Dead,
}

/// The disk of the board.
pub struct Board {
    /// The first address of the registers.
    registers: u64,
    /// The shared memory, and where the device finds it.
    shared: Reach,
    service: Handle,
    gate: Handle,
    clock: Option<Handle>,
    /// The count of stops when the device was prepared; odd: it is not prepared.
    prepared_at: u64,
    features: u64,
    sectors: u64,
    /// Requests that were handed to the device since it was prepared.
    handed: u16,
    /// True if events of others were taken while a request was on its way.
    has_taken_events: bool,
}

impl Board {
    /// Prepares the disk. `memory` becomes the device's. Returns `None` if there is no disk.
    pub fn new(
        device: &Device<'_>,
        memory: &'static mut [u8],
        service: Handle,
        gate: Handle,
        clock: Option<Handle>,
    ) -> Option<Self> {
        let first = memory.as_mut_ptr().expose_provenance() as u64;
        let shared = service::reach_own(service, first).ok()?;
        let mut board = Self {
            registers: device.base,
            shared,
            service,
            gate,
            clock,
            prepared_at: 1,
            features: 0,
            sectors: 0,
            handed: 0,
            has_taken_events: false,
        };
        board.prepare()?;
        Some(board)
    }

    /// Returns the number of sectors.
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Tells whether the disk is read-only.
    pub const fn is_read_only(&self) -> bool {
        self.features & FEATURE_READ_ONLY != 0
    }

    /// Tells whether events were taken that another process may wait for, and forgets it.
    pub const fn take_events(&mut self) -> bool {
        core::mem::replace(&mut self.has_taken_events, false)
    }

    /// Moves data between the disk and the memory of a window's client.
    pub fn transfer(
        &mut self,
        window: u8,
        offset: u64,
        length: u32,
        ranges: Ranges<'_>,
        direction: Direction,
    ) -> Result<(), Failed> {
        let kind = match direction {
            Direction::Read => READ,
            Direction::Write => WRITE_OUT,
        };
        // The ranges are taken from a copy of the chain, so that each try finds the same ones.
        let mut list = [(0, 0); SIZE as usize];
        let mut count = 0;
        let mut total = 0_u32;
        for (place, range) in list.iter_mut().zip(ranges) {
            *place = range;
            count += 1;
            total = total.saturating_add(range.1);
        }
        let list = list.get(..count).filter(|_| total == length).ok_or(Failed)?;
        self.request(kind, offset / SECTOR, |board| {
            let reach = service::reach(board.service, window).ok()?;
            let is_same = reach.stops == board.prepared_at;
            is_same.then(|| board.describe(list, &reach, direction))?
        })
    }

    /// Makes what was written permanent.
    pub fn flush(&mut self) -> Result<(), Failed> {
        if self.features & FEATURE_FLUSH == 0 {
            // Such a device writes through (section 5.2.5.2).
            return Ok(());
        }
        self.request(FLUSH, 0, |_| Some(1))
    }

    /// Does a request. `data` writes the descriptors of the data, and returns the number of the next one.
    fn request(&mut self, kind: u32, sector: u64, data: impl Fn(&Self) -> Option<u16>) -> Result<(), Failed> {
        for _ in 0..TRIES {
            if self.stops() != self.prepared_at {
                self.prepare().ok_or(Failed)?;
            }
            let Some(next) = data(self) else {
                if self.stops() == self.prepared_at {
                    return Err(Failed);
                }
                continue;
            };
            self.hand_over(kind, sector, next);
            match self.wait() {
                Tried::Answered(0) => return Ok(()),
                Tried::Answered(_) => return Err(Failed),
                Tried::Stopped => {}
                Tried::Dead => {
                    self.prepared_at = 1;
                    let _prepared = self.prepare();
                    return Err(Failed);
                }
            }
        }
        Err(Failed)
    }

    /// Writes the descriptors of data from descriptor 1 on. Returns the number of the next one, or `None` if
    /// the client does not grant a range.
    fn describe(&self, list: &[(u64, u32)], reach: &Reach, direction: Direction) -> Option<u16> {
        let flag = match direction {
            Direction::Read => WRITE,
            Direction::Write => 0,
        };
        let mut next = 1;
        for (address, length) in list {
            let bus = reach.bus_of(*address, u64::from(*length))?;
            // The last one is for the status.
            if next >= SIZE - 1 {
                return None;
            }
            self.descriptor(next, bus, *length, flag | NEXT);
            next += 1;
        }
        Some(next)
    }

    /// Hands the request to the device. Descriptor `last` is for the status.
    fn hand_over(&mut self, kind: u32, sector: u64, last: u16) {
        let at = self.shared.first;
        bus::write_u32(at + HEADER, kind);
        bus::write_u32(at + HEADER + 4, 0);
        bus::write_u64(at + HEADER + 8, sector);
        bus::write_u8(at + DONE, UNKNOWN);
        self.descriptor(0, self.shared.bus + HEADER, HEADER_SIZE as u32, NEXT);
        self.descriptor(last, self.shared.bus + DONE, 1, WRITE);
        bus::write_u16(at + AVAILABLE + 4 + 2 * u64::from(self.handed % SIZE), 0);
        self.handed = self.handed.wrapping_add(1);
        // The device sees the request before the index, and the index before the notification.
        fence(Ordering::SeqCst);
        bus::write_u16(at + AVAILABLE + 2, self.handed);
        fence(Ordering::SeqCst);
        self.set(QUEUE_NOTIFY, 0);
    }

    fn descriptor(&self, number: u16, address: u64, length: u32, flags: u16) {
        let at = self.shared.first + 16 * u64::from(number);
        bus::write_u64(at, address);
        bus::write_u32(at + 8, length);
        bus::write_u16(at + 12, flags);
        bus::write_u16(at + 14, number.wrapping_add(1));
    }

    /// Waits for the end of the request. The interrupt comes after the answer, and is taken before the look
    /// at the answer. So no interrupt is left for the next request.
    fn wait(&mut self) -> Tried {
        let now = self.clock.and_then(|clock| hypercall::timer_now(clock).ok());
        let deadline = now.map_or(0, |now| now.saturating_add(PATIENCE));
        loop {
            match hypercall::event_wait(self.gate, deadline) {
                Ok(events) => {
                    self.has_taken_events |= events & !(1 << DEVICE_EVENT) != 0;
                    if events & 1 << DEVICE_EVENT != 0 {
                        self.set(INTERRUPT_ACKNOWLEDGE, CAUSE_USED | CAUSE_CONFIGURATION);
                    }
                }
                Err(Error::TimedOut) => return Tried::Dead,
                Err(_) => return Tried::Dead,
            }
            let used = bus::read_u16(self.shared.first + USED + 2);
            fence(Ordering::SeqCst);
            if used == self.handed {
                return Tried::Answered(bus::read_u8(self.shared.first + DONE));
            }
            if self.stops() != self.prepared_at {
                return Tried::Stopped;
            }
        }
    }

    fn stops(&self) -> u64 {
        service::reach_own(self.service, self.shared.first).map_or(1, |reach| reach.stops)
    }

    /// Resets the device and prepares its queue, until no stop has come in between. A device that is stopped
    /// half-way would go on without what it was told before.
    fn prepare(&mut self) -> Option<()> {
        for _ in 0..TRIES {
            let before = self.stops();
            self.prepared_at = 1;
            self.prepare_once()?;
            if before & 1 == 0 && self.stops() == before {
                self.prepared_at = before;
                return Some(());
            }
        }
        None
    }

    fn prepare_once(&mut self) -> Option<()> {
        let is_disk =
            self.get(MAGIC) == MAGIC_VALUE && self.get(VERSION) == 2 && self.get(DEVICE) == DEVICE_BLOCK;
        if !is_disk {
            return None;
        }
        self.set(STATUS, 0);
        (0..LOOKS).find(|_| self.get(STATUS) == 0)?;
        self.set(STATUS, (STATUS_ACKNOWLEDGE | STATUS_DRIVER).into());
        let half = |number: u32| {
            self.set(DEVICE_FEATURES_SELECT, number);
            u64::from(self.get(DEVICE_FEATURES))
        };
        let offered = half(0) | half(1) << 32;
        self.features = offered & (FEATURE_VERSION_1 | FEATURE_FLUSH | FEATURE_READ_ONLY);
        for (number, half) in [self.features as u32, (self.features >> 32) as u32]
            .into_iter()
            .enumerate()
        {
            self.set(DRIVER_FEATURES_SELECT, number as u32);
            self.set(DRIVER_FEATURES, half);
        }
        let agreed = STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK;
        self.set(STATUS, agreed.into());
        self.set(QUEUE_SELECT, 0);
        if self.get(STATUS) != agreed.into() || self.get(QUEUE_SIZE_MAX) < SIZE.into() {
            return None;
        }
        for word in (0..SHARED as u64).step_by(8) {
            bus::write_u64(self.shared.first + word, 0);
        }
        self.handed = 0;
        fence(Ordering::SeqCst);
        self.set(QUEUE_SIZE, SIZE.into());
        for (register, place) in [
            (QUEUE_DESCRIPTORS, 0),
            (QUEUE_DRIVER, AVAILABLE),
            (QUEUE_DEVICE, USED),
        ] {
            let bus = self.shared.bus + place;
            self.set(register, bus as u32);
            self.set(register + 4, (bus >> 32) as u32);
        }
        self.set(QUEUE_READY, 1);
        self.set(STATUS, (agreed | STATUS_DRIVER_OK).into());
        self.sectors = u64::from(self.get(CONFIGURATION)) | u64::from(self.get(CONFIGURATION + 4)) << 32;
        Some(())
    }

    fn get(&self, register: u64) -> u32 {
        bus::read_u32(self.registers + register)
    }

    fn set(&self, register: u64, value: u32) {
        bus::write_u32(self.registers + register, value);
    }
}
