// SPDX-License-Identifier: Apache-2.0
//! The back ends through their window, as a driver of the standard uses them.
#![forbid(unsafe_code)]

#[path = "support/device.rs"]
mod device;

use bulkhead_devices::virtio_mmio::{INTERRUPT_ACKNOWLEDGE, QUEUE_NOTIFY, STATUS, STATUS_NEEDS_RESET};
use bulkhead_virtio::block::{Block, Disk, Failed, SECTOR};
use bulkhead_virtio::broken::Broken;
use bulkhead_virtio::console::{Console, RECEIVE, TRANSMIT, Terminal};
use bulkhead_virtio::device::Device;
use bulkhead_virtio::entropy::{Entropy, Source};
use bulkhead_virtio::network::{FRAME, Network};
use bulkhead_virtio::server::{Served, Server};
use device::{BUFFERS, Buffer, DESCRIPTORS, DEVICE, DRIVER, Driver, Ram};

const HEADER: u64 = BUFFERS;
const STATUS_BYTE: u64 = BUFFERS + 0x20;
const DATA: u64 = BUFFERS + 0x200;

struct Bench<D, const QUEUES: usize> {
    server: Server<D, QUEUES>,
    ram: Ram,
    driver: Driver,
    queue: u16,
}

impl<D: Device, const QUEUES: usize> Bench<D, QUEUES> {
    fn new(device: D, packed: bool, queue: u16) -> Self {
        let (mut server, driver) = (Server::new(device), Driver::new(packed, 8));
        let mut store = |offset, value| server.write(offset, 4, value);
        for value in [0, 1, 3] {
            store(STATUS, value);
        }
        store(0x24, 1);
        store(0x20, driver.features() >> 32);
        store(STATUS, 11);
        store(0x30, queue.into());
        store(0x38, 8);
        for (register, address) in [(0x80, DESCRIPTORS), (0x90, DRIVER), (0xA0, DEVICE)] {
            store(register, address);
        }
        store(0x44, 1);
        assert!(store(STATUS, 15));
        Self {
            server,
            ram: Ram::new(),
            driver,
            queue,
        }
    }

    /// Makes one chain available. Returns the bytes written when it comes back.
    fn ask(&mut self, buffers: &[Buffer]) -> Option<u32> {
        let id = self.driver.offer(&mut self.ram, buffers, None);
        assert!(self.server.write(QUEUE_NOTIFY, 4, self.queue.into()));
        assert_eq!(self.server.serve(&mut self.ram, 8), Served::All);
        let (back, written) = self.driver.take_back(&self.ram)?;
        assert_eq!(back, id);
        assert!(self.server.interrupt().level());
        self.server.write(INTERRUPT_ACKNOWLEDGE, 4, 1);
        assert!(!self.server.interrupt().level());
        Some(written)
    }
}

#[derive(Clone)]
struct Ramdisk {
    bytes: Vec<u8>,
    read_only: bool,
    flushes: u32,
    fails: bool,
}

