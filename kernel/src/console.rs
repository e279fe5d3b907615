// SPDX-License-Identifier: Apache-2.0
//! Console output: how everybody's bytes share the board's one transmitter.
//!
//! ```text
//! partition --put--> ring --+
//! partition --put--> ring --+-- pump --> tag, escape --> stage --> transmitter
//! log -------log---> ring --+
//! ```
//!
//! **Model.** Each console has a ring of its own. Bytes are put into it by the partition's own exits and taken out by
//! [`Multiplexer::pump`], which frames them ([`bulkhead_abi::framing`]) and hands them to the transmitter. A
//! console gets the transmitter when it has a whole line, or half a ring, or a piece of a line (a prompt) that is
//! [`PARTIAL_AGE_NS`] old; so lines stay whole although partitions write byte by byte.
//!
//! **Who pays.** `put` costs its bytes. `pump` sends at most [`PUMP_BYTES`] and is called in the exits of
//! those who print, and from time to time by a pCPU whose partitions have left something ([`Multiplexer::due`]). It
//! never waits: not for the transmitter, and not for another pCPU that is pumping (that one
//! does the work). So whatever a partition prints, another partition on another pCPU is not delayed at all, except by
//! a holder of the same console's write capability; and one on the same pCPU by at most one `pump` per drain period.
//!
//! **Fairness.** Consoles take turns, a line or [`BURST`] bytes each; the log gets every other turn. So
//! a console with a line waits for at most two turns of each other console, and a flood of the log
//! or of a console halves the others' share but cannot take it.
//!
//! **Losses.** None for partitions: a full ring is reported as no room. A log line that finds no place is
//! dropped and counted, and the count is shown; the log's ring is its own, so only the log can fill it.

mod line;
mod ring;

use crate::log::{LINE_LEN, Line};
use crate::table::PerPartition;
use bulkhead_abi::framing::HYPERVISOR_CONSOLE;
use bulkhead_abi::size::limit;
use bulkhead_arch_api::{Console, MAX_PARTITIONS, PartitionId};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use line::{Stage, tag};
use ring::{Ring, View};
use spin::RelaxStrategy;
use spin::mutex::{SpinMutex, TicketMutex};
use spin::once::Once;

/// Bytes that wait for a console's turn.
pub const RING: usize = limit(128, 512);
/// Bytes of the log that wait for its turn.
const LOG_RING: usize = limit(512, 8192);
/// Bytes that a line of the log takes at most, with its end.
const LOG_LINE: usize = LINE_LEN + 2;
/// Bytes that one call of [`Multiplexer::pump`] sends at most: a line of usual length and its tag, so that it leaves in the
/// exit that ended it if the transmitter is free. On a microcontroller somebody's interrupt waits meanwhile.
pub const PUMP_BYTES: usize = limit(48, 128);
/// Bytes of an unfinished line after which another console may have the transmitter.
pub const BURST: u32 = 256;
/// Age at which a piece of a line is sent although its end is missing.
pub const PARTIAL_AGE_NS: u64 = 10_000_000;
/// How soon bytes that the transmitter did not take are looked at again.
pub const DRAIN_PERIOD_NS: u64 = 500_000;

const PARTIAL_AGE_US: u32 = (PARTIAL_AGE_NS / 1000) as u32;
/// How often [`Multiplexer::last_words`] tries to get the transmitter from another pCPU. That one needs a
/// thousand steps at most, unless it died there.
const LAST_TRIES: usize = 100_000;
/// Upper limit of rounds in which everything that can wait is sent: one byte each.
const LAST_ROUNDS: usize = 8 * (LOG_RING + MAX_PARTITIONS * RING);

/// Whose output: a partition by number, or the log.
type Source = u8;
const LOG: Source = MAX_PARTITIONS as u8;

#[derive(Debug)]
struct Port<'n, R> {
    ring: Ring<RING>,
    /// Held by whoever puts bytes in; never by whoever takes them out.
    writer: TicketMutex<(), R>,
    /// Of the system image, which stays.
    name: Once<&'n str, R>,
}

