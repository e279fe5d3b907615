// SPDX-License-Identifier: Apache-2.0
//! The memory of a VM whose code is executed where it is linked: code window, RAM, regions.
//!
//! Nothing is placed: the addresses of the program say where the program is ([`super::memory`]).
#![deny(clippy::arithmetic_side_effects)]

use super::firmware::{self, Firmware, FirmwareError, Vectors};
use super::memory::{
    area, code_area, code_window, data_pieces, ram_area, ram_window, refusal, take_reset_vectors,
    variables_are_inside,
};
use super::program;
use super::protection::Parts;
use super::section::Instructions;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::guest::{self, AreaKind, Context, Guest};
use crate::model::Placed;
use crate::payload::{Loader, Stretch};
use crate::window::Window;
use bulkhead_image::layout::MASK_WORDS_SIZE;

/// Builds the memory of a VM; `None` if something was reported.
pub(crate) fn build(
    context: &Context<'_>,
    loader: &mut Loader<'_>,
    parts: Parts,
    report: &mut Report,
) -> Option<Guest> {
    let spec = context.spec;
    let Parts {
        instructions,
        protection,
    } = parts;
    let (name, memory) = (spec.image.as_ref()?, spec.memory.as_ref()?);
    let contents = loader.load(name, report)?;
    let (vectors, mut firmware) = read(context, name, &contents, instructions, report)?;
    take_reset_vectors(context.board, &mut firmware.code);
    let is_answered = spec.machine.semihosting.value;
    let (lookalikes, debugger_call) = instructions.map_or_else(Default::default, |instructions| {
        (
            firmware::lookalikes(&firmware.code, &firmware.rewritten.sites, instructions),
            firmware::debugger_call(&firmware, instructions).filter(|_| is_answered),
        )
    });
    if !is_answered {
        report
            .diagnostics
            .extend(semihosting(name, &firmware.rewritten.semihosting));
    }
    let code = code_window(protection, &firmware.code)?;
    // The memory of a stack ends below the stack's first pointer.
    let stack = Window {
        base: vectors.stack.saturating_sub(4),
        size: 4,
    };
    let ram = ram_window(context, protection, &firmware, Some(stack.base), report)?;
    mask_words_are_free(context, &firmware, ram, vectors.stack, report)?;
    let mut areas = vec![
        ram_area(ram, protection.ram_of_vm(), memory.place),
        code_area(code, name.place),
    ];
    for region in &spec.regions {
        let window = Window {
            base: region.guest.as_ref()?.value.get(),
            size: region.size.as_ref()?.value.get(),
        };
        areas.push(area(AreaKind::Region, window, region.access, region.start));
    }
    variables_are_inside(
        context,
        &firmware,
        &[("the initial stack", stack)],
        &areas,
        report,
    )?;
    Some(Guest {
        parts: guest::Part::whole(&areas),
        areas,
        pieces: data_pieces(context, &firmware),
        moved_by: firmware.moved_by,
        entry: vectors.reset,
        argument: vectors.address,
        stack: vectors.stack,
        sites: firmware.rewritten.sites,
        lookalikes,
        undefined: firmware.rewritten.undefined,
        debugger_call,
        residents: firmware.code,
        ..Guest::default()
    })
}

/// Reads the program of a VM, and replaces instructions if the class does so. Returns `None` if something was
/// reported.
fn read(
    context: &Context<'_>,
    name: &Placed<String>,
    contents: &[u8],
    instructions: Option<&dyn Instructions>,
    report: &mut Report,
) -> Option<(Vectors, Firmware)> {
    let spec = context.spec;
    let entry = spec.machine.entry.as_ref();
    let mut firmware = program::read(context, name, contents, instructions, report)?;
    let vectors = match firmware.vectors(entry.map(|entry| entry.value.get())) {
        Ok(vectors) => vectors,
        Err(error) => {
            report.push(refusal(context, name, error));
            return None;
        }
    };
    if let (Some(words), Some(instructions)) = (&spec.machine.mask_words, instructions) {
        let address = words.value.get() as u32;
        let Firmware { code, rewritten, .. } = &mut firmware;
        if let Err(why) = instructions.use_mask_words(address, code, rewritten) {
            report.push(refusal(context, name, FirmwareError::Refused(vec![why])));
            return None;
        }
    }
    Some((vectors, firmware))
}

/// Bytes below the first stack pointer that a program uses at least.
const LEAST_STACK: u64 = 256;

/// Checks that the mask words are in the VM's RAM, and that the program says of no variable that it is there.
fn mask_words_are_free(
    context: &Context<'_>,
    firmware: &Firmware,
    ram: Window,
    stack: u64,
    report: &mut Report,
) -> Option<()> {
    let Some(address) = &context.spec.machine.mask_words else {
        return Some(());
    };
    let words = Window {
        base: address.value.get(),
        size: MASK_WORDS_SIZE.into(),
    };
    let variables = firmware
        .ram
        .iter()
        .copied()
        .chain(firmware.data.iter().map(Stretch::window));
    let first_calls = Window {
        base: stack.saturating_sub(LEAST_STACK),
        size: LEAST_STACK,
    };
    let (message, label) = if !words.base.is_multiple_of(MASK_WORDS_SIZE.into()) {
        (
            format!("no mask words can be at {:#x}", words.base),
            "it is no multiple of 32",
        )
    } else if !ram.contains(words) {
        let message = format!(
            "the mask words at {:#x} are not in the partition's memory",
            words.base
        );
        (message, "the program could not reach them")
    } else if variables.into_iter().any(|variables| variables.overlaps(words)) {
        let message = format!(
            "the program has variables where its mask words are, at {:#x}",
            words.base
        );
        (message, "both would change what the other one keeps")
    } else if first_calls.overlaps(words) {
        let message = format!("the program's first stack begins at {stack:#x}, on its mask words");
        (message, "each call would change the masks")
    } else {
        return Some(());
    };
    report.push(Diagnostic::at(Code::BadMachine, address.place, message).label(label).help(format!(
        "give the address of 32 bytes from {:#x} to {:#x} that the program does not use: above its RAM in the linker script, \
         with more `memory`, for example",
        ram.base,
        ram.end()
    )));
    None
}

/// Warns of calls to a debugger that get no answer. Such a program may run as it is: often the calls are
/// linked for an error that never comes. If the program makes such a call, it meets a HardFault, as on a chip
/// without a debugger, and often without a message.
fn semihosting(name: &Placed<String>, calls: &[u32]) -> Option<Diagnostic> {
    let first = calls.first()?;
    let message = format!(
        "the program `{}` can call a debugger (BKPT 0xAB), and `machine.semihosting` says that nobody answers",
        name.value
    );
    let places = if calls.len() == 1 { "place" } else { "places" };
    let found = Diagnostic::at(Code::Semihosting, name.place, message)
        .label(format!("in {} {places}, the first at {first:#x}: a HardFault of its own there", calls.len()))
        .help("link it without (`--specs=nosys.specs` instead of `rdimon.specs`, for example), or let them be answered");
    Some(found)
}
