// SPDX-License-Identifier: Apache-2.0
//! Console output: all consoles share the board's one transmitter.
//!
//! ```text
//! partition --put--> ring ------+
//! partition --put--> ring ------+-- pump --> tag, escape --> stage --> transmitter
//! recorder: entries --> form ---+
//! ```
//!
//! **Model.** Each console has a ring of its own. The exits of a partition put its bytes into the ring.
//! [`Multiplexer::pump`] takes the bytes out, frames them ([`bulkhead_abi::framing`]) and hands them to the
//! transmitter. A console gets the transmitter when it has a whole line or half a ring. A piece of a line (a
//! prompt) gets the transmitter when the piece is [`PARTIAL_AGE_NS`] old. So lines stay whole although
//! partitions write byte by byte.
//!
//! **Costs.** The cost of `put` grows with its bytes. `pump` sends at most [`PUMP_BYTES`]. The exits of
//! partitions that print call `pump`. A pCPU whose partitions have left something also calls `pump` from time
//! to time ([`Multiplexer::due`]). `pump` never waits for the transmitter. `pump` does not wait for another
//! pCPU that is pumping either: that pCPU does the work. So the output of a partition does not delay a
//! partition on another pCPU at all, except a holder of the write capability of the same console. The output
//! delays a partition on the same pCPU by at most one `pump` per drain period.
//!
//! **Fairness.** Consoles take turns of a line or [`BURST`] bytes each. The log gets every other turn. So a
//! console with a line waits for at most two turns of each other console. A flood of the log or of a console
//! halves the share of the others, but cannot take that share.
//!
//! **Form of the log.** The log holds entries ([`bulkhead_abi::log`]). An entry becomes text when the
//! transmitter has room, a piece of its line at a time. So an event costs a few words, and each call of
//! [`Multiplexer::pump`] writes a few bytes, however long the line is. Without the part `text` an entry
//! leaves as a record instead, a word at a time ([`shown`]).
//!
//! **Losses.** Partitions lose nothing: a full ring is reported as no room. An entry of the log that is
//! overwritten before it was shown is counted, and the count is shown. Only the log can fill its ring.

mod line;
mod records;
mod ring;
pub mod shown;
mod text;

pub use records::Records;
pub use text::Text;

use crate::parts::{Is, TEXT};
use crate::table::PerPartition;
use bulkhead_abi::log::{ENTRIES, Entry, Kind, LINE_MAX, Names};
use bulkhead_abi::size::limit;
use bulkhead_arch_api::{Console, MAX_PARTITIONS, PartitionId};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use line::{Stage, tag};
use ring::{Ring, View};
use shown::Shown;
use spin::RelaxStrategy;
use spin::mutex::{SpinMutex, TicketMutex};
use spin::once::Once;

/// The choice of a form of the log.
pub trait Form {
    /// The form.
    type Shown: Shown;
}

impl Form for Is<true> {
    type Shown = Text;
}

impl Form for Is<false> {
    type Shown = Records;
}

/// The form of the log in this build: text, if the part `text` is there.
pub type Chosen = <Is<TEXT> as Form>::Shown;

/// The size of a console's ring: bytes that wait for the console's turn.
pub const RING: usize = limit(128, 512);
/// The most bytes that one call of [`Multiplexer::pump`] sends. An interrupt of a partition may wait
/// meanwhile. So a long line leaves in several steps: more than a UART of 115,200 baud sends in the time
/// between them ([`DRAIN_PERIOD_NS`]).
pub const PUMP_BYTES: usize = limit(16, 24);
/// The bytes of text that are framed at a time.
const AT_ONCE: usize = 16;
/// The bytes of an unfinished line after which another console may have the transmitter.
pub const BURST: u32 = 256;
/// The age at which a piece of a line is sent although its end is missing.
pub const PARTIAL_AGE_NS: u64 = 10_000_000;
/// The time after which a pCPU looks again at bytes that the transmitter did not take.
pub const DRAIN_PERIOD_NS: u64 = 1_000_000;

const PARTIAL_AGE_US: u32 = (PARTIAL_AGE_NS / 1000) as u32;
/// The number of times that [`Multiplexer::drain`] tries to get the transmitter from another pCPU. That
/// pCPU needs a thousand steps at most, unless it died there.
const LAST_TRIES: usize = 100_000;
/// The upper limit of calls that send the lines of the boot so far.
const BOOT_PUMPS: usize = ENTRIES;
/// The upper limit of rounds in which everything that can wait is sent, with one byte in each round.
const LAST_ROUNDS: usize = 8 * (ENTRIES * LINE_MAX + MAX_PARTITIONS * RING);

