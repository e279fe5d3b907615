// SPDX-License-Identifier: Apache-2.0
//! The functions of a class binary, read from its machine code, and the deepest chain of calls among them.

use super::class::{Registers, Traps, Way};
use capstone::Insn;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::collections::{BTreeMap, BTreeSet};

/// The function that leaves for a guest, and is there when an exception comes back from it.
const ENTER: &str = "bulkhead_enter";
/// The symbol whose value is the part of the stack that a crash record has for itself.
const CRASH_ROOM: &str = "bulkhead_crash_room";
/// The section with the linker's table of addresses. No code writes to it.
const LINKED: &str = ".got";
/// Calls by an address that are active at a time.
pub(super) const BY_ADDRESS: u32 = 3;
/// Functions that may be active twice, as the code says, and never are on one pCPU: `end_pause` takes all
/// events of a gate before it asks whether the gate has more. Only another pCPU can have sent one by then.
const ONCE_ON_ONE_PCPU: [&str; 2] = ["::wake_all", "::end_pause"];
/// The crate whose closures and iterators no other crate calls: it hands none out.
const CHECKS: &str = "bulkhead_image";

/// Functions that refuse some orders of memory by a panic. Our orders are constants of the
/// source, and none of those.
const ATOMICS: &str = "core::sync::atomic::";
const PANICS: &str = "core::panicking::";

/// A function: its name, the bytes it takes from the stack, where it branches to, and whether it also calls
/// by an address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Function {
    pub name: String,
    pub size: u32,
    calls: BTreeSet<u32>,
    calls_by_address: bool,
}

/// An instruction in a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Instruction {
    /// The first address of the function.
    pub function: u32,
    pub address: u32,
    pub bytes: Vec<u8>,
    /// The name, empty if the disassembler does not know the bytes.
    pub mnemonic: String,
    pub operands: String,
}

impl Instruction {
    fn read(function: u32, found: &Insn<'_>) -> Self {
        Self {
            function,
            address: found.address() as u32,
            bytes: found.bytes().to_vec(),
            mnemonic: found.mnemonic().unwrap_or_default().to_owned(),
            operands: found.op_str().unwrap_or_default().to_owned(),
        }
    }
}

/// The functions of a binary by their first addresses, and what else is known of it.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub functions: BTreeMap<u32, Function>,
    /// All instructions, by address.
    pub code: Vec<Instruction>,
    /// Functions whose address is somewhere outside of a table of vectors.
    pub taken: BTreeSet<u32>,
    /// Functions whose address is in the linker's table of addresses, by the place there. The table is only
    /// read.
    linked: BTreeMap<u32, u32>,
    /// Functions that may come on top of the one that leaves for a guest.
    handlers: BTreeSet<u32>,
    /// The bytes of the stack that a crash record has for itself, if it has some.
    pub crash_room: Option<u32>,
}

/// A chain of calls: its bytes, and its functions.
pub(super) type Chain = (u32, Vec<u32>);

/// Returns the value of a symbol.
pub(super) fn symbol(file: &object::File<'_>, wanted: &str) -> Result<u32, String> {
    let found = file.symbols().find(|symbol| symbol.name() == Ok(wanted));
    found
        .map(|symbol| symbol.address() as u32)
        .ok_or(format!("no symbol {wanted}"))
}

impl Program {
    pub(super) fn read(file: &object::File<'_>, way: &dyn Way) -> Result<Self, String> {
        let mut program = Self {
            crash_room: symbol(file, CRASH_ROOM).ok(),
            ..Self::default()
        };
        program.find_functions(file, way);
        let table = match way.traps() {
            Traps::Table { name, bytes, .. } => Some((symbol(file, name)?, bytes)),
            Traps::Functions(_) => None,
        };
        for section in file.sections() {
            let name = section.name().unwrap_or_default();
            // Sections for a debugger have no place in memory.
            if section.address() != 0 && way.has_addresses(name) {
                program.find_addresses(&section, way, file.is_little_endian(), table);
            }
        }
        program.disassemble(file, way)?;
        let functions = &program.functions;
        program.taken.retain(|address| {
            let name = functions.get(address).map_or("", |function| &function.name);
            !way.firsts().contains(&name) && !way.is_uncalled(name)
        });
        let handlers: Vec<u32> = match way.traps() {
            Traps::Table { except, .. } => {
                let is_of_guests = |address: &&u32| {
                    let handler = program.functions.get(address);
                    handler.is_some_and(|handler| !except.contains(&handler.name.as_str()))
                };
                program.handlers.iter().filter(is_of_guests).copied().collect()
            }
            Traps::Functions(names) => {
                let found = names.iter().map(|name| program.named(name));
                found.collect::<Result<_, _>>()?
            }
        };
        program.handlers = handlers.into_iter().collect();
        Ok(program)
    }

