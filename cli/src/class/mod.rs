// SPDX-License-Identifier: Apache-2.0
//! The parts of the tool that differ for each class of hardware.
//!
//! A class is a folder here. The tool knows a class only by one trait, [`Tool`]: how its programs are built
//! and linked, the debugger, the files that `bulkhead new` writes, the words for its faults. Nothing outside
//! these folders names a class.

mod aarch64;
mod armv7m;
mod armv8m;
mod cortex_m;
mod ppc405;
#[cfg(feature = "stub-class")]
#[path = "../../../tests/stub-class/cli.rs"]
mod stub;
mod x86_64;

use crate::build::linker::Link;
use crate::build::payload::Payload;
use crate::build::start::Uefi;
use crate::serial::health::Event;
use bulkhead_arch_api::ClassFacts;
use bulkhead_manifest::system::Partition;
use bulkhead_manifest::{Board, Class};

/// The list of classes. Programs that name no target are built for the first one.
static CLASSES: &[&dyn Tool] = &[
    &aarch64::Aarch64,
    &armv7m::Armv7m,
    &armv8m::Armv8m,
    &ppc405::Ppc405,
    &x86_64::X86,
    #[cfg(feature = "stub-class")]
    &stub::Stub,
];

/// The files that a new folder begins with.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// The manifest.
    pub manifest: &'static str,
    /// The README of the folder.
    pub readme: &'static str,
}

/// The addresses of a class binary's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbols {
    /// At the address that its file says.
    WhereLinked,
    /// After the board's load address by what its file says.
    AtLoadAddress,
}

/// An exception of a guest's own that its vectors could not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untaken {
    /// The exception, as a sentence without its subject.
    pub what: String,
    /// The instruction, also if the exception's return address is the one after it.
    pub pc: u64,
    /// Where its vectors are, and how the guest sets that.
    pub vectors: String,
}

/// The answers about a program that a class needs to explain the registers after a report.
pub trait Code {
    /// Tells whether the partition has memory at a guest-physical address.
    fn is_memory(&self, address: u64) -> bool;
    /// Tells whether the program has 16-bit instructions at an address (T32).
    fn is_thumb(&self, address: u64) -> bool;
    /// Returns the memory that [`Tool::wanted`] names, as it was at the report, if it could be read.
    fn seen(&self) -> Option<&[u8]> {
        None
    }
}

/// The facts that a debugger must be told.
#[derive(Clone, Copy, Debug)]
pub struct Debugger {
    /// The architecture, by gdb's name.
    pub architecture: &'static str,
    /// The symbols of the class binary.
    pub symbols: Symbols,
}

/// The hardware of a class binary that is compiled for other hardware than the usual one.
#[derive(Clone, Copy, Debug)]
pub struct Hardware {
    /// The end of the name of the class binary.
    pub suffix: &'static str,
    /// The feature of its package.
    pub feature: &'static str,
}

/// A guest that starts another program on the bare board.
#[derive(Clone, Copy, Debug)]
pub struct Starter {
    /// The name of its program.
    pub program: &'static str,
    /// The address of the word in which it finds the address of the other program's vector table.
    pub vectors_at: u64,
}

/// The questions that the tool asks a class.
pub trait Tool: Sync {
    /// Returns the facts of the class.
    fn facts(&self) -> &'static ClassFacts;

