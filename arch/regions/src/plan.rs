// SPDX-License-Identifier: Apache-2.0
//! The regions of a partition.

use crate::cover::{cover, in_one_region, joined};
use crate::region::{Memory, Region, Rights};
use crate::{MAX_REGIONS, SMALLEST};

/// One range a partition is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// First address.
    pub start: u32,
    /// Bytes.
    pub bytes: u64,
    /// The rights of the partition there.
    pub rights: Rights,
    /// The kind of memory there.
    pub memory: Memory,
}

/// The regions of a partition, to be loaded in this order from slot 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    regions: [Region; MAX_REGIONS],
    count: u8,
}

impl Plan {
    const NOTHING: Region = Region {
        base: 0,
        size_log2: 5,
        disabled: 0,
        rights: Rights::NONE,
        memory: Memory::NORMAL,
    };

    /// No region: everything is closed.
    pub const EMPTY: Self = Self {
        regions: [Self::NOTHING; MAX_REGIONS],
        count: 0,
    };

    /// Returns the regions.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        self.regions.get(..usize::from(self.count)).unwrap_or(&[])
    }

    /// Appends a region; false if there is no room.
    pub(crate) fn push(&mut self, region: Region) -> bool {
        let Some(slot) = self.regions.get_mut(usize::from(self.count)) else {
            return false;
        };
        *slot = region;
        self.count = self.count.saturating_add(1);
        true
    }

    /// Appends a region, or one in its place and in the place of others that it can be joined with; false if
    /// there is no room.
    fn join(&mut self, region: Region) -> bool {
        let mut region = region;
        // Every round has one region less.
        for _ in 0..MAX_REGIONS {
            let mut of_two = self.regions().iter().enumerate();
            let Some((old, both)) = of_two.find_map(|(slot, old)| Some((slot, joined(old, &region)?))) else {
                break;
            };
            region = both;
            self.remove(old);
        }
        self.push(region)
    }

    /// Takes one region out.
    fn remove(&mut self, index: usize) {
        // From the last to the one taken out, each takes the place of the one before it.
        let mut behind = Self::NOTHING;
        for region in self.regions.iter_mut().skip(index).rev() {
            core::mem::swap(region, &mut behind);
        }
        self.count = self.count.saturating_sub(1);
    }
}

/// Addresses no partition may have, even if nothing is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forbidden {
    /// The bit-band alias of RAM or of devices: the unit checks the alias, not what it stands for
    /// (Arm DDI 0403E.e, B3.5.1 note), so an owner of the region has all of it.
    BitBand,
    /// The private peripheral bus and what is above it.
    System,
}

/// The smallest change that helps: request `index` becomes this range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fix {
    /// Which request.
    pub index: usize,
    /// Its new first address.
    pub start: u32,
    /// Its new length.
    pub bytes: u64,
    /// Regions the partition needs then.
    pub needed: u32,
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A range is empty, leaves the address space, or is not made of whole units of 32 bytes. `fix`: the
    /// next larger one that is.
    Unaligned {
        /// Which request.
        index: usize,
        /// The change that would help.
        fix: Option<Fix>,
    },
    /// A range has addresses no partition may have.
    Forbidden {
        /// Which request.
        index: usize,
        /// Which addresses.
        what: Forbidden,
    },
    /// Two ranges overlap.
    Overlap {
        /// Which request.
        index: usize,
        /// And which other.
        other: usize,
    },
    /// More regions are needed than there are; [`smallest_fix`] tells what helps.
    TooMany {
        /// The number of regions needed.
        needed: u32,
        /// The number of regions there are.
        available: u32,
    },
}

const FORBIDDEN: [(u64, u64, Forbidden); 3] = [
    (0x2200_0000, 0x2400_0000, Forbidden::BitBand),
    (0x4200_0000, 0x4400_0000, Forbidden::BitBand),
    (0xE000_0000, 0x1_0000_0000, Forbidden::System),
];

/// Plans the regions for these ranges in a unit with `available` regions.
///
/// # Errors
/// [`Refusal`]: the first rule that is broken.
pub fn plan(requests: &[Request], available: u32) -> Result<Plan, Refusal> {
    let available = available.min(MAX_REGIONS as u32);
    for (index, request) in requests.iter().enumerate() {
        if cover(request.start, request.bytes, request.rights, request.memory).is_none() {
            return Err(Refusal::Unaligned {
                index,
                fix: aligned(index, request),
            });
        }
        if let Some(what) = forbidden(request) {
            return Err(Refusal::Forbidden { index, what });
        }
        let before = requests.get(..index).unwrap_or(&[]);
        if let Some(other) = before.iter().position(|other| overlap(request, other)) {
            return Err(Refusal::Overlap { index, other });
        }
    }
    let (result, needed) = laid(requests, None);
    if needed > available {
        return Err(Refusal::TooMany { needed, available });
    }
    Ok(result)
}

