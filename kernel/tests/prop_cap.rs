// SPDX-License-Identifier: Apache-2.0
//! Capability spaces against a model that stores parents. Rights never grow, and revocation takes exactly the
//! descendants. A reset leaves exactly the endowed capabilities, and no operation changes anything else.

use bulkhead_abi::{Error, ObjectKind, Rights};
use bulkhead_arch_api::{PartitionId, VcpuId};
use bulkhead_kernel::cap::{Capability, HeldReply, REVOKED_AT_ONCE, ReplyIndex, Spaces};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const PARTITIONS: u8 = 3;
const SLOTS: u64 = 64;

#[derive(Clone, Debug)]
enum Operation {
    Derive {
        holder: u8,
        index: u64,
        receiver: u8,
        rights: u8,
    },
    Revoke {
        holder: u8,
        index: u64,
        own: bool,
    },
    Reset {
        holder: u8,
    },
    /// Uses a slot, empty or not.
    Use {
        holder: u8,
        index: u64,
    },
    /// Receives a call of a vCPU, or ends that call.
    Reply {
        holder: u8,
        caller: u8,
    },
    End {
        caller: u8,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    let reply = (0..8_u32, 0..4_u8).prop_map(|(slot, caller)| reply_index(slot.into(), caller));
    let index = prop_oneof![2 => 0..8_u64, 2 => 0..70_u64, 1 => reply];
    prop_oneof![
        3 => (0..PARTITIONS, index.clone(), 0..PARTITIONS, 0..16_u8)
            .prop_map(|(holder, index, receiver, rights)| Operation::Derive { holder, index, receiver, rights }),
        1 => (0..PARTITIONS, index.clone(), any::<bool>())
            .prop_map(|(holder, index, own)| Operation::Revoke { holder, index, own }),
        2 => (0..PARTITIONS, index).prop_map(|(holder, index)| Operation::Use { holder, index }),
        1 => (0..PARTITIONS, 0..4_u8).prop_map(|(holder, caller)| Operation::Reply { holder, caller }),
        1 => (0..4_u8).prop_map(|caller| Operation::End { caller }),
        1 => (0..PARTITIONS).prop_map(|holder| Operation::Reset { holder }),
    ]
}

/// Returns the index of a capability to reply to a call of `caller`. All calls have one number here.
fn reply_index(slot: u64, caller: u8) -> u64 {
    ReplyIndex::new(slot as u32, VcpuId(caller), 1).0.into()
}

/// A holder and a slot.
type Name = (u8, u64);

#[derive(Default)]
struct Model {
    entries: BTreeMap<Name, (Capability, Option<Name>)>,
    /// The slots whose capabilities another partition took away, and whose holders do not know.
    dead: BTreeSet<Name>,
    /// The calls that were received, by caller.
    calls: BTreeMap<u8, Name>,
}

impl Model {
    fn derive(&mut self, named: Name, receiver: u8, rights: Rights) -> Result<u64, Error> {
        let (from, parent) = self.find(named)?;
        if !parent.rights.contains(rights) {
            return Err(Error::NoRight);
        }
        if parent.kind == ObjectKind::Reply {
            return Err(Error::WrongKind);
        }
        let free = self.free(receiver).ok_or(Error::NoSpace)?;
        self.entries
            .insert((receiver, free), (Capability { rights, ..parent }, Some(from)));
        Ok(free)
    }

    /// Uses an index. The first use of a dead slot frees the slot.
    fn find(&mut self, (holder, index): Name) -> Result<(Name, Capability), Error> {
        let is_reply = ReplyIndex::of(index).is_some();
        let name = (holder, if is_reply { index & 63 } else { index });
        let found = self.entries.get(&name).map(|(found, _)| *found);
        let found = found.filter(|found| (found.kind == ObjectKind::Reply) == is_reply);
        match found {
            None if is_reply || self.dead.remove(&name) => Err(Error::Revoked),
            None => Err(Error::NoCapability),
            Some(found) => Ok((name, found)),
        }
    }

    fn free(&self, holder: u8) -> Option<u64> {
        let is_free = |slot: &u64| {
            let name = (holder, *slot);
            !self.entries.contains_key(&name) && !self.dead.contains(&name)
        };
        (0..SLOTS).find(is_free)
    }

