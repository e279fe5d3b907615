// SPDX-License-Identifier: Apache-2.0
//! Class `ppc405`.

mod syndrome;

use super::{Debugger, Symbols, Template, Tool, Variant};
use crate::build::linker::Link;
use crate::explain::Event;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::PPC405;
use bulkhead_manifest::Board;
use bulkhead_manifest::system::Partition;

/// The class.
pub struct Ppc405;

impl Tool for Ppc405 {
    fn facts(&self) -> &'static ClassFacts {
        &PPC405
    }

    /// Returns a target of our own: the compiler has none without an operating system.
    fn target(&self) -> &'static str {
        "powerpc-unknown-none-eabi"
    }

    fn variants(&self) -> &'static [Variant] {
        &[]
    }

    fn variant(&self, _board: &Board, _messages: bool) -> Option<&'static Variant> {
        None
    }

    fn link(&self, _board: &Board) -> Option<Link> {
        None
    }

    fn flash_name(&self) -> &'static str {
        "bulkhead.elf"
    }

    fn debugger(&self) -> Debugger {
        Debugger {
            architecture: "powerpc:403",
            symbols: Symbols::WhereLinked,
        }
    }

    fn template(&self) -> Template {
        Template {
            manifest: include_str!("template/system.toml"),
            readme: include_str!("template/README.md"),
        }
    }

    fn sentence(&self, syndrome: u64, event: &Event, _partition: &Partition<'_>) -> String {
        syndrome::sentence(syndrome, event.address)
    }

    fn fields(&self, syndrome: u64) -> String {
        syndrome::fields(syndrome)
    }

    fn is_asynchronous(&self, _syndrome: u64) -> bool {
        false
    }

    fn remedy(&self, _event: &Event) -> Option<&'static str> {
        None
    }
}
