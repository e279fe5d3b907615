// SPDX-License-Identifier: Apache-2.0
//! The chart as SVG in a page.
//!
//! All bars of a lane are one path, in ticks from the start. Zooming changes the visible part of the path
//! (the inner `viewBox`), and strokes keep their width. So the page holds each time once, and its script
//! finds the exact times that it shows on hover in the path itself.

use super::jobs::{Job, Task};
use super::spans::{LaneData, Mark};
use super::{Chart, Lane};
use std::fmt::Write;

const LABELS: u32 = 150;
const WIDTH: u32 = 1050;
const LANE: u32 = 30;
/// Height of a task's row.
const TASK: u32 = 18;
const HEAD: u32 = 26;
const AXIS: u32 = 26;
/// Most bars in the part that is shown first.
const SHOWN_FIRST: usize = 120;

/// Fills that differ in print too. Each partition has one.
const COLOURS: [&str; 10] = [
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#994f00", "#005f73",
    "#e9a3c9",
];

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Returns the page.
pub(super) fn page(chart: &Chart, data: &[LaneData]) -> String {
    let shown = shown_first(chart, data);
    let title = escape(&chart.title);
    let mut out = String::new();
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{}</p>\n",
        escape(&chart.subtitle)
    );
    let _ = writeln!(
        out,
        "<p id=\"part\">{}</p>\n<div id=\"controls\"><button data-zoom=\"0.5\">zoom in</button> <button data-zoom=\"2\">zoom out</button> \
         <button data-move=\"-0.5\">&larr;</button> <button data-move=\"0.5\">&rarr;</button> \
         <button data-all=\"\">all</button> <span id=\"hover\">wheel zooms, drag moves, hover for times</span></div>",
        part(chart, shown)
    );
    legend(&mut out, chart, data);
    svg(&mut out, chart, data, shown);
    let _ = write!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    out
}

/// Says which part of the chart is shown first.
fn part(chart: &Chart, shown: u64) -> String {
    let length = chart.end.saturating_sub(chart.start).max(1);
    if shown == length {
        return "All is shown.".to_owned();
    }
    let text = |ticks: u64| label((ticks as f64 * 1e9 / chart.hertz.max(1) as f64).round());
    format!(
        "This is a fragment: 0 to {} of {}. Zoom out, move, or press \u{201c}all\u{201d} for the rest.",
        text(shown),
        text(length)
    )
}

/// Returns the length of the part of the chart that is shown first: the longest part with at most so many
/// bars.
fn shown_first(chart: &Chart, data: &[LaneData]) -> u64 {
    let length = chart.end.saturating_sub(chart.start).max(1);
    let mut ends: Vec<u64> = data
        .iter()
        .flat_map(|lane| lane.spans.iter().map(|(_, end)| *end))
        .collect();
    ends.sort_unstable();
    ends.get(SHOWN_FIRST).copied().unwrap_or(length).clamp(1, length)
}

fn legend(out: &mut String, chart: &Chart, data: &[LaneData]) {
    out.push_str("<p id=\"legend\">");
    for mark in Mark::ALL {
        let (class, text) = mark.names();
        if data
            .iter()
            .any(|lane| lane.marks.iter().any(|(seen, _)| *seen == mark))
        {
            let _ = write!(
                out,
                "<svg width=\"12\" height=\"16\"><path class=\"mark {class}\" d=\"M6 1V15\"/></svg>{text} "
            );
        }
    }
    if !chart.tasks.is_empty() {
        out.push_str(
            "<svg width=\"24\" height=\"16\"><path class=\"job\" d=\"M3 3h18v10h-18z\"/></svg>a job, from release to end ",
        );
    }
    let jobs = || chart.tasks.iter().flat_map(|task| &task.jobs);
    if jobs().any(|job| job.deadline.is_some()) {
        out.push_str(
            "<svg width=\"12\" height=\"16\"><path class=\"deadline\" d=\"M6 1V15\"/></svg>its deadline ",
        );
    }
    if jobs().any(|job| job.is_late(chart.end)) {
        out.push_str("<svg width=\"24\" height=\"16\"><path class=\"job late\" d=\"M3 3h18v10h-18z\"/></svg>a job that is late ");
    }
    out.push_str("</p>\n");
}

