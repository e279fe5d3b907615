// SPDX-License-Identifier: Apache-2.0
//! Does what a trapped instruction would do, step by step: loads and stores on the private peripheral bus (or
//! on a virtual device), and the instructions the host tool replaced.

use crate::decode::{self, Direction, FLOATS, Found, Hint, Registers, Replaced, Transfer, search_back};
use crate::fault::{Fault, Lockup, UsageStatus};
use crate::guest::Guest;
use crate::processor::VirtualCore;
use crate::registers::{PRIVATE_BUS, PRIVATE_BUS_SIZE};
use crate::sequence::Next;
use crate::status::{DACCVIOL, IACCVIOL};
use crate::system::{INTERRUPT_STATE, PENDSVSET};
use bulkhead_arch_regions::GuestView;

/// A load or store of one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestAccess {
    /// Where.
    pub address: u32,
    /// Bytes: 1, 2 or 4.
    pub size: u8,
    /// The value that a store writes, zero-extended; `None` for a load.
    pub store: Option<u32>,
}

/// The outcome of a load or store that trapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trapped {
    /// It is done.
    Done,
    /// The instruction at the PC is no load or store that could have trapped: the guest's code and the
    /// trap do not agree.
    NoAccess,
    /// It accesses memory that is not the private peripheral bus; nothing has been done. Only for
    /// instructions with one register; others are [`Trapped::NoAccess`].
    Elsewhere(GuestAccess),
}

/// The outcome of a load or store of several words of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Several {
    /// It is done.
    Done,
    /// All but its last word is stored; [`VirtualCore::complete_access`] ends it.
    Last(GuestAccess),
    /// The instruction at the PC is no such thing, or a word of it, from which on nothing has been done, was
    /// refused.
    Refused,
}

/// The outcome of a store that the bus refused late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// It is done, or the guest is told that it cannot be.
    Done,
    /// It was this one, and is no business of the guest's processor.
    Elsewhere {
        /// Where the instruction is.
        at: u32,
        /// Where it stored to.
        address: u32,
    },
    /// Which one it was cannot be told.
    Unknown,
}

/// The guest's code and registers, as the search for a store wants them.
struct Program<'a, G>(&'a VirtualCore, &'a G);

impl<G: Guest> decode::Code for Program<'_, G> {
    fn fetch(&self, address: u32) -> Option<u16> {
        self.1.fetch(address)
    }

    fn register(&self, number: u8) -> u32 {
        self.0.operand(self.1, number)
    }
}

/// DSB, DMB or ISB (A7.7): the first halfword, and the second without what tells them apart.
const BARRIER: (u16, u16) = (0xF3BF, 0x8F00);
const NOP: u16 = 0xBF00;
/// The number of these in a row that are looked past.
const MOST_BARRIERS: u32 = 4;

/// xPSR: ITSTATE or the state of an interrupted LDM or STM.
const IT_HIGH: u32 = 0x0600_0000;
const IT_LOW: u32 = 0x0000_FC00;

/// Returns the xPSR after one more instruction of an IT block (ITAdvance, A7.3.3).
#[must_use]
pub const fn advance_it(xpsr: u32) -> u32 {
    let state = (xpsr & IT_LOW) >> 8 | (xpsr & IT_HIGH) >> 25;
    let next = if state & 7 == 0 {
        0
    } else {
        state & 0xE0 | (state << 1) & 0x1F
    };
    xpsr & !(IT_HIGH | IT_LOW) | (next & 0xFC) << 8 | (next & 3) << 25
}

/// Steps over the instruction in the live frame, of so many bytes: it is done.
#[inline(always)]
pub fn step(guest: &mut impl Guest, length: u32) {
    guest.set_register(15, guest.register(15).wrapping_add(length));
    let xpsr = guest.xpsr();
    if xpsr & (IT_HIGH | IT_LOW) != 0 {
        guest.set_xpsr(advance_it(xpsr));
    }
}

