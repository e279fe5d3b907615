// SPDX-License-Identifier: Apache-2.0
//! Computes the deepest chain of calls in the machine code of a class binary, and checks that the stack of
//! its class holds the chain. [`barriers`] judges the same code by rules of silicon.
//!
//! A function takes what its instructions take from the stack pointer, all of them added up: a function that
//! takes it by one of two ways counts with both. It calls what it branches to outside of itself. A call by an
//! address may lead to any function whose address is in the binary, but for those in a table of vectors
//! alone. Of such calls some may be active at a time (`BY_ADDRESS`): an iterator through a pointer calls a
//! closure.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod barriers;
mod class;
mod program;

use bulkhead_abi::log::SMALL;
use class::{Room, STACKS};
use object::{Object, ObjectSymbol};
use program::{BY_ADDRESS, Program, symbol};
use std::collections::BTreeMap;
use std::path::Path;

/// The name of each class binary begins so.
pub const PREFIX: &str = "bulkhead-hypervisor-";

/// The stack of a class binary, and what its code takes from it, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The size of the stack.
    pub stack: u32,
    /// The deepest chain of calls.
    pub deepest: u32,
    /// The functions of this chain, the first one first: the name, and what the function takes.
    pub chain: Vec<Frame>,
    /// The frame that the CPU pushes for what may come anywhere.
    pub frame: u32,
    /// The deepest chain of a crash record.
    pub crash: u32,
    /// Sentences that say which of them has no room.
    pub findings: Vec<String>,
}

/// A function of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The name.
    pub function: String,
    /// The bytes that the function takes.
    pub bytes: u32,
}

/// The needs of the stack, in bytes.
struct Needs {
    /// The deepest chain of calls.
    calls: u32,
    /// The CPU's frame of what may come anywhere.
    frame: u32,
    /// The deepest chain of a crash record, if it is on the same stack.
    crash: u32,
    /// The part of the stack that a crash record has for itself, if it has one.
    crash_room: Option<u32>,
}

impl Needs {
    /// Returns all that does not hold for a stack of this size.
    fn findings(&self, stack: u32) -> Vec<String> {
        let mut findings = Vec::new();
        let mut demand = |what: &str, needed: u32, room: u32| {
            if needed > room {
                findings.push(format!("{what} take {needed} bytes, and have {room}"));
            }
        };
        let deepest = self.calls + self.frame;
        demand("the deepest chain of calls and a frame", deepest, stack);
        match self.crash_room {
            None => demand(
                "the deepest chain of calls, a frame and a crash record",
                deepest + self.crash,
                stack,
            ),
            Some(own) => {
                let words = 4 * SMALL.stack_words as u32;
                demand(
                    "a crash record and the words of the stack in it",
                    self.crash + words,
                    own,
                );
                demand("a crash record and all that is above it", self.crash + own, stack);
            }
        }
        findings
    }
}

/// Returns the bytes of a stack.
fn size(root: &Path, room: &Room, file: &object::File<'_>) -> Result<u32, String> {
    match room {
        Room::Symbols(bottom, top) => Ok(symbol(file, top)? - symbol(file, bottom)?),
        Room::Constant(name, constant) => constant_of(root, name, constant),
        Room::OfPcpu(name) => {
            let [stacks, guard, emergency, each] = STACKS;
            let pcpus = bytes_of(file, emergency)? / constant_of(root, name, each)?;
            let part = bytes_of(file, stacks)?.checked_div(pcpus).ok_or("no pCPUs")?;
            Ok(part.saturating_sub(constant_of(root, name, guard)?))
        }
    }
}

/// Returns the bytes of a static in a class binary.
fn bytes_of(file: &object::File<'_>, wanted: &str) -> Result<u32, String> {
    let is_it = |name: &str| {
        let name = format!("{:#}", rustc_demangle::demangle(name));
        name.rsplit("::").next() == Some(wanted)
    };
    let mut symbols = file.symbols();
    let found = symbols.find(|symbol| symbol.size() > 0 && symbol.name().is_ok_and(is_it));
    found
        .map(|symbol| symbol.size() as u32)
        .ok_or(format!("no static {wanted}"))
}