fn svg(out: &mut String, chart: &Chart, data: &[LaneData], shown: u64) {
    let mut rows = String::new();
    let mut bars = String::new();
    let mut y = AXIS;
    let mut pcpu = None;
    for (lane, data) in chart.lanes.iter().zip(data) {
        if pcpu.replace(lane.pcpu) != Some(lane.pcpu) {
            let policy = chart.policies.iter().find(|(pcpu, _)| *pcpu == lane.pcpu);
            let policy = policy.map_or(String::new(), |(_, policy)| format!(", {}", escape(policy)));
            let _ = writeln!(
                rows,
                "<text class=\"head\" x=\"0\" y=\"{}\">pCPU {}{policy}</text>",
                y + HEAD - 8,
                lane.pcpu
            );
            y += HEAD;
        }
        let name = escape(&lane.name);
        let _ = writeln!(
            rows,
            "<text x=\"8\" y=\"{}\">{name}</text><line class=\"base\" x1=\"{LABELS}\" x2=\"{}\" y1=\"{base}\" y2=\"{base}\"/>",
            y + 20,
            LABELS + WIDTH,
            base = y + LANE - 2,
        );
        lane_paths(&mut bars, &name, lane.partition, data, y);
        y += LANE;
        for task in chart.tasks.iter().filter(|task| task.vcpu == lane.vcpu) {
            let _ = writeln!(
                rows,
                "<text class=\"task\" x=\"20\" y=\"{}\">{}</text>",
                y + TASK - 5,
                escape(&task.name)
            );
            task_paths(&mut bars, chart, lane, task, y);
            y += TASK;
        }
    }
    let length = chart.end.saturating_sub(chart.start).max(1);
    let _ = write!(
        out,
        "<svg id=\"chart\" viewBox=\"0 0 {} {}\" data-labels=\"{LABELS}\" data-width=\"{WIDTH}\" data-height=\"{y}\" \
         data-length=\"{length}\" data-shown=\"{shown}\" data-hertz=\"{}\">\n<g id=\"axis\">\n",
        LABELS + WIDTH + 40,
        y + 6,
        chart.hertz,
    );
    axis(out, shown, chart.hertz, y);
    let _ = write!(
        out,
        "</g>\n{rows}<svg id=\"time\" x=\"{LABELS}\" y=\"0\" width=\"{WIDTH}\" height=\"{y}\" \
         viewBox=\"0 0 {shown} {y}\" preserveAspectRatio=\"none\">\n{bars}</svg>\n</svg>\n",
    );
}

fn lane_paths(out: &mut String, name: &str, partition: usize, data: &LaneData, y: u32) {
    let colour = COLOURS[partition % COLOURS.len()];
    let _ = write!(
        out,
        "<path class=\"bar\" data-name=\"{name}\" data-y=\"{y}\" data-height=\"{LANE}\" fill=\"{colour}\" d=\""
    );
    for (start, end) in &data.spans {
        let width = end - start;
        let _ = write!(out, "M{start} {}h{width}v20h-{width}z", y + 8);
    }
    out.push_str("\"/>\n");
    for mark in Mark::ALL {
        let mut own = data.marks.iter().filter(|(seen, _)| *seen == mark).peekable();
        if own.peek().is_none() {
            continue;
        }
        let (class, _) = mark.names();
        let (top, bottom) = match mark {
            Mark::Wake | Mark::Critical => (y + 1, y + 8),
            Mark::Exhausted | Mark::Replenished => (y + 16, y + LANE - 2),
            Mark::WindowStart | Mark::PeriodStart | Mark::DeadlineMissed => (y + 2, y + LANE - 2),
        };
        let _ = write!(out, "<path class=\"mark {class}\" d=\"");
        for (_, at) in own {
            let _ = write!(out, "M{at} {top}V{bottom}");
        }
        out.push_str("\"/>\n");
    }
}

