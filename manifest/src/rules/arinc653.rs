// SPDX-License-Identifier: Apache-2.0
//! ARINC 653 partitions: what the standard forbids, held against windows, ports and capabilities.
//!
//! Source: ARINC Specification 653 Part 1, sections 2.3.1 (partitions and major frame), 2.3.2 (processes) and
//! 2.3.5 (ports and channels), with the limits of our services (`apex/src/limits.rs`).

use bulkhead_abi::Rights;

use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::{
    ArincSpec, ArincTimes, CapabilitySpec, Direction, Kind, Manifest, PartitionSpec, PcpuSpec, Placed,
    PortSpec, ProcessSpec, SamplingSpec, ScheduleSpec, Target, WindowSpec,
};
use crate::units::{Duration, format_duration};

/// Processes that the services have room for.
const PROCESSES: usize = 16;
/// Bytes that a sampling message takes in a kernel port besides itself: the time of its writing.
const STAMP: u32 = 8;

pub(super) fn check(manifest: &Manifest, report: &mut Report) {
    let mut seen: Vec<(&PartitionSpec, &Placed<u32>)> = Vec::new();
    for partition in &manifest.partitions {
        let Some(facts) = &partition.arinc653 else {
            continue;
        };
        has_what_services_need(partition, facts, report);
        if let Some(identifier) = &facts.identifier {
            let other = seen.iter().find(|(_, own)| own.value == identifier.value);
            if let Some((other, _)) = other {
                let (name, value) = (&other.name.value, identifier.value);
                let message = format!("partition `{name}` has the identifier {value} already");
                report.push(
                    Diagnostic::at(Code::ArincPartition, identifier.place, message)
                        .help("give each partition another one"),
                );
            }
            seen.push((partition, identifier));
        }
        if let Some(times) = times(&facts.period, &facts.duration, report) {
            windows_give_the_time(partition, facts, times, manifest, report);
            for process in &facts.processes {
                process_is_possible(process, times.period, report);
            }
        }
        few_processes(facts, report);
        for port in &facts.sampling {
            refresh_is_possible(port, report);
        }
        for end in ends(facts) {
            port_fits(partition, &end, manifest, report);
        }
    }
}

/// Reports a partition whose program cannot be an ARINC 653 application.
fn has_what_services_need(partition: &PartitionSpec, facts: &ArincSpec, report: &mut Report) {
    let name = &partition.name.value;
    let mut lacks = |what: &str, help: &str| {
        let message = format!("ARINC 653 partition `{name}` {what}");
        report.push(Diagnostic::at(Code::ArincPartition, facts.place, message).help(help));
    };
    if partition.kind != Kind::Task {
        return lacks(
            "is no task",
            "give kind = \"task\": the services are a library of tasks",
        );
    }
    let has = |wanted: fn(&Target<'_>, &str) -> bool| {
        let mut targets = partition.capabilities.iter().flat_map(CapabilitySpec::targets);
        targets.any(|target| wanted(&target, name))
    };
    if !has(|target, _| matches!(target, Target::Timer)) {
        lacks("has no clock", "add the capability `clock = { timer = true }`");
    }
    if !has(|target, own| matches!(target, Target::EventGate(gate) if gate.value == own)) {
        let help = format!("add the capability `gate = {{ event-gate = \"{name}\" }}`");
        lacks("cannot be interrupted", &help);
    }
    if !*partition.watch.windows {
        lacks(
            "does not see where its periods begin",
            "add `watch = { windows = true }`",
        );
    }
}

/// The times of a partition, in nanoseconds.
#[derive(Clone, Copy)]
struct Times {
    period: u64,
    /// The time that the partition has in each period.
    duration: u64,
}

