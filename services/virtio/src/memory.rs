// SPDX-License-Identifier: Apache-2.0
//! The memory of a driver, as far as the device may reach it.

/// A range is not memory that the device may reach in this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The address at which the range begins.
    pub address: u64,
}

/// The memory of a driver. The driver uses it at the same time, and may change it between two reads.
pub trait Memory {
    /// Copies bytes out of the memory.
    ///
    /// # Errors
    /// [`Outside`]; the bytes are undefined then.
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), Outside>;

    /// Copies bytes into the memory.
    ///
    /// # Errors
    /// [`Outside`]; some of the bytes may have been written.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Outside>;

    /// Keeps each access before the call from being seen after one after the call.
    fn fence(&mut self) {
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
    }
}

/// Returns the address `offset` bytes after `address`.
///
/// # Errors
/// [`Outside`] if there is none.
pub(crate) fn after(address: u64, offset: u64) -> Result<u64, Outside> {
    address.checked_add(offset).ok_or(Outside { address })
}

/// Reads a number of 16 bits.
///
/// # Errors
/// [`Outside`].
pub(crate) fn read_u16(memory: &mut impl Memory, address: u64) -> Result<u16, Outside> {
    let mut bytes = [0; 2];
    memory.read(address, &mut bytes)?;
    Ok(u16::from_le_bytes(bytes))
}

/// Writes a number of 16 bits.
///
/// # Errors
/// [`Outside`].
pub(crate) fn write_u16(memory: &mut impl Memory, address: u64, value: u16) -> Result<(), Outside> {
    memory.write(address, &value.to_le_bytes())
}
