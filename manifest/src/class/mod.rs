// SPDX-License-Identifier: Apache-2.0
//! The parts of the host that differ for each class of hardware.
//!
//! A class is a folder here. Everything that the compiler of manifests must know of the class comes through
//! one trait, [`Host`]: the board file, rules, the memory plan, guests, controllers, the flashable file. The
//! facts that the target needs too are constants of `arch/api` ([`ClassFacts`]). Nothing outside these
//! folders names a class: code that depends on a class asks the [`host`] of the board's class.

mod aarch64;
mod armv7m;
mod armv8m;
mod microcontroller;
mod ppc405;
#[cfg(feature = "stub-class")]
#[path = "../../../tests/stub-class/manifest.rs"]
mod stub;
mod x86_64;

use bulkhead_abi::log::Layout;
use bulkhead_arch_api::{ClassFacts, EntryState};
use bulkhead_arch_regions::Region;

use crate::board::{Board, Class, Refuse};
use crate::class_binary::{ClassBinary, FlashError};
use crate::diagnostic::Report;
use crate::driver::Driver;
use crate::guest::{Context, Guest, task};
use crate::model::{Manifest, PartitionSpec};
use crate::payload::Loader;
use crate::place::memory::{self as plan, Input, Plan};
use crate::schema::Key;
use crate::units::{BLOCK, GIB};
use crate::value::Table;
use crate::window::Window;

/// The hosts of all classes.
const HOSTS: &[&dyn Host] = &[
    aarch64::HOST,
    armv7m::HOST,
    armv8m::HOST,
    ppc405::HOST,
    x86_64::HOST,
    #[cfg(feature = "stub-class")]
    stub::HOST,
];

/// A virtual interrupt controller.
pub(crate) struct VirtualController {
    /// The number of its kind in a system image.
    pub kind: u32,
    /// Its register windows: a name for messages, and the window.
    pub windows: Vec<(&'static str, Window)>,
}

/// The questions that a class answers on the host.
pub(crate) trait Host: Sync {
    /// Returns the facts that the target reads, too.
    fn facts(&self) -> &'static ClassFacts;

    /// Returns the keys of a board file that boards of this class have and must have, and other boards cannot
    /// have.
    fn board_keys(&self) -> &'static [Key];
    /// Fills in the facts of a board from these keys: the load address of the hypervisor, and its own memory.
    fn settle_board(&self, table: &Table, board: &mut Board);
    /// Returns the drivers of the class binary.
    fn drivers(&self) -> &'static [&'static Driver];
    /// Returns the window of the log: directly below the hypervisor, or elsewhere.
    fn log(&self, board: &Board) -> Window {
        let size = Layout::of(self.facts().tables).size as u64;
        Window {
            base: board.load_address.saturating_sub(size),
            size,
        }
    }
    /// Refuses facts that no board of the class can have.
    fn check_board(&self, board: &Board, refuse: &mut Refuse<'_>);

    /// Fills in the values that a manifest leaves to the board.
    fn settle(&self, _manifest: &mut Manifest, _board: &Board) {}
    /// Reports keys that have no meaning, and partitions that have no room, on boards of the class.
    fn check(&self, _manifest: &Manifest, _board: &Board, _report: &mut Report) {}
    /// Returns the virtual interrupt controller of a VM, if its registers are emulated for the VM. A board
    /// that is not known has the usual controller.
    fn virtual_controller(&self, _spec: &PartitionSpec, _board: Option<&Board>) -> Option<VirtualController> {
        None
    }
    /// Reports a virtual machine that a partition cannot have.
    fn check_machine(&self, _spec: &PartitionSpec, _board: Option<&Board>, _report: &mut Report) {}

    /// Returns the room that is kept for the class binary while its size is not known. Places do not change
    /// when the size becomes known, unless the binary is larger than this room.
    fn binary_reserve(&self) -> u64;
    /// Returns the most tables of the hypervisor's own translation. Any number is enough for a class without
    /// such tables.
    fn own_tables(&self) -> usize {
        usize::MAX
    }
    /// Moves the memory of channels, and of frames that partitions see, to where it is on the board, if no
    /// address is translated. Memory without room is reported.
    fn place_shared(
        &self,
        _board: &Board,
        _manifest: &Manifest,
        _guests: &mut [Guest],
        _report: &mut Report,
    ) {
    }
    /// Returns the sizes of blocks that its translation has for guests, largest first. The page of 4K is not
    /// among them.
    fn blocks(&self) -> &'static [u64] {
        &[GIB, BLOCK]
    }
    /// Finds a place for everything; `None` if something was reported. The usual plan is the plan of classes
    /// that translate addresses.
    fn plan(&self, input: &Input<'_>, report: &mut Report) -> Option<Plan> {
        plan::plan(input, report)
    }
    /// Returns the memory of the hypervisor besides the log: a name, the window, and the access.
    fn own_memory(&self, board: &Board, plan: &Plan) -> Vec<(&'static str, Window, &'static str)>;
    /// Returns the regions of a memory protection unit while the partition runs. A class that translates
    /// addresses has none.
    fn regions(&self, _board: &Board, _spec: &PartitionSpec, _guest: &Guest) -> Vec<Region> {
        Vec::new()
    }