/// Tells whether an address is on the private peripheral bus.
pub(crate) const fn private(address: u32) -> bool {
    address.wrapping_sub(PRIVATE_BUS) < PRIVATE_BUS_SIZE
}

/// A load or store of one register by privileged code, neither it nor its base SP or PC.
struct Plain {
    transfer: Transfer,
    register: u8,
    length: u32,
    base: u32,
    address: u32,
}

impl Plain {
    /// Decodes this instruction, if it is one.
    #[inline(always)]
    fn of(guest: &impl Guest, first: u16, second: u16) -> Option<Self> {
        let (transfer, length) = if !decode::is_wide(first) {
            (decode::narrow_single(first), 2)
        } else if first & 0xFE00 == 0xF800 {
            (decode::wide_single(first, second), 4)
        } else {
            return None;
        };
        let transfer = transfer?;
        let Registers::One(register) = transfer.registers else {
            return None;
        };
        let plain = |number: u8| number != 13 && number != 15;
        if !plain(transfer.base) || !plain(register) || transfer.unprivileged {
            return None;
        }
        let index = transfer.index.map_or(0, |(number, shift)| {
            guest.register(number).wrapping_shl(u32::from(shift))
        });
        let base = guest.register(transfer.base);
        let address = base.wrapping_add(transfer.offset).wrapping_add(index);
        Some(Self {
            transfer,
            register,
            length,
            base,
            address,
        })
    }

    /// Does what is left when the access is done; `value` is what was loaded.
    #[inline(always)]
    fn finish(&self, guest: &mut impl Guest, value: u32) {
        if let Some(change) = self.transfer.change {
            guest.set_register(self.transfer.base, self.base.wrapping_add(change));
        }
        if let Direction::Load = self.transfer.direction {
            guest.set_register(self.register, self.transfer.extend(value));
        }
        step(guest, self.length);
    }
}

/// Does a load or store of one word by one register, elsewhere than on the private peripheral bus, on the
/// shortest way. `access` gets the address and the word to be stored, and answers the word that is loaded, or
/// that it does nothing. Returns false, and has done nothing, if `access` does nothing or the instruction is
/// anything else.
#[inline(always)]
pub fn word_quickly(
    guest: &mut impl Guest,
    first: u16,
    second: u16,
    access: impl FnOnce(u32, Option<u32>) -> Option<u32>,
) -> bool {
    let Some(plain) = Plain::of(guest, first, second) else {
        return false;
    };
    if plain.transfer.size != 4 {
        return false;
    }
    let is_store = plain.transfer.direction == Direction::Store;
    let store = is_store.then(|| guest.register(plain.register));
    let Some(value) = access(plain.address, store) else {
        return false;
    };
    plain.finish(guest, value);
    true
}

impl VirtualCore {
    /// Does the load or store on the private peripheral bus that the instruction in the live frame tried.
    /// An access the bus refuses is a fault the guest sees.
    ///
    /// # Errors
    /// [`Lockup`]: the guest can take no fault now.
    pub fn access_trapped(&mut self, guest: &mut impl Guest, now: u64) -> Result<Trapped, Lockup> {
        let pc = guest.register(15);
        let Some((transfer, length)) = fetch_transfer(guest, pc) else {
            return Ok(Trapped::NoAccess);
        };
        let first = transfer.address(|number| self.operand(guest, number));
        if !private(first) && !private(first.wrapping_add(transfer.bytes()).wrapping_sub(1)) {
            return Ok(self.elsewhere(guest, &transfer, first));
        }
        match transfer.registers {
            Registers::One(register) => {
                self.access_one(guest, &transfer, register, (first, length), now)?;
                return Ok(Trapped::Done);
            }
            Registers::Floats(..) => {
                self.access_floats(guest, &transfer, (first, length), now)?;
                return Ok(Trapped::Done);
            }
            Registers::Two(..) | Registers::List(_) => {}
        }
        let mut loaded = [0_u32; 16];
        let mut failed = None;
        for (step, slot) in transfer.steps(first).zip(loaded.iter_mut()) {
            let stored = match transfer.direction {
                Direction::Store => Some(self.operand(guest, step.register)),
                Direction::Load => None,
            };
            let refused = transfer.unprivileged && private(step.address);
            let access = GuestAccess {
                address: step.address,
                size: transfer.size,
                store: stored,
            };
            match self.bus(guest, &access, refused, now) {
                Ok(value) => *slot = transfer.extend(value),
                Err(fault) => {
                    failed = Some(fault);
                    break;
                }
            }
        }
        match failed {
            Some(fault) => self.raise(guest, fault)?,
            None => self.complete(guest, &transfer, first, &loaded, length),
        }
        Ok(Trapped::Done)
    }

