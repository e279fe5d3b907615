// SPDX-License-Identifier: Apache-2.0
//! The registers of the kernel's device that are at hand while a vCPU runs: [`Window`], without its type.
//!
//! The handlers of exceptions have fixed types, so a loan consists of an address and two functions that know
//! the type of the device. The loan lasts as long as [`Network::run_beside`], which neither reads nor moves
//! the device meanwhile.
//!
//! [`Frames::run_beside`]: bulkhead_arch_api::Frames::run_beside

use crate::words::Words;
use bulkhead_arch_api::{Stored, VirtualDevice, Window};
use core::ptr::null_mut;

type Load = unsafe fn(*mut (), u32) -> Option<u32>;
type Store = unsafe fn(*mut (), u32, u32) -> Stored;

/// A device that is lent, or none.
#[derive(Clone, Copy)]
pub(crate) struct Loan {
    base: u32,
    size: u32,
    line: Option<u8>,
    device: *mut (),
    load: Load,
    store: Store,
}

/// # Safety
/// `device` is a `W` that no other code uses meanwhile.
unsafe fn load<W: Window>(device: *mut (), offset: u32) -> Option<u32> {
    // SAFETY: the caller's.
    unsafe { &mut *device.cast::<W>() }.load(offset, &mut Words)
}

/// # Safety
/// As for [`load`].
unsafe fn store<W: Window>(device: *mut (), offset: u32, value: u32) -> Stored {
    // SAFETY: the caller's.
    unsafe { &mut *device.cast::<W>() }.store(offset, value, &mut Words)
}

const fn load_nothing(_: *mut (), _: u32) -> Option<u32> {
    None
}

const fn store_nothing(_: *mut (), _: u32, _: u32) -> Stored {
    Stored::Exit
}

impl Loan {
    /// No device.
    pub(crate) const NOTHING: Self = Self {
        base: 0,
        size: 0,
        line: None,
        device: null_mut(),
        load: load_nothing,
        store: store_nothing,
    };

    /// # Safety
    /// `window` is neither used nor moved as long as this is.
    pub(crate) unsafe fn of<W: Window>(place: &VirtualDevice, window: &mut W) -> Self {
        Self {
            base: place.base() as u32,
            size: place.size(),
            line: place.interrupt().map(|line| line.0 as u8),
            device: core::ptr::from_mut(window).cast(),
            load: load::<W>,
            store: store::<W>,
        }
    }

    /// Tells whether the device has a word at this address.
    #[inline(always)]
    pub(crate) const fn holds(&self, address: u32) -> bool {
        address & 3 == 0 && address.wrapping_sub(self.base) < self.size
    }

    /// Loads the word at an address, or stores `stored` to it. Returns the loaded word, or `None` if nothing
    /// has been done. A store leaves the new level of the device's line in `level`.
    #[inline(always)]
    pub(crate) fn access(&self, address: u32, stored: Option<u32>, level: &mut Option<bool>) -> Option<u32> {
        if !self.holds(address) {
            return None;
        }
        match stored {
            None => self.load(address),
            Some(value) => match self.store(address, value) {
                Stored::Done => Some(0),
                Stored::Level(now) => {
                    *level = Some(now);
                    Some(0)
                }
                Stored::Exit => None,
            },
        }
    }

    /// Returns the device's line.
    #[inline(always)]
    pub(crate) const fn line(&self) -> Option<u8> {
        self.line
    }

    /// Loads the word at an address that the device holds.
    #[inline(always)]
    fn load(&self, address: u32) -> Option<u32> {
        // SAFETY: `of` was told that the device is there and that no other code uses it; `load` knows its
        // type.
        unsafe { (self.load)(self.device, address.wrapping_sub(self.base)) }
    }

    /// Stores a word to the device.
    #[inline(always)]
    fn store(&self, address: u32, value: u32) -> Stored {
        // SAFETY: as for `load`.
        unsafe { (self.store)(self.device, address.wrapping_sub(self.base), value) }
    }
}
