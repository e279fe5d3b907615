// SPDX-License-Identifier: Apache-2.0
//! The meaning of a health report: from the hypervisor's one line to an explanation for the user.
//!
//! The hypervisor reports numbers, because names cost memory and time on the target. The host tool has the
//! manifest, the board and the partition's own symbols, so the tool turns the numbers into an explanation.
//! The explanation says which access was tried, by which line of which program, and what is at that address.
//! The explanation also names the line of the manifest that decides, and a probable remedy.
//!
//! | file | |
//! |---|---|
//! | `registers` | the registers after a report, which come line by line |
//! | `symbols` | the line of the program |
//! | `address` | the meaning of an address of a partition |
//! | `remedy` | the probable remedy |

mod address;
mod registers;
mod remedy;
mod symbols;

use crate::build::prepare::Prepared;
use crate::class::{self, Code, Untaken};
use crate::serial::health::Event;
use crate::serial::own::Kept;
use bulkhead_abi::log::ending::crash_place;
use bulkhead_manifest::System;
use bulkhead_manifest::system::{Mapping, Partition};
use registers::Registers;
use std::cell::RefCell;
use std::collections::VecDeque;
use symbols::Symbols;

/// Most events that are explained in one run. A partition that faults for ever says nothing new.
const EVENTS: usize = 12;

/// Explains the events of one system.
pub struct Explainer<'a> {
    system: &'a System,
    manifest: String,
    symbols: Vec<Symbols>,
    /// Symbols of the hypervisor.
    own: Symbols,
    explained: Vec<(String, String, Option<u64>)>,
    registers: Registers,
    /// The exceptions that were told, each with its partition.
    untaken: Vec<(String, Untaken)>,
    /// True if memory of the board can be looked at.
    can_look: bool,
    looks: usize,
    /// Registers that are explained when memory has been looked at, with the place and size of that.
    waiting: VecDeque<(Registers, Look)>,
}

/// An address of the board, and a number of bytes.
type Look = (u64, usize);

/// The program of a partition, for the class.
struct Program<'a> {
    memory: Vec<Mapping>,
    symbols: RefCell<&'a mut Symbols>,
    seen: Option<&'a [u8]>,
}

impl Code for Program<'_> {
    fn is_memory(&self, address: u64) -> bool {
        let covers = |mapping: &Mapping| {
            address
                .checked_sub(mapping.guest)
                .is_some_and(|at| at < mapping.size)
        };
        self.memory.iter().any(covers)
    }

    fn is_thumb(&self, address: u64) -> bool {
        self.symbols.borrow_mut().is_thumb(address)
    }

    fn seen(&self) -> Option<&[u8]> {
        self.seen
    }
}

