// SPDX-License-Identifier: Apache-2.0
//! The file with the program of a VM, in each format that a build can end with.
//!
//! An ELF file and a file of Intel HEX say their addresses. A raw binary does not, so the manifest says where
//! it is (`machine.load-at`). By the same key a position-independent ELF file is moved.

use super::firmware::{self, Firmware};
use super::flat;
use super::memory::refusal;
use super::moved;
use super::section::Instructions;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::guest::Context;
use crate::model::Placed;
use crate::payload::{elf, hex};

/// The formats.
enum Format {
    Elf,
    Hex,
    Raw,
}

impl Format {
    fn of(contents: &[u8]) -> Self {
        if elf::is_elf(contents) {
            Self::Elf
        } else if hex::is_hex(contents) {
            Self::Hex
        } else {
            Self::Raw
        }
    }
}

/// Reads a program, and replaces instructions if the class does so. Returns `None` if something was reported.
pub(crate) fn read(
    context: &Context<'_>,
    name: &Placed<String>,
    contents: &[u8],
    instructions: Option<&dyn Instructions>,
    report: &mut Report,
) -> Option<Firmware> {
    if hex::is_s_records(contents) {
        report.push(s_records(name));
        return None;
    }
    let board = context.board;
    let format = Format::of(contents);
    let read = match (&format, &context.spec.machine.load_at) {
        (Format::Raw, Some(address)) => flat::read_raw(contents, address.value.get(), board, instructions),
        (Format::Raw, None) => {
            report.push(no_address(name, contents));
            return None;
        }
        (Format::Hex, Some(address)) => {
            let message = "`load-at` is given, but a file of Intel HEX has addresses already";
            report.push(
                Diagnostic::at(Code::BadMachine, address.place, message)
                    .help("remove `load-at`, or give the raw binary or the ELF file of the same build"),
            );
            return None;
        }
        (Format::Elf, address) => {
            let address = address.as_ref().map(|address| address.value.get());
            moved::to(contents, address).and_then(|(bytes, moved_by)| {
                let firmware = firmware::parse(&bytes, board, instructions)?;
                Ok(Firmware { moved_by, ..firmware })
            })
        }
        (Format::Hex, None) => flat::read_hex(contents, board, instructions),
    };
    read.map_err(|error| report.push(refusal(context, name, error)))
        .ok()
}

fn s_records(name: &Placed<String>) -> Diagnostic {
    let message = format!("the payload `{}` is a file of Motorola S-records", name.value);
    Diagnostic::at(Code::PayloadKind, name.place, message)
        .label("such files are not read")
        .help("give the ELF file, or convert it: `objcopy -I srec -O ihex FILE FILE.hex`")
}

/// Returns the finding that nothing says where a raw binary is loaded, with the address that its vector table
/// gives away.
fn no_address(name: &Placed<String>, contents: &[u8]) -> Diagnostic {
    let reset = contents.get(4..8).and_then(|word| word.try_into().ok());
    let reset = reset.map(u32::from_le_bytes).filter(|reset| reset & 1 == 1);
    let hint = reset.map_or_else(String::new, |reset| {
        format!("; by its second word its reset handler is at {:#x}", reset & !1)
    });
    let message = format!("nothing says where the raw binary `{}` is loaded", name.value);
    Diagnostic::at(Code::MissingKey, name.place, message)
        .label(format!("it has no addresses, unlike ELF and Intel HEX{hint}"))
        .help("add `machine.load-at = ...`: the beginning of code memory in its linker script")
}
