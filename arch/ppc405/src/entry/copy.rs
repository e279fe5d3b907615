// SPDX-License-Identifier: Apache-2.0
//! `memcpy`, which the compiler calls for each larger value that moves.
//!
//! The one that comes with the compiler takes more than twice as many instructions for the values of a word's
//! alignment that the hypervisor copies, and an exit from a guest copies three. So this one has their case
//! first: sixteen bytes a turn, then words, then bytes.
//!
//! | register | meaning in | meaning out |
//! |---|---|---|
//! | r3 | where to | the same |
//! | r4 | where from | not used |
//! | r5 | bytes | not used |
//! | r0, r4..r12, CR0, CTR | | not used |

use core::arch::global_asm;

global_asm!(
    r#"
    .section .text.memcpy, "ax", @progbits
    .global memcpy
memcpy:
    or      6, 3, 4
    mr      7, 3
    andi.   0, 6, 3
    bne     5f
    srwi.   8, 5, 4
    beq     2f
    mtctr   8
1:  lwz     9, 0(4)
    lwz     10, 4(4)
    lwz     11, 8(4)
    lwz     12, 12(4)
    addi    4, 4, 16
    stw     9, 0(7)
    stw     10, 4(7)
    stw     11, 8(7)
    stw     12, 12(7)
    addi    7, 7, 16
    bdnz    1b
2:  rlwinm. 8, 5, 30, 30, 31            // words that are left
    beq     4f
    mtctr   8
3:  lwz     9, 0(4)
    addi    4, 4, 4
    stw     9, 0(7)
    addi    7, 7, 4
    bdnz    3b
4:  andi.   5, 5, 3                     // bytes that are left
5:  cmpwi   5, 0
    beqlr
    mtctr   5
    addi    4, 4, -1
    addi    7, 7, -1
6:  lbzu    9, 1(4)
    stbu    9, 1(7)
    bdnz    6b
    blr
    .size   memcpy, . - memcpy
    "#
);