    /// Does a load or store of one general register at `place`: address and length of the instruction.
    fn access_one(
        &mut self,
        guest: &mut impl Guest,
        transfer: &Transfer,
        register: u8,
        place: (u32, u32),
        now: u64,
    ) -> Result<(), Lockup> {
        let (address, length) = place;
        let loads = transfer.direction == Direction::Load;
        let access = GuestAccess {
            address,
            size: transfer.size,
            store: (!loads).then(|| self.operand(guest, register)),
        };
        let value = match self.bus(guest, &access, transfer.unprivileged && private(address), now) {
            Ok(value) => transfer.extend(value),
            Err(fault) => return self.raise(guest, fault),
        };
        self.go_on(guest, transfer, length);
        if loads {
            self.set_operand(guest, register, value);
        }
        if let Some(register) = transfer.status {
            // No other code stores there, so an exclusive store has always been done.
            self.set_operand(guest, register, 0);
        }
        Ok(())
    }

    /// Sets the PC after the instruction, and the base register to its new value.
    #[inline(always)]
    fn go_on(&self, guest: &mut impl Guest, transfer: &Transfer, length: u32) {
        let written_back = transfer.written_back(|number| self.operand(guest, number));
        step(guest, length);
        if let Some((register, value)) = written_back {
            self.set_operand(guest, register, value);
        }
    }

    /// Does a load or store of floating-point registers at `place`: address and length of the instruction.
    /// Words that have been loaded before one is refused stay: the architecture leaves this open.
    #[inline(never)]
    fn access_floats(
        &mut self,
        guest: &mut impl Guest,
        transfer: &Transfer,
        place: (u32, u32),
        now: u64,
    ) -> Result<(), Lockup> {
        let (first, length) = place;
        for step in transfer.steps(first) {
            let stores = transfer.direction == Direction::Store;
            let access = GuestAccess {
                address: step.address,
                size: transfer.size,
                store: stores.then(|| self.operand(guest, step.register)),
            };
            match self.bus(guest, &access, false, now) {
                Ok(_) if stores => {}
                Ok(value) => self.set_operand(guest, step.register, value),
                Err(fault) => return self.raise(guest, fault),
            }
        }
        self.go_on(guest, transfer, length);
        Ok(())
    }

    /// Does the load or store with the rights of unprivileged code (LDRT, STRT) that the host tool has
    /// replaced by the instruction in the live frame. The guest's own memory protection unit is asked for
    /// the rights of its unprivileged code. `None`, and nothing has been done, if the instruction is anything
    /// else. The outcome is as for [`VirtualCore::access_trapped`].
    ///
    /// # Errors
    /// [`Lockup`]: the guest can take no fault now.
    #[inline(never)]
    pub fn access_unprivileged(&mut self, guest: &mut impl Guest) -> Option<Result<Trapped, Lockup>> {
        let (Replaced::Unprivileged(first, second), length) = fetch_replaced(guest, guest.register(15))?
        else {
            return None;
        };
        let transfer = decode::wide_transfer(first, second)?;
        let register = transfer.single()?;
        let address = transfer.address(|number| self.operand(guest, number));
        let stores = transfer.direction == Direction::Store;
        if self.refuses_unprivileged(&transfer, address) {
            let fault = Fault::Memory {
                status: DACCVIOL,
                address: Some(address),
            };
            return Some(self.raise(guest, fault).map(|()| Trapped::Done));
        }
        if private(address) {
            return Some(self.raise(guest, Fault::bus(address)).map(|()| Trapped::Done));
        }
        let value = if stores {
            let value = self.operand(guest, register);
            store_bytes(guest, address, transfer.size, value).then_some(0)
        } else {
            load_bytes(guest, address, transfer.size)
        };
        let Some(value) = value else {
            return Some(Ok(self.elsewhere(guest, &transfer, address)));
        };
        self.go_on(guest, &transfer, length);
        if !stores {
            self.set_operand(guest, register, transfer.extend(value));
        }
        Some(Ok(Trapped::Done))
    }

