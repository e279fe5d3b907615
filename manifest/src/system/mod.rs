// SPDX-License-Identifier: Apache-2.0
//! A checked system, as plain data for code that shows, simulates or compiles it.
//!
//! A [`System`] exists only if no rule found an error: places are disjoint, owners are unique, payloads are
//! loaded and fit. Everything is in the order of the manifest, which is also the order of numbers.
#![deny(clippy::arithmetic_side_effects)]

mod partition;
mod reach;
mod scheduling;
mod views;

use crate::board::Board;
use crate::class;
use crate::diagnostic::{Report, Sources};
use crate::guest::Guest;
pub use crate::model::capability::Capability;
use crate::model::{Access, AttachmentSpec, Manifest, OwnPolicy};
use crate::place::memory::Plan;
pub use partition::Partition;
pub use reach::{GainRow, ReachRow};
pub use scheduling::{Domain, Pcpu, Reservation, Schedule, TimeWindow, Vcpu};
pub(crate) use scheduling::{pcpus, vcpu};
pub use views::{CpuRow, DeviceRow, InterfaceRow, InterruptRow, MemoryRow, TouchRow};

/// The kind of memory that a mapping shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingKind {
    /// The partition's RAM.
    Ram,
    /// A region of the manifest.
    Region,
    /// A bank of a virtual flash.
    Flash,
    /// The startup page of a task.
    Startup,
    /// The partition's program, executed where it is linked.
    Code,
    /// The memory of a channel.
    Channel,
    /// The registers of a device that is lent.
    Lent,
    /// The memory in which the partition's frames wait.
    Frames,
    /// Registers of a device passed through.
    Device,
    /// Registers of a device in a page with registers of others. The page is not mapped; the hypervisor
    /// carries out each access.
    Forwarded,
}

/// A mapping in a partition's space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The kind of the memory.
    pub kind: MappingKind,
    /// The address at which the partition sees the memory.
    pub guest: u64,
    /// The address on the board.
    pub host: u64,
    /// Bytes.
    pub size: u64,
    /// The accesses that the partition may make.
    pub access: Access,
    /// The line of the manifest that asks for the mapping.
    pub line: u32,
}

/// Something that the emulator plugs into a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The device.
    pub device: String,
    /// The image of a disk, relative to the manifest.
    pub file: Option<String>,
    /// Bytes of a disk that is empty at first and lives for one run.
    pub size: Option<u64>,
    /// Arguments of the emulator. `{file}` stands for a disk's image.
    pub arguments: Vec<String>,
}

/// A region of the MPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpuRegion {
    /// First address of the block.
    pub base: u64,
    /// Bytes of the block.
    pub size: u64,
    /// The eighths of the block that are left out, the lowest in bit 0.
    pub left_out: u8,
    /// The accesses that the partition may make.
    pub access: Access,
}

/// A checked system.
#[derive(Clone, Debug)]
pub struct System {
    pub(crate) board: Board,
    pub(crate) manifest: Manifest,
    pub(crate) guests: Vec<Guest>,
    pub(crate) plan: Plan,
    pub(crate) pcpus: Vec<Pcpu>,
    pub(crate) report: Report,
}

impl System {
    /// Returns the crate of the policy of the user's own, if the system has one.
    #[must_use]
    pub fn own_policy(&self) -> Option<OwnPolicy> {
        let mut pcpus = self.manifest.pcpus.iter();
        pcpus.find_map(|pcpu| pcpu.own_policy()?.ok())
    }

