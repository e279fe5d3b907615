// SPDX-License-Identifier: Apache-2.0
//! The board's one serial line, as the rest of the kernel sees it: the output of all consoles
//! ([`Multiplexer`]), and the owner of each byte of input ([`Selector`]).

use crate::console::Multiplexer;
use crate::input::{Received, Selector};
use bulkhead_arch_api::PartitionId;
use bulkhead_devices::uart::Uart;
use spin::RelaxStrategy;
use spin::mutex::SpinMutex;

/// The serial line.
#[derive(Debug)]
pub struct Terminal<'n, R> {
    /// The output of all consoles.
    pub output: Multiplexer<'n, R>,
    /// The lock that is held while a byte that came in is looked at. The line interrupts one pCPU only.
    selector: SpinMutex<Selector, R>,
}

impl<'n, R: RelaxStrategy> Terminal<'n, R> {
    pub const fn new() -> Self {
        Self {
            output: Multiplexer::new(),
            selector: SpinMutex::new(Selector::new()),
        }
    }

    /// Registers the console of a partition. Input goes to the first console that reads.
    pub fn add(&self, partition: PartitionId, name: &'n str, reads: bool) {
        self.output.add(partition, name);
        let mut selector = self.selector.lock();
        if reads && !selector.is_directed() {
            selector.select(Some(partition));
        }
    }

    /// Takes a byte that came in. Returns the owner of the byte, if there is one, and the byte.
    pub fn receive(&self, byte: u8) -> Option<(PartitionId, u8)> {
        let mut selector = self.selector.lock();
        let chosen = match selector.receive(byte) {
            Received::Nothing => return None,
            Received::Byte(partition, byte) => return Some((partition, byte)),
            Received::Selection(name) => self.output.find(name),
        };
        selector.select(chosen);
        None
    }
}

/// The place where a partition's console input goes.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "one per partition, in place; there is no heap to put the large one on"
)]
pub enum Reader {
    /// The partition's virtual UART.
    Uart(Uart),
    /// The place where a hypercall finds the input: the partition has no virtual UART.
    Input(Input),
}

impl Reader {
    /// Makes a reader without a virtual UART.
    pub const fn new() -> Self {
        Self::Input(Input::new())
    }

    /// Returns the virtual UART, if there is one.
    #[inline]
    pub const fn uart(&mut self) -> Option<&mut Uart> {
        match self {
            Self::Uart(uart) => Some(uart),
            Self::Input(_) => None,
        }
    }

    /// Returns the input, if there is no virtual UART.
    pub const fn input(&mut self) -> Option<&mut Input> {
        match self {
            Self::Input(input) => Some(input),
            Self::Uart(_) => None,
        }
    }
}

/// The number of unread bytes that a task can hold.
const INPUT_LEN: usize = 64;

/// The input of a partition without a virtual UART.
#[derive(Debug)]
pub struct Input {
    bytes: [u8; INPUT_LEN],
    length: usize,
}

impl Input {
    pub const fn new() -> Self {
        Self {
            bytes: [0; INPUT_LEN],
            length: 0,
        }
    }

    /// Adds a byte. A byte too many is lost.
    pub fn put(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length = self.length.saturating_add(1);
        }
    }

    /// Takes the oldest bytes. Returns the number of bytes taken.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        let taken = into.len().min(self.length);
        for (to, from) in into.iter_mut().zip(self.bytes.iter().take(taken)) {
            *to = *from;
        }
        self.length = self.length.saturating_sub(taken);
        for place in 0..self.length {
            let byte = self.bytes.get(place.saturating_add(taken)).copied();
            if let (Some(to), Some(byte)) = (self.bytes.get_mut(place), byte) {
                *to = byte;
            }
        }
        taken
    }

    pub const fn clear(&mut self) {
        self.length = 0;
    }
}
