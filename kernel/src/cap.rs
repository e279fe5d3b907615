// SPDX-License-Identifier: Apache-2.0
//! Capability spaces: the only names that a partition has for anything.
//!
//! Each partition has a space of [`CAPABILITY_SLOTS`] slots. The content of a slot (kind, object, rights) is
//! half a word: 14 kinds, 256 objects of each kind, 4 rights. Any pCPU reads this half word without a lock.
//! The read is the check of every hypercall. The derivation relation changes under one lock.
//!
//! **Dead slots.** A capability that another partition takes away leaves a dead slot. The first use of a dead
//! slot is answered with [`Error::Revoked`] and frees the slot. Before that, nothing new comes into the
//! slot. So an index never names something else without its holder having met the error. The holder knows
//! what it takes away itself: slots in the space of the one who revokes or deletes are free at once.
//!
//! **One-time capabilities.** A reply capability is derived from nothing, and nothing can be derived from it.
//! Its slot is free as soon as its call has ended, for any reason. So calls that their callers give up take
//! no room. The index of a reply capability names its call besides its slot ([`ReplyIndex`]). So an index
//! that is kept for too long never names the call of another vCPU. Nothing can be derived from the capability
//! for a secret either, and its use takes it away. The next life of its holder has it again.
//!
//! **Derivation.** A capability and everything derived from it, in any space, stand next to each other in a
//! doubly linked list in pre-order. Each entry has its depth. The descendants of an entry are the entries
//! after it that are deeper. So a revocation takes away the next entry as long as that entry is deeper. Each
//! step takes constant time, without recursion and without a search.
//!
//! **Work bounds.** A look-up is one load and one compare. Derive and grant take constant time, because the
//! free slots of a space are a bitmap. Revoke and delete take one step per descendant, at most
//! [`CAPABILITY_SLOTS`] for every space that holds descendants. A partition can fill only its own space, and
//! the spaces of partitions to which it may grant, with capabilities or with dead slots. A reset is one pass
//! over a space. The pass is cut wherever descendants had to go. Each part is the work of a revocation.
//!
//! **A new life.** The spaces remember the endowment that the system image made. Each load of a partition
//! puts its space back to the endowment. Every capability that the partition derived, granted away or was
//! granted in its earlier life is gone. Every endowed capability that the partition deleted is there again.
//! So restarts cannot fill the space of the partition that restarts, and a partition starts with the same
//! names every time. The capabilities that the partition granted to others are dead there until the others
//! meet the error.
//!
//! **Races.** An operation may look a capability up before another pCPU revokes that capability. Such an
//! operation counts as done before the revocation. A wait that such an operation begins looks once more, and
//! so does not outlive the capability ([`crate::dispatch`], file `basis`).

use crate::mailbox::bit;
use bulkhead_abi::hypercall::{CAPABILITY_SLOTS, SELF_CAPABILITY};
use bulkhead_abi::size::TablePlace;
use bulkhead_abi::{Error, ObjectKind, Rights};
use bulkhead_arch_api::{MAX_PARTITIONS, MAX_PCPUS, MAX_VCPUS, PartitionId, VcpuId};
use core::sync::atomic::{AtomicU16, Ordering};
use spin::RelaxStrategy;
use spin::mutex::TicketMutex;

/// A capability: an object, and the rights to that object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// The number of the object: a partition, or the partition whose gate, console or timer it is. For
    /// schedules this is the number of the pCPU, for a reply the number of the vCPU that waits.
    pub object: u8,
    /// The rights of the holder.
    pub rights: Rights,
}

impl Capability {
    /// Returns the capability in half a word: rights in bits 3:0, its kind in bits 7:4, the object in bits
    /// 15:8. The kind is neither 0 nor the kind of a dead slot.
    const fn encode(self) -> u16 {
        (self.rights.0 & 15) as u16 | (self.kind as u16) << 4 | (self.object as u16) << 8
    }

