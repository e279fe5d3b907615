// SPDX-License-Identifier: Apache-2.0
//! Memory of the partition in C, by address and length: the only place with accesses that no code can check.

use bulkhead_apex::{Answer, MAX_NAME_LENGTH, Name, ReturnCode};

/// Returns the name that begins at `first`. A string that ends before the 32 bytes of a name may be shorter.
pub(crate) fn name(first: *const u8) -> Answer<Name> {
    if first.is_null() {
        return Err(ReturnCode::InvalidParam);
    }
    let mut bytes = [0; MAX_NAME_LENGTH];
    for (i, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: the caller in C gives a `NAME_TYPE`, or a string: no byte after its zero byte is read.
        *byte = unsafe { first.wrapping_add(i).read() };
        if *byte == 0 {
            break;
        }
    }
    Ok(Name(bytes))
}

/// Returns the message of `length` bytes at `first`.
pub(crate) fn message<'a>(first: *const u8, length: u32) -> Answer<&'a [u8]> {
    if length == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(ReturnCode::InvalidParam);
    }
    // SAFETY: the caller in C gives a message of this length, which no code changes before the service ends.
    Ok(unsafe { core::slice::from_raw_parts(first, length as usize) })
}

/// Returns the room for a message of `size` bytes at `first`.
pub(crate) fn room<'a>(first: *mut u8, size: u32) -> Answer<&'a mut [u8]> {
    if first.is_null() {
        return Err(ReturnCode::InvalidParam);
    }
    // SAFETY: the caller in C gives room for the longest message of the port, buffer or blackboard (Part 1,
    // section 3.6: the area is at least as large), which no other code uses before the service ends.
    Ok(unsafe { core::slice::from_raw_parts_mut(first, size as usize) })
}

/// Returns the `count` elements of a table that never changes.
pub(crate) fn table<T>(first: *const T, count: u32) -> &'static [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: the table is part of `APEX_CONFIGURATION`, which is constant for the partition's life.
    unsafe { core::slice::from_raw_parts(first, count as usize) }
}
