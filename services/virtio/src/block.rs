// SPDX-License-Identifier: Apache-2.0
//! A disk (Virtio 1.2, section 5.2): one queue of requests.
//!
//! A request is a header that the device reads, the data, and a status byte that the device writes last. A
//! request that makes no sense is answered with "not supported" or "I/O error" as long as there is a place
//! for the status. Only a request without such a place breaks the device.

use crate::broken::Broken;
use crate::chain::{Chain, Ranges};
use crate::device::{Device, part};
use crate::memory::Memory;
use crate::numbers::DEVICE_BLOCK;
use virtio::blk::{F, T};

/// Bytes of a sector.
pub const SECTOR: u64 = 512;
/// Bytes of the name of a disk.
pub const NAME: usize = 20;

const FEATURE_SEGMENTS: u64 = F::SEG_MAX.bits().to_ne() as u64;
const FEATURE_READ_ONLY: u64 = F::RO.bits().to_ne() as u64;
const FEATURE_BLOCK_SIZE: u64 = F::BLK_SIZE.bits().to_ne() as u64;
const FEATURE_FLUSH: u64 = F::FLUSH.bits().to_ne() as u64;

/// The segments of data that a request can have: all of a chain but its header and its status.
const SEGMENTS: u32 = crate::chain::MAX_SEGMENTS as u32 - 2;
const HEADER: u32 = 16;
/// Bytes that are copied at a time: as many as a call of the hypervisor copies.
const PIECE: usize = 1024;

/// A piece of data, at an address from which words can be copied.
#[repr(align(8))]
struct Piece([u8; PIECE]);

const READ: u32 = T::In as u32;
const WRITE: u32 = T::Out as u32;
const FLUSH: u32 = T::Flush as u32;
const GET_NAME: u32 = T::GetId as u32;

const OK: u8 = virtio::blk::S::Ok as u8;
const IO_ERROR: u8 = virtio::blk::S::Ioerr as u8;
const UNSUPPORTED: u8 = virtio::blk::S::Unsupp as u8;

/// The disk could not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// The way that data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the disk to the driver.
    Read,
    /// From the driver to the disk.
    Write,
}

/// The contents of a disk.
pub trait Disk {
    /// Returns the number of sectors.
    fn sectors(&self) -> u64;
    /// Tells whether the disk is read-only.
    fn is_read_only(&self) -> bool;
    /// Reads bytes at an offset. The range is inside the disk.
    ///
    /// # Errors
    /// [`Failed`].
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Failed>;
    /// Writes bytes at an offset. The range is inside the disk.
    ///
    /// # Errors
    /// [`Failed`].
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failed>;
    /// Makes what was written permanent.
    ///
    /// # Errors
    /// [`Failed`].
    fn flush(&mut self) -> Result<(), Failed>;
    /// Moves `length` bytes at an offset straight between the disk and the driver's memory. The range is
    /// inside the disk. Returns `None` if the disk cannot do that: then the bytes are copied.
    fn transfer(
        &mut self,
        _offset: u64,
        _length: u32,
        _ranges: Ranges<'_>,
        _direction: Direction,
    ) -> Option<Result<(), Failed>> {
        None
    }
}

/// A device over a disk.
#[derive(Clone, Debug)]
pub struct Block<D> {
    disk: D,
    name: [u8; NAME],
    /// True if the driver does not flush: what it is told to be written must be permanent (section 5.2.5.2).
    is_write_through: bool,
}

/// The way a request ends: its status, and the bytes written before the status.
struct Ended {
    status: u8,
    written: u32,
}

impl Ended {
    const fn with(status: u8) -> Self {
        Self { status, written: 0 }
    }
}

impl<D: Disk> Block<D> {
    /// Makes the device. A name that is too long is cut off.
    pub fn new(disk: D, name: &str) -> Self {
        let mut bytes = [0; NAME];
        for (to, from) in bytes.iter_mut().zip(name.as_bytes()) {
            *to = *from;
        }
        Self {
            disk,
            name: bytes,
            is_write_through: true,
        }
    }

    /// Returns the disk.
    pub const fn disk(&mut self) -> &mut D {
        &mut self.disk
    }

    fn request(&mut self, chain: &Chain, memory: &mut impl Memory, room: u32) -> Result<Ended, Broken> {
        let mut header = [0; HEADER as usize];
        if chain.readable() < HEADER {
            return Ok(Ended::with(IO_ERROR));
        }
        chain.read(memory, 0, &mut header)?;
        let [t0, t1, t2, t3, _, _, _, _, s0, s1, s2, s3, s4, s5, s6, s7] = header;
        let sector = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
        let data = chain.readable().saturating_sub(HEADER);
        match u32::from_le_bytes([t0, t1, t2, t3]) {
            READ => self.read(chain, memory, sector, room),
            WRITE => self.write(chain, memory, sector, data),
            FLUSH => Ok(Ended::with(outcome(self.disk.flush()))),
            GET_NAME if room >= NAME as u32 => {
                chain.write(memory, 0, &self.name)?;
                Ok(Ended {
                    status: OK,
                    written: NAME as u32,
                })
            }
            GET_NAME => Ok(Ended::with(IO_ERROR)),
            _ => Ok(Ended::with(UNSUPPORTED)),
        }
    }

