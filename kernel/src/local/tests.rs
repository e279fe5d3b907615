// SPDX-License-Identifier: Apache-2.0
//! Tests of three facts. The decision in force is the policy's, in every state that random histories lead to.
//! The times that the pCPU has at hand are those that a walk over all slots finds, in every such state. A
//! critical interrupt urges the right slots only.

use super::{Activity, Local, Upcall};
use crate::load::Cursor;
use crate::mailbox::bits;
use crate::port::ReplyWait;
use crate::trace::Tracer;
use bulkhead_abi::log::{Area, NONE};
use bulkhead_arch_api::{GuestPhys, PartitionId, PcpuId, Ticks, VcpuId};
use bulkhead_sched::{
    Domain, DomainsParameters, EdfParameters, FixedPriorityParameters, MAX_SLOTS, PcpuPolicy, Policy,
    PolicyParameters, Server, ServerKind, Signals, Slot, VcpuParameters,
};
use core::sync::atomic::Ordering::Relaxed;
use std::boxed::Box;
use std::vec::Vec;

/// Returns a pCPU with these vCPUs, none of which is ready.
fn local(vcpus: &[VcpuParameters], parameters: &PolicyParameters<'_>) -> (Box<Local>, &'static Area) {
    let area: &'static Area = Box::leak(Box::new(Area::new()));
    let tracer = Tracer::new(&[], &area.pcpus[0], PcpuId(0));
    let mut local: Box<Local> = Box::new(Local::new(&area.pcpus[0], tracer, parameters));
    for (number, counters) in (0..vcpus.len()).zip(&area.vcpus) {
        local.add(VcpuId(number as u8), counters);
    }
    local.policy_mut().install(vcpus, parameters).unwrap();
    (local, area)
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Lives a random life of a pCPU, and checks three facts. The policy is told what its protocol says, the
/// decision in force is the one that the policy takes, and every tick is counted once.
fn live(vcpus: &[VcpuParameters], parameters: &PolicyParameters<'_>, seed: u64) -> Box<Local> {
    let (mut local, area) = local(vcpus, parameters);
    let mut policy = local.policy.clone();
    let mut random = Random(seed);
    let mut now = Ticks(0);
    local.settle(now);
    local.pick(now);
    policy.next(now.0);
    let mut since = now;
    for step in 0..2000 {
        now = Ticks(now.0 + 1 + random.below(9));
        let before = local.running();
        if let (0, Some(slot)) = (random.below(3), before) {
            local.block(slot, Activity::Idle(Ticks(now.0 + random.below(20))));
        }
        for slot in local.all() {
            let is_due = local.slot(slot).activity.until() <= now;
            if is_due || random.below(4) == 0 && !local.slot(slot).activity.is_ready() {
                local.make_ready(slot, now);
                policy.ready(slot, now.0);
            }
        }
        if !local.reschedule && now < local.deadline() {
            assert_eq!(local.running(), before);
            continue;
        }
        local.settle(now);
        assert_eq!(local.running(), None);
        if let Some(slot) = before {
            let why = local.slot(slot).activity.stop_reason();
            policy.stopped(slot, why, now.since(since).0, now.0);
        }
        local.pick(now);
        since = now;
        assert!(!local.reschedule);
        assert_eq!(local.in_force.decision(), policy.next(now.0), "step {step}");
        assert_eq!(local.interested(), policy.interested());
        let signals = policy.signals();
        assert_eq!(local.has_signals(), signals != Signals::default());
        assert_eq!(local.take_signals(), signals);
        assert_eq!(local.policy, policy, "step {step}");
        let shown = area.pcpus[0].running.load(Relaxed);
        assert_eq!(shown, local.running().map_or(NONE, |slot| u32::from(slot.0)));
        let counted = area.vcpus.iter().map(|vcpu| vcpu.ran.load(Relaxed)).sum::<u64>();
        assert_eq!(counted + area.pcpus[0].idle.load(Relaxed), now.0);
        assert_eq!(area.pcpus[0].since.load(Relaxed), now.0);
    }
    local
}

fn vcpu(priority: u8) -> VcpuParameters {
    VcpuParameters {
        priority,
        ..VcpuParameters::default()
    }
}

/// Returns a time from `now` on, or none.
fn some_time(random: &mut Random, now: Ticks) -> Ticks {
    match random.below(4) {
        0 => Ticks::NEVER,
        _ => Ticks(now.0 + random.below(60)),
    }
}

/// Lets a slot that runs do something that changes its own time.
fn change_time(local: &mut Local, slot: Slot, random: &mut Random, now: Ticks) {
    match random.below(4) {
        0 => local.block(slot, Activity::Idle(some_time(random, now))),
        1 => {
            let (until, timer) = (some_time(random, now), some_time(random, now));
            local.block(slot, Activity::waiting(ReplyWait.into(), until, timer));
        }
        2 => {
            let upcall = Upcall {
                gate: PartitionId(0),
                index: 0,
                entry: GuestPhys(0),
                frame: GuestPhys(0),
                until: some_time(random, now),
            };
            local.set_upcall(slot, (random.below(3) != 0).then_some(upcall));
        }
        _ => {}
    }
}

/// Makes a slot ready. A task that waits for an upcall is looked at then, as the kernel does.
fn wake(local: &mut Local, slot: Slot, now: Ticks) {
    local.make_ready(slot, now);
    if local.upcalls.is_watching(slot) {
        local.note(slot);
    }
}

/// Lives a random life of a pCPU with waits, early wake-ups, upcalls and watchdogs. Checks at each step that
/// the slots whose time has come, and the next deadline, are those that a walk over all slots finds.
fn live_by_the_clock(vcpus: &[VcpuParameters], parameters: &PolicyParameters<'_>, seed: u64) {
    let (mut local, _) = local(vcpus, parameters);
    let mut random = Random(seed);
    let mut now = Ticks(0);
    for step in 0..3000 {
        now = Ticks(now.0 + random.below(9));
        if let Some(slot) = local.running() {
            change_time(&mut local, slot, &mut random, now);
        }
        local.settle(now);
        let slot = Slot(random.below(vcpus.len() as u64) as u8);
        match random.below(4) {
            0 => local.set_watchdog(slot, some_time(&mut random, now)),
            1 if !local.slot(slot).activity.is_ready() => wake(&mut local, slot, now),
            2 if random.below(8) == 0 => {
                local.set_upcall(slot, None);
                local.switch_off(slot, now);
            }
            _ => {}
        }
        let is_due = |local: &Local, slot: &Slot| local.own_time(*slot) <= now;
        let due: Vec<Slot> = local.all().filter(|slot| is_due(&local, slot)).collect();
        assert!(due.is_empty() || local.is_due(now), "step {step}");
        let taken: Vec<Slot> = bits(local.take_due(now)).map(Slot).collect();
        let found: Vec<Slot> = taken
            .iter()
            .copied()
            .filter(|slot| is_due(&local, slot))
            .collect();
        assert_eq!(found, due, "step {step}");
        for slot in due {
            local.set_upcall(slot, None);
            if !local.slot(slot).activity.is_ready() {
                wake(&mut local, slot, now);
            }
        }
        // As in the kernel: all else is noted when a wait begins or a task goes on.
        for slot in taken {
            if local.slot(slot).watchdog != Ticks::NEVER {
                local.note(slot);
            }
        }
        local.pick(now);
        let time = |slot: Slot| local.own_time(slot).min(local.slot(slot).watchdog);
        let walk = bits(local.concerned().0).map(|slot| time(Slot(slot)));
        let walk = walk.fold(local.end(), Ord::min);
        let earliest = local.all().map(time).fold(Ticks::NEVER, Ord::min);
        assert!(local.due <= earliest, "step {step}");
        assert_eq!(local.deadline(), walk, "step {step}");
    }
}

#[test]
fn the_times_at_hand_are_those_that_a_walk_over_the_slots_finds() {
    let quantum = FixedPriorityParameters { quantum: 12 };
    for seed in 0..60 {
        let mut random = Random(seed);
        let count = 1 + random.below(MAX_SLOTS as u64);
        let server = |kind| Server {
            budget: 20,
            period: 100,
            kind,
        };
        let mut vcpus: Vec<_> = (0..count).map(|_| vcpu(random.below(6) as u8)).collect();
        live_by_the_clock(&vcpus, &PolicyParameters::FixedPriority(quantum), seed);
        vcpus[0].server = Some(server(ServerKind::Sporadic));
        live_by_the_clock(&vcpus, &PolicyParameters::FixedPriority(quantum), seed);
        vcpus[0].server = Some(server(ServerKind::ConstantBandwidth));
        live_by_the_clock(
            &vcpus,
            &PolicyParameters::Edf(EdfParameters { quantum: 12 }),
            seed,
        );
        vcpus[0].server = None;
        vcpus
            .iter_mut()
            .for_each(|vcpu| vcpu.domain = random.below(2) as u8);
        let domains = [Domain { budget: 10 }, Domain { budget: 50 }];
        let parameters = DomainsParameters {
            domains: &domains,
            quantum: 5,
        };
        live_by_the_clock(&vcpus, &PolicyParameters::Domains(parameters), seed);
    }
}

#[test]
fn the_decision_in_force_is_the_one_that_the_policy_takes() {
    let quantum = FixedPriorityParameters { quantum: 12 };
    for seed in 0..40 {
        let mut random = Random(seed);
        let count = 1 + random.below(6);
        let vcpus: Vec<_> = (0..count).map(|_| vcpu(random.below(3) as u8)).collect();
        live(&vcpus, &PolicyParameters::FixedPriority(quantum), seed);
    }
    let server = |kind| VcpuParameters {
        server: Some(Server {
            budget: 20,
            period: 100,
            kind,
        }),
        ..vcpu(1)
    };
    let budgets = [server(ServerKind::Deferrable), vcpu(0), vcpu(2)];
    live(&budgets, &PolicyParameters::FixedPriority(quantum), 1);
    let servers = [server(ServerKind::ConstantBandwidth), vcpu(0), vcpu(0)];
    live(&servers, &PolicyParameters::Edf(EdfParameters { quantum: 12 }), 2);
    let domains = [Domain { budget: 10 }, Domain { budget: 50 }];
    let parameters = DomainsParameters {
        domains: &domains,
        quantum: 5,
    };
    let in_domains = [0, 1, 1].map(|domain| VcpuParameters { domain, ..vcpu(3) });
    live(&in_domains, &PolicyParameters::Domains(parameters), 3);
}

#[test]
fn a_partition_that_is_being_loaded_is_not_urged() {
    let domains = [
        Domain { budget: 10 },
        Domain { budget: 50 },
        Domain { budget: 50 },
    ];
    let parameters = PolicyParameters::Domains(DomainsParameters {
        domains: &domains,
        quantum: 5,
    });
    let in_domain = |domain| VcpuParameters { domain, ..vcpu(3) };
    for (activity, urged) in [
        (Activity::Loading(Cursor::default()), false),
        (Activity::Ready, true),
    ] {
        let (mut local, _) = local(&[in_domain(1), in_domain(2)], &parameters);
        local.make_ready(Slot(0), Ticks(1));
        local.settle(Ticks(1));
        local.pick(Ticks(1));
        assert_eq!(local.running(), Some(Slot(0)));
        local.make_ready(Slot(1), Ticks(2));
        local.slot_mut(Slot(1)).activity = activity;
        let before = local.policy.clone();
        local.reschedule = false;
        local.urge(Slot(1), Ticks(3));
        assert_eq!((local.reschedule, local.policy != before), (urged, urged));
    }
}

/// Lets a slot wait although no other slot can have its place.
#[test]
fn who_waits_without_a_loan_does_not_run_on() {
    let parameters = PolicyParameters::FixedPriority(FixedPriorityParameters { quantum: 10 });
    let (mut local, _) = local(&[vcpu(9), vcpu(5)], &parameters);
    for slot in [0, 1] {
        local.make_ready(Slot(slot), Ticks(0));
    }
    local.settle(Ticks(0));
    local.pick(Ticks(0));
    assert_eq!(local.running(), Some(Slot(0)));
    // It would lend its place to itself.
    assert!(local.lend(Slot(0), Slot(0), Ticks(3)).is_err());
    local.block(
        Slot(0),
        Activity::waiting(ReplyWait.into(), Ticks::NEVER, Ticks::NEVER),
    );
    local.settle(Ticks(5));
    local.pick(Ticks(5));
    assert_eq!(local.running(), Some(Slot(1)));
}
