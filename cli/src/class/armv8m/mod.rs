// SPDX-License-Identifier: Apache-2.0
//! Class `armv8m`.

use super::cortex_m::{self, fault_status};
use super::{Debugger, Starter, Template, Tool};
use crate::build::linker::Link;
use crate::serial::health::Event;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::ARMV8M;
use bulkhead_manifest::Board;
use bulkhead_manifest::system::Partition;

/// CFSR in a syndrome: an instruction of a coprocessor that may not be used (NOCP; Arm DDI 0553B, D1.2.271).
const NO_COPROCESSOR: u64 = 1 << 19;

/// The class.
pub struct Armv8m;

impl Tool for Armv8m {
    fn facts(&self) -> &'static ClassFacts {
        &ARMV8M
    }

    fn target(&self) -> &'static str {
        "thumbv8m.main-none-eabi"
    }

    /// Programs for a Cortex-M4 run here as they are, so one file serves the boards of two classes.
    fn runs(&self, target: &str) -> bool {
        target.starts_with(self.target()) || target.starts_with("thumbv7em-none-eabi")
    }

    fn sets_are_packages(&self) -> bool {
        true
    }

    fn link(&self, board: &Board) -> Option<Link> {
        Some(cortex_m::link(board))
    }

    fn flash_name(&self) -> &'static str {
        cortex_m::FLASH_NAME
    }

    /// Returns the starter: the CPU starts in the secure world, and the program of a VM belongs to the other
    /// world.
    fn starter(&self) -> Option<Starter> {
        Some(Starter {
            program: "guest-world-starter",
            vectors_at: 0x3FC,
        })
    }

    fn debugger(&self) -> Debugger {
        cortex_m::DEBUGGER
    }

    fn template(&self) -> Template {
        Template {
            manifest: include_str!("template/system.toml"),
            readme: include_str!("template/README.md"),
        }
    }

    fn sentence(&self, syndrome: u64, event: &Event, _partition: &Partition<'_>) -> String {
        fault_status::sentence(syndrome, event.address)
    }

    fn fields(&self, syndrome: u64) -> String {
        fault_status::fields(syndrome)
    }

    /// Knows a lost place by the address 0. The place is in the frame that the CPU pushes. No code is at 0,
    /// where a vector table is, and a jump to 0 has this address.
    fn lost_place(&self, event: &Event) -> Option<&'static str> {
        (event.pc == Some(0)).then_some("where it was is lost: the exception frame had no memory")
    }

    fn is_asynchronous(&self, syndrome: u64) -> bool {
        fault_status::is_asynchronous(syndrome)
    }

    fn remedy(&self, event: &Event) -> Option<&'static str> {
        let syndrome = event.syndrome.unwrap_or_default();
        if fault_status::is_secure(syndrome) {
            return Some(
                "compare the address with the memory map of `bulkhead check`: the VM reaches its own code, RAM, channels and devices \
                 at addresses with bit 28 clear, and nothing else",
            );
        }
        if event.class == "task" && syndrome & NO_COPROCESSOR != 0 {
            return Some(
                "a task that uses floating point needs `floating-point = true`, and a CPU that has the registers",
            );
        }
        cortex_m::remedy(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_without_floating_point_is_told_the_key() {
        let event = Event {
            class: "task".to_owned(),
            syndrome: Some(6 << 32 | NO_COPROCESSOR),
            ..Event::default()
        };
        let remedy = Armv8m.remedy(&event);
        assert!(remedy.is_some_and(|remedy| remedy.contains("floating-point = true")));
    }

    #[test]
    fn programs_of_another_class_run_as_they_are() {
        let runs = |target: &str| Armv8m.runs(target);
        assert!(runs("thumbv8m.main-none-eabi") && runs("thumbv8m.main-none-eabihf"));
        assert!(runs("thumbv7em-none-eabihf") && !runs("thumbv7m-none-eabi"));
    }
}
