// SPDX-License-Identifier: Apache-2.0
//! What a health report means: from the hypervisor's one line to what a user wants to know.
//!
//! The hypervisor reports numbers, because names cost memory and time on the target. Here are the manifest, the
//! board and the partition's own symbols, so here the numbers become: what was tried, by which line of
//! which program, what is at that address, which line of the manifest decides, and what probably helps.
//!
//! | file | |
//! |---|---|
//! | `event` | the report, read back from its line |
//! | `crash` | the hypervisor's own end, read back from its line |
//! | `syndrome`, `fault_status` | what the instruction tried, by class of CPU |
//! | `symbols` | the line of the program |
//! | `place` | what is at an address of a partition |
//! | `remedy` | what probably helps |

mod crash;
mod event;
mod fault_status;
mod place;
mod remedy;
mod symbols;
mod syndrome;

use crate::prepare::Prepared;
use bulkhead_manifest::system::Partition;
use bulkhead_manifest::{Class, System};
use symbols::Symbols;

pub use event::Event;

/// Most events that are explained in one run; a partition that faults for ever says nothing new.
const EVENTS: usize = 12;

/// Explains the events of one system.
pub struct Explainer<'a> {
    system: &'a System,
    manifest: String,
    symbols: Vec<Symbols>,
    /// Those of the hypervisor.
    own: Symbols,
    explained: Vec<(String, String, Option<u64>)>,
}

impl<'a> Explainer<'a> {
    /// For a prepared system whose manifest is called `manifest`.
    #[must_use]
    pub fn new(prepared: &'a Prepared, manifest: &str) -> Self {
        let system = prepared.system();
        let symbols = system
            .partitions()
            .iter()
            .map(|partition| Symbols::of(prepared.image_of(&partition.name).ok()))
            .collect();
        Self {
            system,
            manifest: manifest.to_owned(),
            symbols,
            own: Symbols::of(Some(prepared.class_binary().to_owned())),
            explained: Vec::new(),
        }
    }

    /// The explanation of a line, if it is a health report that has not been explained yet, or the hypervisor's own end. Lines
    /// begin with `  `.
    pub fn line(&mut self, text: &str) -> Option<String> {
        if let Some(at) = crash::place(text) {
            return Some(self.explain_crash(at));
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
            .position(|partition| partition.name == event.partition)?;
        Some(self.explain(number, &event))
    }

    /// Why the hypervisor stopped: `at` is an address of its class binary.
    fn explain_crash(&mut self, at: u64) -> String {
        let place = self.own.find(at);
        let place =
            place.unwrap_or_else(|| format!("{at:#x} of the class binary, for which there are no symbols"));
        format!(
            "  why | the hypervisor itself failed, and no partition goes on\n      | at {place}\n      | likely remedy: report it, with \
             this line and what `bulkhead log` shows of the crash record"
        )
    }

    fn explain(&mut self, number: usize, event: &Event) -> String {
        let partition = &self.system.partitions()[number];
        let mut lines = vec![self.what(partition, event)];
        // What could not be fetched belongs to no function.
        if let Some(pc) = event.pc.filter(|pc| Some(*pc) != event.address) {
            let place = self.symbols.get_mut(number).and_then(|symbols| symbols.find(pc));
            lines.push(format!(
                "at {}",
                place.unwrap_or_else(|| format!("{pc:#x}, for which there are no symbols"))
            ));
        }
        if let Some(address) = event.address.filter(|_| event.class == "memory") {
            lines.push(place::describe(self.system, partition, address));
        }
        if let Some(syndrome) = event.syndrome {
            let fields = match self.system.board().class {
                Class::Aarch64 => syndrome::fields(syndrome),
                Class::Armv7m => fault_status::fields(syndrome),
            };
            lines.push(format!("syndrome {syndrome:#x}: {fields}"));
        }
        lines.push(format!(
            "{}:{}: action `{}`, decided by [partition.{}.health] {}",
            self.manifest, partition.line, event.action, partition.name, event.class
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

    /// Who did what, in a sentence.
    fn what(&self, partition: &Partition, event: &Event) -> String {
        let who = format!("{}, vCPU {}", partition.name, event.vcpu);
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
            _ => event
                .syndrome
                .map_or("a fault".to_owned(), |syndrome| match self.system.board().class {
                    Class::Aarch64 => {
                        syndrome::sentence(syndrome, event.address, event.virtual_address, partition.aarch32)
                    }
                    Class::Armv7m => fault_status::sentence(syndrome, event.address),
                }),
        };
        format!("{who}: {what}")
    }
}