    /// Tells whether the guest's own unit refuses this access of the guest's unprivileged code. The unit does
    /// not look at the private peripheral bus (B3.5.1).
    fn refuses_unprivileged(&self, transfer: &Transfer, address: u32) -> bool {
        let Some(view) = self.guest_regions() else {
            return false;
        };
        let view = GuestView {
            background: false,
            privileged: false,
            ..view
        };
        let stores = transfer.direction == Direction::Store;
        (0..u32::from(transfer.size)).any(|byte| {
            let at = address.wrapping_add(byte);
            let rights = view.rights(at);
            !private(at) && !if stores { rights.write } else { rights.read }
        })
    }

    /// Tells which access the instruction in the live frame tried, so that other code does the access. The
    /// program has no processor of its own, and the address is not its own.
    pub fn foreign_access(&self, guest: &impl Guest) -> Trapped {
        match fetch_transfer(guest, guest.register(15)) {
            Some((transfer, _)) => {
                let first = transfer.address(|number| self.operand(guest, number));
                self.elsewhere(guest, &transfer, first)
            }
            None => Trapped::NoAccess,
        }
    }

    /// Does what [`VirtualCore::access_trapped`] does, on the shortest way: one register, this instruction.
    /// False, and nothing has been done, for anything that is not a plain access of privileged code to the
    /// private peripheral bus.
    #[inline(always)]
    pub fn access_quickly(
        &mut self,
        guest: &mut impl Guest,
        first: u16,
        second: u16,
        now: impl FnOnce() -> u64,
    ) -> bool {
        let Some(plain) = Plain::of(guest, first, second) else {
            return false;
        };
        let (address, size) = (plain.address, plain.transfer.size);
        // The store that asks for a switch of threads is met most often.
        if address == INTERRUPT_STATE && size == 4 && plain.transfer.direction == Direction::Store {
            let value = guest.register(plain.register);
            if value == PENDSVSET && self.privileged() {
                self.pend_switch();
                plain.finish(guest, 0);
                return true;
            }
        }
        let now = now();
        // SysTick: when it wants something next is another thing to look at.
        if address & !0xFF == PRIVATE_BUS | 0xE000 {
            return false;
        }
        let loaded = if let Direction::Store = plain.transfer.direction {
            let value = guest.register(plain.register);
            self.write(address, size, value, now).map(|()| 0)
        } else {
            self.read(address, size, now)
        };
        let Ok(value) = loaded else { return false };
        plain.finish(guest, value);
        true
    }

    /// Finds the store that the bus has refused some instructions before the live frame's PC, without saying
    /// which (IMPRECISERR). If the store can only have been one to the private peripheral bus, does it now.
    /// Else returns what is known: the one store to an address that `refuses`, or nothing.
    pub fn store_refused_late(
        &mut self,
        guest: &mut impl Guest,
        refuses: impl Fn(u32) -> bool,
        now: u64,
    ) -> Late {
        let pc = guest.register(15);
        let found = search_back(&Program(self, &*guest), pc, |address| {
            private(address) || refuses(address)
        });
        let Found::Store {
            at,
            transfer,
            address,
        } = found
        else {
            return Late::Unknown;
        };
        if !private(address) {
            return Late::Elsewhere { at, address };
        }
        for step in transfer.steps(address) {
            let access = GuestAccess {
                address: step.address,
                size: transfer.size,
                store: Some(self.operand(guest, step.register)),
            };
            let refused = transfer.unprivileged && private(step.address);
            if self.bus(guest, &access, refused, now).is_err() {
                self.late_bus_fault();
                break;
            }
        }
        Late::Done
    }

