// SPDX-License-Identifier: Apache-2.0
//
// The part that C cannot express: leaving one task and entering another.
//
// A task that does not run has on its own stack, from the top: the frame of the exception (Arm DDI 0403E,
// B1.5.6), with or without floating-point registers; S16 to S31 if it has these; R4 to R11 and the EXC_RETURN
// value that leads back.

    .syntax unified
    .thumb
    .text

// The first task: its frame is popped, and the main stack is empty again, for handlers.
    .global SVC_Handler
    .type SVC_Handler, %function
SVC_Handler:
    ldr     r0, =current
    ldr     r0, [r0]
    ldr     r0, [r0]
    ldmia   r0!, {r4-r11, lr}
    msr     psp, r0
    mov     r0, #0
    msr     basepri, r0
    isb
    bx      lr

    .global PendSV_Handler
    .type PendSV_Handler, %function
PendSV_Handler:
    mrs     r0, psp
    ldr     r3, =current
    ldr     r2, [r3]
    tst     lr, #0x10
    it      eq
    vstmdbeq r0!, {s16-s31}
    stmdb   r0!, {r4-r11, lr}
    str     r0, [r2]

    push    {r0, r3}
    mov     r0, #0x80
    msr     basepri, r0
    dsb
    isb
    bl      kernel_select
    mov     r0, #0
    msr     basepri, r0
    pop     {r0, r3}

    ldr     r2, [r3]
    ldr     r0, [r2]
    ldmia   r0!, {r4-r11, lr}
    tst     lr, #0x10
    it      eq
    vldmiaeq r0!, {s16-s31}
    msr     psp, r0
    isb
    bx      lr

// Starts the first task from main: the vector table's stack again, since nothing returns to main.
    .global kernel_enter
    .type kernel_enter, %function
kernel_enter:
    ldr     r0, =0xe000ed08
    ldr     r0, [r0]
    ldr     r0, [r0]
    msr     msp, r0
    mov     r0, #0
    msr     control, r0
    cpsie   i
    cpsie   f
    dsb
    isb
    svc     #0
    nop
