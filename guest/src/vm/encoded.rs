// SPDX-License-Identifier: Apache-2.0
//! System registers by encoding, for tests that try encodings chosen at run time.
//!
//! The instruction is put together and executed from a word of its own, in the program's code; a
//! [`super::exception::probe`] around it notes what happens. Writes are restricted to encodings that cannot
//! change where the program's memory is.

use core::arch::{asm, global_asm};

use super::cpu;
use super::exception::{Fault, probe};

global_asm!(
    ".pushsection .data.instruction, \"awx\"",
    ".balign 64",
    ".global vm_encoded_instruction",
    "vm_encoded_instruction:",
    "nop",
    "ret",
    ".balign 64",
    ".popsection",
);

unsafe extern "C" {
    static vm_encoded_instruction: u32;
}

/// A system register's encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// 2 (debug) or 3.
    pub op0: u8,
    /// 0..=7: 0..=2 belong to EL1, 3 to EL0, 4 to EL2, 5 to VHE, 6 to EL3, 7 to Secure EL1.
    pub op1: u8,
    /// 0..=15.
    pub crn: u8,
    /// 0..=15.
    pub crm: u8,
    /// 0..=7.
    pub op2: u8,
}

impl Encoding {
    /// Returns bits 20:5 of `MRS`/`MSR` (Arm ARM DDI 0487 C5.1.3).
    const fn field(self) -> u32 {
        let op0 = (self.op0 as u32 & 1 | 2) << 19;
        let rest = (self.op1 as u32 & 7) << 16 | (self.crn as u32 & 15) << 12 | (self.crm as u32 & 15) << 8;
        op0 | rest | (self.op2 as u32 & 7) << 5
    }

    /// Tells whether a write can change nothing this library depends on: registers of higher exception
    /// levels, implementation-defined ones (CRn 11 and 15), and the performance monitors (CRn 9, and 14 with
    /// CRm 8 to 15).
    #[must_use]
    pub const fn is_harmless_to_write(self) -> bool {
        let monitors = self.crn == 9 && self.crm >= 12 || self.crn == 14 && self.crm >= 8;
        self.op0 & 1 == 1 && (self.op1 >= 4 || self.crn == 11 || self.crn == 15 || monitors)
    }

    /// Reads the register.
    ///
    /// # Errors
    /// The exception, if it cannot be read here.
    pub fn read(self) -> Result<u64, Fault> {
        probe(|| execute(0xD520_0000 | self.field(), 0))
    }

    /// Writes the register if [`Encoding::is_harmless_to_write`].
    ///
    /// # Errors
    /// The exception, if it cannot be written here.
    pub fn write(self, value: u64) -> Result<(), Fault> {
        if !self.is_harmless_to_write() {
            return Ok(());
        }
        probe(|| execute(0xD500_0000 | self.field(), value)).map(drop)
    }
}

/// Executes `instruction` with `value` in x0; returns x0.
fn execute(instruction: u32, value: u64) -> u64 {
    let place = &raw const vm_encoded_instruction;
    // SAFETY: the word is a place reserved for this (above) that no Rust object overlaps.
    unsafe { asm!("str {0:w}, [{1}]", in(reg) instruction, in(reg) place, options(nostack)) }
    cpu::publish_instruction(place.addr());
    let mut x0 = value;
    // SAFETY: the word is a harmless `MRS x0` or `MSR` (`Encoding`), followed by a return.
    unsafe { asm!("blr {}", in(reg) place, inout("x0") x0, clobber_abi("C")) }
    x0
}
