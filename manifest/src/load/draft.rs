// SPDX-License-Identifier: Apache-2.0
//! Makes a system from a manifest that keeps to the rules: the memory of each partition, then the places.

use super::guests;
use crate::board::Board;
use crate::class;
use crate::compile;
use crate::compile::limits::{fits_own_map, fits_tables};
use crate::diagnostic::Report;
use crate::guest::{Context, Guest};
use crate::model::capability::capabilities;
use crate::model::devices::chooses_ram_base;
use crate::model::served::windows_of;
use crate::model::{Given, Manifest};
use crate::payload::Loader;
use crate::place::channels::sides_of;
use crate::place::memory::Plan;
use crate::rules;
use crate::system::{self, System};
use crate::units::Address;

/// Room that is kept for the class binary where a place is chosen for good: a later plan, around the actual
/// class binary, cannot move this place any more.
const FIXED_RESERVE: u64 = 16 << 20;

/// The parts that a system is made from.
pub(super) struct Draft<'a> {
    pub manifest: Manifest,
    pub board: Board,
    pub loader: Loader<'a>,
}

impl Draft<'_> {
    /// Returns the system, with the places of everything; `None` if something was reported.
    pub fn finish(mut self, report: &mut Report) -> Option<System> {
        self.choose_ram_bases(report)?;
        let mut system = self.system(report)?;
        let reserve = class::host(system.board.class).binary_reserve();
        system.plan = compile::plan(&system, reserve, None, report)?;
        fits_own_map(&system, report)?;
        Some(system)
    }

    /// Returns the system, without places.
    fn system(&mut self, report: &mut Report) -> Option<System> {
        let mut guests = self.guests(report)?;
        let class = class::host(self.board.class);
        class.place_shared(&self.board, &self.manifest, &mut guests, report);
        if report.has_errors() {
            return None;
        }
        let system = System {
            pcpus: system::pcpus(&self.manifest, &self.board),
            plan: Plan {
                hosts: guests.iter().map(|guest| vec![0; guest.areas.len()]).collect(),
                ..Plan::default()
            },
            report: Report::about(report.sources.clone()),
            board: self.board.clone(),
            manifest: self.manifest.clone(),
            guests,
        };
        fits_tables(&system, report)?;
        Some(system)
    }

    fn guests(&mut self, report: &mut Report) -> Option<Vec<Guest>> {
        let mut guests = Vec::new();
        for (number, spec) in self.manifest.partitions.iter().enumerate() {
            let capabilities = capabilities(number, spec, &self.manifest);
            let sides = sides_of(&self.manifest, &spec.name.value);
            let windows = windows_of(&self.manifest, &spec.name.value);
            let context = Context {
                sides: &sides,
                windows: &windows,
                spec,
                board: &self.board,
                capabilities: &capabilities,
            };
            guests.extend(guests::build(&context, &mut self.loader, report));
        }
        (guests.len() == self.manifest.partitions.len()).then_some(guests)
    }

    /// Chooses the RAM bases of VMs whose devices do DMA that nothing confines. Such a VM sees its RAM at the
    /// bus addresses. If the manifest does not give a place, a plan of everything finds one, and the contents
    /// of the VM are then made again for this place.
    fn choose_ram_bases(&mut self, report: &mut Report) -> Option<()> {
        let undecided: Vec<usize> = (0..self.manifest.partitions.len())
            .filter(|number| chooses_ram_base(&self.manifest.partitions[*number], &self.board))
            .collect();
        if undecided.is_empty() {
            return Some(());
        }
        // These findings come again when the system is made for good, unless it ends here.
        let mut first = Report::about(report.sources.clone());
        let found = self
            .system(&mut first)
            .and_then(|system| compile::plan(&system, FIXED_RESERVE, None, &mut first));
        let Some(plan) = found else {
            report.sources.clone_from(&first.sources);
            report.absorb(first);
            return None;
        };
        for number in undecided {
            let spec = &mut self.manifest.partitions[number];
            let place = spec.at.as_ref().map(|at| at.place);
            // RAM is the first area.
            let place = place.or(spec.memory.as_ref().map(|memory| memory.place));
            spec.machine.ram_base = Given {
                value: Address::new(plan.hosts[number][0]),
                place,
                key: place,
            };
        }
        rules::memory::check(&self.manifest, Some(&self.board), report);
        (!report.has_errors()).then_some(())
    }
}