    const fn decode(word: u16) -> Option<Self> {
        match ObjectKind::from_number((word >> 4) as u8 & 15) {
            Some(kind) => Some(Self {
                kind,
                object: (word >> 8) as u8,
                rights: Rights(word as u8 & 15),
            }),
            None => None,
        }
    }
}

const SLOTS: usize = MAX_PARTITIONS * CAPABILITY_SLOTS;
/// The most capabilities that are taken away at a time. Meanwhile the pCPU does not look at interrupts, and
/// other pCPUs wait for the lock.
pub const REVOKED_AT_ONCE: usize = 64;
const EMPTY: u16 = 0;
/// The content of a dead slot: a kind that no object has.
const DEAD: u16 = 15 << 4;
/// The bits of a slot's content that are its kind.
const KIND: u16 = 15 << 4;
/// The bits of a slot's content that are rights.
const RIGHTS: u16 = 15;
const _: () = assert!(
    MAX_PARTITIONS <= 256
        && MAX_PCPUS <= 256
        && MAX_VCPUS <= 256
        && ObjectKind::from_number(15).is_none()
        && Rights::ALL.0 == 15
        && MAX_PARTITIONS.is_power_of_two(),
    "a capability fits half a word"
);
const _: () = assert!(
    CAPABILITY_SLOTS <= 64 && MAX_VCPUS <= 64 && SLOTS < NOWHERE as usize,
    "a free map fits u64, and a slot among all slots of all spaces has a place"
);

/// No place.
const NOWHERE: TablePlace = TablePlace::MAX;

/// The free map of a space in which every slot is free.
const ALL_FREE: u64 = u64::MAX >> (64 - CAPABILITY_SLOTS);

/// Returns the bit of a slot in the free map of its space.
fn slot_bit(place: TablePlace) -> u64 {
    let slot = u32::from(place).checked_rem(CAPABILITY_SLOTS as u32);
    1_u64.rotate_left(slot.unwrap_or(0))
}

/// An object, and the slot of the capability by which a partition has named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<T> {
    /// The object.
    pub it: T,
    /// The slot.
    pub index: u8,
}

/// A capability to reply by, and the partition that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldReply {
    /// The partition.
    pub holder: PartitionId,
    /// The index of the capability in the partition's space.
    pub index: ReplyIndex,
}

/// A capability that others are derived from, and its place.
#[derive(Clone, Copy)]
struct Parent {
    capability: Capability,
    place: TablePlace,
}

/// The index of a capability to reply by: the slot in bits 5:0, the vCPU that waits in bits 11:6, the number
/// of its call in bits 30:12, and a one in bit 31, which no other index has.
///
/// The number of a call comes again after 2^19 calls of the same vCPU. An answer that is as old as that may
/// go to a later call of that vCPU, and to no other vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyIndex(pub u32);

impl ReplyIndex {
    const MARK: u32 = 1 << 31;
    const SLOT: u32 = 63;

    /// Returns the index for a call, the vCPU that waits and the number, in a slot.
    #[must_use]
    pub const fn new(slot: u32, caller: VcpuId, number: u32) -> Self {
        let call = (number << 12 | (caller.0 as u32) << 6) & !Self::MARK;
        Self(Self::MARK | call | slot & Self::SLOT)
    }

    /// Returns the index that this argument of a hypercall is, if it is one to reply by.
    #[must_use]
    #[inline(always)]
    pub const fn of(index: u64) -> Option<Self> {
        // Without ports, such an index is only one that is out of range.
        if crate::parts::PORTS && index >> 31 == 1 {
            Some(Self(index as u32))
        } else {
            None
        }
    }

    /// Returns the slot.
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.0 & Self::SLOT
    }

    /// Returns the vCPU that waits, if the call is open. There may be no such vCPU.
    #[must_use]
    pub const fn caller(self) -> VcpuId {
        VcpuId((self.0 >> 6 & 63) as u8)
    }
}

/// Neighbours of a slot in its derivation list.
#[derive(Clone, Copy, Debug)]
struct Link {
    next: TablePlace,
    previous: TablePlace,
    depth: TablePlace,
}