/// The log, as a reader that turns its entries into text sees it.
pub trait Log: Names {
    /// Returns the number of entries that were not taken yet.
    fn waiting(&self) -> u32;
    /// Returns the number of entries that the log takes now without loss.
    fn room(&self) -> u32;
    /// Takes the oldest entry. Only the holder of the transmitter calls this.
    fn take(&self) -> Option<Entry>;
}

/// The source of output: a partition by number, or the log.
type Source = u8;
const LOG: Source = MAX_PARTITIONS as u8;

#[derive(Debug)]
struct Port<'n, R> {
    ring: Ring<RING>,
    /// The lock of a pCPU that puts bytes in. A pCPU that takes bytes out never holds this lock.
    writer: TicketMutex<(), R>,
    /// The name of the console. The name is part of the system image, which stays.
    name: Once<&'n str, R>,
}

/// The state of the transmitter's side. The pCPU that pumps holds this state.
#[derive(Debug)]
struct Transmitter<S> {
    stage: Stage,
    /// The source whose text was sent last.
    owner: Option<Source>,
    /// True if that text ended within a line.
    open: bool,
    /// The bytes of that text since its tag or its last chance to go on.
    burst: u32,
    /// The partition that had its turn last.
    turn: u8,
    /// True if the log had its turn last.
    log_had_turn: bool,
    /// The entry of the log on its way.
    shown: S,
}

/// The output that is left after a call that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    /// The call has sent as much as a call may.
    Waits,
    /// The transmitter has taken less than it was given.
    Refused,
}

/// The output of all consoles.
#[derive(Debug)]
pub struct Multiplexer<'n, R, S = Chosen> {
    ports: PerPartition<Port<'n, R>>,
    /// The partitions whose rings are not empty, as a bitmap.
    waiting: AtomicU32,
    /// True if the last call of [`Multiplexer::pump`] has left something: bytes that the transmitter has not
    /// taken, or text beyond one turn. A call that finds nothing clears the flag.
    staged: AtomicBool,
    transmitter: SpinMutex<Transmitter<S>, R>,
}

