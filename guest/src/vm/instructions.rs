// SPDX-License-Identifier: Apache-2.0
//! Instructions whose whole effect is an exception to the program's own vector.

use core::arch::asm;

macro_rules! instructions {
    ($($(#[$meta:meta])* $name:ident $text:literal;)*) => {
        $(
            $(#[$meta])*
            pub fn $name() {
                // SAFETY: the exception is handled by `exception`, which changes no register but the
                // program counter.
                unsafe { asm!($text, options(nostack)) }
            }
        )*
    };
}

instructions! {
    /// Permanently undefined.
    undefined "udf #0";
    /// Software breakpoint.
    breakpoint "brk #7";
    /// Call to EL1 from EL1.
    supervisor_call "svc #7";
}
