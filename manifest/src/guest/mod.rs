// SPDX-License-Identifier: Apache-2.0
//! The contents of a partition's memory when the partition starts: image, RAM disk, device tree, startup
//! page.
//!
//! The class of the board decides how a VM is built ([`crate::class`]). The code here serves every class that
//! translates addresses.
//!
//! A task is mapped page by page with the permissions that its ELF segments ask for. The rest of its memory
//! is readable and writable, and its stack grows down from the end. The startup page is mapped read-only in
//! the page below the task's memory, so that a stack that overflows cannot reach the page before the
//! program's own data.

pub(crate) mod elf;
pub(crate) mod first;
mod linux_program;
pub(crate) mod ramdisk;
mod script;
pub(crate) mod startup;
pub(crate) mod task;

use bulkhead_arch_api::EntryState;
use bulkhead_image::layout::NIC_MEMORY;

use crate::board::Board;
use crate::diagnostic::{Place, Report};
use crate::model::capability::Capability;
use crate::model::served::ServedWindow;
use crate::model::side::Side;
use crate::model::{Access, PartitionSpec, Placed};
use crate::payload::{Loader, Piece, Stretch, blob_name, too_large};
use crate::units::Address;
use crate::window::Window;

/// The kind of an area, for the memory map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AreaKind {
    Ram,
    Region,
    /// A bank of a virtual flash.
    Flash,
    Startup,
    /// Code memory, executed in place.
    Code,
    /// The memory of the channel with this number.
    Channel(usize),
    /// The registers of the device that the channel with this number lends.
    Lent(usize),
    /// The memory in which the frames of the partition wait.
    Frames,
}

/// A stretch of the partition's memory that is contiguous on the board too.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    pub kind: AreaKind,
    pub window: Window,
    pub access: Access,
    /// The place on the board that the manifest asks for.
    pub at: Option<Placed<Address>>,
    pub place: Place,
}

impl Area {
    /// Describes the addresses of a guest's main memory, for a diagnostic.
    pub(crate) fn ram_note(&self) -> String {
        let last = self.window.end().saturating_sub(1);
        format!("RAM: {:#x} to {last:#x}", self.window.base)
    }
}

/// Returns the areas of RAM and regions of a VM where addresses are translated, RAM first. `None` if the
/// manifest leaves out what has been reported.
pub(crate) fn vm_areas(spec: &PartitionSpec) -> Option<Vec<Area>> {
    let memory = spec.memory.as_ref()?;
    let mut areas = vec![Area {
        kind: AreaKind::Ram,
        window: Window {
            base: spec.machine.ram_base.get(),
            size: memory.value.get(),
        },
        access: Access::ALL,
        at: spec.at.clone(),
        place: memory.place,
    }];
    for region in &spec.regions {
        areas.push(Area {
            kind: AreaKind::Region,
            window: Window {
                base: region.guest.as_ref()?.value.get(),
                size: region.size.as_ref()?.value.get(),
            },
            access: region.access,
            at: region.at.clone(),
            place: region.start,
        });
    }
    Some(areas)
}

/// Loads what the regions of a VM hold when it starts; `None` if something was reported.
pub(crate) fn region_payloads(
    context: &Context<'_>,
    loader: &mut Loader<'_>,
    report: &mut Report,
) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    for region in &context.spec.regions {
        let Some(name) = &region.payload else { continue };
        let (guest, size) = (
            region.guest.as_ref()?.value.get(),
            region.size.as_ref()?.value.get(),
        );
        let contents = loader.load(name, report)?;
        if contents.len() as u64 > size {
            report.push(too_large(&name.value, name.place, contents.len() as u64, size));
            return None;
        }
        pieces.push(Piece::whole(blob_name(context.name(), "region"), contents, guest));
    }
    Some(pieces)
}

/// A part of an area with its own permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub area: usize,
    pub window: Window,
    pub access: Access,
}