const ALONE: Link = Link {
    next: NOWHERE,
    previous: NOWHERE,
    depth: 0,
};

#[derive(Debug)]
struct Derivations {
    links: [Link; SLOTS],
    /// The content that the system image put into each slot.
    endowed: [u16; SLOTS],
    /// The free map of each space. Bit n is set if slot n of the space is free.
    free: [u64; MAX_PARTITIONS],
}

/// A slot that was found to have a capability.
#[derive(Clone, Copy, Debug)]
pub struct Found<'s> {
    slot: &'s AtomicU16,
    content: u16,
}

impl Found<'_> {
    /// Returns the object of the capability.
    #[inline(always)]
    #[must_use]
    pub const fn object(self) -> u8 {
        (self.content >> 8) as u8
    }

    /// Returns the rights of the capability.
    #[inline(always)]
    #[must_use]
    pub const fn rights(self) -> Rights {
        Rights(self.content as u8 & 15)
    }

    /// Tells whether the slot still has the capability.
    #[inline(always)]
    #[must_use]
    pub fn is_there(self) -> bool {
        self.slot.load(Ordering::Acquire) == self.content
    }
}

/// All capability spaces.
#[derive(Debug)]
pub struct Spaces<R> {
    words: [AtomicU16; SLOTS],
    derivations: TicketMutex<Derivations, R>,
}

impl<R: RelaxStrategy> Default for Spaces<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: RelaxStrategy> Spaces<R> {
    /// Makes empty spaces.
    pub const fn new() -> Self {
        Self {
            words: [const { AtomicU16::new(EMPTY) }; SLOTS],
            derivations: TicketMutex::new(Derivations {
                links: [ALONE; SLOTS],
                endowed: [EMPTY; SLOTS],
                free: [ALL_FREE; MAX_PARTITIONS],
            }),
        }
    }

    /// Puts a capability that is derived from nothing into a space. Only the boot calls this.
    ///
    /// # Errors
    /// [`Error::NoCapability`] if there is no such slot, [`Error::NoSpace`] if the slot is taken.
    pub fn endow(&self, holder: PartitionId, index: u32, capability: Capability) -> Result<(), Error> {
        let place = place(holder, index).ok_or(Error::NoCapability)?;
        let mut derivations = self.derivations.lock();
        let free = derivations
            .free
            .get_mut(usize::from(holder.0))
            .ok_or(Error::NoCapability)?;
        let mask = 1_u64.rotate_left(index);
        if *free & mask == 0 {
            return Err(Error::NoSpace);
        }
        *free &= !mask;
        if let Some(endowed) = derivations.endowed.get_mut(usize::from(place)) {
            *endowed = capability.encode();
        }
        self.store(place, capability.encode());
        Ok(())
    }

    /// Puts the slots of `holder`'s space from `index` on back to their endowment, and takes away all
    /// capabilities derived from them. Returns the slot to go on with, or `None` at the end, and the
    /// partitions that have lost something, as a bitmap. The work done at a time is the work of one
    /// revocation.
    ///
    /// Nothing of the partition runs meanwhile. A capability that another partition grants to `holder` during
    /// the pass may stay, in a slot that the pass has left already. So the pass has an end.
    pub fn reset(&self, holder: PartitionId, index: u32) -> (Option<u32>, u32) {
        let mut derivations = self.derivations.lock();
        for slot in index..CAPABILITY_SLOTS as u32 {
            let Some(at) = place(holder, slot) else { break };
            if derivations.is_as_made(at) {
                continue;
            }
            let (lost, done) = self.take_descendants(&mut derivations, at, holder);
            if !done {
                return (Some(slot), lost);
            }
            derivations.remove(at);
            let word = derivations.endow(at);
            self.store(at, word);
            if lost != 0 {
                return (slot.checked_add(1), lost);
            }
        }
        (None, 0)
    }

