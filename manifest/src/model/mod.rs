// SPDX-License-Identifier: Apache-2.0
//! The declaration of a manifest: its tables as structures, every value with its place.
#![deny(clippy::arithmetic_side_effects)]

mod arinc653;
pub(crate) mod capability;
mod channel;
pub(crate) mod devices;
pub(crate) mod machine;
pub(crate) mod network;
mod partition;
mod policy;
pub(crate) mod port;
mod scheduling;
pub(crate) mod served;
mod service;
pub(crate) mod side;
mod timing;

use bulkhead_abi::hypercall::MAX_MESSAGE;
use bulkhead_abi::trace::{RING_MAX, RING_MIN};
use bulkhead_image::MAX_PORT_DEPTH;

use crate::board::AttachmentKind;
use crate::schema::declare::{choices, tables};
use crate::schema::form::Whole;
pub(crate) use crate::schema::form::{Given, Map, Placed};
use crate::units::{Duration, Size};
pub(crate) use arinc653::{ArincSpec, ArincTimes, Direction, ProcessSpec, SamplingSpec};
pub(crate) use channel::{ChannelSpec, SideSpec};
pub use partition::{Access, Kind, right_names};
pub(crate) use partition::{CapabilitySpec, Clock, FlashSpec, MachineSpec, PartitionSpec, TASK_BASE, Target};
pub use policy::{OwnPolicy, Policy};
pub(crate) use scheduling::{DomainSpec, PcpuSpec, ScheduleSpec, VcpuSpec, WindowSpec, policy_of, spec_of};
pub use scheduling::{PolicyRow, ServerKind, policies};
pub(crate) use service::{ClientSpec, Late, ServiceKind, ServiceSpec};
pub(crate) use timing::{DemandSpec, TaskSpec, VcpuNumber, WaitSpec, WorkKind, WorkSpec};

tables! {
    /// A system: one board and the partitions that share it.
    pub(crate) Manifest [place] = "a manifest" {
        /// name of a board (`bulkhead boards` lists them), or the path of a board file
        board "board": Option<Placed<String>>, required;
        /// scheduling of each physical CPU
        pcpus "pcpu": Map<PcpuSpec>, optional;
        /// the partitions, numbered from 0 in the order of the file
        partitions "partition": Map<PartitionSpec>, required;
        /// networks that VMs share; class `armv7m`
        networks "network": Map<NetworkSpec>, optional;
        /// ports: queues by which partitions send each other messages
        ports "port": Map<PortSpec>, optional;
        /// locks, each owned by one vCPU at most
        locks "lock": Map<LockSpec>, optional;
        /// channels: memory that partitions share, with a doorbell
        channels "channel": Map<ChannelSpec>, optional;
        /// services: virtio devices that a task serves to VMs; class `aarch64`
        services "service": Map<ServiceSpec>, optional;
        /// disks and networks that the emulator plugs into devices; nothing of this is in the system image
        emulator "emulator": EmulatorSpec, optional;
        /// trace of every pCPU whenever the system runs; without this table only `run --trace` traces
        trace "trace": Option<TraceSpec>, optional;
        /// the hypervisor's own log
        log "log": LogSpec, optional;
        /// keys of the owner, whose images alone the hypervisor runs; without this table it runs every image
        signature "signature": Option<SignatureSpec>, optional;
    }

    /// The owner of the system, and the version of its image. A hypervisor with this table runs only images
    /// that the owner has signed.
    pub(crate) SignatureSpec [place] = "a signature table" {
        /// file with the public key of the owner, relative to the manifest; `bulkhead keygen` makes one
        key "key": Option<Placed<String>>, required;
        /// file with the public key that follows. Images that are signed by either key are run
        next_key "next-key": Option<Placed<String>>, optional;
        /// number of this release of the system, which grows with each release
        version "version": Given<Whole<1, 4294967295>>, default(1);
        /// the least version that the hypervisor runs; without this key the version of the image
        least_version "least-version": Option<Placed<Whole<1, 4294967295>>>, optional;
    }

    /// The hypervisor's log, as the serial line carries it. The log in RAM is the same either way.
    pub(crate) LogSpec = "a log table" {
        /// the place where the entries of the log become text
        text "text": Given<TextPlace>, default("board");
    }

    /// The rings of the trace, in RAM that is left when all else is placed. The log area has their addresses.
    pub(crate) TraceSpec [place] = "a trace table" {
        /// records in each pCPU's ring, 16 bytes each; a power of two. The newest record overwrites the
        /// oldest
        records "records": Given<Whole<RING_MIN, RING_MAX>>, default(262144);
        /// also record the exits that the backend answers by itself, without the kernel. Each of them costs
        /// about 30 instructions more then. Without this key they cost nothing more
        short_exits "short-exits": Given<bool>, default(false);
    }

    /// A network. The hypervisor hands a frame to the VM with the destination address, or for a group to all
    /// VMs.
    pub(crate) NetworkSpec [name] = "a network table" {
        /// Ethernet device of the board that connects the network with the outside. The hypervisor drives
        /// this device. Without this key the VMs have a network among themselves
        uplink "uplink": Option<Placed<String>>, optional;
        /// time that the hypervisor may spend in each period on frames from outside. Further frames wait in
        /// the controller, or are lost there
        budget "budget": Given<Duration>, default("2ms");
        /// the period of the budget
        period "period": Given<Duration>, default("10ms");
    }

    /// A port. The capabilities of partitions say who may send and who may receive.
    pub(crate) PortSpec [name] = "a port table" {
        /// bytes of the longest message
        message_size "message-size": Given<Whole<1, { MAX_MESSAGE as u32 }>>, default(64);
        /// messages that can wait in the port while no receiver waits; with 0 a receiver must be waiting
        depth "depth": Given<Whole<0, MAX_PORT_DEPTH>>, default(8);
        /// `true`: a receiver is told the number of the partition that sent a message
        identify "identify": bool, default(false);
        /// longest computing time of the server from one receive to the next, with any message.
        /// Meanwhile the server waits for nothing. `check` counts with it for tasks with `waits`
        service "service": Option<Placed<Duration>>, optional;
    }

    /// A lock. The capabilities of partitions say who may take it.
    pub(crate) LockSpec [name] = "a lock table" {
        /// longest computing time of an owner from `take` to `release`. Meanwhile the owner waits for
        /// nothing. `check` counts with it for tasks with `waits`
        hold "hold": Option<Placed<Duration>>, optional;
    }

    /// Disks and networks of the emulated board, with the devices that they are plugged into.
    pub(crate) EmulatorSpec = "an emulator table" {
        /// disks, each either with a `file` or with a `size`
        disks "disks": Vec<DiskSpec>, optional;
        /// networks inside the emulator: addresses by DHCP, a gateway that answers, no way in from outside
        networks "networks": Vec<PlugSpec>, optional;
    }

    /// A disk of the emulated board.
    pub(crate) DiskSpec [start] = "a disk" {
        /// device of the board that the disk is plugged into
        device "device": Option<Placed<String>>, required;
        /// raw image, relative to the manifest. Data that is written to the disk stays in this file
        file "file": Option<Placed<String>>, optional;
        /// size of an empty disk that lives for one run, instead of `file`
        size "size": Option<Placed<Size>>, optional;
        /// true if writes are refused
        read_only "read-only": bool, default(false);
    }

    /// A network of the emulated board.
    pub(crate) PlugSpec = "a network" {
        /// device of the board that the network is plugged into
        device "device": Option<Placed<String>>, required;
    }
}

