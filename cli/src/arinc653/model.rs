// SPDX-License-Identifier: Apache-2.0
//! A module of ARINC 653, as far as a manifest can say it. Times are nanoseconds.

/// A module: partitions, schedules and channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its partitions, in the order of the file.
    pub partitions: Vec<Partition>,
    /// Its schedules; the first one is the initial one.
    pub schedules: Vec<Schedule>,
    /// The channels between its ports.
    pub channels: Vec<Channel>,
}

/// A partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// `PartitionIdentifier`.
    pub identifier: u32,
    /// `PartitionName`.
    pub name: String,
    /// Its ports.
    pub ports: Vec<Port>,
    /// Bytes of all its memory requirements; 0 if there are none.
    pub memory: u64,
    /// `PeriodSeconds` and `PeriodDurationSeconds` by the names of the schedules that have the partition,
    /// in the order of the file.
    pub times: Vec<(String, (u64, u64))>,
    /// Its health actions: the manifest's class, and the manifest's action.
    pub health: Vec<(&'static str, &'static str)>,
}

/// A port of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// `PortName`.
    pub name: String,
    /// True if messages leave the partition.
    pub is_source: bool,
    /// `MaxMessageSize`.
    pub size: u32,
    /// The kind.
    pub kind: PortKind,
}

/// The kind of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// With `RefreshRateSeconds`.
    Sampling(u64),
    /// With `MaxNbMessages`.
    Queuing(u32),
}

/// A schedule of the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// `ScheduleName`.
    pub name: String,
    /// `MajorFrameSeconds`.
    pub frame: u64,
    /// Its windows, in the order of their starts.
    pub windows: Vec<Window>,
}

/// A window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The name of the partition.
    pub partition: String,
    /// `WindowStartSeconds`.
    pub start: u64,
    /// `WindowDurationSeconds`.
    pub duration: u64,
    /// `PartitionPeriodStart`.
    pub is_period_start: bool,
}

/// A channel from a source to its destination: partition and port, by their places in the lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The name of the port in the manifest.
    pub name: String,
    /// The source.
    pub source: (usize, usize),
    /// The destination.
    pub destination: (usize, usize),
}
