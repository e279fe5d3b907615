// SPDX-License-Identifier: Apache-2.0
//! The tables of an ARINC 653 partition, in the words of the standard (Part 1, section 5 and its schema).

use super::{Given, Map, Placed};
use crate::schema::declare::{choices, tables};
use crate::schema::form::Whole;
use crate::units::Duration;

tables! {
    /// Facts of an ARINC 653 partition, for `check`. The system image has nothing of them.
    pub(crate) ArincSpec [place] = "an ARINC 653 table" {
        /// `PARTITION_IDENTIFIER`; each partition has another one
        identifier "identifier": Option<Placed<u32>>, required;
        /// time from one start of the partition's processing to the next
        period "period": Option<Placed<Duration>>, required;
        /// time that the partition has in each period, at most the period
        duration "duration": Option<Placed<Duration>>, required;
        /// other times than these, by the names of the schedules in which the partition has them
        schedules "schedule": Map<ArincTimes>, optional;
        /// the sampling ports, by the names of the capabilities for them
        sampling "sampling-port": Map<SamplingSpec>, optional;
        /// the queuing ports, by the names of the capabilities for them
        queuing "queuing-port": Map<QueuingSpec>, optional;
        /// the processes; at most 16
        processes "process": Map<ProcessSpec>, optional;
    }

    /// The period and the duration of a partition in one schedule.
    pub(crate) ArincTimes [name] = "the times in a schedule" {
        /// time from one start of the partition's processing to the next
        period "period": Option<Placed<Duration>>, required;
        /// time that the partition has in each period, at most the period
        duration "duration": Option<Placed<Duration>>, required;
    }

    /// A port that holds the newest message.
    pub(crate) SamplingSpec [name] = "a sampling port" {
        /// way of the messages
        direction "direction": Direction, required;
        /// bytes of the longest message
        size "max-message-size": Given<Whole<1, 512>>, default(64);
        /// age up to which a message is valid; a destination has one
        refresh "refresh-period": Option<Placed<Duration>>, optional;
    }

    /// A port that holds messages in their order.
    pub(crate) QueuingSpec [name] = "a queuing port" {
        /// way of the messages
        direction "direction": Direction, required;
        /// bytes of the longest message
        size "max-message-size": Given<Whole<1, 512>>, default(64);
        /// messages at most
        depth "max-nb-message": Given<Whole<1, 512>>, default(8);
    }

    /// A process of an ARINC 653 partition.
    pub(crate) ProcessSpec [name] = "a process" {
        /// time between two releases, a multiple of the partition's period; without this key the process is
        /// aperiodic
        period "period": Option<Placed<Duration>>, optional;
        /// time from a release to the deadline; without this key there is no deadline
        capacity "time-capacity": Option<Placed<Duration>>, optional;
    }
}

choices! {
    /// Way of the messages of a port.
    pub(crate) Direction {
        /// messages leave the partition
        Source = "source",
        /// messages come into the partition
        Destination = "destination",
    }
}
