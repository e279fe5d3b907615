// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of any width at addresses outside the program: device registers, and memory of no
//! partition or of another one.
//!
//! These functions are safe because they refuse the program's own image (where every Rust object lives,
//! stacks included): nothing the compiler knows of is after the addresses that remain. The tests examine
//! what an access does to the machine, up to the end of the partition.
//!
//! Each access is exactly one instruction without write-back, the form a hypervisor can decode
//! (Arm ARM DDI 0487 ESR_ELx, ISV).

use core::arch::asm;

unsafe extern "C" {
    static __image_start: u8;
    static __image_end: u8;
}

/// Panics if `address` is within the program.
fn check(address: u64) {
    let start = (&raw const __image_start).addr() as u64;
    let end = (&raw const __image_end).addr() as u64;
    assert!(
        address.wrapping_add(15) < start || address >= end,
        "{address:#x} is within the program"
    );
}

macro_rules! accessors {
    ($($read:ident $load:literal $write:ident $store:literal $type:ty;)*) => {
        $(
            #[doc = concat!("Loads with `", $load, "`.")]
            #[must_use]
            #[inline]
            pub fn $read(address: u64) -> $type {
                check(address);
                let value: u64;
                // SAFETY: a load outside the program (`check`) changes nothing the compiler knows of.
                unsafe { asm!(concat!($load, ", [{1}]"), out(reg) value, in(reg) address, options(nostack)) }
                value as $type
            }

            #[doc = concat!("Stores with `", $store, "`.")]
            #[inline]
            pub fn $write(address: u64, value: $type) {
                check(address);
                // SAFETY: a store outside the program (`check`) changes nothing the compiler knows of.
                unsafe {
                    asm!(concat!($store, ", [{1}]"), in(reg) u64::from(value), in(reg) address, options(nostack));
                }
            }
        )*
    };
}

accessors! {
    read_u8 "ldrb {0:w}" write_u8 "strb {0:w}" u8;
    read_u16 "ldrh {0:w}" write_u16 "strh {0:w}" u16;
    read_u32 "ldr {0:w}" write_u32 "str {0:w}" u32;
    read_u64 "ldr {0}" write_u64 "str {0}" u64;
}

macro_rules! big_endian_accessors {
    ($($name:ident $instruction:literal;)*) => {
        $(
            #[doc = concat!("Executes `", $instruction, "` while data accesses of EL1 are big-endian (`SCTLR_EL1.EE`).")]
            /// Requires: the MMU is off, because its walks would change as well.
            #[must_use]
            pub fn $name(address: u64, value: u64) -> u64 {
                check(address);
                let mut value = value;
                // SAFETY: an access outside the program (`check`) changes nothing the compiler knows of; no
                // interrupt and no access of the compiler's own is between the two changes.
                unsafe {
                    asm!(
                        "mrs {masks}, daif",
                        "msr daifset, #15",
                        "mrs {control}, sctlr_el1",
                        "orr {other}, {control}, #1 << 25",
                        "msr sctlr_el1, {other}",
                        "isb",
                        concat!($instruction, ", [{address}]"),
                        "msr sctlr_el1, {control}",
                        "isb",
                        "msr daif, {masks}",
                        value = inout(reg) value,
                        address = in(reg) address,
                        masks = out(reg) _,
                        control = out(reg) _,
                        other = out(reg) _,
                        options(nostack),
                    );
                }
                value
            }
        )*
    };
}

big_endian_accessors! {
    read_u16_big_endian "ldrh {value:w}";
    read_i16_big_endian "ldrsh {value}";
    read_u32_big_endian "ldr {value:w}";
    write_u16_big_endian "strh {value:w}";
    write_u32_big_endian "str {value:w}";
}

/// Loads two words with `LDP`, which no hypervisor can decode from the syndrome alone.
#[must_use]
pub fn read_pair(address: u64) -> (u64, u64) {
    check(address);
    let (first, second): (u64, u64);
    // SAFETY: a load outside the program (`check`) changes nothing the compiler knows of.
    unsafe { asm!("ldp {0}, {1}, [{2}]", out(reg) first, out(reg) second, in(reg) address, options(nostack)) }
    (first, second)
}

/// Loads a signed byte, sign-extended to 64 bits by the instruction.
#[must_use]
pub fn read_i8(address: u64) -> i64 {
    check(address);
    let value: u64;
    // SAFETY: a load outside the program (`check`) changes nothing the compiler knows of.
    unsafe { asm!("ldrsb {0}, [{1}]", out(reg) value, in(reg) address, options(nostack)) }
    value.cast_signed()
}

/// Stores zero from the zero register.
pub fn write_zero(address: u64) {
    check(address);
    // SAFETY: a store outside the program (`check`) changes nothing the compiler knows of.
    unsafe { asm!("str wzr, [{}]", in(reg) address, options(nostack)) }
}

/// Jumps to `address`, which is expected to fault; the exception handler returns to the caller.
pub fn execute(address: u64) {
    check(address);
    // SAFETY: either the fetch faults and `exception` returns after the call, or the memory there is what
    // the test wanted to be executed; all registers a call may change are declared.
    unsafe { asm!("blr {}", in(reg) address, clobber_abi("C")) }
}
