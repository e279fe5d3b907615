// SPDX-License-Identifier: Apache-2.0
//! The trace file.
//!
//! All numbers little-endian:
//!
//! | bytes from | what |
//! |---|---|
//! | 0 | `BULKTRC1` |
//! | 8 | u32: revision of the format, 1 |
//! | 12 | u32: bytes before the first record, a multiple of 16 |
//! | 16 | u64: ticks per second |
//! | 24 | u64: tick at which the hypervisor booted |
//! | 32 | u64: number of records |
//! | 40 | u32: number of pCPUs, of partitions at 44, of vCPUs at 48; at 52 of causes of exits, or 0 |
//! | 56 | name of the board, 32 bytes, NUL padded |
//! | 88 | name of each partition, 32 bytes each |
//! | then | each vCPU, 4 bytes: partition, number in it, pCPU, 0 |
//! | then | if there are causes: all exits of each vCPU, a u32 for each of [`CAUSES`] |
//! | then | zeros up to the first record |
//! | then | the records, 16 bytes each ([`bulkhead_abi::trace`]), in the order of their times |
//!
//! A reader takes nothing on trust: what it returns has passed [`Trace::check`].

use super::{Trace, TraceVcpu};
use crate::log::exits::{CAUSES, ExitCounts};
use bulkhead_abi::log::NAME_LEN;
use bulkhead_abi::trace::{BadRecord, RECORD_SIZE, Record};

const MAGIC: &[u8; 8] = b"BULKTRC1";
const VERSION: u32 = 1;
const FIXED: usize = 88;
/// A trace of a real system has no more of anything than this.
const COUNT_MAX: u32 = 255;

impl Trace {
    /// Returns the bytes of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let is_counted = !self.exits.is_empty() && self.exits.len() == self.vcpus.len();
        let causes = if is_counted { CAUSES.len() } else { 0 };
        let header = header_size(self.partitions.len(), self.vcpus.len(), causes);
        let mut bytes = Vec::with_capacity(header + self.records.len() * RECORD_SIZE);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((header as u32).to_le_bytes());
        for long in [self.hertz, self.origin, self.records.len() as u64] {
            bytes.extend(long.to_le_bytes());
        }
        let counts = [
            usize::from(self.pcpus),
            self.partitions.len(),
            self.vcpus.len(),
            causes,
        ];
        for count in counts {
            bytes.extend((count as u32).to_le_bytes());
        }
        for name in std::iter::once(&self.board).chain(&self.partitions) {
            bytes.extend(padded(name));
        }
        for vcpu in &self.vcpus {
            bytes.extend([vcpu.partition, vcpu.index, vcpu.pcpu, 0]);
        }
        for count in self.exits.iter().filter(|_| is_counted).flatten() {
            bytes.extend((*count as u32).to_le_bytes());
        }
        bytes.resize(header, 0);
        for record in &self.records {
            bytes.extend(record.to_bytes());
        }
        bytes
    }

    /// Decodes the trace in the bytes of a file.
    ///
    /// # Errors
    /// The error says why the bytes are no trace.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = Reader { bytes, at: 0 };
        if reader.array::<8>().as_ref() != Ok(MAGIC) {
            return Err("it does not start like a trace".to_owned());
        }
        let version = reader.word()?;
        if version != VERSION {
            return Err(format!(
                "its format is revision {version}, this tool reads {VERSION}"
            ));
        }
        let header = reader.word()? as usize;
        let (hertz, origin, count) = (reader.long()?, reader.long()?, reader.long()?);
        let [pcpus, partitions, vcpus] = [reader.count()?, reader.count()?, reader.count()?];
        let causes = reader.word()? as usize;
        let is_known = causes == 0 || causes == CAUSES.len();
        if !is_known || header != header_size(partitions.into(), vcpus.into(), causes) {
            return Err("the lengths in its header cannot be".to_owned());
        }
        let mut trace = Self {
            board: reader.name()?,
            hertz,
            origin,
            pcpus,
            ..Self::default()
        };
        for _ in 0..partitions {
            trace.partitions.push(reader.name()?);
        }
        for _ in 0..vcpus {
            let [partition, index, pcpu, _] = reader.array()?;
            trace.vcpus.push(TraceVcpu {
                partition,
                index,
                pcpu,
            });
        }
        if causes != 0 {
            for _ in 0..vcpus {
                trace.exits.push(reader.exits()?);
            }
        }
        let records = bytes.get(header..).ok_or_else(truncated)?;
        if records.len() as u64 != count.saturating_mul(RECORD_SIZE as u64) {
            return Err(format!(
                "it has {} bytes of records, {count} records need {}",
                records.len(),
                count.saturating_mul(RECORD_SIZE as u64)
            ));
        }
        for (number, record) in records.chunks_exact(RECORD_SIZE).enumerate() {
            let Some(record) = record.first_chunk() else { break };
            let record = Record::from_bytes(*record)
                .map_err(|error| format!("record {number} is none: {}", describe(error)))?;
            trace.records.push(record);
        }
        trace.check()?;
        Ok(trace)
    }
}

/// Explains to a user why two words are no record.
#[must_use]
pub fn describe(error: BadRecord) -> String {
    match error {
        BadRecord::Empty => "it is empty".to_owned(),
        BadRecord::Kind(kind) => format!("there is no kind {kind}"),
        BadRecord::Subject(subject) => format!("its kind cannot be about {subject}"),
        BadRecord::Detail(detail) => format!("its kind has no detail {detail}"),
        BadRecord::Argument(argument) => format!("its kind has no argument {argument:#x}"),
    }
}

