// SPDX-License-Identifier: Apache-2.0
//! A stretch of code that keeps values in all registers while it spins, and tells what it finds there
//! afterwards.
//!
//! The stretch has two halves. In the first one the masks are as the plan says, and an exception waits for
//! them. At the end of the first half the masks go, so the exception comes where all registers have their
//! values. The compiler has no way to keep values in registers across a loop, so the stretch is assembly.

use core::arch::global_asm;
use core::mem::offset_of;

/// Values for registers while the stretch spins.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Values {
    /// s0 to s31.
    pub floats: [u32; 32],
    pub fpscr: u32,
    /// APSR: Q and GE.
    pub flags: u32,
    /// r4 to r11, r0, r3, r12, lr.
    pub general: [u32; 12],
}

/// A plan of a stretch, and the state in which the stretch begins.
#[repr(C)]
pub struct Plan {
    /// Turns of the loop with masks and without. Not 0.
    pub masked: u32,
    pub open: u32,
    pub primask: u32,
    pub basepri: u32,
    pub faultmask: u32,
    /// A store that makes an exception pending: address and value.
    pub address: u32,
    pub value: u32,
    /// BASEPRI of the second half.
    pub basepri_after: u32,
    /// Not 0: SVC is executed first.
    pub call: u32,
    /// Not 0: floating-point registers are used.
    pub float: u32,
    /// CONTROL, MSP and PSP, which the stretch writes.
    pub control: u32,
    pub stacks: [u32; 2],
    pub values: Values,
}

/// The state that a stretch has found: at its end, but for `middle`.
#[repr(C)]
pub struct Found {
    pub values: Values,
    /// IPSR, PRIMASK, BASEPRI, FAULTMASK, CONTROL.
    pub special: [u32; 5],
    pub stacks: [u32; 2],
    /// MSPLIM and PSPLIM.
    pub limits: [u32; 2],
    /// PRIMASK, BASEPRI, FAULTMASK, NVIC_ISPR0, ICSR and FPCCR before the masks go.
    pub middle: [u32; 6],
}

impl Found {
    pub const NOTHING: Self = Self {
        values: Values {
            floats: [0; 32],
            fpscr: 0,
            flags: 0,
            general: [0; 12],
        },
        special: [0; 5],
        stacks: [0; 2],
        limits: [0; 2],
        middle: [0; 6],
    };
}