    /// Returns the Rust target of programs whose package names none.
    fn target(&self) -> &'static str;
    /// Returns the changes to the compiler's description of this target for packages that name none, as in
    /// [`crate::build::target_spec::write`].
    fn target_changes(&self) -> &'static str {
        ""
    }
    /// Tells whether VMs and tasks of the class run programs for this Rust target.
    fn runs(&self, target: &str) -> bool {
        // A target with registers for floating point has the other one's name and `hf`.
        target.starts_with(self.target())
    }
    /// Returns the kinds of hardware besides the usual one for which there is a class binary.
    fn hardware(&self) -> &'static [Hardware] {
        &[]
    }
    /// Returns the hardware of a board, if it is not the usual one.
    fn hardware_of(&self, board: &Board) -> Option<&'static Hardware> {
        let _ = board;
        None
    }
    /// Tells whether each set of parts is a package of its own: cargo names an archive after its package.
    fn sets_are_packages(&self) -> bool {
        false
    }
    /// Tells how the class binary is linked for a board, if its places are the board's.
    fn link(&self, board: &Board) -> Option<Link>;
    /// Returns the name of the flashable file.
    fn flash_name(&self) -> &'static str;
    /// Tells whether a board of the class starts from a disc, see [`crate::build::iso`].
    fn starts_from_disc(&self) -> bool {
        false
    }
    /// Returns how a board of the class starts from UEFI, see [`crate::build::efi`], if it does.
    fn uefi(&self) -> Option<&'static Uefi> {
        None
    }
    /// Returns the guest that starts a VM's program on the bare board, if the CPU's state after a reset is
    /// not the one that such a program begins in.
    fn starter(&self) -> Option<Starter> {
        None
    }
    /// Returns the showcase of the class, if there is one.
    fn showcase(&self) -> Option<Showcase> {
        None
    }
    /// Returns the payloads from Debian for VMs of the class.
    fn payloads(&self) -> &'static [Payload] {
        &[]
    }
    /// Returns the settings of the debugger.
    fn debugger(&self) -> Debugger;
    /// Returns the first files of a new folder.
    fn template(&self) -> Template;

    /// Returns what to say of the place of a fault whose report cannot have one.
    fn lost_place(&self, _event: &Event) -> Option<&'static str> {
        None
    }

    /// Describes the attempt of the partition's instruction, from the syndrome of its fault.
    fn sentence(&self, syndrome: u64, event: &Event, partition: &Partition<'_>) -> String;
    /// Returns the fields of a syndrome.
    fn fields(&self, syndrome: u64) -> String;
    /// Tells whether the fault was reported later than its cause.
    fn is_asynchronous(&self, syndrome: u64) -> bool;
    /// Returns the accesses that reach a register which the hypervisor emulates, as a sentence.
    fn emulated_forms(&self) -> &'static str {
        "an emulated register takes single, aligned loads and stores of general registers"
    }
    /// Returns a probable remedy against an event that this class alone knows.
    fn remedy(&self, event: &Event) -> Option<&'static str>;
    /// Returns the exception of the guest's own that its vectors could not take, if the registers after a
    /// report show one. `register` gives a register by its name in the log.
    fn untaken(&self, register: &dyn Fn(&str) -> Option<u64>, code: &dyn Code) -> Option<Untaken> {
        let _ = (register, code);
        None
    }
    /// Returns the stretch of the guest's memory, address and bytes, without which [`Tool::untaken`] cannot
    /// tell everything of a report with these registers.
    fn wanted(&self, register: &dyn Fn(&str) -> Option<u64>) -> Option<(u64, usize)> {
        let _ = register;
        None
    }
    /// Returns what an address is, if it is one of a table of vectors where the class has such tables.
    fn vector(&self, pc: u64) -> Option<String> {
        let _ = pc;
        None
    }
    /// Tells whether zeros in the place of vectors make the guest take one exception after the other, none
    /// of which ends it, and whether the emulator can read what is at a guest's program counter.
    fn faults_at_zeros(&self) -> bool {
        false
    }
}

/// The showcase of a class.
#[derive(Debug, Clone, Copy)]
pub struct Showcase {
    /// The manifest, from the root of the repository on.
    pub example: &'static str,
    /// The number of CPUs that Linux has.
    pub cpus: &'static str,
    /// The word for the board.
    pub board: &'static str,
    /// The words for the kernel of Linux.
    pub kernel: &'static str,
    /// The words for the place of the control loop.
    pub place: &'static str,
}

/// Returns all classes.
pub fn all() -> impl Iterator<Item = &'static dyn Tool> {
    CLASSES.iter().copied()
}

/// Returns the class of a board.
#[must_use]
pub fn of(board: &Board) -> &'static dyn Tool {
    named(board.class)
}

/// Returns the class that holds where nothing names another class.
#[must_use]
pub fn default() -> &'static dyn Tool {
    named(Class::default())
}

/// Returns the class.
#[must_use]
pub fn named(class: Class) -> &'static dyn Tool {
    let found = all().find(|tool| tool.facts() == class.facts());
    found.unwrap_or_else(|| unreachable!("a test sees to it that each class is here"))
}

/// A program of which nothing is known.
#[cfg(test)]
struct NoCode;

#[cfg(test)]
impl Code for NoCode {
    fn is_memory(&self, _address: u64) -> bool {
        false
    }

    fn is_thumb(&self, _address: u64) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::{Tool, all};
    use bulkhead_manifest::Class;

    #[test]
    fn no_class_speaks_of_the_registers_of_another() {
        for tool in all() {
            let says_simd = tool.emulated_forms().contains("SIMD");
            assert_eq!(says_simd, tool.facts().name == "aarch64", "{}", tool.facts().name);
        }
    }

    #[test]
    fn every_class_is_here() {
        assert!(all().map(Tool::facts).eq(Class::all().map(Class::facts)));
    }
}
