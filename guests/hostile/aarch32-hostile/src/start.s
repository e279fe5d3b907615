@ SPDX-License-Identifier: Apache-2.0
@ First instructions, vectors, and the way into an operation and back from wherever it has led.
@
@ `attack_next` is called in Supervisor mode with r0 = the number of the vector that was taken, 0 at the
@ start.
    .arch armv7-a
    .arch_extension virt
    .arch_extension sec
    .syntax unified
    .arm
    .section .text.start.vm, "ax"
    .global _vm_start
_vm_start:
    mov     r0, #0
    b       recover

    .balign 32
vectors:
    b       .
    b       1f
    b       2f
    b       3f
    b       4f
    b       .
    b       6f
    b       7f
1:  mov     r0, #1
    b       recover
2:  mov     r0, #2
    b       recover
3:  mov     r0, #3
    b       recover
4:  mov     r0, #4
    b       recover
6:  mov     r0, #6
    b       recover
7:  mov     r0, #7

@ Whatever the operation has changed that the program needs: mode, byte order, control register, vectors,
@ stack.
recover:
    cpsid   aif, #0x13
    setend  le
    ldr     r1, =0x00C50838                 @ SCTLR: its RES1 bits, no translation, no caches
    mcr     p15, 0, r1, c1, c0, 0
    ldr     r1, =vectors
    mcr     p15, 0, r1, c12, c0, 0          @ VBAR
    isb
    ldr     sp, =stack_top
    bl      attack_next
    b       .

@ r0 = registers r0 to r12 of the operation, r1 = its first instruction, r2 = its status. Never returns.
    .global attack_enter
attack_enter:
    msr     spsr_cxsf, r2
    mov     lr, r1
    ldm     r0, {r0-r12}
    movs    pc, lr
    .ltorg

    .bss
    .balign 8
    .space  8192
stack_top:
