// SPDX-License-Identifier: Apache-2.0
//! A partition of a checked system, for code that shows, simulates or compiles it.
//!
//! The manifest, the contents of the partition's memory and the plan of the board's memory each know a part.
//! Nothing is copied: a [`Partition`] asks them.

use bulkhead_abi::HealthClass;
use bulkhead_arch_api::EntryState;
use bulkhead_image::layout::HealthAction;

use super::{Mapping, MappingKind, System, Vcpu, vcpu};
use crate::guest::{AreaKind, Guest};
use crate::model::capability::{Capability, capabilities};
use crate::model::devices::{does_trusted_dma, registers};
use crate::model::{Access, Clock, Kind, PartitionSpec};
use crate::rules::virtual_areas;
use crate::schema::form::Whole;
use crate::window::Window;

/// A partition.
#[derive(Clone, Copy, Debug)]
pub struct Partition<'a> {
    system: &'a System,
    pub(crate) number: usize,
    pub(crate) spec: &'a PartitionSpec,
    pub(crate) guest: &'a Guest,
}

impl<'a> Partition<'a> {
    /// Returns the partition of that number.
    pub(super) fn of(system: &'a System, number: usize) -> Option<Self> {
        Some(Self {
            system,
            number,
            spec: system.manifest.partitions.get(number)?,
            guest: system.guests.get(number)?,
        })
    }

