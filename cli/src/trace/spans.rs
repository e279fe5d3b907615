// SPDX-License-Identifier: Apache-2.0
//! The spans in which vCPUs ran, and the time that each vCPU waited. Reports and drawings are made of them.
//!
//! A switch ends a span and begins another. Where records are missing, no vCPU is said to have run. The span
//! before such a gap ends at its last record. The next span begins after the gap, with the vCPU that the
//! next switch says had been running.

use super::Trace;
use bulkhead_abi::trace::{Event, Record};

/// A vCPU, or none, had a pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The pCPU.
    pub pcpu: u8,
    /// The vCPU, or `None` if none ran.
    pub vcpu: Option<u8>,
    /// First tick.
    pub start: u64,
    /// The tick after the last.
    pub end: u64,
    /// The span ends because another vCPU came first, and not because there was nothing to do.
    pub preempted: bool,
}

impl Span {
    /// Returns the length in ticks.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// A vCPU that became ready, and when it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The vCPU.
    pub vcpu: u8,
    /// The time at which the hypervisor noticed that the vCPU is ready.
    pub woken: u64,
    /// The time at which the timer was due that made the vCPU ready, if it was one.
    pub due: Option<u64>,
    /// The beginning of the exit in which the hypervisor noticed, if it was no timer. The interrupt or the
    /// message came after that moment, or was on its way into the hypervisor.
    pub exit: Option<u64>,
    /// The time at which the vCPU ran.
    pub ran: u64,
}

/// A vCPU that became ready, and has not run.
#[derive(Clone, Copy)]
struct Woken {
    at: u64,
    /// Ticks since its timer was due, 0 if it was no timer.
    late: u32,
    /// The beginning of the exit in which that was noticed.
    exit: u64,
}

/// The state of one pCPU, as far as is known.
#[derive(Clone, Copy)]
enum State {
    /// Records are missing, or none has come yet, since this time.
    Unknown(u64),
    /// This vCPU has run since this time.
    Runs(Option<u8>, u64),
}

impl Trace {
    /// Returns the records of a pCPU.
    pub fn of_pcpu(&self, pcpu: u8) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| record.pcpu == pcpu)
    }

    /// Returns the spans of a pCPU, in order. The last span ends with the trace.
    #[must_use]
    pub fn spans(&self, pcpu: u8) -> Vec<Span> {
        let Some((first, last)) = self.range() else {
            return Vec::new();
        };
        let mut spans = Vec::new();
        let mut push = |vcpu, start, end, preempted| {
            if end > start {
                spans.push(Span {
                    pcpu,
                    vcpu,
                    start,
                    end,
                    preempted,
                });
            }
        };
        let mut state = State::Unknown(first);
        let mut latest = first;
        for record in self.of_pcpu(pcpu) {
            match record.event {
                Event::Switch { from, to, why } => {
                    let (State::Unknown(since) | State::Runs(_, since)) = state;
                    let preempted = why == bulkhead_abi::trace::SwitchReason::Preempted;
                    push(from, since, record.time, preempted);
                    state = State::Runs(to, record.time);
                }
                Event::Lost { .. } => {
                    if let State::Runs(vcpu, since) = state {
                        push(vcpu, since, latest, true);
                    }
                    state = State::Unknown(record.time);
                }
                _ => {}
            }
            latest = record.time;
        }
        if let State::Runs(vcpu, since) = state {
            push(vcpu, since, last, true);
        }
        spans
    }

    /// Returns the time that each vCPU that became ready waited for its pCPU. A vCPU that was ready again
    /// before another ran did not wait.
    #[must_use]
    pub fn responses(&self) -> Vec<Response> {
        let mut woken = vec![None; self.vcpus.len()];
        let mut responses = Vec::new();
        let mut ran = |woken: &mut Vec<Option<Woken>>, vcpu: u8, ran: Option<u64>| {
            if let Some(Woken { at, late, exit }) = woken.get_mut(usize::from(vcpu)).and_then(Option::take) {
                responses.push(Response {
                    vcpu,
                    woken: at,
                    due: (late != 0).then(|| at.saturating_sub(late.into())),
                    exit: (late == 0).then_some(exit),
                    ran: ran.unwrap_or(at),
                });
            }
        };
        // The exit that is being handled, by pCPU. A pCPU that waits takes an interrupt at once.
        let mut exits = vec![None; usize::from(self.pcpus)];
        for record in &self.records {
            let exit = exits.get_mut(usize::from(record.pcpu));
            let began = exit.as_deref().copied().flatten();
            match record.event {
                Event::Exit { .. } => exit.into_iter().for_each(|exit| *exit = Some(record.time)),
                Event::Switch { .. } | Event::Lost { .. } => exit.into_iter().for_each(|exit| *exit = None),
                _ => {}
            }
            match record.event {
                Event::Wake { vcpu, late } => {
                    if let Some(place) = woken.get_mut(usize::from(vcpu)) {
                        let (at, exit) = (record.time, began.unwrap_or(record.time));
                        *place = Some(Woken { at, late, exit });
                    }
                }
                Event::Switch { to: Some(vcpu), .. } => ran(&mut woken, vcpu, Some(record.time)),
                // The vCPU is doing something and never left.
                Event::Exit { vcpu: Some(vcpu), .. } => ran(&mut woken, vcpu, None),
                // The trace does not say whether one of these vCPUs ran meanwhile.
                Event::Lost { .. } => {
                    for (place, vcpu) in woken.iter_mut().zip(&self.vcpus) {
                        if vcpu.pcpu == record.pcpu {
                            *place = None;
                        }
                    }
                }
                _ => {}
            }
        }
        responses
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn spans_cover_the_time_from_the_first_switch_on() {
        let trace = sample(2);
        let spans = trace.spans(0);
        let expected = [
            (Some(1), 1000, 1102, true),
            (Some(0), 1102, 1112, false),
            (Some(1), 1112, 1202, true),
            (Some(0), 1202, 1212, false),
        ];
        let seen: Vec<_> = spans
            .iter()
            .map(|span| (span.vcpu, span.start, span.end, span.preempted))
            .collect();
        assert_eq!(seen, expected);
        assert_eq!(trace.spans(1), []);
    }

    #[test]
    fn nothing_is_said_about_a_gap() {
        let mut trace = sample(2);
        let gap = Record {
            time: 1112,
            pcpu: 0,
            event: Event::Lost { count: 3 },
        };
        // The place is right after the return to the vCPU in the background.
        let place = trace.records.iter().rposition(|record| record.time == 1112);
        trace.records.insert(place.unwrap() + 1, gap);
        let spans = trace.spans(0);
        assert_eq!(spans[2].start, 1112, "the switch behind the gap says who ran");
        trace.records.retain(|record| record.time <= 1112);
        assert_eq!(trace.spans(0).last().map(|span| span.end), Some(1112));
    }

    #[test]
    fn a_response_is_the_time_from_ready_to_running() {
        let responses = sample(3).responses();
        let waits: Vec<_> = responses
            .iter()
            .map(|response| (response.vcpu, response.ran - response.woken))
            .collect();
        assert_eq!(waits, [(1, 0), (0, 2), (0, 2), (0, 2)]);
    }
}