    fn receive(&mut self, holder: u8, caller: u8) -> Result<u64, Error> {
        let slot = self.free(holder).ok_or(Error::NoSpace)?;
        let reply = Capability {
            kind: ObjectKind::Reply,
            object: caller,
            rights: Rights::WRITE,
        };
        self.entries.insert((holder, slot), (reply, None));
        self.calls.insert(caller, (holder, slot));
        Ok(reply_index(slot, caller))
    }

    /// Ends a call, if its capability is still where it was put.
    fn end(&mut self, caller: u8, name: Name) {
        let is_there = self
            .entries
            .get(&name)
            .is_some_and(|(found, _)| found.kind == ObjectKind::Reply && found.object == caller);
        if is_there {
            self.entries.remove(&name);
        }
    }

    fn descends(&self, name: Name, root: Name) -> bool {
        let mut at = name;
        while let Some((_, Some(parent))) = self.entries.get(&at) {
            if *parent == root {
                return true;
            }
            at = *parent;
        }
        false
    }

    fn revoke(&mut self, named: Name, own: bool) -> Result<(), Error> {
        if own && named.1 == 0 {
            return Err(Error::InvalidArgument);
        }
        let (root, _) = self.find(named)?;
        let gone: Vec<Name> = self
            .entries
            .keys()
            .filter(|name| self.descends(**name, root))
            .copied()
            .collect();
        for name in gone {
            self.entries.remove(&name);
            if name.0 != root.0 {
                self.dead.insert(name);
            }
        }
        if own {
            self.entries.remove(&root);
        }
        Ok(())
    }

    fn reset(&mut self, holder: u8) {
        for index in 0..SLOTS {
            // A place without a capability is no error here.
            let _nothing = self.revoke((holder, index), false);
            self.entries.remove(&(holder, index));
            self.dead.remove(&(holder, index));
        }
        self.endow(holder);
    }