    /// Returns the capability at `index` of a space. Frees the slot if it is dead.
    ///
    /// # Errors
    /// [`Error::NoCapability`]; [`Error::Revoked`] if the slot is dead, or the call that the index names is
    /// over.
    #[inline(never)]
    pub fn look_up(&self, holder: PartitionId, index: u64) -> Result<Capability, Error> {
        let (at, word) = self.content(holder, index)?;
        Capability::decode(word).ok_or_else(|| self.meet_dead(at))
    }

    /// Returns the capability at `index` of a space, and leaves a dead slot as it is.
    ///
    /// # Errors
    /// As [`Spaces::look_up`].
    pub fn peek(&self, holder: PartitionId, index: u64) -> Result<Capability, Error> {
        let (_, word) = self.content(holder, index)?;
        Capability::decode(word).ok_or(Error::Revoked)
    }

    /// Returns the object of the capability at `index` of a space, if the capability is of this kind and
    /// gives this right. One comparison shows that: `Capability::encode` puts both into one word.
    #[inline(always)]
    pub fn find_quickly(
        &self,
        holder: PartitionId,
        index: u64,
        kind: ObjectKind,
        right: Rights,
    ) -> Option<u8> {
        self.find_with_rights(holder, index, kind, right)
            .map(|(object, _)| object)
    }

    /// Does [`Spaces::find_quickly`], and returns the rights as well.
    #[inline(always)]
    pub fn find_with_rights(
        &self,
        holder: PartitionId,
        index: u64,
        kind: ObjectKind,
        right: Rights,
    ) -> Option<(u8, Rights)> {
        let found = self.find_slot(holder, index, kind, right)?;
        Some(((found.content >> 8) as u8, Rights(found.content as u8 & 15)))
    }

