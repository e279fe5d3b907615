// SPDX-License-Identifier: Apache-2.0
//! The places of everything on the board.
//!
//! The hypervisor's area starts at the board's load address: class binary, system image, then the memory for
//! translation tables. Partitions are placed around this area. Areas with a place in the manifest come first.
//! The others follow by size, largest first, each at the lowest place that suits. A place suits if guest and
//! bus address agree modulo the largest block of the class ([`Input::blocks`]) not larger than the area, else
//! modulo a page, so that translation uses as few tables and TLB entries as possible. If there is no such
//! place, the next smaller block counts. The manifest alone fixes the order: the same manifest always gives
//! the same places.
//!
//! A partition with a device whose DMA nothing confines sees its memory at the bus addresses themselves,
//! because its driver gives the device guest addresses. At any other place the device would overwrite memory
//! of another owner. The plan also chooses the place of such RAM, unless the manifest gives the place.
#![deny(clippy::arithmetic_side_effects)]

use crate::board::Board;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::guest::{Area, AreaKind, Guest};
use crate::model::PartitionSpec;
use crate::model::devices::{chooses_ram_base, needs_identity};
use crate::units::{BLOCK, GIB, PAGE, align_up, format_size};
use crate::window::{Window, range, ranges};
use bulkhead_abi::trace::{RECORD_SIZE, RING_MAX, RING_MIN};

/// Number of translation tables of the hypervisor itself, and for mappings that change while it runs.
const OWN_TABLES: u64 = 64;
/// Root tables of a partition: at most this many pages are concatenated for 40 address bits.
const ROOT_TABLES: u64 = 4;

/// Places of everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// The hypervisor's area. If the class executes code in place, this area is in code memory.
    pub hypervisor: Window,
    pub image_base: u64,
    /// RAM for the log, directly below the hypervisor's area. This place depends on the board alone.
    pub log: Window,
    /// Memory for translation tables. If the class executes code in place, this is the hypervisor's RAM.
    pub pool: Window,
    /// RAM for the rings of the trace: bus address, and records of each ring. `None` if nothing is traced.
    pub trace: Option<(u64, u32)>,
    /// RAM for the frames of each partition that is on a network.
    pub frames: Vec<(usize, u64)>,
    /// The bus address of each channel.
    pub channels: Vec<u64>,
    /// The bus address of each area, per partition.
    pub hosts: Vec<Vec<u64>>,
}

/// The inputs of a plan.
pub(crate) struct Input<'a> {
    pub board: &'a Board,
    pub specs: &'a [PartitionSpec],
    pub guests: &'a [Guest],
    /// Number of channels.
    pub channels: usize,
    /// Sizes of blocks of the class, largest first.
    pub blocks: &'a [u64],
    /// Bytes of the class binary, in whole pages.
    pub binary: u64,
    /// Room that is kept for the class binary at least.
    pub reserve: u64,
    /// Bytes of the system image.
    pub image: u64,
    /// Rings of the trace, if there are to be any.
    pub trace: Option<TraceWish>,
}

/// Rings that are to be placed.
#[derive(Clone, Copy)]
pub(crate) struct TraceWish {
    /// Number of rings.
    pub rings: usize,
    /// Records of each ring.
    pub records: u32,
    /// The place of the manifest's wish, if the manifest has one. The rings then have this length, or there
    /// is no room. Without such a wish they may be shorter.
    pub asked: Option<Place>,
}

/// Returns the sizes of blocks of the class without the largest ones, as many as it takes to find a place for
/// each area. The work grows with the sizes times the square of the areas.
fn sizes_with_room<'s>(input: &Input<'s>, areas: &[Block<'_>], taken: &[Window]) -> &'s [u64] {
    let has_room = |sizes: &&[u64]| {
        let mut taken = taken.to_vec();
        areas.iter().all(|area| {
            let base = area.lowest(input.board, sizes, &taken);
            taken.extend(base.map(|base| Window {
                base,
                size: area.size,
            }));
            base.is_some()
        })
    };
    let mut smaller = (0..input.blocks.len()).filter_map(|largest| input.blocks.get(largest..));
    smaller.find(has_room).unwrap_or(input.blocks)
}

/// An area to place.
struct Block<'a> {
    partition: usize,
    area: usize,
    name: &'a str,
    guest: u64,
    size: u64,
    place: Place,
    wish: Option<Wish>,
}

