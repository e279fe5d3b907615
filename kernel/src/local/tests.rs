// SPDX-License-Identifier: Apache-2.0
//! The short way of a vCPU that waits equals the long one, in every state that random histories lead to; and who is urged.

use super::{Activity, Local};
use crate::load::Cursor;
use crate::mailbox::Mailbox;
use crate::trace::Tracer;
use bulkhead_abi::log::Area;
use bulkhead_arch_api::{PcpuId, Ticks, VcpuId};
use bulkhead_sched::{
    Domain, DomainsParameters, EdfParameters, FixedPriorityParameters, PcpuPolicy, PolicyParameters, Server,
    ServerKind, Slot, VcpuParameters,
};
use std::boxed::Box;
use std::vec::Vec;

/// A pCPU with these vCPUs, and nobody ready.
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

/// What a decision leaves behind, besides the policy.
fn outcome(local: &Local, area: &Area) -> impl PartialEq + core::fmt::Debug + use<> {
    let ran: Vec<u64> = area
        .vcpus
        .iter()
        .map(|vcpu| vcpu.ran.load(core::sync::atomic::Ordering::Relaxed))
        .collect();
    let shown = area.pcpus[0].running.load(core::sync::atomic::Ordering::Relaxed);
    let activities: Vec<Activity> = local.all().map(|slot| local.slot(slot).activity).collect();
    let decision = (
        local.running,
        local.until,
        local.interested,
        local.since,
        local.due,
    );
    (decision, ran, shown, activities)
}

/// Both ways through the same history.
fn same_decisions(vcpus: &[VcpuParameters], parameters: &PolicyParameters<'_>, seed: u64) -> [u32; 2] {
    let ((mut short, short_area), (mut long, long_area)) =
        (local(vcpus, parameters), local(vcpus, parameters));
    let (mailbox, mut random) = (Mailbox::new(), Random(seed));
    let mut now = Ticks(0);
    let mut taken = [0; 2];
    for step in 0..2000 {
        now = Ticks(now.0 + 1 + random.below(9));
        for local in [&mut short, &mut long] {
            for slot in local
                .all()
                .filter(|slot| local.slot(*slot).activity.until() <= now)
                .collect::<Vec<_>>()
            {
                local.make_ready(slot, now);
            }
            if local.reschedule {
                local.settle(now);
                local.pick(now);
            }
            // As if the clock had been armed for it, or not.
            local.armed = if step % 7 == 0 { Ticks(0) } else { local.deadline() };
        }
        assert_eq!(outcome(&short, short_area), outcome(&long, long_area));
        now = Ticks(now.0 + 1 + random.below(9));
        if random.below(3) > 0 {
            let slot = Slot(random.below(vcpus.len() as u64) as u8);
            for local in [&mut short, &mut long] {
                if !local.slot(slot).activity.is_ready() {
                    local.make_ready(slot, now);
                }
            }
        }
        let Some(slot) = long.running().filter(|_| !long.reschedule) else {
            continue;
        };
        let until = match random.below(8) {
            0 => Ticks(now.0 + random.below(20)),
            _ => Ticks::NEVER,
        };
        let next = short.pass(slot, until, &mailbox, || now);
        long.idle(slot, until);
        long.follow(slot, now);
        taken[usize::from(next.is_some())] += 1;
        if short.reschedule {
            assert!(next.is_none());
            short.follow(slot, now);
        }
        assert_eq!(
            outcome(&short, short_area),
            outcome(&long, long_area),
            "step {step}"
        );
        assert_eq!(short.policy, long.policy, "step {step}");
        if let Some(next) = next {
            assert_eq!(Some(next), long.running());
            assert_eq!(short.armed, long.deadline(), "nothing is to be armed");
        }
    }
    taken
}

fn vcpu(priority: u8) -> VcpuParameters {
    VcpuParameters {
        priority,
        ..VcpuParameters::default()
    }
}

#[test]
fn the_short_way_of_waiting_equals_the_long_one() {
    let parameters = PolicyParameters::FixedPriority(FixedPriorityParameters { quantum: 12 });
    let mut shortly = 0;
    for seed in 0..40 {
        let mut random = Random(seed);
        let count = 1 + random.below(6);
        let vcpus: Vec<_> = (0..count).map(|_| vcpu(random.below(3) as u8)).collect();
        shortly += same_decisions(&vcpus, &parameters, seed)[1];
    }
    assert!(shortly > 1000, "{shortly}");
}

#[test]
fn who_has_no_short_way_of_waiting_takes_the_long_one() {
    let server = |kind| VcpuParameters {
        server: Some(Server {
            budget: 20,
            period: 100,
            kind,
        }),
        ..vcpu(1)
    };
    let budgets = [server(ServerKind::Deferrable), vcpu(0), vcpu(2)];
    let parameters = PolicyParameters::FixedPriority(FixedPriorityParameters { quantum: 12 });
    assert_eq!(same_decisions(&budgets, &parameters, 1)[1], 0);
    let servers = [server(ServerKind::ConstantBandwidth), vcpu(0), vcpu(0)];
    let parameters = PolicyParameters::Edf(EdfParameters { quantum: 12 });
    assert_eq!(same_decisions(&servers, &parameters, 2)[1], 0);
}

#[test]
fn mail_replaces_the_decision_of_the_short_way() {
    let parameters = PolicyParameters::FixedPriority(FixedPriorityParameters { quantum: 12 });
    let (mut local, _) = local(&[vcpu(1), vcpu(0)], &parameters);
    let mailbox = Mailbox::new();
    for slot in [Slot(0), Slot(1)] {
        local.make_ready(slot, Ticks(1));
    }
    local.settle(Ticks(2));
    local.pick(Ticks(2));
    local.armed = local.deadline();
    assert_eq!(local.running(), Some(Slot(0)));
    let _wanted = mailbox.post_wake(Slot(0));
    assert_eq!(local.pass(Slot(0), Ticks::NEVER, &mailbox, || Ticks(5)), None);
    assert!(local.reschedule);
    assert_eq!(local.running(), Some(Slot(1)));
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
        (Activity::Reporting, true),
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