/// Returns a period and a duration, if both are possible.
fn times(
    period: &Option<Placed<Duration>>,
    duration: &Option<Placed<Duration>>,
    report: &mut Report,
) -> Option<Times> {
    let (period, duration) = (period.as_ref()?, duration.as_ref()?);
    let mut wrong = |given: &Placed<Duration>, message: String, help: &str| {
        report.push(Diagnostic::at(Code::ArincPartition, given.place, message).help(help.to_owned()));
    };
    for (name, given) in [("period", period), ("duration", duration)] {
        if given.value.get() == 0 {
            wrong(given, format!("`{name}` is 0"), "give a time above 0");
            return None;
        }
    }
    if duration.value > period.value {
        let message = format!(
            "the duration of {} is longer than the period of {}",
            format_duration(duration.value.get()),
            format_duration(period.value.get())
        );
        wrong(duration, message, "shorten `duration`");
        return None;
    }
    Some(Times {
        period: period.value.get(),
        duration: duration.value.get(),
    })
}

/// Checks the windows of the partition in each schedule in which it has some, with the times it has there.
fn windows_give_the_time(
    partition: &PartitionSpec,
    facts: &ArincSpec,
    usual: Times,
    manifest: &Manifest,
    report: &mut Report,
) {
    let name = partition.name.value.as_str();
    let schedules = manifest.pcpus.iter().flat_map(|pcpu: &PcpuSpec| &pcpu.schedules);
    let mut any = false;
    let mut others: Vec<&ArincTimes> = facts.schedules.iter().collect();
    for schedule in schedules {
        let own = |window: &&WindowSpec| window.partition.as_ref().is_some_and(|owner| owner.value == name);
        let windows: Vec<&WindowSpec> = schedule.windows.iter().filter(own).collect();
        if windows.is_empty() {
            continue;
        }
        any = true;
        let own = others
            .iter()
            .position(|own| own.name.value == schedule.name.value);
        let given = match own.map(|place| others.remove(place)) {
            Some(own) => times(&own.period, &own.duration, report),
            None => Some(usual),
        };
        if let Some(given) = given {
            schedule_gives_the_time(name, given, schedule, &windows, report);
        }
    }
    for other in others {
        let message = format!("`{name}` has no window in a schedule `{}`", other.name.value);
        report.push(
            Diagnostic::at(Code::ArincWindows, other.name.place, message)
                .help("name a schedule in which the partition has windows, once"),
        );
    }
    if !any {
        let message = format!("ARINC 653 partition `{name}` has no window");
        report.push(
            Diagnostic::at(Code::ArincWindows, facts.place, message)
                .help("add windows for it to a schedule of a pCPU with policy \"arinc653\""),
        );
    }
}

fn schedule_gives_the_time(
    name: &str,
    times: Times,
    schedule: &ScheduleSpec,
    windows: &[&WindowSpec],
    report: &mut Report,
) {
    let Some(frame) = &schedule.frame else { return };
    let (length, period) = (frame.value.get(), times.period);
    let written = format_duration(period);
    if !length.is_multiple_of(period) {
        let message = format!(
            "the major frame of {} is no multiple of the period of `{name}`, {written}",
            format_duration(length)
        );
        let diagnostic = Diagnostic::at(Code::ArincWindows, frame.place, message);
        return report.push(diagnostic.help("make it a common multiple of all periods"));
    }
    let starts: Vec<&&WindowSpec> = windows.iter().filter(|window| window.period_start).collect();
    let Some(first) = starts.first().and_then(|window| window.span()) else {
        let message = format!("no window of `{name}` starts its period");
        let place = windows.first().map_or(schedule.name.place, |window| window.place);
        let diagnostic = Diagnostic::at(Code::ArincWindows, place, message);
        return report.push(diagnostic.help("add `period-start = true` to the first window of each period"));
    };
    for window in &starts {
        let Some((offset, _)) = window.span() else { return };
        if !offset.abs_diff(first.0).is_multiple_of(period) {
            let message = format!(
                "the period of `{name}` starts at {}, no multiple of {written} after {}",
                format_duration(offset),
                format_duration(first.0)
            );
            let diagnostic = Diagnostic::at(Code::ArincWindows, window.place, message);
            return report.push(diagnostic.help("move the window, or remove its `period-start`"));
        }
    }
    let frame = Frame {
        length,
        first: first.0,
    };
    each_period_has_its_time(name, times, frame, windows, report);
}

/// A major frame, in nanoseconds.
#[derive(Clone, Copy)]
struct Frame {
    length: u64,
    /// The offset of the first window that starts a period.
    first: u64,
}

