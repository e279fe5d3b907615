// SPDX-License-Identifier: Apache-2.0
//! Class `x86_64`.

mod exits;

use super::{Debugger, Showcase, Symbols, Template, Tool, Variant};
use crate::build::linker::Link;
use crate::explain::Event;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::X86_64;
use bulkhead_manifest::Board;
use bulkhead_manifest::system::Partition;

/// The class.
pub struct X86;

impl Tool for X86 {
    fn facts(&self) -> &'static ClassFacts {
        &X86_64
    }

    /// Returns a target without floating point, because its registers belong to the guests.
    fn target(&self) -> &'static str {
        "x86_64-unknown-none"
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

    fn starts_from_disc(&self) -> bool {
        true
    }

    fn showcase(&self) -> Option<Showcase> {
        Some(Showcase {
            example: "examples/x86-linux-rt/system.toml",
            cpus: "1",
            board: "PC",
            kernel: "amd64 kernel, unmodified",
            place: "the same CPU",
        })
    }

    fn debugger(&self) -> Debugger {
        Debugger {
            architecture: "i386:x86-64",
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
        exits::sentence(syndrome, event.address)
    }

    fn fields(&self, syndrome: u64) -> String {
        exits::fields(syndrome)
    }

    fn is_asynchronous(&self, _syndrome: u64) -> bool {
        false
    }

    fn remedy(&self, _event: &Event) -> Option<&'static str> {
        None
    }
}
