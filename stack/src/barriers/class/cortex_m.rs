// SPDX-License-Identifier: Apache-2.0
//! The rules of classes `armv7m` (Arm DDI 0403E) and `armv8m` (Arm DDI 0553B). An exception and a return from
//! one synchronize the context, but finish no store.
//!
//! The registers of these processors are memory, so the rules follow the constants that a function computes
//! addresses from. A store whose address is unknown begins no fact but the one of a store. A constant that is
//! kept on the stack or in memory is unknown afterwards.

use super::{Rule, Rules, Word, facts};
use crate::barriers::flow::{Facts, Flow, Node};
use crate::program::{Instruction, Program};
use std::collections::BTreeSet;

/// Class `armv7m`.
pub(super) static ARMV7M: Rules = Rules {
    name: "armv7m",
    rules: RULES,
    at_start: 0,
    flow,
    read,
    refine: |nodes, program, word| refine(nodes, program, word, false),
    sequences: |_| Vec::new(),
};

/// Class `armv8m`.
pub(super) static ARMV8M: Rules = Rules {
    name: "armv8m",
    rules: RULES,
    at_start: 0,
    flow,
    read,
    refine: |nodes, program, word| refine(nodes, program, word, true),
    sequences: sequences_of_worlds,
};

const STORE: usize = 0;
const UNIT: usize = 1;
const LINES: usize = 2;
const SWITCH: usize = 3;
const SWITCHED: usize = 4;
const STACK: usize = 5;

/// The rules, in the order of the constants above.
static RULES: &[Rule] = &[
    Rule {
        fact: "a store",
        end: "a DSB before WFI",
        manual: "DDI 0403E B1.5.19, \"Wait For Interrupt\"; DDI 0553B B3.19",
    },
    Rule {
        fact: "a write of the protection or attribution unit, VTOR, CCR or CPACR",
        end: "a DSB before an exception return and a branch to the other world",
        manual: "DDI 0403E B3.5.1 and A3.7.3; DDI 0553B B6.4",
    },
    Rule {
        fact: "a write of the interrupt controller",
        end: "a DSB before an exception return",
        manual: "DDI 0403E B3.4.1; erratum 1435973 of Cortex-M33",
    },
    Rule {
        fact: "a write that switches a unit on or off",
        end: "a DSB before the function ends",
        manual: "DDI 0403E B3.5.1; DDI 0553B B6.4",
    },
    Rule {
        fact: "a finished write that switches a unit on or off",
        end: "an ISB before the function ends and a branch to the other world",
        manual: "DDI 0403E B3.5.1; DDI 0553B B6.4",
    },
    Rule {
        fact: "a write of CONTROL",
        end: "an ISB before the function ends, or an exception return",
        manual: "DDI 0403E B1.4.4; DDI 0553B D1.2.93",
    },
];

/// Functions whose writes of the interrupt controller are not followed, by the ends of their paths. A flag of
/// the program excludes the ways without a barrier: a VM whose lines were taken back is let run again by
/// `Machine::unpark`, which sees that in `lines_are_out` and synchronizes.
const EXCUSED: [&str; 1] = ["::Interrupts>::take_back"];

/// The instruction SG, by which the Non-secure world may come in (C2.4.199).
const GATE: [u8; 4] = [0x7F, 0xE9, 0x7F, 0xE9];
/// Reasons why a sequence may not be there.
const HAS_GATE: &str = "an SG instruction: the Non-secure world may enter at it";
const LAZY: &str = "VLLDM or VLSTM (CVE-2021-35465)";

