// SPDX-License-Identifier: Apache-2.0
//! The registers of the kernel's device that are at hand while a vCPU runs: [`Window`], without its type.
//!
//! The handlers of exceptions have fixed types, so what a loan is made of is an address and two functions that know what is there. It
//! lasts as long as [`Network::run_beside`], which neither reads nor moves the device meanwhile.
//!
//! [`Network::run_beside`]: bulkhead_arch_api::Network::run_beside

use crate::network::Words;
use bulkhead_arch_api::{Place, Stored, Window};
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
/// `device` is a `W` that nobody else uses meanwhile.
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
    pub(crate) unsafe fn of<W: Window>(place: &Place, window: &mut W) -> Self {
        Self {
            base: place.base.0 as u32,
            size: place.size,
            line: place.line.map(|line| line.0 as u8),
            device: core::ptr::from_mut(window).cast(),
            load: load::<W>,
            store: store::<W>,
        }
    }

    /// Whether the device has a word at this address.
    #[inline(always)]
    pub(crate) const fn holds(&self, address: u32) -> bool {
        address & 3 == 0 && address.wrapping_sub(self.base) < self.size
    }

    /// Loads, or stores `stored` to, the word at an address: what was loaded. `None`: nothing has been done. What a store makes of the device's line
    /// is left in `level`.
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

    /// The device's line.
    #[inline(always)]
    pub(crate) const fn line(&self) -> Option<u8> {
        self.line
    }

    /// Loads the word at an address that it holds.
    #[inline(always)]
    fn load(&self, address: u32) -> Option<u32> {
        // SAFETY: `of` was told that the device is there and that nobody else uses it; `load` knows its type.
        unsafe { (self.load)(self.device, address.wrapping_sub(self.base)) }
    }

    /// Stores to it.
    #[inline(always)]
    fn store(&self, address: u32, value: u32) -> Stored {
        // SAFETY: as for `load`.
        unsafe { (self.store)(self.device, address.wrapping_sub(self.base), value) }
    }
}
