// SPDX-License-Identifier: Apache-2.0
//! The answer of `bulkhead check --json`.

use crate::json;
use bulkhead_manifest::board::{Measurement, Trigger};
use bulkhead_manifest::timing::{self, PcpuTiming};
use bulkhead_manifest::{Report, System};
use serde_json::{Value, json};
use std::path::Path;

/// Returns the part of the document about a manifest that is refused before it is a system.
pub(super) fn refused(path: &Path, report: &Report) -> Value {
    json!({
        "manifest": path.display().to_string(),
        "accepted": false,
        "problem": null,
        "findings": json::findings(report),
        "system": null,
    })
}

/// Returns the part of the document about a manifest that could not be judged, because of `problem`.
pub(super) fn failed(path: &Path, problem: &str) -> Value {
    json!({
        "manifest": path.display().to_string(),
        "accepted": false,
        "problem": problem,
        "findings": [],
        "system": null,
    })
}

/// Returns the part of the document about a system, with what was found `late` in the judgement of its times.
pub(super) fn checked(path: &Path, system: &System, late: &Report) -> Value {
    let mut findings = json::findings(system.report());
    if late.has_errors() {
        findings.extend(json::findings(late));
    }
    let (parts, variant) = super::parts::values(system);
    json!({
        "manifest": path.display().to_string(),
        "accepted": !late.has_errors(),
        "problem": null,
        "findings": findings,
        "system": {
            "board": system.board().name,
            "class": system.board().class.name(),
            "partitions": partitions(system),
            "pcpus": pcpus(system),
            "memory": memory(system),
            "interrupts": interrupts(system),
            "interfaces": interfaces(system),
            "touches": touches(system),
            "reach": reach(system),
            "could_hold": could_hold(system),
            "tasks": tasks(&timing::pcpus(system)),
            "parts": parts,
            "variant": variant,
            "overheads": system.board().costs.map(|costs| costs.basis.name()),
            "measurement": system.board().measurement.as_ref().map(measurement),
            "not_proved": not_proved(system),
        },
    })
}

/// Returns where and when the costs of the board were measured.
fn measurement(given: &Measurement) -> Value {
    json!({
        "machine": given.machine,
        "date": given.date,
        "counter_hz": given.counter_hz.get(),
        "runs": given.runs.get(),
        "margin_percent": given.margin.get(),
        "estimated": given.estimated,
    })
}

/// Returns the waits and the delays for which the analysis has no term.
fn not_proved(system: &System) -> Vec<Value> {
    let value = |partition: &str, wait: Option<&str>, delay: Option<&str>| json!({ "partition": partition, "waits_for": wait, "delayed": delay });
    let waits = timing::unproved(system);
    let waits = waits
        .iter()
        .map(|unproved| value(&unproved.name, Some(&unproved.wait), None));
    let delays = timing::delays(system, &timing::pcpus(system));
    let delays = delays.iter().flat_map(|delay| {
        let names = delay.delayed.iter();
        names.map(|(_, name)| value(name, None, Some(&delay.cause)))
    });
    waits.chain(delays).collect()
}

fn partitions(system: &System) -> Vec<Value> {
    let partitions = system.partitions().into_iter();
    let partition = partitions.map(|partition| {
        let health: serde_json::Map<String, Value> = partition
            .health()
            .iter()
            .map(|(class, action)| (class.name().to_owned(), json!(action.name())))
            .collect();
        json!({
            "name": partition.name(),
            "kind": partition.kind().name(),
            "memory": partition.memory_size(),
            "entry": partition.entry(),
            "watchdog_ns": partition.watchdog_ns(),
            "frozen_time": partition.frozen_time(),
            "autostart": partition.autostart(),
            "console": partition.console(),
            "health": health,
            "restart_limit": partition.restart_limit(),
        })
    });
    partition.collect()
}

fn pcpus(system: &System) -> Vec<Value> {
    let rows = system.cpu_assignment().into_iter();
    rows.map(|row| {
        let vcpus = row.vcpus.iter().map(|(partition, index, priority)| {
            json!({ "partition": partition, "index": index, "priority": priority })
        });
        json!({
            "pcpu": row.pcpu.number,
            "policy": row.pcpu.policy_name(),
            "quantum_ns": (row.pcpu.quantum_ns != 0).then_some(row.pcpu.quantum_ns),
            "vcpus": vcpus.collect::<Vec<_>>(),
        })
    })
    .collect()
}

fn memory(system: &System) -> Vec<Value> {
    let rows = system.memory_map().into_iter();
    rows.map(|row| {
        json!({
            "address": row.host,
            "size": row.size,
            "owner": row.owner,
            "what": row.what,
            "seen_at": row.guest,
            "access": row.access,
        })
    })
    .collect()
}

fn interrupts(system: &System) -> Vec<Value> {
    let rows = system.interrupts().into_iter();
    rows.map(|row| {
        json!({
            "line": row.line,
            "device": row.device,
            "owner": row.owner,
            "virtual_line": row.virtual_line,
            "trigger": match row.trigger {
                Trigger::Level => "level",
                Trigger::Edge => "edge",
            },
        })
    })
    .collect()
}

fn interfaces(system: &System) -> Vec<Value> {
    let rows = system.interfaces().into_iter();
    rows.map(|row| {
        json!({
            "network": row.network,
            "uplink": row.uplink,
            "partition": row.partition,
            "mac": row.address,
            "seen_at": row.registers.base,
            "line": row.line,
        })
    })
    .collect()
}

fn touches(system: &System) -> Vec<Value> {
    let rows = system.who_can_touch_what().into_iter();
    rows.map(|row| json!({ "partition": row.partition, "object": row.object, "how": row.how }))
        .collect()
}

fn reach(system: &System) -> Vec<Value> {
    let rows = system.who_can_reach_whom().into_iter();
    rows.map(|row| {
        json!({
            "from": row.from,
            "to": row.to,
            "by": row.by,
            "how": row.how,
            "direct": row.is_direct,
        })
    })
    .collect()
}

fn could_hold(system: &System) -> Vec<Value> {
    let rows = system.who_could_hold_what().into_iter();
    rows.map(|row| json!({ "partition": row.partition, "object": row.object, "rights": row.rights }))
        .collect()
}

/// Returns the declared tasks with the bounds of their responses.
fn tasks(pcpus: &[PcpuTiming]) -> Vec<Value> {
    let verdicts = pcpus
        .iter()
        .flat_map(|pcpu| pcpu.verdicts().into_iter().map(move |verdict| (pcpu, verdict)));
    verdicts
        .map(|(pcpu, verdict)| {
            let task = &verdict.task;
            json!({
                "pcpu": pcpu.number,
                "vcpu": pcpu.vcpus.get(verdict.slot).map(|vcpu| &vcpu.name),
                "task": task.name,
                "period_ns": task.task.period,
                "wcet_ns": task.task.wcet,
                "waits_ns": task.waits,
                "deadline_ns": task.task.deadline,
                "bound_ns": verdict.bound.ok(),
                "in_time": verdict.bound.is_ok(),
            })
        })
        .collect()
}
