// SPDX-License-Identifier: Apache-2.0
//! The reach of partitions by capabilities, at once and after any sequence of grants.
//!
//! **Model.** A capability moves from a partition to another in two ways: by a grant into the space of the
//! other, and with a message or a reply. Both need rights that are capabilities themselves. So [`closure`]
//! looks for the least fixed point: a partition that can send to another one shares everything with it. A
//! copy never has more rights than its original, so a capability of the manifest stands for all its copies.
//!
//! The closure is an upper bound of what programs can do in any order of their steps. It does not say that
//! they do so. Capabilities to reply cannot be copied, and are left out.

use bulkhead_abi::{ObjectKind, Rights};
use std::collections::BTreeSet;

/// A capability, without its place in a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The number of the kind, so that capabilities have an order.
    kind: u8,
    /// The number of the object: see [`crate::system::Capability::object`].
    pub object: usize,
    rights: u8,
}

impl Held {
    /// Returns the capability for this object.
    #[must_use]
    pub const fn new(kind: ObjectKind, object: usize, rights: Rights) -> Self {
        Self {
            kind: kind as u8,
            object,
            rights: rights.0,
        }
    }

    /// Returns the rights.
    #[must_use]
    pub const fn rights(self) -> Rights {
        Rights(self.rights)
    }

    /// Returns the kind of the object.
    #[must_use]
    pub const fn kind(self) -> Option<ObjectKind> {
        ObjectKind::from_number(self.kind)
    }

    /// Tells whether this capability is for the same object, and has at least the same rights.
    #[must_use]
    pub const fn covers(self, other: Self) -> bool {
        self.kind == other.kind && self.object == other.object && self.rights().contains(other.rights())
    }

    fn is(self, kind: ObjectKind, object: usize) -> bool {
        self.kind == kind as u8 && self.object == object
    }

    fn has(self, kind: ObjectKind, rights: Rights) -> bool {
        self.kind == kind as u8 && self.rights().contains(rights)
    }
}

/// The capabilities of each partition, by number.
pub type Holdings = Vec<BTreeSet<Held>>;

/// The facts about objects that decide on whom a capability acts.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// For each channel, the partitions at which its doorbell rings.
    pub bells: Vec<Vec<usize>>,
    /// For each pCPU, the partitions with a vCPU there.
    pub residents: Vec<Vec<usize>>,
}

/// One way of a partition to act on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Act {
    /// The number of the partition that acts.
    pub from: usize,
    /// The number of the other partition.
    pub to: usize,
    kind: u8,
    /// The number of the object.
    pub object: usize,
    /// The deed, as the end of a sentence.
    pub how: &'static str,
}

impl Act {
    /// Returns the kind of the object.
    #[must_use]
    pub const fn kind(&self) -> Option<ObjectKind> {
        ObjectKind::from_number(self.kind)
    }
}

/// Returns everything that partitions could hold after grants. The work is bounded by the number of
/// partitions times the number of capabilities, for each step in which a partition gains a capability.
#[must_use]
pub fn closure(mut holdings: Holdings) -> Holdings {
    loop {
        let mut is_done = true;
        for (from, to) in gives(&holdings) {
            let given = holdings.get(from).cloned().unwrap_or_default();
            if let Some(receiver) = holdings.get_mut(to) {
                let before = receiver.len();
                receiver.extend(given);
                is_done &= receiver.len() == before;
            }
        }
        if is_done {
            return holdings;
        }
    }
}

/// Returns the pairs of partitions of which the first can give capabilities to the second.
fn gives(holdings: &Holdings) -> BTreeSet<(usize, usize)> {
    let mut pairs = BTreeSet::new();
    let all = || holdings.iter().enumerate();
    for (holder, held) in all().flat_map(|(holder, held)| held.iter().map(move |held| (holder, *held))) {
        if held.has(ObjectKind::Partition, Rights::GRANT) {
            pairs.insert((holder, held.object));
        }
        if held.has(ObjectKind::Port, Rights::WRITE.union(Rights::GRANT)) {
            for receiver in receivers(holdings, held.object) {
                // The reply to a call carries a capability if the caller may send one.
                pairs.extend([(holder, receiver), (receiver, holder)]);
            }
        }
    }
    pairs.retain(|(from, to)| from != to);
    pairs
}