    /// Ends a load or store that [`VirtualCore::access_trapped`] found to be elsewhere, with what was
    /// read. False if the instruction is not there any more.
    pub fn complete_access(&mut self, guest: &mut impl Guest, value: u32) -> bool {
        let pc = guest.register(15);
        let Some((transfer, length)) = fetch_transfer(guest, pc) else {
            return false;
        };
        let first = transfer.address(|number| self.operand(guest, number));
        let mut loaded = [0_u32; 16];
        if let Some(slot) = loaded.first_mut() {
            *slot = transfer.extend(value);
        }
        self.complete(guest, &transfer, first, &loaded, length);
        true
    }

    /// Does the load or store in the live frame, of several words elsewhere than on the private peripheral
    /// bus (LDM, LDRD and their like), a word at a time. `access` gets the address and the word to be stored,
    /// and answers the word that is loaded, or that it does nothing.
    pub fn access_several(
        &self,
        guest: &mut impl Guest,
        mut access: impl FnMut(u32, Option<u32>) -> Option<u32>,
    ) -> Several {
        let pc = guest.register(15);
        let transfer =
            fetch_transfer(guest, pc).filter(|(transfer, _)| transfer.size == 4 && transfer.count() <= 16);
        let Some((transfer, length)) = transfer else {
            return Several::Refused;
        };
        let first = transfer.address(|number| self.operand(guest, number));
        let mut loaded = [0_u32; 16];
        for ((step, slot), left) in transfer
            .steps(first)
            .zip(loaded.iter_mut())
            .zip((1..=transfer.count()).rev())
        {
            let stores = transfer.direction == Direction::Store;
            let store = stores.then(|| self.operand(guest, step.register));
            match access(step.address, store) {
                Some(value) => *slot = value,
                None if stores && left == 1 => {
                    return Several::Last(GuestAccess {
                        address: step.address,
                        size: transfer.size,
                        store,
                    });
                }
                None => return Several::Refused,
            }
        }
        self.complete(guest, &transfer, first, &loaded, length);
        Several::Done
    }

    fn elsewhere(&self, guest: &impl Guest, transfer: &Transfer, address: u32) -> Trapped {
        let Some(register) = transfer.single() else {
            return Trapped::NoAccess;
        };
        let mask = match transfer.size {
            1 => 0xFF,
            2 => 0xFFFF,
            _ => u32::MAX,
        };
        let store = (transfer.direction == Direction::Store).then(|| self.operand(guest, register) & mask);
        Trapped::Elsewhere(GuestAccess {
            address,
            size: transfer.size,
            store,
        })
    }

    /// Tells what `view` refuses of the next instruction of the guest that fetches or accesses memory, as
    /// bits of CFSR, and the address of an access. Barriers and NOP before it do neither.
    #[inline(never)]
    pub(crate) fn next_refused(&self, guest: &impl Guest, view: &GuestView<'_>) -> (u32, Option<u32>) {
        let pc = guest.register(15);
        if !view.executable(pc) {
            return (IACCVIOL, None);
        }
        let mut at = pc;
        for _ in 0..MOST_BARRIERS {
            let second = guest.fetch(at.wrapping_add(2)).unwrap_or(0);
            match guest.fetch(at) {
                Some(NOP) => at = at.wrapping_add(2),
                Some(first) if first == BARRIER.0 && second & 0xFF80 == BARRIER.1 => at = at.wrapping_add(4),
                _ => break,
            }
        }
        let is_conditional = guest.xpsr() & (IT_HIGH | IT_LOW) != 0;
        let Some((transfer, _)) =
            fetch_transfer(guest, at).filter(|(transfer, _)| !is_conditional && transfer.base != 15)
        else {
            return (0, None);
        };
        let first = transfer.address(|number| self.operand(guest, number));
        let refused = transfer.steps(first).find(|step| {
            let rights = view.rights(step.address);
            let allowed = if transfer.direction == Direction::Store {
                rights.write
            } else {
                rights.read
            };
            !allowed && !private(step.address)
        });
        match refused {
            Some(step) => (DACCVIOL, Some(step.address)),
            None => (0, None),
        }
    }

