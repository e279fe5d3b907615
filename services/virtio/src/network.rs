// SPDX-License-Identifier: Apache-2.0
//! An Ethernet interface (Virtio 1.2, section 5.1): a queue for frames to the driver, and one for frames from
//! it. No offloads: a frame is what is on the wire, without its checksum.
//!
//! The interface has room for one frame from the driver, and for some to it. A program that carries several
//! interfaces is the switch: it takes frames with [`Network::sent`] and hands them on with
//! [`Network::deliver`].

use crate::broken::Broken;
use crate::chain::Chain;
use crate::device::{Device, part};
use crate::memory::Memory;
use crate::numbers::DEVICE_NETWORK;

/// The queue of buffers for frames to the driver.
pub const RECEIVE: u16 = 0;
/// The queue of frames from the driver.
pub const TRANSMIT: u16 = 1;
/// Bytes of a frame at most, with a VLAN tag.
pub const FRAME: usize = 1518;
/// Bytes of the destination address and the source address.
pub const ADDRESSES: usize = 12;

const FEATURE_ADDRESS: u64 = virtio::net::F::MAC.bits().to_ne() as u64;
/// Bytes before each frame: `virtio_net_hdr` of version 1, with the number of buffers.
const HEADER: u32 = 12;
/// Frames that wait for the driver.
const BACKLOG: usize = 16;

/// A frame.
#[derive(Clone, Debug)]
struct Frame {
    bytes: [u8; FRAME],
    length: usize,
}

impl Frame {
    const EMPTY: Self = Self {
        bytes: [0; FRAME],
        length: 0,
    };

    fn contents(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }
}

/// An interface.
#[derive(Clone, Debug)]
pub struct Network {
    address: [u8; 6],
    /// The frame that the driver has sent last, until the switch takes it.
    sent: Option<Frame>,
    waiting: [Frame; BACKLOG],
    /// The first frame that waits, and the number of frames.
    first: usize,
    count: usize,
    dropped: u64,
}

impl Network {
    /// Makes an interface with this address.
    #[must_use]
    pub const fn new(address: [u8; 6]) -> Self {
        Self {
            address,
            sent: None,
            waiting: [const { Frame::EMPTY }; BACKLOG],
            first: 0,
            count: 0,
            dropped: 0,
        }
    }

    /// Returns the address.
    #[must_use]
    pub const fn address(&self) -> [u8; 6] {
        self.address
    }

    /// Returns the number of frames that the driver left no buffer for in time.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes the frame that the driver has sent. Returns its length.
    pub fn sent(&mut self, into: &mut [u8; FRAME]) -> Option<usize> {
        let frame = self.sent.take()?;
        *into = frame.bytes;
        Some(frame.length)
    }

    /// Hands a frame to the driver. The frame is lost if too many wait already.
    pub fn deliver(&mut self, frame: &[u8]) {
        let at = self.first.wrapping_add(self.count) % BACKLOG;
        let place = self.waiting.get_mut(at).filter(|_| self.count < BACKLOG);
        let Some((place, bytes)) = place.and_then(|place| {
            let bytes = place.bytes.get_mut(..frame.len())?;
            bytes.copy_from_slice(frame);
            Some(frame.len()).map(|length| (&mut place.length, length))
        }) else {
            self.dropped = self.dropped.saturating_add(1);
            return;
        };
        *place = bytes;
        self.count = self.count.saturating_add(1);
    }

    fn take(&mut self, chain: &Chain, memory: &mut impl Memory) -> Result<u32, Broken> {
        let length = chain.readable().checked_sub(HEADER).ok_or(Broken::Request)?;
        let mut frame = Frame::EMPTY;
        let Some(bytes) = frame.bytes.get_mut(..length as usize) else {
            // Too long for any wire: lost, as there.
            self.dropped = self.dropped.saturating_add(1);
            return Ok(0);
        };
        chain.read(memory, HEADER, bytes)?;
        frame.length = length as usize;
        self.sent = Some(frame).filter(|frame| frame.length > ADDRESSES);
        Ok(0)
    }

    fn hand_over(&mut self, chain: &Chain, memory: &mut impl Memory) -> Result<u32, Broken> {
        let Some(frame) = self.waiting.get(self.first) else {
            return Ok(0);
        };
        let length = (frame.length as u32).saturating_add(HEADER);
        if chain.readable() != 0 || chain.writable() < length {
            return Err(Broken::Request);
        }
        let mut header = [0; HEADER as usize];
        if let Some(buffers) = header.get_mut(10) {
            *buffers = 1;
        }
        chain.write(memory, 0, &header)?;
        chain.write(memory, HEADER, frame.contents())?;
        self.first = self.first.wrapping_add(1) % BACKLOG;
        self.count = self.count.saturating_sub(1);
        Ok(length)
    }
}

impl Device for Network {
    const KIND: u32 = DEVICE_NETWORK;

    fn features(&self) -> u64 {
        FEATURE_ADDRESS
    }

    fn configuration(&self, offset: u32, into: &mut [u8]) {
        part(&self.address, offset, into);
    }

    fn is_ready(&self, queue: u16) -> bool {
        match queue {
            RECEIVE => self.count != 0,
            _ => self.sent.is_none(),
        }
    }

    fn serve(&mut self, queue: u16, chain: &Chain, memory: &mut impl Memory) -> Result<u32, Broken> {
        if queue == RECEIVE {
            self.hand_over(chain, memory)
        } else {
            self.take(chain, memory)
        }
    }

    fn reset(&mut self) {
        (self.sent, self.first, self.count) = (None, 0, 0);
    }
}