    /// Returns the board.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Returns the partitions, by number.
    #[must_use]
    pub fn partitions(&self) -> Vec<Partition<'_>> {
        let numbers = 0..self.manifest.partitions.len();
        numbers.filter_map(|number| self.partition(number)).collect()
    }

    /// Returns the partition of that number.
    #[must_use]
    pub fn partition(&self, number: usize) -> Option<Partition<'_>> {
        Partition::of(self, number)
    }

    /// Returns the pCPUs that the system uses, by number.
    #[must_use]
    pub fn pcpus(&self) -> &[Pcpu] {
        &self.pcpus
    }

    /// Returns the warnings about the system.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Returns the files that the system was read from.
    #[must_use]
    pub fn sources(&self) -> &Sources {
        &self.report.sources
    }

    /// Returns the image of partition `number` as the manifest names it: a path relative to the manifest, or
    /// `@...`.
    #[must_use]
    pub fn image_name(&self, number: usize) -> Option<&str> {
        self.manifest
            .partitions
            .get(number)?
            .image
            .as_ref()
            .map(|image| image.value.as_str())
    }

    /// Returns the banks of flash that `run` keeps in a file: the file relative to the manifest, the address
    /// of the bank on the board, and its bytes.
    #[must_use]
    pub fn kept_banks(&self) -> Vec<(String, u64, u64)> {
        let mut banks = Vec::new();
        for partition in self.partitions() {
            let Some(flash) = &partition.spec.flash else {
                continue;
            };
            let [_, bank] = flash.banks();
            let mut mappings = partition.mappings().into_iter();
            let mapping = mappings.find(|mapping| mapping.guest == bank.base);
            if let (Some(keep), Some(mapping)) = (&flash.keep, mapping) {
                banks.push((keep.value.clone(), mapping.host, mapping.size));
            }
        }
        banks
    }

    /// Returns the number of replaced instructions of partition `number`, and the number of its own undefined
    /// ones. `None` if the class replaces nothing.
    #[must_use]
    pub fn replaced(&self, number: usize) -> Option<(usize, usize)> {
        let guest = self.guests.get(number)?;
        let can = self.board.class.facts().replaces_instructions && !guest.residents.is_empty();
        can.then_some((guest.sites.len(), guest.undefined.len()))
    }

    /// Returns the regions of the MPU while partition `number` runs. A class that translates addresses has
    /// none.
    #[must_use]
    pub fn mpu_regions(&self, number: usize) -> Vec<MpuRegion> {
        let (Some(spec), Some(guest)) = (self.manifest.partitions.get(number), self.guests.get(number))
        else {
            return Vec::new();
        };
        if guest.residents.is_empty() {
            return Vec::new();
        }
        let regions = class::host(self.board.class).regions(&self.board, spec, guest);
        let region = |region: &bulkhead_arch_regions::Region| MpuRegion {
            base: region.base.into(),
            size: region.size(),
            left_out: region.disabled,
            access: Access {
                read: region.rights.read,
                write: region.rights.write,
                execute: region.rights.execute,
            },
        };
        regions.iter().map(region).collect()
    }

    /// Returns the things that the emulator plugs into devices.
    #[must_use]
    pub fn attachments(&self) -> Vec<Attachment> {
        let one = |spec: AttachmentSpec<'_>| {
            let device = self.board.device(&spec.device()?.value)?;
            let disk = spec.disk();
            let read_only = disk.is_some_and(|disk| disk.read_only);
            let fill = |argument: &String| {
                argument
                    .replace("{device}", &device.name)
                    .replace("{index}", &device.index.to_string())
                    .replace("{read-only}", if read_only { "on" } else { "off" })
            };
            Some(Attachment {
                device: device.name.clone(),
                file: disk.and_then(|disk| Some(disk.file.as_ref()?.value.clone())),
                size: disk.and_then(|disk| Some(disk.size.as_ref()?.value.get())),
                arguments: device.attach(spec.kind()).iter().map(fill).collect(),
            })
        };
        self.manifest.emulator.attachments().filter_map(one).collect()
    }

    /// Returns the number of CPUs that the board's emulator needs.
    #[must_use]
    pub fn cpu_count(&self) -> usize {
        self.pcpus.len()
    }

    /// Returns the bus address of the hypervisor's log area.
    #[must_use]
    pub fn log_base(&self) -> u64 {
        self.plan.log.base
    }
}
