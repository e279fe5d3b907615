// SPDX-License-Identifier: Apache-2.0
//! Class `aarch64`.

mod narrow;
mod payloads;
mod syndrome;

use super::{Code, Debugger, Hardware, Showcase, Symbols, Template, Tool, Untaken};
use crate::build::linker::Link;
use crate::build::payload::Payload;
use crate::build::start::{Start, Uefi};
use crate::problem::Problem;
use crate::serial::health::Event;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::{AARCH32, AARCH64};
use bulkhead_loader_plan::{Piece, Range};
use bulkhead_manifest::Board;
use bulkhead_manifest::driver::Role;
use bulkhead_manifest::system::{MappingKind, Partition};
use syndrome::Surroundings;

/// Boards with a GICv2.
static GIC_V2: Hardware = Hardware {
    suffix: "-gic-v2",
    feature: "gic-v2",
};

/// The start from UEFI: the flashable file is an arm64 `Image`, which runs where it lies.
static UEFI: Uefi = Uefi {
    target: "aarch64-unknown-uefi",
    file: "BOOTAA64.EFI",
    firmware: &payloads::UEFI,
    start,
};

/// Places the whole file at the board's load address.
fn start<'a>(flash: &'a [u8], board: &Board) -> Result<Start<'a>, Problem> {
    let memory = Range {
        base: board.load_address,
        length: flash.len() as u64,
    };
    Ok(Start {
        entry: board.load_address,
        pieces: vec![Piece { memory, bytes: flash }],
    })
}

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

    /// Returns the ways around two errata of the Cortex-A53 (Arm EPM-048406), which the compiler's own
    /// description leaves out: 843419, an ADRP at the end of a page may give a wrong address, which the
    /// linker avoids; and 835769, a 64-bit multiply-accumulate after a load or store may have a wrong result,
    /// which the compiler avoids.
    fn target_changes(&self) -> &'static str {
        "features=\"+v8a,+strict-align,-neon,+fix-cortex-a53-835769\" \
         pre-link-args={\"gnu-lld\":[\"--fix-cortex-a53-843419\"]}"
    }

    fn uefi(&self) -> Option<&'static Uefi> {
        Some(&UEFI)
    }

    fn hardware(&self) -> &'static [Hardware] {
        std::slice::from_ref(&GIC_V2)
    }

    fn hardware_of(&self, board: &Board) -> Option<&'static Hardware> {
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

    fn payloads(&self) -> &'static [Payload] {
        payloads::ALL
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

    fn untaken(&self, register: &dyn Fn(&str) -> Option<u64>, code: &dyn Code) -> Option<Untaken> {
        let [pc, vectors, elr, esr] = ["pc", "vbar", "elr", "esr"].map(register);
        if vectors.is_none() {
            return narrow::untaken(register, code);
        }
        let (pc, vectors, esr) = (pc?, vectors?, esr?);
        // A table of vectors has 16 entries of 128 bytes (Arm ARM DDI 0487, D1.3.1).
        let is_vector = pc.wrapping_sub(vectors) < 0x800 && pc.is_multiple_of(0x80);
        // An abort at the vector itself, which the hypervisor handed to the guest, says nothing new.
        if !is_vector || elr == Some(pc) {
            return None;
        }
        let (what, before) = syndrome::taken_at(pc, esr);
        Some(Untaken {
            what,
            pc: elr.unwrap_or_default().wrapping_sub(before),
            vectors: format!("its vectors are at {vectors:#x} (VBAR_EL1)"),
        })
    }

    fn vector(&self, pc: u64) -> Option<String> {
        let (base, offset) = (pc & !0x7FF, pc & 0x7FF);
        let is_one = offset.is_multiple_of(0x80);
        is_one.then(|| format!("the vector at offset {offset:#x} of a table at {base:#x} (VBAR_EL1)"))
    }

    fn faults_at_zeros(&self) -> bool {
        true
    }

    fn emulated_forms(&self) -> &'static str {
        "an emulated register takes aligned loads and stores of 1, 2, 4 or 8 bytes by general registers: no \
         SIMD, exclusives or atomics"
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
        let untaken = named(0x200, 0x1FE0_0000).expect("it is at a vector");
        assert_eq!(untaken.pc, 0x4000_0008);
        assert!(untaken.what.contains("floating point"), "{untaken:?}");
        assert_eq!(named(0x210, 0x1FE0_0000), None);
        assert_eq!(named(0x4000_0000, 0x1FE0_0000), None);
    }

    #[test]
    fn an_abort_of_the_vector_itself_is_not_told_again() {
        assert_eq!(named_at(0x200, 0x8600_0010, 0x200), None);
    }

    /// Checks the instruction of a call, whose return address is the one after it: of A64, and of T32, which
    /// has 16 bits.
    #[test]
    fn a_call_whose_vectors_are_not_there_is_named_itself() {
        for (esr, pc) in [(0x5600_0003, 0x4000_0004), (0x4400_0003, 0x4000_0006)] {
            let untaken = named(0x400, esr).expect("it is at a vector");
            assert_eq!(untaken.pc, pc, "{untaken:?}");
            assert!(untaken.what.contains("SVC"), "{untaken:?}");
        }
    }

    /// Checks what leaves no syndrome of its own: ESR_EL1 is then of an exception before. From each level and
    /// width of registers there are four vectors.
    #[test]
    fn an_interrupt_whose_vectors_are_not_there_is_no_exception_before_it() {
        for group in [0, 0x200, 0x400, 0x600] {
            for esr in [0, 0x5600_0003] {
                for (offset, name) in [(0x80, "(IRQ)"), (0x100, "(FIQ)")] {
                    let untaken = named(group + offset, esr).expect("it is at a vector");
                    assert_eq!(untaken.what, format!("was interrupted {name}"));
                    assert_eq!(untaken.pc, 0x4000_0008, "{untaken:?}");
                }
            }
            let error = named(group + 0x180, 0xBE00_0000).expect("it is at a vector");
            assert!(error.what.starts_with("had an SError"), "{error:?}");
            assert_eq!(error.pc, 0x4000_0008, "{error:?}");
        }
    }

    #[test]
    fn a_vector_is_known_by_its_address() {
        let vector = Aarch64.vector(0x4010_0200).expect("it is one");
        assert!(
            vector.contains("offset 0x200 of a table at 0x40100000"),
            "{vector}"
        );
        assert_eq!(Aarch64.vector(0x4010_0204), None);
    }

    fn named(pc: u64, esr: u64) -> Option<Untaken> {
        named_at(pc, esr, 0x4000_0008)
    }

    fn named_at(pc: u64, esr: u64, elr: u64) -> Option<Untaken> {
        let registers = [("pc", pc), ("vbar", 0), ("elr", elr), ("esr", esr)];
        let value = |name: &str| Some(registers.iter().find(|(own, _)| *own == name)?.1);
        Aarch64.untaken(&value, &NoCode)
    }
}
