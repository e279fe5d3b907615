// SPDX-License-Identifier: Apache-2.0
//! The tables of scheduling: pCPUs, schedules, time domains, vCPUs.

use super::Manifest;
use super::policy::{OWN, OwnPolicy, Policy, PolicyChoice};
use super::{Given, Map, Placed};
use crate::schema::declare::{choices, tables};
use crate::schema::form::{Form, Whole, Words, word};
use crate::units::Duration;

tables! {
    /// Scheduling of one physical CPU. A pCPU without such a table has the defaults.
    pub(crate) PcpuSpec [name] by "pCPU number" = "a pCPU" {
        /// scheduling policy
        policy "policy": Given<PolicyChoice>, default("fixed-priority");
        /// turn of a vCPU among its equals, 100us to 10s; not for `pinned`
        quantum "quantum": Given<Duration>, default("10ms");
        /// the schedules of policy `arinc653`, numbered from 0 in the order of the file; the system starts
        /// with the first
        schedules "schedule": Given<Map<ScheduleSpec>>, optional;
        /// the time domains of policy `domains`, in the order of their turns; the first one is driven by
        /// priority
        domains "domain": Given<Map<DomainSpec>>, optional;
    }

    /// A frame of windows that is repeated for ever. Time outside the windows belongs to no partition.
    pub(crate) ScheduleSpec [name] = "a schedule" {
        /// length of the frame, 100us to 100s
        frame "frame": Option<Placed<Duration>>, required;
        /// the windows, in the order of their offsets; at most 64 in all schedules of a pCPU
        windows "windows": Vec<WindowSpec>, required;
    }

    /// Time of a frame in which the vCPUs of one partition run, and no others.
    pub(crate) WindowSpec [place] = "a window" {
        /// partition that owns the window
        partition "partition": Option<Placed<String>>, required;
        /// start of the window, from the start of the frame
        offset "offset": Option<Placed<Duration>>, required;
        /// length of the window, at least 10us
        duration "duration": Option<Placed<Duration>>, required;
        /// true if the partition's periodic processing starts with the window
        period_start "period-start": bool, default(false);
    }

    /// Time that is kept apart from the time of other domains.
    pub(crate) DomainSpec [name] = "a time domain" {
        /// execution time of the domain per cycle of all domains, 10us to 10s
        budget "budget": Option<Placed<Duration>>, required;
    }

    /// A virtual CPU and its place in the schedule.
    pub(crate) VcpuSpec [place] = "a vCPU" {
        /// the pCPU that the vCPU is bound to
        pcpu "pcpu": Option<Placed<u32>>, required;
        /// larger is more important; not for `edf`
        priority "priority": Given<Whole<0, 31>>, default(8);
        /// execution time per `period`, 10us to 10s. Without this key there is no limit (`fixed-priority`),
        /// or the vCPU gets what the others leave (`edf`)
        budget "budget": Option<Placed<Duration>>, optional;
        /// time after which the budget is there again, 100us to 10s; with `budget` only
        period "period": Option<Placed<Duration>>, optional;
        /// way in which a used budget comes back; `fixed-priority` with `budget` only
        server "server": Given<ServerKind>, default("sporadic");
        /// relative deadline, not longer than the period; `edf` and own policies with `budget` only
        deadline "deadline": Option<Placed<Duration>>, otherwise("the period");
        /// time domain of the vCPU; `domains` only, and required there
        domain "domain": Option<Placed<String>>, optional;
    }
}

impl WindowSpec {
    /// Returns the start and the end of the window, if both are known.
    pub fn span(&self) -> Option<(u64, u64)> {
        let offset = self.offset.as_ref()?.value;
        let end = offset
            .plus(self.duration.as_ref()?.value)
            .unwrap_or(Duration::MAX);
        Some((offset.get(), end.get()))
    }
}