    /// Tells whether VMs of the class find devices that another partition serves.
    fn finds_services(&self) -> bool {
        false
    }

    /// Returns the RAM disk of the host tool that has programs for the usual VMs of the class.
    fn initramfs(&self) -> &'static str {
        "@debian/initramfs"
    }
    /// Returns the places in which a VM without image can have its firmware, if it can start there.
    fn firmware(&self) -> Option<&'static str> {
        None
    }

    /// Builds the memory of a VM; `None` if something was reported.
    fn build_vm(&self, context: &Context<'_>, loader: &mut Loader<'_>, report: &mut Report) -> Option<Guest>;
    /// Builds the memory of a task; `None` if something was reported.
    fn build_task(
        &self,
        context: &Context<'_>,
        loader: &mut Loader<'_>,
        report: &mut Report,
    ) -> Option<Guest> {
        task::build(context, loader, report)
    }

    /// Returns the reason why no instruction can be at the address of a first one, as the end of a sentence.
    /// On most classes, instructions have four bytes.
    fn entry_fault(&self, entry: u64, _state: EntryState) -> Option<&'static str> {
        (!entry.is_multiple_of(4)).then_some("is no multiple of 4, as the address of an instruction is")
    }

    /// Tells whether zeros are instructions that do nothing, in this state of the processor.
    fn runs_zeros(&self, _state: EntryState) -> bool {
        false
    }

    /// Tells whether an ELF file is a class binary of this class.
    fn is_binary(&self, elf: &[u8]) -> bool;
    /// Reads a class binary.
    fn read_binary(&self, elf: &[u8]) -> Result<ClassBinary, FlashError>;
    /// Joins a class binary with a system image, and with the other contents of code memory.
    fn flash(
        &self,
        binary: &ClassBinary,
        image: &[u8],
        board: &Board,
        guests: &[Guest],
    ) -> Result<Vec<u8>, FlashError>;
}

/// Returns the hosts of all classes.
pub(crate) fn hosts() -> impl Iterator<Item = &'static dyn Host> {
    HOSTS.iter().copied()
}

/// Returns the host of a class.
pub(crate) fn host(class: Class) -> &'static dyn Host {
    let [first, ..] = HOSTS else {
        unreachable!("there is a class")
    };
    let is_it = |host: &&'static dyn Host| host.facts().number == class.facts().number;
    hosts().find(is_it).unwrap_or(*first)
}

#[cfg(test)]
mod tests {
    use super::hosts;
    use crate::board::Class;
    use bulkhead_arch_api::class;

    #[test]
    fn every_class_has_a_folder_and_each_folder_is_of_a_class() {
        let here: Vec<_> = hosts().map(|host| host.facts()).collect();
        assert_eq!(here, class::CLASSES);
        assert!(here.iter().all(|facts| Class::named(facts.name).is_some()));
    }
}