impl Disk for Ramdisk {
    fn sectors(&self) -> u64 {
        self.bytes.len() as u64 / SECTOR
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Failed> {
        into.copy_from_slice(&self.bytes[offset as usize..][..into.len()]);
        if self.fails { Err(Failed) } else { Ok(()) }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failed> {
        self.bytes[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        if self.fails { Err(Failed) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failed> {
        self.flushes += 1;
        if self.fails { Err(Failed) } else { Ok(()) }
    }
}

fn disk(packed: bool, read_only: bool) -> Bench<Block<Ramdisk>, 1> {
    let disk = Ramdisk {
        bytes: vec![0; 8 * SECTOR as usize],
        read_only,
        flushes: 0,
        fails: false,
    };
    Bench::new(Block::new(disk, "disk of a test, with a long name"), packed, 0)
}

impl Bench<Block<Ramdisk>, 1> {
    /// Returns the bytes written and the status.
    fn request(&mut self, kind: u32, sector: u64, data: &[Buffer]) -> (u32, u8) {
        self.ram.put(HEADER, &kind.to_le_bytes());
        self.ram.put(HEADER + 8, &sector.to_le_bytes());
        self.ram.put(STATUS_BYTE, &[0xFF]);
        let mut buffers = vec![Buffer(HEADER, 16, false)];
        buffers.extend(data);
        buffers.push(Buffer(STATUS_BYTE, 1, true));
        let written = self.ask(&buffers).expect("an answer");
        (written, self.ram.get::<1>(STATUS_BYTE)[0])
    }
}

#[test]
fn a_disk_keeps_what_is_written() {
    for packed in [false, true] {
        let mut bench = disk(packed, false);
        assert_eq!(bench.server.read(0x100, 8), 8, "capacity");
        assert_eq!(bench.server.read(0x10C, 4), 126, "segments");
        bench.ram.put(DATA, &[7; 1024]);
        // The second sector is cut by the end of a buffer.
        let data = [Buffer(DATA, 700, false), Buffer(DATA + 700, 324, false)];
        assert_eq!(bench.request(1, 3, &data), (1, 0));
        assert_eq!(bench.request(4, 0, &[]), (1, 0));
        let there = DATA + 0x800;
        assert_eq!(
            bench.request(0, 2, &[Buffer(there, 100, true), Buffer(there + 100, 924, true)]),
            (1025, 0)
        );
        assert_eq!(bench.ram.get::<512>(there), [0; 512]);
        assert_eq!(bench.ram.get::<512>(there + 512), [7; 512]);
        assert_eq!(bench.request(8, 0, &[Buffer(there, 20, true)]), (21, 0));
        assert_eq!(&bench.ram.get::<20>(there), b"disk of a test, with");
        // The driver has not agreed to flush: what was written is permanent before the answer.
        assert_eq!(bench.server.device().disk().flushes, 2);
    }
}

#[test]
fn a_request_that_cannot_be_done_gets_an_error_and_changes_nothing() {
    let mut bench = disk(false, false);
    let data = |length, write| [Buffer(DATA, length, write)];
    bench.ram.put(DATA, &[9; 2048]);
    assert_eq!(bench.request(1, 7, &data(1024, false)), (1, 1), "behind the end");
    assert_eq!(bench.request(1, u64::MAX, &data(512, false)), (1, 1));
    assert_eq!(bench.request(1, u64::MAX / 512 + 1, &data(512, false)), (1, 1));
    assert_eq!(bench.request(1, 0, &data(100, false)), (1, 1), "no whole sector");
    assert_eq!(bench.request(0, 7, &data(1024, true)), (0, 1));
    assert_eq!(bench.request(11, 0, &data(16, false)), (1, 2), "no such request");
    assert_eq!(bench.request(8, 0, &data(19, true)), (0, 1));
    assert!(bench.server.device().disk().bytes.iter().all(|byte| *byte == 0));
    bench.server.device().disk().fails = true;
    assert_eq!(bench.request(1, 0, &data(512, false)), (1, 1));
    assert_eq!(bench.request(4, 0, &[]), (1, 1));
    let mut bench = disk(true, true);
    assert_eq!(
        bench.server.read(0x10, 4) & 1 << 5,
        1 << 5,
        "read-only is offered"
    );
    assert_eq!(bench.request(1, 0, &data(512, false)), (1, 1));
    assert!(bench.server.device().disk().bytes.iter().all(|byte| *byte == 0));
}

#[test]
fn a_driver_that_breaks_a_rule_has_to_reset_its_device() {
    let mut bench = disk(false, false);
    assert_eq!(
        bench.ask(&[Buffer(HEADER, 16, false)]),
        None,
        "no place for the status"
    );
    assert_eq!(bench.server.broken(), Some(Broken::Request));
    assert_ne!(bench.server.read(STATUS, 4) & u64::from(STATUS_NEEDS_RESET), 0);
    assert_eq!(bench.server.interrupt().causes(), 2);
    assert!(
        !bench.server.write(QUEUE_NOTIFY, 4, 0),
        "nothing is served before the reset"
    );
    let mut bench = disk(false, false);
    assert_eq!(
        bench.ask(&[Buffer(HEADER, 16, false), Buffer(0, 513, true)]),
        None
    );
    assert!(matches!(bench.server.broken(), Some(Broken::Outside(_))));
}

struct Tape(Vec<u8>);

impl Terminal for Tape {
    fn print(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }
}

#[test]
fn a_console_prints_and_has_a_size() {
    let mut bench = Bench::<_, 2>::new(Console::new(Tape(Vec::new()), 132, 43), false, TRANSMIT);
    assert_eq!(bench.server.read(0x100, 2), 132);
    assert_eq!(bench.server.read(0x102, 2), 43);
    bench.ram.put(DATA, &[b'x'; 150]);
    assert_eq!(
        bench.ask(&[Buffer(DATA, 100, false), Buffer(DATA + 100, 50, false)]),
        Some(0)
    );
    bench.server.device().resize(80, 25);
    bench.server.configuration_changed();
    assert_eq!(
        (bench.server.read(0x100, 2), bench.server.interrupt().causes()),
        (80, 2)
    );
}

#[test]
fn a_console_takes_a_buffer_when_there_is_input() {
    let mut bench = Bench::<_, 2>::new(Console::new(Tape(Vec::new()), 80, 25), true, RECEIVE);
    assert_eq!(bench.ask(&[Buffer(DATA, 8, true)]), None, "nothing to say");
    for byte in b"hello" {
        assert!(bench.server.device().receive(*byte));
    }
    assert_eq!(bench.server.serve(&mut bench.ram, 8), Served::All);
    assert_eq!(bench.driver.take_back(&bench.ram), Some((0, 5)));
    assert_eq!(&bench.ram.get::<5>(DATA), b"hello");
    let taken = (0..400).filter(|_| bench.server.device().receive(1)).count();
    assert_eq!(taken, 256, "the backlog is bounded");
}

struct Counter(u8);

impl Source for Counter {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_add(1);
            *byte = self.0;
        }
    }
}

#[test]
fn entropy_fills_buffers() {
    let mut bench = Bench::<_, 1>::new(Entropy::new(Counter(0)), false, 0);
    assert_eq!(
        bench.ask(&[Buffer(DATA, 5, true), Buffer(DATA + 8, 40, true)]),
        Some(45)
    );
    assert_eq!(bench.ram.get::<5>(DATA), [1, 2, 3, 4, 5]);
    assert_eq!(bench.ram.get::<2>(DATA + 46), [44, 45]);
    assert_eq!(bench.ask(&[Buffer(DATA, 0x1000, true)]), Some(256));
}

#[test]
fn a_device_goes_on_in_a_later_life_of_its_server() {
    let mut bench = disk(false, false);
    bench.server = Server::resumable(bench.server.device().clone());
    let mut store = |offset, value| bench.server.write(offset, 4, value);
    for value in [0, 1, 3] {
        store(STATUS, value);
    }
    store(0x24, 1);
    store(0x20, 1);
    store(STATUS, 11);
    store(0x38, 8);
    for (register, address) in [(0x80, DESCRIPTORS), (0x90, DRIVER), (0xA0, DEVICE)] {
        store(register, address);
    }
    store(0x44, 1);
    assert!(store(STATUS, 15));
    bench.ram.put(DATA, &[7; 512]);
    assert_eq!(bench.request(1, 3, &[Buffer(DATA, 512, false)]), (1, 0));
    // The next request is there when the life ends.
    bench.ram.put(HEADER, &1_u32.to_le_bytes());
    bench.ram.put(HEADER + 8, &4_u64.to_le_bytes());
    let waiting = [
        Buffer(HEADER, 16, false),
        Buffer(DATA, 512, false),
        Buffer(STATUS_BYTE, 1, true),
    ];
    let id = bench.driver.offer(&mut bench.ram, &waiting, None);
    let kept = bench.server.keep();
    let mut later = Server::<_, 1>::resumable(bench.server.device().clone());
    later.resume(&kept, &mut bench.ram);
    assert_eq!(later.keep(), kept, "nothing of the registers is lost");
    assert!(
        later.interrupt().level(),
        "an interrupt of the earlier life may be lost"
    );
    assert_eq!(later.serve(&mut bench.ram, 8), Served::All);
    assert_eq!(later.served(), 1, "what was given back is not done again");
    assert_eq!(bench.driver.take_back(&bench.ram).map(|(back, _)| back), Some(id));
    assert_eq!(later.device().disk().bytes[3 * 512..5 * 512], [7; 1024]);

    // Registers that make no sense bring a reset of this device.
    let mut wrong = kept;
    wrong.queues[0].0.device = 1 << 40;
    let mut broken = Server::<_, 1>::resumable(bench.server.device().clone());
    broken.resume(&wrong, &mut bench.ram);
    assert_ne!(broken.read(STATUS, 4) as u8 & STATUS_NEEDS_RESET, 0);
    assert_eq!(broken.serve(&mut bench.ram, 8), Served::All);
    assert_eq!(broken.served(), 0);
}

#[test]
fn an_interface_sends_and_receives_frames() {
    let address = [2, 0, 0, 0, 0, 9];
    let mut bench = Bench::<_, 2>::new(Network::new(address), false, bulkhead_virtio::network::TRANSMIT);
    assert_eq!(bench.server.read(0x104, 1), 0);
    assert_eq!(bench.server.read(0x105, 1), 9);
    // The header of 12 bytes is in a buffer of its own.
    bench.ram.put(DATA, &[5; 60]);
    let frame = [Buffer(HEADER, 12, false), Buffer(DATA, 60, false)];
    assert_eq!(bench.ask(&frame), Some(0));
    let mut sent = [0; FRAME];
    assert_eq!(bench.server.device().sent(&mut sent), Some(60));
    assert_eq!(sent[..60], [5; 60]);
    assert_eq!(bench.server.device().sent(&mut sent), None);
    // A frame that is no frame is lost; one without a header breaks the device.
    assert_eq!(bench.ask(&[Buffer(HEADER, 15, false)]), Some(0));
    assert_eq!(bench.server.device().sent(&mut sent), None);
    assert_eq!(
        bench.ask(&[Buffer(HEADER, 12 + FRAME as u32 + 1, false)]),
        Some(0)
    );
    assert_eq!(bench.server.device().dropped(), 1);

    let mut bench = Bench::<_, 2>::new(Network::new(address), false, bulkhead_virtio::network::RECEIVE);
    for round in 0..17 {
        bench.server.device().deliver(&[round; 64]);
    }
    assert_eq!(bench.server.device().dropped(), 1, "sixteen wait");
    assert_eq!(bench.ask(&[Buffer(DATA, 1530, true)]), Some(76));
    assert_eq!(bench.ram.get::<13>(DATA), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(bench.ask(&[Buffer(DATA, 1530, true)]), Some(76));
    assert_eq!(bench.ram.get::<2>(DATA + 11), [0, 1], "in order");
}
