// SPDX-License-Identifier: Apache-2.0
//! Computes the deepest chain of calls in the machine code of the class binary of microcontrollers, and
//! checks that it fits the stack.
//!
//! A function takes what its instructions take from the stack pointer, all of them added up: a function that
//! takes it by one of two ways counts with both. It calls what it branches to outside of itself. A call by an
//! address may lead to any function whose address is in the binary, but for those in the vector table alone.
//! Of such calls some may be active at a time (`BY_ADDRESS`): an iterator behind a pointer calls a closure.
//! The exceptions of a guest come while `bulkhead_enter` is active, on top of it. A prompt line may come
//! anywhere, and so may a fault of the hypervisor's own.

use crate::{Outcome, size};
use bulkhead_abi::log::SMALL;
use capstone::arch::arm::{ArchExtraMode, ArchMode};
use capstone::prelude::{BuildsCapstone, BuildsCapstoneExtraMode};
use capstone::{Capstone, Insn};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::collections::{BTreeMap, BTreeSet};

/// The function that leaves for a guest, and is there when an exception comes back from it.
const ENTER: &str = "bulkhead_enter";
/// The first function on the stack, the handler of all that should not happen, and the vector table.
const FIRST: &str = "bulkhead_first";
const CRASH: &str = "bulkhead_crash";
const VECTORS: &str = "bulkhead_vectors";
/// The symbol whose value is the part of the stack that a crash record has for itself.
const CRASH_ROOM: &str = "bulkhead_crash_room";
/// Handlers that run on an empty stack, or never beside a guest.
const NOT_OF_GUESTS: [&str; 3] = ["bulkhead_start", FIRST, CRASH];
/// Bytes that the CPU pushes for an exception of the hypervisor (Arm DDI 0403E.e, B1.5.7): it uses no
/// floating-point registers. Its stack pointer may have to be aligned.
const FRAME: u32 = 36;
/// The linker's filling between functions.
const FILL: [u8; 2] = [0xD4; 2];
/// Calls by an address that are active at a time.
const BY_ADDRESS: u32 = 3;
/// Functions that may be active twice, as the code says, and never are on one pCPU: `end_pause` takes all
/// events of a gate before it asks whether the gate has more. Only another pCPU can have sent one by then.
const ONCE_ON_ONE_PCPU: [&str; 1] = ["::wake_all"];
/// The crate whose closures and iterators nobody else calls: it hands none out.
const CHECKS: &str = "bulkhead_image";
/// Bytes of the vector table: the CPU's exceptions, and the first lines, which are all alike.
const VECTOR_BYTES: u32 = 17 * 4;

/// A function: its name, the bytes it takes from the stack, where it branches to, and whether it also calls
/// by an address.
#[derive(Debug, Default, PartialEq, Eq)]
struct Function {
    name: String,
    size: u32,
    calls: BTreeSet<u32>,
    calls_by_address: bool,
}

/// The functions of a binary by their first addresses, and what else is known of it.
#[derive(Debug, Default)]
struct Program {
    functions: BTreeMap<u32, Function>,
    /// Functions whose address is somewhere outside of the vector table.
    taken: BTreeSet<u32>,
    /// Handlers of the vector table.
    handlers: BTreeSet<u32>,
    stack: u32,
    /// The bytes of the stack that a crash record has for itself, if it has some.
    crash_room: Option<u32>,
}

/// The needs of the stack, in bytes.
struct Needs {
    /// The deepest chain of calls.
    calls: u32,
    /// The deepest chain of a crash record.
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
        let deepest = self.calls + FRAME;
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

/// A chain of calls: its bytes, and its functions.
type Chain = (u32, Vec<u32>);

/// Returns the bytes by which an instruction lowers the stack pointer.
fn taken_by(mnemonic: &str, operands: &str) -> Result<u32, String> {
    let unknown = || format!("`{mnemonic} {operands}` takes an unknown number of bytes");
    let base = mnemonic.trim_end_matches(".w");
    let immediate = || {
        let digits = operands
            .rsplit_once('#')
            .map(|(_, digits)| digits.trim_end_matches(['!', ']']));
        let digits = digits.map(|digits| digits.trim_start_matches('-'));
        let value = digits.and_then(|digits| match digits.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        });
        value.ok_or_else(unknown)
    };
    let count = operands
        .split('{')
        .nth(1)
        .map_or(0, |list| list.split(',').count() as u32);
    match base {
        "push" => Ok(4 * count),
        "stmdb" if operands.starts_with("sp!") => Ok(4 * count),
        "vpush" | "vstmdb" if base == "vpush" || operands.starts_with("sp!") => {
            Ok(if operands.contains("{d") { 8 } else { 4 } * count)
        }
        "sub" | "subw" if operands.starts_with("sp,") => immediate(),
        "str" | "strd" if operands.contains("[sp, #-") && operands.ends_with('!') => immediate(),
        // Where the stack begins, and where another takes its place.
        _ => Ok(0),
    }
}