impl<'a> Explainer<'a> {
    /// Makes an explainer for a prepared system whose manifest is called `manifest`.
    #[must_use]
    pub fn new(prepared: &'a Prepared, manifest: &str) -> Self {
        let system = prepared.system();
        let symbols = system
            .partitions()
            .iter()
            .map(|partition| {
                let file = prepared.image_of(partition.name()).ok();
                Symbols::of(file).moved_by(partition.moved_by())
            })
            .collect();
        Self {
            system,
            manifest: manifest.to_owned(),
            symbols,
            own: Symbols::of(Some(prepared.class_binary().to_owned())),
            explained: Vec::new(),
            registers: Registers::default(),
            untaken: Vec::new(),
            can_look: false,
            looks: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Makes the explainer ask for memory ([`Explainer::line_and_looks`]) where a report does not say enough.
    #[must_use]
    pub fn that_can_look(self) -> Self {
        Self {
            can_look: true,
            ..self
        }
    }

    /// Explains a line as [`Explainer::line`] does. Appends the memory that has to be looked at first, if
    /// there is any, to `looks`. Each has to be answered by [`Explainer::looked`].
    pub fn line_and_looks(&mut self, text: &str, looks: &mut Vec<(u64, usize)>) -> Option<String> {
        let before = self.waiting.len();
        let explanation = self.line(text);
        looks.extend(self.waiting.iter().skip(before).map(|(_, look)| *look));
        explanation
    }

    /// Takes the memory that the oldest request was about, and explains the report.
    pub fn looked(&mut self, bytes: Option<&[u8]>) -> Option<String> {
        let (registers, _) = self.waiting.pop_front()?;
        self.explain_untaken(&registers, bytes)
    }

    /// Explains a line of a text that was kept, as [`Explainer::line`] does, if the line is the hypervisor's.
    pub fn kept_line(&mut self, line: &str, kept: &mut Kept) -> Option<String> {
        let partitions = self.system.partitions();
        let is_console = |name: &str| partitions.iter().any(|partition| partition.name() == name);
        self.line(kept.own(line, &is_console)?)
    }

    /// Explains a line of the hypervisor's, if it is a health report that has not been explained yet, or the
    /// hypervisor's own end. Lines of the explanation begin with `  `.
    pub fn line(&mut self, text: &str) -> Option<String> {
        if let Some(at) = crash_place(text) {
            return Some(self.explain_crash(at));
        }
        if self.registers.line(text) {
            return self.explain_registers();
        }
        let event = Event::read(text)?;
        let same = (event.partition.clone(), event.class.clone(), event.pc);
        if self.explained.len() >= EVENTS || self.explained.contains(&same) {
            return None;
        }
        self.explained.push(same);
        let number = self
            .system
            .partitions()
            .iter()
            .position(|partition| partition.name() == event.partition)?;
        Some(self.explain(number, &event))
    }

    /// Returns the place in the program of a partition, if its symbols tell.
    pub fn place(&mut self, partition: &str, pc: u64) -> Option<String> {
        let mut partitions = self.system.partitions().into_iter();
        let number = partitions.position(|known| known.name() == partition)?;
        self.symbols.get_mut(number)?.find(pc)
    }

    /// Explains why the hypervisor stopped. The number `at` is an address of its class binary.
    fn explain_crash(&mut self, at: u64) -> String {
        let place = self.own.find(at);
        let place =
            place.unwrap_or_else(|| format!("{at:#x} of the class binary, for which there are no symbols"));
        format!(
            "  why | the hypervisor itself failed, and no partition goes on\n      | at {place}\n      | likely remedy: report it, with \
             this line and what `bulkhead log` shows of the crash record"
        )
    }

    /// Explains the registers after a report, or asks for memory first.
    fn explain_registers(&mut self) -> Option<String> {
        let registers = self.registers.clone();
        match self.wanted(&registers) {
            Some(look) => {
                self.looks += 1;
                self.waiting.push_back((registers, look));
                None
            }
            None => self.explain_untaken(&registers, None),
        }
    }

    /// Returns the memory of the board that has to be looked at first.
    fn wanted(&self, registers: &Registers) -> Option<Look> {
        let class = class::of(self.system.board());
        let (address, length) = class
            .wanted(&|name| registers.value(name))
            .filter(|_| self.can_look && self.looks < EVENTS)?;
        let partitions = self.system.partitions().into_iter();
        let partition = { partitions }.find(|partition| partition.name() == registers.partition())?;
        let mappings = partition.mappings();
        mappings.iter().find_map(|mapping| {
            let at = address.checked_sub(mapping.guest)?;
            let rest = mapping.size.checked_sub(at).filter(|rest| *rest != 0)?;
            Some((mapping.host + at, length.min(usize::try_from(rest).ok()?)))
        })
    }

    /// Explains the registers after a report, if they say that an exception of the guest's own led to the
    /// report. `seen` is the memory that the class wanted to see.
    fn explain_untaken(&mut self, registers: &Registers, seen: Option<&[u8]>) -> Option<String> {
        let name = registers.partition();
        let partitions = self.system.partitions();
        let number = partitions.iter().position(|partition| partition.name() == name)?;
        let symbols = self.symbols.get_mut(number)?;
        let program = Program {
            memory: partitions[number].mappings(),
            symbols: RefCell::new(symbols),
            seen,
        };
        let untaken = class::of(self.system.board()).untaken(&|name| registers.value(name), &program)?;
        let known = (name.to_owned(), untaken);
        if self.untaken.len() >= EVENTS || self.untaken.contains(&known) {
            return None;
        }
        let place = symbols.find(known.1.pc);
        self.untaken.push(known);
        let (name, untaken) = self.untaken.last()?;
        let pc = untaken.pc;
        Some(format!(
            "  why | {name}, vCPU {}: before that, its own program {}\n      | at {}\n      | {}\n      | likely \
             remedy: a handler there before the first exception, or a look at the program at that line",
            registers.vcpu(),
            untaken.what,
            place.unwrap_or_else(|| format!("{pc:#x}, for which there are no symbols")),
            untaken.vectors
        ))
    }

    fn explain(&mut self, number: usize, event: &Event) -> String {
        let partition = &self.system.partitions()[number];
        let mut lines = vec![self.what(partition, event)];
        // An instruction that could not be fetched belongs to no function.
        if let Some(pc) = event.pc.filter(|pc| Some(*pc) != event.address) {
            let place = self.symbols.get_mut(number).and_then(|symbols| symbols.find(pc));
            let at = |place| format!("at {place}");
            let lost = class::of(self.system.board()).lost_place(event);
            lines.push(lost.map_or_else(
                || at(place.unwrap_or_else(|| format!("{pc:#x}, for which there are no symbols"))),
                str::to_owned,
            ));
        }
        if let Some(address) = event.address.filter(|_| event.class == "memory") {
            lines.push(address::describe(self.system, partition, address));
        }
        if let Some(syndrome) = event.syndrome {
            let fields = class::of(self.system.board()).fields(syndrome);
            lines.push(format!("syndrome {syndrome:#x}: {fields}"));
        }
        lines.push(format!(
            "{}:{}: action `{}`, decided by [partition.{}.health] {}",
            self.manifest,
            partition.line(),
            event.action,
            partition.name(),
            event.class
        ));
        lines.push(format!(
            "likely remedy: {}",
            remedy::of(self.system, partition, event)
        ));
        let mut text = String::new();
        for (index, line) in lines.iter().enumerate() {
            let mark = if index == 0 { "why" } else { "" };
            text.push_str(&format!("  {mark:>3} | {line}\n"));
        }
        text.pop();
        text
    }

    /// Describes the subject and its action in a sentence.
    fn what(&self, partition: &Partition<'_>, event: &Event) -> String {
        let who = format!("{}, vCPU {}", partition.name(), event.vcpu);
        let what = match event.class.as_str() {
            "hypercall" => format!(
                "hypercall {} on capability {} refused: {}",
                event.operation.map_or("?".to_owned(), |number| {
                    u16::try_from(number)
                        .ok()
                        .and_then(bulkhead_abi::Operation::from_number)
                        .map_or(format!("{number:#x}"), |operation| format!("{operation:?}"))
                }),
                event
                    .capability
                    .map_or("?".to_owned(), |number| number.to_string()),
                event.error.as_deref().unwrap_or("?")
            ),
            "watchdog" => "the watchdog was not kicked in time".to_owned(),
            _ => event.syndrome.map_or("a fault".to_owned(), |syndrome| {
                class::of(self.system.board()).sentence(syndrome, event, partition)
            }),
        };
        format!("{who}: {what}")
    }
}
