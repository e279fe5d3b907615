// SPDX-License-Identifier: Apache-2.0
//! The back ends of the devices, and the memory of their clients.

use crate::store::Part;
use bulkhead_guest::hypercall::Handle;
use bulkhead_guest::random::Random;
use bulkhead_guest::service;
use bulkhead_guest::startup_page::Window;
use bulkhead_guest::task::{cell::TaskCell, console};
use bulkhead_virtio::block::Block;
use bulkhead_virtio::console::{Console, Terminal};
use bulkhead_virtio::entropy::{Entropy, Source};
use bulkhead_virtio::memory::{Memory, Outside};
use bulkhead_virtio::network::Network;
use bulkhead_virtio::numbers::{DEVICE_BLOCK, DEVICE_CONSOLE, DEVICE_ENTROPY, DEVICE_NETWORK};
use bulkhead_virtio::server::Server;

/// Bytes that are printed at a time.
const PIECE: usize = 32;
/// The size of a console's terminal.
const TERMINAL: (u16, u16) = (80, 25);

/// The device of a client.
#[expect(
    clippy::large_enum_variant,
    reason = "there is no heap, and a client may be of any kind"
)]
pub enum BackEnd {
    /// A source of random numbers.
    Entropy(Server<Entropy<Numbers>, 1>),
    /// A console.
    Console(Server<Console<Lines>, 2>),
    /// A disk.
    Block(Server<Block<Part>, 1>),
    /// An Ethernet interface.
    Network(Server<Network, 2>),
}

/// Does the same with the device of each kind.
macro_rules! each {
    ($back_end:expr, $server:ident => $body:expr) => {
        match $back_end {
            $crate::back_end::BackEnd::Entropy($server) => $body,
            $crate::back_end::BackEnd::Console($server) => $body,
            $crate::back_end::BackEnd::Block($server) => $body,
            $crate::back_end::BackEnd::Network($server) => $body,
        }
    };
}
pub(crate) use each;

impl BackEnd {
    /// Makes the device of a window; `None` for a kind that the program does not know.
    pub fn new(window: &Window<'static>) -> Option<Self> {
        match u32::from(window.kind) {
            DEVICE_ENTROPY => Some(Self::Entropy(Server::resumable(Entropy::new(Numbers(
                Random::new(window.number.into()),
            ))))),
            DEVICE_CONSOLE => {
                let (columns, rows) = TERMINAL;
                let console = Console::new(Lines(window.client), columns, rows);
                Some(Self::Console(Server::resumable(console)))
            }
            DEVICE_BLOCK => Some(Self::Block(Server::resumable(Block::new(
                Part::new(window),
                window.service,
            )))),
            DEVICE_NETWORK => {
                let [a, b, c, d, e, f, ..] = window.first.to_le_bytes();
                let network = Network::new([a, b, c, d, e, f]);
                Some(Self::Network(Server::resumable(network)))
            }
            _ => None,
        }
    }
}

/// The memory of a client.
#[derive(Clone, Copy)]
pub struct Remote {
    /// The capability for the windows.
    pub service: Handle,
    /// The window of the client.
    pub window: u8,
}

impl Memory for Remote {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), Outside> {
        service::read(self.service, self.window, address, into).map_err(|_| Outside { address })
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Outside> {
        service::write(self.service, self.window, address, bytes).map_err(|_| Outside { address })
    }
}

/// Numbers that can be guessed.
pub struct Numbers(Random);

impl Source for Numbers {
    fn fill(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            let word = self.0.draw().to_le_bytes();
            piece.iter_mut().zip(word).for_each(|(to, from)| *to = from);
        }
    }
}

/// The client that has printed last, and whether its line is at its end.
static LAST: TaskCell<(&'static str, bool)> = TaskCell::new(("", true));

/// Forgets the client that has printed last, in an earlier life.
pub fn begin() {
    let _ = LAST.with(|last| *last = ("", true));
}

/// Begins a new line of the console, for the program's own text.
pub fn begin_line() {
    if let Some((_, false)) = LAST.with(|last| core::mem::replace(last, ("", true))) {
        console::write(b"\n");
    }
}

/// Returns what is printed of a byte: a client can neither move the cursor nor leave its own line, or else it
/// could write in another's name.
const fn printable(byte: u8) -> u8 {
    match byte {
        b'\n' | b'\t' | b' '..=b'~' => byte,
        _ => b'.',
    }
}

/// The lines of a client on the task's console.
pub struct Lines(&'static str);

impl Terminal for Lines {
    fn print(&mut self, bytes: &[u8]) {
        let (last, mut is_at_start) = LAST.with(|last| *last).unwrap_or(("", true));
        if last != self.0 && !is_at_start {
            console::write(b"\n");
            is_at_start = true;
        }
        let without_return = bytes.split(|byte| *byte == b'\r');
        let lines = without_return.flat_map(|part| part.split_inclusive(|byte| *byte == b'\n'));
        for line in lines {
            if is_at_start {
                console::write(self.0.as_bytes());
                console::write(b"| ");
            }
            for piece in line.chunks(PIECE) {
                let mut shown = [0; PIECE];
                let bytes = shown
                    .iter_mut()
                    .zip(piece)
                    .map(|(to, from)| *to = printable(*from));
                let length = bytes.count();
                console::write(shown.get(..length).unwrap_or_default());
            }
            is_at_start = line.ends_with(b"\n");
        }
        let _ = LAST.with(|last| *last = (self.0, is_at_start));
    }
}
