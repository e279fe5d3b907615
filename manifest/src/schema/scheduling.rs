// SPDX-License-Identifier: Apache-2.0
//! The keys that say who runs when: pCPUs, schedules, time domains, vCPUs.

use super::Need::{Default, Optional, Required};
use super::manifest::key;
use super::{Kind, TableSchema};

const POLICIES: &[(&str, &str)] = &[
    (
        "fixed-priority",
        "preemptive, round robin among vCPUs of the same priority; a vCPU can have a budget",
    ),
    (
        "pinned",
        "exactly one vCPU, which owns the pCPU; no scheduling timer",
    ),
    (
        "edf",
        "earliest deadline first among constant-bandwidth servers; vCPUs without budget get what is left",
    ),
    (
        "arinc653",
        "a frame of windows, each for one partition, repeated for ever; several schedules",
    ),
    (
        "domains",
        "time domains in round robin, each with a budget; the first one is driven by priority and preempts the others",
    ),
];
const SERVERS: &[(&str, &str)] = &[
    (
        "sporadic",
        "what was used comes back one period after its use began: to the others it is a periodic load",
    ),
    (
        "deferrable",
        "the whole budget comes back at the start of every period: quicker answers, but twice the budget back to back",
    ),
];

/// A policy, for those who list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyRow {
    /// The word for it in a manifest.
    pub name: &'static str,
    /// What it does, in one line.
    pub description: &'static str,
    /// Keys of a pCPU that it reads besides `policy`.
    pub pcpu_keys: &'static [&'static str],
    /// Keys of a vCPU that it reads besides `pcpu`.
    pub vcpu_keys: &'static [&'static str],
}

/// All policies.
#[must_use]
pub fn policies() -> Vec<PolicyRow> {
    let rows = POLICIES.iter().map(|(name, description)| {
        let (pcpu_keys, vcpu_keys): (&[_], &[_]) = match *name {
            "fixed-priority" => (&["quantum"], &["priority", "budget", "period", "server"]),
            "edf" => (&["quantum"], &["budget", "period", "deadline"]),
            "arinc653" => (&["quantum", "schedule"], &["priority"]),
            "domains" => (&["quantum", "domain"], &["priority", "domain"]),
            _ => (&[], &[]),
        };
        PolicyRow {
            name,
            description,
            pcpu_keys,
            vcpu_keys,
        }
    });
    rows.collect()
}

pub(super) static PCPU: TableSchema = TableSchema {
    what: "a pCPU",
    doc: "Scheduling of one physical CPU. A pCPU without such a table has the defaults.",
    keys: &[
        key(
            "policy",
            Default("\"fixed-priority\""),
            Kind::Choice(POLICIES),
            "scheduling policy",
        ),
        key(
            "quantum",
            Default("\"10ms\""),
            Kind::Duration,
            "turn of a vCPU among its equals, 100us to 10s; not for `pinned`",
        ),
        key(
            "schedule",
            Optional,
            Kind::Map {
                key: "name",
                of: &SCHEDULE,
            },
            "the schedules of policy `arinc653`, numbered from 0 in the order of the file; the system starts with the first",
        ),
        key(
            "domain",
            Optional,
            Kind::Map {
                key: "name",
                of: &DOMAIN,
            },
            "the time domains of policy `domains`, in the order of their turns; the first one is driven by priority",
        ),
    ],
};

static SCHEDULE: TableSchema = TableSchema {
    what: "a schedule",
    doc: "A frame of windows that is repeated for ever. Time in no window is nobody's.",
    keys: &[
        key(
            "frame",
            Required,
            Kind::Duration,
            "length of the frame, 100us to 100s",
        ),
        key(
            "windows",
            Required,
            Kind::List(&Kind::Table(&WINDOW)),
            "the windows, in the order of their offsets; at most 64 in all schedules of a pCPU",
        ),
    ],
};

static WINDOW: TableSchema = TableSchema {
    what: "a window",
    doc: "Time of a frame in which the vCPUs of one partition run, and nobody else.",
    keys: &[
        key("partition", Required, Kind::Text, "whose it is"),
        key(
            "offset",
            Required,
            Kind::Duration,
            "its start, from the start of the frame",
        ),
        key("duration", Required, Kind::Duration, "its length, at least 10us"),
        key(
            "period-start",
            Default("false"),
            Kind::Boolean,
            "whether the partition's periodic processing starts with it",
        ),
    ],
};

static DOMAIN: TableSchema = TableSchema {
    what: "a time domain",
    doc: "Time that is kept apart from that of other domains.",
    keys: &[key(
        "budget",
        Required,
        Kind::Duration,
        "its execution time per cycle of all domains, 10us to 10s",
    )],
};

pub(super) static VCPU: TableSchema = TableSchema {
    what: "a vCPU",
    doc: "A virtual CPU and its place in the schedule.",
    keys: &[
        key(
            "pcpu",
            Required,
            Kind::Integer(0, u32::MAX as u64),
            "the pCPU it is bound to",
        ),
        key(
            "priority",
            Default("8"),
            Kind::Integer(0, 31),
            "larger is more important; not for `edf`",
        ),
        key(
            "budget",
            Optional,
            Kind::Duration,
            "execution time per `period`, 10us to 10s; `fixed-priority`: without it there is no limit; `edf`: without it the vCPU gets what the others leave",
        ),
        key(
            "period",
            Optional,
            Kind::Duration,
            "after which the budget is there again, 100us to 10s; with `budget` only",
        ),
        key(
            "server",
            Default("\"sporadic\""),
            Kind::Choice(SERVERS),
            "how a used budget comes back; `fixed-priority` with `budget` only",
        ),
        key(
            "deadline",
            Default("the period"),
            Kind::Duration,
            "relative deadline, not longer than the period; `edf` with `budget` only",
        ),
        key(
            "domain",
            Optional,
            Kind::Text,
            "its time domain; `domains` only, and required there",
        ),
    ],
};

#[cfg(test)]
mod tests {
    use super::{PCPU, VCPU, policies};
    use crate::model::Policy;
    use crate::schema::TableSchema;

    #[test]
    fn every_policy_is_listed_and_reads_keys_that_exist() {
        let known = |schema: &TableSchema, key: &str| schema.keys.iter().any(|entry| entry.name == key);
        let rows = policies();
        assert_eq!(rows.len(), Policy::ALL.len());
        for row in rows {
            assert!(
                Policy::ALL.iter().any(|policy| policy.name() == row.name),
                "{}",
                row.name
            );
            assert!(row.pcpu_keys.iter().all(|key| known(&PCPU, key)), "{}", row.name);
            assert!(row.vcpu_keys.iter().all(|key| known(&VCPU, key)), "{}", row.name);
        }
    }
}
