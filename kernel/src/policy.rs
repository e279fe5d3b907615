// SPDX-License-Identifier: Apache-2.0
//! The making of a pCPU's policy from the tables of the system image.
//!
//! Nanoseconds become ticks here, once. Boundaries of windows are converted as points of the frame. So
//! windows that touch in the manifest also touch in ticks. Budgets are rounded down and periods up. Together
//! budgets and periods never promise more than the manifest does. Frames are counted from boot: frame number
//! n of every pCPU starts n frames after boot.

use crate::mailbox::bit;
use crate::system::System;
use crate::time::Timebase;
use bulkhead_arch_api::{PartitionId, PcpuId};
use bulkhead_image::layout::POLICY_OWN;
use bulkhead_image::layout::{
    POLICY_ARINC653, POLICY_DOMAINS, POLICY_EDF, POLICY_PINNED, PcpuRecord, SERVER_CONSTANT_BANDWIDTH,
    SERVER_DEFERRABLE, SERVER_SPORADIC, VcpuRecord, WINDOW_PERIOD_START, WindowRecord,
};
use bulkhead_sched::OwnParameters;
use bulkhead_sched::{
    Arinc653Parameters, Domain, DomainsParameters, EdfParameters, FixedPriorityParameters, MAX_DOMAINS,
    MAX_SCHEDULES, MAX_SLOTS, MAX_WINDOWS, PcpuPolicy, PolicyError, PolicyParameters, Schedule, Server,
    ServerKind, SlotSet, Ticks, VcpuParameters, Window,
};

const _: () = assert!(
    bulkhead_image::MAX_WINDOWS_PER_PCPU == MAX_WINDOWS
        && bulkhead_image::MAX_SCHEDULES_PER_PCPU == MAX_SCHEDULES
        && bulkhead_image::MAX_DOMAINS_PER_PCPU == MAX_DOMAINS,
    "the image check lets through what the policies can hold"
);

/// Makes `policy` the policy of `pcpu` with its vCPUs. The work is bounded by the tables of the image.
///
/// # Errors
/// [`PolicyError`] if the policy refuses the parameters in the image. The rules of the image exclude this.
#[inline(never)]
pub fn install<P: PcpuPolicy>(
    policy: &mut P,
    system: &System<'_>,
    pcpu: PcpuId,
    record: &PcpuRecord,
) -> Result<(), PolicyError> {
    let mut parameters = [VcpuParameters::default(); MAX_SLOTS];
    let mut used = 0_usize;
    for (entry, vcpu) in parameters.iter_mut().zip(system.vcpus_on(pcpu)) {
        if let Some(record) = system.image.vcpus().get(usize::from(vcpu.0)) {
            *entry = vcpu_parameters(record, &system.time);
        }
        used = used.saturating_add(1);
    }
    let vcpus = parameters.get(..used).unwrap_or(&[]);
    match kind(record, &system.time) {
        PolicyParameters::Arinc653(kind) => arinc653(policy, system, pcpu, vcpus, kind.quantum),
        PolicyParameters::Domains(kind) => domains(policy, system, pcpu, vcpus, kind.quantum),
        simple => policy.install(vcpus, &simple),
    }
}

/// Returns the kind of policy that a pCPU has, with empty tables.
pub(crate) fn kind(record: &PcpuRecord, time: &Timebase) -> PolicyParameters<'static> {
    let quantum = u64::from(record.quantum_us.get()).saturating_mul(1000);
    let quantum = time.duration(quantum).0;
    match record.policy.get() {
        POLICY_PINNED => PolicyParameters::Pinned,
        POLICY_EDF => PolicyParameters::Edf(EdfParameters { quantum }),
        POLICY_ARINC653 => PolicyParameters::Arinc653(Arinc653Parameters {
            windows: &[],
            schedules: &[],
            initial: 0,
            start: 0,
            quantum,
        }),
        POLICY_DOMAINS => PolicyParameters::Domains(DomainsParameters {
            domains: &[],
            quantum,
        }),
        own if own & POLICY_OWN != 0 => PolicyParameters::Own(OwnParameters { quantum }),
        _ => PolicyParameters::FixedPriority(FixedPriorityParameters { quantum }),
    }
}

