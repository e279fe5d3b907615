// SPDX-License-Identifier: Apache-2.0
//! The server's side of windows: accesses of clients, their memory and their interrupts.

use bulkhead_abi::hypercall::{KEPT_GROUP, KEPT_WORDS, MAX_COPY, OWN_MEMORY, groups_to_keep};
use bulkhead_abi::{Error, Operation};

use crate::hypercall::{Handle, call};

/// An access of a client to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The number by which it is answered.
    pub number: u64,
    /// The number of the window.
    pub window: u8,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// The offset in the window.
    pub offset: u64,
    /// The value that is stored, if it is a store.
    pub stored: Option<u64>,
}

/// The windows with news, as bitmaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// Those that their clients have notified.
    pub notified: u64,
    /// Those whose clients, or whose server, have started anew. No interrupt waits there.
    pub anew: u64,
    /// Those whose clients have started anew. All that was known of the clients is over.
    pub clients: u64,
}

/// Takes the access of the most important client that waits.
///
/// # Errors
/// `TimedOut` if none waits; else as all calls.
pub fn take(service: Handle) -> Result<Access, Error> {
    let [number, shape, offset, value] = call(Operation::ServiceTake, [word(service), 0, 0, 0, 0, 0])?;
    Ok(Access {
        number,
        window: shape as u8,
        size: (shape >> 8) as u8,
        offset,
        stored: (shape & 1 << 16 != 0).then_some(value),
    })
}

/// Answers an access. A load gets `value`.
///
/// # Errors
/// `WrongState` if no vCPU waits for the answer any more; else as all calls.
pub fn answer(service: Handle, number: u64, value: u64) -> Result<(), Error> {
    call(Operation::ServiceAnswer, [word(service), number, value, 0, 0, 0]).map(drop)
}

/// Takes the news of all windows.
///
/// # Errors
/// As all calls.
pub fn news(service: Handle) -> Result<News, Error> {
    let [notified, anew, clients, _] = call(Operation::ServiceNews, [word(service), 0, 0, 0, 0, 0])?;
    Ok(News {
        notified,
        anew,
        clients,
    })
}

/// Adds causes of the interrupt of a window, and takes causes away.
///
/// # Errors
/// `WrongState` as [`read`]; else as all calls.
pub fn interrupt(service: Handle, window: u8, add: u32, remove: u32) -> Result<(), Error> {
    let arguments = [word(service), window.into(), add.into(), remove.into(), 0, 0];
    call(Operation::ServiceInterrupt, arguments).map(drop)
}

/// Copies from the memory of a window's client.
///
/// # Errors
/// `WrongState` if the client has started anew and [`news`] has not said so yet; `OutOfReach` if the client
/// grants no such memory; else as all calls. Some of the bytes may have been copied.
pub fn read(service: Handle, window: u8, address: u64, into: &mut [u8]) -> Result<(), Error> {
    let mut at = address;
    for piece in into.chunks_mut(MAX_COPY) {
        let place = piece.as_mut_ptr().expose_provenance() as u64;
        let arguments = [word(service), window.into(), at, piece.len() as u64, place, 0];
        call(Operation::ServiceRead, arguments)?;
        at = at.wrapping_add(MAX_COPY as u64);
    }
    Ok(())
}

/// Copies into the memory of a window's client.
///
/// # Errors
/// As [`read`].
pub fn write(service: Handle, window: u8, address: u64, bytes: &[u8]) -> Result<(), Error> {
    let mut at = address;
    for piece in bytes.chunks(MAX_COPY) {
        let place = piece.as_ptr().expose_provenance() as u64;
        let arguments = [word(service), window.into(), at, piece.len() as u64, place, 0];
        call(Operation::ServiceWrite, arguments)?;
        at = at.wrapping_add(MAX_COPY as u64);
    }
    Ok(())
}

