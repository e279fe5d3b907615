// SPDX-License-Identifier: Apache-2.0
//! Declarations that others can break, and the tasks that are in time only by them.
//!
//! A vCPU declares how often its jobs come and how long they compute. Three things break that, although its
//! own program keeps to it:
//!
//! - **Waits without a term.** Others run in the place of a vCPU that waits for a lock or an answer, for as
//!   long as they like. If no one does, the job goes on late, and the next one comes close behind.
//! - **Restarts.** A load clears and copies memory in the time of the partition's vCPUs.
//! - **Signals.** Whoever may signal a vCPU decides how often it has something to do.
//!
//! Such a vCPU is *doubted*. To know what its neighbours are promised, the analysis looks at it a second time
//! as at one that declares nothing. A budget, a window or a time domain may bound it all the same. Then the
//! bounds of the neighbours hold. If not, `check` says by whom a neighbour is delayed. The neighbours that are
//! late then are doubted too.

use bulkhead_abi::{HealthClass, ObjectKind, Rights};
use bulkhead_image::layout::HealthAction;
use bulkhead_sched::analysis::Steps;

use super::means::{self, wait_at};
use super::{Analysis, PcpuTiming, Verdict, waits, worse};
use crate::model::Kind;
use crate::model::capability::Capability;
use crate::model::served::windows_of;
use crate::system::{Partition, ReachRow, System};

/// The steps of the analysis that the second looks at a pCPU may take. What is not looked at is not proved.
const STEPS: u64 = 50_000_000;

/// A reason not to rely on what a vCPU declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The slot of the vCPU.
    pub slot: usize,
    /// The reason, as the end of "not proved: how long NAME is delayed".
    pub cause: String,
}

/// A delay for which the analysis has no term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The numbers and names of the partitions that may be delayed.
    pub delayed: Vec<(usize, String)>,
    /// The cause, as the end of "not proved: how long NAME is delayed".
    pub cause: String,
}

/// Returns the delays on these pCPUs that no term of the analysis covers.
#[must_use]
pub fn delays(system: &System, pcpus: &[PcpuTiming]) -> Vec<Delay> {
    let mut delays: Vec<Delay> = Vec::new();
    for pcpu in pcpus {
        for verdict in pcpu.verdicts() {
            let doubts = pcpu.doubts.iter();
            for doubt in doubts.filter(|doubt| verdict.doubted.contains(&doubt.slot)) {
                let number = pcpu.vcpus[verdict.slot].partition;
                let name = system.partition(number).map_or("", |partition| partition.name());
                let delayed = (number, name.to_owned());
                match delays.iter_mut().find(|delay| delay.cause == doubt.cause) {
                    Some(delay) if delay.delayed.contains(&delayed) => {}
                    Some(delay) => delay.delayed.push(delayed),
                    None => delays.push(Delay {
                        delayed: vec![delayed],
                        cause: doubt.cause.clone(),
                    }),
                }
            }
        }
    }
    delays
}

/// Returns the reasons not to rely on the declaration of a partition, each as the end of "not proved: how
/// long NAME is delayed".
pub(super) fn causes(system: &System, partition: &Partition<'_>, rows: &[ReachRow]) -> Vec<String> {
    let name = partition.name();
    let waiting = waits_without_term(system, partition)
        .map(|wait| format!("in the place of `{name}`, while and after `{name}` waits for {wait}"));
    let mut causes: Vec<_> = waiting.collect();
    if let Some(by) = restarts(partition, rows) {
        causes.push(format!("by restarts of `{name}` and their loads: {by}"));
    }
    let signals = signals(system, partition, rows);
    if !signals.is_empty() {
        causes.push(format!(
            "by `{name}`, which others may give more to do than it declares: {}",
            signals.join(", ")
        ));
    }
    causes
}

/// Returns the waits of the partition for locks and answers that have no term.
fn waits_without_term<'p>(
    system: &'p System,
    partition: &'p Partition<'_>,
) -> impl Iterator<Item = String> + use<'p> {
    let all = partition.capabilities().into_iter();
    let held = all.filter(|capability| !means::is_for_news(capability));
    let held = held.filter_map(move |capability| {
        let wait = wait_at(&capability)?;
        waits::not_proved(system, partition, &capability, &wait)?;
        Some(wait)
    });
    held.chain(means::served_waits(partition))
}

/// Tells who or what can restart the partition, other than its own program.
fn restarts(partition: &Partition<'_>, rows: &[ReachRow]) -> Option<String> {
    let controls = |row: &&ReachRow| row.to == partition.name() && row.how.contains("restarts");
    let mut by = named(rows.iter().filter(controls));
    for (class, action) in partition.health() {
        let can_come = class != HealthClass::Watchdog || partition.watchdog_ns().is_some();
        if can_come && matches!(action, HealthAction::Restart | HealthAction::RestartWarm) {
            by.push(format!("health.{} = \"{}\"", class.name(), action.name()));
        }
    }
    (!by.is_empty()).then(|| by.join(", "))
}

