// SPDX-License-Identifier: Apache-2.0
//! Places on a board whose class translates nothing: every area is where its program is linked.
//!
//! So there is nothing to choose, only to check. Areas must be in the board's memory of their kind, apart
//! from the hypervisor's share and from each other, and the hardware must have enough regions for each
//! partition.
//! Refusals name the smallest change that helps.
#![deny(clippy::arithmetic_side_effects)]

use bulkhead_image::layout::NIC_MEMORY;

use super::protection::{self, Protection};
use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, FileId, Place, Report};
use crate::guest::{Area, AreaKind, Guest};
use crate::model::{Kind, Manifest, PartitionSpec, Placed};
use crate::place::memory::{Input, Plan, lowest, share, trace_place};
use crate::units::{align_up, format_size};
use crate::window::{Window, range, ranges};

/// An area of a partition.
#[derive(Clone, Copy)]
struct Owned<'a> {
    /// The name of the partition.
    owner: &'a str,
    area: &'a Area,
}

/// Finds places; `None` if something was reported.
pub(crate) fn plan(protection: &dyn Protection, input: &Input<'_>, report: &mut Report) -> Option<Plan> {
    let errors = report.error_count();
    let board = input.board;
    let image_base = board.load_address.checked_add(input.binary)?;
    let end = align_up(image_base.checked_add(input.image)?, board.class.facts().granule)?;
    let hypervisor = Window {
        base: board.load_address,
        size: end.saturating_sub(board.load_address),
    };
    if !board.own_code.contains(hypervisor) {
        report.push(hypervisor_too_large(input, hypervisor));
        return None;
    }
    let mut seen: Vec<Owned<'_>> = Vec::new();
    for (spec, guest) in input.specs.iter().zip(input.guests) {
        for area in &guest.areas {
            let owned = Owned {
                owner: spec.name.value.as_str(),
                area,
            };
            check_area(protection, input, owned, &seen, report);
            seen.push(owned);
        }
        protection::check(protection, board, spec, guest, report);
    }
    let log = board.log();
    let pool = Window {
        base: log.end(),
        size: board.own_ram.size.saturating_sub(log.size),
    };
    let mut taken: Vec<Window> = seen.iter().map(|owned| owned.area.window).collect();
    taken.push(board.own_ram);
    let frames = frames_of(input, &mut taken, report);
    let trace = input.trace.map(|wish| trace_place(board, wish, &taken));
    if trace == Some(None) {
        report.push(no_room_for_trace(input));
    }
    let mut hosts: Vec<Vec<u64>> = input
        .guests
        .iter()
        .map(|guest| guest.areas.iter().map(|area| area.window.base).collect())
        .collect();
    let channels = share(input, &mut hosts);
    (report.error_count() == errors).then(|| Plan {
        channels,
        hypervisor,
        image_base,
        log,
        pool,
        trace: trace.flatten(),
        frames,
        hosts,
    })
}

/// Returns the partitions with a network, by number, and the address of the frames of each. Frames that the
/// partition does not see get a place, which is `taken` then.
fn frames_of(input: &Input<'_>, taken: &mut Vec<Window>, report: &mut Report) -> Vec<(usize, u64)> {
    let mut frames = Vec::new();
    for (number, spec) in input.specs.iter().enumerate() {
        let Some(network) = &spec.network else { continue };
        let wanted = Window {
            base: 0,
            size: NIC_MEMORY,
        };
        // The memory that the partition sees has its place already.
        let seen = input.guests.get(number).and_then(Guest::frames);
        if let Some(base) = seen {
            frames.push((number, base));
            continue;
        }
        let Some(base) = lowest(input.board, wanted, NIC_MEMORY, taken) else {
            report.push(no_room_for_frames(spec, network));
            continue;
        };
        taken.push(Window {
            base,
            size: NIC_MEMORY,
        });
        frames.push((number, base));
    }
    frames
}

/// Finds places for the channels in RAM that has no owner. Each is one piece, at one address for all sides. A
/// channel without room stays where nothing is, and is reported with the places of everything.
pub(crate) fn place_channels(
    protection: &dyn Protection,
    board: &Board,
    manifest: &Manifest,
    guests: &mut [Guest],
    report: &mut Report,
) {
    let areas = guests.iter().flat_map(|guest| &guest.areas);
    let own = areas.filter(|area| !matches!(area.kind, AreaKind::Channel(_) | AreaKind::Frames));
    let mut taken: Vec<Window> = own.map(|area| area.window).collect();
    taken.push(board.own_ram);
    let given = manifest.channels.iter().filter_map(|channel| {
        let (at, size) = (channel.at.as_ref()?, channel.size.as_ref()?);
        Some(Window {
            base: at.value.get(),
            size: size.value.get(),
        })
    });
    taken.extend(given);
    for (number, channel) in manifest.channels.iter().enumerate() {
        let Some(size) = channel.size.as_ref().map(|size| size.value.get()) else {
            continue;
        };
        let found = match &channel.at {
            Some(at) => Some(at.value.get()),
            None => free(protection, &board.ram, size, &taken),
        };
        let Some(base) = found else {
            let message = format!(
                "no {} of RAM in one piece are left for channel `{}`",
                format_size(size),
                channel.name.value
            );
            report.push(
                Diagnostic::at(Code::RamExhausted, channel.name.place, message)
                    .help("give the partitions less memory, or the channel"),
            );
            continue;
        };
        let window = Window { base, size };
        if channel.at.is_none() {
            taken.push(window);
        }
        for guest in &mut *guests {
            guest.move_area(AreaKind::Channel(number), window);
            guest.move_area(AreaKind::Lent(number), window);
        }
    }
}

