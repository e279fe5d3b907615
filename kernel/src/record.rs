// SPDX-License-Identifier: Apache-2.0
//! The contents that stay in RAM: the log, the end of the hypervisor, and counters ([`bulkhead_abi::log`]).
//!
//! The area belongs to the backend and survives a warm reset. So at boot the area holds either the contents
//! that an earlier life of the hypervisor left, or the bytes that RAM holds after power-on.
//! [`Recorder::open`] tells the two apart by the header. Then the recorder goes on with the contents, or
//! starts anew. From then on every log line is stored in the ring as well. The counters *are* the counters of
//! the area: an exit adds one to a word of the area. So the counters can be read at any time, also when
//! nothing moves any more.
//!
//! The hypervisor only stores. It believes nothing in the area but the numbers of the header, and it believes
//! these only after it has found them consistent. A position that makes no sense costs the old lines, never
//! more.

use crate::console::Log;
use crate::log::{Entries, LogLine};
use crate::system::System;
use bulkhead_abi::atomic::AtomicU64;
use bulkhead_abi::log::{
    AREA_SIZE, Area, AreaNames, CRASH_LOCKDOWN, CRASH_NEW, CRASH_TOLD, ENTRIES, ENTRY_SIZE, Entry, Exits,
    LINE_ENTRIES, LINE_MAX, MESSAGE_LEN, NONE, Names, PARTITIONS, PCPUS, Partition, Pcpu, PieceLine,
    RING_SIZE, RegisterFile, StoredEntry, VCPUS, Vcpu, count, store_bytes,
};
use bulkhead_abi::{HealthClass, PartitionState};
use bulkhead_arch_api::{Arch, MAX_PARTITIONS, MAX_PCPUS, MAX_VCPUS, PartitionId, PcpuId, Ticks, VcpuId};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use spin::RelaxStrategy;
use spin::mutex::{SpinMutex, SpinMutexGuard};
use spin::once::Once;

const _: () = assert!(
    PARTITIONS >= MAX_PARTITIONS && VCPUS >= MAX_VCPUS && PCPUS >= MAX_PCPUS,
    "everything has a place"
);

/// The most entries that wait to be shown. Others may be overwritten while they are read.
const KEPT: u32 = (ENTRIES - LINE_ENTRIES) as u32;

/// The number of times that a line tries to get the ring from another pCPU. That pCPU needs a few thousand
/// steps, unless it died there.
const TRIES: usize = 100_000;

/// The report on an earlier life of the hypervisor.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The number of this life.
    pub boot: u32,
    /// The end of the life before, if the hypervisor crashed and the crash has not been told: the number of
    /// that life, and the message.
    pub crash: Option<(u32, LogLine)>,
}

/// The log area, once it is known.
#[derive(Debug)]
pub struct Recorder<R> {
    /// The area, with the register files of reports.
    area: Once<AreaNames<'static>, R>,
    /// The lock that is held while a line is stored.
    writer: SpinMutex<(), R>,
    /// The number of entries, as it wraps, that the console has shown or will show no more.
    shown: AtomicU32,
}

impl<R: RelaxStrategy> Recorder<R> {
    pub const fn new() -> Self {
        Self {
            area: Once::new(),
            writer: SpinMutex::new(()),
            shown: AtomicU32::new(0),
        }
    }

    /// Takes the area over at boot, and returns what was in the area.
    pub fn open<A: Arch>(&self, machine: &mut A) -> Found {
        let AreaNames(area, _) = *self.area.call_once(|| AreaNames(machine.log_area(), A::FILES));
        area.make_if_invalid();
        let gap = close_gap(area);
        let header = &area.header;
        let boot = header.boots.load(Ordering::Relaxed).wrapping_add(1);
        header.boots.store(boot, Ordering::Relaxed);
        header.hertz.store(machine.hertz(), Ordering::Relaxed);
        header.booted.store(machine.now().0, Ordering::Relaxed);
        header.trace_records.store(0, Ordering::Relaxed);
        clear_counters(area);
        let crash = tell_crash(area);
        // The part of the ring that `close_gap` wrote is the only part that has changed.
        machine.keep(0, offset_of!(Area, ring));
        let (start, length) = gap;
        keep_ring(machine, start, length);
        self.shown.store(number_of(&header.written), Ordering::Relaxed);
        Found { boot, crash }
    }

