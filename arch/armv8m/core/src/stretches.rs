// SPDX-License-Identifier: Apache-2.0
//! The memory and devices of a partition, as stretches of addresses in ascending order.
//!
//! The security attribution unit (SAU) and the memory protection unit (MPU) describe a stretch by its first and
//! its last 32 bytes (D1.2.222, D1.2.179). Stretches of an MPU may not overlap. So neighbours with equal
//! rights are one stretch.

use bulkhead_arch_regions::Rights;

/// Stretches that a partition can have: as many as the MPU of a Cortex-M33 has at most.
pub const MAX_STRETCHES: usize = 16;
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

    /// Makes a stretch of so many bytes, if it is not empty and made of whole units of 32 bytes below 4 GiB.
    #[must_use]
    pub fn new(start: u64, bytes: u64, rights: Rights, is_device: bool) -> Option<Self> {
        let granule = u64::from(GRANULE);
        let last = start.checked_add(bytes)?.checked_sub(1)?;
        if bytes == 0 || !start.is_multiple_of(granule) || !bytes.is_multiple_of(granule) {
            return None;
        }
        Some(Self {
            first: u32::try_from(start).ok()?,
            last: u32::try_from(last).ok()?,
            rights,
            is_device,
        })
    }

    /// Returns RBAR and RLAR of the SAU: the stretch is Non-secure (D1.2.221, D1.2.222).
    #[must_use]
    pub const fn non_secure(&self) -> [u32; 2] {
        [self.first, self.last & !(GRANULE - 1) | 1]
    }

    /// Returns RBAR and RLAR of the MPU for unprivileged code (D1.2.176, D1.2.179). The attributes are those
    /// of [`Stretches::MEMORY_ATTRIBUTES`].
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

    /// Tells whether both are one stretch, together.
    const fn continues(&self, next: &Self) -> bool {
        let equal = self.rights.read == next.rights.read
            && self.rights.write == next.rights.write
            && self.rights.execute == next.rights.execute
            && self.is_device == next.is_device;
        equal && self.last != u32::MAX && self.last.wrapping_add(1) == next.first
    }
}

/// The reason why stretches are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The one at this address overlaps another one.
    Overlap(u32),
    /// There are more than [`MAX_STRETCHES`] of them.
    TooMany,
}

