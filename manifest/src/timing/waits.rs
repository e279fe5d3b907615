// SPDX-License-Identifier: Apache-2.0
//! The terms of the analysis for waits that tasks declare: answers to calls, and locks.
//!
//! A caller that lends its place, and the owner of a lock that others wait for, run in the place of the one
//! who waits ([`bulkhead_sched`]'s donation). So the place computes on, and a wait is computing: a job is
//! charged for all that others may do in its place. That takes three facts from the manifest, besides the
//! number of waits in a job: one pCPU has both sides, the work of one request (`service`) or of one owner
//! (`hold`) is bounded, and so is the number of those who come first. No partition may change that at run
//! time, by rights that are passed on or by a restart.
//!
//! **A port** hands out its messages in their order. When a message has come into the port, at most
//! `depth` - 1 others are before it, and the server may be at work on one more. So a call is answered after
//! `depth` + 1 stretches of the server, even if the senders never stop.
//!
//! **A lock** goes to the most important waiter. So a vCPU waits for one owner that is less important, and
//! for each of its equals once. More important owners are in the analysis by their own demand.
//!
//! Each stretch also costs two events, to come and to go. `sched/tests/prop_donation.rs` compares these terms
//! with random systems.

use bulkhead_abi::{ObjectKind, Rights};
use bulkhead_sched::Ticks;

use super::means::own_waits;
use crate::model::capability::Capability;
use crate::model::{Placed, Policy, TaskSpec, WaitSpec};
use crate::system::{Partition, System, Vcpu};
use crate::units::Duration;

/// The most that waits can take of a job, in nanoseconds: far beyond any deadline, and far from the end of
/// the range, where the analysis would be at its limits.
const MOST: Ticks = 1_000_000_000_000_000;

/// Returns the time that the waits of a task take of a job, as far as they have terms.
pub(super) fn of_task(system: &System, partition: &Partition<'_>, task: &TaskSpec) -> Ticks {
    let all = partition.capabilities();
    let waits = task.waits.iter().map(|wait| {
        let capability = all.iter().find(|capability| names(wait, capability));
        let term = capability.map(|capability| term(system, partition, task, capability));
        let one = term.and_then(Result::ok).unwrap_or(0);
        one.saturating_mul(wait.times.get().into())
    });
    waits.fold(0, Ticks::saturating_add).min(MOST)
}

/// Returns what is not proved of the waits at a capability. `wait` says what a wait is for.
pub(super) fn not_proved(
    system: &System,
    partition: &Partition<'_>,
    capability: &Capability,
    wait: &str,
) -> Option<String> {
    let demand = partition.spec.demand.as_ref()?;
    let at = |task: &TaskSpec| {
        let mut waits = task.waits.iter();
        waits
            .find(|wait| names(wait, capability))
            .map(|wait| wait.times.get())
    };
    let mut declared = demand
        .tasks
        .iter()
        .filter_map(|task| Some((task, at(task)?)))
        .peekable();
    if declared.peek().is_none() {
        return Some(wait.to_owned());
    }
    let mut waiting = declared.filter(|(_, times)| *times != 0);
    let why = waiting.find_map(|(task, _)| term(system, partition, task, capability).err())?;
    Some(format!("{wait}: {why}"))
}

fn names(wait: &WaitSpec, capability: &Capability) -> bool {
    wait.at.as_ref().is_some_and(|at| at.value == capability.name)
}

/// Returns the longest time of one wait of a task at a capability.
///
/// # Errors
/// The reason why there is no term.
fn term(
    system: &System,
    partition: &Partition<'_>,
    task: &TaskSpec,
    capability: &Capability,
) -> Result<Ticks, String> {
    let own = partition.vcpus();
    let Some(waiter) = own.get(task.vcpu.get() as usize) else {
        return Err("the task has no vCPU".to_owned());
    };
    let mut pcpus = system.pcpus().iter();
    let pcpu = pcpus.find(|pcpu| pcpu.number == waiter.pcpu);
    if pcpu.is_none_or(|pcpu| pcpu.policy != Policy::FixedPriority) {
        return Err("only policy \"fixed-priority\" has a term".to_owned());
    }
    let all = partition.spec.demand.iter().flat_map(|demand| &demand.tasks);
    if all.filter(|other| other.vcpu.get() == task.vcpu.get()).count() > 1 {
        return Err("the tasks of its vCPU wait for each other's waits".to_owned());
    }
    let (stretch, count) = match capability.kind {
        ObjectKind::Port if capability.rights.contains(Rights::WRITE) => {
            never_refused(system, partition, capability)?;
            answer(system, waiter, capability)?
        }
        ObjectKind::Lock => lock(system, partition, task.vcpu.get(), waiter, capability)?,
        _ => return Err("others decide when that comes".to_owned()),
    };
    let costs = super::overheads(system, waiter.pcpu);
    let one = stretch.saturating_add(costs.event().saturating_mul(2));
    Ok(one.saturating_mul(count))
}