/// Returns the partitions that can receive at a port.
fn receivers(holdings: &Holdings, port: usize) -> impl Iterator<Item = usize> + '_ {
    let all = holdings.iter().enumerate();
    let takes = move |held: &&Held| held.is(ObjectKind::Port, port) && held.rights().contains(Rights::READ);
    all.filter_map(move |(number, held)| held.iter().find(takes).map(|_| number))
}

/// Returns the ways in which partitions with these capabilities act on each other.
#[must_use]
pub fn acts(holdings: &Holdings, objects: &Objects) -> BTreeSet<Act> {
    let mut found = BTreeSet::new();
    for (from, held) in holdings.iter().enumerate() {
        for held in held {
            let Some(kind) = held.kind() else { continue };
            let mut add = |from: usize, to: usize, how| {
                let Held { kind, object, .. } = *held;
                if from != to {
                    found.insert(Act {
                        from,
                        to,
                        kind,
                        object,
                        how,
                    });
                }
            };
            for (right, how) in deeds(kind) {
                if held.rights().contains(*right) {
                    for to in targets(kind, held.object, holdings, objects) {
                        add(from, to, how);
                        if kind == ObjectKind::Port {
                            add(to, from, "answers calls");
                        }
                    }
                }
            }
        }
    }
    found
}

/// Returns the deeds that rights to an object of this kind allow.
const fn deeds(kind: ObjectKind) -> &'static [(Rights, &'static str)] {
    match kind {
        ObjectKind::Partition => &[
            (Rights::READ, "reads the state"),
            (Rights::CONTROL, "starts, stops and restarts"),
            (Rights::GRANT, "puts capabilities into the space"),
        ],
        ObjectKind::EventGate => &[(Rights::READ, "takes events"), (Rights::WRITE, "raises events")],
        ObjectKind::Console => &[(Rights::READ, "takes input"), (Rights::WRITE, "prints")],
        ObjectKind::Schedule => &[(Rights::CONTROL, "changes the schedule")],
        ObjectKind::Port => &[(Rights::WRITE, "sends messages")],
        ObjectKind::Lock => &[(Rights::WRITE, "owns for a time")],
        ObjectKind::Channel => &[(Rights::WRITE, "rings")],
        ObjectKind::Timer
        | ObjectKind::Reply
        | ObjectKind::Service
        | ObjectKind::Secret
        | ObjectKind::Device
        | ObjectKind::Interrupt => &[],
    }
}

