// SPDX-License-Identifier: Apache-2.0
//! The cost of a decision: the hypervisor's own policies, run here with 2, 8 and 32 vCPUs.
//!
//! The hypervisor asks a policy for a decision when something has happened: the running vCPU stopped, and the
//! policy must say which one is next. The vCPUs wake up, block and use up their time at random, in the same
//! way in every run. The figure is the longest call, be it a decision or a wake-up. Only the policy is
//! measured.

use crate::{prepare, show};
use bulkhead_guest::random::Random;
use bulkhead_guest::vm::timer::Timer;
use bulkhead_sched::{
    AnyPolicy, Arinc653Parameters, Decision, Domain, DomainsParameters, EdfParameters,
    FixedPriorityParameters, MAX_DOMAINS, MAX_SLOTS, PcpuPolicy, Policy, PolicyParameters, Schedule, Server,
    ServerKind, Slot, SlotSet, StopReason, Ticks, VcpuParameters, Window,
};

/// The policy that is measured; the stack is too small for it.
static POLICY: spin::Mutex<AnyPolicy> = spin::Mutex::new(AnyPolicy::nobody());
/// Walks for each figure.
const WALKS: usize = 3;
/// Decisions of each walk.
const STEPS: u32 = 2000;
/// The time slice, and the unit of all other times.
const QUANTUM: Ticks = 1000;
/// vCPUs of a pCPU, with the names of the figures in the order of [`run`].
const SIZES: [(usize, [&str; 5]); 3] = [
    (
        2,
        [
            "decide-fixed-priority-2",
            "decide-budgets-2",
            "decide-edf-2",
            "decide-arinc653-2",
            "decide-domains-2",
        ],
    ),
    (
        8,
        [
            "decide-fixed-priority-8",
            "decide-budgets-8",
            "decide-edf-8",
            "decide-arinc653-8",
            "decide-domains-8",
        ],
    ),
    (
        32,
        [
            "decide-fixed-priority-32",
            "decide-budgets-32",
            "decide-edf-32",
            "decide-arinc653-32",
            "decide-domains-32",
        ],
    ),
];

/// Measures all policies.
pub fn run() {
    alone("decide-pinned-1");
    for (size, names) in SIZES {
        let [fixed_priority, budgets, edf, arinc653, domains] = names;
        by_priority(fixed_priority, size, None);
        by_priority(budgets, size, Some(ServerKind::Sporadic));
        by_deadline(edf, size);
        in_windows(arinc653, size);
        in_domains(domains, size);
    }
}

// Each on its own, so that the stack holds one set of parameters.
#[inline(never)]
fn alone(name: &str) {
    walk(name, &vcpus(1, None)[..1], &PolicyParameters::Pinned);
}

#[inline(never)]
fn by_priority(name: &str, count: usize, server: Option<ServerKind>) {
    let parameters = FixedPriorityParameters { quantum: QUANTUM };
    let parameters = PolicyParameters::FixedPriority(parameters);
    walk(name, &vcpus(count, server)[..count], &parameters);
}

#[inline(never)]
fn by_deadline(name: &str, count: usize) {
    let parameters = PolicyParameters::Edf(EdfParameters { quantum: QUANTUM });
    let vcpus = vcpus(count, Some(ServerKind::ConstantBandwidth));
    walk(name, &vcpus[..count], &parameters);
}

/// vCPUs with different priorities, periods and budgets.
fn vcpus(count: usize, server: Option<ServerKind>) -> [VcpuParameters; MAX_SLOTS] {
    core::array::from_fn(|slot| VcpuParameters {
        priority: slot as u8,
        server: server.map(|kind| Server {
            budget: QUANTUM,
            period: (count + slot) as Ticks * 2 * QUANTUM,
            kind,
        }),
        deadline: 0,
        domain: (slot % MAX_DOMAINS) as u8,
    })
}

/// Measures with a window for each vCPU.
#[inline(never)]
fn in_windows(name: &str, count: usize) {
    let windows: [Window; MAX_SLOTS] = core::array::from_fn(|slot| Window {
        slots: SlotSet(1 << slot),
        offset: slot as Ticks * QUANTUM,
        duration: QUANTUM,
        period_start: true,
    });
    let schedule = Schedule {
        frame: count as Ticks * QUANTUM,
        first_window: 0,
        window_count: count as u8,
    };
    let parameters = Arinc653Parameters {
        windows: &windows[..count],
        schedules: &[schedule],
        initial: 0,
        start: 0,
        quantum: QUANTUM,
    };
    walk(
        name,
        &vcpus(count, None)[..count],
        &PolicyParameters::Arinc653(parameters),
    );
}

/// Measures with as many domains as there can be, or with one for each vCPU.
#[inline(never)]
fn in_domains(name: &str, count: usize) {
    let domains = [Domain { budget: QUANTUM }; MAX_DOMAINS];
    let parameters = DomainsParameters {
        domains: &domains[..count.min(MAX_DOMAINS)],
        quantum: QUANTUM / 4,
    };
    walk(
        name,
        &vcpus(count, None)[..count],
        &PolicyParameters::Domains(parameters),
    );
}

/// Shows the ticks of the longest call of a policy. The same walk is made several times, because the
/// hypervisor interrupts this program now and then to send its output. Such an interrupt never hits the same
/// call twice.
#[inline(never)]
fn walk(name: &str, vcpus: &[VcpuParameters], parameters: &PolicyParameters<'_>) {
    let mut least = u64::MAX;
    for _ in 0..WALKS {
        prepare();
        match longest_call(vcpus, parameters) {
            Some(longest) => least = least.min(longest),
            None => bulkhead_guest::println!("bench failed: {name}: the policy refuses"),
        }
    }
    show(name, least);
}

/// Returns the ticks of the longest call in a random walk.
#[inline(never)]
fn longest_call(vcpus: &[VcpuParameters], parameters: &PolicyParameters<'_>) -> Option<u64> {
    let mut policy = POLICY.lock();
    *policy = AnyPolicy::blank(parameters);
    policy.install(vcpus, parameters).ok()?;
    let mut random = Random::new(7);
    let mut longest = 0;
    let mut measure = |start: u64| longest = longest.max(Timer::Virtual.now() - start);
    let mut now: Ticks = 0;
    let mut running: Option<Slot> = None;
    let mut since = 0;
    for _ in 0..STEPS {
        for _ in 0..random.below(3) {
            let slot = Slot(random.below(vcpus.len() as u64) as u8);
            if running != Some(slot) {
                let start = Timer::Virtual.now();
                policy.ready(slot, now);
                measure(start);
            }
        }
        let why = if random.below(2) == 0 {
            StopReason::Blocked
        } else {
            StopReason::Preempted
        };
        let start = Timer::Virtual.now();
        if let Some(slot) = running {
            policy.stopped(slot, why, now - since, now);
        }
        let decision = policy.next(now);
        measure(start);
        policy.signals();
        let (Decision::Run(_, until) | Decision::Idle(until)) = decision;
        running = match decision {
            Decision::Run(slot, _) => Some(slot),
            Decision::Idle(_) => None,
        };
        since = now;
        // To the end of the decision, to somewhere before it, or late.
        let whole = until.saturating_sub(now).min(64 * QUANTUM);
        now += match random.below(4) {
            0 => random.below(whole + 1),
            1 => whole + random.below(QUANTUM),
            _ => whole,
        };
    }
    Some(longest)
}