/// The place where an area must be.
struct Wish {
    at: u64,
    place: Place,
    identity: bool,
}

impl Block<'_> {
    fn fixed(&self) -> Option<Window> {
        self.wish.as_ref().map(|wish| Window {
            base: wish.at,
            size: self.size,
        })
    }

    /// Returns the lowest place where guest and bus address agree modulo the largest block that there is room
    /// for. `blocks` are the sizes of blocks, largest first.
    fn lowest(&self, board: &Board, blocks: &[u64], taken: &[Window]) -> Option<u64> {
        let window = Window {
            base: self.guest,
            size: self.size,
        };
        let mut fitting = blocks
            .iter()
            .copied()
            .filter(|block| self.size >= *block)
            .peekable();
        let page = fitting.peek().is_none().then_some(PAGE);
        fitting
            .chain(page)
            .find_map(|block| lowest(board, window, block, taken))
    }
}

/// Finds places for every class that translates addresses; `None` if something was reported.
pub(crate) fn plan(input: &Input<'_>, report: &mut Report) -> Option<Plan> {
    let errors = report.error_count();
    let mut blocks = blocks(input, report);
    let image_base = input.board.load_address.checked_add(input.binary)?;
    let pool = Window {
        base: align_up(image_base.checked_add(input.image)?, PAGE)?,
        size: pool_size(&blocks, channel_tables(input))?,
    };
    // The area itself ends at a block boundary, as if the binary filled its reserve.
    let spare = input.reserve.saturating_sub(input.binary);
    let end = align_up(pool.base.checked_add(pool.size)?.checked_add(spare)?, BLOCK)?;
    let hypervisor = Window {
        base: input.board.load_address,
        size: end.checked_sub(input.board.load_address)?,
    };
    if !input.board.ram.iter().any(|ram| ram.contains(hypervisor)) {
        report.push(exhausted(input, hypervisor, &blocks, None));
        return None;
    }
    let mut hosts: Vec<Vec<u64>> = input
        .guests
        .iter()
        .map(|guest| guest.areas.iter().map(place_of_registers).collect())
        .collect();
    // The check of a board makes sure that there is RAM.
    let log = input.board.log();
    let own = Window {
        base: log.base,
        size: hypervisor.size.saturating_add(log.size),
    };
    let mut taken = vec![own];
    place_fixed(input, &blocks, own, &mut hosts, &mut taken, report);
    blocks.retain(|block| block.wish.is_none());
    blocks.sort_by_key(|block| std::cmp::Reverse(block.size));
    let sizes = sizes_with_room(input, &blocks, &taken);
    for block in &blocks {
        match block.lowest(input.board, sizes, &taken) {
            Some(base) => {
                hosts[block.partition][block.area] = base;
                taken.push(Window {
                    base,
                    size: block.size,
                });
            }
            None => report.push(exhausted(input, hypervisor, &blocks, Some(block))),
        }
        if report.error_count() > errors {
            return None;
        }
    }
    let channels = share(input, &mut hosts);
    // The rings come last, so that everything else is where it is without a trace.
    let trace = input.trace.map(|wish| trace_place(input.board, wish, &taken));
    if let (Some(None), Some(wish)) = (trace, input.trace) {
        report.push(no_room_for_trace(input, wish, hypervisor, &blocks));
    }
    (report.error_count() == errors).then_some(Plan {
        channels,
        frames: Vec::new(),
        trace: trace.flatten(),
        hypervisor,
        image_base,
        log,
        pool,
        hosts,
    })
}