/// State of the transmitter's side; held by whoever pumps.
#[derive(Debug)]
struct Transmitter {
    stage: Stage,
    /// Whose text was sent last.
    owner: Option<Source>,
    /// Whether that text ended within a line.
    open: bool,
    /// Bytes of it since its tag or its last chance to go on.
    burst: u32,
    /// The partition that had its turn last.
    turn: u8,
    /// The log had its turn last.
    log_had_turn: bool,
}

/// All consoles' output.
#[derive(Debug)]
pub struct Multiplexer<'n, R> {
    ports: PerPartition<Port<'n, R>>,
    log: Ring<LOG_RING>,
    /// Held by whoever adds a log line: how many lines were lost before.
    log_writer: TicketMutex<u32, R>,
    /// Partitions whose rings are not empty.
    waiting: AtomicU32,
    /// Whether the stage holds bytes that the transmitter has not taken.
    staged: AtomicBool,
    transmitter: SpinMutex<Transmitter, R>,
}

impl<R: RelaxStrategy> Default for Multiplexer<'_, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'n, R: RelaxStrategy> Multiplexer<'n, R> {
    /// Nothing waits; no console has a name.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ports: PerPartition::new(
                [const {
                    Port {
                        ring: Ring::new(),
                        writer: TicketMutex::new(()),
                        name: Once::new(),
                    }
                }; MAX_PARTITIONS],
            ),
            log: Ring::new(),
            log_writer: TicketMutex::new(0),
            waiting: AtomicU32::new(0),
            staged: AtomicBool::new(false),
            transmitter: SpinMutex::new(Transmitter {
                stage: Stage::new(),
                owner: None,
                open: false,
                burst: 0,
                turn: 0,
                log_had_turn: false,
            }),
        }
    }

    /// Names the console of a partition, once, at boot.
    pub fn add(&self, partition: PartitionId, name: &'n str) {
        self.ports.of(partition).name.call_once(|| name);
    }

    /// The partition whose console has this name.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<PartitionId> {
        (0..MAX_PARTITIONS as u8)
            .map(PartitionId)
            .find(|partition| !name.is_empty() && self.name(*partition) == Some(name))
    }

    fn name(&self, partition: PartitionId) -> Option<&[u8]> {
        self.ports.of(partition).name.get().map(|name| name.as_bytes())
    }

    /// Puts bytes of a partition into its ring; returns how many it took.
    pub fn put(&self, partition: PartitionId, bytes: &[u8], now: u64) -> usize {
        let port = self.ports.of(partition);
        let writer = port.writer.lock();
        let taken = port.ring.view().push(bytes, micros(now));
        drop(writer);
        // After the bytes, even if the mark is there: `Multiplexer::settle` takes it away and then looks for bytes.
        if taken != 0 {
            self.waiting.fetch_or(mark(partition.0), Ordering::AcqRel);
        }
        taken
    }

    /// Adds a line to the log. One that finds no place is counted, and the count takes the place of the next
    /// that does.
    pub fn log(&self, line: &Line) {
        let view = self.log.view();
        let mut lost = self.log_writer.lock();
        let end: &[u8] = b"\r\n";
        let parts = [line.as_bytes(), end];
        let fits = match *lost {
            0 => view.push_all(&parts),
            lost => push_behind_report(view, lost, &parts),
        };
        if fits {
            *lost = 0;
        } else {
            *lost = lost.saturating_add(1);
        }
    }

    /// Whether the log takes a line of any length now.
    #[must_use]
    pub fn has_log_room(&self) -> bool {
        self.log.view().length() <= LOG_RING.saturating_sub(LOG_LINE)
    }

    /// Bytes that the partition's ring takes now.
    #[must_use]
    pub fn room(&self, partition: PartitionId) -> usize {
        // With `Multiplexer::pump`'s fence: a caller who first notes that it lacks room and then finds none here
        // is seen by the pump that makes room.
        fence(Ordering::SeqCst);
        RING.saturating_sub(self.ports.of(partition).ring.view().length())
    }

    /// Whether a call of [`Multiplexer::pump`] would have something to do for this partition at once, or is owed for
    /// what others could not send.
    #[must_use]
    pub fn is_urgent(&self, partition: PartitionId) -> bool {
        let view = self.ports.of(partition).ring.view();
        self.staged.load(Ordering::Relaxed) || view.lines() != 0 || view.length() >= RING / 2
    }

    /// In how many nanoseconds somebody must call [`Multiplexer::pump`]; `None` if nothing waits.
    #[must_use]
    pub fn due(&self, now: u64) -> Option<u64> {
        if self.staged.load(Ordering::Relaxed) || self.log.view().length() != 0 {
            return Some(DRAIN_PERIOD_NS);
        }
        let mut rest = self.waiting.load(Ordering::Acquire);
        let mut soonest = None;
        for _ in 0..MAX_PARTITIONS {
            if rest == 0 {
                break;
            }
            let partition = rest.trailing_zeros() as u8;
            rest &= rest.wrapping_sub(1);
            let view = self.view(partition);
            if view.length() == 0 {
                // Sent by another pCPU between the putting and the marking.
                self.settle(partition);
                continue;
            }
            let wait = if view.lines() != 0 || view.length() >= RING / 2 {
                DRAIN_PERIOD_NS
            } else {
                let left = PARTIAL_AGE_US.saturating_sub(view.age(micros(now)));
                u64::from(left).saturating_mul(1000).max(DRAIN_PERIOD_NS)
            };
            soonest = Some(soonest.map_or(wait, |soonest: u64| soonest.min(wait)));
        }
        soonest
    }

    /// Hands at most [`PUMP_BYTES`] bytes to the transmitter, unless another pCPU is just doing that. Never waits.
    pub fn pump(&self, console: &mut impl Console, now: u64) {
        let Some(mut transmitter) = self.transmitter.try_lock() else {
            return;
        };
        self.send(&mut transmitter, console, now, false);
        drop(transmitter);
        fence(Ordering::SeqCst);
    }

    /// Adds a line to the log and sends what the transmitter takes at once: for boot, where nobody else's time is spent.
    pub fn log_now(&self, console: &mut impl Console, line: &Line, now: u64) {
        self.log(line);
        for _ in 0..LOG_RING / PUMP_BYTES {
            if self.due(now).is_none() {
                break;
            }
            self.pump(console, now);
        }
    }

    /// Sends everything that waits, then `line`, and returns when it has left. For the end of the hypervisor: nobody
    /// prints any more, and if a pCPU died while it was sending, its unfinished work is left behind.
    pub fn last_words(&self, console: &mut impl Console, line: &Line, now: u64) {
        let mut open = true;
        for _ in 0..LAST_TRIES {
            if let Some(mut transmitter) = self.transmitter.try_lock() {
                for _ in 0..LAST_ROUNDS {
                    if !self.send(&mut transmitter, console, now, true) {
                        break;
                    }
                    console.flush();
                }
                open = transmitter.open;
                transmitter.open = false;
                break;
            }
            R::relax();
        }
        let mut stage = Stage::new();
        tag(&mut stage, open, now, HYPERVISOR_CONSOLE.as_bytes());
        send_all(console, stage.unsent(usize::MAX));
        send_all(console, line.as_bytes());
        send_all(console, b"\r\n");
    }

    /// Sends up to [`PUMP_BYTES`]; with `all`, pieces of lines too. False if nothing is left to send.
    fn send(&self, transmitter: &mut Transmitter, console: &mut impl Console, now: u64, all: bool) -> bool {
        let mut budget = PUMP_BYTES;
        while budget != 0 {
            if transmitter.stage.is_empty() && !self.fill(transmitter, now, all) {
                self.staged.store(false, Ordering::Relaxed);
                return false;
            }
            let sent = console.send(transmitter.stage.unsent(budget));
            if sent == 0 {
                break;
            }
            transmitter.stage.advance(sent);
            budget = budget.saturating_sub(sent);
        }
        self.staged.store(true, Ordering::Relaxed);
        true
    }

    /// Frames the next bytes into the empty stage; false if there are none to send yet.
    fn fill(&self, transmitter: &mut Transmitter, now: u64, all: bool) -> bool {
        let Some(source) = self.choose(transmitter, micros(now), all) else {
            return false;
        };
        if !(transmitter.open && transmitter.owner == Some(source)) {
            let name = match source {
                LOG => HYPERVISOR_CONSOLE.as_bytes(),
                partition => self.name(PartitionId(partition)).unwrap_or(b"?"),
            };
            tag(&mut transmitter.stage, transmitter.open, now, name);
            transmitter.owner = Some(source);
            transmitter.open = true;
            transmitter.burst = 0;
            transmitter.log_had_turn = source == LOG;
            if source != LOG {
                transmitter.turn = source;
            }
        }
        let stage = &mut transmitter.stage;
        let room = stage.room();
        let (taken, ended) = stage.text(|sink| self.view(source).take_line(room, |byte| sink.put(byte)));
        transmitter.burst = transmitter.burst.saturating_add(taken);
        transmitter.open = !ended;
        self.settle(source);
        true
    }

    /// Whose bytes come next.
    fn choose(&self, transmitter: &mut Transmitter, now: u32, all: bool) -> Option<Source> {
        let owner = transmitter
            .owner
            .filter(|owner| transmitter.open && self.view(*owner).length() != 0);
        if let Some(owner) = owner
            && transmitter.burst < BURST
        {
            return Some(owner);
        }
        let log_waits = self.log.view().length() != 0;
        if log_waits && !transmitter.log_had_turn {
            return Some(LOG);
        }
        let next = self.next_partition(transmitter.turn, now, all);
        // A flood of the log shares the transmitter only with those who want it.
        if next.is_none() && log_waits {
            return Some(LOG);
        }
        if next.is_none() || next == owner {
            transmitter.burst = 0;
            return owner;
        }
        next
    }

    /// The first partition behind `turn`, in a circle, whose bytes can be sent.
    fn next_partition(&self, turn: u8, now: u32, all: bool) -> Option<Source> {
        let waiting = self.waiting.load(Ordering::Acquire);
        let start = turn.wrapping_add(1);
        let mut rest = waiting.rotate_right(u32::from(start));
        for _ in 0..MAX_PARTITIONS {
            if rest == 0 {
                break;
            }
            let partition = (rest.trailing_zeros() as u8).wrapping_add(start) % LOG;
            rest &= rest.wrapping_sub(1);
            let view = self.view(partition);
            let length = view.length();
            let piece_due = length != 0 && (all || view.age(now) >= PARTIAL_AGE_US);
            if view.lines() != 0 || length >= RING / 2 || piece_due {
                return Some(partition);
            }
        }
        None
    }

    /// Takes the mark of an empty ring away.
    fn settle(&self, source: Source) {
        if source == LOG || self.view(source).length() != 0 {
            return;
        }
        self.waiting.fetch_and(!mark(source), Ordering::AcqRel);
        if self.view(source).length() != 0 {
            self.waiting.fetch_or(mark(source), Ordering::AcqRel);
        }
    }

    fn view(&self, source: Source) -> View<'_> {
        match source {
            LOG => self.log.view(),
            partition => self.ports.of(PartitionId(partition)).ring.view(),
        }
    }
}

const fn mark(partition: u8) -> u32 {
    1_u32.wrapping_shl(partition as u32)
}

/// A line with the number of those before it that found no place; false if there is none for both. On its own, so that it is on the stack only then.
#[cold]
#[inline(never)]
fn push_behind_report(log: ring::View<'_>, lost: u32, line: &[&[u8]; 2]) -> bool {
    let mut report = Line::of("log lines lost: ");
    report.decimal(u64::from(lost));
    let [line, end] = *line;
    log.push_all(&[report.as_bytes(), end, line, end])
}

/// Time for the age of a piece of a line: it wraps after more than an hour, which no piece of a line becomes.
const fn micros(nanoseconds: u64) -> u32 {
    ((nanoseconds / 1000) & 0xFFFF_FFFF) as u32
}

/// Sends all bytes, waiting for the transmitter. At most two rounds per byte: a flushed transmitter takes one.
fn send_all(console: &mut impl Console, bytes: &[u8]) {
    let mut rest = bytes;
    for _ in 0..bytes.len().saturating_mul(2) {
        if rest.is_empty() {
            break;
        }
        let sent = console.send(rest);
        rest = rest.get(sent..).unwrap_or(&[]);
        console.flush();
    }
}
