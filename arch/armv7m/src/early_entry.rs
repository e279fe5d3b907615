// SPDX-License-Identifier: Apache-2.0
//! The assembly of early starts (`early`): the way into the guest's handler, and the way back.
//!
//! | at | register | meaning in | meaning out |
//! |---|---|---|---|
//! | `bulkhead_early` | r0 | number of the line | the guest's handler runs |
//! | | r1 | address of NVIC_IPR | |
//! | | r4..r11, lr | of what is interrupted | |
//! | `bulkhead_arrival` | r0, r1 | the same: the line waits for its turn | |
//! | `bulkhead_early_end` | r0 | address of [`EARLY`] | what was interrupted goes on |
//! | | r4..r11 | the guest's | of the interrupted code |
//!
//! Without the part the block is empty.

use crate::lines::OWN;
use crate::starts::{ARMED, EARLY, ENDED, Early, IS_THERE, KEPT_UNIT, STARTED};
use core::arch::global_asm;
use core::mem::offset_of;

global_asm!(
    r#"
    .syntax unified
    .thumb
    .section .text.entry, "ax", %progbits
    .if     {has_early}
    // If the handler cannot start early now, the line waits for its turn. All that is interrupted is kept. A
    // store before, which the bus refuses, is among the faults by then.
    .global bulkhead_early
    .type   bulkhead_early, %function
    .thumb_func
bulkhead_early:
    ldr     r3, ={early}
    ldr     r2, [r3, #{state}]
    cmp     r2, #{armed}
    bne     bulkhead_arrival
    ldr     r2, =0xE000ED24                 // SHCSR.SYSTICKACT: SysTick could not end the start
    ldr     r2, [r2]
    tst     r2, #0x800
    bne     bulkhead_arrival
    dsb
    add     r2, r3, #{kept}
    stmia   r2!, {{r4-r11}}
    mrs     r4, psp
    mov     r5, lr
    mrs     r6, control
    ldr     r12, =0xE000ED00                // SCB
    ldr     r7, [r12, #0x04]                // ICSR
    ldr     r8, [r12, #0x14]                // CCR
    ldr     r9, [r12, #0x24]                // SHCSR
    ldrd    r10, r11, [r12, #0x28]          // CFSR, HFSR
    stmia   r2!, {{r4-r11}}
    ldrd    r4, r5, [r12, #0x34]            // MMFAR, BFAR
    ldr     r6, [r12, #0x88]                // CPACR
    ldrd    r7, r8, [r12, #0x94]            // MPU_CTRL, MPU_RNR
    stmia   r2!, {{r4-r8}}
    movs    r4, #0
    str     r4, [r12, #0x94]                // the unit is off meanwhile
1:  str     r4, [r12, #0x98]
    ldrd    r6, r7, [r12, #0x9C]
    orr     r6, r6, #0x10                   // MPU_RBAR.VALID
    strd    r6, r7, [r2], #8
    adds    r4, #1
    cmp     r4, #8
    bne     1b
    ldr     r2, [r3, #{regions}]
    ldmia   r2!, {{r4-r11}}
    add     lr, r12, #0x9C
    stmia   lr, {{r4-r11}}                  // MPU_RBAR to MPU_RASR_A3, twice
    ldmia   r2, {{r4-r11}}
    stmia   lr, {{r4-r11}}
    movs    r4, #5
    str     r4, [r12, #0x94]                // ENABLE, PRIVDEFENA
    movs    r4, #{own}
    msr     basepri, r4                     // every other exception but prompt lines is a HardFault, or waits
    movs    r4, #1
    msr     control, r4                     // Thread mode is unprivileged
    ldr     r4, [r3, #{configuration}]
    str     r4, [r12, #0x14]                // CCR
    mov     r4, #0x500000
    str     r4, [r12, #0x88]                // CPACR: the floating-point registers are another guest's
    mov     r4, #0x02000000
    str     r4, [r12, #0x04]                // ICSR.PENDSTCLR: a HardFault of a guest waits in what is kept
    movs    r4, #0
    strb    r4, [r12, #0x23]                // SysTick preempts
    movs    r5, #1
    and     r6, r0, #31
    lsls    r5, r6
    lsrs    r6, r0, #5
    sub     r1, r1, #0x280                  // NVIC_ICER
    str     r5, [r1, r6, lsl #2]
    sub     r1, r1, #0x170                  // SysTick
    ldr     r5, [r3, #{bound}]
    strd    r5, r4, [r1, #4]                // SYST_RVR, SYST_CVR
    movs    r5, #7
    str     r5, [r1]                        // SYST_CSR: counts the CPU's clock and interrupts
    str     r0, [r3, #{line}]
    movs    r5, #{started}
    str     r5, [r3, #{state}]
    ldr     r1, [r3, #{frame}]
    add     r2, r3, #{words}
    ldmia   r2!, {{r4-r11}}
    adds    r0, #16
    ldr     r10, [r10, r0, lsl #2]          // the vector
    bfi     r11, r10, #24, #1               // xPSR.T
    bic     r10, r10, #1
    stmia   r1, {{r4-r11}}
    msr     psp, r1
    ldmia   r2, {{r4-r11}}
    mvn     lr, #2                          // to Thread mode, the process stack, without floating point
    dsb
    isb
    bx      lr
    .ltorg

    // The end of an early start, in the handler of HardFault or SysTick; r0 is the address of its data.
    .global bulkhead_early_end
    .type   bulkhead_early_end, %function
    .thumb_func
bulkhead_early_end:
    add     r1, r0, #{general}
    stmia   r1, {{r4-r11}}
    mrs     r1, psp
    str     r1, [r0, #{frame}]
    movs    r2, #0
    ldr     r3, =0xE000E010                 // SysTick
    str     r2, [r3]
    dsb                                     // a late fault of the guest's stores is there, too
    ldr     r12, =0xE000ED00                // SCB
    add     r1, r0, #{kept} + 32
    ldmia   r1!, {{r4-r11}}
    msr     psp, r4
    mov     lr, r5
    msr     control, r6
    ands    r7, r7, #0x04000000             // ICSR.PENDSTSET, or PENDSTCLR; PENDSVSET
    it      eq
    moveq   r7, #0x02000000
    orr     r7, r7, #0x10000000
    str     r7, [r12, #0x04]
    str     r8, [r12, #0x14]                // CCR
    ldr     r4, [r12, #0x24]                // SHCSR: what has become pending meanwhile is the guest's
    bic     r5, r4, r9
    and     r5, r5, #0xF000
    bics    r4, r5
    str     r4, [r12, #0x24]
    ldrd    r4, r5, [r12, #0x28]            // CFSR, HFSR: ones clear
    bics    r4, r10
    bic     r5, r5, r11
    strd    r4, r5, [r12, #0x28]
    and     r6, r5, #0x80000000             // HFSR.DEBUGEVT: the end was a BKPT
    mrs     r5, ipsr
    orr     r5, r5, r6
    strd    r4, r5, [r0, #{faults}]
    ldmia   r1!, {{r4-r8}}
    strd    r4, r5, [r12, #0x34]            // MMFAR, BFAR
    str     r6, [r12, #0x88]                // CPACR
    str     r2, [r12, #0x94]                // MPU_CTRL
    add     r3, r12, #0x9C
    ldmia   r1!, {{r4-r11}}
    stmia   r3, {{r4-r11}}
    ldmia   r1, {{r4-r11}}
    stmia   r3, {{r4-r11}}
    ldrd    r4, r5, [r0, #{unit}]
    str     r5, [r12, #0x98]                // MPU_RNR
    str     r4, [r12, #0x94]                // MPU_CTRL
    movs    r4, #{own}
    strb    r4, [r12, #0x23]                // SysTick's priority
    msr     basepri, r2
    movs    r4, #{ended}
    str     r4, [r0, #{state}]
    add     r0, r0, #{kept}
    ldmia   r0, {{r4-r11}}
    dsb
    isb
    bx      lr

    .global bulkhead_systick
    .type   bulkhead_systick, %function
    .thumb_func
bulkhead_systick:
    ldr     r0, ={early}
    ldr     r1, [r0, #{state}]
    cmp     r1, #{started}
    beq     bulkhead_early_end
    b       bulkhead_fault
    .ltorg
    .endif
"#,
    has_early = const IS_THERE as u32,
    own = const OWN,
    early = sym EARLY,
    armed = const ARMED,
    started = const STARTED,
    ended = const ENDED,
    state = const offset_of!(Early, state),
    bound = const offset_of!(Early, bound),
    regions = const offset_of!(Early, regions),
    configuration = const offset_of!(Early, configuration),
    line = const offset_of!(Early, line),
    frame = const offset_of!(Early, frame),
    words = const offset_of!(Early, words),
    general = const offset_of!(Early, general),
    faults = const offset_of!(Early, faults),
    kept = const offset_of!(Early, kept),
    unit = const offset_of!(Early, kept) + KEPT_UNIT,
);
