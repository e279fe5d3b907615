// SPDX-License-Identifier: Apache-2.0
//! Locks: each has one owner at most, a vCPU, and the vCPUs that wait for it.
//!
//! **Hand-over.** A lock that is released goes straight to the waiter with the highest priority of the
//! manifest. Among equals it goes to the first one after the old owner, by number. So no other vCPU comes in
//! between, and a waiter waits for one owner besides those that are more important, or equal and before it.
//!
//! **Inheritance.** A vCPU that waits lends its place to the owner, if both are on one pCPU. The dispatcher
//! does this ([`crate::dispatch`]).
//!
//! **Robustness.** An owner may be switched off: its partition stops or restarts, or the vCPU goes off. The
//! lock then goes on as if it had been released, and is *broken*: each next owner is told, until one of them
//! releases the lock.
//!
//! **Work bounds.** To take a lock is constant work. To release one is a step per waiter.

pub(crate) mod command;
mod pass;
mod take;
mod wait;

use crate::parts::{Part, entries};
use crate::table::{Id, Table};
use bulkhead_arch_api::{VcpuId, VcpuSet};
use bulkhead_image::MAX_LOCKS as IMAGE_LOCKS;
use spin::RelaxStrategy;
use spin::mutex::TicketMutex;

/// Locks that a system can have. A class without locks has none.
pub const MAX_LOCKS: usize = IMAGE_LOCKS;
/// Entries of a table of locks. A table has at least one.
pub(crate) const LOCK_ENTRIES: usize = entries(Part::Locks, MAX_LOCKS);
const _: () = assert!(MAX_LOCKS < 33, "a set of locks fits u32");

/// A lock, by its number in the system image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockId(pub u8);

impl Id for LockId {
    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One entry per lock.
pub type PerLock<T> = Table<LockId, T, LOCK_ENTRIES>;

/// A wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// The lock.
    pub lock: LockId,
}

/// The answer to a vCPU that wants a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// The vCPU owns the lock now. The flag tells whether the lock is broken.
    Taken(bool),
    /// The vCPU owned the lock before.
    AlreadyOwn,
    /// This vCPU owns the lock.
    OwnedBy(VcpuId),
}

/// Returns the results of taking a lock.
const fn taken(is_broken: bool) -> [u64; 4] {
    [is_broken as u64, 0, 0, 0]
}

/// The state of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    owner: Option<VcpuId>,
    /// The slot of the capability by which the owner took the lock.
    pub slot: u8,
    waiters: VcpuSet,
    /// True if an owner ended without a release, and no owner has released the lock since.
    broken: bool,
}

impl Ownership {
    /// A lock without owner.
    pub const FREE: Self = Self {
        owner: None,
        slot: 0,
        waiters: VcpuSet::EMPTY,
        broken: false,
    };

    /// Returns the owner.
    pub const fn owner(&self) -> Option<VcpuId> {
        self.owner
    }

    /// Returns the vCPUs that wait.
    pub const fn waiters(&self) -> VcpuSet {
        self.waiters
    }

    /// Tells whether the lock is broken.
    pub const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Gives the lock to `vcpu` if no vCPU owns the lock.
    pub fn take(&mut self, vcpu: VcpuId) -> Taking {
        match self.owner {
            None => {
                self.owner = Some(vcpu);
                Taking::Taken(self.broken)
            }
            Some(owner) if owner == vcpu => Taking::AlreadyOwn,
            Some(owner) => Taking::OwnedBy(owner),
        }
    }

    /// Makes `vcpu` a waiter.
    pub const fn wait(&mut self, vcpu: VcpuId) {
        self.waiters.insert_all(VcpuSet::of(vcpu));
    }

    /// Takes `vcpu` from the waiters. Returns whether it was one. If not, the lock may be its own now.
    pub const fn leave(&mut self, vcpu: VcpuId) -> bool {
        let was = self.waiters.contains(vcpu);
        self.waiters.0 &= !VcpuSet::of(vcpu).0;
        was
    }

    /// Takes the lock from its owner, and gives it to the next one, which is returned. The work is a step per
    /// waiter.
    pub fn pass(&mut self, broken: bool, priority: impl Fn(VcpuId) -> u32) -> Option<VcpuId> {
        let last = self.owner.map_or(0, |owner| owner.0);
        // From the first number after the last owner round to the owner's own.
        let distance = |vcpu: VcpuId| vcpu.0.wrapping_sub(last).wrapping_sub(1) & 63;
        let mut next: Option<(u32, VcpuId)> = None;
        for waiter in self.waiters.iter() {
            let own = priority(waiter);
            let comes_first = next
                .is_none_or(|(best, other)| own > best || own == best && distance(waiter) < distance(other));
            if comes_first {
                next = Some((own, waiter));
            }
        }
        self.owner = next.map(|(_, vcpu)| vcpu);
        self.broken = broken;
        if let Some(owner) = self.owner {
            self.leave(owner);
        }
        self.owner
    }
}

/// A lock.
pub type Lock<R> = TicketMutex<Ownership, R>;

/// Makes a lock without owner.
pub const fn lock<R: RelaxStrategy>() -> Lock<R> {
    TicketMutex::new(Ownership::FREE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited_for(owner: u8, waiters: &[u8]) -> Ownership {
        let mut lock = Ownership::FREE;
        assert_eq!(lock.take(VcpuId(owner)), Taking::Taken(false));
        for waiter in waiters {
            assert_eq!(lock.take(VcpuId(*waiter)), Taking::OwnedBy(VcpuId(owner)));
            lock.wait(VcpuId(*waiter));
        }
        lock
    }

    #[test]
    fn the_most_important_waiter_is_next() {
        let mut lock = waited_for(5, &[1, 63, 9, 2]);
        let priority = |vcpu: VcpuId| u32::from(vcpu.0 == 9 || vcpu.0 == 2);
        let order = [(); 5].map(|()| lock.pass(false, priority).map(|next| next.0));
        assert_eq!(order, [Some(9), Some(2), Some(63), Some(1), None]);
        assert_eq!(lock, Ownership::FREE);
    }

    #[test]
    fn who_leaves_does_not_get_the_lock() {
        let mut lock = waited_for(0, &[1, 2]);
        assert!(lock.leave(VcpuId(1)) && !lock.leave(VcpuId(1)));
        assert_eq!(lock.pass(false, |_| 0), Some(VcpuId(2)));
        assert!(!lock.leave(VcpuId(2)), "the lock is its own now");
        assert_eq!(lock.take(VcpuId(2)), Taking::AlreadyOwn);
    }

    #[test]
    fn a_lock_is_broken_until_somebody_releases_it() {
        let mut lock = waited_for(0, &[1, 2]);
        lock.pass(true, |_| 0);
        assert!(lock.is_broken());
        lock.pass(true, |_| 0);
        assert_eq!(lock.pass(true, |_| 0), None);
        assert_eq!(lock.take(VcpuId(3)), Taking::Taken(true));
        lock.pass(false, |_| 0);
        assert_eq!(lock.take(VcpuId(3)), Taking::Taken(false));
    }
}
