// SPDX-License-Identifier: Apache-2.0
//! The memory and devices of a partition, as stretches of addresses.
//!
//! The security attribution unit (SAU) and the memory protection unit (MPU) describe a stretch by its first
//! and its last 32 bytes (D1.2.222, D1.2.179). The plan of them is made in `bulkhead_arch_regions`, which the
//! host asks as well.

use bulkhead_arch_regions as plan;
use bulkhead_arch_regions::{Request, Rights, TASK_STRETCHES};

/// Stretches that a partition can have: as many as a task.
pub const MAX_STRETCHES: usize = TASK_STRETCHES;
/// The multiple at which stretches start and end.
const GRANULE: u32 = 32;

/// A stretch of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first address.
    pub first: u32,
    /// The last address.
    pub last: u32,
    /// The rights of the partition.
    pub rights: Rights,
    /// True for registers of a device.
    pub is_device: bool,
}

impl Stretch {
    /// No stretch at all.
    const NOTHING: Self = Self {
        first: u32::MAX,
        last: 0,
        rights: Rights::NONE,
        is_device: false,
    };

    /// Takes a stretch of a plan, if it ends below 4 GiB.
    fn new(request: &Request) -> Option<Self> {
        let last = u64::from(request.start)
            .checked_add(request.bytes)?
            .checked_sub(1)?;
        Some(Self {
            first: request.start,
            last: u32::try_from(last).ok()?,
            rights: request.rights,
            is_device: request.memory.is_device(),
        })
    }

    /// Returns RBAR and RLAR of the SAU: the stretch is Non-secure (D1.2.221, D1.2.222).
    #[must_use]
    pub const fn non_secure(&self) -> [u32; 2] {
        [self.first, self.last & !(GRANULE - 1) | 1]
    }

    /// Returns RBAR and RLAR of the MPU for unprivileged code (D1.2.176, D1.2.179). The attributes are
    /// [`Stretches::MEMORY_ATTRIBUTES`].
    #[must_use]
    pub const fn protected(&self) -> [u32; 2] {
        const ANY_PRIVILEGE: u32 = 1 << 1;
        const READ_ONLY: u32 = 1 << 2;
        const EXECUTE_NEVER: u32 = 1;
        let rights = ANY_PRIVILEGE
            | if self.rights.write { 0 } else { READ_ONLY }
            | if self.rights.execute { 0 } else { EXECUTE_NEVER };
        let kind = if self.is_device { 1 << 1 } else { 0 };
        [self.first | rights, self.last & !(GRANULE - 1) | kind | 1]
    }
}

/// The stretches of a partition.
#[derive(Clone, Copy, Debug)]
pub struct Stretches {
    list: [Stretch; MAX_STRETCHES],
    count: usize,
}

impl Stretches {
    /// No stretch.
    pub const EMPTY: Self = Self {
        list: [Stretch::NOTHING; MAX_STRETCHES],
        count: 0,
    };

    /// MAIR0 of the MPU for [`Stretch::protected`] (D1.2.174): memory that is not cached, and devices that
    /// are not gathered and not reordered.
    pub const MEMORY_ATTRIBUTES: u32 = 0x0444;

    /// Takes the stretches that the plan of a partition has.
    #[must_use]
    pub fn of(plan: &plan::Stretches) -> Self {
        let mut all = Self::EMPTY;
        let found = plan.iter().filter_map(Stretch::new);
        for (slot, stretch) in all.list.iter_mut().zip(found) {
            *slot = stretch;
            all.count = all.count.saturating_add(1);
        }
        all
    }

    /// Returns the stretches.
    #[must_use]
    pub fn as_slice(&self) -> &[Stretch] {
        self.list.get(..self.count).unwrap_or(&[])
    }

    /// Adds a stretch, if there is room.
    pub fn insert(&mut self, stretch: Stretch) {
        if let Some(slot) = self.list.get_mut(self.count) {
            *slot = stretch;
            self.count = self.count.saturating_add(1);
        }
    }

    /// Takes a stretch out, and puts the last one in its place.
    pub fn remove(&mut self, index: usize) -> Option<Stretch> {
        let last = self.count.checked_sub(1).filter(|last| index <= *last)?;
        self.list.swap(index, last);
        self.count = last;
        self.list.get(last).copied()
    }

    /// Returns the stretch with this address. Bounded by [`MAX_STRETCHES`].
    #[must_use]
    pub fn at(&self, address: u32) -> Option<&Stretch> {
        self.as_slice()
            .iter()
            .find(|stretch| (stretch.first..=stretch.last).contains(&address))
    }

    /// Tells whether one stretch of memory has all these bytes, with enough rights. If not, several stretches
    /// may have them ([`Stretches::first_refused`]). Bounded by [`MAX_STRETCHES`].
    #[must_use]
    pub fn one_has(&self, address: u32, bytes: u32, enough: fn(Rights) -> bool) -> bool {
        self.at(address).is_some_and(|stretch| {
            let room = stretch.last.wrapping_sub(address);
            !stretch.is_device && bytes.wrapping_sub(1) <= room && enough(stretch.rights)
        })
    }

