// SPDX-License-Identifier: Apache-2.0
//! A trace for Perfetto (<https://ui.perfetto.dev>) and Chrome: the JSON trace event format.
//!
//! The format has a process per pCPU, and a thread per vCPU bound to it. Spans are complete events.
//! Everything else is an instant on the thread of the vCPU it is about, or on thread 0 if it is about the
//! pCPU. Times are microseconds since boot.

use super::{Trace, micros};
use bulkhead_abi::trace::{Event, Record};
use std::fmt::Write;

impl Trace {
    /// Returns the JSON text.
    #[must_use]
    pub fn perfetto(&self) -> String {
        let mut events = Vec::new();
        for pcpu in 0..self.pcpus {
            events.push(meta("process_name", pcpu, 0, &format!("pCPU {pcpu}")));
            events.push(meta("thread_name", pcpu, 0, "hypervisor"));
        }
        for (vcpu, number) in self.vcpus.iter().zip(0_u8..) {
            let thread = thread(Some(number));
            events.push(meta("thread_name", vcpu.pcpu, thread, &self.vcpu_name(number)));
        }
        for pcpu in 0..self.pcpus {
            for span in self.spans(pcpu) {
                let Some(vcpu) = span.vcpu else { continue };
                let why = if span.preempted { "preempted" } else { "blocked" };
                events.push(format!(
                    r#"{{"ph":"X","name":{},"cat":"run","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"end":"{why}"}}}}"#,
                    quoted(&self.vcpu_name(vcpu)),
                    process(pcpu),
                    thread(Some(vcpu)),
                    micros(self.nanoseconds(span.start)),
                    micros(self.duration(span.length())),
                ));
            }
        }
        events.extend(self.records.iter().filter_map(|record| self.instant(record)));
        format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"board\":{}}},\"traceEvents\":[\n{}\n]}}\n",
            quoted(&self.board),
            events.join(",\n")
        )
    }

    fn instant(&self, record: &Record) -> Option<String> {
        let (category, name, vcpu) = match record.event {
            Event::Switch { .. } => return None,
            Event::Exit {
                vcpu,
                cause,
                argument,
            } => ("exit", format!("{} {argument:#x}", cause.name()), vcpu),
            Event::Short {
                vcpu,
                cause,
                argument,
            } => (
                "short exit",
                format!("{} {argument:#x}", cause.name()),
                Some(vcpu),
            ),
            Event::Wake { vcpu, .. } => ("schedule", "wake".to_owned(), Some(vcpu)),
            Event::Block { vcpu, why } => ("schedule", format!("block: {}", why.name()), Some(vcpu)),
            Event::Exhausted { vcpu } => ("budget", "exhausted".to_owned(), Some(vcpu)),
            Event::Replenished { vcpu } => ("budget", "replenished".to_owned(), Some(vcpu)),
            Event::WindowStart { vcpu } => ("window", "window".to_owned(), Some(vcpu)),
            Event::PeriodStart { vcpu } => ("window", "period".to_owned(), Some(vcpu)),
            Event::DeadlineMissed { vcpu } => ("deadline", "deadline missed".to_owned(), Some(vcpu)),
            Event::Critical { vcpu } => ("schedule", "critical interrupt".to_owned(), Some(vcpu)),
            Event::Schedule { schedule } => ("window", format!("schedule {schedule}"), None),
            Event::State { partition, state } => {
                let name = self.partition_name(partition);
                ("partition", format!("{name}: {}", state.name()), None)
            }
            Event::Health { partition, class } => {
                let name = self.partition_name(partition);
                ("health", format!("{name}: {}", class.name()), None)
            }
            Event::Lost { count } => ("trace", format!("{count} records lost"), None),
        };
        Some(format!(
            r#"{{"ph":"i","s":"t","name":{},"cat":"{category}","pid":{},"tid":{},"ts":{}}}"#,
            quoted(&name),
            process(record.pcpu),
            thread(vcpu),
            micros(self.nanoseconds(record.time)),
        ))
    }
}

/// Returns the number of the process of a pCPU. Process 0 is none.
fn process(pcpu: u8) -> u32 {
    u32::from(pcpu) + 1
}

fn thread(vcpu: Option<u8>) -> u32 {
    vcpu.map_or(0, |vcpu| u32::from(vcpu) + 1)
}

fn meta(what: &str, pcpu: u8, thread: u32, name: &str) -> String {
    format!(
        r#"{{"ph":"M","name":"{what}","pid":{},"tid":{thread},"args":{{"name":{}}}}}"#,
        process(pcpu),
        quoted(name)
    )
}

/// Returns a JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if control.is_control() => _ = write!(quoted, "\\u{:04x}", u32::from(control)),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn spans_and_instants_are_there_with_their_times() {
        let text = sample(1).perfetto();
        let span = r#"{"ph":"X","name":"control","cat":"run","pid":1,"tid":1,"ts":102.000,"dur":10.000,"args":{"end":"blocked"}}"#;
        assert!(text.contains(span), "{text}");
        let wake = r#"{"ph":"i","s":"t","name":"wake","cat":"schedule","pid":1,"tid":1,"ts":100.000}"#;
        assert!(text.contains(wake), "{text}");
        assert_eq!(text.matches(r#""ph":"M""#).count(), 4);
        assert_eq!(text.matches(r#""ph":"X""#).count(), 2);
    }

    #[test]
    fn no_name_breaks_out_of_its_string() {
        assert_eq!(quoted("a\"b\\c\nd"), r#""a\"b\\c\u000ad""#);
    }
}
