// SPDX-License-Identifier: Apache-2.0
//! Tests of two facts. The decision in force is the policy's, in every state that random histories lead to. A
//! critical interrupt urges the right slots only.

use super::{Activity, Local};
use crate::load::Cursor;
use crate::port::ReplyWait;
use crate::trace::Tracer;
use bulkhead_abi::log::{Area, NONE};
use bulkhead_arch_api::{PcpuId, Ticks, VcpuId};
use bulkhead_sched::{
    Domain, DomainsParameters, EdfParameters, FixedPriorityParameters, PcpuPolicy, Policy, PolicyParameters,
    Server, ServerKind, Signals, Slot, VcpuParameters,
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