    /// Does one access of a transfer, at least one byte of which is on the private peripheral bus.
    fn bus(
        &mut self,
        guest: &mut impl Guest,
        access: &GuestAccess,
        refused: bool,
        now: u64,
    ) -> Result<u32, Fault> {
        let GuestAccess { address, size, store } = *access;
        let result = match (private(address), store) {
            _ if refused => None,
            (true, Some(value)) => self.write(address, size, value, now).ok().map(|()| 0),
            (true, None) => self.read(address, size, now).ok(),
            (false, _) if size != 4 || address & 3 != 0 => None,
            (false, Some(value)) => guest.store(address, value).then_some(0),
            (false, None) => guest.load(address),
        };
        result.ok_or(Fault::bus(address))
    }

    /// Registers, base register, IT state and PC after the accesses of a transfer are done.
    fn complete(&self, guest: &mut impl Guest, transfer: &Transfer, first: u32, loaded: &[u32], length: u32) {
        self.go_on(guest, transfer, length);
        if transfer.direction == Direction::Load {
            for (step, value) in transfer.steps(first).zip(loaded) {
                self.set_operand(guest, step.register, *value);
            }
        }
        if let Some(register) = transfer.status {
            // No other code stores there, so an exclusive store has always been done.
            self.set_operand(guest, register, 0);
        }
    }

    /// Returns a register as an operand of a trapped instruction.
    fn operand(&self, guest: &impl Guest, number: u8) -> u32 {
        match number {
            13 => self.stack_pointer(guest),
            // An instruction reads a PC that is 4 ahead (A2.3.1).
            15 => guest.register(15).wrapping_add(4),
            FLOATS.. => guest.float(number.wrapping_sub(FLOATS)),
            number => guest.register(number),
        }
    }

    fn set_operand(&self, guest: &mut impl Guest, number: u8, value: u32) {
        match number {
            13 => {
                self.move_frame(guest, value & !3, guest.extended());
            }
            15 => {
                guest.set_register(15, value & !1);
                let thumb = if value & 1 != 0 { 1 << 24 } else { 0 };
                guest.set_xpsr(guest.xpsr() & !(1 << 24) | thumb);
            }
            FLOATS.. => guest.set_float(number.wrapping_sub(FLOATS), value),
            number => guest.set_register(number, value),
        }
    }

    /// Does what [`VirtualCore::replaced_instruction`] does, on the shortest way, for the instructions that
    /// are met most often: the instruction is this one. False if it is none of these, and nothing has been
    /// done; else what remains is [`VirtualCore::deliver`], if something is pending.
    #[inline(always)]
    pub fn replaced_quickly(&mut self, guest: &mut impl Guest, first: u16, second: u16) -> bool {
        let (replaced, length) = if decode::is_wide(first) {
            (decode::wide_undefined_replaced(first, second), 4)
        } else {
            (decode::narrow_replaced(first), 2)
        };
        let Some(replaced) = replaced else { return false };
        let done = self.special_quickly(guest, replaced);
        if done {
            step(guest, length);
        }
        done
    }

    /// Does what the host tool has replaced by the instruction in the live frame. `None`, and nothing has
    /// been done, if it does not look like one; that it only looks like one is for the caller to know.
    ///
    /// # Errors
    /// [`Lockup`]: the guest can take no fault now.
    pub fn replaced_instruction(&mut self, guest: &mut impl Guest) -> Option<Result<Next, Lockup>> {
        let (replaced, length) = fetch_replaced(guest, guest.register(15))?;
        Some(self.do_replaced(guest, replaced, length))
    }

