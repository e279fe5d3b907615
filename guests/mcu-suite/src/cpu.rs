// SPDX-License-Identifier: Apache-2.0
//! The processor: reset, the common entry of all exceptions, special registers, loads and stores anywhere.

use core::arch::{asm, global_asm};

// Reset: RAM as the linker script wants it, floating point on (Arm DDI 0403E.e, B3.2.20), then Rust.
//
// Every exception enters at `suite_entry`: `suite_exception` gets
//   r0  EXC_RETURN
//   r1  address of the exception frame, on whichever stack it is
// and returns in r0 the EXC_RETURN value to leave with.
global_asm!(
    ".section .vectors, \"a\"",
    ".global suite_vectors",
    "suite_vectors:",
    ".word __main_stack",
    ".word suite_reset",
    ".rept 46",
    ".word suite_entry",
    ".endr",
    ".section .text.suite_entry, \"ax\"",
    ".thumb_func",
    ".global suite_reset",
    "suite_reset:",
    "ldr r0, =__data_start",
    "ldr r1, =__data_end",
    "ldr r2, =__data_source",
    "1: cmp r0, r1",
    "itt lo",
    "ldrlo r3, [r2], #4",
    "strlo r3, [r0], #4",
    "blo 1b",
    "ldr r0, =__bss_start",
    "ldr r1, =__bss_end",
    "movs r3, #0",
    "2: cmp r0, r1",
    "it lo",
    "strlo r3, [r0], #4",
    "blo 2b",
    "ldr r0, =0xE000ED88",
    "ldr r1, [r0]",
    "orr r1, r1, #0xF00000",
    "str r1, [r0]",
    "ldr r0, =0xE000ED08",
    "ldr r1, =suite_vectors",
    "str r1, [r0]",
    "ldr r0, =__process_stack",
    "msr psp, r0",
    "dsb",
    "isb",
    "bl suite_main",
    ".thumb_func",
    "suite_entry:",
    "tst lr, #4",
    "ite eq",
    "mrseq r1, msp",
    "mrsne r1, psp",
    "push {{r4-r11}}",
    "mov r0, lr",
    "bl suite_exception",
    "pop {{r4-r11}}",
    "bx r0",
    ".ltorg",
);

/// Where the linker script puts the program and its RAM.
pub const CODE: u32 = 0x0005_0000;
pub const RAM: u32 = 0x2002_0000;

/// Loads a word.
pub fn load(address: u32) -> u32 {
    // SAFETY: addresses are registers of the chip; whatever an access does to them, no Rust object is there.
    unsafe { (address as *const u32).read_volatile() }
}

/// Loads a word with the rights of unprivileged code: of a register of the processor that is a bus fault, and
/// the handler goes on behind it with what was there before.
pub fn load_unprivileged(address: u32) -> u32 {
    let mut value = 0;
    // SAFETY: as in `load`.
    unsafe { asm!("ldrt {0}, [{1}]", inout(reg) value, in(reg) address) }
    value
}

/// Stores a word, and lets what follows from it happen before anything else: an exception that the store makes
/// pending is taken with the same registers wherever in these three instructions the processor takes it.
pub fn store(address: u32, value: u32) {
    // SAFETY: addresses are registers of the chip or frames of exceptions, never a Rust object (callers here).
    unsafe { asm!("str {}, [{}]", "dsb", "isb", in(reg) value, in(reg) address) }
}

/// Loads a byte.
pub fn load_byte(address: u32) -> u8 {
    // SAFETY: as in `load`.
    unsafe { (address as *const u8).read_volatile() }
}

/// Stores a byte, likewise.
pub fn store_byte(address: u32, value: u8) {
    // SAFETY: as in `store`.
    unsafe { asm!("strb {}, [{}]", "dsb", "isb", in(reg) u32::from(value), in(reg) address) }
}

/// Loads a halfword.
pub fn load_half(address: u32) -> u16 {
    // SAFETY: as in `load`; callers align.
    unsafe { (address as *const u16).read_volatile() }
}

/// Stores a halfword.
pub fn store_half(address: u32, value: u16) {
    // SAFETY: as in `store`; callers align.
    unsafe { (address as *mut u16).write_volatile(value) }
}

/// Whatever was written takes effect before the next instruction.
pub fn barrier() {
    // SAFETY: barriers change nothing.
    unsafe { asm!("dsb", "isb") }
}

/// Waits for an interrupt.
pub fn wait() {
    // SAFETY: WFI changes nothing.
    unsafe { asm!("wfi") }
}

macro_rules! special {
    (read $read:ident, $name:literal) => {
        #[doc = concat!("Reads ", $name, ".")]
        pub fn $read() -> u32 {
            let value;
            // SAFETY: reading a special register changes nothing.
            unsafe { asm!(concat!("mrs {}, ", $name), out(reg) value) }
            value
        }
    };
    (write $write:ident, $name:literal) => {
        #[doc = concat!("Writes ", $name, ".")]
        pub fn $write(value: u32) {
            // SAFETY: masks and the stack pointer that is not in use (callers) touch no Rust object.
            unsafe { asm!(concat!("msr ", $name, ", {}"), "isb", in(reg) value) }
        }
    };
}

special!(read primask, "primask");
special!(write set_primask, "primask");
special!(read basepri, "basepri");
special!(write set_basepri, "basepri");
special!(write set_basepri_max, "basepri_max");
special!(read faultmask, "faultmask");
special!(write set_faultmask, "faultmask");
special!(read control, "control");
special!(write set_control, "control");
special!(read main_stack, "msp");
special!(read process_stack, "psp");
special!(write set_process_stack, "psp");

/// IPSR.
pub fn handler() -> u32 {
    let value;
    // SAFETY: reading a special register changes nothing.
    unsafe { asm!("mrs {}, ipsr", out(reg) value) }
    value
}

/// CPSID or CPSIE of PRIMASK or FAULTMASK, by the instruction itself.
pub fn change_masks(disable: bool, fault: bool) {
    match (disable, fault) {
        // SAFETY: masking interrupts changes nothing but when handlers run.
        (true, false) => unsafe { asm!("cpsid i") },
        // SAFETY: likewise.
        (false, false) => unsafe { asm!("cpsie i", "isb") },
        // SAFETY: likewise.
        (true, true) => unsafe { asm!("cpsid f") },
        // SAFETY: likewise.
        (false, true) => unsafe { asm!("cpsie f", "isb") },
    }
}

/// SVC.
pub fn call() {
    // SAFETY: the handler restores everything.
    unsafe { asm!("svc #7") }
}

/// An undefined instruction of 16 or 32 bits.
pub fn undefined(wide: bool) {
    if wide {
        // SAFETY: the handler goes on behind it.
        unsafe { asm!(".inst.w 0xf7f0a055") }
    } else {
        // SAFETY: likewise.
        unsafe { asm!(".inst.n 0xde55") }
    }
}

/// Uses the floating-point unit without a change.
pub fn settle_float() {
    // SAFETY: reads a register.
    unsafe { asm!("vmov {}, s0", out(reg) _) }
}

/// Uses the floating-point unit, so that frames have its registers; returns what was there.
pub fn exchange_float(value: u32) -> u32 {
    let old;
    // SAFETY: S7 is declared as changed.
    unsafe { asm!("vmov {}, s7", "vmov s7, {}", out(reg) old, in(reg) value, out("s7") _) }
    old
}