// r0: the plan. r1: what is found. r2 holds the plan all the time, r1 counts.
// MRS of MSPLIM and PSPLIM are written as encodings: the guest is built for Armv7-M.
global_asm!(
    ".section .text.handlers_stretch, \"ax\"",
    ".syntax unified",
    ".fpu fpv4-sp-d16",
    ".balign 4",
    ".global handlers_stretch",
    ".thumb_func",
    "handlers_stretch:",
    "push {{r1, r4-r11, lr}}",
    "mov r2, r0",
    "ldr r1, [r2, #{float}]",
    "cbz r1, 1f",
    "vpush {{s16-s31}}",
    "vmrs r3, fpscr",
    "push {{r3, r4}}",
    "add r1, r2, #{floats}",
    "vldmia r1, {{s0-s31}}",
    "ldr r3, [r2, #{fpscr}]",
    "vmsr fpscr, r3",
    "1: mrs r3, control",
    "str r3, [r2, #{control}]",
    "mrs r3, msp",
    "str r3, [r2, #{stacks}]",
    "mrs r3, psp",
    "str r3, [r2, #{stacks} + 4]",
    "ldr r3, [r2, #{flags}]",
    "msr apsr_nzcvqg, r3",
    "add r1, r2, #{general}",
    "ldmia r1, {{r4-r11}}",
    "ldr r0, [r1, #32]",
    "ldr r3, [r1, #36]",
    "ldr r12, [r1, #40]",
    "ldr lr, [r2, #{address}]",
    "ldr r1, [r2, #{primask}]",
    "msr primask, r1",
    "ldr r1, [r2, #{basepri}]",
    "msr basepri, r1",
    "ldr r1, [r2, #{faultmask}]",
    "msr faultmask, r1",
    "isb",
    "ldr r1, [r2, #{value}]",
    "str r1, [lr]",
    "dsb",
    "isb",
    "ldr lr, [r2, #{general} + 44]",
    "ldr r1, [r2, #{call}]",
    "cbz r1, 2f",
    "svc #1",
    "2: ldr r1, [r2, #{masked}]",
    "3: subs r1, #1",
    "bne 3b",
    // The middle.
    "push {{r3, r4}}",
    "ldr r1, [r2, #{float}]",
    "cmp r1, #0",
    "ite eq",
    "ldreq r1, [sp, #8]",
    "ldrne r1, [sp, #8 + 72]",
    "add r1, #{middle}",
    "mrs r3, primask",
    "str r3, [r1]",
    "mrs r3, basepri",
    "str r3, [r1, #4]",
    "mrs r3, faultmask",
    "str r3, [r1, #8]",
    "ldr r3, =0xE000E200",
    "ldr r3, [r3]",
    "str r3, [r1, #12]",
    "ldr r3, =0xE000ED04",
    "ldr r3, [r3]",
    "str r3, [r1, #16]",
    "ldr r3, =0xE000EF34",
    "ldr r3, [r3]",
    "str r3, [r1, #20]",
    "pop {{r3, r4}}",
    "ldr r1, [r2, #{after}]",
    "msr basepri, r1",
    "movs r1, #0",
    "msr faultmask, r1",
    "msr primask, r1",
    "isb",
    "ldr r1, [r2, #{open}]",
    "4: subs r1, #1",
    "bne 4b",
    // The end.
    "ldr r1, [r2, #{float}]",
    "cmp r1, #0",
    "ite eq",
    "ldreq r1, [sp]",
    "ldrne r1, [sp, #72]",
    "beq 5f",
    "vstmia r1, {{s0-s31}}",
    "str r4, [r1, #{found_general}]",
    "vmrs r4, fpscr",
    "str r4, [r1, #{found_fpscr}]",
    "ldr r4, [r1, #{found_general}]",
    "5: add r1, #{found_general}",
    "stmia r1, {{r4-r11}}",
    "str r0, [r1, #32]",
    "str r3, [r1, #36]",
    "str r12, [r1, #40]",
    "str lr, [r1, #44]",
    "sub r1, #{found_general}",
    "mrs r4, apsr",
    "str r4, [r1, #{found_flags}]",
    "mrs r4, ipsr",
    "str r4, [r1, #{special}]",
    "mrs r4, primask",
    "str r4, [r1, #{special} + 4]",
    "mrs r4, basepri",
    "str r4, [r1, #{special} + 8]",
    "mrs r4, faultmask",
    "str r4, [r1, #{special} + 12]",
    "mrs r4, control",
    "str r4, [r1, #{special} + 16]",
    "mrs r4, msp",
    "str r4, [r1, #{found_stacks}]",
    "mrs r4, psp",
    "str r4, [r1, #{found_stacks} + 4]",
    ".inst.w 0xf3ef840a",
    "str r4, [r1, #{limits}]",
    ".inst.w 0xf3ef840b",
    "str r4, [r1, #{limits} + 4]",
    "ldr r1, [r2, #{float}]",
    "cbz r1, 6f",
    "pop {{r3, r4}}",
    "vmsr fpscr, r3",
    "vpop {{s16-s31}}",
    "6: pop {{r1, r4-r11, pc}}",
    ".ltorg",
    float = const offset_of!(Plan, float),
    floats = const offset_of!(Plan, values.floats),
    fpscr = const offset_of!(Plan, values.fpscr),
    control = const offset_of!(Plan, control),
    stacks = const offset_of!(Plan, stacks),
    flags = const offset_of!(Plan, values.flags),
    general = const offset_of!(Plan, values.general),
    address = const offset_of!(Plan, address),
    primask = const offset_of!(Plan, primask),
    basepri = const offset_of!(Plan, basepri),
    faultmask = const offset_of!(Plan, faultmask),
    value = const offset_of!(Plan, value),
    call = const offset_of!(Plan, call),
    masked = const offset_of!(Plan, masked),
    open = const offset_of!(Plan, open),
    after = const offset_of!(Plan, basepri_after),
    middle = const offset_of!(Found, middle),
    found_general = const offset_of!(Found, values.general),
    found_fpscr = const offset_of!(Found, values.fpscr),
    found_flags = const offset_of!(Found, values.flags),
    special = const offset_of!(Found, special),
    found_stacks = const offset_of!(Found, stacks),
    limits = const offset_of!(Found, limits),
);

unsafe extern "C" {
    fn handlers_stretch(plan: *mut Plan, found: *mut Found);
}

/// Runs a stretch.
pub fn run(plan: &mut Plan) -> Found {
    let mut found = Found::NOTHING;
    // SAFETY: the function writes to the two objects, and to the register of the plan, which makes an
    // exception pending. It keeps all registers that its caller expects to be kept.
    unsafe { handlers_stretch(plan, &raw mut found) }
    found
}