/// Returns the regions of these ranges, the one at an index replaced by another, regions of different ranges
/// joined where that is possible; and how many are needed. If a unit has fewer, some regions are missing.
fn laid(requests: &[Request], instead: Option<(usize, &Request)>) -> (Plan, u32) {
    let mut result = Plan::EMPTY;
    // Regions that find no room are placed last: those that are joined meanwhile make room.
    let mut late = Plan::EMPTY;
    let mut missing = 0_u32;
    for (index, request) in requests.iter().enumerate() {
        let request = instead.map_or(request, |(at, other)| if at == index { other } else { request });
        let Some(cover) = cover(request.start, request.bytes, request.rights, request.memory) else {
            continue;
        };
        missing = missing.saturating_add(cover.needed().saturating_sub(cover.regions().len() as u32));
        for region in cover.regions() {
            if !result.join(*region) && !late.push(*region) {
                missing = missing.saturating_add(1);
            }
        }
    }
    for region in late.regions() {
        missing = missing.saturating_add(u32::from(!result.join(*region)));
    }
    let needed = missing.saturating_add(result.count.into());
    // A region that is missing might have been joined, but a plan must have all of them.
    let least = (MAX_REGIONS as u32).saturating_add(1);
    (result, if missing > 0 { needed.max(least) } else { needed })
}

fn end(request: &Request) -> u64 {
    u64::from(request.start).saturating_add(request.bytes)
}

fn overlap(one: &Request, other: &Request) -> bool {
    u64::from(one.start) < end(other) && u64::from(other.start) < end(one)
}

fn forbidden(request: &Request) -> Option<Forbidden> {
    let start = u64::from(request.start);
    let hit = FORBIDDEN
        .iter()
        .find(|(first, last, _)| start < *last && *first < end(request));
    hit.map(|(_, _, what)| *what)
}

fn aligned(index: usize, request: &Request) -> Option<Fix> {
    let unit = u64::from(SMALLEST);
    let mask = !unit.wrapping_sub(1);
    let start = u64::from(request.start) & mask;
    let last = end(request).checked_add(unit.wrapping_sub(1))? & mask;
    let bytes = last.saturating_sub(start).max(unit);
    let start = start as u32;
    let needed = cover(start, bytes, request.rights, request.memory)?.needed();
    Some(Fix {
        index,
        start,
        bytes,
        needed,
    })
}

