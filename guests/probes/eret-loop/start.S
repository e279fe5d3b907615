/* SPDX-License-Identifier: Apache-2.0 */
/* A handler that returns to what faults. Each round finishes one instruction, the return. */
    .globl _start
_start:
    adr x0, vectors
    msr vbar_el1, x0
    /* Loads must be aligned from now on (SCTLR_EL1.A). */
    mrs x1, sctlr_el1
    orr x1, x1, #2
    msr sctlr_el1, x1
    isb
fault:
    ldr x2, [x0, #1]
    b fault

    .balign 2048
vectors:
    .rept 16
    .balign 128
    eret
    .endr
