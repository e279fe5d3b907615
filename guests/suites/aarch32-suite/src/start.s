@ SPDX-License-Identifier: Apache-2.0
@ First instructions, vectors and the probes that need registers of their own.
@
@ A probe is called with r0..r3, in Supervisor mode, and gives its result in r0. A mode's own registers are
@ lost by it.
    .arch armv7-a
    .arch_extension virt
    .arch_extension sec
    .syntax unified
    .arm
    .section .text.start.vm, "ax"
    .global _vm_start
_vm_start:
    ldr     r4, =boot_registers
    stm     r4, {r0, r1, r2}
    ldr     sp, =stack_svc
    cps     #0x12
    ldr     sp, =stack_irq
    cps     #0x17
    ldr     sp, =stack_abt
    cps     #0x1B
    ldr     sp, =stack_und
    cps     #0x13
    ldr     r0, =vectors
    mcr     p15, 0, r0, c12, c0, 0          @ VBAR
    isb
    bl      main
1:  ldr     r0, =0x84000008                 @ SYSTEM_OFF
    hvc     #0
    b       1b

    .balign 32
    .global vectors
vectors:
    b       .
    b       on_undefined
    b       .
    b       on_fetch_abort
    b       on_data_abort
    b       .
    b       on_irq
    b       .

@ Counts, and goes on behind the instruction: 4 bytes in A32, 2 in T32 (LR is 4 or 2 behind it already).
on_undefined:
    push    {r0, r1}
    ldr     r0, =undefined_count
    ldr     r1, [r0]
    add     r1, r1, #1
    str     r1, [r0]
    pop     {r0, r1}
    movs    pc, lr