/// Returns the address that an instruction branches to, if it is a constant.
fn target(mnemonic: &str, operands: &str) -> Option<u32> {
    let is_branch =
        mnemonic.starts_with('b') && !matches!(mnemonic, "bx" | "blx" | "bic" | "bics" | "bfi" | "bfc");
    let digits = operands.strip_prefix("#0x").filter(|_| is_branch)?;
    u32::from_str_radix(digits, 16).ok()
}

impl Program {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
        let mut program = Self::default();
        let find = |wanted: &str| {
            let symbol = file.symbols().find(|symbol| symbol.name() == Ok(wanted));
            symbol
                .map(|symbol| symbol.address() as u32)
                .ok_or(format!("no symbol {wanted}"))
        };
        program.stack = find("__stack_top")? - find("__stack_bottom")?;
        program.crash_room = find(CRASH_ROOM).ok();
        let vectors = find(VECTORS)?;
        let text =
            |symbol: &object::Symbol<'_, '_>| symbol.kind() == SymbolKind::Text && symbol.is_definition();
        for symbol in file.symbols().filter(text) {
            let name = symbol.name().unwrap_or("?");
            if !name.starts_with('$') {
                let function = program.functions.entry(symbol.address() as u32 & !1).or_default();
                name.clone_into(&mut function.name);
            }
        }
        // Mapping symbols (Arm IHI 0044, 5.5.5) tell code from data.
        let mut map = BTreeMap::new();
        for symbol in file.symbols() {
            let name = symbol.name().unwrap_or("");
            if name.starts_with("$t") || name.starts_with("$d") {
                map.insert(symbol.address() as u32, name.starts_with("$t"));
            }
        }
        let is_code = |address: u32| map.range(..=address).next_back().is_some_and(|(_, code)| *code);
        let disassembler = Capstone::new()
            .arm()
            .mode(ArchMode::Thumb)
            .extra_mode([ArchExtraMode::MClass].into_iter())
            .build()
            .map_err(|error| error.to_string())?;
        for section in file.sections() {
            if section.address() == 0 {
                continue;
            }
            let (start, data) = (section.address() as u32, section.data().unwrap_or(&[]));
            program.find_addresses(start, data, vectors);
            if section.kind() != SectionKind::Text {
                continue;
            }
            let mut at = 0;
            while at + 1 < data.len() {
                let address = start + at as u32;
                let found = disassembler.disasm_count(&data[at..], u64::from(address), 1);
                let found = found.map_err(|error| error.to_string())?;
                let is_filled = data[at..at + 2] == FILL;
                match found.first().filter(|_| is_code(address) && !is_filled) {
                    Some(instruction) => {
                        program.add(address, instruction)?;
                        at += instruction.len();
                    }
                    None => at += 2,
                }
            }
        }
        Ok(program)
    }

    /// Notes the functions whose addresses are words of these bytes.
    fn find_addresses(&mut self, start: u32, data: &[u8], vectors: u32) {
        for (place, word) in (start..).step_by(4).zip(data.chunks_exact(4)) {
            let word = u32::from_le_bytes(word.try_into().unwrap_or_default());
            if word & 1 == 1 && self.functions.contains_key(&(word & !1)) {
                if place >= vectors && place - vectors < VECTOR_BYTES {
                    self.handlers.insert(word & !1);
                } else if place < vectors || place - vectors >= 1024 {
                    self.taken.insert(word & !1);
                }
            }
        }
    }

    /// Adds an instruction to its function.
    fn add(&mut self, address: u32, instruction: &Insn<'_>) -> Result<(), String> {
        let mnemonic = instruction.mnemonic().unwrap_or_default();
        let operands = instruction.op_str().unwrap_or_default();
        let to = target(mnemonic, operands).and_then(|to| self.functions.range(..=to).next_back());
        let to = to.map(|(to, _)| *to);
        let Some((own, function)) = self.functions.range_mut(..=address).next_back() else {
            return Ok(());
        };
        function.size += taken_by(mnemonic, operands).map_err(|why| format!("{}: {why}", function.name))?;
        function.calls.extend(to.filter(|to| to != own));
        let is_register = !operands.starts_with('#') && operands != "lr";
        function.calls_by_address |= matches!(mnemonic, "bx" | "blx") && is_register;
        Ok(())
    }

    fn named(&self, name: &str) -> Result<u32, String> {
        let found = self.functions.iter().find(|(_, function)| function.name == name);
        found
            .map(|(address, _)| *address)
            .ok_or(format!("no function {name}"))
    }

    fn may_be_active_twice(&self, address: u32) -> bool {
        let function = self.functions.get(&address);
        function.is_some_and(|function| {
            let name = format!("{:#}", rustc_demangle::demangle(&function.name));
            ONCE_ON_ONE_PCPU.iter().any(|known| name.ends_with(known))
        })
    }

    /// Ends a chain at a function that is active already, or refuses it.
    fn cycle(&self, from: u32, active: &[u32]) -> Result<Chain, String> {
        let start = active.iter().position(|address| *address == from).unwrap_or(0);
        let cycle = active.get(start..).unwrap_or(&[]);
        let names: Vec<String> = cycle
            .iter()
            .filter_map(|address| self.functions.get(address))
            .map(|function| format!("{:#}", rustc_demangle::demangle(&function.name)))
            .collect();
        let is_known = |name: &String| ONCE_ON_ONE_PCPU.iter().any(|known| name.ends_with(known));
        if names.iter().any(is_known) {
            return Ok((0, Vec::new()));
        }
        Err(format!("calls without a bound: {}", names.join(" -> ")))
    }

    /// Returns the deepest chain from a function on. `active` are those that are being looked at: a call of
    /// one of them would have no bound.
    fn deepest(
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
            let of_guests = |address: &&u32| {
                let handler = self.functions.get(address);
                handler.is_some_and(|handler| !NOT_OF_GUESTS.contains(&handler.name.as_str()))
            };
            callees.extend(self.handlers.iter().filter(of_guests));
        }
        let mut deepest: Chain = (0, Vec::new());
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

