// SPDX-License-Identifier: Apache-2.0
//! The processor: special registers, loads and stores anywhere, instructions that make exceptions.

use core::arch::asm;

/// Loads a word.
pub fn load(address: u32) -> u32 {
    // SAFETY: addresses are registers of the chip; no Rust object is there.
    unsafe { (address as *const u32).read_volatile() }
}

/// Loads a word with the rights of unprivileged code: of a register of the processor that is a bus fault, and
/// the handler goes on after it with what was there before.
pub fn load_unprivileged(address: u32) -> u32 {
    let mut value = 0;
    // SAFETY: as in `load`.
    unsafe { asm!("ldrt {0}, [{1}]", inout(reg) value, in(reg) address) }
    value
}

/// Stores a word, and lets the consequences happen before anything else. An exception that the store makes
/// pending has the same registers wherever in these three instructions the processor takes it.
pub fn store(address: u32, value: u32) {
    // SAFETY: addresses are registers of the chip or frames of exceptions, never a Rust object (see the
    // callers here).
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

/// Makes all that was written take effect before the next instruction.
pub fn barrier() {
    // SAFETY: barriers change nothing.
    unsafe { asm!("dsb", "isb") }
}

/// Waits for an interrupt.
pub fn wait() {
    // SAFETY: WFI changes nothing.
    unsafe { asm!("wfi") }
}

/// Runs SEV and WFE in both encodings, and an IT block with one that is done and one that is not. An event is
/// always there, so none of them waits.
pub fn send_and_wait() {
    // SAFETY: they change nothing but the event register.
    unsafe {
        asm!(
            "sev",
            "wfe",
            "sev.w",
            "wfe.w",
            "sev",
            "cmp r0, r0",
            "ite eq",
            "wfeeq",
            "wfene",
            "sev"
        )
    }
}

/// Waits for an event.
pub fn wait_for_event() {
    // SAFETY: WFE changes nothing but the event register.
    unsafe { asm!("wfe") }
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

/// Runs an undefined instruction of 16 or 32 bits.
pub fn undefined(wide: bool) {
    if wide {
        // SAFETY: the handler goes on after it.
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
