// SPDX-License-Identifier: Apache-2.0
//! The first instructions of the second pCPU. The rest is in `entry`: PendSV is where the hypervisor begins
//! here as well.
//!
//! The limit of the main stack (MSPLIM) is set on this CPU alone. It tells the two apart for `entry`, and is
//! the lowest address of the stack.

use crate::pair::{IS_PAIR, STACK_BYTES};
use crate::second::STACK;
use core::arch::global_asm;

global_asm!(
    r#"
    .syntax unified
    .thumb
    .if     {is_pair}
    .section .text.second, "ax", %progbits
    .balign 128                             // INITSVTOR1 has no lower bits
    .global bulkhead_second_vectors
bulkhead_second_vectors:
    .word   {stack} + {bytes}
    .word   bulkhead_second_start
    .type   bulkhead_second_start, %function
    .thumb_func
bulkhead_second_start:
    ldr     r0, ={stack}
    msr     msplim, r0
    b       bulkhead_start_cpu
    .type   bulkhead_second_first, %function
    .global bulkhead_second_first
    .thumb_func
bulkhead_second_first:
    add     r0, r0, #{bytes}
    mov     sp, r0
    movs    r0, #1                          // CONTROL.nPRIV, as on the first CPU
    msr     control, r0
    isb
    bl      secondary_main
    .ltorg
    .endif
    .text
"#,
    is_pair = const IS_PAIR as u32,
    stack = sym STACK,
    bytes = const STACK_BYTES,
);
