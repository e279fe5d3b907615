// SPDX-License-Identifier: Apache-2.0
//! The scheduling of a checked system: pCPUs with their schedules and time domains, vCPUs with their budgets.
//!
//! All times are nanoseconds. Numbers of schedules, domains and partitions count from 0 in the order of the
//! manifest.

use crate::board::Board;
use crate::model::{
    DomainSpec, Manifest, OwnPolicy, PcpuSpec, Policy, ScheduleSpec, ServerKind, VcpuSpec, WindowSpec,
    policy_of, spec_of,
};

/// A pCPU that the system uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pcpu {
    /// The number of the pCPU.
    pub number: u32,
    /// The CPU's own identification.
    pub hardware_id: u64,
    /// The scheduling policy.
    pub policy: Policy,
    /// The crate of the policy, if the policy is one of the user's own.
    pub own: Option<OwnPolicy>,
    /// The turn of a vCPU among its equals, in nanoseconds; 0 if the policy has no turns.
    pub quantum_ns: u64,
    /// The schedules, the first one in force at the start; policy `arinc653`.
    pub schedules: Vec<Schedule>,
    /// The time domains, the one that is driven by priority first; policy `domains`.
    pub domains: Vec<Domain>,
}

impl Pcpu {
    /// Returns the name of the policy for people: the word of the manifest, or the name of the user's crate.
    #[must_use]
    pub fn policy_name(&self) -> &str {
        self.own
            .as_ref()
            .map_or(self.policy.name(), |own| own.name.as_str())
    }
}

/// A frame of windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The name of the schedule.
    pub name: String,
    /// The length of the frame.
    pub frame_ns: u64,
    /// The windows, in the order of their offsets.
    pub windows: Vec<TimeWindow>,
}

/// A window of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// The number of the partition whose vCPUs on the pCPU run in the window.
    pub partition: usize,
    /// The start of the window, from the start of the frame.
    pub offset_ns: u64,
    /// The length of the window.
    pub duration_ns: u64,
    /// True if the partition's periodic processing starts with the window.
    pub period_start: bool,
}

/// A time domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The name of the time domain.
    pub name: String,
    /// Execution time per cycle of all domains.
    pub budget_ns: u64,
}

/// Execution time that is kept for a vCPU, and that the vCPU cannot exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Execution time per period.
    pub budget_ns: u64,
    /// The period.
    pub period_ns: u64,
    /// The way in which a used budget comes back; for `fixed-priority` only.
    pub server: ServerKind,
}

/// A virtual CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vcpu {
    /// The pCPU that the vCPU is bound to.
    pub pcpu: u32,
    /// The priority; larger is more important.
    pub priority: u32,
    /// The budget, if the vCPU has one.
    pub reservation: Option<Reservation>,
    /// The relative deadline with a budget under `edf` or a policy of the user's own, else 0.
    pub deadline_ns: u64,
    /// The number of the time domain under `domains`.
    pub domain: Option<u32>,
}

/// Returns the pCPUs up to the highest one that a vCPU is bound to.
pub(crate) fn pcpus(manifest: &Manifest, board: &Board) -> Vec<Pcpu> {
    let bound = manifest
        .partitions
        .iter()
        .flat_map(|partition| &partition.vcpus)
        .filter_map(|vcpu| vcpu.pcpu.as_ref());
    let count = bound
        .map(|pcpu| (pcpu.value as usize).saturating_add(1))
        .max()
        .unwrap_or(0);
    let hardware = board.cpus.iter().take(count).zip(0_u32..);
    let undeclared = PcpuSpec::default();
    hardware
        .map(|(id, number)| {
            let spec = spec_of(manifest, number).unwrap_or(&undeclared);
            let (policy, quantum) = (**spec.policy, spec.quantum.get());
            Pcpu {
                number,
                hardware_id: *id,
                policy,
                own: spec.own_policy().and_then(Result::ok),
                quantum_ns: if policy == Policy::Pinned { 0 } else { quantum },
                schedules: spec
                    .schedules
                    .iter()
                    .map(|spec| schedule(spec, manifest))
                    .collect(),
                domains: spec.domains.iter().map(domain).collect(),
            }
        })
        .collect()
}

fn schedule(spec: &ScheduleSpec, manifest: &Manifest) -> Schedule {
    let window = |window: &WindowSpec| {
        let name = &window.partition.as_ref()?.value;
        let (offset_ns, end) = window.span()?;
        Some(TimeWindow {
            partition: manifest
                .partitions
                .iter()
                .position(|partition| partition.name.value == *name)?,
            offset_ns,
            duration_ns: end.saturating_sub(offset_ns),
            period_start: window.period_start,
        })
    };
    let mut windows: Vec<_> = spec.windows.iter().filter_map(window).collect();
    windows.sort_by_key(|window| window.offset_ns);
    Schedule {
        name: spec.name.value.clone(),
        frame_ns: spec.frame.as_ref().map_or(0, |frame| frame.value.get()),
        windows,
    }
}

fn domain(spec: &DomainSpec) -> Domain {
    Domain {
        name: spec.name.value.clone(),
        budget_ns: spec.budget.as_ref().map_or(0, |budget| budget.value.get()),
    }
}

/// Returns a vCPU of the manifest as data of the system.
pub(crate) fn vcpu(spec: &VcpuSpec, manifest: &Manifest) -> Vcpu {
    let pcpu = spec.pcpu.as_ref().map_or(0, |pcpu| pcpu.value);
    let reservation = spec.budget.as_ref().zip(spec.period.as_ref());
    let reservation = reservation.map(|(budget, period)| Reservation {
        budget_ns: budget.value.get(),
        period_ns: period.value.get(),
        server: spec.server.value,
    });
    let domains = spec_of(manifest, pcpu)
        .map(|spec| &spec.domains[..])
        .unwrap_or_default();
    let domain = spec.domain.as_ref().and_then(|name| {
        let found = domains
            .iter()
            .position(|domain| domain.name.value == name.value)?;
        u32::try_from(found).ok()
    });
    let deadline = reservation
        .filter(|_| matches!(policy_of(manifest, pcpu), Policy::Edf | Policy::Own))
        .map(|reservation| {
            spec.deadline
                .as_ref()
                .map_or(reservation.period_ns, |given| given.value.get())
        });
    Vcpu {
        pcpu,
        priority: spec.priority.get(),
        reservation,
        deadline_ns: deadline.unwrap_or(0),
        domain,
    }
}
