// SPDX-License-Identifier: Apache-2.0
//! The memory that the hardware of a class can give a partition in one piece.

use bulkhead_arch_regions::{MAX_REQUESTS, Memory, Region, Request, Rights};

use super::section::Instructions;
use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::guest::{AreaKind, Guest};
use crate::model::devices::registers;
use crate::model::{Access, PartitionSpec};
use crate::window::Window;

/// The two things that classes of microcontrollers answer differently.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    /// The instructions that are replaced; `None` if programs stay as they are.
    pub instructions: Option<&'static dyn Instructions>,
    /// The hardware that keeps partitions apart.
    pub protection: &'static dyn Protection,
}

/// The hardware that keeps partitions apart.
pub(crate) trait Protection: Sync {
    /// Returns the smallest window around `bytes` bytes from `start` on that a partition can have.
    fn around(&self, start: u32, bytes: u64) -> Option<Window>;

    /// Returns the multiple at which memory begins whose place nothing says, if the size is possible there.
    fn block(&self, size: u64) -> Option<u64>;

    /// Returns the multiple at which memory of this size can begin.
    fn alignment(&self, size: u64) -> Option<u64>;

    /// Tells whether the memory of a channel can have this size.
    fn is_channel(&self, size: u64) -> bool;

    /// Returns the words for the sizes that a channel can have, after "give".
    fn channel_sizes(&self) -> &'static str;

    /// Returns the words for the addresses that a channel can have, after "give".
    fn channel_places(&self) -> &'static str;

    /// Returns the best sizes and the best addresses of memory, as ends of sentences.
    fn best(&self) -> [&'static str; 2];

    /// Returns the words for what windows are rounded to.
    fn rounding(&self) -> &'static str;

    /// Returns the access that a VM has to its RAM.
    fn ram_of_vm(&self) -> Access;

    /// Checks that there is enough of the hardware for the partition. The backend makes the same plan.
    fn check(&self, spec: &PartitionSpec, mapped: &[Mapped], report: &mut Report);

    /// Returns the regions of a memory protection unit as the backend will load them, if they are worth a
    /// table for people.
    fn regions(&self, _mapped: &[Mapped]) -> Vec<Region> {
        Vec::new()
    }
}

/// A mapping of a partition.
pub(crate) struct Mapped {
    pub what: String,
    pub place: Place,
    pub request: Request,
}

/// Returns all mappings of a partition, in the order in which the backend asks for them.
pub(crate) fn mapped(board: &Board, spec: &PartitionSpec, guest: &Guest) -> Vec<Mapped> {
    let one = |what: String, place, window: Window, access: Access, memory| Mapped {
        what,
        place,
        request: Request {
            // An address beyond 4G has been reported already.
            start: u32::try_from(window.base).unwrap_or(0),
            bytes: window.size,
            rights: Rights {
                read: access.read,
                write: access.write,
                execute: access.execute,
            },
            memory,
        },
    };
    let areas = guest.areas.iter().map(|area| {
        let what = match area.kind {
            AreaKind::Code => "code",
            AreaKind::Region | AreaKind::Flash => "a region",
            AreaKind::Channel(_) => "a channel",
            AreaKind::Lent(_) => "a device that is lent",
            AreaKind::Frames => "the ring of frames",
            AreaKind::Ram | AreaKind::Startup => "RAM",
        };
        let memory = match area.kind {
            AreaKind::Lent(_) => Memory::DEVICE,
            _ => Memory::NORMAL,
        };
        one(what.to_owned(), area.place, area.window, area.access, memory)
    });
    let devices = registers(spec, board)
        .filter(|registers| !registers.forwarded)
        .map(|registers| {
            let (name, window) = (registers.name, registers.window.pages());
            let what = format!("device `{}`", name.value);
            one(what, name.place, window, Access::DATA, Memory::DEVICE)
        });
    areas.chain(devices).collect()
}

/// Checks that the hardware is enough for a partition.
pub(crate) fn check(
    protection: &dyn Protection,
    board: &Board,
    spec: &PartitionSpec,
    guest: &Guest,
    report: &mut Report,
) {
    let mapped = mapped(board, spec, guest);
    let Some(beyond) = mapped.get(MAX_REQUESTS) else {
        protection.check(spec, &mapped, report);
        return;
    };
    let message = format!(
        "{} of `{}` is one more than the {MAX_REQUESTS} stretches of memory and devices that a partition may have",
        beyond.what, spec.name.value
    );
    report.push(
        Diagnostic::at(Code::TooManyRegions, beyond.place, message)
            .help("give the partition fewer devices or regions"),
    );
}