/// Returns who may signal the partition, as far as a signal gives its vCPUs something to do.
fn signals(system: &System, partition: &Partition<'_>, rows: &[ReachRow]) -> Vec<String> {
    let hears = |row: &&ReachRow| {
        let wakes = match row.how.as_str() {
            "raises events" | "tells of its state changes" => takes(system, partition, ObjectKind::EventGate),
            "sends messages" => takes(system, partition, ObjectKind::Port),
            "rings" => partition.kind() == Kind::Vm || takes(system, partition, ObjectKind::EventGate),
            "sends frames" => true,
            _ => false,
        };
        wakes && row.to == partition.name()
    };
    let mut by = named(rows.iter().filter(hears));
    let clients = windows_of(&system.manifest, partition.name());
    by.extend(clients.iter().map(|client| format!("`{}`", client.client)));
    let served = partition.spec.machine.served.iter();
    by.extend(served.map(|served| format!("the server of `{}`", served.service)));
    by.sort();
    by.dedup();
    by
}

/// Tells whether the partition has a capability of this kind by which it waits for news, and does not declare
/// that it never waits there.
fn takes(system: &System, partition: &Partition<'_>, kind: ObjectKind) -> bool {
    let waits = |capability: &Capability| {
        let is_it = capability.kind == kind && capability.rights.contains(Rights::READ);
        // Of a gate, its own.
        let is_own = kind != ObjectKind::EventGate || capability.object == partition.number;
        is_it && is_own && waits::not_proved(system, partition, capability, "").is_some()
    };
    partition.capabilities().iter().any(waits)
}

/// Returns the names of those who act, each once.
fn named<'r>(rows: impl Iterator<Item = &'r ReachRow>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in rows {
        let name = format!("`{}`", row.from);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The second looks at a pCPU. Each look is kept, because several tasks ask for the same one.
pub(super) struct Looks<'a> {
    pcpu: &'a PcpuTiming,
    steps: Steps,
    kept: Vec<(Vec<usize>, Vec<Verdict>)>,
}

impl<'a> Looks<'a> {
    pub(super) const fn new(pcpu: &'a PcpuTiming) -> Self {
        Self {
            pcpu,
            steps: Steps::new(STEPS),
            kept: Vec::new(),
        }
    }

    /// Looks again at the verdicts of the first look, in which all declarations count.
    pub(super) fn again(&mut self, mut verdicts: Vec<Verdict>) -> Vec<Verdict> {
        for at in 0..verdicts.len() {
            let (slot, first) = (verdicts[at].slot, verdicts[at].bound);
            let mut doubted: Vec<usize> = self.pcpu.doubts.iter().map(|doubt| doubt.slot).collect();
            doubted.sort_unstable();
            doubted.dedup();
            doubted.retain(|other| *other != slot);
            if first.is_err() || doubted.is_empty() {
                continue;
            }
            let bound = self.without(&doubted)[at].bound;
            if bound.is_ok() {
                verdicts[at].bound = worse(first, bound);
                continue;
            }
            let alone = |one: &usize| self.without(&[*one])[at].bound.is_err();
            let causes: Vec<usize> = doubted.iter().copied().filter(alone).collect();
            verdicts[at].doubted = if causes.is_empty() { doubted } else { causes };
        }
        verdicts
    }

    /// Returns the verdicts if these slots declare nothing, and neither do those who are late then.
    fn without(&mut self, doubted: &[usize]) -> &[Verdict] {
        let found = self.kept.iter().position(|(slots, _)| slots == doubted);
        let at = found.unwrap_or_else(|| {
            self.kept.push((doubted.to_vec(), self.look(doubted)));
            self.kept.len() - 1
        });
        &self.kept[at].1
    }

    fn look(&self, doubted: &[usize]) -> Vec<Verdict> {
        let mut doubted = doubted.to_vec();
        loop {
            let verdicts = self.pcpu.verdicts_without(&doubted, Some(&self.steps));
            let late = verdicts.iter().filter(|verdict| verdict.bound.is_err());
            let late: Vec<usize> = late.map(|verdict| verdict.slot).collect();
            let before = doubted.len();
            doubted.extend(late);
            doubted.sort_unstable();
            doubted.dedup();
            if doubted.len() == before {
                return verdicts;
            }
        }
    }
}

impl PcpuTiming {
    /// Returns a verdict for each declared task, vCPU by vCPU. The slots in `doubted` count as declaring
    /// nothing, and have no bounds.
    fn verdicts_without(&self, doubted: &[usize], steps: Option<&Steps>) -> Vec<Verdict> {
        let mut tasks = self.tasks();
        for slot in doubted {
            tasks[*slot] = None;
        }
        let vcpus = self.analysed(&tasks);
        let analysis = Analysis::new(self, &vcpus, steps);
        let slots = 0..self.vcpus.len();
        slots.flat_map(|slot| analysis.verdicts_of(slot)).collect()
    }
}
