// SPDX-License-Identifier: Apache-2.0
//! The tables of demands and workloads.

use bulkhead_sched::analysis::TaskScheduler;

use super::{Given, Placed};
use crate::schema::declare::{choices, tables, words};
use crate::schema::form::Whole;
use crate::units::Duration;

tables! {
    /// Work of a partition with its deadlines: read by `check`, which proves that they hold, and by
    /// `simulate`. Nothing of it is in the system image.
    pub(crate) DemandSpec = "a demand" {
        /// how the partition chooses among its own tasks
        scheduler "scheduler": TaskScheduler, default("fixed-priority");
        /// its tasks; at most 32 on each vCPU
        tasks "tasks": Vec<TaskSpec>, required;
        /// policy `arinc653`: the schedules in which it has to be done; without it in all of them
        schedules "schedules": Vec<Placed<String>>, optional;
    }

    /// Work that comes again and again: released at most once per period, done within the deadline.
    pub(crate) TaskSpec [place] = "a task of a demand" {
        /// its name, for tables and charts
        name "name": Option<Placed<String>>, required;
        /// least time from one release to the next
        period "period": Option<Placed<Duration>>, required;
        /// longest execution time of one job, the vCPU not being interrupted
        wcet "wcet": Option<Placed<Duration>>, required;
        /// from the release to completion, at most the period; without it the period
        deadline "deadline": Option<Placed<Duration>>, optional;
        /// which of the partition's vCPUs runs it
        vcpu "vcpu": Given<VcpuNumber>, default(0);
        /// larger is more important; scheduler `fixed-priority` only
        priority "priority": Given<Whole<0, 255>>, default(0);
    }

    /// Activity of a vCPU in `simulate`, instead of its demand; without both it is always ready.
    pub(crate) WorkSpec [place] = "a workload" {
        /// when there is something to do
        kind "kind": WorkKind, required;
        /// which vCPU does it
        vcpu "vcpu": Given<VcpuNumber>, default(0);
        /// time between releases; not for `always-ready`
        period "period": Option<Placed<Duration>>, optional;
        /// execution time of a job; not for `always-ready`
        execution "execution": Option<Placed<Duration>>, optional;
        /// jobs take between this and `execution`, by chance
        shortest "shortest": Option<Placed<Duration>>, optional;
        /// without it the period
        deadline "deadline": Option<Placed<Duration>>, optional;
        /// `sporadic` and `interrupt`; without it the period
        spread "spread": Option<Placed<Duration>>, optional;
        /// jobs of a burst
        count "count": Given<Whole<1, 16>>, default(4);
        /// the first release
        first "first": Given<Duration>, default("0ms");
        /// as that of a task of a demand
        priority "priority": Given<Whole<0, 255>>, default(0);
        /// the interrupt is marked critical; `interrupt` under policy `domains` only
        critical "critical": bool, default(false);
    }
}

/// The number of a vCPU within its partition.
pub(crate) type VcpuNumber = Whole<0, 7>;

words! {
    TaskScheduler {
        /// preemptive, the most important pending task
        "fixed-priority" => TaskScheduler::FixedPriority,
        /// preemptive, the pending task with the earliest deadline
        "edf" => TaskScheduler::EarliestDeadline,
    }
}

choices! {
    /// The times at which there is something to do.
    pub(crate) WorkKind {
        /// there is always something to do
        AlwaysReady = "always-ready",
        /// a job each period
        Periodic = "periodic",
        /// a job a period after the last, and by chance up to `spread` later
        Sporadic = "sporadic",
        /// `count` jobs at once each period
        Bursty = "bursty",
        /// as `sporadic`, by a device's interrupt instead of the vCPU's timer
        Interrupt = "interrupt",
    }
}