    fn do_replaced(
        &mut self,
        guest: &mut impl Guest,
        replaced: Replaced,
        length: u32,
    ) -> Result<Next, Lockup> {
        let mut next = Next::Run;
        let done = match replaced {
            Replaced::ChangeMasks {
                disable,
                primask,
                faultmask,
            } => {
                self.change_masks(disable, primask, faultmask);
                true
            }
            Replaced::ReadSpecial { register, special } => {
                let value = self.read_special(guest, special);
                self.set_operand(guest, register, value);
                true
            }
            Replaced::WriteSpecial {
                register,
                special,
                mask,
            } => {
                let value = self.operand(guest, register);
                self.write_special(guest, special, mask, value)
            }
            Replaced::Hint(hint) => {
                // B1.5.18 and B1.5.19: WFI does not look at the event register, WFE clears it.
                let goes_on = hint == Hint::SEND_EVENT || hint == Hint::WAIT_FOR_EVENT && self.event;
                if hint != Hint::WAIT {
                    self.event = hint == Hint::SEND_EVENT;
                }
                if !goes_on {
                    next = Next::Sleep;
                }
                true
            }
            // `access_unprivileged` comes first. Without it the instruction is what it looks like.
            Replaced::Unprivileged(..) => {
                self.raise(guest, Fault::Usage(UsageStatus::UNDEFINED))?;
                return Ok(Next::Run);
            }
        };
        if !done {
            // The stack in use cannot be there: the next push would not work.
            self.raise(
                guest,
                Fault::Memory {
                    status: 1 << 4,
                    address: None,
                },
            )?;
            return Ok(Next::Run);
        }
        step(guest, length);
        Ok(next)
    }
}

/// Loads `size` bytes of the guest's memory, as an unaligned load does. `None` if it may not read them all.
fn load_bytes(guest: &impl Guest, address: u32, size: u8) -> Option<u32> {
    (0..u32::from(size)).try_fold(0, |value, byte| {
        let at = address.wrapping_add(byte);
        let word = guest.load(at & !3)?;
        let loaded = word.wrapping_shr((at & 3) << 3) & 0xFF;
        Some(value | loaded.wrapping_shl(byte << 3))
    })
}

/// Stores `size` bytes to the guest's memory. False, and nothing has been stored, if it may not write them
/// all.
fn store_bytes(guest: &mut impl Guest, address: u32, size: u8, value: u32) -> bool {
    let at = |byte: u32| address.wrapping_add(byte);
    let allowed = (0..u32::from(size)).all(|byte| guest.reaches(at(byte), 1));
    allowed
        && (0..u32::from(size)).all(|byte| {
            let place = (at(byte) & 3) << 3;
            let kept = guest.load(at(byte) & !3).unwrap_or(0) & !0xFF_u32.wrapping_shl(place);
            let stored = (value.wrapping_shr(byte << 3) & 0xFF).wrapping_shl(place);
            guest.store(at(byte) & !3, kept | stored)
        })
}

/// Returns the load or store at `pc`, as it was before the host tool replaced it, with its length.
pub fn fetch_transfer(guest: &impl Guest, pc: u32) -> Option<(Transfer, u32)> {
    let first = guest.fetch(pc)?;
    if decode::is_wide(first) {
        let second = guest.fetch(pc.wrapping_add(2))?;
        let (first, second) = match decode::wide_replaced(first, second) {
            Some(Replaced::Unprivileged(first, second)) => (first, second),
            _ => (first, second),
        };
        decode::wide_transfer(first, second).map(|transfer| (transfer, 4))
    } else {
        decode::narrow_transfer(first).map(|transfer| (transfer, 2))
    }
}

#[inline(never)]
fn fetch_replaced(guest: &impl Guest, pc: u32) -> Option<(Replaced, u32)> {
    let first = guest.fetch(pc)?;
    if decode::is_wide(first) {
        let second = guest.fetch(pc.wrapping_add(2))?;
        decode::wide_replaced(first, second).map(|replaced| (replaced, 4))
    } else {
        decode::narrow_replaced(first).map(|replaced| (replaced, 2))
    }
}