@ Keeps DFSR and DFAR, and goes on behind the instruction.
on_data_abort:
    push    {r0, r1}
    ldr     r0, =data_abort_seen
    mrc     p15, 0, r1, c5, c0, 0
    str     r1, [r0]
    mrc     p15, 0, r1, c6, c0, 0
    str     r1, [r0, #4]
    sub     r1, lr, #8
    str     r1, [r0, #8]
    pop     {r0, r1}
    subs    pc, lr, #4

@ Keeps IFSR and IFAR, and returns to the caller of the address that is no memory.
on_fetch_abort:
    push    {r0, r1}
    ldr     r0, =fetch_abort_seen
    mrc     p15, 0, r1, c5, c0, 1
    str     r1, [r0]
    mrc     p15, 0, r1, c6, c0, 2
    str     r1, [r0, #4]
    sub     r1, lr, #4
    str     r1, [r0, #8]
    pop     {r0, r1}
    ldr     lr, =fetch_return
    ldr     lr, [lr]
    movs    pc, lr

on_irq:
    sub     lr, lr, #4
    push    {r0-r3, r12, lr}
    ldr     r12, =gic_interface
    ldr     r12, [r12]
    cmp     r12, #0
    mrceq   p15, 0, r0, c12, c12, 0         @ ICC_IAR1
    ldrne   r0, [r12, #0xC]                 @ GICC_IAR
    ldr     r1, =irq_seen
    str     r0, [r1]
    ldr     r2, [r1, #4]
    add     r2, r2, #1
    str     r2, [r1, #4]
    cmp     r0, #27
    moveq   r3, #0
    mcreq   p15, 0, r3, c14, c3, 1          @ CNTV_CTL: off
    cmp     r12, #0
    mcreq   p15, 0, r0, c12, c12, 1         @ ICC_EOIR1
    strne   r0, [r12, #0x10]                @ GICC_EOIR
    isb
    ldm     sp!, {r0-r3, r12, pc}^

@ The same vectors in T32. The handler counts undefined instructions, keeps the state with which it was
@ entered, and goes on behind the instruction (A32). r0 and r1 are lost, because the byte order of a push is
@ not known here.
    .thumb
    .balign 32
    .global thumb_vectors
thumb_vectors:
    b.w     .
    b.w     1f
    .rept   6
    b.w     .
    .endr
1:  mrs     r1, cpsr
    setend  le
    ldr     r0, =handler_state
    str     r1, [r0]
    ldr     r0, =undefined_count
    ldr     r1, [r0]
    adds    r1, r1, #1
    str     r1, [r0]
    subs    pc, lr, #0
    .ltorg
    .arm

@ The vectors in a form that can be copied to where the high ones are: each jumps by a table behind them.
    .balign 32
    .global high_vectors
high_vectors:
    .rept   8
    ldr     pc, [pc, #24]
    .endr
    .word   vectors, on_undefined, vectors, on_fetch_abort, on_data_abort, vectors, on_irq, vectors

@ r0 = where to jump although there is no memory.
    .global probe_fetch
probe_fetch:
    ldr     r1, =fetch_return
    str     lr, [r1]
    bx      r0

@ In mode \mode: sp and lr keep their values over an exit, and each can be what a trapped load fills and a
@ trapped store gives. r0 = register of a device that can be read and written. r0 out: 0, or the number of the
@ step that failed.
    .macro  mode_probe name, mode
    .global probe_\name
probe_\name:
    push    {r4-r9, lr}
    ldr     r4, =0x002288AA
    mov     r5, #0
    cpsid   aif, #\mode
    mov     r8, sp
    ldr     sp, =0x13131310
    ldr     lr, =0x14141414
    ldr     r7, [r0]
    mov     r6, #1
    ldr     r1, =0x13131310
    cmp     sp, r1
    bne     9f
    mov     r6, #2
    ldr     r1, =0x14141414
    cmp     lr, r1
    bne     9f
    mov     r6, #3
    mov     lr, r4
    str     lr, [r0]
    ldr     r1, [r0]
    cmp     r1, r4
    bne     9f
    mov     r6, #4
    str     r5, [r0]
    mov     sp, r4
    str     sp, [r0]
    ldr     r1, [r0]
    cmp     r1, r4
    bne     9f
    mov     r6, #5
    mov     lr, #0
    ldr     lr, [r0]
    cmp     lr, r4
    bne     9f
    mov     r6, #6
    mov     sp, #0
    ldr     sp, [r0]
    cmp     sp, r4
    bne     9f
    mov     r6, #7
    ldr     r1, =0x84000000
    mov     lr, r0
    mov     r0, r1
    hvc     #0
    movw    r1, #1
    movt    r1, #1
    cmp     r0, r1
    mov     r0, lr
    bne     9f
    mov     r6, #0
9:  str     r5, [r0]
    mov     sp, r8
    cpsid   aif, #0x13
    mov     r0, r6
    pop     {r4-r9, pc}
    .ltorg
    .endm

    mode_probe supervisor, 0x13
    mode_probe abort, 0x17
    mode_probe undefined, 0x1B
    mode_probe irq, 0x12
    mode_probe system, 0x1F

@ SPSR of each mode that has one keeps what it is given over r0 rounds of a loop, in which another vCPU may
@ have its turn. r1 = the value. r0 out: 0, or the mode that lost it.
    .macro  status_probe mode
    cpsid   aif, #\mode
    msr     spsr_fsxc, r1
    mov     r2, r0
1:  subs    r2, r2, #1
    bne     1b
    mrs     r3, spsr
    cpsid   aif, #0x13
    cmp     r3, r1
    movne   r0, #\mode
    bxne    lr
    .endm
    .global probe_status
probe_status:
    status_probe 0x11
    status_probe 0x12
    status_probe 0x17
    status_probe 0x1B
    status_probe 0x13
    mov     r0, #0
    bx      lr

@ FIQ mode has r8 to r12 of its own.
    .global probe_fiq
probe_fiq:
    push    {r4-r11, lr}
    mov     r8, #0
    mov     r12, #0
    ldr     r4, =0x002288AA
    mov     r5, #0
    cpsid   aif, #0x11
    str     r4, [r0]
    mov     r6, #1
    ldr     r8, [r0]
    cmp     r8, r4
    bne     9f
    mov     r6, #2
    str     r5, [r0]
    mov     r12, r4
    str     r12, [r0]
    ldr     r1, [r0]
    cmp     r1, r4
    bne     9f
    mov     r6, #3
    ldr     lr, [r0]
    cmp     lr, r4
    bne     9f
    mov     r6, #0
9:  str     r5, [r0]
    cpsid   aif, #0x13
    cmp     r8, #0
    movne   r6, #4
    cmp     r12, #0
    movne   r6, #5
    mov     r0, r6
    pop     {r4-r11, pc}
    .ltorg

@ r0 = device register. In T32: 16-bit loads and stores that trap, in IT blocks of which half is skipped. r0
@ out: 0 if right.
    .thumb
    .thumb_func
    .global probe_thumb
probe_thumb:
    push    {r4-r7, lr}
    ldr     r4, =0x002288AA
    movs    r5, #0
    movs    r6, #1
    cmp     r4, r4
    itet    eq
    streq   r4, [r0]
    movne   r6, #7
    ldreq   r5, [r0]
    cmp     r5, r4
    bne     9f
    movs    r6, #2
    movs    r7, #0
    cmp     r4, #0
    ittee   ne
    ldrne   r7, [r0]
    addne   r7, r7, #1
    ldreq   r4, [r0]
    moveq   r7, #0
    adds    r4, #1
    cmp     r7, r4
    bne     9f
    movs    r6, #3
    movs    r1, #0
    cmp     r1, #0
    itt     ne
    mcrne   p15, 0, r1, c9, c12, 0          @ would be undefined
    movne   r6, #4
    cmp     r6, #3
    bne     9f
    movs    r6, #0
9:  movs    r1, #0
    str     r1, [r0]
    mov     r0, r6
    pop     {r4-r7, pc}
    .ltorg

@ First instruction of the other vCPU, in T32.
    .thumb_func
    .global second_start
second_start:
    ldr     r1, =second_argument
    str     r0, [r1]
    dsb
    ldr     r0, =0x84000002                 @ CPU_OFF
    hvc     #0
1:  b       1b
    .ltorg
    .arm

@ A conditional access that would be undefined, in A32. r0 out: 0 if it was skipped.
    .global probe_condition
probe_condition:
    movs    r0, #0
    mcrne   p15, 0, r0, c9, c12, 0
    mrcne   p15, 0, r0, c9, c12, 0
    bx      lr

@ r0 = an instruction for any coprocessor that names r0 to r3 at most, r1 = memory it may reach. Runs it; if
@ it is undefined it is skipped.
    .global probe_word
probe_word:
    push    {r4-r6, lr}
    ldr     r4, =word_slot
    str     r0, [r4]
    ldr     r5, =0xE12FFF1E                 @ bx lr
    str     r5, [r4, #4]
    dsb
    mcr     p15, 0, r5, c7, c5, 0           @ ICIALLU
    dsb
    isb
    mov     r0, r1
    mov     r2, r1
    mov     r3, r1
    blx     r4
    mov     r0, #0
    mcr     p15, 0, r0, c14, c3, 1          @ CNTV_CTL, CNTP_CTL: off
    mcr     p15, 0, r0, c14, c2, 1
    pop     {r4-r6, pc}
    .ltorg

@ All registers of VFP and NEON hold a pattern made of r0 over r1 exits. r0 out: 0 if all kept it.
    .fpu    neon
    .global probe_fp
probe_fp:
    push    {r4-r6, lr}
    mov     r4, r0
    mov     r5, r1
    vdup.32 q0, r4
    .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmov.i32 q\n, #\n
    vadd.i32 q\n, q\n, q0
    .endr
    ldr     r6, =0x01800000
    vmsr    fpscr, r6
1:  ldr     r0, =0x84000000
    hvc     #0
    subs    r5, r5, #1
    bne     1b
    vmrs    r0, fpscr
    eor     r0, r0, r6
    .irp    n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    vmov.32 r1, d\n[1]
    sub     r1, r1, r4
    sub     r1, r1, #(\n / 2)
    orr     r0, r0, r1
    .endr
    .irp    n, 8,9,10,11,12,13,14,15
    vadd.i32 q1, q\n, q1
    .endr
    vmov.32 r1, d3[1]
    sub     r1, r1, r4, lsl #3
    sub     r1, r1, r4
    sub     r1, r1, #93                     @ 1 + 8 + 9 + .. + 15
    orr     r0, r0, r1
    pop     {r4-r6, pc}
    .ltorg

    .bss
    .balign 16384
    .global translation_table
translation_table: .space 16384
    .global boot_registers, undefined_count, data_abort_seen, fetch_abort_seen, irq_seen, second_argument
    .global gic_interface, handler_state
boot_registers:   .space 12
undefined_count:  .space 4
data_abort_seen:  .space 12
fetch_abort_seen: .space 12
irq_seen:         .space 8
second_argument:  .space 4
fetch_return:     .space 4
gic_interface:    .space 4
handler_state:    .space 4
word_slot:        .space 8
    .balign 16
    .space 8192
stack_svc:
    .space 1024
stack_irq:
    .space 1024
stack_abt:
    .space 1024
stack_und:
    .text
