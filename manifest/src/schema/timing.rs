// SPDX-License-Identifier: Apache-2.0
//! The keys that say what partitions have to do, and what a board's hypervisor costs.

use super::Need::{Default, Optional, Required};
use super::manifest::key;
use super::{Kind, TableSchema};

const SCHEDULERS: &[(&str, &str)] = &[
    ("fixed-priority", "preemptive, the most important pending task"),
    ("edf", "preemptive, the pending task with the earliest deadline"),
];

pub(super) static DEMAND: TableSchema = TableSchema {
    what: "a demand",
    doc: "What a partition has to do and by when: read by `check`, which proves that it can, and by `simulate`. Nothing of it is in the system image.",
    keys: &[
        key(
            "scheduler",
            Default("\"fixed-priority\""),
            Kind::Choice(SCHEDULERS),
            "how the partition chooses among its own tasks",
        ),
        key(
            "tasks",
            Required,
            Kind::List(&Kind::Table(&TASK)),
            "its tasks; at most 32 on each vCPU",
        ),
        key(
            "schedules",
            Optional,
            Kind::List(&Kind::Text),
            "policy `arinc653`: the schedules in which it has to be done; without it in all of them",
        ),
    ],
};

static TASK: TableSchema = TableSchema {
    what: "a task of a demand",
    doc: "Work that comes again and again: released at most once per period, done within the deadline.",
    keys: &[
        key("name", Required, Kind::Text, "its name, for tables and charts"),
        key(
            "period",
            Required,
            Kind::Duration,
            "least time from one release to the next",
        ),
        key(
            "wcet",
            Required,
            Kind::Duration,
            "longest execution time of one job, the vCPU not being interrupted",
        ),
        key(
            "deadline",
            Optional,
            Kind::Duration,
            "from the release to completion, at most the period; without it the period",
        ),
        key(
            "vcpu",
            Default("0"),
            Kind::Integer(0, 7),
            "which of the partition's vCPUs runs it",
        ),
        key(
            "priority",
            Default("0"),
            Kind::Integer(0, 255),
            "larger is more important; scheduler `fixed-priority` only",
        ),
    ],
};

const WORK: &[(&str, &str)] = &[
    ("always-ready", "there is always something to do"),
    ("periodic", "a job each period"),
    (
        "sporadic",
        "a job a period after the last, and by chance up to `spread` later",
    ),
    ("bursty", "`count` jobs at once each period"),
    (
        "interrupt",
        "as `sporadic`, by a device's interrupt instead of the vCPU's timer",
    ),
];

pub(super) static WORKLOAD: TableSchema = TableSchema {
    what: "a workload",
    doc: "What a vCPU does in `simulate`, instead of what its demand says; without both it is always ready.",
    keys: &[
        key(
            "kind",
            Required,
            Kind::Choice(WORK),
            "when there is something to do",
        ),
        key("vcpu", Default("0"), Kind::Integer(0, 7), "which vCPU does it"),
        key(
            "period",
            Optional,
            Kind::Duration,
            "time between releases; not for `always-ready`",
        ),
        key(
            "execution",
            Optional,
            Kind::Duration,
            "execution time of a job; not for `always-ready`",
        ),
        key(
            "shortest",
            Optional,
            Kind::Duration,
            "jobs take between this and `execution`, by chance",
        ),
        key("deadline", Optional, Kind::Duration, "without it the period"),
        key(
            "spread",
            Optional,
            Kind::Duration,
            "`sporadic` and `interrupt`; without it the period",
        ),
        key("count", Default("4"), Kind::Integer(1, 16), "jobs of a burst"),
        key("first", Default("\"0ms\""), Kind::Duration, "the first release"),
        key(
            "priority",
            Default("0"),
            Kind::Integer(0, 255),
            "as that of a task of a demand",
        ),
        key(
            "critical",
            Default("false"),
            Kind::Boolean,
            "the interrupt is marked critical; `interrupt` under policy `domains` only",
        ),
    ],
};

pub(super) static OVERHEADS: TableSchema = TableSchema {
    what: "a table of overheads",
    doc: "What the hypervisor costs on the board, for the analysis: each rounded up from what `bulkhead bench` measures.",
    keys: &[
        key(
            "switch",
            Required,
            Kind::Duration,
            "one vCPU in the place of another",
        ),
        key(
            "interrupt",
            Required,
            Kind::Duration,
            "an interrupt, from the board to the vCPU",
        ),
        key("decision", Required, Kind::Duration, "a decision who runs"),
        key(
            "longest",
            Optional,
            Kind::Duration,
            "the longest stretch in which the hypervisor does not look at interrupts; without it, an interrupt, a decision and a switch",
        ),
    ],
};
