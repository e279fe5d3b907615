// SPDX-License-Identifier: Apache-2.0
//! The policies of a system, as the hypervisor makes them of the system image, in nanoseconds since boot.

use bulkhead_manifest::System;
use bulkhead_manifest::system::{Pcpu, Vcpu};
use bulkhead_manifest::{Policy, ServerKind as Wanted};
use bulkhead_sched::{
    AnyPolicy, Arinc653Parameters, Domain, DomainsParameters, EdfParameters, FixedPriorityParameters,
    Schedule, Server, ServerKind, SlotSet, VcpuParameters, Window,
};

/// The policy of a pCPU.
///
/// # Errors
/// The policy refuses what the manifest says, which the rules of the manifest exclude.
pub fn policy_of(system: &System, pcpu: &Pcpu) -> Result<AnyPolicy, String> {
    let partitions = system.partitions().iter().enumerate();
    let bound: Vec<(usize, &Vcpu)> = partitions
        .flat_map(|(partition, spec)| spec.vcpus.iter().map(move |vcpu| (partition, vcpu)))
        .filter(|(_, vcpu)| vcpu.pcpu == pcpu.number)
        .collect();
    let vcpus: Vec<VcpuParameters> = bound.iter().map(|(_, vcpu)| parameters(pcpu, vcpu)).collect();
    let quantum = pcpu.quantum_ns;
    let policy = match pcpu.policy {
        Policy::Pinned => AnyPolicy::pinned(&vcpus),
        Policy::FixedPriority => AnyPolicy::fixed_priority(&vcpus, FixedPriorityParameters { quantum }),
        Policy::Edf => AnyPolicy::edf(&vcpus, EdfParameters { quantum }),
        Policy::Arinc653 => arinc653(pcpu, &bound, &vcpus),
        Policy::Domains => {
            let budgets = pcpu.domains.iter().map(|domain| domain.budget_ns);
            let domains: Vec<Domain> = budgets.map(|budget| Domain { budget }).collect();
            let domains = &domains[..];
            AnyPolicy::domains(&vcpus, DomainsParameters { domains, quantum })
        }
    };
    policy.map_err(|error| format!("pCPU {}: the policy refuses the manifest: {error:?}", pcpu.number))
}

fn parameters(pcpu: &Pcpu, vcpu: &Vcpu) -> VcpuParameters {
    let server = vcpu.reservation.map(|reservation| Server {
        budget: reservation.budget_ns,
        period: reservation.period_ns,
        kind: match (pcpu.policy, reservation.server) {
            (Policy::Edf, _) => ServerKind::ConstantBandwidth,
            (_, Wanted::Deferrable) => ServerKind::Deferrable,
            (_, Wanted::Sporadic) => ServerKind::Sporadic,
        },
    });
    VcpuParameters {
        priority: vcpu.priority as u8,
        server,
        deadline: vcpu.deadline_ns,
        domain: vcpu.domain.unwrap_or(0) as u8,
    }
}

fn arinc653(
    pcpu: &Pcpu,
    bound: &[(usize, &Vcpu)],
    vcpus: &[VcpuParameters],
) -> Result<AnyPolicy, bulkhead_sched::PolicyError> {
    let slots_of = |partition: usize| {
        let slots = bound.iter().zip(0_u32..);
        let own = slots.filter(|((owner, _), _)| *owner == partition);
        SlotSet(own.fold(0, |all, (_, slot)| all | 1_u32.rotate_left(slot)))
    };
    let (mut windows, mut schedules) = (Vec::new(), Vec::new());
    for schedule in &pcpu.schedules {
        schedules.push(Schedule {
            frame: schedule.frame_ns,
            first_window: windows.len() as u8,
            window_count: schedule.windows.len() as u8,
        });
        windows.extend(schedule.windows.iter().map(|window| Window {
            slots: slots_of(window.partition),
            offset: window.offset_ns,
            duration: window.duration_ns,
            period_start: window.period_start,
        }));
    }
    let parameters = Arinc653Parameters {
        windows: &windows,
        schedules: &schedules,
        initial: 0,
        start: 0,
        quantum: pcpu.quantum_ns,
    };
    AnyPolicy::arinc653(vcpus, parameters)
}