    /// Names the things that are counted.
    pub fn describe(&self, system: &System<'_>) {
        let Some(area) = self.area() else { return };
        let header = &area.header;
        store_bytes(&header.board, system.image.board_name().as_bytes());
        for (partition, place) in system.partitions().zip(&area.partitions) {
            store_bytes(&place.name, system.name(partition).as_bytes());
            place
                .state
                .store(PartitionState::Stopped as u32, Ordering::Relaxed);
            count(&header.partitions);
        }
        for place in area.pcpus.iter().take(system.pcpus().count()) {
            place.running.store(NONE, Ordering::Relaxed);
            count(&header.pcpus);
        }
        for (place, vcpu) in area.vcpus.iter().zip(0..system.image.vcpus().len() as u8) {
            let binding = system.binding(VcpuId(vcpu));
            place
                .partition
                .store(u32::from(binding.partition.0), Ordering::Relaxed);
            place.index.store(u32::from(binding.index), Ordering::Relaxed);
            place.pcpu.store(u32::from(binding.pcpu.0), Ordering::Relaxed);
            count(&header.vcpus);
        }
        // This comes last: a reader that reads along needs the names of the things that are traced.
        let board = system.image.board();
        header.trace_base.store(board.trace_base.get(), Ordering::Relaxed);
        header
            .trace_records
            .store(board.trace_records.get(), Ordering::Release);
    }

    /// Stores a line in the ring: at most [`LINE_ENTRIES`] entries. This is for boot and for the end, when no
    /// other pCPU logs.
    pub fn line<A: Arch>(&self, machine: &mut A, mut line: Entries<'_>) {
        loop {
            self.entry(machine, &line.entry);
            if !line.advance() {
                break;
            }
        }
    }

    /// Stores an entry.
    pub fn entry<A: Arch>(&self, machine: &mut A, entry: &Entry) {
        self.entries(machine, 1, |_, place| entry.store(place));
    }

    /// Stores `count` entries, [`LINE_ENTRIES`] at most. `store` stores the entry with a number into its
    /// place.
    pub fn entries<A: Arch>(
        &self,
        machine: &mut A,
        count: usize,
        mut store: impl FnMut(usize, &StoredEntry),
    ) {
        let Some(area) = self.area() else { return };
        let Some(_writer) = self.claim() else { return };
        let start = area.header.written.load(Ordering::Relaxed);
        let length = count.saturating_mul(ENTRY_SIZE);
        let end = start.wrapping_add(length as u64);
        area.header.noted.store(machine.now().0, Ordering::Relaxed);
        area.header.reserved.store(end, Ordering::Release);
        keep_header(machine);
        for (number, index) in (number_of(&area.header.written)..).zip(0..count) {
            store(index, place_of(area, number));
        }
        keep_ring(machine, start, length);
        area.header.written.store(end, Ordering::Release);
        keep_header(machine);
    }

    /// Notes that the console will show none of the entries so far.
    pub fn skip(&self) {
        if let Some(area) = self.area() {
            self.shown
                .store(number_of(&area.header.written), Ordering::Relaxed);
        }
    }

    /// Notes that the hypervisor gives up, for a reason that it can name.
    pub fn lockdown<A: Arch>(&self, machine: &mut A, reason: &LogLine) {
        let Some(area) = self.area() else { return };
        let pcpu = u32::from(machine.current().0);
        area.crash
            .begin(CRASH_LOCKDOWN, pcpu, machine.now().0, reason.as_bytes());
        area.crash.complete(area.header.boots.load(Ordering::Relaxed));
        machine.keep(0, AREA_SIZE);
    }

    /// Notes that a partition has entered a state.
    pub fn state(&self, partition: PartitionId, state: PartitionState) {
        if let Some(place) = self.partition(partition) {
            place.state.store(state as u32, Ordering::Relaxed);
        }
    }

    /// Notes that a partition was restarted.
    pub fn restarted(&self, partition: PartitionId) {
        if let Some(place) = self.partition(partition) {
            place.restarts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that a partition is loaded: at boot, by a health action, by a supervisor or by itself.
    pub fn started(&self, partition: PartitionId) {
        if let Some(place) = self.partition(partition) {
            place.starts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that a partition had a health event.
    pub fn event(&self, partition: PartitionId, class: HealthClass) {
        let place = self.partition(partition);
        if let Some(counter) = place.and_then(|place| place.events.get(class as usize)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the counters of a vCPU.
    pub fn vcpu(&self, vcpu: VcpuId) -> Option<&'static Vcpu> {
        self.area()?.vcpus.get(usize::from(vcpu.0))
    }

    /// Returns the counters of a pCPU.
    pub fn pcpu(&self, pcpu: PcpuId) -> Option<&'static Pcpu> {
        self.area()?.pcpus.get(usize::from(pcpu.0))
    }

    fn area(&self) -> Option<&'static Area> {
        self.area.get().map(|AreaNames(area, _)| *area)
    }

    fn partition(&self, partition: PartitionId) -> Option<&'static Partition> {
        self.area()?.partitions.get(usize::from(partition.0))
    }

    /// Takes the right to store a line. Returns `None` if the holder of the right seems to have died with it.
    fn claim(&self) -> Option<SpinMutexGuard<'_, (), R>> {
        for _ in 0..TRIES {
            if let Some(guard) = self.writer.try_lock() {
                return Some(guard);
            }
            R::relax();
        }
        None
    }
}

/// Adds ticks to a counter that one pCPU alone writes.
#[inline]
pub fn add_ticks(counter: &AtomicU64, ticks: Ticks) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(ticks.0),
        Ordering::Relaxed,
    );
}