fn blocks<'a>(input: &Input<'a>, report: &mut Report) -> Vec<Block<'a>> {
    let mut blocks = Vec::new();
    let mut placed = vec![false; input.channels];
    for (partition, (spec, guest)) in input.specs.iter().zip(input.guests).enumerate() {
        let identity = needs_identity(spec, input.board);
        let open = chooses_ram_base(spec, input.board);
        for (index, area) in guest.areas.iter().enumerate() {
            if matches!(area.kind, AreaKind::Lent(_)) {
                continue;
            }
            if let AreaKind::Channel(number) = area.kind {
                // The first side stands for all. No device of a side accesses a channel by itself.
                if core::mem::replace(&mut placed[number], true) {
                    continue;
                }
            }
            let is_channel = matches!(area.kind, AreaKind::Channel(_));
            // No device writes to a flash.
            let identity = identity && !is_channel && area.kind != AreaKind::Flash;
            let identity = identity && !(open && area.kind == AreaKind::Ram);
            let base = area.window.base;
            let wish = match &area.at {
                Some(at) if identity && at.value.get() != base => {
                    report.push(not_identical(spec, at.place, base, at.value.get()));
                    None
                }
                Some(at) => Some(Wish {
                    at: at.value.get(),
                    place: at.place,
                    identity,
                }),
                None if identity => Some(Wish {
                    at: base,
                    place: area.place,
                    identity,
                }),
                None => None,
            };
            blocks.push(Block {
                partition,
                area: index,
                name: &spec.name.value,
                guest: base,
                size: area.window.size,
                place: area.place,
                wish,
            });
        }
    }
    blocks
}

/// Returns where the registers of a device that is lent are. Other areas have no place yet.
fn place_of_registers(area: &Area) -> u64 {
    match (area.kind, &area.at) {
        (AreaKind::Lent(_), Some(at)) => at.value.get(),
        _ => 0,
    }
}

/// Gives every side of a channel the place of the first one. Returns the places of the channels.
pub(crate) fn share(input: &Input<'_>, hosts: &mut [Vec<u64>]) -> Vec<u64> {
    let mut places: Vec<Option<u64>> = vec![None; input.channels];
    for (guest, hosts) in input.guests.iter().zip(hosts) {
        for (area, host) in guest.areas.iter().zip(hosts) {
            if let AreaKind::Channel(number) | AreaKind::Lent(number) = area.kind
                && let Some(place) = places.get_mut(number)
            {
                *host = *place.get_or_insert(*host);
            }
        }
    }
    places.into_iter().map(Option::unwrap_or_default).collect()
}

/// Returns the number of tables for the sides of channels, as if no block of theirs were congruent.
fn channel_tables(input: &Input<'_>) -> u64 {
    let areas = input.guests.iter().flat_map(|guest| &guest.areas);
    let sides = areas.filter(|area| matches!(area.kind, AreaKind::Channel(_) | AreaKind::Lent(_)));
    sides.fold(0, |sum: u64, area| {
        let leaves = (area.window.size / BLOCK).saturating_add(2);
        let upper = (area.window.size / GIB).saturating_add(2);
        sum.saturating_add(leaves).saturating_add(upper)
    })
}

fn not_identical(spec: &PartitionSpec, place: Place, guest: u64, host: u64) -> Diagnostic {
    let message = format!(
        "memory of `{}` at {guest:#x} is placed at {host:#x}, but its devices do DMA without IOMMU",
        spec.name.value
    );
    Diagnostic::at(Code::DmaNeedsIdentity, place, message)
        .label("the devices would access other addresses than the driver means")
        .help("remove `place`, and choose `machine.ram-base` inside the board's RAM")
}

