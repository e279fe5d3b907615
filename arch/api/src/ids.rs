// SPDX-License-Identifier: Apache-2.0
//! Ids and ticks: what the kernel decides about.

/// A physical CPU, numbered from 0 in the order of the board's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PcpuId(pub u8);

/// A partition, numbered from 0 in the order of the system image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionId(pub u8);

/// A vCPU, numbered from 0 across the whole system. The vCPUs of a partition are consecutive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VcpuId(pub u8);

/// A physical interrupt line, in the numbering of the board's interrupt controller (Arm GIC: INTID).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line(pub u32);

/// An interrupt as a partition sees it: a line in the numbering of its virtual interrupt controller, or a
/// vector ([`VirtualLine::vector`]) on a class that has [`crate::ClassFacts::vectors`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VirtualLine(pub u32);

/// Bit of a [`VirtualLine`] that says that the rest is a vector. No controller has so many lines.
const VECTOR: u32 = 1 << 14;

impl VirtualLine {
    /// Makes the interrupt that comes to vCPU 0 of a partition as this vector, past its controller's lines. A
    /// vector has no level: it comes once each time it is raised, and is not taken back.
    #[must_use]
    pub const fn vector(number: u8) -> Self {
        Self(VECTOR | number as u32)
    }

    /// Returns the vector, if it is one.
    #[must_use]
    pub const fn as_vector(self) -> Option<u8> {
        if self.0 & !0xFF == VECTOR {
            Some(self.0 as u8)
        } else {
            None
        }
    }
}

/// A point in time or a duration, in ticks of [`crate::Clock`] since boot. Never wraps in practice:
/// 64 bits at 1 GHz last 584 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Ticks(pub u64);

impl Ticks {
    /// The end of time: a deadline that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns `self + other`, or [`Ticks::NEVER`].
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns `self - earlier`, or zero.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

/// A set of vCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct VcpuSet(pub u64);

impl VcpuSet {
    /// No vCPU.
    pub const EMPTY: Self = Self(0);

    /// Makes the set of `vcpu` alone.
    #[must_use]
    pub const fn of(vcpu: VcpuId) -> Self {
        // A shift of 64 bits is a call on a CPU of 32.
        if crate::MAX_VCPUS <= 32 {
            Self((1_u32 << (vcpu.0 & 31)) as u64)
        } else {
            Self(1 << (vcpu.0 & 63))
        }
    }

    /// Tells whether `vcpu` is a member.
    #[must_use]
    pub const fn contains(self, vcpu: VcpuId) -> bool {
        self.0 & Self::of(vcpu).0 != 0
    }

    /// Adds the members of `other`.
    pub const fn insert_all(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Tells whether there is no member.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the members, lowest number first; at most 64 steps.
    pub fn iter(self) -> impl Iterator<Item = VcpuId> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let lowest = rest.trailing_zeros() as u8;
            rest &= rest - 1;
            Some(VcpuId(lowest))
        })
    }
}
