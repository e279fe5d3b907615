// SPDX-License-Identifier: Apache-2.0
//! Programs in ELF that Linux is to start.

use super::Context;
use crate::payload::elf::{has_odd_width, machine_name, machine_of, no_program};

/// Returns the reason why Linux cannot start an ELF file, and the remedy.
pub(super) fn elf_fault(context: &Context<'_>, contents: &[u8]) -> Option<(String, String)> {
    let machine = machine_of(contents);
    let mut programs = context.board.class.facts().programs.iter();
    let fits = machine.is_none_or(|machine| programs.any(|program| program.machine == machine));
    let is_odd = has_odd_width(contents);
    if let Some(machine) = machine.filter(|_| !fits || is_odd) {
        let width = if is_odd {
            ", with addresses of another width than is usual"
        } else {
            ""
        };
        let why = format!(
            "it is an ELF file for machine {machine} ({}){width}",
            machine_name(machine)
        );
        return Some((why, "build it for the processor of the VM".to_owned()));
    }
    let why = no_program(contents)?;
    Some((
        why.to_owned(),
        "link it into a program, and copy the whole file".to_owned(),
    ))
}
