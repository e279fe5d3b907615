// SPDX-License-Identifier: Apache-2.0
//! The guest of the checks in `arch/conformance` on a microcontroller. Its first stack pointer points to
//! records, and it does what they say.
//!
//! It runs in place as a VM or as a task, and uses no stack. A record has 24 bytes: operation and size
//! (words), address and value (doublewords, of which only the lower word counts). The numbers are from
//! `arch/conformance`.
#![no_std]
#![no_main]

use core::arch::global_asm;

// r10  the next record
// r11  the accumulator
// r0, r1, r2, r6  operation, size, address, value
global_asm!(
    r#"
    .syntax unified
    .thumb
    .section .vectors, "a", %progbits
    .word   __main_stack
    .word   guest_reset
    .rept   14
    .word   guest_reset
    .endr

    .section .text.guest_reset, "ax", %progbits
    .global guest_reset
    .type   guest_reset, %function
    .thumb_func
guest_reset:
    mov     r10, sp
    movs    r0, #0
    mov     r11, r0
.Lnext:
    ldmia.w r10!, {{r0-r3, r6, r7}}
    cmp     r0, #1
    beq     .Lload
    cmp     r0, #2
    beq     .Lstore
    cmp     r0, #3
    beq     .Lcall_of_vm
    cmp     r0, #4
    beq     .Lcall_of_task
    cmp     r0, #5
    beq     .Lidle
.Lbusy:
    b       .Lbusy

.Lload:
    cmp     r1, #2
    blo     1f
    beq     2f
    ldr.w   r11, [r2]
    b       .Lnext
1:  ldrb.w  r11, [r2]
    b       .Lnext
2:  ldrh.w  r11, [r2]
    b       .Lnext

.Lstore:
    cmp     r1, #2
    blo     1f
    beq     2f
    str     r6, [r2]
    b       .Lnext
1:  strb    r6, [r2]
    b       .Lnext
2:  strh    r6, [r2]
    b       .Lnext

    // The first result is in r2 if the status in r0 is 0.
.Lcall_of_vm:
    mov     r0, r6
    mov     r1, r11
    udf     #0xb1
    b       .Lcalled
.Lcall_of_task:
    mov     r0, r6
    mov     r1, r11
    svc     #0
.Lcalled:
    cmp     r0, #0
    it      eq
    moveq   r11, r2
    b       .Lnext

.Lidle:
    wfi
    b       .Lnext
"#
);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