    /// Does [`Spaces::find_quickly`], and returns the slot, which can be looked at again.
    #[inline(always)]
    pub fn find_slot(
        &self,
        holder: PartitionId,
        index: u64,
        kind: ObjectKind,
        right: Rights,
    ) -> Option<Found<'_>> {
        if index >= CAPABILITY_SLOTS as u64 {
            return None;
        }
        let base = (usize::from(holder.0) & (MAX_PARTITIONS - 1)).wrapping_mul(CAPABILITY_SLOTS);
        let place = base.wrapping_add(index as usize);
        let slot = self.words.get(place)?;
        let content = slot.load(Ordering::Acquire);
        let wanted = (kind as u16) << 4 | u16::from(right.0);
        let is_it = content & (15 << 4 | u16::from(right.0)) == wanted;
        is_it.then_some(Found { slot, content })
    }

    /// Returns the slot that an index names, and its content: a capability, or [`DEAD`].
    #[inline(never)]
    fn content(&self, holder: PartitionId, index: u64) -> Result<(TablePlace, u16), Error> {
        let reply = ReplyIndex::of(index);
        let (slot, is_call) = match reply {
            Some(reply) => (Some(reply.slot()), true),
            None => (u32::try_from(index).ok(), false),
        };
        let at = slot.and_then(|slot| place(holder, slot));
        let word = at.map_or(EMPTY, |at| self.load(at));
        match at {
            Some(at) if word != EMPTY && is_reply(word) == is_call => Ok((at, word)),
            _ if is_call => Err(Error::Revoked),
            _ => Err(Error::NoCapability),
        }
    }

    /// Frees a slot that is dead. Returns the error for its use.
    #[cold]
    #[inline(never)]
    fn meet_dead(&self, at: TablePlace) -> Error {
        self.bury(&mut self.derivations.lock(), at)
    }

    /// Does [`Spaces::meet_dead`] under the lock.
    fn bury(&self, derivations: &mut Derivations, at: TablePlace) -> Error {
        if self.load(at) != DEAD {
            return Error::NoCapability;
        }
        self.store(at, EMPTY);
        derivations.release(at);
        Error::Revoked
    }

    /// Does [`Spaces::look_up`] under the lock.
    #[inline(never)]
    fn find(
        &self,
        derivations: &mut Derivations,
        holder: PartitionId,
        index: u64,
    ) -> Result<(Capability, TablePlace), Error> {
        let (at, word) = self.content(holder, index)?;
        match Capability::decode(word) {
            Some(capability) => Ok((capability, at)),
            None => Err(self.bury(derivations, at)),
        }
    }

    /// Copies the capability at `index` of `holder`'s space into the space of `receiver`, with `rights`.
    /// Returns the index of the copy.
    ///
    /// # Errors
    /// [`Error::NoCapability`], [`Error::Revoked`], [`Error::NoRight`] if `rights` is no subset,
    /// [`Error::NoSpace`]; [`Error::WrongKind`] for a one-time capability.
    pub fn derive(
        &self,
        holder: PartitionId,
        index: u64,
        receiver: PartitionId,
        rights: Rights,
    ) -> Result<u32, Error> {
        // The look-up is under the lock: a revocation on another pCPU must not slip in between look-up and
        // derivation.
        let mut derivations = self.derivations.lock();
        let (capability, place) = self.find(&mut derivations, holder, index)?;
        let parent = Parent { capability, place };
        self.derive_from(&mut derivations, parent, receiver, rights)
    }

    /// Does [`Spaces::derive`] for a capability that was looked up earlier, if the slot still has it.
    ///
    /// # Errors
    /// As [`Spaces::derive`]; [`Error::NoCapability`] if the slot has something else.
    pub fn derive_same(
        &self,
        holder: PartitionId,
        index: u8,
        then: Capability,
        receiver: PartitionId,
        rights: Rights,
    ) -> Result<u32, Error> {
        let mut derivations = self.derivations.lock();
        let now = self.peek(holder, u64::from(index))?;
        let at = place(holder, u32::from(index)).filter(|_| now == then);
        let parent = Parent {
            capability: now,
            place: at.ok_or(Error::NoCapability)?,
        };
        self.derive_from(&mut derivations, parent, receiver, rights)
    }

    fn derive_from(
        &self,
        derivations: &mut Derivations,
        parent: Parent,
        receiver: PartitionId,
        rights: Rights,
    ) -> Result<u32, Error> {
        let Parent { capability, place } = parent;
        if !capability.rights.contains(rights) {
            return Err(Error::NoRight);
        }
        if matches!(capability.kind, ObjectKind::Reply | ObjectKind::Secret) {
            return Err(Error::WrongKind);
        }
        let (slot, child_place) = derivations.take_slot(receiver).ok_or(Error::NoSpace)?;
        derivations.insert_behind(place, child_place);
        self.store(child_place, Capability { rights, ..capability }.encode());
        Ok(slot)
    }

    /// Puts the capability to reply to a call, the vCPU that waits and the number, into `holder`'s space.
    /// Returns its index.
    ///
    /// # Errors
    /// [`Error::NoSpace`].
    pub fn put_reply(
        &self,
        holder: PartitionId,
        caller: VcpuId,
        number: u32,
        rights: Rights,
    ) -> Result<ReplyIndex, Error> {
        let mut derivations = self.derivations.lock();
        let (slot, at) = derivations.take_slot(holder).ok_or(Error::NoSpace)?;
        self.store(at, reply_to(caller, rights).encode());
        Ok(ReplyIndex::new(slot, caller, number))
    }

    /// Takes the capability to reply to a call of `caller` away, if it is in the slot of this index.
    pub fn take_reply(&self, held: HeldReply, caller: VcpuId) {
        let HeldReply { holder, index } = held;
        let mut derivations = self.derivations.lock();
        let Some(at) = place(holder, index.slot()) else {
            return;
        };
        // The rights of the capability do not matter.
        let it = reply_to(caller, Rights::NONE).encode();
        if self.load(at) & !RIGHTS == it {
            self.store(at, EMPTY);
            derivations.release(at);
        }
    }

    /// Returns the vCPUs that wait for a reply of `holder`. Nothing of `holder` runs, so no call
    /// comes to it. Bounded by the slots of a space that are taken.
    pub fn replies(&self, holder: PartitionId) -> impl Iterator<Item = VcpuId> + '_ {
        let free = {
            let derivations = self.derivations.lock();
            let free = derivations.free.get(usize::from(holder.0));
            free.copied().unwrap_or(ALL_FREE)
        };
        // A restart walks the space while interrupts wait.
        let mut taken = ALL_FREE & !free;
        core::iter::from_fn(move || {
            let index = (taken != 0).then(|| taken.trailing_zeros())?;
            taken &= taken.wrapping_sub(1);
            Some(index)
        })
        .filter_map(move |index| {
            let word = self.load(place(holder, index)?);
            is_reply(word).then_some(VcpuId((word >> 8) as u8))
        })
    }

    /// Destroys everything derived from the capability at `index`, and the capability itself if `own`.
    /// Destroys at most [`REVOKED_AT_ONCE`] capabilities at a time. Returns whether the work is done, and the
    /// partitions that have lost something, as a bitmap. If the work is not done, the caller must call again.
    /// Capabilities that are derived meanwhile are destroyed as well.
    ///
    /// # Errors
    /// [`Error::NoCapability`]; [`Error::InvalidArgument`] for the destruction of a partition's capability
    /// for itself.
    pub fn revoke(&self, holder: PartitionId, index: u64, own: bool) -> Result<(bool, u32), Error> {
        if own && index == u64::from(SELF_CAPABILITY) {
            return Err(Error::InvalidArgument);
        }
        let mut derivations = self.derivations.lock();
        let (_, root) = self.find(&mut derivations, holder, index)?;
        let (mut lost, done) = self.take_descendants(&mut derivations, root, holder);
        if own && done {
            self.store(root, EMPTY);
            derivations.remove(root);
            lost |= bit(holder.0);
        }
        Ok((done, lost))
    }

    /// Destroys everything derived from the capability at `root`, at most [`REVOKED_AT_ONCE`] capabilities at
    /// a time, because `holder` wishes so. Returns the partitions that had some, as a bitmap, and whether
    /// none is left.
    fn take_descendants(
        &self,
        derivations: &mut Derivations,
        root: TablePlace,
        holder: PartitionId,
    ) -> (u32, bool) {
        let mut lost = 0;
        for _ in 0..REVOKED_AT_ONCE {
            let Some(descendant) = derivations.first_descendant(root) else {
                return (lost, true);
            };
            let is_own = is_in(descendant, holder);
            self.store(descendant, if is_own { EMPTY } else { DEAD });
            derivations.unlink(descendant);
            if is_own {
                derivations.release(descendant);
            }
            lost |= bit(space_of(descendant));
        }
        (lost, derivations.first_descendant(root).is_none())
    }

    fn load(&self, place: TablePlace) -> u16 {
        let slot = self.words.get(usize::from(place));
        slot.map_or(EMPTY, |word| word.load(Ordering::Acquire))
    }

    fn store(&self, place: TablePlace, word: u16) {
        if let Some(slot) = self.words.get(usize::from(place)) {
            slot.store(word, Ordering::Release);
        }
    }
}

