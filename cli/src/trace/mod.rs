// SPDX-License-Identifier: Apache-2.0
//! A trace: the actions of every pCPU of a system with their times, as records of [`bulkhead_abi::trace`]
//! with the names that belong to them.
//!
//! A trace comes from the rings of a board ([`collect`]), from a file ([`mod@file`]), or from the scheduling
//! simulator. It goes to a file, a report ([`report`]), a list ([`list`]), Perfetto ([`perfetto`]) or a
//! drawing. Every maker of a trace keeps the rules that [`Trace::check`] checks, and every reader can count
//! on them: the records are in the order of their times, and name only pCPUs, vCPUs and partitions that
//! exist.

pub mod collect;
mod figures;
pub mod file;
pub mod list;
pub mod perfetto;
pub mod replay;
pub mod report;
pub mod spans;
mod turn_slack;
mod workload;

use crate::log::exits::ExitCounts;
use bulkhead_abi::trace::{Event, Record};

/// A vCPU of a traced system. Its number in the records is its place in [`Trace::vcpus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceVcpu {
    /// Its partition.
    pub partition: u8,
    /// Its number in the partition.
    pub index: u8,
    /// The pCPU it is bound to.
    pub pcpu: u8,
}

/// A trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Name of the board.
    pub board: String,
    /// Ticks of the records' times per second. Not 0.
    pub hertz: u64,
    /// The tick at which the hypervisor booted.
    pub origin: u64,
    /// Number of pCPUs.
    pub pcpus: u8,
    /// Names of the partitions.
    pub partitions: Vec<String>,
    /// The vCPUs.
    pub vcpus: Vec<TraceVcpu>,
    /// All exits of each vCPU up to the end of the run, exits without a record included. Empty if they
    /// were not counted.
    pub exits: Vec<ExitCounts>,
    /// The records, in the order of their times.
    pub records: Vec<Record>,
}

impl Trace {
    /// Returns the nanoseconds since boot.
    #[must_use]
    pub fn nanoseconds(&self, time: u64) -> u64 {
        self.duration(time.saturating_sub(self.origin))
    }

    /// Returns the nanoseconds that `ticks` last.
    #[must_use]
    pub fn duration(&self, ticks: u64) -> u64 {
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(self.hertz.max(1));
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }

    /// Returns the name of a vCPU: its partition's name, with its number if the partition has several.
    #[must_use]
    pub fn vcpu_name(&self, vcpu: u8) -> String {
        let Some(info) = self.vcpus.get(usize::from(vcpu)) else {
            return format!("vcpu-{vcpu}");
        };
        let name = self.partition_name(info.partition);
        let siblings = self
            .vcpus
            .iter()
            .filter(|other| other.partition == info.partition);
        if siblings.count() > 1 {
            format!("{name}/{}", info.index)
        } else {
            name.to_owned()
        }
    }

    /// Returns the name of a partition.
    #[must_use]
    pub fn partition_name(&self, partition: u8) -> &str {
        self.partitions
            .get(usize::from(partition))
            .map_or("?", String::as_str)
    }

    /// Returns the time of the first and of the last record.
    #[must_use]
    pub fn range(&self) -> Option<(u64, u64)> {
        Some((self.records.first()?.time, self.records.last()?.time))
    }

    /// Records that are missing.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let lost = self.records.iter().map(|record| match record.event {
            Event::Lost { count } => u64::from(count),
            _ => 0,
        });
        lost.sum()
    }

    /// Checks that everything a record names exists, and that the records are in order.
    ///
    /// # Errors
    /// The error names the first fault.
    pub fn check(&self) -> Result<(), String> {
        if self.hertz == 0 {
            return Err("its clock stands still".to_owned());
        }
        for (number, vcpu) in self.vcpus.iter().enumerate() {
            if usize::from(vcpu.partition) >= self.partitions.len() || vcpu.pcpu >= self.pcpus {
                return Err(format!(
                    "vCPU {number} has a partition or pCPU that does not exist"
                ));
            }
        }
        let mut before = 0;
        for (number, record) in self.records.iter().enumerate() {
            if record.time < before {
                return Err(format!("record {number} is earlier than the one before"));
            }
            before = record.time;
            self.check_record(record)
                .map_err(|what| format!("record {number} names {what}, which does not exist"))?;
        }
        Ok(())
    }

    /// Checks that everything the record names exists.
    ///
    /// # Errors
    /// The error names the thing that does not exist.
    pub fn check_record(&self, record: &Record) -> Result<(), String> {
        if record.pcpu >= self.pcpus {
            return Err(format!("pCPU {}", record.pcpu));
        }
        let vcpu = |vcpu: u8| match self.vcpus.get(usize::from(vcpu)) {
            Some(_) => Ok(()),
            None => Err(format!("vCPU {vcpu}")),
        };
        match record.event {
            Event::Switch { from, to, .. } => from.map_or(Ok(()), vcpu).and(to.map_or(Ok(()), vcpu)),
            Event::Exit { vcpu: ran, .. } => ran.map_or(Ok(()), vcpu),
            Event::Wake { vcpu: who, .. }
            | Event::Short { vcpu: who, .. }
            | Event::Block { vcpu: who, .. }
            | Event::Exhausted { vcpu: who }
            | Event::Replenished { vcpu: who }
            | Event::WindowStart { vcpu: who }
            | Event::PeriodStart { vcpu: who }
            | Event::Critical { vcpu: who }
            | Event::DeadlineMissed { vcpu: who } => vcpu(who),
            Event::State { partition, .. } | Event::Health { partition, .. } => {
                match self.partitions.get(usize::from(partition)) {
                    Some(_) => Ok(()),
                    None => Err(format!("partition {partition}")),
                }
            }
            Event::Schedule { .. } | Event::Lost { .. } => Ok(()),
        }
    }
}

