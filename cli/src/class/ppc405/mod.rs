// SPDX-License-Identifier: Apache-2.0
//! Class `ppc405`.

mod payloads;
mod syndrome;

use super::{Code, Debugger, Symbols, Template, Tool, Untaken};
use crate::build::linker::Link;
use crate::build::payload::Payload;
use crate::serial::health::Event;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::PPC405;
use bulkhead_manifest::Board;
use bulkhead_manifest::system::Partition;

/// The offset of the vector of system calls.
const SYSTEM_CALL: u64 = 0xC00;
/// The offset of the vector of illegal instructions.
const PROGRAM: u64 = 0x700;

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

    fn link(&self, _board: &Board) -> Option<Link> {
        None
    }

    fn flash_name(&self) -> &'static str {
        "bulkhead.elf"
    }

    fn payloads(&self) -> &'static [Payload] {
        payloads::ALL
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

    fn untaken(&self, register: &dyn Fn(&str) -> Option<u64>, _code: &dyn Code) -> Option<Untaken> {
        let [pc, from, cause, vectors] = ["pc", "srr0", "esr", "evpr"].map(register);
        let (from, cause, vectors) = (from?, cause?, vectors?);
        let offset = pc?.checked_sub(vectors)?;
        let what = match offset {
            SYSTEM_CALL => "executed SC".to_owned(),
            0x200 | 0x300 | 0x400 | 0x600 | 0x700 | 0x1100 | 0x1200 => {
                let syndrome = offset << 32 | cause;
                format!(
                    "took an exception: {}: {}",
                    syndrome::sentence(syndrome, None),
                    syndrome::fields(syndrome)
                )
            }
            0x500 | 0x1000 | 0x1010 => format!("was interrupted: interrupt {offset:#x}"),
            _ => return None,
        };
        Some(Untaken {
            what,
            // The return address of a call is after it.
            pc: from.wrapping_sub(if offset == SYSTEM_CALL { 4 } else { 0 }),
            vectors: format!("its vectors are at {vectors:#x} (EVPR)"),
        })
    }

    fn vector(&self, pc: u64) -> Option<String> {
        let (base, offset) = (pc & !0xFFFF, pc & 0xFFFF);
        // The illegal instruction is at the vector for just that.
        (offset == PROGRAM)
            .then(|| format!("the vector at offset {offset:#x} of a table at {base:#x} (EVPR)"))
    }

    fn faults_at_zeros(&self) -> bool {
        true
    }

    fn remedy(&self, _event: &Event) -> Option<&'static str> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::NoCode;

    #[test]
    fn an_exception_whose_vectors_are_not_there_is_named() {
        let named = |offset: u64, cause: u64| {
            let registers = [
                ("pc", 0x100_0000 + offset),
                ("srr0", 0x1010),
                ("esr", cause),
                ("evpr", 0x100_0000),
            ];
            let value = |name: &str| Some(registers.iter().find(|(own, _)| *own == name)?.1);
            Ppc405.untaken(&value, &NoCode)
        };
        let call = named(0xC00, 0).expect("it is at a vector");
        assert_eq!((call.pc, call.what.as_str()), (0x100C, "executed SC"));
        let illegal = named(0x700, 0x0800_0000).expect("it is at a vector");
        assert!(
            illegal.pc == 0x1010 && illegal.what.contains("illegal"),
            "{illegal:?}"
        );
        let timer = named(0x1000, 0).expect("it is at a vector");
        assert!(
            timer.pc == 0x1010 && timer.what.contains("interrupted"),
            "{timer:?}"
        );
        assert_eq!((named(0x704, 0), named(0x800_0000, 0)), (None, None));
    }

    #[test]
    fn a_vector_is_known_by_its_address() {
        let vector = Ppc405.vector(0x10_0700).expect("it is one");
        assert!(vector.contains("offset 0x700 of a table at 0x100000"), "{vector}");
        assert_eq!(Ppc405.vector(0x10_0704), None);
    }
}