fn header_size(partitions: usize, vcpus: usize, causes: usize) -> usize {
    (FIXED + NAME_LEN * partitions + 4 * vcpus * (1 + causes)).next_multiple_of(RECORD_SIZE)
}

fn padded(name: &str) -> [u8; NAME_LEN] {
    let mut bytes = [0; NAME_LEN];
    // A name of a manifest fits into the bytes.
    for (to, from) in bytes.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    bytes
}

fn truncated() -> String {
    "it ends within its header".to_owned()
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let chunk = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk);
        self.at += N;
        chunk.copied().ok_or_else(truncated)
    }

    fn exits(&mut self) -> Result<ExitCounts, String> {
        let mut exits = ExitCounts::default();
        for count in &mut exits {
            *count = self.word()?.into();
        }
        Ok(exits)
    }

    fn word(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }

    fn count(&mut self) -> Result<u8, String> {
        let count = self.word()?;
        u8::try_from(count).map_err(|_| format!("it has {count} of what can be {COUNT_MAX} at most"))
    }

    fn name(&mut self) -> Result<String, String> {
        let bytes: [u8; NAME_LEN] = self.array()?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME_LEN);
        let text = std::str::from_utf8(&bytes[..end]).ok();
        let text = text.filter(|text| !text.chars().any(char::is_control));
        text.map(str::to_owned)
            .ok_or_else(|| "one of its names is no text".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn a_trace_comes_back_from_its_file() {
        let trace = sample(20);
        assert_eq!(Trace::decode(&trace.encode()), Ok(trace.clone()));
        let counted = Trace {
            exits: vec![[1, 2, 3, 4, 5, 6, u32::MAX.into()]; trace.vcpus.len()],
            ..trace
        };
        assert_eq!(Trace::decode(&counted.encode()), Ok(counted));
        let empty = Trace {
            hertz: 1,
            ..Trace::default()
        };
        assert_eq!(Trace::decode(&empty.encode()), Ok(empty));
    }

    #[test]
    fn no_part_of_a_file_is_a_file() {
        let bytes = sample(2).encode();
        for length in 0..bytes.len() {
            assert!(Trace::decode(&bytes[..length]).is_err(), "{length}");
        }
        let longer = [&bytes[..], &[0; 16]].concat();
        let error = Trace::decode(&longer).unwrap_err();
        assert!(
            error.starts_with("it has 240 bytes of records, 14 records need 224"),
            "{error}"
        );
    }

    /// Shows a trace in every form, as is possible for every trace that has passed the reader.
    fn show(trace: &Trace) {
        let _ = (
            trace.report(),
            trace.list(0, u64::MAX),
            trace.list(7, 3),
            trace.perfetto(),
        );
        let _ = crate::gantt::page(&crate::gantt::of_trace(trace, "damaged".to_owned()));
    }

    #[test]
    fn damaged_files_are_refused_or_shown() {
        let good = sample(6).encode();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as usize % below
        };
        let (mut shown, mut refused) = (0, 0);
        for _ in 0..4000 {
            let mut bytes = good.clone();
            for _ in 0..=random(3) {
                // The position is the one of a whole number: of the header, or the time or the rest of a
                // record.
                let at = 8 * random(bytes.len() / 8);
                let value = match random(4) {
                    0 => [0xff; 8],
                    1 => (random(1 << 20) as u64).to_le_bytes(),
                    2 => [0; 8],
                    _ => {
                        let mut value: [u8; 8] = bytes[at..at + 8].try_into().unwrap();
                        value[random(8)] = random(256) as u8;
                        value
                    }
                };
                bytes[at..at + 8].copy_from_slice(&value);
            }
            match Trace::decode(&bytes) {
                Ok(trace) => {
                    show(&trace);
                    shown += 1;
                }
                Err(why) => {
                    assert!(!why.is_empty() && !why.contains(char::is_control), "{why}");
                    refused += 1;
                }
            }
        }
        assert!(shown > 200 && refused > 1000, "{shown} shown, {refused} refused");
    }

    #[test]
    fn times_at_the_end_of_the_world_are_shown() {
        let mut trace = sample(6);
        for hertz in [1, 3, u64::MAX] {
            trace.hertz = hertz;
            for origin in [0, u64::MAX] {
                trace.origin = origin;
                show(&trace);
            }
        }
        for record in trace.records.iter_mut().skip(5) {
            record.time = u64::MAX;
        }
        show(&trace);
        trace.records.clear();
        show(&trace);
    }

    #[test]
    fn a_damaged_file_is_refused_for_what_is_wrong_or_is_another_trace() {
        let trace = sample(2);
        let bytes = trace.encode();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                if let Ok(other) = Trace::decode(&damaged) {
                    assert_eq!(other.check(), Ok(()));
                }
            }
        }
        let with = |at: usize, value: u8| {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            Trace::decode(&damaged).unwrap_err()
        };
        assert_eq!(with(0, b'X'), "it does not start like a trace");
        assert_eq!(with(8, 2), "its format is revision 2, this tool reads 1");
        assert_eq!(with(45, 1), "it has 258 of what can be 255 at most");
        assert_eq!(with(44, 1), "the lengths in its header cannot be");
        assert_eq!(with(56, 0xFF), "one of its names is no text");
        assert_eq!(with(160 + 8, 99), "record 0 is none: there is no kind 99");
        assert_eq!(with(160 + 10, 2), "record 0 names vCPU 2, which does not exist");
    }
}
