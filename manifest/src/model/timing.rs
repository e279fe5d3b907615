// SPDX-License-Identifier: Apache-2.0
//! The tables of demands and workloads.

use bulkhead_sched::analysis::TaskScheduler;

use super::{Given, Placed};
use crate::schema::declare::{choices, tables, words};
use crate::schema::form::Whole;
use crate::units::Duration;

tables! {
    /// Work of a partition. `check` proves its deadlines, `simulate` runs it; the system image has nothing of
    /// it.
    pub(crate) DemandSpec = "a demand" {
        /// scheduler of the partition's own tasks
        scheduler "scheduler": TaskScheduler, default("fixed-priority");
        /// tasks of the partition; at most 32 on each vCPU
        tasks "tasks": Vec<TaskSpec>, required;
        /// policy `arinc653`: the schedules in which the work has to be done; without this key, all schedules
        schedules "schedules": Vec<Placed<String>>, optional;
    }

    /// Work that comes again and again: a job is released at most once per period, and done within the
    /// deadline.
    pub(crate) TaskSpec [place] = "a task of a demand" {
        /// name of the task, for tables and charts
        name "name": Option<Placed<String>>, required;
        /// least time from one release to the next
        period "period": Option<Placed<Duration>>, required;
        /// longest execution time of one job if nothing interrupts the vCPU
        wcet "wcet": Option<Placed<Duration>>, required;
        /// time from the release to the completion, at most the period; without this key, the period
        deadline "deadline": Option<Placed<Duration>>, optional;
        /// number of the vCPU, within the partition, that runs the task
        vcpu "vcpu": Given<VcpuNumber>, default(0);
        /// larger is more important; scheduler `fixed-priority` only
        priority "priority": Given<Whole<0, 255>>, default(0);
        /// waits of one job for answers to calls and for locks. If no task of the partition names a
        /// capability that can wait, `check` says that these waits are not proved
        waits "waits": Vec<WaitSpec>, optional;
    }

    /// Waits of a job: calls that lend the caller's place, or a lock that is taken.
    pub(crate) WaitSpec = "waits of a task" {
        /// capability of the partition for the port or the lock
        at "at": Option<Placed<String>>, required;
        /// most waits in one job
        times "times": Given<Whole<0, 1000>>, default(1);
    }

    /// Activity of a vCPU in `simulate`, instead of its demand. Without both the vCPU is always ready.
    pub(crate) WorkSpec [place] = "a workload" {
        /// times at which there is something to do
        kind "kind": WorkKind, required;
        /// number of the vCPU, within the partition, that does the work
        vcpu "vcpu": Given<VcpuNumber>, default(0);
        /// time between releases; not for `always-ready`
        period "period": Option<Placed<Duration>>, optional;
        /// execution time of a job; not for `always-ready`
        execution "execution": Option<Placed<Duration>>, optional;
        /// shortest execution time of a job. A job takes a random time between this and `execution`
        shortest "shortest": Option<Placed<Duration>>, optional;
        /// time from the release to the completion; without this key, the period
        deadline "deadline": Option<Placed<Duration>>, optional;
        /// longest random delay of a release; `sporadic` and `interrupt`; without this key, the period
        spread "spread": Option<Placed<Duration>>, optional;
        /// number of jobs in a burst
        count "count": Given<Whole<1, 16>>, default(4);
        /// time of the first release
        first "first": Given<Duration>, default("0ms");
        /// priority of the jobs, as for a task of a demand
        priority "priority": Given<Whole<0, 255>>, default(0);
        /// true if the interrupt is marked critical; `interrupt` under policy `domains` only
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
        /// one job each period
        Periodic = "periodic",
        /// a job one period after the last, or later by a random time up to `spread`
        Sporadic = "sporadic",
        /// `count` jobs at once each period
        Bursty = "bursty",
        /// as `sporadic`, but released by a device's interrupt instead of the vCPU's timer
        Interrupt = "interrupt",
    }
}