/// Returns the value of a constant of a source file.
fn constant_of(root: &Path, file: &str, constant: &str) -> Result<u32, String> {
    let text = std::fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
    product(&text, constant).ok_or(format!("{file} has no number {constant}"))
}

/// Returns the value of a constant that is a number, or a product of numbers.
fn product(text: &str, constant: &str) -> Option<u32> {
    let (_, rest) = text.split_once(&format!("const {constant}: usize = "))?;
    let (value, _) = rest.split_once(';')?;
    value
        .split('*')
        .map(|factor| factor.trim().parse::<u32>().ok())
        .product()
}

/// Computes the needs of the stacks of the class binary with this name and these bytes. The sources of the
/// repository at `root` say the sizes that the binary does not.
///
/// # Errors
/// A sentence: the file is no class binary, or has code whose needs cannot be told.
pub fn measure(root: &Path, name: &str, bytes: &[u8]) -> Result<Measured, String> {
    let way = class::of(name)?;
    let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
    let program = Program::read(&file, way)?;
    let mut known = BTreeMap::new();
    let mut deepest = |name: &str| {
        let first = program.named(name)?;
        program.deepest(first, BY_ADDRESS, &mut known, &mut Vec::new())
    };
    let mut chain = (0, Vec::new());
    for first in way.firsts() {
        chain = deepest(first)?.max(chain);
    }
    let (name, below, own) = way.crash();
    let crash = deepest(name)?.0 + below;
    let stack = size(root, &way.stack(), &file)?;
    let needs = Needs {
        calls: chain.0,
        frame: way.frame(),
        crash: if own.is_some() { 0 } else { crash },
        crash_room: program.crash_room,
    };
    let mut findings = needs.findings(stack);
    if let Some(own) = own {
        let own = size(root, &own, &file)?;
        if crash > own {
            findings.push(format!(
                "a crash record takes {crash} bytes, and its own stack has {own}"
            ));
        }
    }
    let functions = chain
        .1
        .iter()
        .filter_map(|address| program.functions.get(address));
    let frame_of = |function: &program::Function| Frame {
        function: format!("{:#}", rustc_demangle::demangle(&function.name)),
        bytes: function.size,
    };
    Ok(Measured {
        stack,
        deepest: chain.0,
        chain: functions.map(frame_of).collect(),
        frame: needs.frame,
        crash,
        findings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_record_fits_on_top_of_the_deepest_chain_or_has_a_place_of_its_own() {
        const FRAME: u32 = 36;
        let words = 4 * SMALL.stack_words as u32;
        let finds = |crash_room, stack| {
            let needs = Needs {
                calls: 7000,
                frame: FRAME,
                crash: 500,
                crash_room,
            };
            needs.findings(stack).len()
        };
        assert_eq!(finds(None, 7000 + FRAME + 500), 0);
        assert_eq!(finds(None, 7000 + FRAME + 499), 1);
        assert_eq!(finds(None, 7000 + FRAME - 1), 2);
        assert_eq!(finds(Some(500 + words), 7000 + FRAME), 0);
        assert_eq!(finds(Some(499 + words), 7000 + FRAME), 1);
        assert_eq!(finds(Some(500 + words), 7000 + FRAME - 1), 1);
        assert_eq!(finds(Some(7000), 7000 + FRAME), 1);
    }

    #[test]
    fn a_stack_in_the_source_is_read() {
        let text = "pub(crate) const STACK_SIZE: usize = 44 * 1024;\n";
        assert_eq!(product(text, "STACK_SIZE"), Some(44 << 10));
        assert_eq!(product(text, "SIZE"), None);
    }
}
