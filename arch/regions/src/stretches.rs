// SPDX-License-Identifier: Apache-2.0
//! Stretches of memory with a base and a limit, as the security attribution unit and the protection unit of
//! Armv8-M have them (Arm DDI 0553B, sections B8.3 and B10.2).
//!
//! A stretch can have any length, and two stretches cannot overlap. So neighbours with the same rights are
//! joined, and nothing else has to be found.

use crate::MAX_REQUESTS;
use crate::plan::Request;

/// Stretches that a VM can have. The security attribution unit has eight regions. One is for the entry of
/// calls, and one is kept back.
pub const VM_STRETCHES: usize = 6;
/// Stretches that a task can have: the regions of the secure protection unit.
pub const TASK_STRETCHES: usize = 16;

/// The address bit of the Secure names of memory and devices (Arm ECM0601256, section 3.2).
const OTHER_NAME: u32 = 1 << 28;
/// The first address of the CPU's own registers (Arm DDI 0553B, section B5.1).
const OWN_REGISTERS: u64 = 0xE000_0000;

/// The stretches of a partition, apart from each other, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretches {
    list: [Option<Request>; MAX_REQUESTS],
}

/// The reason why requests cannot be stretches. An `index` is one of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// A request is empty, or not made of whole units, or goes beyond 4 GiB.
    Unaligned {
        /// The request.
        index: usize,
    },
    /// A request has addresses with bit 28 set, which are other names of the Secure world, or addresses of
    /// the CPU's own registers.
    Forbidden {
        /// The request.
        index: usize,
    },
    /// Two requests share an address.
    Overlap {
        /// The request.
        index: usize,
        /// The one before it.
        other: usize,
    },
    /// There are more stretches than there can be.
    TooMany {
        /// The first request with which there are too many.
        index: usize,
        /// The stretches of all requests.
        needed: usize,
    },
}

impl Stretches {
    /// No stretch: everything is closed.
    pub const EMPTY: Self = Self {
        list: [None; MAX_REQUESTS],
    };

    /// Returns the stretches in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &Request> {
        self.list.iter().flatten()
    }

    /// Adds a request that shares no address with any stretch; false if there is no room.
    fn add(&mut self, mut new: Request) -> bool {
        for slot in &mut self.list {
            if let Some(old) = *slot
                && let Some(both) = joined(old, new)
            {
                new = both;
                *slot = None;
            }
        }
        // The list is sorted by the address, with gaps where stretches have been joined.
        let mut carried = Some(new);
        let mut rest = self.list;
        let mut sorted = rest.iter_mut().filter_map(Option::take).peekable();
        for slot in &mut self.list {
            let is_next = |old: &Request| carried.is_none_or(|new| old.start < new.start);
            *slot = sorted.next_if(is_next).or_else(|| carried.take());
        }
        carried.is_none() && sorted.next().is_none()
    }
}

/// Returns the stretch that two requests are together: the end of one is the start of the other, and both
/// have the same rights. A request without rights stays alone, because it gets some one day.
fn joined(one: Request, other: Request) -> Option<Request> {
    let (low, high) = if one.start < other.start {
        (one, other)
    } else {
        (other, one)
    };
    let touches = end(&low) == u64::from(high.start);
    let is_alike = low.rights == high.rights && !low.rights.is_none() && low.memory == high.memory;
    (touches && is_alike).then(|| Request {
        bytes: low.bytes.saturating_add(high.bytes),
        ..low
    })
}

/// Returns the address after the last one.
fn end(request: &Request) -> u64 {
    u64::from(request.start).saturating_add(request.bytes)
}

