// SPDX-License-Identifier: Apache-2.0
//! Computes the deepest chain of calls in the machine code of each class binary, and checks that it fits the
//! stack and is no deeper than `parts.toml` says.
//!
//! A function takes what its instructions take from the stack pointer, all of them added up: a function that
//! takes it by one of two ways counts with both. It calls what it branches to outside of itself. A call by an
//! address may lead to any function whose address is in the binary, but for those in a table of vectors
//! alone. Of such calls some may be active at a time (`BY_ADDRESS`): an iterator through a pointer calls a
//! closure.

mod class;
mod program;

use crate::workspace::root;
use crate::{Outcome, parts};
use bulkhead::build::artifacts::{Workspace, class_binaries};
use bulkhead::build::costs::FILE;
use bulkhead::ui::progress::Progress;
use bulkhead_abi::log::SMALL;
use class::{Room, STACKS, Way};
use object::{Object, ObjectSymbol};
use program::{BY_ADDRESS, Program, symbol};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The name of each class binary begins so.
const PREFIX: &str = "bulkhead-hypervisor-";

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
        Room::Constant(name, constant) => constant_of(name, constant),
        Room::OfPcpu(name) => {
            let [stacks, guard, emergency, each] = STACKS;
            let pcpus = bytes_of(file, emergency)? / constant_of(name, each)?;
            let part = bytes_of(file, stacks)?.checked_div(pcpus).ok_or("no pCPUs")?;
            Ok(part.saturating_sub(constant_of(name, guard)?))
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
fn constant_of(file: &str, constant: &str) -> Result<u32, String> {
    let text = std::fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
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
    for function in chain
        .1
        .iter()
        .filter_map(|address| program.functions.get(address))
    {
        if is_long {
            let name = rustc_demangle::demangle(&function.name);
            println!("{:>7}  {name:#}", function.size);
        }
    }
    let mut findings = needs.findings(stack);
    if let Some(own) = own {
        let own = size(&own, &file)?;
        if crash > own {
            findings.push(format!(
                "a crash record takes {crash} bytes, and its own stack has {own}"
            ));
        }
    }
    Ok((chain.0, findings))
}

/// Measures a class binary.
fn of_file(name: &str, path: &Path, is_long: bool) -> Result<(u32, Vec<String>), String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    print!("{name:<38} ");
    measure(&bytes, class::of(name)?, is_long).map_err(|why| format!("{name}: {why}"))
}

/// Checks the stacks of a class binary. `is_long` prints the deepest chain.
pub fn check(elf: &Path, is_long: bool) -> Outcome {
    let name = elf.file_name().unwrap_or_default().to_string_lossy();
    of_file(&name, elf, is_long).map(|(_, findings)| findings)
}

/// Checks the stacks of the class binaries of all boards, also against the limits. `is_long` prints the
/// deepest chains, and `is_lower` lowers the limits to what was measured.
pub fn check_all(is_long: bool, is_lower: bool) -> Outcome {
    let limits = parts::stacks()?;
    let mut findings = Vec::new();
    let mut measured = BTreeMap::new();
    for (name, path) in all()? {
        let (deepest, mut found) = of_file(&name, &path, is_long)?;
        let name = name.strip_prefix(PREFIX).unwrap_or(&name).to_owned();
        if !is_lower {
            found.extend(over(deepest, limits.get(&name).copied()));
        }
        findings.extend(found.into_iter().map(|finding| format!("{name}: {finding}")));
        measured.insert(name, deepest.into());
    }
    if is_lower {
        parts::lower_stacks(&measured)?;
    }
    Ok(findings)
}

/// Returns a finding if a chain is deeper than the file says.
fn over(deepest: u32, limit: Option<u64>) -> Option<String> {
    match limit {
        None => Some(format!("{FILE} has no limit: run `xtask stack --lower`")),
        Some(limit) if u64::from(deepest) > limit => Some(format!(
            "the deepest chain of calls takes {deepest} bytes, {limit} in {FILE}"
        )),
        Some(_) => None,
    }
}

/// Builds the class binaries of all boards, and returns their names and paths.
fn all() -> Result<Vec<(String, PathBuf)>, String> {
    let workspace = Workspace::locate().map_err(|problem| problem.to_string())?;
    let names: Vec<String> = class_binaries().into_iter().collect();
    let built = workspace.build(&names, &Progress::new());
    built.map_err(|problem| problem.to_string())?;
    let linked = names.into_iter().map(|name| {
        let path = workspace.any_class_binary(&name);
        path.map(|path| (name, path))
            .map_err(|problem| problem.to_string())
    });
    linked.collect()
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
    fn a_chain_may_not_grow() {
        assert_eq!(over(7000, Some(7000)), None);
        assert_eq!(over(6000, Some(7000)), None);
        assert!(over(7001, Some(7000)).is_some());
        assert!(over(7000, None).is_some());
    }

    #[test]
    fn a_stack_in_the_source_is_read() {
        let text = "pub(crate) const STACK_SIZE: usize = 44 * 1024;\n";
        assert_eq!(product(text, "STACK_SIZE"), Some(44 << 10));
        assert_eq!(product(text, "SIZE"), None);
    }
}
