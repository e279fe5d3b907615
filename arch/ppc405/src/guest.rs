// SPDX-License-Identifier: Apache-2.0
//! The memory of a guest at a trap: its instructions, and translations that are not in the buffer.

use crate::buffer::Buffer;
use crate::context::Context;
use crate::regions::Space;
use crate::sysreg::{self, SPRG0, SPRG4, SPRG5, SPRG6, SPRG7, SRR2, SRR3};
use bulkhead_arch_ppc405_core::fill::{self, Stretch};
use bulkhead_arch_ppc405_core::mmu::{Found, Kind, Mode};
use bulkhead_arch_support::physical;

/// Logarithms of the largest page, and of the page in a mode where instructions and data differ.
const LARGEST: u32 = 24;
const SMALLEST: u32 = 12;

/// The answer to an access that the buffer has no entry for.
pub(crate) enum Answer {
    /// The guest goes on: there is an entry now, or it takes an interrupt.
    Done,
    /// It is the partition's own memory, in a page that is too small for an entry.
    Small(u32),
    /// It is no memory of the partition's, or memory that it may not use so. The guest-physical address.
    Foreign(u32),
}

/// Tells whether a partition may use its memory so.
const fn allows(stretch: &Stretch, kind: Kind) -> bool {
    match kind {
        Kind::Fetch => stretch.execute,
        Kind::Load => stretch.read,
        Kind::Store => stretch.write,
    }
}

/// Returns the instruction at the guest's PC, if it is the guest's memory.
pub(crate) fn instruction(context: &Context, space: &Space) -> Option<u32> {
    let pc = context.registers.frame.pc;
    let found = context.cpu.translate(pc, Kind::Fetch).ok()?;
    let stretch = space.at(found.physical).filter(|stretch| !stretch.is_device)?;
    let host = stretch.host(found.physical) & !3;
    // SAFETY: memory of the partition, to which no Rust reference exists.
    Some(unsafe { physical::read_word32(host as usize) })
}

/// Answers an access of a task, whose addresses are not translated by anybody but us.
pub(crate) fn fill_task(space: &Space, buffer: &mut Buffer, address: u32, kind: Kind) -> Answer {
    let Some(stretch) = space.at(address).filter(|stretch| allows(stretch, kind)) else {
        return Answer::Foreign(address);
    };
    let found = Found {
        physical: address,
        entry: None,
        write: true,
        execute: true,
    };
    match fill::entry(address, &found, stretch, LARGEST) {
        Some(entry) => {
            buffer.fill(&entry, None, false);
            Answer::Done
        }
        None => Answer::Foreign(address),
    }
}

/// Answers an access of a VM.
pub(crate) fn fill_vm(
    context: &mut Context,
    space: &Space,
    buffer: &mut Buffer,
    address: u32,
    kind: Kind,
) -> Answer {
    let cpu = &mut context.cpu;
    let found = match cpu.translate(address, kind) {
        Ok(found) => found,
        Err(why) => {
            cpu.refuse(&mut context.registers.frame, address, kind, why);
            return Answer::Done;
        }
    };
    let Some(stretch) = space.at(found.physical).filter(|stretch| allows(stretch, kind)) else {
        return Answer::Foreign(found.physical);
    };
    let is_mixed = cpu.mode() == Mode::Mixed;
    let (seen, largest) = if is_mixed {
        (Found { entry: None, ..found }, SMALLEST)
    } else {
        (found, LARGEST)
    };
    let small = found.entry.is_some_and(|(_, entry)| entry.size() < SMALLEST);
    let Some(mut entry) = fill::entry(address, &seen, stretch, largest).filter(|_| !small) else {
        return Answer::Small(found.physical);
    };
    entry.is_of_mode |= is_mixed;
    let first = entry.address();
    let last = first | ((1_u32 << entry.size).wrapping_sub(1));
    // Without translation, an entry for all processes would hide what is at its address.
    let for_all = seen.entry.is_some_and(|(_, entry)| entry.process == 0);
    let is_global = for_all && !entry.is_of_mode && !space.answers(first, last);
    buffer.fill(&entry, seen.entry.map(|(number, _)| number), is_global);
    if entry.is_of_mode {
        context.short.forbid_changes();
    }
    Answer::Done
}

/// Makes the real processor follow the changes of the guest's.
pub(crate) fn follow(context: &mut Context, buffer: &mut Buffer) {
    let is_task = context.is_task();
    let cpu = &mut context.cpu;
    let changes = cpu.take_changes();
    if changes.all {
        buffer.forget_all();
    } else if changes.entries != 0 {
        buffer.forget(changes.entries);
    }
    if changes.mode {
        let zones = fill::real_zones(cpu.zones, cpu.is_user());
        match cpu.mode() {
            _ if is_task => buffer.go_to_real_mode(),
            Mode::Real => buffer.go_to_real_mode(),
            Mode::Mixed => buffer.go_to_mixed_mode(zones),
            Mode::Translated => buffer.go_to_process(cpu.process, zones),
        }
    }
    if changes.visible {
        let [own, _, _, _, fourth, fifth, sixth, seventh] = cpu.scratch;
        sysreg::write_spr::<SPRG0>(own);
        sysreg::write_spr::<SPRG4>(fourth);
        sysreg::write_spr::<SPRG5>(fifth);
        sysreg::write_spr::<SPRG6>(sixth);
        sysreg::write_spr::<SPRG7>(seventh);
        let [.., critical_pc, critical_state] = cpu.saved;
        sysreg::write_spr::<SRR2>(critical_pc);
        sysreg::write_spr::<SRR3>(critical_state);
    }
    if !is_task {
        context.allow_short(!buffer.has_entries_of_mode());
    }
}