/// Checks that a call always gets into the port, and that its server has room for it.
///
/// # Errors
/// The reason why a call may be refused.
fn never_refused(system: &System, caller: &Partition<'_>, capability: &Capability) -> Result<(), String> {
    let sends = |other: &Capability| {
        let is_it = other.kind == ObjectKind::Port && other.object == capability.object;
        is_it && other.rights.contains(Rights::WRITE)
    };
    let partitions = system.partitions();
    let mut others = partitions
        .iter()
        .filter(|other| other.number != caller.number && other.capabilities().iter().any(sends))
        .peekable();
    let own = caller.capabilities();
    let kept = own.iter().filter(|own| sends(own)).map(|own| own.room).sum();
    let all = system.manifest.ports.get(capability.object);
    let all = all.map_or(0, |port| port.depth.get());
    // A partition that sends alone has all of the port.
    let room: u32 = if others.peek().is_some() { kept } else { all };
    if (room as usize) < caller.vcpus().len() {
        return Err("the port does not keep room for a call of each of its vCPUs".to_owned());
    }
    let fills = |other: &Capability| sends(other) && other.rights.contains(Rights::GRANT);
    if let Some(other) = others.find(|other| other.capabilities().iter().any(fills)) {
        return Err(format!(
            "`{}` can fill the server's capability space by messages",
            other.name()
        ));
    }
    stays(
        system,
        ObjectKind::Port,
        capability.object,
        Rights::WRITE,
        "send there",
    )
}

/// Checks that no partition can come to a right by a grant, so that the manifest names all who have the right.
///
/// # Errors
/// A partition can.
fn stays(system: &System, kind: ObjectKind, object: usize, right: Rights, what: &str) -> Result<(), String> {
    match system.gains_right(kind, object, right) {
        Some(name) => Err(format!("`{name}` can get the right to {what} by a grant")),
        None => Ok(()),
    }
}

/// Returns the longest stretch of a port's server, and the number of stretches until a call is answered.
fn answer(system: &System, caller: &Vcpu, capability: &Capability) -> Result<(Ticks, u64), String> {
    let Some(port) = system.manifest.ports.get(capability.object) else {
        return Err("there is no such port".to_owned());
    };
    let receives = |other: &Capability| other.kind == ObjectKind::Port && other.rights.contains(Rights::READ);
    let is_this = |other: &Capability| receives(other) && other.object == capability.object;
    let partitions = system.partitions();
    let mut servers = partitions
        .iter()
        .filter(|other| other.capabilities().iter().any(is_this));
    let (Some(server), None) = (servers.next(), servers.next()) else {
        return Err("not exactly one partition receives there".to_owned());
    };
    let [vcpu] = server.vcpus()[..] else {
        return Err(format!("several vCPUs of `{}` may receive there", server.name()));
    };
    if vcpu.pcpu != caller.pcpu {
        return Err(format!("`{}` is on another pCPU", server.name()));
    }
    if server.capabilities().iter().filter(|own| receives(own)).count() > 1 {
        return Err(format!("`{}` receives from other ports, too", server.name()));
    }
    if let Some(wait) = own_waits(system, server).first() {
        return Err(format!("`{}` may itself wait for {wait}", server.name()));
    }
    stays(
        system,
        ObjectKind::Port,
        capability.object,
        Rights::READ,
        "receive there",
    )?;
    if !server.spec.autostart {
        return Err(format!("`{}` is not started at boot", server.name()));
    }
    let stops = |other: &Capability| {
        let is_it = other.kind == ObjectKind::Partition && other.object == server.number;
        is_it && other.rights.contains(Rights::CONTROL)
    };
    let mut all = partitions.iter().filter(|other| other.number != server.number);
    if let Some(boss) = all.find(|other| other.capabilities().iter().any(stops)) {
        return Err(format!(
            "`{}` can stop or restart `{}`",
            boss.name(),
            server.name()
        ));
    }
    stays(
        system,
        ObjectKind::Partition,
        server.number,
        Rights::CONTROL,
        "stop its server",
    )?;
    let service = stretch(port.service.as_ref(), "port", &port.name.value, "service")?;
    Ok((service, u64::from(port.depth.get()).saturating_add(1)))
}

/// Returns the longest stretch of an owner of a lock, and the number of owners that a vCPU waits for. The
/// vCPU is the one with this number in the partition.
fn lock(
    system: &System,
    partition: &Partition<'_>,
    number: u32,
    waiter: &Vcpu,
    capability: &Capability,
) -> Result<(Ticks, u64), String> {
    let Some(lock) = system.manifest.locks.get(capability.object) else {
        return Err("there is no such lock".to_owned());
    };
    let takes = |other: &Capability| other.kind == ObjectKind::Lock && other.object == capability.object;
    let (mut equals, mut is_one_below) = (0_u64, false);
    for holder in system.partitions() {
        if !holder.capabilities().iter().any(takes) {
            continue;
        }
        for (vcpu, index) in holder.vcpus().iter().zip(0..) {
            if holder.number == partition.number && index == number {
                continue;
            }
            if vcpu.pcpu != waiter.pcpu {
                return Err(format!("`{}` is on another pCPU", holder.name()));
            }
            if vcpu.priority >= waiter.priority && vcpu.reservation.is_some() {
                return Err(format!(
                    "`{}` has a budget, which can end while it owns the lock",
                    holder.name()
                ));
            }
            equals = equals.saturating_add((vcpu.priority == waiter.priority).into());
            is_one_below |= vcpu.priority < waiter.priority;
        }
    }
    stays(
        system,
        ObjectKind::Lock,
        capability.object,
        Rights::WRITE,
        "take it",
    )?;
    let hold = stretch(lock.hold.as_ref(), "lock", &lock.name.value, "hold")?;
    Ok((hold, equals.saturating_add(is_one_below.into())))
}

/// Returns the time that a key of a port or a lock gives.
fn stretch(time: Option<&Placed<Duration>>, kind: &str, name: &str, key: &str) -> Result<Ticks, String> {
    let time = time.map(|time| time.value.get());
    time.ok_or_else(|| format!("{kind} `{name}` has no `{key}`"))
}
