// SPDX-License-Identifier: Apache-2.0
//! The records of a trace one by one, in words: for an exact look at the events around a moment.

use super::Trace;
use bulkhead_abi::trace::{Event, Record};
use std::fmt::Write;

impl Trace {
    /// Lists the records from `from` to `to` nanoseconds after boot, a line each.
    #[must_use]
    pub fn list(&self, from: u64, to: u64) -> String {
        let mut text = String::new();
        for record in &self.records {
            let time = self.nanoseconds(record.time);
            if (from..=to).contains(&time) {
                let _ = writeln!(
                    text,
                    "{:>6}.{:06} ms  pCPU {}  {}",
                    time / 1_000_000,
                    time % 1_000_000,
                    record.pcpu,
                    self.words(record)
                );
            }
        }
        text
    }

    /// Describes the event of a record.
    fn words(&self, record: &Record) -> String {
        let who = |vcpu: Option<u8>| vcpu.map_or("nobody".to_owned(), |vcpu| self.vcpu_name(vcpu));
        let about = |vcpu: u8, what: &str| format!("{:<9} {}", what, self.vcpu_name(vcpu));
        match record.event {
            Event::Switch { from, to, why } => {
                format!("switch    {} -> {} ({})", who(from), who(to), why.name())
            }
            Event::Exit {
                vcpu,
                cause,
                argument,
            } => format!("exit      {} ({} {argument:#x})", who(vcpu), cause.name()),
            Event::Short {
                vcpu,
                cause,
                argument,
            } => {
                let (who, cause) = (self.vcpu_name(vcpu), cause.name());
                format!("short     {who} ({cause} {argument:#x})")
            }
            Event::Wake { vcpu, late: 0 } => about(vcpu, "wake"),
            Event::Wake { vcpu, late } => {
                let late = self.duration(late.into());
                format!(
                    "{}, due {}.{:03} us before",
                    about(vcpu, "wake"),
                    late / 1000,
                    late % 1000
                )
            }
            Event::Block { vcpu, why } => format!("{} ({})", about(vcpu, "block"), why.name()),
            Event::Exhausted { vcpu } => about(vcpu, "exhausted"),
            Event::Replenished { vcpu } => about(vcpu, "refilled"),
            Event::WindowStart { vcpu } => about(vcpu, "window"),
            Event::PeriodStart { vcpu } => about(vcpu, "period"),
            Event::Schedule { schedule } => format!("schedule  {schedule}"),
            Event::Critical { vcpu } => about(vcpu, "critical"),
            Event::DeadlineMissed { vcpu } => about(vcpu, "MISSED"),
            Event::State { partition, state } => {
                format!("state     {}: {}", self.partition_name(partition), state.name())
            }
            Event::Health { partition, class } => {
                format!("health    {}: {}", self.partition_name(partition), class.name())
            }
            Event::Lost { count } => format!("LOST      {count} records"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;

    #[test]
    fn each_record_between_two_times_has_a_line() {
        let trace = sample(2);
        let expected = "     0.100000 ms  pCPU 0  exit      noise (wake 0x0)
     0.100000 ms  pCPU 0  wake      control
     0.102000 ms  pCPU 0  switch    noise -> control (preempted)
";
        assert_eq!(trace.list(100_000, 102_000), expected);
        assert_eq!(trace.list(0, u64::MAX).lines().count(), trace.records.len());
    }
}