/// Follows the addresses of stores, and conditions that an earlier instruction has set.
fn refine(nodes: &mut [Node], program: &Program, word: Word<'_>, has_worlds: bool) {
    for (node, before) in nodes.iter_mut().skip(1).zip(&program.code) {
        // The CPU sleeps for good.
        if before.mnemonic == "cpsid" {
            node.needs = 0;
        }
    }
    let conditional = conditional(&program.code);
    for (node, is_conditional) in nodes.iter_mut().zip(&conditional) {
        node.flow = match node.flow {
            Flow::Return(_) if *is_conditional => Flow::Return(true),
            Flow::Jump(to, _) if *is_conditional => Flow::Jump(to, true),
            flow => flow,
        };
    }
    let functions: BTreeSet<u32> = nodes.iter().map(|node| node.function).collect();
    for function in functions {
        let start = nodes.partition_point(|node| node.address < function);
        let length = nodes[start..]
            .iter()
            .take_while(|node| node.function == function)
            .count();
        let range = start..start + length;
        let is_ours = is_assembly(program, function);
        let code = &program.code[range.clone()];
        let mut constants = Constants::new(code, &conditional[range.clone()], word);
        constants.find(&nodes[range.clone()]);
        let path = program.path(function);
        let excused = EXCUSED.iter().any(|end| path.ends_with(end));
        let excused = if excused { facts(&[LINES]) } else { 0 };
        for (place, node) in nodes[range].iter_mut().enumerate() {
            let begun = constants
                .stored(place)
                .map_or(0, |address| begun_by(address, has_worlds));
            node.begins |= begun & !excused;
            if is_ours && node.flow == Flow::Return(false) && constants.code[place].operands == "lr" {
                leave(node);
            }
        }
    }
}

/// Returns the sequences that may not be there.
fn sequences_of_worlds(program: &Program) -> Vec<(u32, &'static str)> {
    let mut found = Vec::new();
    for (index, instruction) in program.code.iter().enumerate() {
        if instruction.mnemonic.starts_with("vlldm") || instruction.mnemonic.starts_with("vlstm") {
            found.push((instruction.address, LAZY));
        }
        let following = program.code[index..].iter().take(2);
        let bytes: Vec<u8> = following.flat_map(|found| found.bytes.iter().copied()).collect();
        let halves = bytes.windows(4).step_by(2);
        let within = instruction.bytes.len() / 2;
        if halves.take(within).any(|half| half == GATE) {
            found.push((instruction.address, HAS_GATE));
        }
    }
    found
}

/// Returns the facts that a store to a register of the processor begins.
fn begun_by(address: u32, has_worlds: bool) -> Facts {
    // The second is another view of the registers of the Non-secure world.
    let is_own = match address >> 12 {
        0xE_000E => true,
        0xE_002E => false,
        _ => return 0,
    };
    match address & 0xFFF {
        // ISER, ICER, ITNS and IPR.
        0x100..=0x1FF | 0x380..=0x3FF | 0x400..=0x5EF if has_worlds => facts(&[LINES]),
        // MPU_CTRL, SAU_CTRL, VTOR, CCR and CPACR.
        0xD94 | 0xDD0 | 0xD08 | 0xD14 | 0xD88 if is_own => facts(&[UNIT, SWITCH]),
        0xD90..=0xDE3 | 0xD08 | 0xD14 | 0xD88 => facts(&[UNIT]),
        _ => 0,
    }
}

/// Makes a return one from an exception.
fn leave(node: &mut Node) {
    node.flow = Flow::Leave;
    node.needs |= facts(&[UNIT, LINES, SWITCH]);
    node.promises = 0;
    node.ends = facts(&[SWITCHED, STACK]);
}

/// Tells whether a function is written in assembly, where `bx lr` returns from an exception.
fn is_assembly(program: &Program, function: u32) -> bool {
    const RETURNS: [&str; 3] = ["bulkhead_enter", "bulkhead_resume", "bulkhead_early"];
    let name = program
        .functions
        .get(&function)
        .map_or("", |function| &function.name);
    program.is_handler(function) || RETURNS.iter().any(|known| name.starts_with(known))
}

/// Tells for each instruction whether an IT before it makes it conditional (A7.7.38). The disassembler sees
/// one instruction at a time, so it does not say.
fn conditional(code: &[Instruction]) -> Vec<bool> {
    let mut left = 0;
    let mut of = |instruction: &Instruction| {
        let is_conditional = left > 0;
        left = match instruction.mnemonic.strip_prefix('i') {
            Some(rest) if rest.starts_with('t') && rest.trim_matches(['t', 'e']).is_empty() => rest.len(),
            _ => left.saturating_sub(1),
        };
        is_conditional
    };
    code.iter().map(&mut of).collect()
}

/// Returns the mnemonic without its width.
fn plain(mnemonic: &str) -> &str {
    mnemonic.trim_end_matches(".w").trim_end_matches(".n")
}