    fn endow(&mut self, holder: u8) {
        for (index, capability) in endowment(holder) {
            self.entries
                .insert((holder, u64::from(index)), (capability, None));
        }
    }
}

/// Returns the first capabilities of the spaces of the test.
fn endowment(holder: u8) -> [(u32, Capability); 3] {
    [
        (0, ObjectKind::Partition, 15),
        (1, ObjectKind::Console, 3),
        (5, ObjectKind::EventGate, 9),
    ]
    .map(|(index, kind, rights)| {
        let object = holder;
        let rights = Rights(rights);
        (index, Capability { kind, object, rights })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: proptest::test_runner::RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn spaces_behave_like_the_model(operations in prop::collection::vec(operation(), 1..300)) {
        let spaces = Spaces::<spin::Spin>::new();
        let mut model = Model::default();
        for holder in 0..PARTITIONS {
            for (index, capability) in endowment(holder) {
                spaces.endow(PartitionId(holder), index, capability).unwrap();
            }
            model.endow(holder);
        }
        for operation in operations {
            match operation {
                Operation::Derive { holder, index, receiver, rights } => {
                    let result = spaces.derive(PartitionId(holder), index, PartitionId(receiver), Rights(rights));
                    prop_assert_eq!(result.map(u64::from), model.derive((holder, index), receiver, Rights(rights)));
                }
                Operation::Revoke { holder, index, own } => {
                    let revoke = || spaces.revoke(PartitionId(holder), index, own).map(|(done, _)| done);
                    let mut done = revoke();
                    for _ in 0..=SLOTS {
                        if done != Ok(false) {
                            break;
                        }
                        done = revoke();
                    }
                    prop_assert_eq!(done.map(|done| assert!(done)), model.revoke((holder, index), own));
                }
                Operation::Reset { holder } => {
                    let mut next = Some(0);
                    for _ in 0..=SLOTS {
                        let Some(from) = next else { break };
                        (next, _) = spaces.reset(PartitionId(holder), from);
                    }
                    prop_assert_eq!(next, None);
                    model.reset(holder);
                }
                Operation::Use { holder, index } => {
                    let found = spaces.look_up(PartitionId(holder), index);
                    prop_assert_eq!(found, model.find((holder, index)).map(|(_, found)| found));
                }
                Operation::Reply { holder, caller } => {
                    let put = spaces.put_reply(PartitionId(holder), VcpuId(caller), 1, Rights::WRITE);
                    prop_assert_eq!(put.map(|index| index.0.into()), model.receive(holder, caller));
                }
                Operation::End { caller } => {
                    if let Some((holder, slot)) = model.calls.remove(&caller) {
                        let held = HeldReply {
                            holder: PartitionId(holder),
                            index: ReplyIndex::new(slot as u32, VcpuId(caller), 1),
                        };
                        spaces.take_reply(held, VcpuId(caller));
                        model.end(caller, (holder, slot));
                    }
                }
            }
            for holder in 0..PARTITIONS {
                for index in 0..SLOTS {
                    let expected = model.entries.get(&(holder, index)).map(|(capability, _)| *capability);
                    let error = if model.dead.contains(&(holder, index)) { Error::Revoked } else { Error::NoCapability };
                    let named = match expected {
                        Some(found) if found.kind == ObjectKind::Reply => reply_index(index, found.object),
                        _ => index,
                    };
                    prop_assert_eq!(spaces.peek(PartitionId(holder), named), expected.ok_or(error));
                    let parent = model.entries.get(&(holder, index)).and_then(|(_, parent)| *parent);
                    if let (Some(own), Some(parent)) = (expected, parent) {
                        prop_assert!(model.entries[&parent].0.rights.contains(own.rights));
                    }
                }
            }
        }
    }
}

#[test]
fn a_revocation_takes_away_a_bounded_number_at_a_time() {
    let spaces = Spaces::<spin::Spin>::new();
    let (holder, receivers) = (PartitionId(0), (0..4).map(PartitionId));
    let capability = Capability {
        kind: ObjectKind::Timer,
        rights: Rights::GRANT,
        object: 0,
    };
    spaces.endow(holder, 1, capability).unwrap();
    let mut derived = 0;
    for receiver in receivers {
        while spaces.derive(holder, 1, receiver, Rights::GRANT).is_ok() {
            derived += 1;
        }
    }
    assert_eq!(derived, 4 * SLOTS - 1);
    for _ in 0..derived / REVOKED_AT_ONCE as u64 {
        assert!(matches!(spaces.revoke(holder, 1, true), Ok((false, lost)) if lost != 0));
    }
    assert!(matches!(spaces.revoke(holder, 1, true), Ok((true, _))));
    assert_eq!(spaces.look_up(holder, 1), Err(Error::NoCapability));
}

#[test]
fn the_worst_revocation_takes_every_slot_of_every_space() {
    let spaces = Spaces::<spin::Spin>::new();
    let capability = Capability {
        kind: ObjectKind::Timer,
        rights: Rights::GRANT,
        object: 0,
    };
    spaces.endow(PartitionId(0), 1, capability).unwrap();
    // A chain as long as it can be, through all spaces and back: each link is derived from the one before.
    let (mut at, mut chain) = ((PartitionId(0), 1), 0);
    for receiver in (0..32).map(PartitionId).cycle().take(32 * SLOTS as usize) {
        let (holder, index) = at;
        if let Ok(slot) = spaces.derive(holder, index, receiver, Rights::GRANT) {
            (at, chain) = ((receiver, u64::from(slot)), chain + 1);
        }
    }
    assert_eq!(chain, 32 * SLOTS - 1);
    let (mut steps, mut losers) = (0, 0);
    loop {
        steps += 1;
        let (done, lost) = spaces.revoke(PartitionId(0), 1, false).unwrap();
        losers |= lost;
        if done {
            break;
        }
    }
    assert_eq!(losers, u32::MAX);
    assert_eq!(steps, (chain as usize).div_ceil(REVOKED_AT_ONCE));
    // Every holder but the one who revoked meets the error once. Then the slot is free.
    for holder in (1..32).map(PartitionId) {
        let put = || spaces.put_reply(holder, VcpuId(0), 1, Rights::WRITE);
        assert_eq!(put(), Err(Error::NoSpace));
        assert_eq!(spaces.look_up(holder, 9), Err(Error::Revoked));
        assert_eq!(spaces.look_up(holder, 9), Err(Error::NoCapability));
        assert_eq!(put(), Ok(ReplyIndex::new(9, VcpuId(0), 1)));
    }
}