impl<R: RelaxStrategy, S: Shown> Default for Multiplexer<'_, R, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'n, R: RelaxStrategy, S: Shown> Multiplexer<'n, R, S> {
    /// Makes a multiplexer in which nothing waits and no console has a name.
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
            waiting: AtomicU32::new(0),
            staged: AtomicBool::new(false),
            transmitter: SpinMutex::new(Transmitter {
                stage: Stage::new(),
                owner: None,
                open: false,
                burst: 0,
                turn: 0,
                log_had_turn: false,
                shown: S::NOTHING,
            }),
        }
    }

    /// Names the console of a partition. The boot does this once for each console.
    pub fn add(&self, partition: PartitionId, name: &'n str) {
        self.ports.of(partition).name.call_once(|| name);
    }

    /// Returns the partition whose console has this name.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<PartitionId> {
        (0..MAX_PARTITIONS as u8)
            .map(PartitionId)
            .find(|partition| !name.is_empty() && self.name(*partition) == Some(name))
    }

    fn name(&self, partition: PartitionId) -> Option<&[u8]> {
        self.ports.of(partition).name.get().map(|name| name.as_bytes())
    }

    /// Puts bytes of a partition into its ring. Returns the number of bytes that the ring took.
    pub fn put(&self, partition: PartitionId, bytes: &[u8], now: u64) -> usize {
        let port = self.ports.of(partition);
        let writer = port.writer.lock();
        let taken = port.ring.view().push(bytes, micros(now));
        drop(writer);
        // The mark comes after the bytes, even if a mark is there: `Multiplexer::settle` takes a mark away
        // and then looks for bytes.
        if taken != 0 {
            self.waiting.fetch_or(mark(partition.0), Ordering::AcqRel);
        }
        taken
    }

    /// Returns the number of bytes that the partition's ring takes now.
    #[must_use]
    pub fn room(&self, partition: PartitionId) -> usize {
        // This fence pairs with the fence of `Multiplexer::pump`. A caller first notes that it lacks room,
        // and then finds no room here. So the pump that makes room sees the caller's note.
        fence(Ordering::SeqCst);
        RING.saturating_sub(self.ports.of(partition).ring.view().length())
    }

    /// Tells whether the partition's ring takes `bytes` bytes now, for a caller that does not wait for room.
    #[inline]
    #[must_use]
    pub fn has_room(&self, partition: PartitionId, bytes: usize) -> bool {
        self.ports.of(partition).ring.view().length() <= RING.saturating_sub(bytes)
    }

    /// Tells whether a call of [`Multiplexer::pump`] would have something to do for this partition at once.
    /// Returns true, too, if a call is owed for bytes that others could not send.
    #[must_use]
    pub fn is_urgent(&self, partition: PartitionId) -> bool {
        let view = self.ports.of(partition).ring.view();
        self.staged.load(Ordering::Relaxed) || view.lines() != 0 || view.length() >= RING / 2
    }

    /// Returns the number of nanoseconds within which some pCPU must call [`Multiplexer::pump`]. Returns
    /// `None` if nothing waits.
    #[must_use]
    pub fn due(&self, log: &impl Log, now: u64) -> Option<u64> {
        if self.staged.load(Ordering::Relaxed) || log.waiting() != 0 {
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
                // Another pCPU sent the bytes between the putting and the marking.
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

    /// Hands at most [`PUMP_BYTES`] bytes to the transmitter. Does nothing if another pCPU is just doing
    /// that. Never waits. Returns whether the transmitter has taken all that it was given, and more waits.
    pub fn pump(&self, log: &impl Log, console: &mut impl Console, now: u64) -> bool {
        let Some(mut transmitter) = self.transmitter.try_lock() else {
            return false;
        };
        let rest = self.send(&mut transmitter, log, console, now, false);
        drop(transmitter);
        fence(Ordering::SeqCst);
        rest == Rest::Waits
    }

    /// Sends what the transmitter takes at once. This is for boot, when no partition loses time.
    pub fn pump_all(&self, log: &impl Log, console: &mut impl Console, now: u64) {
        for _ in 0..BOOT_PUMPS {
            if self.due(log, now).is_none() {
                break;
            }
            self.pump(log, console, now);
        }
    }

    /// Sends everything that waits. This is for the end of the hypervisor, when no partition prints any more.
    /// If a pCPU died while it was sending, its unfinished work stays unfinished. Returns the place where the
    /// last line goes on.
    pub fn drain(&self, log: &impl Log, console: &mut impl Console, now: u64) -> Left<S> {
        for _ in 0..LAST_TRIES {
            if let Some(mut transmitter) = self.transmitter.try_lock() {
                for _ in 0..LAST_ROUNDS {
                    if self.send(&mut transmitter, log, console, now, true) == Rest::Nothing {
                        break;
                    }
                    console.flush();
                }
                return Left {
                    open: core::mem::replace(&mut transmitter.open, false),
                    goes_on: false,
                    shown: core::mem::replace(&mut transmitter.shown, S::NOTHING),
                };
            }
            R::relax();
        }
        Left {
            open: true,
            goes_on: false,
            shown: S::NOTHING,
        }
    }

    /// Sends up to [`PUMP_BYTES`]. With `all`, pieces of lines are sent too.
    fn send(
        &self,
        transmitter: &mut Transmitter<S>,
        log: &impl Log,
        console: &mut impl Console,
        now: u64,
        all: bool,
    ) -> Rest {
        let mut budget = PUMP_BYTES;
        let mut is_filled = false;
        while budget != 0 {
            if transmitter.stage.is_empty() {
                // One turn of text in a call: text takes more instructions than its bytes do.
                if core::mem::replace(&mut is_filled, true) {
                    budget = 0;
                    break;
                }
                if !self.fill(transmitter, log, now, all) {
                    self.staged.store(false, Ordering::Relaxed);
                    return Rest::Nothing;
                }
                continue;
            }
            let sent = console.send(transmitter.stage.unsent(budget));
            if sent == 0 {
                break;
            }
            transmitter.stage.advance(sent);
            budget = budget.saturating_sub(sent);
        }
        self.staged.store(true, Ordering::Relaxed);
        if budget == 0 { Rest::Waits } else { Rest::Refused }
    }

    /// Frames the next bytes into the empty stage. Returns false if there are no bytes to send yet.
    fn fill(&self, transmitter: &mut Transmitter<S>, log: &impl Log, now: u64, all: bool) -> bool {
        let log_waits = transmitter.shown.time().is_some() || log.waiting() != 0;
        let Some(source) = self.choose(transmitter, log_waits, micros(now), all) else {
            return false;
        };
        let time = match source {
            LOG => load(&mut transmitter.shown, log, now),
            _ => now,
        };
        if !(transmitter.open && transmitter.owner == Some(source)) {
            let (stage, open) = (&mut transmitter.stage, transmitter.open);
            match source {
                LOG => S::begin(stage, open, time),
                partition => {
                    let name = self.name(PartitionId(partition)).unwrap_or(b"?");
                    tag(stage, open, time, name);
                }
            }
            transmitter.owner = Some(source);
            transmitter.open = true;
            transmitter.burst = 0;
            transmitter.log_had_turn = source == LOG;
            if source != LOG {
                transmitter.turn = source;
            }
        }
        let Transmitter { stage, shown, .. } = &mut *transmitter;
        let (taken, ended) = match source {
            LOG => shown.add_pieces(log, stage),
            _ => {
                let room = stage.room().min(AT_ONCE);
                let sent = stage.text(|sink| self.view(source).take_line(room, |byte| sink.put(byte)));
                self.settle(source);
                sent
            }
        };
        transmitter.burst = transmitter.burst.saturating_add(taken);
        transmitter.open = !ended;
        true
    }

    /// Chooses the source of the next bytes.
    fn choose(
        &self,
        transmitter: &mut Transmitter<S>,
        log_waits: bool,
        now: u32,
        all: bool,
    ) -> Option<Source> {
        let has_more = |owner: Source| match owner {
            LOG => log_waits,
            partition => self.view(partition).length() != 0,
        };
        let owner = transmitter
            .owner
            .filter(|owner| transmitter.open && has_more(*owner));
        if let Some(owner) = owner
            && transmitter.burst < BURST
        {
            return Some(owner);
        }
        if log_waits && !transmitter.log_had_turn {
            return Some(LOG);
        }
        let next = self.next_partition(transmitter.turn, now, all);
        // A flood of the log shares the transmitter only with consoles that want it.
        if next.is_none() && log_waits {
            return Some(LOG);
        }
        if next.is_none() || next == owner {
            transmitter.burst = 0;
            return owner;
        }
        next
    }

    /// Returns the first partition after `turn`, in a circle, whose bytes can be sent.
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

    /// Takes away the mark of a ring that is empty.
    fn settle(&self, source: Source) {
        if self.view(source).length() != 0 {
            return;
        }
        self.waiting.fetch_and(!mark(source), Ordering::AcqRel);
        if self.view(source).length() != 0 {
            self.waiting.fetch_or(mark(source), Ordering::AcqRel);
        }
    }

    fn view(&self, partition: Source) -> View<'_> {
        self.ports.of(PartitionId(partition)).ring.view()
    }
}

