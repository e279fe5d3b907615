// SPDX-License-Identifier: Apache-2.0
//! `memcpy` and `memset`, which the compiler calls for larger values: registers of a vCPU, exits, lines of a
//! console.
//!
//! The functions of the compiler's own library move one word, or one byte, a turn. These move four words a
//! turn where both sides are equally far from a word, which is nearly always. Elsewhere they move one word,
//! put together from two. They move one byte a turn up to the first word and at the end. The linker prefers
//! them because the library's are weak. EL2 checks alignment (SCTLR_EL2.A), so a word is never accessed
//! across its boundary.
//!
//! Contract: as in the C library (Arm AAPCS64: x0 = target, x1 = source or byte, x2 = bytes; x0 is
//! returned).

use core::arch::global_asm;

global_asm!(
    r#"
    .text
    .global memcpy
    .type   memcpy, %function
memcpy:
    mov     x3, x0
    eor     x4, x0, x1
    tst     x4, #7
    b.ne    9f
7:  tst     x3, #7                          // a tag is often written before, and what is after it then copied
    b.eq    8f
    cbz     x2, 5f
    ldrb    w4, [x1], #1
    strb    w4, [x3], #1
    sub     x2, x2, #1
    b       7b
8:  subs    x2, x2, #32
    b.lo    2f
1:  ldp     x4, x5, [x1], #32
    ldp     x6, x7, [x1, #-16]
    stp     x4, x5, [x3], #32
    stp     x6, x7, [x3, #-16]
    subs    x2, x2, #32
    b.hs    1b
2:  tbz     x2, #4, 3f
    ldp     x4, x5, [x1], #16
    stp     x4, x5, [x3], #16
3:  and     x5, x2, #7
    tbz     x2, #3, 6f
    ldr     x4, [x1], #8
    str     x4, [x3], #8
6:  mov     x2, x5
4:  cbz     x2, 5f
    ldrb    w4, [x1], #1
    strb    w4, [x3], #1
    sub     x2, x2, #1
    b       4b
5:  ret
9:  tst     x3, #7                          // else each word from two of the source, neither beyond its last word
    b.eq    10f
    cbz     x2, 5b
    ldrb    w4, [x1], #1
    strb    w4, [x3], #1
    sub     x2, x2, #1
    b       9b
10: subs    x2, x2, #8
    b.lo    12f
    and     x5, x1, #7
    lsl     x5, x5, #3                      // bits of the first word that are copied already
    neg     x6, x5
    bic     x7, x1, #7
    ldr     x4, [x7], #8
11: lsr     x4, x4, x5
    ldr     x8, [x7], #8
    lsl     x9, x8, x6
    orr     x4, x4, x9
    str     x4, [x3], #8
    mov     x4, x8
    add     x1, x1, #8
    subs    x2, x2, #8
    b.hs    11b
12: add     x2, x2, #8
    b       4b
    .size   memcpy, . - memcpy

    .global memset
    .type   memset, %function
memset:
    mov     x3, x0
    and     x1, x1, #0xFF
7:  tst     x3, #7                          // a byte is often written before, and its neighbours are then cleared
    b.eq    8f
    cbz     x2, 5f
    strb    w1, [x3], #1
    sub     x2, x2, #1
    b       7b
8:  orr     x1, x1, x1, lsl #8
    orr     x1, x1, x1, lsl #16
    orr     x1, x1, x1, lsl #32
    subs    x2, x2, #32
    b.lo    2f
1:  stp     x1, x1, [x3], #32
    stp     x1, x1, [x3, #-16]
    subs    x2, x2, #32
    b.hs    1b
2:  tbz     x2, #4, 3f
    stp     x1, x1, [x3], #16
3:  and     x5, x2, #7
    tbz     x2, #3, 6f
    str     x1, [x3], #8
6:  mov     x2, x5
4:  cbz     x2, 5f
    strb    w1, [x3], #1
    sub     x2, x2, #1
    b       4b
5:  ret
    .size   memset, . - memset
"#
);