/// Finds places for the frames of partitions that see them: each in one piece. Frames without
/// room stay where nothing is, and are reported with the places of everything.
pub(crate) fn place_frames(
    protection: &dyn Protection,
    board: &Board,
    manifest: &Manifest,
    guests: &mut [Guest],
    report: &mut Report,
) {
    let areas = guests.iter().flat_map(|guest| &guest.areas);
    let own = areas.filter(|area| area.kind != AreaKind::Frames);
    let mut taken: Vec<Window> = own.map(|area| area.window).collect();
    taken.push(board.own_ram);
    for (spec, guest) in manifest.partitions.iter().zip(guests) {
        let Some(network) = spec.network.as_ref().filter(|_| *spec.frame_ring) else {
            continue;
        };
        let Some(base) = free(protection, &board.ram, NIC_MEMORY, &taken) else {
            report.push(no_room_for_frames(spec, network));
            continue;
        };
        let window = Window {
            base,
            size: NIC_MEMORY,
        };
        taken.push(window);
        guest.move_area(AreaKind::Frames, window);
    }
}

fn first_place(input: &Input<'_>) -> Place {
    input.specs.first().map_or(
        Place {
            file: FileId(0),
            start: 0,
            end: 0,
        },
        |spec| spec.name.place,
    )
}

fn hypervisor_too_large(input: &Input<'_>, hypervisor: Window) -> Diagnostic {
    let message = format!(
        "class binary and system image take {} of code memory, more than the hypervisor's {}",
        format_size(hypervisor.size),
        format_size(input.board.own_code.size)
    );
    Diagnostic::at(Code::RamExhausted, first_place(input), message)
        .help("use fewer partitions, or link the class binary, and say so in `hypervisor.code` of the board, for more")
}

fn no_room_for_frames(spec: &PartitionSpec, network: &Placed<String>) -> Diagnostic {
    let message = format!(
        "no {} of RAM are left for frames of `{}`",
        format_size(NIC_MEMORY),
        spec.name.value
    );
    Diagnostic::at(Code::RamExhausted, network.place, message).help("give the partitions less memory")
}

fn no_room_for_trace(input: &Input<'_>) -> Diagnostic {
    Diagnostic::at(
        Code::RamExhausted,
        first_place(input),
        "no RAM is left for a trace",
    )
    .help("give the partitions less memory, or run without a trace")
}

/// Returns the change with which the program at `window` would end below `end`. `None` if the program begins
/// at `end` or above.
fn shorter(name: &str, window: Window, end: u64, kind: AreaKind) -> Option<String> {
    let room = end.checked_sub(window.base).filter(|room| *room > 0)?;
    let what = match kind {
        AreaKind::Code => format!("the length of code memory in the linker script of `{name}`"),
        AreaKind::Region | AreaKind::Flash => format!("`size` of the region of `{name}`"),
        _ => format!("`memory` of `{name}`, and the length of RAM in its linker script,"),
    };
    Some(format!(
        "from {:#x} on {what} can be {}",
        window.base,
        format_size(room)
    ))
}

/// Returns the first place of `stretches` for `size` bytes in one piece, apart from the windows in `taken`.
fn free(protection: &dyn Protection, stretches: &[Window], size: u64, taken: &[Window]) -> Option<u64> {
    let unit = protection.alignment(size)?;
    let starts = stretches.iter().map(|stretch| stretch.base);
    let starts = starts.chain(taken.iter().map(|taken| taken.end()));
    let fits = |base: &u64| {
        let window = Window { base: *base, size };
        stretches.iter().any(|stretch| stretch.contains(window))
            && !taken.iter().any(|taken| taken.overlaps(window))
    };
    starts
        .filter_map(|start| align_up(start, unit))
        .filter(fits)
        .min()
}