/// Draws the jobs of a task: a frame from release to end, a mark at the deadline, and bars where it runs. The
/// frames carry the jobs' times for the script.
fn task_paths(out: &mut String, chart: &Chart, lane: &Lane, task: &Task, y: u32) {
    let at = |time: u64| time.saturating_sub(chart.start);
    let name = escape(&format!("{}, {}", lane.name, task.name));
    let shown = |job: &&Job| job.released <= chart.end;
    let [mut frames, mut late, mut deadlines, mut times] = [const { String::new() }; 4];
    for job in task.jobs.iter().filter(shown) {
        let end = job.done.unwrap_or(chart.end).min(chart.end);
        let (start, width) = (at(job.released), end.saturating_sub(job.released));
        let into = if job.is_late(chart.end) {
            &mut late
        } else {
            &mut frames
        };
        let _ = write!(into, "M{start} {}h{width}v10h-{width}z", y + 4);
        let known = |time: Option<u64>| time.map_or(String::new(), |time| at(time).to_string());
        if let Some(deadline) = job.deadline.filter(|deadline| *deadline <= chart.end) {
            let _ = write!(deadlines, "M{} {}V{}", at(deadline), y + 1, y + TASK - 1);
        }
        let _ = write!(times, "{start},{},{};", known(job.deadline), known(job.done));
    }
    let colour = COLOURS[lane.partition % COLOURS.len()];
    let _ = write!(
        out,
        "<path class=\"job\" data-name=\"{name}\" data-y=\"{y}\" data-height=\"{TASK}\" data-jobs=\"{times}\" d=\"{frames}\"/>\n\
         <path class=\"job late\" d=\"{late}\"/>\n\
         <path class=\"bar task\" data-name=\"{name}\" data-y=\"{y}\" data-height=\"{TASK}\" fill=\"{colour}\" d=\""
    );
    for (start, end) in task.runs.iter().filter(|(start, _)| *start < chart.end) {
        let width = end.min(&chart.end) - start;
        let _ = write!(out, "M{} {}h{width}v6h-{width}z", at(*start), y + 6);
    }
    let _ = write!(out, "\"/>\n<path class=\"deadline\" d=\"{deadlines}\"/>\n");
}

/// Draws the axis of the part that is shown first. The script draws the axes of other parts.
fn axis(out: &mut String, shown: u64, hertz: u64, height: u32) {
    let nanoseconds = |ticks: f64| ticks * 1e9 / hertz.max(1) as f64;
    let length = nanoseconds(shown as f64);
    let mut step = 10_f64.powf((length / 10.0).max(1.0).log10().floor());
    while length / step > 12.0 {
        step *= if length / step > 24.0 { 5.0 } else { 2.0 };
    }
    let mut at = 0.0;
    while at <= length {
        let x = f64::from(LABELS) + at / length * f64::from(WIDTH);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{AXIS}\" y2=\"{height}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"16\">{}</text>",
            label(at)
        );
        at += step;
    }
}

fn label(nanoseconds: f64) -> String {
    if nanoseconds == 0.0 {
        "0".to_owned()
    } else if nanoseconds >= 1e6 {
        format!("{} ms", nanoseconds / 1e6)
    } else {
        format!("{} µs", nanoseconds / 1e3)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use crate::gantt::{of_trace, page};
    use crate::trace::tests::sample;
    use bulkhead_abi::trace::{Event, Record};

    #[test]
    fn a_fragment_says_that_it_is_one() {
        let mut trace = sample(500);
        let (_, time) = trace.range().unwrap();
        trace.records.push(Record {
            time,
            pcpu: 0,
            event: Event::Lost { count: 7 },
        });
        let page = page(&of_trace(&trace, String::new()));
        assert!(page.contains("; 7 records are lost, the chart is incomplete</p>"));
        let part = page.split("<p id=\"part\">").nth(1).unwrap();
        assert!(part.starts_with("This is a fragment: 0 to "), "{}", &part[..60]);
    }

    #[test]
    fn a_page_has_all_bars_and_needs_nothing_else() {
        let page = page(&of_trace(&sample(3), "a & <b>".to_owned()));
        assert!(page.contains("<h1>a &amp; &lt;b&gt;</h1>"));
        assert!(page.contains(">pCPU 0</text>") && page.contains(">control</text>"));
        // `control` runs for 10 ticks, first from 102 ticks after the start on, then every 100 ticks.
        for start in [102, 202, 302] {
            assert!(page.contains(&format!("M{start} ")), "{start} is not drawn");
        }
        assert!(page.contains("class=\"mark wake\"") && !page.contains("class=\"mark missed\""));
        assert!(page.contains("<p id=\"part\">All is shown.</p>"));
        for elsewhere in ["http", "src=", "href=", "@import", "url("] {
            assert!(
                !page.contains(elsewhere),
                "the page refers to something: {elsewhere}"
            );
        }
    }
}
