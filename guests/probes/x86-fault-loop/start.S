/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a page fault whose handler is where nothing is mapped. The fetch of the handler is a page fault, too, and
   each one begins on the same stack (AMD APM volume 2, 8.9.4), so the next one is as the one before. None of them
   comes to the hypervisor, and no instruction is ever finished. The program comes in in 64-bit mode at 1 MiB. */
    .set UNMAPPED, 0x8000000000
    .set SEGMENTS, 0x100800
    .set TASK, 0x100900
    .set HANDLERS, 0x100a00
    .globl _start
_start:
    cli
    lgdt segments_pointer
    mov $0x18, %eax
    ltr %ax
    lidt handlers_pointer
    mov $UNMAPPED, %rax
    mov (%rax), %eax
1:  jmp 1b

    .balign 8
    .word 0, 0, 0
segments_pointer:
    .word 0x27
    .quad SEGMENTS
    .balign 8
    .word 0, 0, 0
handlers_pointer:
    .word 0xef
    .quad HANDLERS

    /* 0x10: 64-bit code. 0x18: the task, which has 0x68 bytes. */
    .org SEGMENTS - 0x100000
    .quad 0, 0, 0x00af9b000000ffff
    .quad 0x0000891009000067, 0
    /* The first stack of the interrupt stack table is below the program's end. */
    .org TASK - 0x100000 + 0x24
    .quad 0x101000
    /* Vector 14: selector 0x10, the first stack, an interrupt gate. */
    .org HANDLERS - 0x100000 + 14 * 16
    .word UNMAPPED & 0xffff, 0x10, 0x8e01, (UNMAPPED >> 16) & 0xffff
    .long UNMAPPED >> 32, 0
    .org 0x1000