/// Checks each period of a frame: it has a window that starts it, and windows of the duration.
fn each_period_has_its_time(
    name: &str,
    Times { period, duration }: Times,
    Frame { length: frame, first }: Frame,
    windows: &[&WindowSpec],
    report: &mut Report,
) {
    let Some(last) = windows.last() else { return };
    let begins = (0..).map(|number: u64| number.saturating_mul(period));
    for begin in begins.take_while(|begin| *begin < frame) {
        // Windows before the first start belong to the last period of the frame before.
        let within = windows.iter().filter(|window| {
            let offset = window.span().map_or(0, |(offset, _)| offset);
            let since = offset
                .saturating_add(frame)
                .saturating_sub(first)
                .checked_rem(frame);
            let since = since.unwrap_or(0);
            since >= begin && since < begin.saturating_add(period)
        });
        let (mut given, mut starts) = (0_u64, false);
        for window in within {
            let (from, to) = window.span().unwrap_or((0, 0));
            given = given.saturating_add(to.saturating_sub(from));
            starts |= window.period_start;
        }
        let at = format_duration(first.saturating_add(begin).checked_rem(frame).unwrap_or(0));
        let (message, help) = if !starts {
            (
                format!("no window of `{name}` starts its period at {at}"),
                "add a window with `period-start = true` there",
            )
        } else if given < duration {
            let (given, duration) = (format_duration(given), format_duration(duration));
            (
                format!("the windows of `{name}` give {given} in its period at {at}, not {duration}"),
                "lengthen a window, or shorten `duration`",
            )
        } else {
            continue;
        };
        return report.push(Diagnostic::at(Code::ArincWindows, last.place, message).help(help));
    }
}

fn process_is_possible(process: &ProcessSpec, period: u64, report: &mut Report) {
    let name = &process.name.value;
    let mut wrong = |place: Place, message: String, help: &str| {
        report.push(Diagnostic::at(Code::ArincProcess, place, message).help(help.to_owned()));
    };
    let written = |time: u64| format_duration(time);
    if let Some(own) = &process.period {
        let length = own.value.get();
        if length == 0 || !length.is_multiple_of(period) {
            let message = format!(
                "the period of process `{name}`, {}, is no multiple of the partition's, {}",
                written(length),
                written(period)
            );
            wrong(own.place, message, "CREATE_PROCESS would answer INVALID_CONFIG");
        }
    }
    let Some(capacity) = &process.capacity else { return };
    if capacity.value.get() == 0 {
        let message = format!("process `{name}` has a time capacity of 0");
        wrong(
            capacity.place,
            message,
            "give a time above 0, or remove the key for no deadline",
        );
    }
    if let Some(own) = process.period.as_ref().filter(|own| capacity.value > own.value) {
        let message = format!(
            "the time capacity of process `{name}`, {}, is longer than its period, {}",
            written(capacity.value.get()),
            written(own.value.get())
        );
        wrong(
            capacity.place,
            message,
            "CREATE_PROCESS would answer INVALID_PARAM",
        );
    }
}

fn few_processes(facts: &ArincSpec, report: &mut Report) {
    if let Some(extra) = facts.processes.get(PROCESSES) {
        let message = format!("more than {PROCESSES} processes");
        report.push(
            Diagnostic::at(Code::ArincProcess, extra.name.place, message)
                .label("one too many")
                .help("a partition has room for no more"),
        );
    }
}

fn refresh_is_possible(port: &SamplingSpec, report: &mut Report) {
    let name = &port.name.value;
    let (place, what) = match &port.refresh {
        Some(given) if given.value.get() == 0 => (given.place, "a refresh period of 0"),
        None if port.direction == Direction::Destination => (port.name.place, "no refresh period"),
        _ => return,
    };
    let message = format!("sampling port `{name}` has {what}");
    report.push(
        Diagnostic::at(Code::ArincPort, place, message)
            .help("give `refresh-period`, the age up to which a message is valid"),
    );
}

/// An end of a channel: a port of a partition.
struct End<'a> {
    name: &'a Placed<String>,
    direction: Direction,
    /// Bytes of the longest message.
    size: u32,
    /// Messages at most; `None` for a sampling port.
    depth: Option<u32>,
}

