// SPDX-License-Identifier: Apache-2.0
//! Messages through ports.
//!
//! A message is in a [`Message`], which has the alignment that the hypervisor asks for. The address of the
//! message is the one that the hypervisor sees: the partition's physical one. So a VM that translates its own
//! addresses maps its messages where they are.

use bulkhead_abi::hypercall::{LINE_SENDER, SEND_REPLACES};
use bulkhead_abi::{Error, Operation, Rights};

use crate::hypercall::{Handle, call};

/// Room for a message of up to `N` bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Message<const N: usize>(pub [u8; N]);

impl<const N: usize> Message<N> {
    /// Returns a message of zeros.
    #[must_use]
    pub const fn new() -> Self {
        Self([0; N])
    }

    fn address(&self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    fn address_mut(&mut self) -> u64 {
        self.0.as_mut_ptr().expose_provenance() as u64
    }
}

impl<const N: usize> Default for Message<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// A message that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its bytes in the buffer.
    pub length: usize,
    /// The number of the sender, on a port that identifies.
    pub sender: Option<u8>,
    /// The capability to reply by, if the sender waits for a reply.
    pub reply: Option<Handle>,
    /// The capability that came with it.
    pub capability: Option<Handle>,
    /// True if it is an interrupt of a line that is bound to the port ([`crate::device::Line`]).
    pub is_interrupt: bool,
}

impl Received {
    fn new([length, sender, reply, capability]: [u64; 4]) -> Self {
        let handle = |index: u64| (index != 0).then_some(Handle(index as u32));
        Self {
            length: length as usize,
            sender: sender
                .checked_sub(1)
                .filter(|_| sender != LINE_SENDER)
                .map(|sender| sender as u8),
            reply: handle(reply),
            capability: handle(capability),
            is_interrupt: sender == LINE_SENDER,
        }
    }
}

fn word(handle: Handle) -> u64 {
    u64::from(handle.0)
}

fn gift(capability: Option<(Handle, Rights)>) -> u64 {
    capability.map_or(0, |(handle, rights)| word(handle) | u64::from(rights.0) << 16)
}

/// Sends the first `length` bytes of a message, with a capability if there is one.
///
/// # Errors
/// `NoSpace` if no vCPU waits for it and the port is full; else as all calls.
pub fn send<const N: usize>(
    port: Handle,
    message: &Message<N>,
    length: usize,
    capability: Option<(Handle, Rights)>,
) -> Result<(), Error> {
    let length = length.min(N) as u64;
    let arguments = [word(port), message.address(), length, gift(capability), 0, 0];
    call(Operation::PortSend, arguments).map(drop)
}

/// Sends the first `length` bytes of a message. If the port is full, the message takes the place of the
/// oldest one, if that is the partition's own: the port keeps the newest messages.
///
/// # Errors
/// `NoSpace` if the oldest message is for another receiver; else as all calls.
pub fn replace<const N: usize>(port: Handle, message: &Message<N>, length: usize) -> Result<(), Error> {
    let length = length.min(N) as u64;
    let arguments = [word(port), message.address(), length, SEND_REPLACES, 0, 0];
    call(Operation::PortSend, arguments).map(drop)
}

/// Waits for a message, at most until `deadline` (nanoseconds since boot, 0 = for ever).
///
/// # Errors
/// `TimedOut` at the deadline, `Interrupted` in a VM for which an interrupt waits; else as all calls.
pub fn receive<const N: usize>(
    port: Handle,
    buffer: &mut Message<N>,
    deadline: u64,
) -> Result<Received, Error> {
    let arguments = [word(port), buffer.address_mut(), N as u64, deadline, 0, 0];
    call(Operation::PortReceive, arguments).map(Received::new)
}

/// Takes a message, without waiting.
///
/// # Errors
/// `TimedOut` if there is none; else as all calls.
pub fn try_receive<const N: usize>(port: Handle, buffer: &mut Message<N>) -> Result<Received, Error> {
    let arguments = [word(port), buffer.address_mut(), N as u64, 0, 0, 0];
    call(Operation::PortTryReceive, arguments).map(Received::new)
}

