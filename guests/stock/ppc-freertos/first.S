/* SPDX-License-Identifier: Apache-2.0 */
/* The first instructions of a program in C: a stack, variables that are 0, and the vectors. */

    .section .text.start, "ax"
    .global start
start:
    li      3, 0
    mtmsr   3
    lis     1, stack_end@ha
    addi    1, 1, stack_end@l
    lis     4, bss_start@ha
    addi    4, 4, bss_start@l
    lis     5, bss_end@ha
    addi    5, 5, bss_end@l
1:  cmplw   4, 5
    bge     2f
    stw     3, 0(4)
    addi    4, 4, 4
    b       1b
2:  lis     4, vectors@ha
    addi    4, 4, vectors@l
    mtevpr  4
    stwu    3, -16(1)
    bl      main
    b       .
