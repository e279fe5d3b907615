// SPDX-License-Identifier: Apache-2.0
//! The reach of partitions in a system: by capabilities, shared memory, networks and devices.

use bulkhead_abi::{ObjectKind, Rights};
use std::collections::BTreeSet;

use super::System;
use crate::model::right_names;
use crate::place::channels;
use crate::reach::{Act, Held, Holdings, Objects, acts, closure};

/// One way of a partition to act on another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachRow {
    /// The partition that acts.
    pub from: String,
    /// The partition that is acted on.
    pub to: String,
    /// The object between the two.
    pub by: String,
    /// The deed, as the end of a sentence.
    pub how: String,
    /// True if the system can do so from its start. False if a partition must grant a capability first.
    pub is_direct: bool,
}

/// A capability that a partition could come to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GainRow {
    /// The partition.
    pub partition: String,
    /// The object of the capability.
    pub object: String,
    /// The most rights, in words.
    pub rights: Vec<&'static str>,
}

/// The numbers of two partitions.
#[derive(Clone, Copy)]
struct Pair {
    /// The one that can act.
    from: usize,
    /// The one that it can act on.
    to: usize,
}

impl System {
    /// Returns who can reach whom: first directly, then by grants, each in the order of the partitions.
    #[must_use]
    pub fn who_can_reach_whom(&self) -> Vec<ReachRow> {
        let (held, objects) = (self.holdings(), self.reach_objects());
        let now = acts(&held, &objects);
        let all = closure(held.clone());
        let later = acts(&all, &objects);
        let mut rows: Vec<_> = now.iter().map(|act| self.reach_row(act, true)).collect();
        rows.extend(self.fixed_ways());
        rows.extend(self.windows(&held, true));
        let order = |name: &str| self.partitions().iter().position(|other| other.name() == name);
        rows.sort_by_cached_key(|row| (order(&row.from), order(&row.to)));
        rows.extend(later.difference(&now).map(|act| self.reach_row(act, false)));
        let direct = self.windows(&held, true);
        let mut windows = self.windows(&all, false);
        windows.retain(|row| {
            !direct
                .iter()
                .any(|other| (&other.from, &other.to, &other.by) == (&row.from, &row.to, &row.by))
        });
        rows.extend(windows);
        rows
    }

    /// Returns who can write memory that is mapped only while it is held, with these capabilities.
    fn windows(&self, holdings: &Holdings, is_direct: bool) -> Vec<ReachRow> {
        let mut rows = Vec::new();
        let needed = Rights::READ.union(Rights::WRITE);
        for (from, (partition, held)) in self.partitions().iter().zip(holdings).enumerate() {
            for side in channels::sides_of(&self.manifest, partition.name()) {
                let is_it = |held: &Held| {
                    (held.kind(), held.object) == (Some(ObjectKind::Channel), side.number)
                        && held.rights().contains(needed)
                };
                if !*side.spec.held || !side.spec.access.write || !held.iter().any(is_it) {
                    continue;
                }
                let others = side
                    .channel
                    .sides
                    .iter()
                    .filter_map(|other| other.partition.as_ref());
                let others = others.filter(|other| other.value != partition.name());
                let all = self.partitions();
                let numbers = others.filter_map(|other| all.iter().position(|one| one.name() == other.value));
                let by = format!("channel {}", side.channel.name.value);
                rows.extend(numbers.map(|to| {
                    self.way(
                        Pair { from, to },
                        by.clone(),
                        "writes memory while held",
                        is_direct,
                    )
                }));
            }
        }
        rows
    }

    /// Returns the capabilities that partitions could come to hold by grants, beyond the capabilities of the
    /// manifest.
    #[must_use]
    pub fn who_could_hold_what(&self) -> Vec<GainRow> {
        let held = self.holdings();
        let all = closure(held.clone());
        let mut rows = Vec::new();
        for ((partition, own), all) in self.partitions().iter().zip(held).zip(all) {
            for gain in all.difference(&own) {
                let is_less = |other: &Held| {
                    let is_other =
                        other != gain && other.object == gain.object && other.kind() == gain.kind();
                    is_other && other.rights().contains(gain.rights())
                };
                let Some(kind) = gain.kind().filter(|_| !all.iter().any(is_less)) else {
                    continue;
                };
                rows.push(GainRow {
                    partition: partition.name().to_owned(),
                    object: self.object_name(kind, gain.object),
                    rights: right_names(gain.rights()),
                });
            }
        }
        rows
    }

    /// Returns what each partition can come to hold by grants, with rights that it lacks at first.
    #[must_use]
    pub(crate) fn gains(&self) -> Holdings {
        let held = self.holdings();
        let all = closure(held.clone());
        let pairs = held.into_iter().zip(all);
        let gain = |(own, all): (BTreeSet<Held>, BTreeSet<Held>)| {
            let has = |gain: &Held| own.iter().any(|own| own.covers(*gain));
            all.into_iter().filter(|gain| !has(gain)).collect()
        };
        pairs.map(gain).collect()
    }

