// SPDX-License-Identifier: Apache-2.0
//! The acts of a hostile driver, as data, and what holds in any case: for the property test and the fuzz
//! target.

use super::device::{BASE, DESCRIPTORS, DEVICE, DRIVER, Ram, SIZE};
use bulkhead_devices::virtio_mmio::{STATUS, STATUS_NEEDS_RESET};
use bulkhead_virtio::block::{Block, Disk, Failed, SECTOR};
use bulkhead_virtio::numbers::{FEATURE_EVENT_INDEX, FEATURE_INDIRECT, FEATURE_PACKED, FEATURE_VERSION_1};
use bulkhead_virtio::server::Server;

/// Sectors of the disk.
pub const SECTORS: u64 = 8;

/// One thing that a driver does.
#[derive(Clone, Debug)]
pub enum Act {
    /// A store to the window.
    Store(u64, u8, u64),
    /// A load from the window.
    Load(u64, u8),
    /// A change of memory, in the descriptors and rings or after them.
    Poke(u16, Vec<u8>),
    /// A change of memory while the device works.
    Race(u16, u8),
    /// The device serves at most so many chains.
    Serve(u32),
    /// The steps of a driver up to a ready queue.
    Start(bool, u16),
}

/// A disk that checks what it is asked.
pub struct Checked {
    bytes: Vec<u8>,
}

impl Checked {
    fn range(&self, offset: u64, length: usize) -> std::ops::Range<usize> {
        let end = offset + length as u64;
        assert!(end <= SECTORS * SECTOR, "outside the disk");
        offset as usize..end as usize
    }
}

impl Disk for Checked {
    fn sectors(&self) -> u64 {
        SECTORS
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Failed> {
        let range = self.range(offset, into.len());
        into.copy_from_slice(&self.bytes[range]);
        Ok(())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failed> {
        let range = self.range(offset, bytes.len());
        self.bytes[range].copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failed> {
        Ok(())
    }
}

/// The most accesses to memory that serving one chain takes: the descriptors, and the data by pieces. A chain
/// has 128 segments, and each piece of data is cut at most once more by the end of a segment.
const ACCESSES: u64 = 2 * (128 + 16 + 128 + SECTORS) + 64;

/// Does what a driver does until queue 0 is ready and the driver is.
pub fn start(server: &mut Server<Block<Checked>, 1>, packed: bool, size: u16) {
    let ring = if packed { FEATURE_PACKED } else { 0 };
    let features = FEATURE_VERSION_1 | FEATURE_INDIRECT | FEATURE_EVENT_INDEX | ring;
    let mut store = |offset, value| server.write(offset, 4, value);
    for value in [0, 1, 3] {
        store(STATUS, value);
    }
    for half in [0, 1] {
        store(0x24, half);
        store(0x20, features >> (32 * half) & 0xFFFF_FFFF);
    }
    store(STATUS, 11);
    store(0x30, 0);
    store(0x38, size.into());
    for (register, address) in [(0x80, DESCRIPTORS), (0x90, DRIVER), (0xA0, DEVICE)] {
        store(register, address);
        store(register + 4, 0);
    }
    store(0x44, 1);
    store(STATUS, 15);
}

/// Checks that the device survives and works a bounded time, and that it reaches nothing but the memory.
pub fn exercise(acts: &[Act]) {
    let disk = Checked {
        bytes: vec![0x5A; (SECTORS * SECTOR) as usize],
    };
    let mut server = Server::<_, 1>::new(Block::new(disk, "hostile"));
    let mut ram = Ram::new();
    for act in acts {
        match act {
            Act::Store(offset, size, value) => {
                server.write(*offset, *size, *value);
            }
            Act::Load(offset, size) => {
                server.read(*offset, *size);
            }
            Act::Poke(at, bytes) => {
                let at = usize::from(*at) % (SIZE - bytes.len());
                ram.put(BASE + at as u64, bytes);
            }
            Act::Race(at, byte) => ram.changes.push((*at, *byte)),
            Act::Serve(most) => {
                let (before, served) = (ram.accesses, server.served());
                server.serve(&mut ram, *most);
                let chains = server.served() - served;
                assert!(chains <= u64::from(*most));
                assert!(
                    ram.accesses - before <= (u64::from(*most) + 1) * ACCESSES,
                    "unbounded"
                );
            }
            Act::Start(packed, size) => start(&mut server, *packed, *size),
        }
        let status = server.read(STATUS, 4) as u8;
        assert_eq!(server.broken().is_some(), status & STATUS_NEEDS_RESET != 0);
    }
    // A reset brings the device back, from any state.
    ram.changes.clear();
    server.write(STATUS, 4, 0);
    assert_eq!((server.read(STATUS, 4), server.broken()), (0, None));
    assert!(!server.interrupt().level());
}