impl PcpuSpec {
    /// Returns the crate of the policy, if the policy is one of the user's own. An error is the folder, whose
    /// name no crate can have.
    pub fn own_policy(&self) -> Option<Result<OwnPolicy, &str>> {
        let folder = self.policy.folder.as_deref()?;
        Some(OwnPolicy::of(folder).ok_or(folder))
    }
}

choices! {
    /// The way in which a used budget comes back under `fixed-priority`.
    pub ServerKind {
        /// used time comes back one period after its use began. To the others the vCPU is a periodic load
        Sporadic = "sporadic",
        /// the whole budget comes back at the start of every period. Answers are quicker, but twice the
        /// budget can be used back to back
        Deferrable = "deferrable",
    }
}

impl ServerKind {
    /// Returns the word for the server in a manifest.
    #[must_use]
    pub fn name(self) -> &'static str {
        word(self)
    }
}

/// A policy, for lists of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyRow {
    /// The word for the policy in a manifest.
    pub name: &'static str,
    /// A description in one line.
    pub description: &'static str,
    /// Keys of a pCPU that the policy reads besides `policy`.
    pub pcpu_keys: &'static [&'static str],
    /// Keys of a vCPU that the policy reads besides `pcpu`.
    pub vcpu_keys: &'static [&'static str],
}

/// The keys of a pCPU and of a vCPU that a policy of the user's own can read.
const OWN_KEYS: (&[&str], &[&str]) = (&["quantum"], &["priority", "budget", "period", "deadline"]);

/// Returns all policies.
#[must_use]
pub fn policies() -> Vec<PolicyRow> {
    let descriptions = <Policy as Form>::KIND.choices();
    let rows = Policy::WORDS
        .iter()
        .zip(descriptions)
        .map(|((_, policy), (name, description))| {
            let (pcpu_keys, vcpu_keys): (&[_], &[_]) = match policy {
                Policy::Pinned => (&[], &[]),
                Policy::FixedPriority => (&["quantum"], &["priority", "budget", "period", "server"]),
                Policy::Edf => (&["quantum"], &["budget", "period", "deadline"]),
                Policy::Arinc653 => (&["quantum", "schedule"], &["priority"]),
                Policy::Domains => (&["quantum", "domain"], &["priority", "domain"]),
                Policy::Own => OWN_KEYS,
            };
            PolicyRow {
                name,
                description,
                pcpu_keys,
                vcpu_keys,
            }
        });
    let (pcpu_keys, vcpu_keys) = OWN_KEYS;
    let (name, description) = OWN;
    let own = PolicyRow {
        name,
        description,
        pcpu_keys,
        vcpu_keys,
    };
    rows.chain([own]).collect()
}

/// Returns the table of a pCPU in the manifest, if there is one.
pub(crate) fn spec_of(manifest: &Manifest, pcpu: u32) -> Option<&PcpuSpec> {
    let name = pcpu.to_string();
    manifest.pcpus.iter().find(|spec| spec.name.value == name)
}

/// Returns the policy of a pCPU.
pub(crate) fn policy_of(manifest: &Manifest, pcpu: u32) -> Policy {
    spec_of(manifest, pcpu).map_or(Policy::FixedPriority, |spec| **spec.policy)
}

#[cfg(test)]
mod tests {
    use super::{PcpuSpec, VcpuSpec, policies};
    use crate::schema::TableSchema;
    use crate::schema::form::Declared;

    #[test]
    fn every_policy_reads_keys_that_exist() {
        let known = |schema: &TableSchema, key: &str| schema.keys().iter().any(|entry| entry.name == key);
        for row in policies() {
            let (pcpu, vcpu) = (PcpuSpec::SCHEMA, VcpuSpec::SCHEMA);
            assert!(row.pcpu_keys.iter().all(|key| known(pcpu, key)), "{}", row.name);
            assert!(row.vcpu_keys.iter().all(|key| known(vcpu, key)), "{}", row.name);
        }
    }
}
