// SPDX-License-Identifier: Apache-2.0
//! The variables of a task that have initial values.
//!
//! A warm start finds memory as the earlier life has left it, and a program begins with the initial values of
//! all its variables. The entry code clears those whose value is 0. The first start copies the others to a
//! place after the program, and each later one copies them back. The memory after the program
//! ([`super::memory`]) is for data that outlives a life. A microcontroller has the values in its code memory.

/// The first bytes of the place once the values are there. Memory is clear before the first start.
const MARK: [u8; 16] = *b"initial values.\n";

unsafe extern "C" {
    static __data_start: u8;
    static __data_end: u8;
    static __kept_start: u8;
}

/// Gives all variables their initial values. Requires: no use of a variable before.
pub(super) fn begin() {
    let start = core::ptr::addr_of!(__data_start).expose_provenance();
    let size = core::ptr::addr_of!(__data_end).expose_provenance() - start;
    let kept = core::ptr::addr_of!(__kept_start).expose_provenance();
    let first = core::ptr::with_exposed_provenance_mut::<u8>(start);
    // SAFETY: the linker script puts the variables there, and none is in use yet.
    let variables = unsafe { core::slice::from_raw_parts_mut(first, size) };
    let first = core::ptr::with_exposed_provenance_mut::<u8>(kept);
    // SAFETY: the linker script keeps as many bytes and the bytes of the mark there, and no other code uses
    // them.
    let kept = unsafe { core::slice::from_raw_parts_mut(first, MARK.len() + size) };
    let (mark, values) = kept.split_at_mut(MARK.len());
    if mark == MARK {
        variables.copy_from_slice(values);
    } else {
        values.copy_from_slice(variables);
        // Last: a life that ends before this has changed no variable.
        mark.copy_from_slice(&MARK);
    }
}