    fn find_functions(&mut self, file: &object::File<'_>, way: &dyn Way) {
        let texts: Vec<_> = file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
            .map(|section| section.index())
            .collect();
        for symbol in file.symbols() {
            let name = symbol.name().unwrap_or("?");
            let in_text = symbol.section_index().is_some_and(|index| texts.contains(&index));
            let is_typed = symbol.kind() == SymbolKind::Text;
            let is_function = is_typed && symbol.is_definition() || way.has_untyped() && in_text;
            if !is_function || name.is_empty() || name.starts_with('$') || name.starts_with(".L") {
                continue;
            }
            let address = symbol.address() as u32;
            let address = way
                .pointed(address | 1)
                .filter(|even| *even & 1 == 0)
                .unwrap_or(address);
            let function = self.functions.entry(address).or_default();
            if is_typed || function.name.is_empty() || function.name.starts_with("__") {
                name.clone_into(&mut function.name);
            }
        }
    }

    /// Notes the functions whose addresses are words of a section.
    fn find_addresses(
        &mut self,
        section: &object::Section<'_, '_>,
        way: &dyn Way,
        is_little: bool,
        table: Option<(u32, u32)>,
    ) {
        let (start, data) = (section.address() as u32, section.data().unwrap_or(&[]));
        let is_linkers = section.name() == Ok(LINKED);
        let step = way.word();
        for (place, bytes) in (start..).step_by(step).zip(data.chunks_exact(step)) {
            let mut word = [0; 8];
            match is_little {
                true => word[..step].copy_from_slice(bytes),
                false => word[8 - step..].copy_from_slice(bytes),
            }
            let word = match is_little {
                true => u64::from_le_bytes(word),
                false => u64::from_be_bytes(word),
            };
            let Some(address) = u32::try_from(word).ok().and_then(|word| way.pointed(word)) else {
                continue;
            };
            if !self.functions.contains_key(&address) {
                continue;
            }
            if is_linkers {
                self.linked.insert(place, address);
            }
            match table {
                Some((table, bytes)) if place >= table && place - table < bytes => {
                    self.handlers.insert(address);
                }
                // The lines of devices.
                Some((table, _)) if place >= table && place - table < 1024 => {}
                _ => {
                    self.taken.insert(address);
                }
            }
        }
    }