/// Notes the facts of an instruction, but not the facts that its stores begin by their addresses.
fn read(node: &mut Node, mnemonic: &str, operands: &str) {
    let mnemonic = plain(mnemonic);
    match mnemonic {
        "dsb" => {
            node.ends = facts(&[STORE, UNIT, LINES]);
            node.turns = &[(SWITCH, SWITCHED)];
        }
        "isb" => node.ends = facts(&[SWITCHED, STACK]),
        "wfi" => node.needs = facts(&[STORE]),
        "msr" if operands.starts_with("control,") => node.begins = facts(&[STACK]),
        "bxns" | "blxns" => node.needs = facts(&[UNIT, SWITCH, SWITCHED]),
        _ => {
            node.begins = if is_store(mnemonic) { facts(&[STORE]) } else { 0 };
        }
    }
    if matches!(node.flow, Flow::Return(_)) {
        node.promises = facts(&[SWITCH, SWITCHED, STACK]);
    }
}

fn is_store(mnemonic: &str) -> bool {
    ["st", "push", "vst", "vpush"]
        .iter()
        .any(|start| mnemonic.starts_with(start))
}

/// The conditions that an instruction may have at the end of its name.
const CONDITIONS: [&str; 16] = [
    "eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "cs", "cc",
];

/// Returns the name without a condition, and whether it had one.
fn unconditional<'a>(mnemonic: &'a str, names: &[&str]) -> Option<(&'a str, bool)> {
    if names.contains(&mnemonic) {
        return Some((mnemonic, false));
    }
    let (name, condition) = mnemonic.split_at_checked(mnemonic.len().checked_sub(2)?)?;
    (CONDITIONS.contains(&condition) && names.contains(&name)).then_some((name, true))
}

fn flow(mnemonic: &str, operands: &str) -> Flow {
    let to = operands
        .rsplit('#')
        .next()
        .and_then(|digits| digits.strip_prefix("0x"));
    let to = to.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let branches = [
        "b", "bl", "bx", "blx", "bxns", "blxns", "pop", "ldm", "ldr", "cbz", "cbnz", "tbb", "tbh",
    ];
    let mnemonic = plain(mnemonic);
    let Some((name, is_conditional)) = unconditional(mnemonic, &branches) else {
        return match mnemonic {
            "udf" | "trap" | "bkpt" => Flow::Stop,
            // Filling before constants.
            "movs" if operands == "r0, r0" => Flow::Stop,
            "mov" if operands.starts_with("pc,") => Flow::JumpByAddress,
            _ => Flow::Next,
        };
    };
    match (name, to) {
        ("b", Some(to)) => Flow::Jump(to, is_conditional),
        ("cbz" | "cbnz", Some(to)) => Flow::Jump(to, true),
        ("bl", Some(to)) => Flow::Call(to),
        ("bx", _) if operands == "lr" => Flow::Return(is_conditional),
        ("bx" | "tbb" | "tbh", _) => Flow::JumpByAddress,
        ("blx", _) => Flow::CallByAddress,
        ("pop" | "ldm", _) if operands.contains("pc}") => Flow::Return(is_conditional),
        ("ldr", _) if operands.starts_with("pc,") => Flow::Return(is_conditional),
        _ => Flow::Next,
    }
}

/// The contents of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Value {
    #[default]
    Unknown,
    Known(u32),
    /// Somewhat more than a constant.
    Above(u32),
}

impl Value {
    fn plus(self, by: Option<u32>) -> Self {
        match (self, by) {
            (Self::Known(value), Some(by)) => Self::Known(value.wrapping_add(by)),
            (Self::Known(value), None) => Self::Above(value),
            (Self::Above(value), _) => Self::Above(value),
            (Self::Unknown, _) => Self::Unknown,
        }
    }

    /// Returns the lowest value.
    fn base(self) -> Option<u32> {
        match self {
            Self::Unknown => None,
            Self::Known(value) | Self::Above(value) => Some(value),
        }
    }

    fn join(self, other: Self) -> Self {
        match (self.base(), other.base()) {
            (Some(own), Some(others)) if own == others && self != other => Self::Above(own),
            _ if self == other => self,
            // A loop that goes on from register to register.
            (Some(own), Some(others)) if own ^ others < 0x100 => Self::Above(own.min(others)),
            _ => Self::Unknown,
        }
    }
}