    /// Returns the offset of a range of whole sectors inside the disk.
    fn range(&self, sector: u64, length: u32) -> Option<u64> {
        let length = u64::from(length);
        let end = sector.checked_add(length / SECTOR)?;
        let is_inside = length.is_multiple_of(SECTOR) && end <= self.disk.sectors();
        sector.checked_mul(SECTOR).filter(|_| is_inside)
    }

    fn read(
        &mut self,
        chain: &Chain,
        memory: &mut impl Memory,
        sector: u64,
        length: u32,
    ) -> Result<Ended, Broken> {
        let Some(offset) = self.range(sector, length) else {
            return Ok(Ended::with(IO_ERROR));
        };
        let ranges = chain.writable_ranges(0, length);
        if let Some(done) = self.disk.transfer(offset, length, ranges, Direction::Read) {
            // A device that has failed may have written some bytes: none of them count.
            let written = if done.is_ok() { length } else { 0 };
            return Ok(Ended {
                status: outcome(done),
                written,
            });
        }
        let mut piece = Piece([0; PIECE]);
        for at in (0..length).step_by(PIECE) {
            let (bytes, _) = piece
                .0
                .split_at_mut(PIECE.min(length.saturating_sub(at) as usize));
            if self.disk.read(offset.saturating_add(at.into()), bytes).is_err() {
                return Ok(Ended {
                    status: IO_ERROR,
                    written: at,
                });
            }
            chain.write(memory, at, bytes)?;
        }
        Ok(Ended {
            status: OK,
            written: length,
        })
    }

    fn write(
        &mut self,
        chain: &Chain,
        memory: &mut impl Memory,
        sector: u64,
        length: u32,
    ) -> Result<Ended, Broken> {
        let range = self.range(sector, length).filter(|_| !self.disk.is_read_only());
        let Some(offset) = range else {
            return Ok(Ended::with(IO_ERROR));
        };
        let ranges = chain.readable_ranges(HEADER, length);
        if let Some(done) = self.disk.transfer(offset, length, ranges, Direction::Write) {
            return Ok(self.written(done));
        }
        let mut piece = Piece([0; PIECE]);
        for at in (0..length).step_by(PIECE) {
            let (bytes, _) = piece
                .0
                .split_at_mut(PIECE.min(length.saturating_sub(at) as usize));
            chain.read(memory, at.saturating_add(HEADER), bytes)?;
            if self.disk.write(offset.saturating_add(at.into()), bytes).is_err() {
                return Ok(Ended::with(IO_ERROR));
            }
        }
        Ok(self.written(Ok(())))
    }

    /// Ends a write.
    fn written(&mut self, done: Result<(), Failed>) -> Ended {
        let done = done.and_then(|()| {
            if self.is_write_through {
                self.disk.flush()
            } else {
                Ok(())
            }
        });
        Ended::with(outcome(done))
    }
}

const fn outcome(result: Result<(), Failed>) -> u8 {
    match result {
        Ok(()) => OK,
        Err(Failed) => IO_ERROR,
    }
}

impl<D: Disk> Device for Block<D> {
    const KIND: u32 = DEVICE_BLOCK;

    fn features(&self) -> u64 {
        let read_only = if self.disk.is_read_only() {
            FEATURE_READ_ONLY
        } else {
            0
        };
        FEATURE_SEGMENTS | FEATURE_BLOCK_SIZE | FEATURE_FLUSH | read_only
    }

    fn agree(&mut self, features: u64) {
        self.is_write_through = features & FEATURE_FLUSH == 0;
    }

    fn configuration(&self, offset: u32, into: &mut [u8]) {
        // Section 5.2.4: capacity, size_max, seg_max, geometry, blk_size.
        let mut bytes = [0; 24];
        let (capacity, rest) = bytes.split_at_mut(8);
        capacity.copy_from_slice(&self.disk.sectors().to_le_bytes());
        let (_, rest) = rest.split_at_mut(4);
        let (segments, rest) = rest.split_at_mut(4);
        segments.copy_from_slice(&SEGMENTS.to_le_bytes());
        let (_, size) = rest.split_at_mut(4);
        size.copy_from_slice(&(SECTOR as u32).to_le_bytes());
        part(&bytes, offset, into);
    }

    fn reset(&mut self) {
        self.is_write_through = true;
    }

    fn serve(&mut self, _queue: u16, chain: &Chain, memory: &mut impl Memory) -> Result<u32, Broken> {
        let place = chain.writable().checked_sub(1).ok_or(Broken::Request)?;
        let ended = self.request(chain, memory, place)?;
        chain.write(memory, place, &[ended.status])?;
        // All before the status counts as written only if it is.
        Ok(if ended.written == place {
            place.saturating_add(1)
        } else {
            ended.written
        })
    }
}
