// SPDX-License-Identifier: Apache-2.0
//! Devices of the board that are lent: registers that are held, and interrupts that are messages.

use core::sync::atomic::{AtomicU32, Ordering};

use bulkhead_abi::{Error, Operation};

use crate::channel::words_at;
use crate::hypercall::{Handle, call};

/// The registers of a device, while the program holds them. When the capability is taken back, an access to a
/// register ends the program.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    handle: Handle,
    registers: &'static [AtomicU32],
}

impl Device {
    /// Maps the registers.
    ///
    /// # Errors
    /// `WrongState` if the program has no window for the device, or holds the device already; else as all
    /// calls.
    pub fn hold(handle: Handle) -> Result<Self, Error> {
        let place = call(Operation::DeviceHold, [u64::from(handle.0), 0, 0, 0, 0, 0])?;
        Ok(Self {
            handle,
            registers: words_at(place),
        })
    }

    /// Unmaps the registers.
    ///
    /// # Errors
    /// `Revoked` if the capability was taken back; else as all calls.
    pub fn release(self) -> Result<(), Error> {
        call(
            Operation::DeviceRelease,
            [u64::from(self.handle.0), 0, 0, 0, 0, 0],
        )
        .map(drop)
    }

    /// Loads the register at `offset` bytes, a multiple of 4; 0 after the registers.
    #[must_use]
    pub fn load(&self, offset: usize) -> u32 {
        let register = self.registers.get(offset / 4);
        register.map_or(0, |register| register.load(Ordering::SeqCst))
    }

    /// Stores to the register at `offset` bytes, a multiple of 4; nowhere after the registers.
    pub fn store(&self, offset: usize, value: u32) {
        if let Some(register) = self.registers.get(offset / 4) {
            register.store(value, Ordering::SeqCst);
        }
    }
}

/// The line of a device, while it is bound to a port. Each interrupt is a message there, for which
/// [`Received::is_interrupt`](crate::port::Received) is true, and masks the line until [`Line::done`].
#[derive(Clone, Copy, Debug)]
pub struct Line(Handle);

impl Line {
    /// Binds the line to a port, from which the program can receive messages of 8 bytes at least.
    ///
    /// # Errors
    /// `WrongState` if the line is bound, `NoSpace` if the port has no room to keep for the line; else as all
    /// calls.
    pub fn bind(handle: Handle, port: Handle) -> Result<Self, Error> {
        let arguments = [u64::from(handle.0), u64::from(port.0), 0, 0, 0, 0];
        call(Operation::InterruptBind, arguments).map(|_| Self(handle))
    }

    /// Lets the line interrupt again, after a message was received.
    ///
    /// # Errors
    /// `WrongState` if no message was received, `Revoked` if the capability was taken back.
    pub fn done(self) -> Result<(), Error> {
        call(Operation::InterruptDone, [u64::from(self.0.0), 0, 0, 0, 0, 0]).map(drop)
    }

    /// Lets the line interrupt no more.
    ///
    /// # Errors
    /// `Revoked` if the capability was taken back; else as all calls.
    pub fn unbind(self) -> Result<(), Error> {
        call(Operation::InterruptUnbind, [u64::from(self.0.0), 0, 0, 0, 0, 0]).map(drop)
    }
}