    fn disassemble(&mut self, file: &object::File<'_>, way: &dyn Way) -> Result<(), String> {
        // Mapping symbols (Arm IHI 0044, 5.5.5) tell code from data.
        let mut map = BTreeMap::new();
        for symbol in file.symbols() {
            let name = symbol.name().unwrap_or("");
            if name.starts_with("$t") || name.starts_with("$x") || name.starts_with("$d") {
                map.insert(symbol.address() as u32, !name.starts_with("$d"));
            }
        }
        let is_code = |address: u32| map.range(..=address).next_back().is_none_or(|(_, code)| *code);
        let disassembler = way.disassembler().map_err(|error| error.to_string())?;
        let texts = file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text);
        for section in texts.filter(|section| section.size() != 0) {
            let (start, data) = (section.address() as u32, section.data().unwrap_or(&[]));
            let mut at = 0;
            let mut own = None;
            let mut registers = Registers::default();
            while at < data.len() {
                let address = start + at as u32;
                let function = self.functions.range(..=address).next_back();
                let name = function.map_or("", |(_, function)| &function.name);
                let is_no_code = !is_code(address) || way.is_no_code(name, &data[at..]);
                let found = match function.map(|(first, _)| *first) {
                    Some(_) if is_no_code => None,
                    None => None,
                    Some(first) => {
                        if own != Some(first) {
                            (own, registers) = (Some(first), Registers::default());
                        }
                        let end = (at + 16).min(data.len());
                        let found = disassembler.disasm_count(&data[at..end], u64::from(address), 1);
                        Some((first, found.map_err(|error| error.to_string())?))
                    }
                };
                match found
                    .as_ref()
                    .and_then(|(first, found)| Some((*first, found.first()?)))
                {
                    Some((first, instruction)) => {
                        registers.next = address + instruction.len() as u32;
                        self.add(first, way, &mut registers, instruction)?;
                        self.code.push(Instruction::read(first, instruction));
                        at += instruction.len();
                    }
                    None => {
                        let end = (at + way.shortest()).min(data.len());
                        if let (Some((function, _)), Some(bytes)) = (found, data.get(at..end)) {
                            self.code.push(Instruction {
                                function,
                                address,
                                bytes: bytes.to_vec(),
                                ..Instruction::default()
                            });
                        }
                        at = end;
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes a program of one function, of these bytes.
    #[cfg(test)]
    pub(super) fn of_code(way: &dyn Way, first: u32, code: &[u8]) -> Self {
        let mut program = Self::default();
        let function = Function {
            name: "test".to_owned(),
            ..Function::default()
        };
        program.functions.insert(first, function);
        let disassembler = way.disassembler().expect("a disassembler");
        let found = disassembler.disasm_all(code, first.into()).expect("code");
        program
            .code
            .extend(found.iter().map(|found| Instruction::read(first, found)));
        program
    }

    /// Adds an instruction to its function.
    fn add(
        &mut self,
        own: u32,
        way: &dyn Way,
        registers: &mut Registers,
        instruction: &Insn<'_>,
    ) -> Result<(), String> {
        let mnemonic = instruction.mnemonic().unwrap_or_default();
        let operands = instruction.op_str().unwrap_or_default();
        let step = way.step(registers, mnemonic, operands);
        let to = |to| self.functions.range(..=to).next_back().map(|(to, _)| *to);
        let Some(name) = self.functions.get(&own).map(|function| function.name.clone()) else {
            return Ok(());
        };
        let step = step.map_err(|why| format!("{name}: {why}"))?;
        let linked = step.place.and_then(|place| self.linked.get(&place).copied());
        let to = linked.or(step.to.and_then(to)).filter(|to| *to != own);
        let makes = step
            .makes
            .into_iter()
            .filter(|address| self.functions.contains_key(address));
        self.taken
            .extend(makes.filter(|address| *address != own).collect::<Vec<_>>());
        if let Some(function) = self.functions.get_mut(&own) {
            function.size += step.takes;
            function.calls.extend(to);
            function.calls_by_address |= step.by_address && linked.is_none();
        }
        Ok(())
    }

    /// Returns the path of a function in the source.
    pub(super) fn path(&self, address: u32) -> String {
        let function = self.functions.get(&address);
        function.map_or_else(String::new, |function| {
            format!("{:#}", rustc_demangle::demangle(&function.name))
        })
    }

    /// Returns the address of a function, by its symbol or by its path.
    pub(super) fn named(&self, name: &str) -> Result<u32, String> {
        let is_it = |function: &Function| {
            function.name == name || format!("{:#}", rustc_demangle::demangle(&function.name)) == name
        };
        let found = self.functions.iter().find(|(_, function)| is_it(function));
        found
            .map(|(address, _)| *address)
            .ok_or(format!("no function {name}"))
    }

    /// Tells whether a function is in a table of vectors.
    pub(super) fn is_handler(&self, address: u32) -> bool {
        self.handlers.contains(&address)
    }

    fn may_be_active_twice(&self, address: u32) -> bool {
        let path = self.path(address);
        ONCE_ON_ONE_PCPU.iter().any(|known| path.ends_with(known))
    }

    /// Ends a chain at a function that is active already, or refuses it.
    fn cycle(&self, from: u32, active: &[u32]) -> Result<Chain, String> {
        let start = active.iter().position(|address| *address == from).unwrap_or(0);
        let cycle = active.get(start..).unwrap_or(&[]);
        let names: Vec<String> = cycle.iter().map(|address| self.path(*address)).collect();
        let is_known = |name: &String| ONCE_ON_ONE_PCPU.iter().any(|known| name.ends_with(known));
        if names.iter().any(is_known) {
            return Ok((0, Vec::new()));
        }
        Err(format!("calls without a bound: {}", names.join(" -> ")))
    }

    /// Returns the deepest chain from a function on. `active` are those that are being looked at: a call of
    /// one of them would have no bound.
    pub(super) fn deepest(
        &self,
        from: u32,
        by_address: u32,
        known: &mut BTreeMap<(u32, u32), Chain>,
        active: &mut Vec<u32>,
    ) -> Result<Chain, String> {
        if let Some(chain) = known.get(&(from, by_address)) {
            return Ok(chain.clone());
        }
        let Some(function) = self.functions.get(&from) else {
            return Ok((0, Vec::new()));
        };
        if active.contains(&from) {
            return self.cycle(from, active);
        }
        active.push(from);
        let mut callees = function.calls.clone();
        if function.name == ENTER {
            callees.extend(&self.handlers);
        }
        let mut deepest: Chain = (0, Vec::new());
        let is_atomic = self.path(from).contains(ATOMICS);
        callees.retain(|callee| !(is_atomic && self.path(*callee).starts_with(PANICS)));
        for callee in callees {
            let chain = self.deepest(callee, by_address, known, active)?;
            if chain.0 > deepest.0 {
                deepest = chain;
            }
        }
        if let Some(rest) = by_address.checked_sub(1).filter(|_| function.calls_by_address) {
            let of_checks = function.name.contains(CHECKS);
            let may_call = |callee: &&u32| {
                let callee = self.functions.get(callee);
                of_checks || callee.is_some_and(|callee| !callee.name.contains(CHECKS))
            };
            for callee in self.taken.iter().filter(may_call) {
                let chain = self.deepest(*callee, rest, known, &mut Vec::new())?;
                if chain.0 > deepest.0 {
                    deepest = chain;
                }
            }
        }
        active.pop();
        deepest.0 += function.size;
        deepest.1.insert(0, from);
        // A chain that was cut at an active function may be longer from elsewhere.
        let is_whole = !active.iter().any(|address| self.may_be_active_twice(*address));
        if is_whole {
            known.insert((from, by_address), deepest.clone());
        }
        Ok(deepest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(functions: &[(u32, &str, u32, &[u32], bool)]) -> Program {
        let mut program = Program::default();
        for (address, name, size, calls, calls_by_address) in functions {
            let function = Function {
                name: (*name).to_owned(),
                size: *size,
                calls: calls.iter().copied().collect(),
                calls_by_address: *calls_by_address,
            };
            program.functions.insert(*address, function);
        }
        program
    }

    #[test]
    fn the_deepest_chain_goes_through_calls_by_address_and_guests() {
        let mut program = program(&[
            (2, "first", 8, &[4, 6], false),
            (4, "wide", 100, &[], false),
            (6, "narrow", 16, &[8, 10], false),
            (8, ENTER, 48, &[], false),
            (10, "by address", 24, &[], true),
            (12, "taken", 60, &[], false),
            (14, "trap", 40, &[], false),
            (16, "crash", 500, &[], false),
        ]);
        let deepest =
            |program: &Program| program.deepest(2, BY_ADDRESS, &mut BTreeMap::new(), &mut Vec::new());
        assert_eq!(deepest(&program), Ok((108, vec![2, 4])));
        program.taken.insert(12);
        assert_eq!(deepest(&program), Ok((108, vec![2, 4])));
        program.handlers.extend([14]);
        assert_eq!(deepest(&program), Ok((112, vec![2, 6, 8, 14])));
        if let Some(taken) = program.functions.get_mut(&12) {
            taken.size = 70;
            taken.calls.insert(10);
        }
        let through = [2, 6, 10, 12, 10, 12, 10, 12, 10];
        assert_eq!(
            deepest(&program),
            Ok((8 + 16 + 4 * 24 + 3 * 70, through.to_vec()))
        );
        if let Some(wide) = program.functions.get_mut(&4) {
            wide.calls.insert(2);
        }
        let cycle = "calls without a bound: first -> wide".to_owned();
        assert_eq!(deepest(&program), Err(cycle));
    }
}
