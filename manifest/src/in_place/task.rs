// SPDX-License-Identifier: Apache-2.0
//! The memory of a task whose code is executed where it is linked: code window, RAM, startup page.
//!
//! As for a VM ([`super::vm`]), the addresses of the program say where the program is, and its RAM has the
//! size that the manifest gives. A task has no vector table: it begins at the file's entry point, with its
//! stack pointer at the end of its RAM. Its startup page is no longer than its records and lies after its
//! code, in the same window. RAM is short, code memory cannot be written anyway, and the digest of code
//! memory covers the page.

use super::firmware::{self, Firmware};
use super::memory::{
    code_area, code_window, data_pieces, ram_area, ram_window, refusal, take_reset_vectors,
    variables_are_inside,
};
use super::moved;
use super::protection::Protection;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::guest::task::needs_elf;
use crate::guest::{Context, Guest, Part, startup};
use crate::model::{Access, Placed};
use crate::payload::{Loader, Stretch, elf};
use crate::units::align_up;
use crate::window::Window;

/// A startup page begins at a multiple of this, the size of its records.
const STARTUP_ALIGN: u64 = 32;
/// The least size of a stack, the frame of the first instruction included.
const STACK_MIN: u64 = 64;

/// Builds the memory of a task; `None` if something was reported.
pub(crate) fn build(
    context: &Context<'_>,
    loader: &mut Loader<'_>,
    protection: &dyn Protection,
    report: &mut Report,
) -> Option<Guest> {
    let spec = context.spec;
    let (name, memory) = (spec.image.as_ref()?, spec.memory.as_ref()?);
    let contents = loader.load(name, report)?;
    if !elf::is_elf(&contents) {
        report.push(needs_elf(name));
        return None;
    }
    let read = moved::to(&contents, None);
    let read = read.and_then(|(contents, _)| firmware::parse_task(&contents, context.board));
    let (mut firmware, entry) = match read {
        Ok(read) => read,
        Err(error) => {
            report.push(refusal(context, name, error));
            return None;
        }
    };
    entry_is_code(&firmware, entry, name, report)?;
    take_reset_vectors(context.board, &mut firmware.code);
    let ram = ram_window(context, protection, &firmware, None, report)?;
    let mut records = startup::records(ram, context.capabilities);
    records.extend(startup::devices(context));
    let page = append_startup(&mut firmware, records)?;
    let code = code_window(protection, &firmware.code)?;
    let areas = vec![
        ram_area(ram, Access::DATA, memory.place),
        code_area(code, name.place),
    ];
    variables_are_inside(context, &firmware, &[], &areas, report)?;
    leaves_stack(&firmware, ram, memory.place, report)?;
    Some(Guest {
        parts: Part::whole(&areas),
        areas,
        pieces: data_pieces(context, &firmware),
        entry,
        argument: page,
        stack: ram.end(),
        residents: firmware.code,
        ..Guest::default()
    })
}

/// Checks that the entry point is T32 code of the program.
fn entry_is_code(firmware: &Firmware, entry: u64, name: &Placed<String>, report: &mut Report) -> Option<()> {
    let instruction = Window {
        base: entry & !1,
        size: 2,
    };
    let holds = |stretch: &Stretch| stretch.window().contains(instruction);
    let why = if !firmware.code.iter().any(holds) {
        "is not in code memory"
    } else if entry & 1 == 0 {
        "is not that of T32 code: bit 0 is clear"
    } else {
        return Some(());
    };
    let message = format!("the entry point {entry:#x} of `{}` {why}", name.value);
    report.push(
        Diagnostic::at(Code::EntryOutside, name.place, message)
            .help("name a function of the program by `ENTRY` in its linker script"),
    );
    None
}

/// Puts the startup page after the program's code, and returns the address of the page.
fn append_startup(firmware: &mut Firmware, bytes: Vec<u8>) -> Option<u64> {
    let end = firmware.code.last()?.window().end();
    let address = align_up(end, STARTUP_ALIGN)?;
    firmware.code.push(Stretch { address, bytes });
    Some(address)
}

/// Checks that the end of the RAM is free of variables.
fn leaves_stack(firmware: &Firmware, ram: Window, place: Place, report: &mut Report) -> Option<()> {
    let data = firmware.data.iter().map(Stretch::window);
    let variables = firmware.ram.iter().copied().chain(data);
    let end = variables.map(|window| window.end()).max().unwrap_or(ram.base);
    if ram.end().saturating_sub(end) >= STACK_MIN {
        return Some(());
    }
    let message = format!("the program's variables end at {end:#x}, and leave no memory for its stack");
    report.push(
        Diagnostic::at(Code::DoesNotFit, place, message)
            .help("give more memory: a task begins with its stack pointer at the end of it"),
    );
    None
}
