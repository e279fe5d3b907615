// SPDX-License-Identifier: Apache-2.0
//! All assembly of the backend that is more than one instruction: vectors, first instructions, and the way
//! into and out of a guest.
//!
//! While a guest runs, SPRG3 holds the address of its [`Registers`](crate::context::Registers). Any interrupt
//! saves the guest's registers there and calls `on_trap` on the hypervisor's stack. If that answers 0, the
//! guest goes on. Otherwise `bulkhead_enter` returns.
//!
//! | at | register | meaning in | meaning out |
//! |---|---|---|---|
//! | `bulkhead_enter` | r3 | `*mut Registers` to run with | |
//! | | r4 | `*mut Machine`, lent to the handler | |
//! | | r1, r13..r31, CR | the host's | the same |
//! | `on_trap` | r3 | `*mut Machine` | 0: go on in the guest |
//! | | r4 | offset of the vector | |
//! | vectors | SPRG3 | `*mut Registers` | |
//! | | SPRG1 | | r1 of the guest |
//!
//! The vectors are at the start of the class binary, at a multiple of 64K, because EVPR holds no other
//! address (User's Manual, section 5.4.4). Vectors that are 16 bytes apart have room for four instructions.

mod copy;
mod short;
mod translation;

use crate::context::{
    CONDITION, COUNT, Context, HOST_STACK, LINK, PC, Registers, STATE, TRAP_ADDRESS, TRAP_STATE,
    TRAP_SYNDROME, XER,
};
use crate::layout::MARK;
use crate::sysreg::{DCCR, DEAR, ESR, EVPR, ICCR, SPRG1, SPRG3, SRR0, SRR1};
use crate::traps::on_trap;
use core::arch::global_asm;
use core::mem::offset_of;