impl Derivations {
    fn link(&self, place: TablePlace) -> Link {
        self.links.get(usize::from(place)).copied().unwrap_or(ALONE)
    }

    fn update(&mut self, place: TablePlace, change: impl FnOnce(&mut Link)) {
        if let Some(link) = self.links.get_mut(usize::from(place)) {
            change(link);
        }
    }

    fn insert_behind(&mut self, parent: TablePlace, child: TablePlace) {
        let Link { next, depth, .. } = self.link(parent);
        self.update(child, |link| {
            *link = Link {
                next,
                previous: parent,
                depth: depth.saturating_add(1),
            }
        });
        self.update(parent, |link| link.next = child);
        self.update(next, |link| link.previous = child);
    }

    fn first_descendant(&self, root: TablePlace) -> Option<TablePlace> {
        let Link { next, depth, .. } = self.link(root);
        (next != NOWHERE && self.link(next).depth > depth).then_some(next)
    }

    /// Takes the lowest free slot of a space. Returns its index and its place.
    fn take_slot(&mut self, holder: PartitionId) -> Option<(u32, TablePlace)> {
        let free = self.free.get_mut(usize::from(holder.0))?;
        let slot = free.trailing_zeros();
        let at = place(holder, slot)?;
        *free &= !1_u64.rotate_left(slot);
        Some((slot, at))
    }

