// SPDX-License-Identifier: Apache-2.0
//! Class `stub`, a proof that a class is a folder: its part of `cli`.

use super::{Debugger, Symbols, Template, Tool};
use crate::build::linker::Link;
use crate::serial::health::Event;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::STUB;
use bulkhead_manifest::Board;
use bulkhead_manifest::system::Partition;

/// The class.
pub struct Stub;

impl Tool for Stub {
    fn facts(&self) -> &'static ClassFacts {
        &STUB
    }

    fn target(&self) -> &'static str {
        "stub-unknown-none"
    }

    fn link(&self, _board: &Board) -> Option<Link> {
        None
    }

    fn flash_name(&self) -> &'static str {
        "bulkhead.stub"
    }

    fn debugger(&self) -> Debugger {
        Debugger {
            architecture: "auto",
            symbols: Symbols::WhereLinked,
        }
    }

    fn template(&self) -> Template {
        Template {
            manifest: include_str!("system.toml"),
            readme: "",
        }
    }

    fn sentence(&self, syndrome: u64, _event: &Event, _partition: &Partition<'_>) -> String {
        format!("fault {syndrome:#x}")
    }

    fn fields(&self, _syndrome: u64) -> String {
        String::new()
    }

    fn is_asynchronous(&self, _syndrome: u64) -> bool {
        false
    }

    fn remedy(&self, _event: &Event) -> Option<&'static str> {
        None
    }
}