/// Writes a time in microseconds.
fn micros(nanoseconds: u64) -> String {
    format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bulkhead_abi::trace::{BlockReason, ExitCause, SwitchReason};

    /// Returns a trace of two partitions that share a pCPU: `control` wakes every 100 ticks for 10, `noise`
    /// has the rest.
    pub(crate) fn sample(periods: u64) -> Trace {
        let vcpu = |partition, index| TraceVcpu {
            partition,
            index,
            pcpu: 0,
        };
        let mut trace = Trace {
            board: "board".to_owned(),
            hertz: 1_000_000,
            origin: 1000,
            pcpus: 1,
            partitions: vec!["control".to_owned(), "noise".to_owned()],
            vcpus: vec![vcpu(0, 0), vcpu(1, 0)],
            exits: Vec::new(),
            records: Vec::new(),
        };
        let mut add = |time, event| {
            trace.records.push(Record { time, pcpu: 0, event });
        };
        add(1000, Event::Wake { vcpu: 1, late: 0 });
        let first = Event::Switch {
            from: None,
            to: Some(1),
            why: SwitchReason::Idle,
        };
        add(1000, first);
        for start in (0..periods).map(|period| 1100 + 100 * period) {
            let exit = |vcpu, cause| Event::Exit {
                vcpu: Some(vcpu),
                cause,
                argument: 0,
            };
            add(start, exit(1, ExitCause::Wake));
            add(start, Event::Wake { vcpu: 0, late: 0 });
            let to_control = Event::Switch {
                from: Some(1),
                to: Some(0),
                why: SwitchReason::Preempted,
            };
            add(start + 2, to_control);
            add(start + 12, exit(0, ExitCause::Idle));
            let block = Event::Block {
                vcpu: 0,
                why: BlockReason::Idle,
            };
            add(start + 12, block);
            let back = Event::Switch {
                from: Some(0),
                to: Some(1),
                why: SwitchReason::Blocked,
            };
            add(start + 12, back);
        }
        trace
    }

    #[test]
    fn a_trace_knows_its_names_and_times() {
        let trace = sample(3);
        assert_eq!(trace.check(), Ok(()));
        assert_eq!(
            (trace.vcpu_name(0), trace.vcpu_name(9)),
            ("control".into(), "vcpu-9".into())
        );
        assert_eq!(trace.nanoseconds(1003), 3_000);
        assert_eq!(trace.range(), Some((1000, 1312)));
    }

    #[test]
    fn what_does_not_exist_is_found() {
        let wrong = |change: fn(&mut Trace)| {
            let mut trace = sample(2);
            change(&mut trace);
            trace.check().unwrap_err()
        };
        assert_eq!(wrong(|trace| trace.hertz = 0), "its clock stands still");
        assert_eq!(
            wrong(|trace| trace.records[3].time = 5),
            "record 3 is earlier than the one before"
        );
        assert_eq!(
            wrong(|trace| trace.records[0].pcpu = 1),
            "record 0 names pCPU 1, which does not exist"
        );
        assert_eq!(
            wrong(|trace| trace.records[0].event = Event::Wake { vcpu: 2, late: 0 }),
            "record 0 names vCPU 2, which does not exist"
        );
        assert_eq!(
            wrong(|trace| trace.vcpus[1].partition = 2),
            "vCPU 1 has a partition or pCPU that does not exist"
        );
    }
}
