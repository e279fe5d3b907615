// SPDX-License-Identifier: Apache-2.0
//! The guest of the checks in `arch/conformance`. It gets the address of records in `x0` and does what they
//! say.
//!
//! It runs wherever it is copied to, without a stack: as the kernel of a VM without translation, or as a
//! task. A record has 24 bytes: operation and size (words), address and value (doublewords). The numbers are
//! the numbers of `arch/conformance`.
#![no_std]
#![no_main]

use core::arch::global_asm;

// x19  the next record
// x20  the accumulator
// w1, w2, x3, x4  operation, size, address, value
global_asm!(
    r#"
    .section .text.start.vm, "ax", %progbits
    .global _vm_start
_vm_start:
    mov     x19, x0
    mov     x20, #0
.Lnext:
    ldp     w1, w2, [x19]
    ldp     x3, x4, [x19, #8]
    add     x19, x19, #24
    cmp     w1, #1
    b.eq    .Lload
    cmp     w1, #2
    b.eq    .Lstore
    cmp     w1, #3
    b.eq    .Lcall_of_vm
    cmp     w1, #4
    b.eq    .Lcall_of_task
    cmp     w1, #5
    b.eq    .Lidle
    cmp     w1, #6
    b.eq    .Lfirmware
    cmp     w1, #7
    b.eq    .Lopen
.Lbusy:
    b       .Lbusy

.Lload:
    cmp     w2, #2
    b.lo    1f
    b.eq    2f
    cmp     w2, #4
    b.eq    4f
    ldr     x20, [x3]
    b       .Lnext
1:  ldrb    w20, [x3]
    b       .Lnext
2:  ldrh    w20, [x3]
    b       .Lnext
4:  ldr     w20, [x3]
    b       .Lnext

.Lstore:
    cmp     w2, #2
    b.lo    1f
    b.eq    2f
    cmp     w2, #4
    b.eq    4f
    str     x4, [x3]
    b       .Lnext
1:  strb    w4, [x3]
    b       .Lnext
2:  strh    w4, [x3]
    b       .Lnext
4:  str     w4, [x3]
    b       .Lnext

    // The first result is in x1 if the status in x0 is 0.
.Lcall_of_vm:
    mov     x0, x4
    mov     x1, x20
    hvc     #0
    b       .Lcalled
.Lcall_of_task:
    mov     x0, x4
    mov     x1, x20
    svc     #0
.Lcalled:
    cmp     x0, #0
    csel    x20, x1, x20, eq
    b       .Lnext

.Lidle:
    wfi
    b       .Lnext

.Lfirmware:
    mov     x0, x4
    hvc     #0
    b       .Lnext

    // ICC_SRE_EL1.SRE, ICC_PMR_EL1, ICC_IGRPEN1_EL1 (Arm IHI 0069 section 12.2).
.Lopen:
    mov     x5, #7
    msr     S3_0_C12_C12_5, x5
    isb
    mov     x5, #0xff
    msr     S3_0_C4_C6_0, x5
    mov     x5, #1
    msr     S3_0_C12_C12_7, x5
    isb
    b       .Lnext
"#
);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
