// SPDX-License-Identifier: Apache-2.0
//! From the rings in a board's memory to a trace.
//!
//! While the board runs, its rings are emptied again and again. The collector reads the counters, then the
//! records that have been stored since by these counters, then the counters once more: a record that was
//! overwritten meanwhile is not valid. No record is lost without being counted, and each gap has an
//! [`Event::Lost`] where it is.
//!
//! Memory is trusted as little as a file: numbers are bounded, words that are no record count as lost
//! records, and a time that goes back is replaced by the time before. (A switch is stamped with the start of
//! its decision, other records with the moment they are stored.)

use super::{Trace, TraceVcpu};
use crate::log::log_area::{self, LogArea, ReadMemory, Rings};
use bulkhead_abi::trace::{Event, RECORD_SIZE, Record};
use bulkhead_arch_api::class::Endianness;
use std::mem;

/// One ring.
#[derive(Debug, Default)]
struct Ring {
    /// Records of the ring that were dealt with.
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
    /// Makes a collector for a board whose log area is at `log_base`.
    #[must_use]
    pub fn new(log_base: u64) -> Self {
        Self {
            log_base,
            boots: 0,
            rings: Vec::new(),
            trace: Trace::default(),
        }
    }

    /// Takes the new records in the rings. A board that has not come far has no rings yet.
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
            // This is another life of the hypervisor, with its rings empty.
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
            // The record that is being stored is not counted yet, but has overwritten another one.
            let overwritten = stored.map_or(u64::MAX, |stored| {
                stored.saturating_add(1).saturating_sub(rings.records)
            });
            self.accept(number, from, overwritten, &words);
        }
        Ok(())
    }

    /// Returns the trace so far. The collector starts anew.
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
        // The sort is stable: the records of one pCPU stay in their order.
        trace.records.sort_by_key(|record| record.time);
        trace
    }

    fn begin(&mut self, area: &LogArea<'_>) {
        self.boots = area.boots();
        self.trace = area.names();
        self.rings = (0..self.trace.pcpus).map(|_| Ring::default()).collect();
    }

    /// Takes the records of a ring from number `from` on. Records before `overwritten` have been overwritten
    /// meanwhile.
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

/// Returns a record as it is in a file, whose words are little-endian.
fn in_file_order(record: [u8; RECORD_SIZE], order: Endianness) -> [u8; RECORD_SIZE] {
    let mut record = record;
    let (words, _) = record.as_chunks_mut();
    for word in words {
        *word = order.long(*word).to_le_bytes();
    }
    record
}

/// Reads the records of a ring with these numbers, at most a ring full of them.
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
                .filter_map(|chunk| chunk.first_chunk())
                .map(|record| in_file_order(*record, rings.order)),
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
            exits: Vec::new(),
            records: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_a_big_endian_class_is_read_as_any_other() {
        let record = Record {
            time: 0x1122_3344_5566,
            pcpu: 0,
            event: Event::Lost { count: 3 },
        };
        let of_file = record.to_bytes();
        let mut in_memory = of_file;
        in_memory
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .for_each(|word| word.reverse());
        let read = |order, memory: [u8; RECORD_SIZE]| {
            let rings = Rings {
                base: 0x1000,
                records: 64,
                stored: vec![1],
                order,
            };
            let records = read_ring::<()>(&rings, 0, 0..1, &mut |_, _| Ok(memory.to_vec()));
            Record::from_bytes(records.unwrap()[0])
        };
        assert_eq!(read(Endianness::Big, in_memory), Ok(record));
        assert_eq!(read(Endianness::Little, of_file), Ok(record));
    }
}