/// Joins the requests of a partition, each made of whole units of `unit` bytes, to `most` stretches at most.
///
/// # Errors
/// [`Unfit`]: the first reason found.
pub fn stretches(requests: &[Request], unit: u32, most: usize) -> Result<Stretches, Unfit> {
    for (index, request) in requests.iter().enumerate() {
        let is_whole = request.start.is_multiple_of(unit) && request.bytes.is_multiple_of(unit.into());
        if request.bytes == 0 || !is_whole || end(request) > 1 << 32 {
            return Err(Unfit::Unaligned { index });
        }
        let last = end(request).saturating_sub(1) as u32;
        let is_other_name = request.start & OTHER_NAME != 0 || (request.start ^ last) >> 28 != 0;
        if is_other_name || end(request) > OWN_REGISTERS {
            return Err(Unfit::Forbidden { index });
        }
        let overlaps =
            |other: &Request| end(other) > u64::from(request.start) && end(request) > u64::from(other.start);
        let mut earlier = requests.iter().take(index);
        if let Some(other) = earlier.position(overlaps) {
            return Err(Unfit::Overlap { index, other });
        }
    }
    let mut all = Stretches::EMPTY;
    let mut beyond = None;
    for (index, request) in requests.iter().enumerate() {
        let has_room = all.add(*request);
        if !has_room || all.iter().count() > most {
            beyond = beyond.or(Some(index));
        } else {
            beyond = None;
        }
    }
    match beyond {
        None => Ok(all),
        Some(index) => Err(Unfit::TooMany {
            index,
            needed: all.iter().count(),
        }),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::region::{Memory, Rights};
    use std::vec::Vec;

    const DATA: Rights = Rights {
        read: true,
        write: true,
        execute: false,
    };

    fn data(start: u32, bytes: u64) -> Request {
        Request {
            start,
            bytes,
            rights: DATA,
            memory: Memory::NORMAL,
        }
    }

    fn found(requests: &[Request], most: usize) -> Result<Vec<(u32, u64)>, Unfit> {
        let all = stretches(requests, 1024, most)?;
        Ok(all.iter().map(|one| (one.start, one.bytes)).collect())
    }

    #[test]
    fn neighbours_with_the_same_rights_are_one_stretch_in_any_order() {
        let three = [data(0x800, 0x400), data(0, 0x400), data(0x400, 0x400)];
        assert_eq!(found(&three, 1), Ok(std::vec![(0, 0xc00)]));
        let device = Request {
            memory: Memory::DEVICE,
            ..data(0x400, 0x400)
        };
        let apart = [data(0x800, 0x400), device, data(0, 0x400)];
        let expected = std::vec![(0, 0x400), (0x400, 0x400), (0x800, 0x400)];
        assert_eq!(found(&apart, 3), Ok(expected));
        assert_eq!(found(&[], 0), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_stretch_is_refused() {
        let unaligned = Err(Unfit::Unaligned { index: 0 });
        assert_eq!(found(&[data(0x200, 0x400)], 6), unaligned);
        assert_eq!(found(&[data(0, 0x200)], 6), unaligned);
        assert_eq!(found(&[data(0, 0)], 6), unaligned);
        assert_eq!(found(&[data(0xffff_fc00, 0x800)], 6), unaligned);
        let forbidden = Err(Unfit::Forbidden { index: 0 });
        assert_eq!(found(&[data(0xffff_fc00, 0x400)], 6), forbidden);
        assert_eq!(found(&[data(0xdfff_fc00, 0x800)], 6), forbidden);
        assert_eq!(found(&[data(0x3000_0000, 0x400)], 6), forbidden);
        assert_eq!(found(&[data(0x0fff_fc00, 0x800)], 6), forbidden);
        assert_eq!(
            found(&[data(0xcfff_fc00, 0x400)], 6),
            Ok(std::vec![(0xcfff_fc00, 0x400)])
        );
        let overlap = [data(0x800, 0x400), data(0, 0xc00)];
        assert_eq!(found(&overlap, 6), Err(Unfit::Overlap { index: 1, other: 0 }));
    }

    #[test]
    fn the_first_request_beyond_the_limit_is_named() {
        let every_other: Vec<Request> = (0..7).map(|index| data(index * 0x800, 0x400)).collect();
        let refused = Err(Unfit::TooMany { index: 6, needed: 7 });
        assert_eq!(found(&every_other, VM_STRETCHES), refused);
        // A request that joins two others makes one stretch less.
        let mut joined = every_other.clone();
        joined.push(data(0x400, 0x400));
        assert_eq!(found(&joined, VM_STRETCHES).map(|all| all.len()), Ok(6));
        let many: Vec<Request> = (0..30).map(|index| data(index * 0x800, 0x400)).collect();
        assert_eq!(
            found(&many, MAX_REQUESTS),
            Err(Unfit::TooMany {
                index: MAX_REQUESTS,
                needed: MAX_REQUESTS
            })
        );
    }
}