/// Returns the single change that adds the fewest bytes among those that help enough, or else among those
/// that help most. Every change makes one range a single region. The bytes it adds may not be free: that is
/// the caller's to know.
#[must_use]
pub fn smallest_fix(requests: &[Request], available: u32) -> Option<Fix> {
    let changes = requests.iter().enumerate().filter_map(|(index, request)| {
        let now = cover(request.start, request.bytes, request.rights, request.memory)?.needed();
        let (start, bytes) = in_one_region(request.start, request.bytes)?;
        let grown = Request {
            start,
            bytes,
            ..*request
        };
        let mut others = requests.iter().enumerate().filter(|(other, _)| *other != index);
        if now < 2 || forbidden(&grown).is_some() || others.any(|(_, other)| overlap(&grown, other)) {
            return None;
        }
        let (_, needed) = laid(requests, Some((index, &grown)));
        Some((
            bytes.saturating_sub(request.bytes),
            Fix {
                index,
                start,
                bytes,
                needed,
            },
        ))
    });
    changes
        .min_by_key(|(growth, fix)| (fix.needed.max(available), *growth))
        .map(|(_, fix)| fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ_WRITE: Rights = Rights {
        read: true,
        write: true,
        execute: false,
    };

    fn request(start: u32, bytes: u64) -> Request {
        Request {
            start,
            bytes,
            rights: READ_WRITE,
            memory: Memory::NORMAL,
        }
    }

    #[test]
    fn what_fits_is_planned_in_order() {
        let plan = plan(&[request(0x0010_0000, 0x2_0000), request(0x2000_8000, 0x6000)], 8).unwrap();
        let [code, ram] = plan.regions() else {
            panic!("{plan:?}")
        };
        assert_eq!((code.base, code.size_log2, code.disabled), (0x0010_0000, 17, 0));
        assert_eq!(
            (ram.base, ram.size_log2, ram.disabled),
            (0x2000_8000, 15, 0b1100_0000)
        );
    }

    #[test]
    fn ranges_that_have_the_same_rights_share_a_region() {
        let page = |number: u32| request(0x4000_0000 + number * 0x1000, 0x1000);
        let pages = [
            page(0x10),
            page(0x11),
            page(0x12),
            page(0x13),
            page(5),
            page(6),
            page(7),
            page(9),
        ];
        let four = plan(&pages, 8).unwrap();
        let [ports, serial, last] = four.regions() else {
            panic!("{four:?}")
        };
        assert_eq!(
            (ports.base, ports.size_log2, ports.disabled),
            (0x4001_0000, 14, 0)
        );
        assert_eq!(
            (serial.base, serial.size_log2, serial.disabled),
            (0x4000_4000, 14, 0b0000_0011)
        );
        assert_eq!((last.base, last.size_log2, last.disabled), (0x4000_9000, 12, 0));
        let read_only = Request {
            rights: Rights {
                write: false,
                ..READ_WRITE
            },
            ..page(6)
        };
        assert_eq!(
            plan(&[page(5), read_only, page(7)], 8).unwrap().regions().len(),
            2
        );
        assert_eq!(plan(&[page(4), read_only], 8).unwrap().regions().len(), 2);
    }

    #[test]
    fn a_region_that_finds_room_only_after_others_are_joined_is_not_lost() {
        let unit = |first: u32, units: u32| request(0x2000_0000 + first * 32, u64::from(units * 32));
        let plan = plan(&[unit(95, 42), unit(154, 7), unit(55, 40)], 8).unwrap();
        assert_eq!(plan.regions().len(), 8);
        let is_covered = |unit: u32| {
            let address = 0x2000_0000 + unit * 32;
            plan.regions().iter().any(|region| region.covers(address))
        };
        for unit in 0..200 {
            let wanted = (55..137).contains(&unit) || (154..161).contains(&unit);
            assert_eq!(is_covered(unit), wanted, "unit {unit}");
        }
    }

    #[test]
    fn too_many_regions_are_refused_with_the_smallest_change_that_helps() {
        let requests = [
            request(0x2000_0000, 0x7020),
            request(0x2001_0000, 0x3800),
            request(0x2002_0000, 0x4000),
        ];
        let refusal = Refusal::TooMany {
            needed: 4,
            available: 3,
        };
        assert_eq!(plan(&requests, 3), Err(refusal));
        let fix = smallest_fix(&requests, 3).unwrap();
        assert_eq!(
            fix,
            Fix {
                index: 0,
                start: 0x2000_0000,
                bytes: 0x8000,
                needed: 3
            }
        );
        assert!(plan(&[request(fix.start, fix.bytes), requests[1], requests[2]], 3).is_ok());
    }

    #[test]
    fn a_change_that_takes_what_another_range_has_is_not_proposed() {
        let mut requests = [request(0x2000_0000, 0x7020), request(0x2000_7020, 0x20)];
        requests[1].rights.write = false;
        assert!(plan(&requests, 2).is_err());
        assert_eq!(smallest_fix(&requests, 2), None);
    }

    #[test]
    fn every_rule_has_its_refusal() {
        let of = |requests: &[Request]| plan(requests, 8).unwrap_err();
        let bit_band = Refusal::Forbidden {
            index: 0,
            what: Forbidden::BitBand,
        };
        assert_eq!(of(&[request(0x2000_0000, 0x0210_0000)]), bit_band);
        let system = Refusal::Forbidden {
            index: 0,
            what: Forbidden::System,
        };
        assert_eq!(of(&[request(0xE000_E000, 0x1000)]), system);
        let overlap = Refusal::Overlap { index: 1, other: 0 };
        assert_eq!(
            of(&[request(0x2000_0000, 0x40), request(0x2000_0020, 0x40)]),
            overlap
        );
        let fix = Some(Fix {
            index: 0,
            start: 0x2000_0000,
            bytes: 0x40,
            needed: 1,
        });
        assert_eq!(
            of(&[request(0x2000_0010, 0x20)]),
            Refusal::Unaligned { index: 0, fix }
        );
        assert_eq!(
            of(&[request(0xFFFF_FFF0, 0x20)]),
            Refusal::Unaligned { index: 0, fix: None }
        );
    }
}