/// Returns the remedies that keep an area off another, or off the hypervisor's own memory: another place, or
/// less memory for the one that is `below` the area.
fn apart(protection: &dyn Protection, input: &Input<'_>, owned: Owned<'_>, below: Option<String>) -> String {
    let Owned { owner: name, area } = owned;
    let (stretches, own, what) = memory_for(input.board, area.kind);
    let others = input.guests.iter().flat_map(|guest| &guest.areas);
    let mut taken: Vec<Window> = others
        .filter(|other| !core::ptr::eq(*other, area))
        .map(|other| other.window)
        .collect();
    taken.push(own);
    let place = free(protection, stretches, area.window.size, &taken)
        .map(|base| format!("{what} is free for that of `{name}` at {base:#x}"));
    let ways: Vec<String> = below.into_iter().chain(place).collect();
    if ways.is_empty() {
        return "give the partitions less memory".to_owned();
    }
    ways.join("; or ")
}

/// Returns the noun for an area of a kind.
const fn noun(kind: AreaKind) -> &'static str {
    match kind {
        AreaKind::Code => "code",
        _ => "memory",
    }
}

/// Returns the memory of the board for areas of a kind, the hypervisor's share of this memory, and its name.
fn memory_for(board: &Board, kind: AreaKind) -> (&[Window], Window, &'static str) {
    match kind {
        AreaKind::Code => (&board.code, board.own_code, "code memory"),
        _ => (&board.ram, board.own_ram, "RAM"),
    }
}

/// Checks that an area is in memory of its kind that has no other owner.
fn check_area(
    protection: &dyn Protection,
    input: &Input<'_>,
    owned: Owned<'_>,
    seen: &[Owned<'_>],
    report: &mut Report,
) {
    let Owned { owner: name, area } = owned;
    let board = input.board;
    if matches!(area.kind, AreaKind::Lent(_)) {
        // Registers are no memory.
        return;
    }
    let (stretches, own, _) = memory_for(board, area.kind);
    let what = noun(area.kind);
    let window = area.window;
    if !stretches.iter().any(|stretch| stretch.contains(window)) {
        let message = format!("{what} of `{name}` is outside the board's memory for it");
        report.push(
            Diagnostic::at(Code::OutsideRam, area.place, message)
                .label(range(window))
                .help(format!("board `{}` has {}", board.name, ranges(stretches))),
        );
    } else if window.overlaps(own) {
        let message = format!("{what} of `{name}` is on the hypervisor's own");
        report.push(
            Diagnostic::at(Code::HypervisorMemory, area.place, message)
                .label(format!("{}; the hypervisor: {}", range(window), range(own)))
                .help(apart(
                    protection,
                    input,
                    owned,
                    shorter(name, window, own.base, area.kind),
                )),
        );
    } else {
        // The sides of a channel see the same memory.
        let is_same = |other: &Area| matches!(area.kind, AreaKind::Channel(_)) && other.kind == area.kind;
        let strange = |other: &Area| other.window.overlaps(window) && !is_same(other);
        for first in seen.iter().filter(|other| strange(other.area)) {
            report.push(overlap(protection, input, *first, owned));
        }
    }
}

/// Reports two areas that share addresses.
fn overlap(
    protection: &dyn Protection,
    input: &Input<'_>,
    first: Owned<'_>,
    second: Owned<'_>,
) -> Diagnostic {
    let (window, other) = (second.area.window, first.area.window);
    let what = noun(second.area.kind);
    let message = format!(
        "{what} of `{}` and of `{}` overlap at {:#x}",
        second.owner,
        first.owner,
        window.base.max(other.base)
    );
    let shorter = shorter(first.owner, other, window.base, first.area.kind)
        .or_else(|| shorter(second.owner, window, other.base, second.area.kind));
    // The smaller one is more likely to be one that the user links.
    let moved = if other.size < window.size { first } else { second };
    Diagnostic::at(Code::PlaceOverlap, second.area.place, message)
        .label(format!("{}, rounded to {}", range(window), protection.rounding()))
        .also(first.area.place, range(other))
        .help(match copies(input, first, second) {
            Some(image) => format!(
                "two copies of `{image}` need two places: link it as a position-independent program (`-fPIE -pie`, in C) \
                 and give each copy a `machine.load-at`, or link a file for each place"
            ),
            None => apart(protection, input, moved, shorter),
        })
}

/// Returns the image of two VMs if both have the same, and neither is moved.
fn copies<'a>(input: &Input<'a>, first: Owned<'_>, second: Owned<'_>) -> Option<&'a str> {
    let image = |owned: Owned<'_>| {
        let mut specs = input.specs.iter();
        let spec = specs.find(|spec| spec.name.value == owned.owner)?;
        let can_move = spec.kind == Kind::Vm && spec.machine.load_at.is_none();
        spec.image
            .as_ref()
            .filter(|_| can_move)
            .map(|image| image.value.as_str())
    };
    image(first).filter(|name| first.owner != second.owner && image(second) == Some(name))
}
