/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the table of vectors to memory that holds zeros, and makes a call. The first word of a vector is an
   illegal instruction then, whose vector is empty as well. */
    .globl _start
_start:
    lis 3, 0x0010
    mtspr 0x3d6, 3
    bl work
1:  b 1b

    .type work, @function
work:
    nop
    sc
    blr
    .size work, . - work