fn ends(facts: &ArincSpec) -> Vec<End<'_>> {
    let sampling = facts.sampling.iter().map(|port| End {
        name: &port.name,
        direction: port.direction,
        size: port.size.get(),
        depth: None,
    });
    let queuing = facts.queuing.iter().map(|port| End {
        name: &port.name,
        direction: port.direction,
        size: port.size.get(),
        depth: Some(port.depth.get()),
    });
    sampling.chain(queuing).collect()
}

/// Returns the port of the manifest that a capability of a partition names.
fn behind<'a>(partition: &'a PartitionSpec, name: &str, rights: Rights) -> Option<&'a str> {
    let mut capabilities = partition.capabilities.iter();
    let capability =
        capabilities.find(|capability| capability.name.value == name && capability.gives(rights))?;
    match capability.target()? {
        Target::Port(port) => Some(&port.value),
        _ => None,
    }
}

fn right(direction: Direction) -> (Rights, &'static str) {
    match direction {
        Direction::Source => (Rights::WRITE, "write"),
        Direction::Destination => (Rights::READ, "read"),
    }
}

fn port_fits(partition: &PartitionSpec, end: &End<'_>, manifest: &Manifest, report: &mut Report) {
    let name = &end.name.value;
    let mut wrong = |message: String, help: String| {
        report.push(Diagnostic::at(Code::ArincPort, end.name.place, message).help(help));
    };
    let (rights, word) = right(end.direction);
    let Some(link) = behind(partition, name, rights) else {
        let message = format!("no capability `{name}` for a port has the right \"{word}\"");
        return wrong(
            message,
            format!("add `{name} = {{ port = \"NAME\", rights = [\"{word}\"] }}`"),
        );
    };
    let Some(port) = manifest.ports.iter().find(|port| port.name.value == link) else {
        return;
    };
    if let Some((message, help)) = too_small(end, port) {
        return wrong(message, help);
    }
    for other in &manifest.partitions {
        for far in other.arinc653.iter().flat_map(ends) {
            let (rights, _) = right(far.direction);
            let is_same = std::ptr::eq(end.name, far.name);
            if is_same || behind(other, &far.name.value, rights) != Some(link) {
                continue;
            }
            if let Some(message) = disagreement(end, &far, &other.name.value) {
                return wrong(message, "make both ends of the channel agree".to_owned());
            }
        }
    }
}

fn too_small(end: &End<'_>, port: &PortSpec) -> Option<(String, String)> {
    let (size, depth, link) = (port.message_size.get(), port.depth.get(), &port.name.value);
    let needed = match end.depth {
        None => end.size.saturating_add(STAMP),
        Some(_) => end.size,
    };
    if size < needed {
        let message = format!(
            "port `{link}` takes messages of {size} bytes, and `{}` needs {needed}",
            end.name.value
        );
        let why = if end.depth.is_none() {
            format!("; {STAMP} of them are the time of writing")
        } else {
            String::new()
        };
        return Some((message, format!("give it message-size = {needed}{why}")));
    }
    (depth == 0).then(|| {
        let message = format!("port `{link}` holds no message");
        (message, "give it a depth of 1 or more".to_owned())
    })
}

/// Says why two ends of a channel do not fit together.
fn disagreement(end: &End<'_>, far: &End<'_>, other: &str) -> Option<String> {
    let (name, theirs) = (&end.name.value, &far.name.value);
    if end.depth.is_some() != far.depth.is_some() {
        return Some(format!(
            "`{name}` is a sampling port at one end and a queuing port at the other, `{theirs}` of `{other}`"
        ));
    }
    if end.direction == far.direction {
        let what = match end.direction {
            Direction::Source => "sources",
            Direction::Destination => "destinations",
        };
        // The kernel hands each message to one receiver.
        return Some(format!(
            "`{name}` and `{theirs}` of `{other}` are both {what} of one port"
        ));
    }
    (end.size != far.size).then(|| {
        let (one, two) = (end.size, far.size);
        format!("`{name}` has messages of {one} bytes, and the other end, `{theirs}` of `{other}`, of {two}")
    })
}