    /// Returns a partition that can come to hold this right by grants, if there is one.
    #[must_use]
    pub(crate) fn gains_right(&self, kind: ObjectKind, object: usize, right: Rights) -> Option<String> {
        let is_it = |gain: &Held| gain.covers(Held::new(kind, object, right));
        let mut all = self.partitions().into_iter().zip(self.gains());
        let found = all.find(|(_, gains)| gains.iter().any(is_it));
        found.map(|(partition, _)| partition.name().to_owned())
    }

    fn reach_row(&self, act: &Act, is_direct: bool) -> ReachRow {
        let by = act.kind().map(|kind| self.object_name(kind, act.object));
        let (from, to) = (act.from, act.to);
        self.way(Pair { from, to }, by.unwrap_or_default(), act.how, is_direct)
    }

    fn way(&self, Pair { from, to }: Pair, by: String, how: &str, is_direct: bool) -> ReachRow {
        let name = |number| self.partition(number).map_or("", |partition| partition.name());
        ReachRow {
            from: name(from).to_owned(),
            to: name(to).to_owned(),
            by,
            how: how.to_owned(),
            is_direct,
        }
    }

    fn holdings(&self) -> Holdings {
        let space = |partition: super::Partition<'_>| -> BTreeSet<Held> {
            let all = partition.capabilities().into_iter();
            all.map(|one| Held::new(one.kind, one.object, one.rights))
                .collect()
        };
        self.partitions().into_iter().map(space).collect()
    }

    fn reach_objects(&self) -> Objects {
        let number = |name: &str| self.partitions().iter().position(|other| other.name() == name);
        let bells = self.manifest.channels.iter().map(|channel| {
            let heard = channel
                .sides
                .iter()
                .filter(|side| side.interrupt.is_some() || side.event.is_some());
            heard.filter_map(|side| number(&side.partition.as_ref()?.value))
        });
        let residents = self.pcpus.iter().map(|pcpu| {
            let all = self.partitions().into_iter();
            all.filter(|partition| partition.vcpus().iter().any(|vcpu| vcpu.pcpu == pcpu.number))
                .map(|partition| partition.number)
                .collect()
        });
        Objects {
            bells: bells.map(Iterator::collect).collect(),
            residents: residents.collect(),
        }
    }

    /// Returns the ways that need no capability, and that no grant changes.
    fn fixed_ways(&self) -> Vec<ReachRow> {
        let mut rows = Vec::new();
        let partitions = self.partitions();
        let numbers = || 0..partitions.len();
        let others = |number: usize| numbers().filter(move |other| *other != number);
        for (from, partition) in partitions.iter().enumerate() {
            for side in channels::sides_of(&self.manifest, partition.name()) {
                let name = &side.channel.name.value;
                for to in others(from) {
                    let Some(other_name) = partitions.get(to).map(super::Partition::name) else {
                        continue;
                    };
                    let is_there = |spec: &&crate::model::SideSpec| {
                        spec.partition.as_ref().is_some_and(|own| own.value == other_name)
                    };
                    let Some(there) = side.channel.sides.iter().find(is_there) else {
                        continue;
                    };
                    let mut row =
                        |how| rows.push(self.way(Pair { from, to }, format!("channel {name}"), how, true));
                    if side.spec.access.write && !*side.spec.held {
                        row("writes shared memory");
                    }
                    // The function is the right to ring.
                    if *side.spec.pci && (there.interrupt.is_some() || there.event.is_some()) {
                        row("rings");
                    }
                }
            }
            let spec = self.manifest.partitions.get(from);
            if let Some(network) = spec.and_then(|spec| spec.network.as_ref()) {
                let is_there = |other: &usize| {
                    let spec = self.manifest.partitions.get(*other);
                    let theirs = spec.and_then(|spec| spec.network.as_ref());
                    theirs.is_some_and(|theirs| theirs.value == network.value)
                };
                let by = format!("network {}", network.value);
                let ways = others(from).filter(is_there);
                rows.extend(ways.map(|to| self.way(Pair { from, to }, by.clone(), "sends frames", true)));
            }
            if partition.unconfined_dma() {
                let how = "writes all memory (trusted-dma)";
                rows.extend(others(from).map(|to| self.way(Pair { from, to }, "DMA".to_owned(), how, true)));
            }
            // The state changes of a partition are events at each partition that watches it.
            let to = from;
            let told = |from: usize| {
                let by = format!("event gate of {}", partition.name());
                self.way(Pair { from, to }, by, "tells of its state changes", true)
            };
            rows.extend(partition.watches().into_iter().map(told));
        }
        rows
    }
}
