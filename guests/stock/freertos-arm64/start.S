/* SPDX-License-Identifier: Apache-2.0 */
/* Entry at EL1 and the exception vectors. FreeRTOS runs tasks with SP_EL0 and handlers with SP_EL1.
 *
 * register | at the entry | afterwards
 * x0       | device tree  | not used
 * sp       | unknown      | end of the stack of handlers; main() has the same stack until tasks run */
    .section .text.start, "ax"
    .global start
start:
    msr     daifset, #0xf
    msr     spsel, #1
    ldr     x0, =stack_end
    mov     sp, x0
    ldr     x0, =bss_start
    ldr     x1, =bss_end
1:  cmp     x0, x1
    b.hs    2f
    stp     xzr, xzr, [x0], #16
    b       1b
2:  ldr     x0, =_freertos_vector_table
    msr     vbar_el1, x0
    isb
    bl      main
    b       .

    .macro  to handler
    .balign 128
    b       \handler
    .endm

    .section .text.vectors, "ax"
    .balign 2048
    .global _freertos_vector_table
_freertos_vector_table:
    /* EL1 with SP_EL0: a task. */
    to      FreeRTOS_SWI_Handler
    to      FreeRTOS_IRQ_Handler
    to      unexpected
    to      unexpected
    /* EL1 with SP_EL1: a handler. */
    to      unexpected
    to      FreeRTOS_IRQ_Handler
    to      unexpected
    to      unexpected
    .rept   8
    to      unexpected
    .endr

unexpected:
    mrs     x0, esr_el1
    mrs     x1, elr_el1
    mrs     x2, far_el1
    bl      on_unexpected
    b       .
