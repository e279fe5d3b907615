// SPDX-License-Identifier: Apache-2.0
//! System registers by name.
//!
//! The accessors are sorted by the harm that a mistake could do. Reading breaks nothing. Writing a register
//! of the *guest's* regimes (EL1, EL0, timers, virtualization controls that act below EL2) cannot break
//! Rust's memory. Writing EL2's own registers (SCTLR, TTBR0, VBAR, ...) could. Only `entry` writes them,
//! before any Rust code that relies on them.

/// Reads the system register with this assembler name.
macro_rules! read_register {
    ($name:literal) => {{
        let value: u64;
        // SAFETY: reading a system register has no effect on memory or on the processor state that
        // Rust relies on (Arm DDI 0487 D19).
        unsafe {
            core::arch::asm!(concat!("mrs {}, ", $name), out(reg) value, options(nomem, nostack, preserves_flags));
        }
        value
    }};
}

/// Writes a system register that acts only below EL2. The name may come in pieces.
macro_rules! write_guest_register {
    ($($name:literal)+, $value:expr) => {{
        let value: u64 = $value;
        // SAFETY: the register belongs to the EL1&0 regime, to a timer or to the virtualization
        // controls; none of them changes how EL2 itself translates, executes or is interrupted
        // (interrupts are masked at EL2). Each use in this crate names such a register.
        unsafe {
            core::arch::asm!(concat!("msr ", $($name,)+ ", {}"), in(reg) value, options(nostack, preserves_flags));
        }
    }};
}

/// Executes one barrier or maintenance instruction without an operand.
macro_rules! instruction {
    ($text:literal) => {
        // SAFETY: a barrier, hint, or maintenance operation that only makes later behaviour stricter or
        // drops cached translations; it changes no memory.
        unsafe { core::arch::asm!($text, options(nostack, preserves_flags)) }
    };
}

/// Executes one maintenance instruction with a register operand.
macro_rules! instruction_with {
    ($text:literal, $value:expr) => {{
        let value: u64 = $value;
        // SAFETY: as for `instruction`: cache cleaning, translation invalidation or address translation.
        unsafe { core::arch::asm!(concat!($text, ", {}"), in(reg) value, options(nostack, preserves_flags)) }
    }};
}

pub(crate) use {instruction, instruction_with, read_register, write_guest_register};