impl<R: RelaxStrategy> Names for Recorder<R> {
    fn add_name(&self, partition: u8, to: &mut PieceLine) {
        if let Some(area) = self.area.get() {
            area.add_name(partition, to);
        }
    }

    fn files(&self) -> &[&RegisterFile] {
        self.area.get().map_or(&[], Names::files)
    }
}

impl<R: RelaxStrategy> Log for Recorder<R> {
    fn waiting(&self) -> u32 {
        let written = self.area().map(|area| number_of(&area.header.written));
        let shown = self.shown.load(Ordering::Relaxed);
        written.unwrap_or(shown).wrapping_sub(shown)
    }

    fn room(&self) -> u32 {
        KEPT.saturating_sub(self.waiting())
    }

    fn take(&self) -> Option<Entry> {
        let area = self.area()?;
        let (waiting, shown) = (self.waiting(), self.shown.load(Ordering::Relaxed));
        if waiting == 0 {
            return None;
        }
        let words = place_of(area, shown)
            .each_ref()
            .map(|word| word.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        // Other pCPUs may have overwritten the entry while it was read.
        let stored = number_of(&area.header.reserved).wrapping_sub(shown);
        let lost = match waiting.saturating_sub(KEPT) {
            0 => u32::from(stored > ENTRIES as u32),
            lost => lost,
        };
        self.shown
            .store(shown.wrapping_add(lost.max(1)), Ordering::Relaxed);
        match Entry::decode(words) {
            Some(entry) if lost == 0 => Some(entry),
            _ => Some(Entry::lost(lost.max(1))),
        }
    }
}

/// Returns the number of entries that a position stands for, as it wraps.
fn number_of(position: &AtomicU64) -> u32 {
    const { assert!(ENTRY_SIZE.is_power_of_two()) }
    (position.load(Ordering::Acquire) >> ENTRY_SIZE.trailing_zeros()) as u32
}

/// Returns the place of an entry in the ring.
fn place_of(area: &Area, number: u32) -> &StoredEntry {
    const { assert!(ENTRIES.is_power_of_two()) }
    let [first, ..] = &area.ring;
    area.ring
        .get(number as usize & ENTRIES.wrapping_sub(1))
        .unwrap_or(first)
}

/// Turns entries that were announced but not stored into empty ones, because the announced line has
/// overwritten the oldest entries. Returns the place and the length of these entries in bytes.
fn close_gap(area: &Area) -> (u64, usize) {
    let header = &area.header;
    let start = header.written.load(Ordering::Relaxed);
    let end = header.reserved.load(Ordering::Relaxed);
    let length = usize::try_from(end.wrapping_sub(start))
        .unwrap_or(LINE_MAX)
        .min(LINE_MAX);
    for number in (number_of(&header.written)..).take(length >> ENTRY_SIZE.trailing_zeros()) {
        place_of(area, number)
            .iter()
            .for_each(|word| word.store(0, Ordering::Relaxed));
    }
    header.written.store(end, Ordering::Release);
    (start, length)
}

fn clear_counters(area: &Area) {
    let header = &area.header;
    for counter in [&header.pcpus, &header.partitions, &header.vcpus] {
        counter.store(0, Ordering::Relaxed);
    }
    for pcpu in &area.pcpus {
        pcpu.idle.store(0, Ordering::Relaxed);
        pcpu.since.store(0, Ordering::Relaxed);
        pcpu.running.store(NONE, Ordering::Relaxed);
        pcpu.traced.store(0, Ordering::Relaxed);
        pcpu.due.store(0, Ordering::Relaxed);
        pcpu.late.store(0, Ordering::Relaxed);
        clear_exits(&pcpu.exits);
    }
    for partition in &area.partitions {
        partition.state.store(0, Ordering::Relaxed);
        partition.restarts.store(0, Ordering::Relaxed);
        partition.starts.store(0, Ordering::Relaxed);
        let prompt = &partition.prompt;
        for counter in [&prompt.kept, &prompt.late, &prompt.latest, &prompt.unknown] {
            counter.store(0, Ordering::Relaxed);
        }
        for counter in &partition.events {
            counter.store(0, Ordering::Relaxed);
        }
    }
    for vcpu in &area.vcpus {
        for counter in [&vcpu.ran, &vcpu.waited, &vcpu.waiting] {
            counter.store(0, Ordering::Relaxed);
        }
        clear_exits(&vcpu.exits);
    }
}

/// Clears the counters of exits. One table at a time: a chain of both costs five times as much.
fn clear_exits(exits: &Exits) {
    for counter in exits.all() {
        counter.store(0, Ordering::Relaxed);
    }
}

/// Returns the message of a crash that has not been told, and notes that the crash is told now.
fn tell_crash(area: &Area) -> Option<(u32, LogLine)> {
    let crash = &area.crash;
    if crash.state.load(Ordering::Acquire) != CRASH_NEW {
        return None;
    }
    let length = crash.message_length.load(Ordering::Relaxed) as usize;
    let mut text = [0_u8; MESSAGE_LEN];
    for (to, from) in text.iter_mut().zip(&crash.message) {
        *to = from.load(Ordering::Relaxed);
    }
    let text = text.get(..length).unwrap_or(&[]);
    crash.state.store(CRASH_TOLD, Ordering::Relaxed);
    let line = LogLine::of(core::str::from_utf8(text).unwrap_or("?"));
    Some((crash.boot.load(Ordering::Relaxed), line))
}

fn keep_header<A: Arch>(machine: &mut A) {
    machine.keep(0, size_of::<bulkhead_abi::log::Header>());
}

/// Writes back `length` bytes of the ring from a position on.
fn keep_ring<A: Arch>(machine: &mut A, start: u64, length: usize) {
    let offset = in_ring(start);
    let first = length.min(RING_SIZE.saturating_sub(offset));
    machine.keep(offset_of!(Area, ring).saturating_add(offset), first);
    machine.keep(offset_of!(Area, ring), length.saturating_sub(first));
}

const fn in_ring(position: u64) -> usize {
    const { assert!(RING_SIZE.is_power_of_two()) }
    (position & RING_SIZE.wrapping_sub(1) as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;

    fn recorder() -> (Recorder<spin::Spin>, &'static Area) {
        let recorder = Recorder::new();
        let area: &'static Area = Box::leak(Box::new(Area::new()));
        recorder.area.call_once(|| AreaNames(area, &[]));
        (recorder, area)
    }

    /// Stores entries whose times are `numbers`.
    fn put(area: &Area, numbers: core::ops::Range<u32>) {
        for number in numbers {
            Entry::text(number.into(), b"").store(place_of(area, number));
            let written = u64::from(number + 1) * ENTRY_SIZE as u64;
            area.header.reserved.store(written, Ordering::Relaxed);
            area.header.written.store(written, Ordering::Relaxed);
        }
    }

    #[test]
    fn entries_are_taken_once_and_in_order() {
        let (recorder, area) = recorder();
        assert_eq!((recorder.waiting(), recorder.take()), (0, None));
        put(area, 0..3);
        assert_eq!((recorder.waiting(), recorder.room()), (3, KEPT - 3));
        for number in 0..3 {
            assert_eq!(recorder.take().map(|entry| entry.time), Some(number));
        }
        assert_eq!((recorder.waiting(), recorder.take()), (0, None));
        put(area, 3..5);
        recorder.skip();
        assert_eq!((recorder.waiting(), recorder.take()), (0, None));
    }

    #[test]
    fn entries_that_were_overwritten_are_counted() {
        let (recorder, area) = recorder();
        put(area, 0..KEPT + 19);
        assert_eq!(recorder.room(), 0);
        assert_eq!(recorder.take(), Some(Entry::lost(19)));
        assert_eq!(recorder.take().map(|entry| entry.time), Some(19));
        put(area, KEPT + 19..5000);
        assert_eq!(recorder.take(), Some(Entry::lost(5000 - 20 - KEPT)));
        assert_eq!(recorder.waiting(), KEPT);
    }

    #[test]
    fn an_entry_that_changes_while_it_is_read_is_lost() {
        let (recorder, area) = recorder();
        put(area, 0..KEPT);
        let ahead = (ENTRIES as u64 + 1) * ENTRY_SIZE as u64;
        area.header.reserved.store(ahead, Ordering::Relaxed);
        assert_eq!(recorder.take(), Some(Entry::lost(1)));
        assert_eq!(recorder.take().map(|entry| entry.time), Some(1));
    }
}
