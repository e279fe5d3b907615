// SPDX-License-Identifier: Apache-2.0
//! From the rings in a board's memory to a trace.
//!
//! While the board runs its rings are emptied again and again: the counters, then what they say has been stored since, then
//! the counters once more, because what was overwritten meanwhile is not what it was. No record is lost without being
//! counted, and each gap has an [`Event::Lost`] where it is.
//!
//! Memory is believed as little as a file: numbers are bounded, words that are no record are lost ones, and
//! times that go back do not. (A switch is stamped with the start of its decision, other records
//! with the moment they are stored.)

use super::{Trace, TraceVcpu};
use crate::log_area::{self, LogArea, ReadMemory, Rings};
use bulkhead_abi::trace::{Event, RECORD_SIZE, Record};
use std::mem;

/// One ring.
#[derive(Debug, Default)]
struct Ring {
    /// Records of it that were dealt with.
    taken: u64,
    /// Records that were missed since the last one.
    lost: u64,
    /// Time of the last one.
    time: u64,
}

/// Gathers the records of a run.
#[derive(Debug)]
pub struct Collector {
    log_base: u64,
    /// The life of the hypervisor that is being traced.
    boots: u32,
    rings: Vec<Ring>,
    trace: Trace,
}

impl Collector {
    /// For a board whose log area is at `log_base`.
    #[must_use]
    pub fn new(log_base: u64) -> Self {
        Self {
            log_base,
            boots: 0,
            rings: Vec::new(),
            trace: Trace::default(),
        }
    }

    /// Takes what is new in the rings. A board that has not come far has none yet.
    ///
    /// # Errors
    /// Memory could not be read.
    pub fn take<E>(&mut self, read: &mut ReadMemory<'_, E>) -> Result<(), E> {
        let before = log_area::read(self.log_base, read)?;
        let Some(before) = LogArea::at_start(&before) else {
            return Ok(());
        };
        let Some(rings) = before.rings() else {
            return Ok(());
        };
        if before.boots() != self.boots {
            // Another life of the hypervisor, with its rings empty.
            self.begin(&before);
        }
        let mut words = Vec::new();
        for (ring, stored) in self.rings.iter().zip(&rings.stored) {
            let from = ring.taken.max(stored.saturating_sub(rings.records));
            words.push((from, read_ring(&rings, words.len(), from..*stored, read)?));
        }
        let after = log_area::read(self.log_base, read)?;
        let after = LogArea::at_start(&after).and_then(|after| after.rings());
        for (number, (from, words)) in words.into_iter().enumerate() {
            let stored = after.as_ref().and_then(|after| after.stored.get(number));
            // The one that is being stored is not counted yet, but has overwritten another.
            let overwritten = stored.map_or(u64::MAX, |stored| {
                stored.saturating_add(1).saturating_sub(rings.records)
            });
            self.accept(number, from, overwritten, &words);
        }
        Ok(())
    }

    /// The trace so far; the collector starts anew.
    pub fn finish(&mut self) -> Trace {
        let mut trace = mem::take(&mut self.trace);
        let last = trace.records.iter().map(|record| record.time).max();
        for (ring, pcpu) in self.rings.iter().zip(0..) {
            if ring.lost != 0 {
                let time = last.unwrap_or(trace.origin);
                trace.records.push(gap(ring.lost, time, pcpu));
            }
        }
        self.rings.clear();
        self.boots = 0;
        // Stable: what one pCPU stored stays in its order.
        trace.records.sort_by_key(|record| record.time);
        trace
    }

    fn begin(&mut self, area: &LogArea<'_>) {
        self.boots = area.boots();
        self.trace = area.names();
        self.rings = (0..self.trace.pcpus).map(|_| Ring::default()).collect();
    }

    /// Takes the records of a ring from number `from` on; those before `overwritten` are not what they were.
    fn accept(&mut self, number: usize, from: u64, overwritten: u64, words: &[[u8; RECORD_SIZE]]) {
        let Some(ring) = self.rings.get_mut(number) else {
            return;
        };
        ring.lost = ring.lost.saturating_add(from.saturating_sub(ring.taken));
        ring.taken = from.saturating_add(words.len() as u64);
        for (bytes, position) in words.iter().zip(from..) {
            let record = Record::from_bytes(*bytes).ok();
            let fits = |record: &Record| {
                usize::from(record.pcpu) == number && self.trace.check_record(record).is_ok()
            };
            let Some(record) = record.filter(|_| position >= overwritten).filter(fits) else {
                ring.lost = ring.lost.saturating_add(1);
                continue;
            };
            ring.time = ring.time.max(record.time);
            if ring.lost != 0 {
                let lost = mem::take(&mut ring.lost);
                self.trace.records.push(gap(lost, ring.time, record.pcpu));
            }
            self.trace.records.push(Record {
                time: ring.time,
                ..record
            });
        }
    }
}

fn gap(lost: u64, time: u64, pcpu: u8) -> Record {
    Record {
        time,
        pcpu,
        event: Event::Lost {
            count: u32::try_from(lost).unwrap_or(u32::MAX),
        },
    }
}

/// The records of a ring with these numbers; at most a ring full of them.
fn read_ring<E>(
    rings: &Rings,
    number: usize,
    numbers: std::ops::Range<u64>,
    read: &mut ReadMemory<'_, E>,
) -> Result<Vec<[u8; RECORD_SIZE]>, E> {
    let ring_size = rings.records * RECORD_SIZE as u64;
    let base = rings.base.wrapping_add(number as u64 * ring_size);
    let mut records = Vec::new();
    let mut next = numbers.start;
    while next < numbers.end {
        let place = next % rings.records;
        let count = (numbers.end - next).min(rings.records - place);
        let address = base.wrapping_add(place * RECORD_SIZE as u64);
        let bytes = read(address, count as usize * RECORD_SIZE)?;
        records.extend(
            bytes
                .chunks_exact(RECORD_SIZE)
                .filter_map(|chunk| chunk.first_chunk()),
        );
        next += count;
    }
    Ok(records)
}

/// The names of a trace out of a log area.
impl LogArea<'_> {
    fn names(&self) -> Trace {
        let (partitions, vcpus) = self.tables();
        Trace {
            board: self.board(),
            hertz: self.hertz(),
            origin: self.booted(),
            pcpus: self.rings().map_or(0, |rings| rings.stored.len() as u8),
            partitions,
            vcpus: vcpus
                .into_iter()
                .map(|[partition, index, pcpu]| TraceVcpu {
                    partition,
                    index,
                    pcpu,
                })
                .collect(),
            records: Vec::new(),
        }
    }
}
