// SPDX-License-Identifier: Apache-2.0
//! The board's one serial line, as the rest of the kernel sees it.
//!
//! Output goes through a ring that is handed to the transmitter without ever waiting for it, except for
//! the last words of the hypervisor.

use crate::input::{Received, Selector};
use crate::log::Line;
use bulkhead_abi::framing::{DLE, ESCAPE_MASK, HYPERVISOR_CONSOLE, RS, US, needs_escape};
use bulkhead_arch_api::{Console, MAX_PARTITIONS, PartitionId};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use spin::RelaxStrategy;
use spin::mutex::TicketMutex;

const RING: usize = 16 * 1024;
const NAME: usize = 32;
/// Places kept free for the hypervisor's own lines.
const RESERVE: usize = 4 * 1024;
/// Bytes handed to the transmitter at a time: how long the lock is held at most.
const SEND_AT_ONCE: usize = 64;

#[derive(Debug)]
struct State {
    ring: [u8; RING],
    head: usize,
    length: usize,
    names: [([u8; NAME], u8); MAX_PARTITIONS],
    selector: Selector,
    /// Who wrote last, and whether its line is open.
    last: Option<u8>,
    open: bool,
}

/// The serial line.
#[derive(Debug)]
pub struct Terminal<R> {
    state: TicketMutex<State, R>,
    waiting: AtomicBool,
    /// Bytes the ring has room for.
    free: AtomicUsize,
}

impl<R: RelaxStrategy> Terminal<R> {
    pub const fn new() -> Self {
        Self {
            state: TicketMutex::new(State {
                ring: [0; RING],
                head: 0,
                length: 0,
                names: [([0; NAME], 0); MAX_PARTITIONS],
                selector: Selector::new(),
                last: None,
                open: false,
            }),
            waiting: AtomicBool::new(false),
            free: AtomicUsize::new(RING),
        }
    }

    /// Registers the console of a partition.
    pub fn add(&self, partition: PartitionId, name: &str, reads: bool) {
        let mut state = self.state.lock();
        if let Some(entry) = state.names.get_mut(usize::from(partition.0)) {
            for (to, from) in entry.0.iter_mut().zip(name.as_bytes()) {
                *to = *from;
            }
            entry.1 = name.len().min(NAME) as u8;
        }
        if reads && !state.selector.is_directed() {
            state.selector.select(Some(partition));
        }
    }

    /// Writes a line of the hypervisor's own log.
    pub fn log(&self, console: &mut impl Console, now: u64, line: &Line) {
        let mut state = self.state.lock();
        state.begin(None, now);
        state.push_all(line.as_bytes());
        state.push_all(b"\r\n");
        state.open = false;
        self.send(&mut state, console);
    }

    /// Writes for a partition; returns how many bytes were taken.
    pub fn write(&self, console: &mut impl Console, now: u64, partition: PartitionId, bytes: &[u8]) -> usize {
        let mut state = self.state.lock();
        let mut taken = 0_usize;
        for byte in bytes {
            if RING.saturating_sub(state.length) < RESERVE / 2 {
                break;
            }
            if !state.open || state.last != Some(partition.0) {
                state.begin(Some(partition.0), now);
            }
            if needs_escape(*byte) {
                state.push_all(&[DLE, *byte ^ ESCAPE_MASK]);
            } else {
                state.push_all(&[*byte]);
            }
            state.open = *byte != b'\n';
            taken = taken.saturating_add(1);
        }
        self.send(&mut state, console);
        taken
    }

    /// Bytes the partition can write now.
    pub fn room(&self, _partition: PartitionId) -> usize {
        // A byte takes two places at most, a tag and what two vCPUs may write at once the reserve.
        self.free.load(Ordering::Relaxed).saturating_sub(RESERVE) / 2
    }

    /// Whether output waits for the transmitter.
    pub fn has_output(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Hands output to the transmitter.
    pub fn pump(&self, console: &mut impl Console, _now: u64) {
        let mut state = self.state.lock();
        self.send(&mut state, console);
    }

    /// Everything that waits, then `line`, and does not return before it has left.
    pub fn last_words(&self, console: &mut impl Console, now: u64, line: &Line) {
        self.log(console, now, line);
        for _ in 0..RING {
            if !self.has_output() {
                break;
            }
            console.flush();
            self.pump(console, now);
        }
        console.flush();
    }

    /// A byte came in: whose it is.
    pub fn receive(&self, byte: u8) -> Option<(PartitionId, u8)> {
        let mut state = self.state.lock();
        let State { selector, names, .. } = &mut *state;
        let chosen = match selector.receive(byte) {
            Received::Nothing => return None,
            Received::Byte(partition, byte) => return Some((partition, byte)),
            Received::Selection(name) => names
                .iter()
                .zip(0..)
                .find(|(entry, _)| !name.is_empty() && entry.0.get(..usize::from(entry.1)) == Some(name))
                .map(|(_, number)| PartitionId(number)),
        };
        selector.select(chosen);
        None
    }

    fn send(&self, state: &mut State, console: &mut impl Console) {
        for _ in 0..2 {
            let end = state.head.saturating_add(state.length).min(RING);
            let end = end.min(state.head.saturating_add(SEND_AT_ONCE));
            let part = state.ring.get(state.head..end).unwrap_or(&[]);
            if part.is_empty() {
                break;
            }
            let sent = console.send(part);
            state.length = state.length.saturating_sub(sent);
            state.head = state.head.saturating_add(sent);
            if state.head >= RING {
                state.head = 0;
            }
        }
        self.waiting.store(state.length != 0, Ordering::Relaxed);
        self.free
            .store(RING.saturating_sub(state.length), Ordering::Relaxed);
    }
}

impl State {
    fn begin(&mut self, who: Option<u8>, now: u64) {
        self.push_all(&[RS]);
        if self.open {
            self.push_all(b"\r\n");
        }
        let micros = (now / 1000) % 1_000_000;
        let seconds = now / 1_000_000_000;
        let mut digits = Line::of("[");
        digits.decimal(seconds).text(".");
        let mut scale = 100_000_u64;
        while scale > micros.max(1) {
            digits.text("0");
            scale /= 10;
        }
        if micros == 0 {
            digits.text("0");
        } else {
            digits.decimal(micros);
        }
        self.push_all(digits.as_bytes());
        self.push_all(b"] ");
        match who.and_then(|who| self.names.get(usize::from(who)).copied()) {
            Some((name, length)) => self.push_all(name.get(..usize::from(length)).unwrap_or(&[])),
            None => self.push_all(HYPERVISOR_CONSOLE.as_bytes()),
        }
        self.push_all(b": ");
        self.push_all(&[US]);
        self.last = who;
    }

    fn push_all(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let mut at = self.head.saturating_add(self.length);
            if at >= RING {
                at = at.saturating_sub(RING);
            }
            if self.length < RING
                && let Some(place) = self.ring.get_mut(at)
            {
                *place = *byte;
                self.length = self.length.saturating_add(1);
            }
        }
    }
}

/// Bytes that a task can hold unread.
const INPUT_LEN: usize = 64;

/// Input of a partition without a virtual UART.
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

    /// Adds a byte; one too many is lost.
    pub fn put(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length = self.length.saturating_add(1);
        }
    }

    /// Takes the oldest bytes; returns how many.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        let taken = into.len().min(self.length);
        for (to, from) in into.iter_mut().zip(self.bytes.iter().take(taken)) {
            *to = *from;
        }
        self.bytes.copy_within(taken..self.length, 0);
        self.length = self.length.saturating_sub(taken);
        taken
    }

    pub const fn clear(&mut self) {
        self.length = 0;
    }
}
