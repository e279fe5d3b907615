// SPDX-License-Identifier: Apache-2.0
//! The parts of the computation that differ for each class: its instructions, and where its stacks begin.

pub(crate) mod aarch64;
mod cortex_m;
mod ppc405;
mod x86_64;

use capstone::Capstone;
use std::collections::{BTreeMap, BTreeSet};

/// The list of classes.
static CLASSES: &[&dyn Way] = &[
    &aarch64::Aarch64,
    &cortex_m::ARMV7M,
    &cortex_m::ARMV8M,
    &ppc405::Ppc405,
    &x86_64::X86,
];

/// The effects of one instruction.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Bytes that it takes from the stack.
    pub takes: u32,
    /// The constant address that it branches to.
    pub to: Option<u32>,
    /// It calls a function by an address.
    pub by_address: bool,
    /// The place of that address, if the place is a constant.
    pub place: Option<u32>,
    /// Addresses that it may make: addresses of functions among them are taken.
    pub makes: Vec<u32>,
}

/// All that is known of the registers within one function, in the order of its instructions.
#[derive(Debug, Default)]
pub(super) struct Registers {
    /// The address after the instruction.
    pub next: u32,
    /// All upper parts of addresses that a register was given.
    pub upper: BTreeMap<String, BTreeSet<u32>>,
    /// The constant that a register was given last.
    pub constant: BTreeMap<String, u32>,
    /// The last instruction that wrote a register.
    pub writer: BTreeMap<String, String>,
}

/// Functions that come on top of the one that leaves for a guest.
pub(super) enum Traps {
    /// The handlers in a table of so many bytes, but for some of them. Words of the table take no address.
    Table {
        name: &'static str,
        bytes: u32,
        except: &'static [&'static str],
    },
    /// These functions.
    Functions(&'static [&'static str]),
}

/// Where the bytes of a stack are said.
pub(super) enum Room {
    /// Between these symbols of the class binary.
    Symbols(&'static str, &'static str),
    /// A constant of a source file.
    Constant(&'static str, &'static str),
    /// The stack of one pCPU, by the statics and constants of a source file with the names of [`STACKS`].
    OfPcpu(&'static str),
}

/// The names of a class's stacks: a static with the stacks of all pCPUs, the constant with the unmapped bytes
/// under each, a static with the emergency stacks, and the constant with the bytes of each of these.
pub(super) const STACKS: [&str; 4] = ["STACKS", "GUARD_SIZE", "EMERGENCY_STACKS", "EMERGENCY_SIZE"];

/// The questions that the computation asks a class.
pub(super) trait Way: Sync {
    /// Returns the name of the class.
    fn name(&self) -> &'static str;
    /// Returns what takes its instructions apart.
    fn disassembler(&self) -> capstone::CsResult<Capstone>;
    /// Returns the bytes of its shortest instruction.
    fn shortest(&self) -> usize;
    /// Returns the bytes of an address.
    fn word(&self) -> usize {
        4
    }
    /// Returns the address of the function that a word in memory points at.
    fn pointed(&self, word: u32) -> Option<u32> {
        Some(word)
    }
    /// Tells whether words of this section may be addresses.
    fn has_addresses(&self, _section: &str) -> bool {
        true
    }
    /// Tells whether symbols without a type begin functions, too.
    fn has_untyped(&self) -> bool {
        true
    }
    /// Tells whether these bytes are filling between functions, or code that the CPU runs in another mode.
    fn is_no_code(&self, _function: &str, _bytes: &[u8]) -> bool {
        false
    }
    /// Reads an instruction.
    fn step(&self, registers: &mut Registers, mnemonic: &str, operands: &str) -> Result<Step, String>;
    /// Returns the functions with which a stack begins.
    fn firsts(&self) -> &'static [&'static str];
    /// Tells whether a function is never called by its address, though the binary has the address.
    fn is_uncalled(&self, _function: &str) -> bool {
        false
    }
    /// Returns the functions on top of the one that leaves for a guest.
    fn traps(&self) -> Traps;
    /// Returns the bytes that the CPU pushes for what may come anywhere.
    fn frame(&self) -> u32;
    /// Returns the place where the size of the stack is said.
    fn stack(&self) -> Room;
    /// Returns the function that reports a crash, the bytes that are below it, and the place where the size
    /// of its own stack is said, if it has one.
    fn crash(&self) -> (&'static str, u32, Option<Room>);
}

/// Returns the class of a class binary.
pub(super) fn of(binary: &str) -> Result<&'static dyn Way, String> {
    let rest = binary.strip_prefix(super::PREFIX).unwrap_or(binary);
    let of_class = |name: &str| {
        rest.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let found = CLASSES.iter().find(|way| of_class(way.name()));
    found
        .copied()
        .ok_or(format!("no instructions are known of {binary}"))
}

/// Reads a number as disassemblers write it, after an optional `#`.
pub(crate) fn number(text: &str) -> Option<u32> {
    let text = text.trim().trim_start_matches('#');
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    let value = u32::try_from(value & 0xFFFF_FFFF).ok()?;
    Some(if is_negative { value.wrapping_neg() } else { value })
}

/// Returns the finding that an instruction's bytes are unknown.
fn unknown(mnemonic: &str, operands: &str) -> String {
    format!("`{mnemonic} {operands}` takes an unknown number of bytes")
}
