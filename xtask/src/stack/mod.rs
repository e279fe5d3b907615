// SPDX-License-Identifier: Apache-2.0
//! Computes the deepest chain of calls in the machine code of each class binary, and checks that it fits the
//! stack and is no deeper than `parts.toml` says.
//!
//! A function takes what its instructions take from the stack pointer, all of them added up: a function that
//! takes it by one of two ways counts with both. It calls what it branches to outside of itself. A call by an
//! address may lead to any function whose address is in the binary, but for those in a table of vectors alone.
//! Of such calls some may be active at a time (`BY_ADDRESS`): an iterator behind a pointer calls a closure.

mod class;
mod program;

use crate::workspace::root;
use crate::Outcome;
use bulkhead::build::artifacts::{Workspace, class_binaries};
use bulkhead::ui::progress::Progress;
use bulkhead_abi::log::SMALL;
use class::{Room, Way};
use program::{BY_ADDRESS, Program, symbol};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
fn size(room: &Room, file: &object::File<'_>) -> Result<u32, String> {
    match room {
        Room::Symbols(bottom, top) => Ok(symbol(file, top)? - symbol(file, bottom)?),
        Room::Constant(name, constant) => {
            let text = std::fs::read_to_string(root().join(name)).map_err(|error| format!("{name}: {error}"))?;
            product(&text, constant).ok_or(format!("{name} has no number {constant}"))
        }
    }
}

/// Returns the value of a constant that is a number, or a product of numbers.
fn product(text: &str, constant: &str) -> Option<u32> {
    let (_, rest) = text.split_once(&format!("const {constant}: usize = "))?;
    let (value, _) = rest.split_once(';')?;
    value.split('*').map(|factor| factor.trim().parse::<u32>().ok()).product()
}

/// Computes the needs of a class binary's stacks. Prints them, and the deepest chain if `is_long`. It is a
/// finding if a stack has no room.
fn measure(bytes: &[u8], way: &dyn Way, is_long: bool) -> Result<(u32, Vec<String>), String> {
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
    let stack = size(&way.stack(), &file)?;
    let needs = Needs {
        calls: chain.0,
        frame: way.frame(),
        crash: if own.is_some() { 0 } else { crash },
        crash_room: program.crash_room,
    };
    println!(
        "stack {stack}  deepest chain {}  a frame {}  a crash record {crash}",
        chain.0, needs.frame
    );
    for function in chain.1.iter().filter_map(|address| program.functions.get(address)) {
        if is_long {
            let name = rustc_demangle::demangle(&function.name);
            println!("{:>7}  {name:#}", function.size);
        }
    }
    let mut findings = needs.findings(stack);
    if let Some(own) = own {
        let own = size(&own, &file)?;
        if crash > own {
            findings.push(format!("a crash record takes {crash} bytes, and its own stack has {own}"));
        }
    }
    Ok((chain.0, findings))
}

/// Checks the stacks of a class binary, or of those of all boards. `is_long` prints the deepest chains.
pub fn check(elf: Option<&Path>, is_long: bool) -> Outcome {
    let paths = match elf {
        Some(elf) => vec![elf.to_owned()],
        None => all()?,
    };
    let mut findings = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        print!("{name:<62} ");
        let found = measure(&bytes, class::of(&name)?, is_long);
        let found = found.map_or_else(|why| vec![why], |(_, found)| found);
        findings.extend(found.into_iter().map(|finding| format!("{name}: {finding}")));
    }
    Ok(findings)
}

/// Builds the class binaries of all boards, and returns their paths.
fn all() -> Result<Vec<PathBuf>, String> {
    let workspace = Workspace::locate().map_err(|problem| problem.to_string())?;
    let names: Vec<String> = class_binaries().into_iter().collect();
    let built = workspace.build(&names, &Progress::new());
    built.map_err(|problem| problem.to_string())?;
    let linked = names.iter().map(|name| workspace.any_class_binary(name));
    let paths: Result<Vec<PathBuf>, _> = linked.collect();
    paths.map_err(|problem| problem.to_string())
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
