// SPDX-License-Identifier: Apache-2.0
//! Class `x86_64`.

mod exits;
mod payloads;

use super::{Code, Debugger, Showcase, Symbols, Template, Tool, Untaken};
use crate::build::linker::Link;
use crate::build::payload::{Payload, Source};
use crate::build::start::{Start, Uefi};
use crate::problem::Problem;
use crate::serial::health::Event;
use bulkhead_arch_api::ClassFacts;
use bulkhead_arch_api::class::X86_64;
use bulkhead_loader_plan::{Piece, Range};
use bulkhead_manifest::Board;
use bulkhead_manifest::system::Partition;
use object::LittleEndian as LE;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

/// The firmware of QEMU's board.
static OVMF: Payload = Payload {
    name: "ovmf",
    description: "Debian's EDK2 (UEFI) for QEMU's PC",
    architecture: "amd64",
    source: Source::File("ovmf", "usr/share/ovmf/OVMF.fd"),
};

/// The start from UEFI: the flashable file is an ELF file, which is entered as a PVH loader does.
static UEFI: Uefi = Uefi {
    target: "x86_64-unknown-uefi",
    file: "BOOTX64.EFI",
    firmware: &OVMF,
    start,
};

/// Places the segments of the file.
fn start<'a>(flash: &'a [u8], _board: &Board) -> Result<Start<'a>, Problem> {
    segments(flash).map_err(|error| Problem::new(format!("the flashable file: {error}")))
}

fn segments(flash: &[u8]) -> object::Result<Start<'_>> {
    let header = FileHeader64::<LE>::parse(flash)?;
    let all = header.program_headers(LE, flash)?;
    let mut pieces = Vec::new();
    for segment in all.iter().filter(|segment| segment.p_type(LE) == PT_LOAD) {
        let memory = Range {
            base: segment.p_paddr(LE),
            length: segment.p_memsz(LE),
        };
        let bytes = segment.data(LE, flash).unwrap_or_default();
        pieces.push(Piece { memory, bytes });
    }
    Ok(Start {
        entry: header.e_entry(LE),
        pieces,
    })
}

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

    fn link(&self, _board: &Board) -> Option<Link> {
        None
    }

    fn flash_name(&self) -> &'static str {
        "bulkhead.elf"
    }

    fn starts_from_disc(&self) -> bool {
        true
    }

    fn uefi(&self) -> Option<&'static Uefi> {
        Some(&UEFI)
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

    fn payloads(&self) -> &'static [Payload] {
        payloads::ALL
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

    fn untaken(&self, register: &dyn Fn(&str) -> Option<u64>, _code: &dyn Code) -> Option<Untaken> {
        let [exit, event, pc, idt] = ["exit", "event", "pc", "idt"].map(register);
        let event = event.filter(|event| exit == Some(exits::SHUTDOWN) && event & 1 << 31 != 0)?;
        let vector = event as u8;
        // The type of the event (AMD APM volume 2, 15.20). The pc is the address of INT n itself.
        let what = match event >> 8 & 7 {
            0 => format!("was interrupted by vector {vector:#x}"),
            4 => format!("executed INT {vector:#x}"),
            _ => format!("took exception {vector} ({})", exits::exception(vector)),
        };
        Some(Untaken {
            what,
            pc: pc?,
            vectors: format!(
                "its interrupt descriptor table is at {:#x} (LIDT)",
                idt.unwrap_or_default()
            ),
        })
    }

    fn remedy(&self, event: &Event) -> Option<&'static str> {
        match event.syndrome? >> 48 {
            exits::SHUTDOWN => Some(
                "look at the exception that its registers below show, and at its interrupt descriptor table",
            ),
            exits::INVALID => {
                Some("look at cr0, cr3, cr4 and efer below, and at the instruction before its pc")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::NoCode;

    #[test]
    fn the_exception_behind_a_triple_fault_is_named() {
        let named = |exit: u64, event: u64| {
            let registers = [("pc", 0x10_0004), ("idt", 0), ("event", event), ("exit", exit)];
            let value = |name: &str| Some(registers.iter().find(|(own, _)| *own == name)?.1);
            X86.untaken(&value, &NoCode)
        };
        let untaken = named(exits::SHUTDOWN, 0x8000_0306).expect("an event is on its way");
        assert!(
            untaken.pc == 0x10_0004 && untaken.what.contains("#UD"),
            "{untaken:?}"
        );
        assert_eq!(named(0x40, 0x8000_0306), None);
        for (event, what) in [
            (0x8000_0403, "executed INT 0x3"),
            (0x8000_0440, "executed INT 0x40"),
            (0x8000_0030, "was interrupted by vector 0x30"),
        ] {
            let untaken = named(exits::SHUTDOWN, event).expect("an event is on its way");
            assert_eq!((untaken.pc, untaken.what.as_str()), (0x10_0004, what));
        }
    }
}