/// The registers.
type Registers = [Value; 16];

/// The registers that a function may change.
const SCRATCH: [usize; 6] = [0, 1, 2, 3, 12, 14];

/// Returns the number of a register.
fn register(name: &str) -> Option<usize> {
    let name = name.trim().trim_matches(['[', ']', '{', '}', '!']);
    match name {
        "sb" => Some(9),
        "sl" => Some(10),
        "fp" => Some(11),
        "ip" => Some(12),
        "sp" => Some(13),
        "lr" => Some(14),
        "pc" => Some(15),
        _ => name.strip_prefix('r')?.parse().ok().filter(|number| *number < 16),
    }
}

/// Reads a number after `#`.
fn immediate(text: &str) -> Option<u32> {
    let text = text.trim().trim_end_matches([']', '!']);
    text.strip_prefix('#').and_then(crate::class::number)
}

/// The constants in the registers of one function.
struct Constants<'a> {
    code: &'a [Instruction],
    conditional: &'a [bool],
    word: Word<'a>,
    states: Vec<Option<Registers>>,
}

impl<'a> Constants<'a> {
    fn new(code: &'a [Instruction], conditional: &'a [bool], word: Word<'a>) -> Self {
        Self {
            code,
            conditional,
            word,
            states: vec![None; code.len()],
        }
    }

    /// Finds the constants.
    fn find(&mut self, nodes: &[Node]) {
        let mut waiting: BTreeSet<usize> = (0..self.code.len()).collect();
        for place in 0..self.code.len() {
            // Code that nothing leads to may come from anywhere.
            let is_first = place == 0 || !falls_through(&nodes[place - 1]);
            if is_first && !is_target(nodes, place) {
                self.states[place] = Some(Registers::default());
            }
        }
        while let Some(place) = waiting.pop_first() {
            let Some(mut registers) = self.states[place] else {
                continue;
            };
            let before = registers;
            self.step(place, &mut registers);
            if self.conditional[place] {
                registers = joined(&before, &registers);
            }
            for next in successors(nodes, place) {
                let joined = match self.states[next] {
                    None => registers,
                    Some(before) => joined(&before, &registers),
                };
                if self.states[next] != Some(joined) {
                    self.states[next] = Some(joined);
                    waiting.insert(next);
                }
            }
        }
    }

