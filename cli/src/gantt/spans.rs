// SPDX-License-Identifier: Apache-2.0
//! From records to the parts of a drawing: the stretches in which each vCPU ran, and marks.

use super::Chart;
use bulkhead_abi::trace::{Event, Record};

/// The meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Wake,
    Exhausted,
    Replenished,
    WindowStart,
    PeriodStart,
    DeadlineMissed,
    Critical,
}

impl Mark {
    pub const ALL: [Self; 7] = [
        Self::Wake,
        Self::Exhausted,
        Self::Replenished,
        Self::WindowStart,
        Self::PeriodStart,
        Self::DeadlineMissed,
        Self::Critical,
    ];

    /// Returns the class of the mark in the page, and its text in the legend.
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Wake => ("wake", "becomes ready"),
            Self::Exhausted => ("exhausted", "budget used up"),
            Self::Replenished => ("replenished", "budget back"),
            Self::WindowStart => ("window", "window starts"),
            Self::PeriodStart => ("period", "period starts"),
            Self::DeadlineMissed => ("missed", "deadline missed"),
            Self::Critical => ("critical", "critical interrupt"),
        }
    }

    const fn of(event: &Event) -> Option<(Self, u8)> {
        Some(match event {
            Event::Wake { vcpu, .. } => (Self::Wake, *vcpu),
            Event::Exhausted { vcpu } => (Self::Exhausted, *vcpu),
            Event::Replenished { vcpu } => (Self::Replenished, *vcpu),
            Event::WindowStart { vcpu } => (Self::WindowStart, *vcpu),
            Event::PeriodStart { vcpu } => (Self::PeriodStart, *vcpu),
            Event::DeadlineMissed { vcpu } => (Self::DeadlineMissed, *vcpu),
            Event::Critical { vcpu } => (Self::Critical, *vcpu),
            _ => return None,
        })
    }
}

/// The drawing of one lane. Times count from the start of the chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LaneData {
    /// From and to.
    pub spans: Vec<(u64, u64)>,
    pub marks: Vec<(Mark, u64)>,
}

/// Returns the data of the lanes, in the order of the lanes.
pub(super) fn collect(chart: &Chart) -> Vec<LaneData> {
    chart
        .lanes
        .iter()
        .map(|lane| {
            let own = chart.records.iter().filter(|record| record.pcpu == lane.pcpu);
            lane_data(own, lane.vcpu, chart)
        })
        .collect()
}

fn lane_data<'a>(records: impl Iterator<Item = &'a Record>, lane: u8, chart: &Chart) -> LaneData {
    let mut data = LaneData::default();
    let length = chart.end.saturating_sub(chart.start);
    let mut since = None;
    for record in records.filter(|record| record.time <= chart.end) {
        let at = record.time.saturating_sub(chart.start);
        match record.event {
            Event::Switch { from, to, .. } if from == Some(lane) || to == Some(lane) => {
                // The vCPU that runs at the first switch has run since the start.
                if let (true, start) = (from == Some(lane), since.take().unwrap_or(0)) {
                    push(&mut data.spans, start, at);
                }
                if to == Some(lane) {
                    since = Some(at);
                }
            }
            Event::Lost { .. } => since = None,
            ref event => {
                if let Some((mark, _)) = Mark::of(event).filter(|(_, vcpu)| *vcpu == lane) {
                    data.marks.push((mark, at));
                }
            }
        }
    }
    if let Some(start) = since {
        push(&mut data.spans, start, length);
    }
    data
}

fn push(spans: &mut Vec<(u64, u64)>, start: u64, end: u64) {
    if end > start {
        spans.push((start, end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gantt::Lane;
    use bulkhead_abi::trace::SwitchReason;

    fn chart(records: Vec<Record>) -> Chart {
        let lane = |vcpu: u8| Lane {
            vcpu,
            name: format!("p{vcpu}"),
            pcpu: 0,
            partition: usize::from(vcpu),
        };
        Chart {
            title: String::new(),
            subtitle: String::new(),
            hertz: 1_000_000_000,
            start: 100,
            end: 200,
            lanes: vec![lane(0), lane(1)],
            policies: Vec::new(),
            tasks: Vec::new(),
            records,
        }
    }

    #[test]
    fn a_switch_ends_one_span_and_begins_another() {
        let switch = |time, from, to| Record {
            time,
            pcpu: 0,
            event: Event::Switch {
                from,
                to,
                why: SwitchReason::Blocked,
            },
        };
        let wake = Record {
            time: 110,
            pcpu: 0,
            event: Event::Wake { vcpu: 1, late: 0 },
        };
        let records = vec![
            wake,
            switch(110, Some(0), Some(1)),
            switch(130, Some(1), None),
            switch(150, None, Some(0)),
        ];
        let data = collect(&chart(records));
        assert_eq!(data[0].spans, [(0, 10), (50, 100)]);
        assert_eq!(data[1].spans, [(10, 30)]);
        assert_eq!(data[1].marks, [(Mark::Wake, 10)]);
    }
}