impl Manifest {
    /// Returns the first pCPU that a vCPU is bound to and that is not pCPU 0.
    pub(crate) fn beyond_first_pcpu(&self) -> Option<&Placed<u32>> {
        let mut all = self.partitions.iter().flat_map(|spec| &spec.vcpus);
        all.find_map(|vcpu| vcpu.pcpu.as_ref().filter(|pcpu| pcpu.value != 0))
    }
}

/// Something that is plugged into a device.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AttachmentSpec<'a> {
    Disk(&'a DiskSpec),
    Network(&'a PlugSpec),
}

impl<'a> AttachmentSpec<'a> {
    /// Returns the kind of the attachment.
    pub const fn kind(self) -> AttachmentKind {
        match self {
            Self::Disk(_) => AttachmentKind::Disk,
            Self::Network(_) => AttachmentKind::Network,
        }
    }

    /// Returns the device that takes the attachment.
    pub const fn device(self) -> Option<&'a Placed<String>> {
        match self {
            Self::Disk(disk) => disk.device.as_ref(),
            Self::Network(network) => network.device.as_ref(),
        }
    }

    /// Returns the disk, if the attachment is one.
    pub const fn disk(self) -> Option<&'a DiskSpec> {
        match self {
            Self::Disk(disk) => Some(disk),
            Self::Network(_) => None,
        }
    }
}

choices! {
    /// The place where the entries of the hypervisor's log become text.
    pub(crate) TextPlace {
        /// the hypervisor prints text
        Board = "board",
        /// `build --tailor` leaves the text out of the hypervisor, which then sends records. `bulkhead run`
        /// and `bulkhead log` show the same lines. A terminal shows the numbers of each record
        Tool = "tool",
    }
}

impl EmulatorSpec {
    /// Returns everything that is plugged in: disks first, and each kind in the order of the file.
    pub fn attachments(&self) -> impl Iterator<Item = AttachmentSpec<'_>> {
        let networks = self.networks.iter().map(AttachmentSpec::Network);
        self.disks.iter().map(AttachmentSpec::Disk).chain(networks)
    }
}