/// The stretches of a partition, in ascending order.
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

    /// MAIR0 of the MPU for [`Stretch::protected`] (D1.2.174): memory that is not cached, and devices that are
    /// not gathered and not reordered.
    pub const MEMORY_ATTRIBUTES: u32 = 0x0444;

    /// Adds a stretch. Bounded by [`MAX_STRETCHES`].
    ///
    /// # Errors
    /// [`Refusal`]: nothing is added then.
    pub fn add(&mut self, stretch: Stretch) -> Result<(), Refusal> {
        let place = self.as_slice().partition_point(|other| other.first < stretch.first);
        let before = place.checked_sub(1).and_then(|place| self.list.get(place)).copied();
        let after = self.as_slice().get(place).copied();
        if before.is_some_and(|before| before.last >= stretch.first)
            || after.is_some_and(|after| after.first <= stretch.last)
        {
            return Err(Refusal::Overlap(stretch.first));
        }
        let joins_before = before.is_some_and(|before| before.continues(&stretch));
        let joins_after = after.is_some_and(|after| stretch.continues(&after));
        let last = if joins_after {
            after.map_or(stretch.last, |after| after.last)
        } else {
            stretch.last
        };
        match (joins_before, joins_after) {
            (true, joins_after) => {
                if let Some(before) = place.checked_sub(1).and_then(|place| self.list.get_mut(place)) {
                    before.last = last;
                }
                if joins_after {
                    self.remove(place);
                }
            }
            (false, true) => {
                if let Some(after) = self.list.get_mut(place) {
                    after.first = stretch.first;
                }
            }
            (false, false) => self.insert(place, stretch)?,
        }
        Ok(())
    }

    fn insert(&mut self, place: usize, stretch: Stretch) -> Result<(), Refusal> {
        if self.count == MAX_STRETCHES {
            return Err(Refusal::TooMany);
        }
        if let Some(rest) = self.list.get_mut(place..) {
            rest.rotate_right(1);
        }
        if let Some(slot) = self.list.get_mut(place) {
            *slot = stretch;
        }
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    fn remove(&mut self, place: usize) {
        if let Some(rest) = self.list.get_mut(place..) {
            rest.rotate_left(1);
        }
        if let Some(last) = self.list.last_mut() {
            *last = Stretch::NOTHING;
        }
        self.count = self.count.saturating_sub(1);
    }

    /// Returns the stretches.
    #[must_use]
    pub fn as_slice(&self) -> &[Stretch] {
        self.list.get(..self.count).unwrap_or(&[])
    }

    /// Returns the stretch with this address. Bounded by [`MAX_STRETCHES`].
    #[must_use]
    pub fn at(&self, address: u32) -> Option<&Stretch> {
        self.as_slice()
            .iter()
            .find(|stretch| (stretch.first..=stretch.last).contains(&address))
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
    extern crate std;
    use super::*;
    use proptest::prelude::*;
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

    fn stretch(start: u64, bytes: u64, rights: Rights) -> Stretch {
        Stretch::new(start, bytes, rights, false).expect("a stretch")
    }

    #[test]
    fn whole_units_only() {
        assert_eq!(Stretch::new(0x10, 32, DATA, false), None);
        assert_eq!(Stretch::new(0x20, 0, DATA, false), None);
        assert_eq!(Stretch::new(0x20, 33, DATA, false), None);
        assert_eq!(Stretch::new(1 << 32, 32, DATA, false), None);
        let last = Stretch::new(0xFFFF_FFE0, 32, DATA, false).expect("the last one");
        assert_eq!(last.last, u32::MAX);
        assert_eq!(Stretch::new(0xFFFF_FFE0, 64, DATA, false), None);
    }

    #[test]
    fn registers_are_as_the_manual_has_them() {
        let code = stretch(0x1000, 0x400, CODE);
        assert_eq!(code.non_secure(), [0x1000, 0x13E1]);
        assert_eq!(code.protected(), [0x1006, 0x13E1], "read-only, any privilege");
        let data = stretch(0x2800_0000, 0x1_0000, DATA);
        assert_eq!(data.protected(), [0x2800_0003, 0x2800_FFE1], "never executed");
        let device = Stretch::new(0x4000_0000, 0x1000, DATA, true).expect("a device");
        assert_eq!(device.protected(), [0x4000_0003, 0x4000_0FE3], "the second attribute");
    }

    #[test]
    fn neighbours_are_one() {
        let mut all = Stretches::EMPTY;
        all.add(stretch(0x1000, 0x400, DATA)).expect("room");
        all.add(stretch(0x1800, 0x400, DATA)).expect("room");
        all.add(stretch(0x1C00, 0x400, CODE)).expect("room");
        assert_eq!(all.as_slice().len(), 3);
        all.add(stretch(0x1400, 0x400, DATA)).expect("room");
        assert_eq!(all.as_slice(), [stretch(0x1000, 0xC00, DATA), stretch(0x1C00, 0x400, CODE)]);
        assert_eq!(all.add(stretch(0x1FE0, 0x40, DATA)), Err(Refusal::Overlap(0x1FE0)));
        assert_eq!(all.first_refused(0x1000, 0x1000, |rights| rights.read), None);
        assert_eq!(all.first_refused(0x1000, 0x1000, |rights| rights.write), Some(0x1C00));
        assert_eq!(all.first_refused(0xFFF, 2, |rights| rights.read), Some(0xFFF));
        assert_eq!(all.first_refused(u64::MAX, 2, |rights| rights.read), Some(u64::MAX));
    }

    proptest! {
        /// Every byte has the rights of the stretch that was added with it, in any order.
        #[test]
        fn any_order(starts in proptest::collection::vec((0_u64..64, 1_u64..4, any::<bool>()), 1..20)) {
            let mut all = Stretches::EMPTY;
            let mut model: Vec<Option<Rights>> = std::vec![None; 80];
            for (start, units, is_code) in starts {
                let rights = if is_code { CODE } else { DATA };
                let wanted = stretch(start * 32, units * 32, rights);
                let places = start as usize..(start + units) as usize;
                match all.add(wanted) {
                    Ok(()) => {
                        prop_assert!(model[places.clone()].iter().all(Option::is_none));
                        model[places].fill(Some(rights));
                    }
                    Err(Refusal::Overlap(_)) => prop_assert!(model[places].iter().any(Option::is_some)),
                    Err(Refusal::TooMany) => prop_assert_eq!(all.as_slice().len(), MAX_STRETCHES),
                }
                let sorted = all.as_slice().windows(2).all(|pair| pair[0].last < pair[1].first);
                prop_assert!(sorted);
                for (unit, rights) in model.iter().enumerate() {
                    let found = all.at(unit as u32 * 32 + 5).map(|stretch| stretch.rights);
                    prop_assert_eq!(found, *rights);
                }
            }
        }
    }
}