    fn remove(&mut self, place: TablePlace) {
        self.unlink(place);
        self.release(place);
    }

    fn unlink(&mut self, place: TablePlace) {
        let Link { next, previous, .. } = self.link(place);
        self.update(previous, |link| link.next = next);
        self.update(next, |link| link.previous = previous);
        self.update(place, |link| *link = ALONE);
    }

    fn release(&mut self, place: TablePlace) {
        if let Some(free) = self.free_around(place) {
            *free |= slot_bit(place);
        }
    }

    /// Tells whether a slot is free and a reset leaves it free. Nothing can be derived from such a slot.
    fn is_as_made(&self, place: TablePlace) -> bool {
        let (space, endowed) = (
            usize::from(place).checked_div(CAPABILITY_SLOTS),
            self.endowed.get(usize::from(place)),
        );
        let free = space.and_then(|space| self.free.get(space)).copied().unwrap_or(0);
        free & slot_bit(place) != 0 && endowed == Some(&EMPTY)
    }

    /// Takes the slot again for its endowment, if it has one. Returns the content of the slot.
    fn endow(&mut self, place: TablePlace) -> u16 {
        let word = self.endowed.get(usize::from(place)).copied().unwrap_or(EMPTY);
        if word != EMPTY
            && let Some(free) = self.free_around(place)
        {
            *free &= !slot_bit(place);
        }
        word
    }

    /// Returns the free map of the space that has this slot.
    fn free_around(&mut self, place: TablePlace) -> Option<&mut u64> {
        let space = usize::from(place).checked_div(CAPABILITY_SLOTS)?;
        self.free.get_mut(space)
    }
}

/// Tells whether the content of a slot is a capability to reply by.
const fn is_reply(word: u16) -> bool {
    word & KIND == (ObjectKind::Reply as u16) << 4
}

/// Returns the capability to reply to a call of `caller`.
const fn reply_to(caller: VcpuId, rights: Rights) -> Capability {
    Capability {
        kind: ObjectKind::Reply,
        object: caller.0,
        rights,
    }
}

/// Returns the number of the partition whose space has a slot.
fn space_of(place: TablePlace) -> u8 {
    let space = usize::from(place).checked_div(CAPABILITY_SLOTS);
    space.map_or(0, |space| space as u8)
}

/// Tells whether a slot is one of this space.
fn is_in(place: TablePlace, holder: PartitionId) -> bool {
    space_of(place) == holder.0
}

/// Returns the place of slot `index` of a space, if there is such a slot.
fn place(holder: PartitionId, index: u32) -> Option<TablePlace> {
    let index = usize::try_from(index)
        .ok()
        .filter(|index| *index < CAPABILITY_SLOTS)?;
    let base = usize::from(holder.0).checked_mul(CAPABILITY_SLOTS)?;
    let place = base.checked_add(index).filter(|place| *place < SLOTS)?;
    TablePlace::try_from(place).ok()
}

/// Returns the object that a capability names, which must be of this kind and give this right.
pub(crate) fn named<R: RelaxStrategy>(
    spaces: &Spaces<R>,
    holder: PartitionId,
    index: u64,
    kind: ObjectKind,
    right: Rights,
) -> Result<u8, Error> {
    let capability = spaces.look_up(holder, index)?;
    if capability.kind != kind {
        return Err(Error::WrongKind);
    }
    let has_right = capability.rights.contains(right);
    has_right.then_some(capability.object).ok_or(Error::NoRight)
}

/// Returns the rights that an argument of a hypercall stands for.
pub(crate) fn rights(argument: u64) -> Result<Rights, Error> {
    match u8::try_from(argument) {
        Ok(bits) if Rights::ALL.contains(Rights(bits)) => Ok(Rights(bits)),
        _ => Err(Error::InvalidArgument),
    }
}
