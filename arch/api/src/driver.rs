// SPDX-License-Identifier: Apache-2.0
//! The board's own devices that the kernel uses. The class binary hands their drivers to the kernel, beside
//! the backend: a UART or an Ethernet controller is no matter of the CPU.

use crate::{FrameWords, HostPhys, Line};

/// The board's serial line.
pub trait Console {
    /// Hands bytes to the transmitter without waiting; returns how many it took.
    fn send(&mut self, bytes: &[u8]) -> usize;
    /// Takes a received byte, if there is one.
    fn receive(&mut self) -> Option<u8>;
    /// Returns the line on which the receiver interrupts.
    fn receive_line(&self) -> Option<Line>;
    /// Waits until everything sent has left. Only for lockdown and power-off. Bounded by the FIFO's depth.
    fn flush(&mut self);
}

/// A frame that the board's network interface has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its bytes, CRC included.
    pub bytes: u32,
    /// The first of them.
    pub head: [u32; 2],
}

/// The board's network interface. A class binary without a driver for one keeps the defaults.
///
/// Addresses are bus addresses inside the memory that the system image sets aside for frames, and multiples
/// of 4.
pub trait Network {
    /// True if there are networks on this class; if not, nothing of this is called, and the code for it is
    /// not built.
    const HAS_NETWORK: bool = false;
    /// Returns the line of the board's interface, if the hypervisor drives one.
    fn network_line(&self) -> Option<Line> {
        None
    }
    /// Receives from now on. At boot.
    fn open_network(&mut self) {}
    /// Returns the oldest frame the interface has received; bad ones are dropped, one at a call.
    fn next_frame(&mut self) -> Option<Received> {
        None
    }
    /// Moves the next words of that frame, after its head, to memory. Worst case: linear in `words`.
    fn take_frame(&mut self, _to: HostPhys, _words: u32, _memory: &mut impl FrameWords) {}
    /// Forgets the rest of that frame.
    fn end_frame(&mut self) {}
    /// Sends `bytes` bytes (without CRC); false if the interface has no room. Worst case: linear in `bytes`.
    fn send_frame(&mut self, _from: HostPhys, _bytes: u32, _memory: &mut impl FrameWords) -> bool {
        false
    }
}

/// All drivers that a class binary hands to the kernel.
pub trait Drivers: Console + Network {}

impl<D: Console + Network> Drivers for D {}

/// No networks.
#[derive(Clone, Copy, Debug)]
pub struct NoNetwork;

impl Network for NoNetwork {}

/// The drivers of a board whose devices have one each.
#[derive(Clone, Copy, Debug)]
pub struct Devices<C, N> {
    /// The serial line.
    pub console: C,
    /// The network interface, if the board has one that the hypervisor drives.
    pub network: Option<N>,
}

impl<C: Console, N> Console for Devices<C, N> {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> usize {
        self.console.send(bytes)
    }

    #[inline]
    fn receive(&mut self) -> Option<u8> {
        self.console.receive()
    }

    #[inline]
    fn receive_line(&self) -> Option<Line> {
        self.console.receive_line()
    }

    #[inline]
    fn flush(&mut self) {
        self.console.flush();
    }
}

impl<C, N: Network> Network for Devices<C, N> {
    const HAS_NETWORK: bool = N::HAS_NETWORK;

    #[inline]
    fn network_line(&self) -> Option<Line> {
        self.network.as_ref()?.network_line()
    }

    #[inline]
    fn open_network(&mut self) {
        if let Some(network) = &mut self.network {
            network.open_network();
        }
    }

    #[inline]
    fn next_frame(&mut self) -> Option<Received> {
        self.network.as_mut()?.next_frame()
    }

    #[inline]
    fn take_frame(&mut self, to: HostPhys, words: u32, memory: &mut impl FrameWords) {
        if let Some(network) = &mut self.network {
            network.take_frame(to, words, memory);
        }
    }

    #[inline]
    fn end_frame(&mut self) {
        if let Some(network) = &mut self.network {
            network.end_frame();
        }
    }

    #[inline]
    fn send_frame(&mut self, from: HostPhys, bytes: u32, memory: &mut impl FrameWords) -> bool {
        let network = self.network.as_mut();
        network.is_some_and(|network| network.send_frame(from, bytes, memory))
    }
}