fn vcpu_parameters(record: &VcpuRecord, time: &Timebase) -> VcpuParameters {
    let kind = match record.server.get() {
        SERVER_SPORADIC => Some(ServerKind::Sporadic),
        SERVER_DEFERRABLE => Some(ServerKind::Deferrable),
        SERVER_CONSTANT_BANDWIDTH => Some(ServerKind::ConstantBandwidth),
        _ => None,
    };
    VcpuParameters {
        priority: record.priority.get() as u8,
        server: kind.map(|kind| Server {
            budget: budget(record.budget_ns.get(), time),
            period: time.duration(record.period_ns.get()).0,
            kind,
        }),
        deadline: time.duration(record.deadline_ns.get()).0,
        // The rules of the image bound the number of domains. Other policies do not look at the domain.
        domain: record.domain.get() as u8,
    }
}

/// Returns the ticks of a budget: never more than the budget says, but at least one.
fn budget(nanoseconds: u64, time: &Timebase) -> Ticks {
    time.duration_within(nanoseconds).0.max(1)
}

// The policies have functions of their own, so that the stack holds the tables of one policy only.
#[inline(never)]
fn arinc653<P: PcpuPolicy>(
    policy: &mut P,
    system: &System<'_>,
    pcpu: PcpuId,
    vcpus: &[VcpuParameters],
    quantum: Ticks,
) -> Result<(), PolicyError> {
    let mut windows = [Window::default(); MAX_WINDOWS];
    let mut schedules = [Schedule::default(); MAX_SCHEDULES];
    let (mut used, mut count) = (0_usize, 0_usize);
    for (schedule, record) in schedules
        .iter_mut()
        .zip(system.image.schedules_of(u32::from(pcpu.0)))
    {
        let first_window = used as u8;
        let own = system.image.windows_of(record);
        for (window, record) in windows.iter_mut().skip(used).zip(own) {
            *window = self::window(system, pcpu, record);
            used = used.saturating_add(1);
        }
        *schedule = Schedule {
            frame: system.time.duration(record.frame_ns.get()).0,
            first_window,
            window_count: (used as u8).saturating_sub(first_window),
        };
        count = count.saturating_add(1);
    }
    let parameters = Arinc653Parameters {
        windows: windows.get(..used).unwrap_or(&[]),
        schedules: schedules.get(..count).unwrap_or(&[]),
        initial: 0,
        start: system.time.boot().0,
        quantum,
    };
    policy.install(vcpus, &PolicyParameters::Arinc653(parameters))
}

fn window(system: &System<'_>, pcpu: PcpuId, record: &WindowRecord) -> Window {
    let partition = PartitionId(record.partition.get() as u8);
    let offset = system.time.duration(record.offset_ns.get()).0;
    let end = record.offset_ns.get().saturating_add(record.duration_ns.get());
    Window {
        slots: slots_of(system, pcpu, partition),
        offset,
        duration: system.time.duration(end).0.saturating_sub(offset),
        period_start: record.flags.get() & WINDOW_PERIOD_START != 0,
    }
}

/// Returns the slots of a partition's vCPUs on a pCPU.
fn slots_of(system: &System<'_>, pcpu: PcpuId, partition: PartitionId) -> SlotSet {
    let own = (0..system.facts_of(partition).count).map(|index| system.binding_of(partition, index));
    SlotSet(
        own.filter(|binding| binding.pcpu == pcpu)
            .fold(0, |all, binding| all | bit(binding.slot.0)),
    )
}

#[inline(never)]
fn domains<P: PcpuPolicy>(
    policy: &mut P,
    system: &System<'_>,
    pcpu: PcpuId,
    vcpus: &[VcpuParameters],
    quantum: Ticks,
) -> Result<(), PolicyError> {
    let mut domains = [Domain::default(); MAX_DOMAINS];
    let mut count = 0_usize;
    for (domain, record) in domains.iter_mut().zip(system.image.domains_of(u32::from(pcpu.0))) {
        domain.budget = budget(record.budget_ns.get(), &system.time);
        count = count.saturating_add(1);
    }
    let parameters = DomainsParameters {
        domains: domains.get(..count).unwrap_or(&[]),
        quantum,
    };
    policy.install(vcpus, &PolicyParameters::Domains(parameters))
}