global_asm!(
    r#"
    .section .head, "ax", @progbits
    .global bulkhead_vectors
bulkhead_vectors:
    b       bulkhead_start

    .macro  vector offset
    .org    bulkhead_vectors + \offset
    mtspr   {own_r1}, 1
    mfspr   1, {registers}
    stw     0, 0(1)
    li      0, \offset
    b       bulkhead_trap
    .endm

    .macro  short_vector offset, rest
    .org    bulkhead_vectors + \offset
    mtspr   {own_r1}, 1
    mfspr   1, {registers}
    stw     0, 0(1)
    b       \rest
    .endm

    vector  0x100
    vector  0x200
    .org    bulkhead_vectors + 0x300
    mtspr   {own_r1}, 1
    mfspr   1, {registers}
    stmw    18, 72(1)
    b       bulkhead_data_storage
    .org    bulkhead_vectors + 0x400
    mtspr   {own_r1}, 1
    mfspr   1, {registers}
    stmw    18, 72(1)
    b       bulkhead_instruction_storage
    vector  0x500
    vector  0x600
    .org    bulkhead_vectors + 0x700
    mtspr   {own_r1}, 1
    mfspr   1, {registers}
    stmw    0, 0(1)
    mfcr    3
    mfspr   7, {srr0}
    mfspr   5, {esr}
    lmw     27, {words}(1)
    xor.    6, 5, 30
    bne     1f
    mtmsr   31
    isync
    lwz     9, 0(7)
    rlwinm  10, 9, 1, 20, 29
    cmplwi  10, 4 * 256
    blt     short_alone
    not     5, 7
    andi.   5, 5, 0xFE0
    beq     2f
    lmw     24, 0(7)
    mtmsr   6                               // it is 0
    isync
    addi    8, 1, {line}
    stmw    24, 0(8)
3:  mfspr   2, {own_r1}
    stw     2, 4(1)
    mfctr   4
    cmplwi  1, 10, 4 * 467                  // `mtspr`; CR0 is not equal here, see `short`
    beq     1, short_write_register
    cmplwi  1, 10, 4 * 339                  // `mfspr`
    beq     1, short_read_register
    addis   10, 10, SHORT_INSTRUCTIONS@ha
    lwz     10, SHORT_INSTRUCTIONS@l(10)
    mtctr   10
    bctr
1:  b       short_hand_over
2:  rlwinm. 5, 7, 0, 0, 26                  // at the end of a page: the line, which is no line 0
    lmw     24, 0(5)
    mtmsr   6
    isync
    addi    8, 1, {line}
    stmw    24, 0(8)
    rlwimi  8, 7, 0, 27, 29
    b       3b
    vector  0x800
    .org    bulkhead_vectors + 0xC00
    mtspr   {own_r1}, 1
    mfspr   1, {registers}
    stmw    27, 108(1)
    b       bulkhead_system_call
    short_vector 0x1000, bulkhead_timer
    short_vector 0x1010, bulkhead_fixed
    short_vector 0x1020, bulkhead_watchdog
    .org    bulkhead_vectors + 0x1100
    mtspr   {own_r1}, 1
    mfspr   1, {registers}
    stmw    20, 80(1)
    b       bulkhead_data_miss
    .org    bulkhead_vectors + 0x1200
    mtspr   {own_r1}, 1
    mfspr   1, {registers}
    stmw    20, 80(1)
    b       bulkhead_instruction_miss
    vector  0x2000

    .section .text.entry, "ax", @progbits
bulkhead_timer:
    li      0, 0x1000
    b       bulkhead_trap
bulkhead_fixed:
    li      0, 0x1010
    b       bulkhead_trap
bulkhead_watchdog:
    li      0, 0x1020
    .global bulkhead_trap
bulkhead_trap:
    stmw    2, 8(1)
    mfspr   2, {own_r1}
    stw     2, 4(1)
    mfcr    3
    mflr    4
    mfctr   5
    mfxer   6
    mfspr   7, {srr0}
    mfspr   8, {srr1}
    mfspr   9, {esr}
    mfspr   10, {dear}
    .global bulkhead_stored
bulkhead_stored:                            // the general registers are stored, r3 to r10 are the others
    stw     3, {condition}(1)
    stw     4, {link}(1)
    stw     5, {count}(1)
    stw     6, {xer}(1)
    stw     7, {pc}(1)
    stw     8, {trap_state}(1)
    stw     9, {trap_syndrome}(1)
    stw     10, {trap_address}(1)
    mr      4, 0
    lwz     1, {host_stack}(1)
    lwz     3, 8(1)
    bl      {on_trap}
    cmpwi   3, 0
    bne     1f
    mfspr   1, {registers}
bulkhead_resume:
    lwz     3, {condition}(1)
    lwz     4, {link}(1)
    lwz     5, {count}(1)
    lwz     6, {xer}(1)
    lwz     7, {pc}(1)
    lwz     8, {state}(1)
    mtcr    3
    mtlr    4
    mtctr   5
    mtxer   6
    mtspr   {srr0}, 7
    mtspr   {srr1}, 8
    lwz     0, 0(1)
    lmw     2, 8(1)
    lwz     1, 4(1)
    rfi
1:  lmw     13, 32(1)
    lwz     0, 12(1)
    mtcr    0
    lwz     0, 116(1)
    mtlr    0
    addi    1, 1, 112
    blr

    .global bulkhead_enter
bulkhead_enter:
    stwu    1, -112(1)
    mflr    0
    stw     0, 116(1)
    mfcr    0
    stw     0, 12(1)
    stmw    13, 32(1)
    stw     4, 8(1)
    stw     1, {host_stack}(3)
    addi    5, 1, 16                        // a reservation of the guest that ran before must not serve this one
    stwcx.  4, 0, 5
    mtspr   {registers}, 3
    mr      1, 3
    b       bulkhead_resume
    .global bulkhead_idle
bulkhead_idle:
    lis     3, 4                            // MSR.WE, and MSR.EE
    ori     3, 3, 0x8000
2:  mtmsr   3
    isync
    b       2b

bulkhead_start:
    li      3, 0
    mtmsr   3
    isync
    mtspr   {dccr}, 3                       // no reset empties the caches, and a boot loader may have used them
    mtspr   {iccr}, 3
    iccci   0, 3
    isync
    li      4, 512                          // lines of 32 bytes of each way; more than a part has do no harm
    mtctr   4
    li      4, 0
7:  dccci   0, 4
    addi    4, 4, 32
    bdnz    7b
    sync
    lis     1, __stack_top@ha
    addi    1, 1, __stack_top@l
    lis     6, bulkhead_stack_mark@ha
    lwz     6, bulkhead_stack_mark@l(6)
    lis     4, __stack_guard@ha
    addi    4, 4, __stack_guard@l
    lis     5, __stack_bottom@ha
    addi    5, 5, __stack_bottom@l
6:  stw     6, 0(4)
    addi    4, 4, 4
    cmplw   4, 5
    blt     6b
    lis     4, __bss_start@ha
    addi    4, 4, __bss_start@l
    lis     5, __bss_end@ha
    addi    5, 5, __bss_end@l
3:  cmplw   4, 5
    bge     4f
    stw     3, 0(4)
    addi    4, 4, 4
    b       3b
4:  lis     4, bulkhead_vectors@ha
    addi    4, 4, bulkhead_vectors@l
    mtspr   {evpr}, 4
    stwu    3, -16(1)
    bl      primary_main
5:  b       5b

    .section .rodata.mark, "a", @progbits
    .balign 4
    .global bulkhead_stack_mark
bulkhead_stack_mark:
    .long   {mark}
"#,
    words = const offset_of!(Context, short.words.all),
    line = const offset_of!(Context, short.line),
    condition = const CONDITION,
    link = const LINK,
    count = const COUNT,
    xer = const XER,
    pc = const PC,
    trap_state = const TRAP_STATE,
    trap_syndrome = const TRAP_SYNDROME,
    trap_address = const TRAP_ADDRESS,
    state = const STATE,
    host_stack = const HOST_STACK,
    own_r1 = const SPRG1,
    registers = const SPRG3,
    srr0 = const SRR0,
    srr1 = const SRR1,
    esr = const ESR,
    dear = const DEAR,
    evpr = const EVPR,
    dccr = const DCCR,
    iccr = const ICCR,
    mark = const MARK,
    on_trap = sym on_trap,
);

#[expect(
    improper_ctypes,
    reason = "the machine goes through the assembly as an address"
)]
unsafe extern "C" {
    /// Runs with these registers until `on_trap` ends the run. See the module's table.
    pub(crate) fn bulkhead_enter(registers: *mut Registers, machine: *mut crate::Machine);
    /// Waits for an interrupt.
    pub(crate) fn bulkhead_idle() -> !;
}