/// Returns the partitions on which the holder of a capability acts, perhaps with the holder among them.
fn targets(kind: ObjectKind, object: usize, holdings: &Holdings, objects: &Objects) -> Vec<usize> {
    let listed = |lists: &[Vec<usize>]| lists.get(object).cloned().unwrap_or_default();
    match kind {
        ObjectKind::Partition | ObjectKind::EventGate | ObjectKind::Console => vec![object],
        ObjectKind::Schedule => listed(&objects.residents),
        ObjectKind::Channel => listed(&objects.bells),
        ObjectKind::Port => receivers(holdings, object).collect(),
        ObjectKind::Lock => {
            let takes = |held: &Held| held.is(kind, object) && held.rights().contains(Rights::WRITE);
            let all = holdings.iter().enumerate();
            all.filter_map(|(number, held)| held.iter().any(takes).then_some(number))
                .collect()
        }
        ObjectKind::Timer
        | ObjectKind::Reply
        | ObjectKind::Service
        | ObjectKind::Secret
        | ObjectKind::Device
        | ObjectKind::Interrupt => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ObjectKind::{Channel, EventGate, Lock, Partition, Port, Schedule};

    fn holdings(lists: &[&[Held]]) -> Holdings {
        let own = |number| Held::new(Partition, number, Rights::ALL);
        let space = |(number, list): (usize, &&[Held])| list.iter().copied().chain([own(number)]).collect();
        lists.iter().enumerate().map(space).collect()
    }

    fn pairs(acts: &BTreeSet<Act>) -> Vec<(usize, usize, &'static str)> {
        acts.iter().map(|act| (act.from, act.to, act.how)).collect()
    }

    const SEND: Rights = Rights::WRITE;
    const SEND_GRANT: Rights = Rights(Rights::WRITE.0 | Rights::GRANT.0);

    #[test]
    fn ports_without_the_right_to_grant_carry_nothing() {
        let held = holdings(&[
            &[Held::new(Port, 0, SEND), Held::new(EventGate, 2, SEND)],
            &[Held::new(Port, 0, Rights::READ)],
            &[],
        ]);
        assert_eq!(closure(held.clone()), held);
        let acts = acts(&held, &Objects::default());
        let expected = [
            (0, 1, "sends messages"),
            (0, 2, "raises events"),
            (1, 0, "answers calls"),
        ];
        assert_eq!(pairs(&acts), expected);
    }

    #[test]
    fn a_port_with_the_right_to_grant_carries_both_ways() {
        let held = holdings(&[
            &[Held::new(Port, 0, SEND_GRANT), Held::new(Lock, 3, SEND)],
            &[Held::new(Port, 0, Rights::READ), Held::new(EventGate, 2, SEND)],
            &[],
        ]);
        let all = closure(held.clone());
        assert!(all[1].contains(&Held::new(Lock, 3, SEND)));
        assert!(all[1].contains(&Held::new(Partition, 0, Rights::ALL)));
        assert!(
            all[0].contains(&Held::new(EventGate, 2, SEND)),
            "by the reply to a call"
        );
        assert_eq!(all[2], held[2]);
        let now = acts(&held, &Objects::default());
        let later = acts(&all, &Objects::default());
        assert!(now.is_subset(&later));
        let new: BTreeSet<Act> = later.difference(&now).copied().collect();
        assert!(pairs(&new).contains(&(0, 2, "raises events")));
        assert!(pairs(&new).contains(&(1, 0, "starts, stops and restarts")));
        assert!(pairs(&new).contains(&(1, 0, "owns for a time")));
    }

    #[test]
    fn a_granted_right_to_grant_goes_on() {
        // 0 grants to 1 all that it has, so also the right to grant to 2, and so on along the chain.
        let grant = |to| Held::new(Partition, to, Rights::GRANT);
        let held = holdings(&[
            &[grant(1), Held::new(Schedule, 1, Rights::CONTROL)],
            &[grant(2)],
            &[grant(3)],
            &[],
            &[],
        ]);
        let all = closure(held);
        for (number, held) in all.iter().enumerate().take(4) {
            let is_there = held.contains(&Held::new(Schedule, 1, Rights::CONTROL));
            assert!(is_there, "{number}");
        }
        assert!(all[3].contains(&grant(1)), "with what 0 gave to 1");
        assert!(
            all[0].contains(&grant(2)),
            "0 can give away the right to grant to itself"
        );
        assert_eq!(all[4].len(), 1);
        let objects = Objects {
            residents: vec![vec![0, 3], vec![4]],
            ..Objects::default()
        };
        assert!(pairs(&acts(&all, &objects)).contains(&(3, 4, "changes the schedule")));
    }

    #[test]
    fn a_bell_rings_at_the_sides_and_a_lock_keeps_all_others() {
        let held = holdings(&[
            &[Held::new(Channel, 0, SEND)],
            &[Held::new(Lock, 0, SEND)],
            &[Held::new(Lock, 0, SEND), Held::new(Lock, 1, SEND)],
        ]);
        let objects = Objects {
            bells: vec![vec![0, 1]],
            ..Objects::default()
        };
        let expected = [
            (0, 1, "rings"),
            (1, 2, "owns for a time"),
            (2, 1, "owns for a time"),
        ];
        assert_eq!(pairs(&acts(&held, &objects)), expected);
    }

    #[test]
    fn the_closure_is_what_random_grants_reach_at_most_and_in_the_end() {
        // Copies one capability at a time, in a random order, as programs do. After many steps nothing is
        // left to copy that the closure does not have, and everything that it has is there.
        let mut state = 7_u64;
        let mut next = |bound: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % bound
        };
        for _ in 0..200 {
            let kinds = [Partition, Port, EventGate, Lock];
            let lists: Vec<Vec<Held>> = (0..4)
                .map(|_| {
                    let one = |_| Held::new(kinds[next(4)], next(4), Rights(next(16) as u8));
                    (0..3).map(one).collect()
                })
                .collect();
            let lists: Vec<&[Held]> = lists.iter().map(Vec::as_slice).collect();
            let mut held = holdings(&lists);
            let all = closure(held.clone());
            for _ in 0..4000 {
                let pairs: Vec<(usize, usize)> = gives(&held).into_iter().collect();
                if pairs.is_empty() {
                    break;
                }
                let (from, to) = pairs[next(pairs.len())];
                let list: Vec<Held> = held[from].iter().copied().collect();
                held[to].insert(list[next(list.len())]);
            }
            assert_eq!(held, all);
        }
    }
}