    /// Returns the name of the partition.
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.spec.name.value
    }

    /// Returns the kind of the partition.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.spec.kind
    }

    /// Returns the line of the manifest where the partition starts.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.system.sources().line_column(self.spec.name.place).0
    }

    /// Returns the vCPUs of the partition.
    #[must_use]
    pub fn vcpus(&self) -> Vec<Vcpu> {
        let vcpus = self.spec.vcpus.iter();
        vcpus.map(|spec| vcpu(spec, &self.system.manifest)).collect()
    }

    /// Returns the capabilities of the partition. The first one is for the partition itself.
    #[must_use]
    pub fn capabilities(&self) -> Vec<Capability> {
        capabilities(self.number, self.spec, &self.system.manifest)
    }

    /// Returns the numbers of the partitions that this one watches.
    #[must_use]
    pub fn watches(&self) -> Vec<usize> {
        let all = &self.system.manifest.partitions;
        let watched = self.spec.watch.partitions.iter();
        let number = |name: &str| all.iter().position(|other| other.name.value == name);
        watched.filter_map(|name| number(&name.value)).collect()
    }

    /// Tells whether the starts of the partition's windows raise events at its gate.
    #[must_use]
    pub fn window_events(&self) -> bool {
        self.spec.watch.windows.value
    }

    /// Returns the names of the partition's devices.
    pub fn devices(&self) -> impl Iterator<Item = &'a str> {
        self.spec.devices.iter().map(|name| &*name.value)
    }

    /// Returns the health action of each class.
    #[must_use]
    pub fn health(&self) -> [(HealthClass, HealthAction); 5] {
        self.spec.health.complete(self.spec.kind)
    }

    /// Tells whether the partition has a console.
    #[must_use]
    pub fn console(&self) -> bool {
        self.spec.console
    }

    /// Tells whether the partition's time stands still while the partition waits.
    #[must_use]
    pub fn frozen_time(&self) -> bool {
        self.spec.time.value == Clock::Frozen
    }

    /// Tells whether the partition takes the interrupts of its pCPU itself.
    #[must_use]
    pub fn direct(&self) -> bool {
        self.spec.direct.value
    }

    /// Tells whether the partition is started at boot.
    #[must_use]
    pub fn autostart(&self) -> bool {
        self.spec.autostart
    }

    /// Tells whether a device of the partition can overwrite any memory.
    #[must_use]
    pub fn unconfined_dma(&self) -> bool {
        does_trusted_dma(self.spec, &self.system.board)
    }

    /// Returns the longest time between kicks in nanoseconds.
    #[must_use]
    pub fn watchdog_ns(&self) -> Option<u64> {
        Some(self.spec.watchdog.as_ref()?.value.get())
    }

    /// Returns the largest number of restarts by a health action.
    #[must_use]
    pub fn restart_limit(&self) -> Option<u32> {
        self.spec.restart_limit.map(Whole::get)
    }

    /// Returns the address of the first instruction.
    #[must_use]
    pub fn entry(&self) -> u64 {
        self.guest.entry
    }

    /// Returns the distance by which the program was moved from the place for which it is linked. Addresses
    /// are of 32 bits, so a distance downwards is a large number.
    #[must_use]
    pub fn moved_by(&self) -> u32 {
        self.guest.moved_by
    }

    /// Returns the first argument: the address of the device tree or startup page.
    #[must_use]
    pub fn argument(&self) -> u64 {
        self.guest.argument
    }

    /// Returns the generated device tree of a VM.
    #[must_use]
    pub fn device_tree(&self) -> &'a [u8] {
        &self.guest.device_tree
    }

    /// Returns the state in which the partition starts.
    #[must_use]
    pub fn entry_state(&self) -> EntryState {
        self.guest.entry_state
    }

    /// Returns the partition's memory and devices, with the places of the system's plan.
    #[must_use]
    pub fn mappings(&self) -> Vec<Mapping> {
        let mut mappings = self.memory();
        let mut seen: Vec<Window> = Vec::new();
        for registers in registers(self.spec, &self.system.board) {
            let (kind, window) = if registers.forwarded {
                (MappingKind::Forwarded, registers.window)
            } else {
                (MappingKind::Device, registers.window.pages())
            };
            if !seen.contains(&window) {
                seen.push(window);
                mappings.push(Mapping {
                    kind,
                    guest: window.base,
                    host: window.base,
                    size: window.size,
                    access: Access::DATA,
                    line: self.system.sources().line_column(registers.name.place).0,
                });
            }
        }
        mappings
    }

    /// Returns the bytes of the partition's memory. Registers of devices are no memory.
    #[must_use]
    pub fn memory_size(&self) -> u64 {
        let mappings = self.mappings().into_iter();
        let own =
            mappings.filter(|mapping| !matches!(mapping.kind, MappingKind::Device | MappingKind::Forwarded));
        own.fold(0, |sum: u64, mapping| sum.saturating_add(mapping.size))
    }

    /// Returns the virtual device of a VM that has a register at this address.
    #[must_use]
    pub fn virtual_device_at(&self, address: u64) -> Option<String> {
        if self.spec.kind == Kind::Task {
            return None;
        }
        let areas = virtual_areas(self.spec, Some(&self.system.board));
        let covers = |window: Window| {
            address
                .checked_sub(window.base)
                .is_some_and(|at| at < window.size)
        };
        areas
            .into_iter()
            .find_map(|area| covers(area.window).then_some(area.what))
    }

    fn memory(&self) -> Vec<Mapping> {
        let hosts = self.system.plan.hosts.get(self.number);
        let parts = self.guest.parts.iter().filter_map(|part| {
            let area = self.guest.areas.get(part.area)?;
            let host = hosts.and_then(|hosts| hosts.get(part.area))?;
            let offset = part.window.base.checked_sub(area.window.base)?;
            Some(Mapping {
                kind: match area.kind {
                    AreaKind::Ram => MappingKind::Ram,
                    AreaKind::Region => MappingKind::Region,
                    AreaKind::Flash => MappingKind::Flash,
                    AreaKind::Startup => MappingKind::Startup,
                    AreaKind::Code => MappingKind::Code,
                    AreaKind::Channel(_) => MappingKind::Channel,
                    AreaKind::Lent(_) => MappingKind::Lent,
                    AreaKind::Frames => MappingKind::Frames,
                },
                guest: part.window.base,
                host: host.checked_add(offset)?,
                size: part.window.size,
                access: part.access,
                line: self.system.sources().line_column(area.place).0,
            })
        });
        parts.collect()
    }
}
