// SPDX-License-Identifier: Apache-2.0
//! A system as tables: owners of memory, CPUs, interrupt lines and devices, and the ways to act on others.

use bulkhead_abi::ObjectKind;
use bulkhead_abi::hypercall::SELF_CAPABILITY;
use bulkhead_image::layout::NIC_MEMORY;

use super::{Mapping, MappingKind, Partition, Pcpu, System, Vcpu};
use crate::board::{Device, Trigger};
use crate::class;
use crate::model::devices::owned;
use crate::model::{Access, Kind, network, right_names, served};
use crate::place::channels;
use crate::window::Window;

/// A line of the memory map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRow {
    /// The bus address.
    pub host: u64,
    /// Bytes.
    pub size: u64,
    /// The name of the partition, or `bulkhead` for the hypervisor.
    pub owner: String,
    /// The kind of the memory, in a word or two.
    pub what: String,
    /// The address at which the partition sees the memory.
    pub guest: Option<u64>,
    /// The accesses that the owner may make.
    pub access: String,
}

/// A pCPU and its vCPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuRow {
    /// The pCPU.
    pub pcpu: Pcpu,
    /// Partition, index of the vCPU within the partition, and priority; the most important vCPU first.
    pub vcpus: Vec<(String, usize, u32)>,
}

/// An interrupt line and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptRow {
    /// The line of the board.
    pub line: u32,
    /// The device that drives the line.
    pub device: String,
    /// The name of the partition, or `bulkhead` for the hypervisor.
    pub owner: String,
    /// The line that the partition sees. A task sees none.
    pub virtual_line: Option<u32>,
    /// True if the interrupt is an event at the gate of its owner, which is a task.
    pub is_event: bool,
    /// The signal on the line.
    pub trigger: Trigger,
}

/// A device of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRow {
    /// The name of the device.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// The registers of the device.
    pub registers: Vec<Window>,
    /// The partition that owns the device, or `bulkhead` for the hypervisor.
    pub owner: Option<String>,
}

/// One way in which a partition can act on something that is not its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchRow {
    /// The partition that can act.
    pub partition: String,
    /// The object that it can act on.
    pub object: String,
    /// The way to act: rights, or a sentence.
    pub how: String,
}

/// A partition's interface to a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceRow {
    /// The partition that owns the interface.
    pub partition: String,
    /// The network.
    pub network: String,
    /// The board's device that connects the network with the outside.
    pub uplink: Option<String>,
    /// The MAC address of the interface.
    pub address: String,
    /// The address at which the partition finds the registers.
    pub registers: Window,
    /// The interrupt line of the interface.
    pub line: Option<u32>,
}

/// The name of the hypervisor as an owner.
const HYPERVISOR: &str = bulkhead_abi::framing::HYPERVISOR_CONSOLE;
/// The owner of a device that is lent by capabilities.
const LENT: &str = "lent";

