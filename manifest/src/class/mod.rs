// SPDX-License-Identifier: Apache-2.0
//! The parts of the host that differ for each class of hardware.
//!
//! A class is a folder here. Everything that the compiler of manifests must know of the class is behind one
//! trait, [`Host`]: the board file, rules, the memory plan, guests, controllers, the flashable file. The
//! facts that the target needs too are constants of `arch/api` ([`ClassFacts`]). Nothing outside these
//! folders names a class: code that depends on a class asks the [`Class`] of the board.

mod aarch64;
mod armv7m;
mod ppc405;
#[cfg(feature = "stub-class")]
#[path = "../../../tests/stub-class/manifest.rs"]
mod stub;
mod x86_64;

use std::fmt;

use bulkhead_abi::log::Layout;
use bulkhead_abi::parts::{Part, Parts};
use bulkhead_arch_api::class::DeviceRole;
use bulkhead_arch_api::{ClassFacts, EntryState};
use bulkhead_arch_regions::Region;

use crate::board::Board;
use crate::diagnostic::Report;
use crate::driver::Driver;
use crate::flash::{ClassBinary, FlashError};
use crate::guest::{Context, Guest, task};
use crate::model::{Manifest, PartitionSpec};
use crate::payload::Loader;
use crate::plan::{self, Input, Plan};
use crate::schema::form::Form;
use crate::schema::{Key, ValueKind};
use crate::value::{Table, Value};
use crate::window::Window;

/// The list of classes. A board about which nothing is known is of the first class.
const CLASSES: &[Class] = &[
    aarch64::CLASS,
    armv7m::CLASS,
    ppc405::CLASS,
    x86_64::CLASS,
    #[cfg(feature = "stub-class")]
    stub::CLASS,
];

/// Refuses a board: the key at fault, the mistake, and the remedy.
pub(crate) type Refuse<'a> = dyn FnMut(&str, String, &str) + 'a;

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
    /// Moves the memory of channels to where it is on the board, if no address is translated. Channels
    /// without room are reported.
    fn place_channels(
        &self,
        _board: &Board,
        _manifest: &Manifest,
        _guests: &mut [Guest],
        _report: &mut Report,
    ) {
    }
    /// Finds a place for everything; `None` if something was reported. The usual plan is that of classes that
    /// translate addresses.
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
        system: &crate::System,
    ) -> Result<Vec<u8>, FlashError>;
}

/// The class of a board, which determines the hypervisor that runs on it.
#[derive(Clone, Copy)]
pub struct Class(&'static dyn Host);

impl Class {
    /// Returns all classes.
    pub fn all() -> impl Iterator<Item = Self> {
        CLASSES.iter().copied()
    }

    /// Returns the class of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|class| class.name() == name)
    }

    /// Returns the facts of the class.
    #[must_use]
    pub fn facts(self) -> &'static ClassFacts {
        self.0.facts()
    }

    /// Returns the name of the class, in board files and of its class binary.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the parts of the kernel that systems on boards of the class can use.
    #[must_use]
    pub fn parts(self) -> Parts {
        let facts = self.facts();
        let has = |role: DeviceRole| facts.devices.iter().any(|device| device.role == role);
        let limited = [
            (Part::Functions, has(DeviceRole::Bridge)),
            (Part::Networks, has(DeviceRole::Network)),
            (Part::Flash, has(DeviceRole::Flash)),
            (Part::Lent, facts.protects),
            (Part::Services, self.host().finds_services()),
            (Part::Upcalls, facts.upcalls),
            (Part::Semihosting, facts.semihosting),
        ];
        let lacked = limited.into_iter().filter(|(_, can)| !can);
        Parts::ALL.without(lacked.fold(Parts::NONE, |set, (part, _)| set.with(part)))
    }

    /// Returns the answers of the class.
    pub(crate) const fn host(self) -> &'static dyn Host {
        self.0
    }
}

impl Form for Class {
    const KIND: ValueKind = ValueKind::OneOf(|| {
        let facts = Self::all().map(Self::facts);
        facts.map(|facts| (facts.name, facts.description)).collect()
    });

    fn read(value: &Value) -> Option<Self> {
        Self::named(value.text()?)
    }
}

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        self.facts().number == other.facts().number
    }
}

impl Eq for Class {}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Default for Class {
    fn default() -> Self {
        let [first, ..] = CLASSES else {
            unreachable!("there is a class")
        };
        *first
    }
}

#[cfg(test)]
mod tests {
    use super::Class;
    use bulkhead_arch_api::class;

    #[test]
    fn every_class_has_a_folder_and_each_folder_is_of_a_class() {
        let here: Vec<_> = Class::all().map(Class::facts).collect();
        assert_eq!(here, class::CLASSES);
        assert!(here.iter().all(|facts| Class::named(facts.name).is_some()));
    }
}
