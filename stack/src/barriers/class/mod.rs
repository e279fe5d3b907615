// SPDX-License-Identifier: Apache-2.0
//! The rules of each class: which instructions begin a fact, end it, or may not come while it is pending.

mod aarch64;
mod cortex_m;
mod ppc405;
mod x86_64;

use super::flow::{Facts, Flow, Node};
use crate::program::Program;

/// The list of classes.
static CLASSES: [&Rules; 5] = [
    &aarch64::AARCH64,
    &cortex_m::ARMV7M,
    &cortex_m::ARMV8M,
    &ppc405::PPC405,
    &x86_64::X86_64,
];

/// A rule: a fact that has to end in time.
pub(super) struct Rule {
    /// The fact.
    pub fact: &'static str,
    /// The end that it needs.
    pub end: &'static str,
    /// The manual that says so, and its section.
    pub manual: &'static str,
}

/// The bytes of memory at an address, if they are in the binary.
pub(super) type Word<'a> = &'a dyn Fn(u32) -> Option<u32>;

/// The checker's knowledge of a class. The text of an instruction is its mnemonic and its operands.
pub(super) struct Rules {
    /// The name of the class.
    name: &'static str,
    /// The rules, in the order of the bits of [`Facts`].
    pub rules: &'static [Rule],
    /// The facts that are pending before the first instruction.
    pub at_start: Facts,
    /// Returns the way on from an instruction.
    flow: fn(&str, &str) -> Flow,
    /// Notes the facts of an instruction, whose flow is known.
    read: fn(&mut Node, &str, &str),
    /// Notes what one instruction alone does not say.
    refine: fn(&mut [Node], &Program, Word<'_>),
    /// Returns the addresses of sequences that may not be there, with the reason.
    pub sequences: fn(&Program) -> Vec<(u32, &'static str)>,
}

impl Rules {
    /// Reads all instructions.
    pub fn nodes(&self, program: &Program, word: Word<'_>) -> Vec<Node> {
        let instructions = program.code.iter();
        let mut nodes: Vec<Node> = instructions
            .map(|instruction| {
                let mut node = Node {
                    address: instruction.address,
                    function: instruction.function,
                    flow: (self.flow)(&instruction.mnemonic, &instruction.operands),
                    ..Node::default()
                };
                (self.read)(&mut node, &instruction.mnemonic, &instruction.operands);
                node
            })
            .collect();
        (self.refine)(&mut nodes, program, word);
        nodes
    }
}

/// Returns the rules of a class.
pub(super) fn of(name: &str) -> Option<&'static Rules> {
    CLASSES.iter().find(|rules| rules.name == name).copied()
}

/// Returns the bits of these facts.
const fn facts(list: &[usize]) -> Facts {
    let mut bits = 0;
    let mut index = 0;
    while index < list.len() {
        bits |= 1 << list[index];
        index += 1;
    }
    bits
}