/// Sends the first `length` bytes of a message, and waits for the reply, at most until `deadline`.
///
/// # Errors
/// As [`send`] and [`receive`]. After `Interrupted` the call is open, and [`resume`] goes on: the buffer must
/// stay until then. `Revoked` if the one who received the message ended without a reply.
pub fn send_receive<const N: usize, const M: usize>(
    port: Handle,
    message: &Message<N>,
    length: usize,
    buffer: &mut Message<M>,
    deadline: u64,
) -> Result<Received, Error> {
    request(
        Operation::PortSendReceive,
        port,
        message,
        length,
        buffer,
        deadline,
    )
}

/// Does [`send_receive`], and lets the receiver run in the caller's place meanwhile.
///
/// # Errors
/// As [`send_receive`]; `DonationCycle` if the receiver waits for the caller.
pub fn send_receive_donate<const N: usize, const M: usize>(
    port: Handle,
    message: &Message<N>,
    length: usize,
    buffer: &mut Message<M>,
    deadline: u64,
) -> Result<Received, Error> {
    request(
        Operation::PortSendReceiveDonate,
        port,
        message,
        length,
        buffer,
        deadline,
    )
}

/// Sends the first `length` bytes of a message, and waits until the receiver has taken and acknowledged it,
/// at most until `deadline`. The receiver replies with an empty message. A sender for which the port keeps
/// room never meets a full port this way, with any number of other senders.
///
/// # Errors
/// As [`send_receive`].
pub fn deliver<const N: usize>(
    port: Handle,
    message: &Message<N>,
    length: usize,
    deadline: u64,
) -> Result<(), Error> {
    let mut empty = Message::<0>::new();
    let mut result = send_receive_donate(port, message, length, &mut empty, deadline);
    while result == Err(Error::Interrupted) {
        result = resume(deadline);
    }
    result.map(drop)
}

fn request<const N: usize, const M: usize>(
    operation: Operation,
    port: Handle,
    message: &Message<N>,
    length: usize,
    buffer: &mut Message<M>,
    deadline: u64,
) -> Result<Received, Error> {
    let (from, length) = (message.address(), length.min(N) as u64);
    let arguments = [word(port), from, length, buffer.address_mut(), M as u64, deadline];
    call(operation, arguments).map(Received::new)
}

/// Goes on to wait for the reply of the call that an interrupt ended.
///
/// # Errors
/// As [`send_receive`]; `WrongState` if no call is open.
pub fn resume(deadline: u64) -> Result<Received, Error> {
    call(Operation::PortResume, [0, deadline, 0, 0, 0, 0]).map(Received::new)
}

/// Sends the reply to a call, with a capability if there is one. The capability to reply by is then gone.
///
/// # Errors
/// `Revoked` if the caller has given up; `NoSpace` if the caller has less room, and its call has ended with
/// that; else as all calls.
pub fn reply<const N: usize>(
    to: Handle,
    message: &Message<N>,
    length: usize,
    capability: Option<(Handle, Rights)>,
) -> Result<(), Error> {
    let length = length.min(N) as u64;
    let arguments = [word(to), message.address(), length, gift(capability), 0, 0];
    call(Operation::PortReply, arguments).map(drop)
}

/// Sends the first `length` bytes of the buffer as the reply to a call, and waits for the next message in the
/// same buffer.
///
/// # Errors
/// As [`reply`]: nothing was received then. Else as [`receive`].
pub fn reply_receive<const N: usize>(
    port: Handle,
    to: Option<Handle>,
    length: usize,
    buffer: &mut Message<N>,
    deadline: u64,
) -> Result<Received, Error> {
    let (length, to) = (length.min(N) as u64, to.map_or(0, word));
    let arguments = [word(port), buffer.address_mut(), N as u64, length, to, deadline];
    call(Operation::PortReceiveDonate, arguments).map(Received::new)
}
