// SPDX-License-Identifier: Apache-2.0
//! The state of the processor that all parts use: registers of the system control space, the state between
//! two parts, and the repair after a fault.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::cpu::{barrier, load, load_half, set_basepri, set_faultmask, set_primask, store, store_byte};
use crate::place::HAS_ALL_FAULTS;

pub const ICSR: u32 = 0xE000_ED04;
pub const SHCSR: u32 = 0xE000_ED24;
pub const CCR: u32 = 0xE000_ED14;
pub const CFSR: u32 = 0xE000_ED28;
pub const HFSR: u32 = 0xE000_ED2C;
pub const ISER: u32 = 0xE000_E100;
pub const ICER: u32 = 0xE000_E180;
pub const ISPR: u32 = 0xE000_E200;
pub const PRIORITIES: u32 = 0xE000_E400;
pub const MSTKERR: u32 = 1 << 4;
pub const ALL_FAULTS: u32 = 7 << 16;

/// EXC_RETURN of the handler that returned with a wrong value.
pub static RIGHT_RETURN: AtomicU32 = AtomicU32::new(0);
/// The frame of an exception whose xPSR was changed, and the old xPSR.
pub static CHANGED_FRAME: AtomicU32 = AtomicU32::new(0);
pub static RIGHT_STATE: AtomicU32 = AtomicU32::new(0);

/// Loads a register without the bits that are not printed.
pub fn load_shown(register: u32) -> u32 {
    load(register) & !crate::place::hidden(register)
}

/// Calls `function` with PSP as the stack.
pub fn on_process_stack(function: extern "C" fn()) {
    // SAFETY: the process stack is 32 KiB of RAM that nothing else uses; MSP is as it was afterwards.
    unsafe {
        asm!(
            "mrs r4, control",
            "orr r5, r4, #2",
            "msr control, r5",
            "isb",
            "blx {function}",
            "mrs r5, control",
            "bic r5, r5, #2",
            "msr control, r5",
            "isb",
            function = in(reg) function,
            out("r0") _, out("r1") _, out("r2") _, out("r3") _, out("r4") _, out("r5") _, out("r12") _,
            out("lr") _, out("d0") _, out("d1") _, out("d2") _, out("d3") _, out("d4") _, out("d5") _,
            out("d6") _, out("d7") _,
        );
    }
}

/// Sets the priority of a line.
pub fn priority(line: u32, priority: u8) {
    store_byte(PRIORITIES + line, priority);
}

/// Sets the priority of an exception of the system.
pub fn system_priority(exception: u32, priority: u8) {
    store_byte(0xE000_ED14 + exception, priority);
}

/// Everything as after a reset, with the lines of the scenarios enabled.
pub fn restore() {
    set_primask(0);
    set_faultmask(0);
    set_basepri(0);
    store(SHCSR, ALL_FAULTS);
    store(ICER, u32::MAX);
    store(0xE000_E280, u32::MAX);
    for line in 0..32 {
        priority(line, 0);
    }
    for exception in [4, 5, 6, 11, 12, 14, 15] {
        system_priority(exception, 0);
    }
    store(CCR, 0x200);
    barrier();
}

/// Clears the fault status, and lets the program go on after what was at fault.
pub fn mend(exc_return: u32, frame: u32) -> u32 {
    let status = load(CFSR);
    store(CFSR, status);
    store(HFSR, load(HFSR));
    let pc = load(frame + 24);
    // INVPC: the frame is the one of the exception that could not be left.
    if status & 1 << 18 != 0 {
        let changed = CHANGED_FRAME.swap(0, Relaxed);
        if changed != 0 {
            store(changed + 28, RIGHT_STATE.load(Relaxed));
        }
        return RIGHT_RETURN.load(Relaxed);
    }
    // `make_frame` has seen to it.
    if status & MSTKERR != 0 {
        return exc_return;
    }
    // BKPT: QEMU says FORCED where the manual says DEBUGEVT.
    if status == 0 && load_half(pc) >> 8 == 0xBE {
        store(frame + 24, pc + 2);
        return exc_return;
    }
    // IACCVIOL, IBUSERR, INVSTATE: back to the caller.
    if status & (1 | 1 << 8 | 1 << 17) != 0 {
        store(frame + 24, load(frame + 20) & !1);
        store(frame + 28, load(frame + 28) | 1 << 24);
    } else if status != 0 || !HAS_ALL_FAULTS {
        // The status of the Non-secure world is gone if another VM had the processor meanwhile.
        let length = if load_half(pc) >> 11 >= 0b11101 { 4 } else { 2 };
        store(frame + 24, pc + length);
        // The IT block goes on one instruction further; there is none that has more than one.
        store(frame + 28, load(frame + 28) & !0x0600_FC00);
    }
    exc_return
}
