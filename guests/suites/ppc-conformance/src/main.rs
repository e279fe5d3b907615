// SPDX-License-Identifier: Apache-2.0
//! The guest of the checks in `arch/conformance`. It gets the address of records in r3 and does what they
//! say.
//!
//! It runs wherever it is copied to, without a stack: in real mode as a VM, or as a task. A record has 24
//! bytes, little-endian: operation and size (words), address and value (doublewords, of which the low words
//! count). The numbers are from `arch/conformance`. Operation 6 writes `value` to DBCR0. Operation 7
//! enables the lines `value` of the interrupt controller and lets interrupts in.
#![no_std]
#![no_main]

use core::arch::global_asm;

// r30  the next record
// r31  the accumulator
// r26, r27, r28, r29  operation, size, address, value
global_asm!(
    r#"
    .section .text.start.powerpc, "ax", @progbits
    .global _powerpc_start
_powerpc_start:
    mr      30, 3
    li      31, 0
.Lnext:
    lwbrx   26, 0, 30
    addi    30, 30, 4
    lwbrx   27, 0, 30
    addi    30, 30, 4
    lwbrx   28, 0, 30
    addi    30, 30, 8
    lwbrx   29, 0, 30
    addi    30, 30, 8
    cmplwi  26, 1
    beq     .Lload
    cmplwi  26, 2
    beq     .Lstore
    cmplwi  26, 3
    beq     .Lcall
    cmplwi  26, 4
    beq     .Lcall
    cmplwi  26, 5
    beq     .Lidle
    cmplwi  26, 6
    beq     .Lreset
    cmplwi  26, 7
    beq     .Lopen
.Lbusy:
    b       .Lbusy
.Lload:
    cmplwi  27, 2
    blt     1f
    beq     2f
    lwz     31, 0(28)
    b       .Lnext
1:  lbz     31, 0(28)
    b       .Lnext
2:  lhz     31, 0(28)
    b       .Lnext
.Lstore:
    cmplwi  27, 2
    blt     1f
    beq     2f
    stw     29, 0(28)
    b       .Lnext
1:  stb     29, 0(28)
    b       .Lnext
2:  sth     29, 0(28)
    b       .Lnext
.Lcall:
    mr      0, 29
    mr      3, 31
    sc
    // The first result is in r4 and r5 if the status in r3 is 0.
    cmpwi   3, 0
    bne     .Lnext
    mr      31, 5
    b       .Lnext
.Lidle:
    lis     4, 4                            // MSR.WE, EE
    ori     4, 4, 0x8000
    mtmsr   4
    b       .Lnext
.Lreset:
    mtspr   1010, 29
    b       .Lnext
.Lopen:
    li      4, -1
    li      5, 0
    mtdcr   0xC4, 4                         // high levels
    mtdcr   0xC5, 5
    mtdcr   0xC3, 5
    mtdcr   0xC2, 29
    wrteei  1
    b       .Lnext
"#
);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
