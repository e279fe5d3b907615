// SPDX-License-Identifier: Apache-2.0
//! The answer of `bulkhead report --json`.

use crate::log::never_ran::NeverRan;
use crate::trace::Trace;
use crate::trace::replay::Comparison;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns the keys of the document about a trace, and about its comparison with a simulated run.
pub(super) fn body(trace: &Trace, against: Option<&Comparison>) -> Value {
    let range = trace.range();
    let at = |time: u64| trace.nanoseconds(time);
    json!({
        "board": trace.board,
        "records": trace.records.len(),
        "lost": trace.lost(),
        "from_ns": range.map(|(first, _)| at(first)),
        "to_ns": range.map(|(_, last)| at(last)),
        "shares": shares(trace),
        "exits": exits(trace),
        "waits": waits(trace, trace.waits()),
        "waits_from_due": waits(trace, trace.waits_from_due()),
        "waits_from_exit": waits(trace, trace.waits_from_exit()),
        "never_ran": trace.never_ran().iter().map(NeverRan::json).collect::<Vec<_>>(),
        "windows": windows(trace),
        "budgets": budgets(trace),
        "events": events(trace),
        "against": against.map(|against| json!({
            "agrees": against.is_ok(),
            "pcpus": against.as_ref().ok(),
            "difference": against.as_ref().err(),
        })),
    })
}

fn shares(trace: &Trace) -> Vec<Value> {
    let all = (0..trace.pcpus).flat_map(|pcpu| {
        let shares = trace.shares_of(pcpu).into_iter();
        shares.map(move |share| (pcpu, share))
    });
    all.map(|(pcpu, share)| {
        json!({
            "pcpu": pcpu,
            "vcpu": share.vcpu.map(|vcpu| trace.vcpu_name(vcpu)),
            "ran_ns": trace.duration(share.ran),
            "of_ns": trace.duration(share.of),
            "turns": share.turns,
            "preempted": share.vcpu.map(|_| share.preempted),
            "longest_ns": trace.duration(share.longest),
        })
    })
    .collect()
}

fn exits(trace: &Trace) -> Vec<Value> {
    let mut all = Vec::new();
    for (vcpu, causes) in trace.exit_counts() {
        let name = vcpu.map(|vcpu| trace.vcpu_name(vcpu));
        let rows = causes.iter();
        all.extend(rows.map(|(cause, count)| json!({ "vcpu": name, "cause": cause.name(), "count": count })));
    }
    all
}

fn waits(trace: &Trace, waits: BTreeMap<u8, Vec<u64>>) -> Vec<Value> {
    let all = waits.into_iter();
    all.map(|(vcpu, waits)| {
        let at = |share: usize| waits.get((waits.len() - 1) * share / 100);
        json!({
            "vcpu": trace.vcpu_name(vcpu),
            "times": waits.len(),
            "least_ns": at(0),
            "median_ns": at(50),
            "p99_ns": at(99),
            "most_ns": at(100),
        })
    })
    .collect()
}

fn windows(trace: &Trace) -> Vec<Value> {
    let all = trace.window_starts().into_iter();
    all.map(|(vcpu, starts)| {
        let gaps = || {
            starts
                .windows(2)
                .map(|pair| trace.duration(pair[1].saturating_sub(pair[0])))
        };
        json!({
            "vcpu": trace.vcpu_name(vcpu),
            "starts": starts.len(),
            "least_gap_ns": gaps().min(),
            "most_gap_ns": gaps().max(),
        })
    })
    .collect()
}

fn budgets(trace: &Trace) -> Vec<Value> {
    let all = trace.budget_counts().into_iter();
    all.map(|(vcpu, [exhausted, replenished, missed])| {
        json!({
            "vcpu": trace.vcpu_name(vcpu),
            "exhausted": exhausted,
            "replenished": replenished,
            "deadlines_missed": missed,
        })
    })
    .collect()
}

fn events(trace: &Trace) -> Vec<Value> {
    let all = trace.life_events().into_iter();
    all.map(|(time, what)| json!({ "time_ns": time, "what": what }))
        .collect()
}