/// Keeps words beside a window, from word `first` on. They outlive the server.
///
/// # Errors
/// `WrongState` as [`read`]; `InvalidArgument` if `first` is no multiple of 3 below 15; else as all calls.
pub fn keep(service: Handle, window: u8, first: usize, words: [u64; KEPT_GROUP]) -> Result<(), Error> {
    let [a, b, c] = words;
    let arguments = [word(service), window.into(), first as u64, a, b, c];
    call(Operation::ServiceKeep, arguments).map(drop)
}

/// Returns three words that were kept beside a window.
///
/// # Errors
/// `InvalidArgument` as [`keep`]; else as all calls.
pub fn kept(service: Handle, window: u8, first: usize) -> Result<[u64; KEPT_GROUP], Error> {
    let arguments = [word(service), window.into(), first as u64, 0, 0, 0];
    let [a, b, c, _] = call(Operation::ServiceKept, arguments)?;
    Ok([a, b, c])
}

/// The words that are kept beside a window for the server's next life, as this life knows them.
///
/// **An end at any time.** A life can end between any two calls. So [`KeptWords::keep`] writes only the
/// groups that have changed, in ascending order, and no mark around them. A server that keeps its state
/// *before* it answers an access, and whose every access changes one group, outlives itself: the next life
/// finds the state before the access or after the access, and the access that was not answered comes again.
/// If an access changes several groups, the first of them must say what the others are worth.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeptWords([u64; KEPT_WORDS]);

impl KeptWords {
    /// Returns the words that an earlier life has kept. They are zeros if there are none.
    #[must_use]
    pub fn find(service: Handle, window: u8) -> Self {
        let mut words = Self::default();
        let (groups, _) = words.0.as_chunks_mut();
        for (number, group) in groups.iter_mut().enumerate() {
            *group = kept(service, window, number * KEPT_GROUP).unwrap_or_default();
        }
        words
    }

    /// Returns the words.
    #[must_use]
    pub const fn words(&self) -> &[u64; KEPT_WORDS] {
        &self.0
    }

    /// Keeps `wanted`, as far as it differs from what is kept. A client that starts anew meanwhile has
    /// nothing to keep: [`news`] tells of it.
    pub fn keep(&mut self, service: Handle, window: u8, wanted: &[u64; KEPT_WORDS]) {
        for (first, group) in groups_to_keep(&self.0, wanted) {
            let _ = keep(service, window, first, group);
        }
        self.0 = *wanted;
    }
}

/// Memory that a device of the server can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The first address, as the owner sees it.
    pub first: u64,
    /// Bytes. 0 if the owner has started anew, and [`news`] has not said so yet.
    pub bytes: u64,
    /// The bus address of the first.
    pub bus: u64,
    /// The number of beginnings and ends of stops of the server's devices. Odd while one goes on.
    pub stops: u64,
}

impl Reach {
    /// Returns the bus address of a range, if all of the range is there.
    #[must_use]
    pub fn bus_of(&self, address: u64, bytes: u64) -> Option<u64> {
        let offset = address.checked_sub(self.first)?;
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes).then(|| self.bus.wrapping_add(offset))
    }
}

/// Returns where devices of the server find the memory that the client of `window` grants.
///
/// # Errors
/// `NotSupported` if the server owns no device; else as all calls.
pub fn reach(service: Handle, window: u8) -> Result<Reach, Error> {
    reach_at(service, window, 0)
}

/// Returns where devices of the server find its own memory from `address` on.
///
/// # Errors
/// As [`reach`]; `InvalidArgument` if no memory that can be written is there.
pub fn reach_own(service: Handle, address: u64) -> Result<Reach, Error> {
    reach_at(service, OWN_MEMORY, address)
}

fn reach_at(service: Handle, window: u8, address: u64) -> Result<Reach, Error> {
    let arguments = [word(service), window.into(), address, 0, 0, 0];
    let [first, bytes, bus, stops] = call(Operation::ServiceReach, arguments)?;
    Ok(Reach {
        first,
        bytes,
        bus,
        stops,
    })
}

fn word(handle: Handle) -> u64 {
    u64::from(handle.0)
}
