/* SPDX-License-Identifier: Apache-2.0 */
/* Uses floating point before it is on, and sets no table of vectors: after a reset the table is at 0, where the
   machine has nothing. */
    .globl _start
_start:
    bl work
1:  b 1b

    .type work, %function
work:
    nop
    fmov d0, xzr
    ret
    .size work, . - work
