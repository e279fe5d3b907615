// SPDX-License-Identifier: Apache-2.0
//! Hypercalls and messages: the operations of `measure` in `guests/bench/world-side/main.c`, in its order.

use super::lengths::note;
use super::stretches::Stretch;
use crate::runs::Results;
use bulkhead::problem::Problem;

/// Turns of an operation: the first one, and those that are counted.
const TURNS: usize = COLD + 3;
const COLD: usize = 1;
/// Bytes of the messages.
const SIZES: [u32; 5] = [64, 128, 192, 256, 320];
/// The operations of each turn before messages, and with them.
const CALLS: usize = 2;
const OPERATIONS: usize = 5;

/// Adds the figures of a run in which the client calls a server, by the kinds of both. `parts` begin with the
/// part before the first operation. A server that `is_urgent` is more urgent than the client.
pub(super) fn add(
    results: &mut Results,
    kinds: [&str; 2],
    is_urgent: bool,
    parts: &[Vec<Stretch>],
) -> Result<(), Problem> {
    let [client, server] = kinds;
    let parts = parts.get(1..).unwrap_or_default();
    let (calls, messages) = parts
        .split_at_checked(CALLS * TURNS)
        .ok_or_else(|| Problem::new("the guest did not make its calls"))?;
    if is_urgent && client == server {
        note(
            results,
            &format!("null-call-{client}"),
            COLD,
            every(calls, CALLS, 0).map(all),
        );
        note(
            results,
            &format!("null-call-instruction-{client}"),
            COLD,
            every(calls, CALLS, 1).map(all),
        );
    }
    for (size, parts) in SIZES.iter().zip(messages.chunks(OPERATIONS * TURNS)) {
        let mut add = |name: &str, operation, count: fn(&[Stretch]) -> u64| {
            let key = format!("port-{name}-{size}-{client}-{server}");
            note(
                results,
                &key,
                COLD,
                every(parts, OPERATIONS, operation).map(count),
            );
        };
        if is_urgent {
            if client == server {
                add("send", 0, all);
                add("receive", 1, all);
            }
            add("one-way", 2, there);
            add("two-way", 2, all);
        } else {
            add("call", 3, all);
            add("waiting", 4, all);
        }
    }
    Ok(())
}

/// Returns the parts of one operation of each turn.
fn every(parts: &[Vec<Stretch>], of: usize, operation: usize) -> impl Iterator<Item = &[Stretch]> {
    parts.iter().skip(operation).step_by(of).map(Vec::as_slice)
}

/// Returns all instructions of the hypervisor.
fn all(part: &[Stretch]) -> u64 {
    part.iter().map(|stretch| stretch.length).sum()
}

/// Returns those up to the first instruction of the other side.
fn there(part: &[Stretch]) -> u64 {
    part.first().map_or(0, |stretch| stretch.length)
}
