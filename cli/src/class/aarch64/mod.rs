// SPDX-License-Identifier: Apache-2.0
//! Class `aarch64`.

mod syndrome;

use super::{Debugger, Showcase, Symbols, Template, Tool, Variant};
use crate::build::linker::Link;
use crate::explain::Event;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::{AARCH32, AARCH64};
use bulkhead_manifest::Board;
use bulkhead_manifest::driver::Role;
use bulkhead_manifest::system::{MappingKind, Partition};
use syndrome::Surroundings;

/// The class binary for boards with a GICv2.
static GIC_V2: Variant = Variant {
    suffix: "-gic-v2",
    feature: Some("gic-v2"),
};

/// Tells whether the hypervisor carries out accesses to this address one by one.
fn is_emulated(partition: &Partition<'_>, address: u64) -> bool {
    let is_forwarded = partition.mappings().iter().any(|mapping| {
        let covers = address
            .checked_sub(mapping.guest)
            .is_some_and(|at| at < mapping.size);
        mapping.kind == MappingKind::Forwarded && covers
    });
    is_forwarded || partition.virtual_device_at(address).is_some()
}

/// The class.
pub struct Aarch64;

impl Tool for Aarch64 {
    fn facts(&self) -> &'static ClassFacts {
        &AARCH64
    }

    /// Returns a target without floating point, because FP registers belong to the guests.
    fn target(&self) -> &'static str {
        "aarch64-unknown-none-softfloat"
    }

    fn variants(&self) -> &'static [Variant] {
        std::slice::from_ref(&GIC_V2)
    }

    fn variant(&self, board: &Board, _messages: bool) -> Option<&'static Variant> {
        let controller = board.driven(Role::Interrupts);
        let is_v2 = controller.is_some_and(|controller| controller.driver.compatible == "arm,gic-400");
        is_v2.then_some(&GIC_V2)
    }

    fn link(&self, _board: &Board) -> Option<Link> {
        None
    }

    fn flash_name(&self) -> &'static str {
        "bulkhead.bin"
    }

    fn showcase(&self) -> Option<Showcase> {
        Some(Showcase {
            example: "examples/aarch64-linux-rt/system.toml",
            cpus: "2",
            board: "Arm board",
            kernel: "arm64 kernel, unmodified, on 2 vCPUs",
            place: "one of the same two CPUs",
        })
    }

    fn debugger(&self) -> Debugger {
        Debugger {
            architecture: "aarch64",
            symbols: Symbols::AtLoadAddress,
        }
    }

    fn template(&self) -> Template {
        Template {
            manifest: include_str!("template/system.toml"),
            readme: include_str!("template/README.md"),
        }
    }

    fn sentence(&self, syndrome: u64, event: &Event, partition: &Partition<'_>) -> String {
        let is_emulated = |address| is_emulated(partition, address);
        let surroundings = Surroundings {
            narrow: partition.entry_state() == AARCH32,
            emulated: event.address.is_some_and(is_emulated),
        };
        syndrome::sentence(syndrome, event.address, event.virtual_address, surroundings)
    }

    fn fields(&self, syndrome: u64) -> String {
        syndrome::fields(syndrome)
    }

    fn is_asynchronous(&self, syndrome: u64) -> bool {
        syndrome::is_asynchronous(syndrome)
    }

    fn remedy(&self, _event: &Event) -> Option<&'static str> {
        None
    }
}