    /// Returns the operands of a place, split at commas outside of brackets.
    fn operands(&self, place: usize) -> Vec<&'a str> {
        self.code[place].operands.split(", ").collect()
    }

    /// Returns the address that an instruction stores to, if it is known.
    fn stored(&self, place: usize) -> Option<u32> {
        let registers = self.states[place]?;
        let mnemonic = plain(&self.code[place].mnemonic);
        if !is_store(mnemonic) || mnemonic.starts_with('v') || mnemonic.starts_with("push") {
            return None;
        }
        let operands = self.operands(place);
        let base = operands.iter().position(|operand| operand.starts_with('['));
        let base = if mnemonic.starts_with("stm") {
            Some(0)
        } else {
            base
        }?;
        let value = registers[register(operands[base])?];
        let is_closed = operands[base].ends_with(']') || mnemonic.starts_with("stm");
        let offset = operands.get(base + 1).filter(|_| !is_closed);
        match offset {
            None => value.base(),
            Some(offset) => value.plus(immediate(offset)).base(),
        }
    }

    /// Changes the registers as an instruction does.
    fn step(&self, place: usize, registers: &mut Registers) {
        let instruction = &self.code[place];
        let mnemonic = plain(&instruction.mnemonic);
        let operands = self.operands(place);
        if matches!(mnemonic, "bl" | "blx" | "blxns") {
            for scratch in SCRATCH {
                registers[scratch] = Value::Unknown;
            }
            return;
        }
        let Some(to) = operands.first().and_then(|first| register(first)) else {
            return;
        };
        if is_store(mnemonic) || matches!(mnemonic, "cmp" | "tst" | "cbz" | "cbnz" | "msr" | "teq" | "cmn") {
            self.write_back(mnemonic, &operands, registers);
            return;
        }
        let value = self.value(instruction, mnemonic, &operands, registers);
        if mnemonic.starts_with("ldm") || mnemonic.starts_with("pop") || mnemonic.starts_with("ldrd") {
            for operand in &operands {
                if let Some(loaded) = register(operand).filter(|_| !operand.starts_with('[')) {
                    registers[loaded] = Value::Unknown;
                }
            }
            return;
        }
        self.write_back(mnemonic, &operands, registers);
        registers[to] = value;
    }

    /// Returns the value that an instruction computes.
    fn value(&self, found: &Instruction, mnemonic: &str, operands: &[&str], registers: &Registers) -> Value {
        let of = |index: usize| operands.get(index).and_then(|operand| register(operand));
        let number = |index: usize| operands.get(index).and_then(|operand| immediate(operand));
        let held = |index: usize| of(index).map_or(Value::Unknown, |register| registers[register]);
        match (mnemonic, operands.len()) {
            ("mov" | "movs" | "movw", 2) => number(1).map_or(held(1), Value::Known),
            ("movt", 2) => match (held(0), number(1)) {
                (Value::Known(low), Some(high)) => Value::Known(low & 0xFFFF | high << 16),
                _ => Value::Unknown,
            },
            ("add" | "adds" | "addw", 2) => held(0).plus(number(1)),
            ("add" | "adds" | "addw", _) => match held(1) {
                Value::Unknown => held(2).plus(None),
                value => value.plus(number(2)),
            },
            ("sub" | "subs" | "subw", 2) => held(0).plus(number(1).map(u32::wrapping_neg)),
            ("sub" | "subs" | "subw", 3) => held(1).plus(number(2).map(u32::wrapping_neg)),
            ("orr", 3) => match (held(1), number(2)) {
                (Value::Known(value), Some(bits)) => Value::Known(value | bits),
                _ => Value::Unknown,
            },
            ("ldr", 3) if operands[1] == "[pc" => {
                let next = (found.address & !3).wrapping_add(4);
                let place = number(2).map(|offset| next.wrapping_add(offset));
                place.and_then(self.word).map_or(Value::Unknown, Value::Known)
            }
            _ => Value::Unknown,
        }
    }

    /// Adds to the base register of a load or store what the instruction adds to it.
    fn write_back(&self, mnemonic: &str, operands: &[&str], registers: &mut Registers) {
        let Some(place) = operands.iter().position(|operand| operand.starts_with('[')) else {
            if let (true, Some(base)) = (operands[0].ends_with('!'), register(operands[0])) {
                registers[base] = registers[base].plus(None);
            }
            return;
        };
        let last = operands[operands.len() - 1];
        let is_after = operands[place].ends_with(']') && place + 1 < operands.len();
        let is_before = last.ends_with('!');
        if let (true, Some(base)) = (is_after || is_before, register(operands[place])) {
            let by = if mnemonic.starts_with("ld") || is_store(mnemonic) {
                immediate(last)
            } else {
                None
            };
            registers[base] = registers[base].plus(by);
        }
    }
}

fn joined(own: &Registers, other: &Registers) -> Registers {
    let mut joined = *own;
    for (value, other) in joined.iter_mut().zip(other) {
        *value = value.join(*other);
    }
    joined
}

fn falls_through(node: &Node) -> bool {
    !matches!(
        node.flow,
        Flow::Jump(_, false) | Flow::Return(false) | Flow::JumpByAddress | Flow::Leave | Flow::Stop
    )
}

fn is_target(nodes: &[Node], place: usize) -> bool {
    let address = nodes[place].address;
    nodes
        .iter()
        .any(|node| matches!(node.flow, Flow::Jump(to, _) if to == address))
}