const fn mark(partition: u8) -> u32 {
    1_u32.wrapping_shl(partition as u32)
}

/// Returns the time for the age of a piece of a line, in microseconds. This time wraps after more than an
/// hour. No piece of a line becomes that old.
const fn micros(nanoseconds: u64) -> u32 {
    ((nanoseconds / 1000) & 0xFFFF_FFFF) as u32
}

/// Takes the next entry of the log to show, if none is being shown. Returns the time of the entry.
fn load<S: Shown>(shown: &mut S, log: &impl Log, now: u64) -> u64 {
    if shown.time().is_none()
        && let Some(mut entry) = log.take()
    {
        if entry.kind == Kind::Lost {
            entry.time = now;
        }
        shown.put(entry);
    }
    shown.time().unwrap_or(now)
}

/// The state of the serial line after everything that waited has left ([`Multiplexer::drain`]), for the last
/// line of the hypervisor. Neither the transmitter's state nor the log is used from then on: a pCPU may have
/// died with them.
#[derive(Debug)]
pub struct Left<S = Chosen> {
    /// True if the line before may be unfinished.
    open: bool,
    /// True if the last line goes on.
    goes_on: bool,
    /// The entry of the log that was shown last.
    shown: S,
}

impl<S: Shown> Left<S> {
    /// Sends an entry of the last line, and returns when it has left.
    #[inline(never)]
    pub fn show(&mut self, names: &dyn Names, console: &mut impl Console, entry: &Entry) {
        let mut stage = Stage::new();
        self.shown.put(*entry);
        // Each round takes a piece of the entry away.
        for _ in 0..LINE_MAX {
            if self.shown.time().is_none() {
                break;
            }
            if !self.goes_on {
                S::begin(&mut stage, core::mem::take(&mut self.open), entry.time);
            }
            let (_, ends) = self.shown.add_pieces(names, &mut stage);
            self.goes_on = !ends;
            send_all(console, stage.unsent(usize::MAX));
            stage.advance(usize::MAX);
        }
    }
}

/// Sends all bytes and waits for the transmitter. Takes at most two rounds per byte: a flushed transmitter
/// takes one byte.
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