    /// Returns the first of these bytes whose rights are not enough. Devices give the hypervisor no rights.
    /// Bounded by [`MAX_STRETCHES`].
    #[must_use]
    pub fn first_refused(&self, address: u64, bytes: u64, enough: fn(Rights) -> bool) -> Option<u64> {
        // A stretch across the end of all addresses begins nowhere.
        let Some(end) = address.checked_add(bytes) else {
            return Some(address);
        };
        let mut at = address;
        while at < end {
            let here = u32::try_from(at).ok().and_then(|at| self.at(at));
            match here {
                Some(stretch) if !stretch.is_device && enough(stretch.rights) => {
                    at = u64::from(stretch.last).saturating_add(1);
                }
                _ => return Some(at),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    use bulkhead_arch_regions::{Memory, stretches};
    use std::vec::Vec;

    const DATA: Rights = Rights {
        read: true,
        write: true,
        execute: false,
    };
    const CODE: Rights = Rights {
        read: true,
        write: false,
        execute: true,
    };

    fn request(start: u32, bytes: u64, rights: Rights, memory: Memory) -> Request {
        Request {
            start,
            bytes,
            rights,
            memory,
        }
    }

    fn planned(requests: &[Request]) -> Stretches {
        Stretches::of(&stretches(requests, 32, MAX_STRETCHES).expect("a plan"))
    }

    #[test]
    fn registers_are_as_the_manual_has_them() {
        let all = planned(&[
            request(0x1000, 0x400, CODE, Memory::NORMAL),
            request(0x2800_0000, 0x1_0000, DATA, Memory::NORMAL),
            request(0x4000_0000, 0x1000, DATA, Memory::DEVICE),
        ]);
        let [code, data, device] = all.as_slice() else {
            panic!("three stretches")
        };
        assert_eq!(code.non_secure(), [0x1000, 0x13E1]);
        assert_eq!(code.protected(), [0x1006, 0x13E1], "read-only, any privilege");
        assert_eq!(data.protected(), [0x2800_0003, 0x2800_FFE1], "never executed");
        assert_eq!(
            device.protected(),
            [0x4000_0003, 0x4000_0FE3],
            "the second attribute"
        );
    }

    #[test]
    fn rights_are_asked_across_stretches() {
        let all = planned(&[
            request(0x1000, 0xC00, DATA, Memory::NORMAL),
            request(0x1C00, 0x400, CODE, Memory::NORMAL),
            request(0x2000, 0x400, DATA, Memory::DEVICE),
        ]);
        assert_eq!(all.first_refused(0x1000, 0x1000, |rights| rights.read), None);
        assert_eq!(
            all.first_refused(0x1000, 0x1000, |rights| rights.write),
            Some(0x1C00)
        );
        assert_eq!(
            all.first_refused(0x1000, 0x1001, |rights| rights.read),
            Some(0x2000),
            "a device"
        );
        let one = |address, bytes| all.one_has(address, bytes, |rights| rights.read);
        assert!(one(0x1000, 0xC00) && one(0x1BFF, 1) && one(0x1C00, 0x400));
        assert!(!one(0x1000, 0xC01) && !one(0xFFF, 2) && !one(0x1000, 0) && !one(0x1000, u32::MAX));
        assert!(!one(0x2000, 4), "a device");
        assert_eq!(all.first_refused(0xFFF, 2, |rights| rights.read), Some(0xFFF));
        assert_eq!(
            all.first_refused(u64::MAX, 2, |rights| rights.read),
            Some(u64::MAX)
        );
    }

    #[test]
    fn a_stretch_comes_and_goes() {
        let mut all = planned(&[
            request(0x1000, 0x400, CODE, Memory::NORMAL),
            request(0x2000, 0x1000, Rights::NONE, Memory::NORMAL),
            request(0x3000, 0x1000, Rights::NONE, Memory::NORMAL),
        ]);
        let firsts = |all: &Stretches| all.as_slice().iter().map(|own| own.first).collect::<Vec<u32>>();
        assert_eq!(
            firsts(&all),
            [0x1000, 0x2000, 0x3000],
            "without rights they are not joined"
        );
        let removed = all.remove(0).expect("the first one");
        assert_eq!((removed.first, removed.rights), (0x1000, CODE));
        assert_eq!(firsts(&all), [0x3000, 0x2000]);
        assert!(all.remove(2).is_none() && all.at(0x1000).is_none());
        all.insert(removed);
        assert_eq!(firsts(&all), [0x3000, 0x2000, 0x1000]);
        while all.remove(0).is_some() {}
        assert!(all.as_slice().is_empty());
        for _ in 0..=MAX_STRETCHES {
            all.insert(removed);
        }
        assert_eq!(all.as_slice().len(), MAX_STRETCHES, "one more has no room");
    }
}