/// Returns the places in the function that may follow.
fn successors(nodes: &[Node], place: usize) -> Vec<usize> {
    let mut next = Vec::new();
    let at = |address: u32| nodes.binary_search_by_key(&address, |node| node.address).ok();
    match nodes[place].flow {
        Flow::Jump(to, _) => next.extend(at(to)),
        // A table leads anywhere.
        Flow::JumpByAddress => next.extend(0..nodes.len()),
        _ => {}
    }
    if falls_through(&nodes[place]) && place + 1 < nodes.len() {
        next.push(place + 1);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::barriers::tests::{judged, program};

    /// `movw r0, #0xED94`, `movt r0, #0xE000`: the address of MPU_CTRL.
    const MPU: [u16; 4] = [0xF64E, 0x5094, 0xF2CE, 0x0000];
    const STORE_IT: [u16; 1] = [0x6001];
    const DSB: [u16; 2] = [0xF3BF, 0x8F4F];
    const ISB: [u16; 2] = [0xF3BF, 0x8F6F];
    const WFI: [u16; 1] = [0xBF30];
    const RETURN: [u16; 1] = [0x4770];
    const SET_CONTROL: [u16; 2] = [0xF380, 0x8814];
    const SG: [u16; 2] = [0xE97F, 0xE97F];
    /// `str r1, [r2]`.
    const STORE_ELSEWHERE: [u16; 1] = [0x6011];
    const TO_OTHER: [u16; 1] = [0x471C];
    /// A branch over the next two half-words.
    const SKIP: [u16; 1] = [0xB108];

    fn bytes(parts: &[&[u16]]) -> Vec<u8> {
        let halves = parts.iter().flat_map(|part| part.iter());
        halves.flat_map(|half| half.to_le_bytes()).collect()
    }

    fn of(parts: &[&[u16]]) -> Vec<usize> {
        judged("armv8m", &bytes(parts))
    }

    #[test]
    fn a_unit_is_switched_before_the_function_ends() {
        assert_eq!(of(&[&MPU, &STORE_IT, &DSB, &ISB, &RETURN]), []);
        assert_eq!(of(&[&MPU, &STORE_IT, &RETURN]), [SWITCH]);
        assert_eq!(of(&[&MPU, &STORE_IT, &DSB, &RETURN]), [SWITCHED]);
        assert_eq!(of(&[&MPU, &STORE_IT, &ISB, &DSB, &RETURN]), [SWITCHED]);
        assert_eq!(of(&[&MPU, &STORE_IT, &SKIP, &DSB, &ISB, &RETURN]), [SWITCH]);
        assert_eq!(of(&[&MPU, &STORE_ELSEWHERE, &RETURN]), []);
    }

    #[test]
    fn the_other_world_sees_what_was_written() {
        assert_eq!(of(&[&MPU, &STORE_IT, &TO_OTHER]), [UNIT, SWITCH]);
        assert_eq!(of(&[&MPU, &STORE_IT, &DSB, &ISB, &TO_OTHER]), []);
    }

    #[test]
    fn stores_are_done_before_the_cpu_sleeps() {
        assert_eq!(of(&[&STORE_ELSEWHERE, &WFI, &RETURN]), [STORE]);
        assert_eq!(of(&[&STORE_ELSEWHERE, &DSB, &WFI, &RETURN]), []);
    }

    #[test]
    fn control_is_in_effect_before_the_function_ends() {
        assert_eq!(of(&[&SET_CONTROL, &RETURN]), [STACK]);
        assert_eq!(of(&[&SET_CONTROL, &ISB, &RETURN]), []);
    }

    #[test]
    fn a_return_may_be_conditional() {
        /// `it hi`, `bxhi lr`.
        const RETURN_IF: [u16; 2] = [0xBF88, 0x4770];
        assert_eq!(of(&[&RETURN_IF, &MPU, &STORE_IT, &RETURN]), [SWITCH]);
        assert_eq!(of(&[&MPU, &STORE_IT, &RETURN_IF, &DSB, &ISB, &RETURN]), [SWITCH]);
    }

    #[test]
    fn no_gate_is_anywhere() {
        let found = |parts: &[&[u16]]| (ARMV8M.sequences)(&program("armv8m", &bytes(parts))).len();
        assert_eq!(found(&[&STORE_IT, &SG, &RETURN]), 1);
        assert_eq!(found(&[&STORE_IT, &DSB, &RETURN]), 0);
    }

    #[test]
    fn a_constant_is_followed_through_registers() {
        let of = |start: u32, by| Value::Known(start).plus(by);
        assert_eq!(of(0xE000_E100, Some(4)), Value::Known(0xE000_E104));
        assert_eq!(of(0xE000_E100, None), Value::Above(0xE000_E100));
        assert_eq!(Value::Known(8).join(Value::Known(8)), Value::Known(8));
        assert_eq!(Value::Known(8).join(Value::Known(12)), Value::Above(8));
        assert_eq!(Value::Known(8).join(Value::Unknown), Value::Unknown);
    }
}