/// Returns the bytes for the tables of the mappings. Each area needs one table per GiB for its blocks of 2
/// MiB, and one per 2 MiB at its ends (or everywhere, if a wish forbids blocks). A quarter is added.
fn pool_size(blocks: &[Block<'_>], more: u64) -> Option<u64> {
    let last = blocks.iter().map(|block| block.partition).max();
    let partitions = last.map_or(0, |last| (last as u64).saturating_add(1));
    let mut tables = OWN_TABLES
        .checked_add(ROOT_TABLES.checked_mul(partitions)?)?
        .checked_add(more)?;
    for block in blocks {
        let congruent = block
            .wish
            .as_ref()
            .is_none_or(|wish| wish.at % BLOCK == block.guest % BLOCK);
        let leaves = if congruent && block.size >= BLOCK {
            2
        } else {
            (block.size / BLOCK).checked_add(2)?
        };
        tables = tables
            .checked_add(leaves)?
            .checked_add((block.size / GIB).checked_add(2)?)?;
    }
    // Two tables per partition for the pages of devices passed through.
    tables = tables.checked_add(partitions.checked_mul(2)?)?;
    align_up(tables.checked_add(tables / 4)?.checked_mul(PAGE)?, 16 * PAGE)
}

fn place_fixed(
    input: &Input<'_>,
    blocks: &[Block<'_>],
    hypervisor: Window,
    hosts: &mut [Vec<u64>],
    taken: &mut Vec<Window>,
    report: &mut Report,
) {
    let fixed: Vec<_> = blocks
        .iter()
        .filter_map(|block| Some((block, block.wish.as_ref()?, block.fixed()?)))
        .collect();
    for (index, (block, wish, window)) in fixed.iter().enumerate() {
        let earlier = fixed[..index]
            .iter()
            .find(|(_, _, other)| other.overlaps(*window));
        if !input.board.ram.iter().any(|ram| ram.contains(*window)) {
            report.push(outside_ram(input.board, block, wish, *window));
        } else if window.overlaps(hypervisor) {
            report.push(on_hypervisor(block, wish, hypervisor));
        } else if let Some((other, other_wish, other_window)) = earlier {
            let message = format!(
                "memory of `{}` and of `{}` are both placed at {:#x}",
                other.name,
                block.name,
                window.base.max(other_window.base)
            );
            report.push(
                Diagnostic::at(Code::PlaceOverlap, wish.place, message)
                    .label(range(*window))
                    .also(other_wish.place, range(*other_window))
                    .help("remove `place`, or choose addresses that are apart"),
            );
        } else {
            hosts[block.partition][block.area] = wish.at;
            taken.push(*window);
        }
    }
}

fn outside_ram(board: &Board, block: &Block<'_>, wish: &Wish, window: Window) -> Diagnostic {
    let ram = ranges(&board.ram);
    if wish.identity {
        let message = format!(
            "memory of `{}` must be at its own bus addresses because of DMA, but {} is outside the board's RAM",
            block.name,
            range(window)
        );
        return Diagnostic::at(Code::DmaNeedsIdentity, wish.place, message).help(format!(
            "set `machine.ram-base` so that all of it is inside {ram}"
        ));
    }
    let message = format!("memory of `{}` is placed outside the board's RAM", block.name);
    Diagnostic::at(Code::OutsideRam, wish.place, message)
        .label(range(window))
        .help(format!("board `{}` has RAM at {ram}", board.name))
}

fn on_hypervisor(block: &Block<'_>, wish: &Wish, hypervisor: Window) -> Diagnostic {
    let first_free = hypervisor.end();
    if wish.identity {
        let message = format!(
            "memory of `{}` must be at its own bus addresses because of DMA, but the hypervisor is there",
            block.name
        );
        return Diagnostic::at(Code::DmaNeedsIdentity, wish.place, message)
            .label(format!("the hypervisor: {}", range(hypervisor)))
            .help(format!("set `machine.ram-base` to {first_free:#x} or above"));
    }
    let message = format!("memory of `{}` is placed on the hypervisor's own", block.name);
    Diagnostic::at(Code::HypervisorMemory, wish.place, message)
        .label(format!("the hypervisor: {}", range(hypervisor)))
        .help(format!("place it at {first_free:#x} or above"))
}

/// Returns the lowest bus address for a window of a guest that agrees with the guest address modulo `align`.
pub(crate) fn lowest(board: &Board, guest: Window, align: u64, taken: &[Window]) -> Option<u64> {
    let mut best: Option<u64> = None;
    let mut starts: Vec<u64> = board.ram.iter().map(|ram| ram.base).collect();
    starts.extend(taken.iter().map(|window| window.end()));
    for start in starts {
        let Some(base) = agree(start, guest.base, align) else {
            continue;
        };
        let window = Window {
            base,
            size: guest.size,
        };
        let free = board.ram.iter().any(|ram| ram.contains(window))
            && !taken.iter().any(|other| other.overlaps(window));
        if free && best.is_none_or(|best| base < best) {
            best = Some(base);
        }
    }
    best
}

/// Returns the place of the trace's rings, and the number of records of each ring: as many as there is room
/// for, up to the wish.
pub(crate) fn trace_place(board: &Board, wish: TraceWish, taken: &[Window]) -> Option<(u64, u32)> {
    let mut records = wish.records.clamp(RING_MIN, RING_MAX).next_power_of_two();
    let least = if wish.asked.is_some() { records } else { RING_MIN };
    while records >= least {
        let size = ring_size(records).saturating_mul(wish.rings as u64);
        if let Some(base) = lowest(board, Window { base: 0, size }, PAGE, taken) {
            return Some((base, records));
        }
        records /= 2;
    }
    None
}

/// Returns the bytes of a ring.
fn ring_size(records: u32) -> u64 {
    u64::from(records).saturating_mul(RECORD_SIZE as u64)
}

fn no_room_for_trace(
    input: &Input<'_>,
    wish: TraceWish,
    hypervisor: Window,
    blocks: &[Block<'_>],
) -> Diagnostic {
    let Some(place) = wish.asked else {
        return exhausted(input, hypervisor, blocks, None);
    };
    let size = format_size(ring_size(wish.records));
    let message = format!(
        "no place is left for {} rings of the trace, {size} each",
        wish.rings
    );
    Diagnostic::at(Code::RamExhausted, place, message).help("give less, or give some partition less")
}

/// Returns the first address from `start` on that is equal to `guest` modulo `align`, a power of two.
fn agree(start: u64, guest: u64, align: u64) -> Option<u64> {
    // The wrapped part is a multiple of every power of two.
    let distance = guest.wrapping_sub(start).checked_rem(align)?;
    start.checked_add(distance)
}

fn exhausted(
    input: &Input<'_>,
    hypervisor: Window,
    blocks: &[Block<'_>],
    block: Option<&Block<'_>>,
) -> Diagnostic {
    let total: u64 = input
        .board
        .ram
        .iter()
        .fold(0, |sum, ram| sum.saturating_add(ram.size));
    let asked = input
        .guests
        .iter()
        .flat_map(|guest| &guest.areas)
        .fold(0_u64, |sum, area| sum.saturating_add(area.window.size));
    let largest = block.or_else(|| blocks.iter().max_by_key(|block| block.size));
    let place = largest.map(|block| block.place);
    let message = match block {
        Some(block) => format!(
            "no place is left for {} of `{}`",
            format_size(block.size),
            block.name
        ),
        None => "payloads and hypervisor alone do not fit into the board's RAM".to_owned(),
    };
    let help = format!(
        "board `{}` has {}; the hypervisor with all payloads takes {}, the partitions ask for {}: give some of them less",
        input.board.name,
        format_size(total),
        format_size(hypervisor.size),
        format_size(asked)
    );
    let mut diagnostic = Diagnostic::at(
        Code::RamExhausted,
        Place {
            file: crate::diagnostic::FileId(0),
            start: 0,
            end: 0,
        },
        message,
    )
    .help(help);
    diagnostic.place = place.or(diagnostic.place);
    diagnostic
}

#[cfg(test)]
mod tests {
    use super::agree;

    #[test]
    fn addresses_agree_modulo_the_block() {
        assert_eq!(agree(0x4040_0000, 0x4000_0000, 0x20_0000), Some(0x4040_0000));
        assert_eq!(agree(0x4040_1000, 0x4000_0000, 0x20_0000), Some(0x4060_0000));
        assert_eq!(agree(0x1000, 0x4000_0800_1000, 0x20_0000), Some(0x1000));
        assert_eq!(agree(u64::MAX, 0, 4096), None);
    }
}