impl Part {
    /// Returns parts of whole areas, each of which has the same permissions everywhere.
    pub(crate) fn whole(areas: &[Area]) -> Vec<Self> {
        let part = |(area, whole): (usize, &Area)| Self {
            area,
            window: whole.window,
            access: whole.access,
        };
        areas.iter().enumerate().map(part).collect()
    }
}

/// A partition's memory at its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guest {
    pub areas: Vec<Area>,
    pub parts: Vec<Part>,
    pub pieces: Vec<Piece>,
    pub entry: u64,
    pub argument: u64,
    pub stack: u64,
    pub device_tree: Vec<u8>,
    /// The state in which the partition starts.
    pub entry_state: EntryState,
    /// Contents of code memory, if nothing is copied at a start.
    pub residents: Vec<Stretch>,
    /// The distance by which a program was moved from the place for which it is linked.
    pub moved_by: u32,
    /// Addresses of the replaced instructions in these contents.
    pub sites: Vec<u32>,
    /// Addresses in these contents that look like a replaced instruction.
    pub lookalikes: Vec<u32>,
    /// Addresses of undefined instructions that the program has of its own.
    pub undefined: Vec<u32>,
    /// The first call of a debugger in these contents, if such calls are answered.
    pub debugger_call: Option<DebuggerCall>,
    /// The memory with the payloads of each alternative. Areas and parts are always the same.
    pub alternatives: Vec<Guest>,
}

/// A place of a program that calls a debugger, with its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DebuggerCall {
    Instruction(u32),
    /// Within a longer instruction or within data, where a jump can meet it.
    Hidden(u32),
}

impl Guest {
    /// Adds the memory of the channels to the memory of the partition.
    pub(crate) fn join(&mut self, sides: &[Side<'_>]) {
        for side in sides {
            let access = if *side.spec.held {
                Access::NONE
            } else {
                *side.spec.access
            };
            self.parts.push(Part {
                area: self.areas.len(),
                window: side.window,
                access,
            });
            self.areas.push(Area {
                kind: match side.channel.device {
                    Some(_) => AreaKind::Lent(side.number),
                    None => AreaKind::Channel(side.number),
                },
                window: side.window,
                access,
                at: side.channel.at.clone(),
                place: side.spec.start,
            });
        }
    }
}

impl Guest {
    /// Adds the memory in which the frames of the partition wait, if the partition sees this memory.
    pub(crate) fn join_frames(&mut self, spec: &PartitionSpec) {
        let Some(place) = spec.frame_ring.key.filter(|_| *spec.frame_ring) else {
            return;
        };
        let window = Window {
            base: 0,
            size: NIC_MEMORY,
        };
        self.parts.push(Part {
            area: self.areas.len(),
            window,
            access: Access::DATA,
        });
        self.areas.push(Area {
            kind: AreaKind::Frames,
            window,
            access: Access::DATA,
            at: None,
            place,
        });
    }

    /// Returns the place of the memory in which the frames of the partition wait, if the partition sees it.
    pub(crate) fn frames(&self) -> Option<u64> {
        let mut areas = self.areas.iter();
        let found = areas.find(|area| area.kind == AreaKind::Frames)?;
        Some(found.window.base)
    }

    /// Moves memory to where it is on the board, because nothing is translated.
    pub(crate) fn move_area(&mut self, kind: AreaKind, window: Window) {
        for (index, area) in self.areas.iter_mut().enumerate() {
            if area.kind == kind {
                area.window = window;
                let mut parts = self.parts.iter_mut();
                if let Some(part) = parts.find(|part| part.area == index) {
                    part.window = window;
                }
            }
        }
    }
}

/// The inputs for building one partition.
pub(crate) struct Context<'a> {
    pub spec: &'a PartitionSpec,
    pub board: &'a Board,
    pub capabilities: &'a [Capability],
    /// The channels at which the partition has a side.
    pub sides: &'a [Side<'a>],
    /// The windows that the partition serves.
    pub windows: &'a [ServedWindow<'a>],
}

impl Context<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.spec.name.value
    }
}