/// Prints the deepest chain of calls of the class binary. It is a finding if the stack has no room for it and
/// a frame on top of it, or if a crash record then has no room.
pub fn check() -> Outcome {
    let path = size::class_binary(true)?;
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let program = Program::read(&bytes)?;
    let mut known = BTreeMap::new();
    let (calls, chain) = program.deepest(program.named(FIRST)?, BY_ADDRESS, &mut known, &mut Vec::new())?;
    let (crash, _) = program.deepest(program.named(CRASH)?, BY_ADDRESS, &mut known, &mut Vec::new())?;
    println!(
        "stack {}  deepest chain {calls}  a frame {FRAME}  a crash record {crash}",
        program.stack
    );
    for address in &chain {
        if let Some(function) = program.functions.get(address) {
            println!(
                "{:>7}  {:#}",
                function.size,
                rustc_demangle::demangle(&function.name)
            );
        }
    }
    let crash_room = program.crash_room;
    let needs = Needs {
        calls,
        crash,
        crash_room,
    };
    let findings = needs.findings(program.stack);
    let told = |finding: String| format!("{finding} (hypervisor/armv7m/link.ld)");
    Ok(findings.into_iter().map(told).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_takes_what_the_manual_says() {
        let taken = |mnemonic, operands| taken_by(mnemonic, operands);
        assert_eq!(taken("push", "{r4, r5, lr}"), Ok(12));
        assert_eq!(taken("push.w", "{r4, r5, r6, r7, r8, sb, sl, fp, lr}"), Ok(36));
        assert_eq!(taken("stmdb", "sp!, {r4, lr}"), Ok(8));
        assert_eq!(taken("stmdb", "r0!, {r4, lr}"), Ok(0));
        assert_eq!(taken("vpush", "{d8, d9}"), Ok(16));
        assert_eq!(taken("sub", "sp, #0x18"), Ok(24));
        assert_eq!(taken("sub.w", "sp, sp, #0x1100"), Ok(4352));
        assert_eq!(taken("subw", "sp, sp, #1028"), Ok(1028));
        assert_eq!(taken("sub", "r0, #4"), Ok(0));
        assert_eq!(taken("str", "lr, [sp, #-4]!"), Ok(4));
        assert_eq!(taken("str", "r0, [sp, #4]"), Ok(0));
        assert!(taken("sub.w", "sp, sp, r0").is_err());
        assert_eq!(target("bl", "#0x3d8400"), Some(0x3D_8400));
        assert_eq!(target("bne.w", "#0x3d8400"), Some(0x3D_8400));
        assert_eq!(target("blx", "r3"), None);
    }

    #[test]
    fn a_crash_record_fits_on_top_of_the_deepest_chain_or_has_a_place_of_its_own() {
        let words = 4 * SMALL.stack_words as u32;
        let finds = |crash_room, stack| {
            let needs = Needs {
                calls: 7000,
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
            (2, FIRST, 8, &[4, 6], false),
            (4, "wide", 100, &[], false),
            (6, "narrow", 16, &[8, 10], false),
            (8, ENTER, 48, &[], false),
            (10, "by address", 24, &[], true),
            (12, "taken", 60, &[], false),
            (14, "trap", 40, &[], false),
            (16, CRASH, 500, &[], false),
        ]);
        let deepest =
            |program: &Program| program.deepest(2, BY_ADDRESS, &mut BTreeMap::new(), &mut Vec::new());
        assert_eq!(deepest(&program), Ok((108, vec![2, 4])));
        program.taken.insert(12);
        assert_eq!(deepest(&program), Ok((108, vec![2, 4])));
        program.handlers.extend([2, 14, 16]);
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
        let cycle = format!("calls without a bound: {FIRST} -> wide");
        assert_eq!(deepest(&program), Err(cycle));
    }
}
