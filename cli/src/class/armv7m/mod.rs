// SPDX-License-Identifier: Apache-2.0
//! Class `armv7m`.

mod fault_status;

use super::{Debugger, Symbols, Template, Tool, Untaken, Variant};
use crate::build::linker::Link;
use crate::explain::Event;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::ARMV7M;
use bulkhead_manifest::Board;
use bulkhead_manifest::system::Partition;

/// The class binary with ports and locks.
static MESSAGES: Variant = Variant {
    suffix: "-messages",
    feature: None,
};

/// The class.
pub struct Armv7m;

impl Tool for Armv7m {
    fn facts(&self) -> &'static ClassFacts {
        &ARMV7M
    }

    fn target(&self) -> &'static str {
        "thumbv7em-none-eabi"
    }

    fn variants(&self) -> &'static [Variant] {
        std::slice::from_ref(&MESSAGES)
    }

    fn variant(&self, _board: &Board, messages: bool) -> Option<&'static Variant> {
        messages.then_some(&MESSAGES)
    }

    fn link(&self, board: &Board) -> Option<Link> {
        let (code, ram) = (board.own_code, board.own_ram);
        Some(Link {
            emulation: "armelf",
            symbols: vec![
                ("__own_code", code.base),
                ("__own_code_size", code.size),
                ("__own_ram", ram.base),
                ("__own_ram_size", ram.size),
            ],
            remedy: format!(
                "if something does not fit: give the hypervisor more memory in the file of board `{}` (`hypervisor.code`, `hypervisor.ram`)",
                board.name
            ),
        })
    }

    fn flash_name(&self) -> &'static str {
        "bulkhead.elf"
    }

    fn debugger(&self) -> Debugger {
        Debugger {
            architecture: "arm",
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
        fault_status::sentence(syndrome, event.address)
    }

    fn fields(&self, syndrome: u64) -> String {
        fault_status::fields(syndrome)
    }

    fn is_asynchronous(&self, syndrome: u64) -> bool {
        fault_status::is_asynchronous(syndrome)
    }

    fn untaken(&self, register: &dyn Fn(&str) -> Option<u64>) -> Option<Untaken> {
        let [pc, from, status] = ["pc", "from", "cfsr"].map(register);
        let status = status.filter(|status| pc == Some(0) && *status != 0)?;
        Some(Untaken {
            what: format!("had a fault: {}", fault_status::fields(status)),
            pc: from?,
            vectors: "the vector of its HardFault is 0 (the fourth word of its vector table)".to_owned(),
        })
    }

    fn remedy(&self, event: &Event) -> Option<&'static str> {
        let locked_up = event.class == "system" && event.syndrome.is_some_and(fault_status::is_lockup);
        locked_up.then_some(
            "look at its vector table, at the stack and at the handler of its HardFault or NMI: one of them faults, and a bare chip \
             would stand still here",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fault_behind_a_lock_up_is_named() {
        let named = |pc: u64| {
            let registers = [("pc", pc), ("from", 0x22), ("cfsr", 1 << 16)];
            let value = |name: &str| Some(registers.iter().find(|(own, _)| *own == name)?.1);
            Armv7m.untaken(&value)
        };
        let untaken = named(0).expect("it is at no code");
        assert!(
            untaken.pc == 0x22 && untaken.what.contains("UNDEFINSTR"),
            "{untaken:?}"
        );
        assert_eq!(named(0x40), None);
    }
}