impl System {
    /// Returns everything in the board's memory and every register window that has an owner, by bus address.
    #[must_use]
    pub fn memory_map(&self) -> Vec<MemoryRow> {
        let row = |what: &str, window: Window, access: &str| MemoryRow {
            host: window.base,
            size: window.size,
            owner: HYPERVISOR.to_owned(),
            what: what.to_owned(),
            guest: None,
            access: access.to_owned(),
        };
        let mut rows = vec![row("log", self.plan.log, "rw")];
        let own = class::host(self.board.class).own_memory(&self.board, &self.plan);
        rows.extend(
            own.into_iter()
                .map(|(what, window, access)| row(what, window, access)),
        );
        rows.extend(
            self.board
                .hypervisor_devices()
                .into_iter()
                .map(|(name, window)| row(name, window, "rw")),
        );
        let unseen = |number: usize| {
            let partitions = &self.manifest.partitions;
            partitions.get(number).is_some_and(|spec| !*spec.frame_ring)
        };
        for (number, base) in self.plan.frames.iter().filter(|(number, _)| unseen(*number)) {
            let window = Window {
                base: *base,
                size: NIC_MEMORY,
            };
            let name = self.partition(*number).map_or("", |partition| partition.name());
            rows.push(row(&format!("frames of {name}"), window, "rw"));
        }
        if let Some(device) = network::uplink(&self.manifest, &self.board) {
            rows.extend(
                device
                    .registers
                    .iter()
                    .map(|window| row(&device.name, *window, "rw")),
            );
        }
        for partition in &self.partitions() {
            rows.extend(partition.mappings().iter().map(|mapping| MemoryRow {
                host: mapping.host,
                size: mapping.size,
                owner: partition.name().to_owned(),
                what: match mapping.kind {
                    MappingKind::Ram => "RAM".to_owned(),
                    MappingKind::Region => "region".to_owned(),
                    MappingKind::Flash => "flash".to_owned(),
                    MappingKind::Code => "code".to_owned(),
                    MappingKind::Startup => "startup page".to_owned(),
                    MappingKind::Channel => self.channel_at(mapping),
                    MappingKind::Frames => "frames".to_owned(),
                    MappingKind::Lent => format!("{}, lent", self.devices_at(mapping).join(", ")),
                    MappingKind::Device => self.devices_at(mapping).join(", "),
                    MappingKind::Forwarded => format!("{}, by trap", self.devices_at(mapping).join(", ")),
                },
                guest: Some(mapping.guest),
                access: if mapping.access == Access::NONE {
                    "held".to_owned()
                } else {
                    mapping.access.name()
                },
            }));
        }
        rows.sort_by_key(|row| row.host);
        rows
    }

    fn devices_at(&self, mapping: &Mapping) -> Vec<String> {
        let page = Window {
            base: mapping.host,
            size: mapping.size,
        };
        let inside = |device: &&Device| device.registers.iter().any(|window| window.overlaps(page));
        self.board
            .devices
            .iter()
            .filter(inside)
            .map(|device| device.name.clone())
            .collect()
    }

