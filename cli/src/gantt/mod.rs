// SPDX-License-Identifier: Apache-2.0
//! A Gantt chart of a schedule, simulated or traced: one HTML page that needs nothing else.
//!
//! The chart is an SVG with a lane per vCPU, grouped by pCPU. A lane has a bar where its vCPU runs. Below it,
//! each task of the vCPU has a row with its jobs, and a bar where the task runs. Marks show where the vCPU
//! becomes ready, where its budget ends and comes back, where a window or period starts, and where a deadline
//! is missed. Without scripts, and on paper, the page shows the beginning of the schedule. The page's own
//! script redraws the chart from the same data for any stretch of time: wheel or buttons to zoom, drag to
//! move, hover for exact times.

pub mod jobs;
mod spans;
mod svg;

use crate::trace::Trace;
use bulkhead_abi::trace::Record;
use jobs::Task;

/// A row of the chart.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Number of the vCPU in the records.
    pub vcpu: u8,
    /// The name of the lane.
    pub name: String,
    /// Its pCPU.
    pub pcpu: u8,
    /// Its partition, which has a colour.
    pub partition: usize,
}

/// The contents of a chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Headline.
    pub title: String,
    /// The text below the headline.
    pub subtitle: String,
    /// Ticks per second of the records' times.
    pub hertz: u64,
    /// First tick.
    pub start: u64,
    /// The tick after the last.
    pub end: u64,
    /// The rows, grouped by pCPU.
    pub lanes: Vec<Lane>,
    /// A text about each pCPU.
    pub policies: Vec<(u8, String)>,
    /// The tasks of all vCPUs.
    pub tasks: Vec<Task>,
    /// The records. The records of one pCPU are in the order of time.
    pub records: Vec<Record>,
}

/// Returns a trace as a chart with this headline.
#[must_use]
pub fn of_trace(trace: &Trace, title: String) -> Chart {
    let range = trace.range();
    let mut lanes: Vec<Lane> = (0_u8..)
        .zip(&trace.vcpus)
        .map(|(number, vcpu)| Lane {
            vcpu: number,
            name: trace.vcpu_name(number),
            pcpu: vcpu.pcpu,
            partition: usize::from(vcpu.partition),
        })
        .collect();
    lanes.sort_by_key(|lane| (lane.pcpu, lane.vcpu));
    Chart {
        title,
        subtitle: match trace.lost() {
            0 => format!("board {}", trace.board),
            lost => format!(
                "board {}; {lost} records are lost, the chart is incomplete",
                trace.board
            ),
        },
        hertz: trace.hertz,
        start: range.map_or(0, |(first, _)| first),
        end: range.map_or(0, |(_, last)| last),
        lanes,
        policies: Vec::new(),
        tasks: (0_u8..)
            .zip(&trace.vcpus)
            .map(|(number, vcpu)| jobs::of_records(trace.of_pcpu(vcpu.pcpu), number))
            .filter(|task| !task.jobs.is_empty())
            .collect(),
        records: trace.records.clone(),
    }
}

/// Returns the page.
#[must_use]
pub fn page(chart: &Chart) -> String {
    let data = spans::collect(chart);
    svg::page(chart, &data)
}
