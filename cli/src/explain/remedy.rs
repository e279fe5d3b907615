// SPDX-License-Identifier: Apache-2.0
//! Probable remedies. A remedy is a guess, and is worded as one. The facts stand above it.

use super::address::{Meaning, find};
use crate::class;
use crate::serial::health::Event;
use bulkhead_arch_api::class::Word;
use bulkhead_manifest::system::{MappingKind, Partition};
use bulkhead_manifest::{Kind, System};

/// The largest distance of an access after the partition's RAM that looks like too little RAM.
const NEAR: u64 = 64 << 20;

/// Returns a probable remedy against the event.
pub fn of(system: &System, partition: &Partition<'_>, event: &Event) -> String {
    if let Some(remedy) = class::of(system.board()).remedy(event) {
        return remedy.to_owned();
    }
    match event.class.as_str() {
        "memory" => memory(system, partition, event),
        "system" if partition.kind() == Kind::Task => {
            "leave that instruction out: a task has only the instructions of an unprivileged program"
                .to_owned()
        }
        "system" if event.action == "inject" => {
            "leave that register or instruction out; the guest was told that it is not there, as on hardware \
             without it"
                .to_owned()
        }
        "system" => {
            "leave that register or instruction out; or, if the guest probes for it and can do without, \
                     health.system = \"inject\" lets it find out as on hardware without it"
                .to_owned()
        }
        "hypercall" => hypercall(partition, event),
        "watchdog" => watchdog(partition),
        _ => {
            "look at the program at that line; health.task = \"restart\" starts it again by itself".to_owned()
        }
    }
}

fn memory(system: &System, partition: &Partition<'_>, event: &Event) -> String {
    let name = partition.name();
    let Some(address) = event.address else {
        let class = class::of(system.board());
        return if event
            .syndrome
            .is_some_and(|syndrome| class.is_asynchronous(syndrome))
        {
            "look at the driver of the device that was accessed last: it can be long before that line"
                .to_owned()
        } else {
            "look at the program at that line".to_owned()
        };
    };
    match find(system, partition, address) {
        Meaning::Virtual(_) => class::of(system.board()).emulated_forms().to_owned(),
        Meaning::Device(device, None) => {
            format!("devices = [\"{device}\"] in [partition.{name}] if it is to have the device")
        }
        Meaning::Device(_, Some(owner)) => {
            format!("a device has one owner: take it away from `{owner}`, or leave it alone here")
        }
        Meaning::Null if event.pc == Some(address) => {
            "an exception before its vectors were set, or a jump to a null pointer: the registers below say which"
                .to_owned()
        }
        Meaning::Null => "a null pointer, most likely: look at the program at that line".to_owned(),
        Meaning::Behind(_) if event.pc == Some(address) => format!(
            "more `memory` for [partition.{name}] if its vectors or its code are there; else a wild jump: the registers \
             below say which"
        ),
        Meaning::Behind(end) if address - end < NEAR => {
            format!("more `memory` for [partition.{name}] if it needs that much; else a wild pointer")
        }
        Meaning::Mapped(mapping) if mapping.kind == MappingKind::Forwarded => {
            class::of(system.board()).emulated_forms().to_owned()
        }
        Meaning::Mapped(mapping) if mapping.kind == MappingKind::Device => {
            let bytes = match system.board().class.facts().word {
                Word::Bits32 => "1, 2 or 4",
                Word::Bits64 => "1, 2, 4 or 8",
            };
            format!("device registers take single loads and stores of {bytes} aligned bytes only")
        }
        Meaning::Mapped(_) => {
            "the access is not allowed there: a wrong pointer, or another `access` of that region".to_owned()
        }
        Meaning::Behind(_) | Meaning::Nothing => format!(
            "a wild pointer, or a device that the machine of `{name}` does not have: `bulkhead check` prints what it has"
        ),
    }
}

fn hypercall(partition: &Partition<'_>, event: &Event) -> String {
    let name = partition.name();
    let capability = event.capability.unwrap_or_default();
    match event.error.as_deref() {
        Some("no-capability") => format!(
            "slot {capability} is empty: give the capability in [partition.{name}.capabilities], and use its index"
        ),
        Some("wrong-kind") => {
            format!("capability {capability} names an object of another kind: use the right index")
        }
        Some("no-right") => {
            format!("add the right the operation needs to that entry of [partition.{name}.capabilities]")
        }
        Some("not-supported") => "no such operation in this version of the interface".to_owned(),
        _ => "look at the arguments at that line".to_owned(),
    }
}

fn watchdog(partition: &Partition<'_>) -> String {
    let period = partition.watchdog_ns().unwrap_or_default() as f64 / 1e6;
    format!(
        "if `{}` only was late: a period above {period} ms, a higher priority, or fewer neighbours on its pCPU",
        partition.name()
    )
}