    /// Returns the vCPUs of each pCPU.
    #[must_use]
    pub fn cpu_assignment(&self) -> Vec<CpuRow> {
        let on = |number: u32| {
            let of = |partition: Partition<'_>| {
                let own = partition.vcpus().into_iter().enumerate();
                let here = own.filter(|(_, vcpu)| vcpu.pcpu == number);
                let row = |(index, vcpu): (_, Vcpu)| (partition.name().to_owned(), index, vcpu.priority);
                here.map(row).collect::<Vec<_>>()
            };
            let mut vcpus: Vec<_> = self.partitions().into_iter().flat_map(of).collect();
            vcpus.sort_by_key(|(_, _, priority)| std::cmp::Reverse(*priority));
            vcpus
        };
        self.pcpus
            .iter()
            .map(|pcpu| CpuRow {
                pcpu: pcpu.clone(),
                vcpus: on(pcpu.number),
            })
            .collect()
    }

    /// Returns the owner of each interrupt line, by line.
    #[must_use]
    pub fn interrupts(&self) -> Vec<InterruptRow> {
        let own = self.board.hypervisor_lines();
        let mut rows: Vec<_> = own
            .into_iter()
            .map(|(line, device)| InterruptRow {
                line,
                device: device.to_owned(),
                owner: HYPERVISOR.to_owned(),
                virtual_line: None,
                is_event: false,
                trigger: Trigger::Level,
            })
            .collect();
        if let Some(device) = network::uplink(&self.manifest, &self.board) {
            rows.extend(device.interrupts.iter().map(|interrupt| InterruptRow {
                line: interrupt.line.get(),
                device: device.name.clone(),
                owner: HYPERVISOR.to_owned(),
                virtual_line: None,
                is_event: false,
                trigger: interrupt.trigger,
            }));
        }
        for spec in &self.manifest.partitions {
            for (_, device) in owned(spec, &self.board) {
                rows.extend(
                    device
                        .lines_for(spec.kind == Kind::Task)
                        .map(|interrupt| InterruptRow {
                            line: interrupt.line.get(),
                            device: device.name.clone(),
                            owner: spec.name.value.clone(),
                            is_event: spec.kind == Kind::Task,
                            virtual_line: (spec.kind == Kind::Vm).then_some(interrupt.line.get()),
                            trigger: interrupt.trigger,
                        }),
                );
            }
        }
        rows.sort_by_key(|row| row.line);
        rows
    }

    /// Returns the interfaces of partitions to networks, by partition.
    #[must_use]
    pub fn interfaces(&self) -> Vec<InterfaceRow> {
        (0..self.manifest.partitions.len())
            .filter_map(|number| self.interface(number))
            .collect()
    }

    fn interface(&self, number: usize) -> Option<InterfaceRow> {
        let spec = self.manifest.partitions.get(number)?;
        let found = network::interface(number, spec)?;
        let network = &found.network.value;
        let mut all = self.manifest.networks.iter();
        let uplink = &all.find(|other| other.name.value == *network)?.uplink;
        let device = network::controller(&self.board)?;
        Some(InterfaceRow {
            partition: spec.name.value.clone(),
            network: network.clone(),
            uplink: uplink.as_ref().map(|uplink| uplink.value.clone()),
            address: network::format(found.address),
            registers: device.registers.first().copied().unwrap_or_default(),
            line: device.interrupts.first().map(|interrupt| interrupt.line.get()),
        })
    }

    /// Returns the devices of the board and their owners.
    #[must_use]
    pub fn devices(&self) -> Vec<DeviceRow> {
        let mut rows: Vec<DeviceRow> = Vec::new();
        for (name, window) in self.board.hypervisor_devices() {
            match rows.last_mut() {
                Some(last) if last.name == name => last.registers.push(window),
                _ => rows.push(DeviceRow {
                    name: name.to_owned(),
                    description: String::new(),
                    registers: vec![window],
                    owner: Some(HYPERVISOR.to_owned()),
                }),
            }
        }
        let uplink = network::uplink(&self.manifest, &self.board);
        let is_uplink = |device: &Device| uplink.is_some_and(|uplink| uplink.name == device.name);
        rows.extend(self.board.devices.iter().map(|device| {
            DeviceRow {
                name: device.name.clone(),
                description: device.description.clone(),
                registers: device.registers.clone(),
                owner: self
                    .partitions()
                    .iter()
                    .find(|p| p.devices().any(|own| own == device.name))
                    .map(|p| p.name().to_owned())
                    .or_else(|| self.is_lent(&device.name).then(|| LENT.to_owned()))
                    .or_else(|| is_uplink(device).then(|| HYPERVISOR.to_owned())),
            }
        }));
        rows
    }

    /// Tells whether a device is lent by capabilities.
    fn is_lent(&self, name: &str) -> bool {
        let mut lent = self
            .manifest
            .channels
            .iter()
            .filter_map(|channel| channel.device.as_ref());
        lent.any(|device| device.value == name)
    }

    fn channel_name(&self, number: usize) -> &str {
        let channel = self.manifest.channels.get(number);
        channel.map_or("", |channel| channel.name.value.as_str())
    }

    /// Returns what the memory map calls the memory of a channel.
    fn channel_at(&self, mapping: &Mapping) -> String {
        let hosts = self.plan.channels.iter();
        let number = hosts.take_while(|host| **host != mapping.host).count();
        format!("channel {}", self.channel_name(number))
    }

    fn port_name(&self, number: usize) -> &str {
        let port = self.manifest.ports.get(number);
        port.map_or("", |port| port.name.value.as_str())
    }

    fn lock_name(&self, number: usize) -> &str {
        let lock = self.manifest.locks.get(number);
        lock.map_or("", |lock| lock.name.value.as_str())
    }

    /// Returns what tables call the object of a capability.
    pub(super) fn object_name(&self, kind: ObjectKind, object: usize) -> String {
        let name = || self.partition(object).map_or("", |target| target.name());
        match kind {
            ObjectKind::Partition => format!("partition {}", name()),
            ObjectKind::EventGate => format!("event gate of {}", name()),
            ObjectKind::Timer => "system clock".to_owned(),
            ObjectKind::Schedule => format!("schedules of pCPU {object}"),
            ObjectKind::Port => format!("port {}", self.port_name(object)),
            ObjectKind::Lock => format!("lock {}", self.lock_name(object)),
            ObjectKind::Channel => format!("doorbell of channel {}", self.channel_name(object)),
            ObjectKind::Device => format!("registers of {}", self.channel_name(object)),
            ObjectKind::Interrupt => format!("line of {}", self.channel_name(object)),
            // No manifest gives one of these.
            ObjectKind::Reply => "call".to_owned(),
            ObjectKind::Service => format!("service of {}", name()),
            ObjectKind::Console => format!("console of {}", name()),
            ObjectKind::Secret => format!("secret of {}", name()),
        }
    }

    /// Returns the name of an object, for a sentence that says its kind.
    pub(crate) fn plain_name(&self, kind: ObjectKind, object: usize) -> String {
        match kind {
            ObjectKind::Port => self.port_name(object).to_owned(),
            ObjectKind::Lock => self.lock_name(object).to_owned(),
            _ => self.object_name(kind, object),
        }
    }

    /// Returns what services let a partition act on, and how: as a client, and as a server.
    fn services_of(&self, partition: &Partition<'_>) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        for served in &partition.spec.machine.served {
            rows.push((
                format!("device of service {}", served.service),
                "registers that another partition answers".to_owned(),
            ));
        }
        for window in served::windows_of(&self.manifest, partition.name()) {
            let (access, service) = (window.spec.access.name(), &window.service.name.value);
            rows.push((
                format!("RAM of {}", window.client),
                format!("memory {access}, copied for service {service}"),
            ));
        }
        rows
    }

    /// Returns every way in which a partition can act on something beyond its own memory and console.
    #[must_use]
    pub fn who_can_touch_what(&self) -> Vec<TouchRow> {
        let mut rows = Vec::new();
        for (number, partition) in self.partitions().iter().enumerate() {
            let mut row = |object: String, how: String| {
                rows.push(TouchRow {
                    partition: partition.name().to_owned(),
                    object,
                    how,
                })
            };
            for device in partition.devices() {
                row(format!("device {device}"), "registers and interrupts".to_owned());
            }
            for side in channels::sides_of(&self.manifest, partition.name()) {
                let name = &side.channel.name.value;
                let others = side
                    .channel
                    .sides
                    .iter()
                    .filter_map(|other| other.partition.as_ref());
                let others = others.map(|other| other.value.as_str());
                let others: Vec<_> = others.filter(|other| *other != partition.name()).collect();
                row(
                    format!("channel {name}"),
                    format!(
                        "memory {}{}, shared with {}",
                        side.spec.access.name(),
                        if *side.spec.held { " while held" } else { "" },
                        others.join(", ")
                    ),
                );
            }
            for (object, how) in self.services_of(partition) {
                row(object, how);
            }
            if let Some(found) = self.interface(number) {
                row(
                    format!("network {}", found.network),
                    format!("sends frames as {}", found.address),
                );
            }
            if partition.unconfined_dma() {
                row(
                    "all memory".to_owned(),
                    "DMA that no IOMMU confines (trusted-dma)".to_owned(),
                );
            }
            for capability in partition
                .capabilities()
                .iter()
                .filter(|capability| capability.index != SELF_CAPABILITY)
            {
                let object = if capability.kind == ObjectKind::Console && capability.object == number {
                    "own console".to_owned()
                } else {
                    self.object_name(capability.kind, capability.object)
                };
                row(object, right_names(capability.rights).join(", "));
            }
            for watched in &partition.watches() {
                let name = self.partition(*watched).map_or("", |target| target.name());
                row(
                    format!("partition {name}"),
                    "is told about state changes".to_owned(),
                );
            }
        }
        rows
    }
}
