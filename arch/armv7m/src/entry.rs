// SPDX-License-Identifier: Apache-2.0
//! All assembly of the backend that is more than one instruction: vector table, first instructions, and the
//! way into and out of a guest.
//!
//! **Boot.** The CPU starts in Thread mode. The first steps make memory what the compiler expects, enable the
//! configurable faults and make PendSV pending. The handler of PendSV is where the hypervisor begins, and it
//! never returns. After that PendSV is the end of an early start (`early`).
//!
//! **Guest entry and exit.** While a guest runs, the main stack holds the registers that Rust code wants
//! back, and below them the guest's [`Registers`], the [`Machine`] and the counters of exits. Any exception
//! of the guest saves r4 to r11 there, is counted by its vector, and calls `on_trap`, or the shortest way of
//! that exception first. If that answers 0, the guest goes on. Otherwise `bulkhead_enter` returns, still in
//! Handler mode, as the handler of that exception. The next `bulkhead_enter` returns from the exception.
//!
//! | at | register | meaning in | meaning out |
//! |---|---|---|---|
//! | `bulkhead_enter` | r0 | `*mut Registers` to run with | |
//! | | r1 | `*mut Machine`, lent to the handler | |
//! | | r2 | `&Exits` of the vCPU, or of the pCPU that waits | |
//! | | r4..r11, sp | the host's | the same |
//! | `on_trap` | r0 | `*mut Machine` | 0: go on in the guest |
//! | | r1 | number of the exception | |
//! | `on_call`, `on_memory`, `on_bus`, `on_usage` | r0 | `*mut Machine` | as of `on_trap` |
//! | | r2 | `*mut Registers` that `bulkhead_enter` was given | |
//! | `crash` | r0 | where the stack pointer was | |
//! | | r1 | number of the exception | |
//!
//! References are to the Armv7-M Architecture Reference Manual, Arm DDI 0403E.e, here and everywhere in this
//! crate.

use crate::arrival::ARRIVALS;
use crate::context::Registers;
use crate::crash::crash;
use crate::lines::{self, OWN, PARTITIONS};
use crate::quick::{on_bus, on_call, on_memory, on_usage};
use crate::starts::{self, EARLY, Early, STARTED};
use crate::sysreg::MAX_LINES;
use crate::traps::on_trap;
use bulkhead_abi::log::{Area, Exits, Pcpu};
use core::arch::global_asm;
use core::mem::offset_of;

global_asm!(
    r#"
    .syntax unified
    .thumb
    .section .vectors, "a", %progbits
    .balign 256                             // VTOR (B3.2.5): as many words as a power of two
bulkhead_vectors:
    .word   __stack_top
    .word   bulkhead_start
    .word   bulkhead_crash                  // NMI
    .word   bulkhead_hard_fault
    .word   bulkhead_memory                 // MemManage
    .word   bulkhead_bus                    // BusFault
    .word   bulkhead_usage                  // UsageFault
    .rept   4
    .word   bulkhead_crash
    .endr
    .word   bulkhead_call                   // SVCall
    .word   bulkhead_crash
    .word   bulkhead_crash
    .word   bulkhead_first                  // PendSV
    .if     {has_early}
    .word   bulkhead_systick                // SysTick: a HardFault of a guest, or the end of an early start
    .else
    .word   bulkhead_fault
    .endif
    .rept   {lines}
    .word   bulkhead_line
    .endr

    .section .first, "ax", %progbits
    .global bulkhead_start
    .type   bulkhead_start, %function
    .thumb_func
bulkhead_start:
    ldr     r0, =__stack_top                // after a reset it is what the word before the reset vector says: a guest's
    mov     sp, r0
    ldr     r0, =0xE000ED00                 // SCB
    ldr     r1, =bulkhead_vectors
    str     r1, [r0, #0x08]                 // VTOR
    // A boot loader may have left the caches of a Cortex-M7 on (Arm DDI 0403E, B2.2). Code that is copied to
    // RAM would be old in them, and so would be data for a device that accesses memory by itself.
    ldr     r1, [r0, #0x14]                 // CCR: IC and DC, which no CPU without caches has
    ands    r2, r1, #0x30000
    beq     4f
    bic     r1, r1, #0x30000
    dsb
    str     r1, [r0, #0x14]
    dsb
    isb
    movs    r2, #0
    str     r2, [r0, #0x84]                 // CSSELR: the data cache of level 1
    dsb
    ldr     r3, [r0, #0x80]                 // CCSIDR
    ubfx    r1, r3, #13, #15                // sets - 1
    ubfx    r4, r3, #3, #10                 // ways - 1
    and     r5, r3, #7                      // log2 of the bytes of a line - 4
    adds    r5, #4
    clz     r6, r4                          // a way is in the highest bits
5:  mov     r3, r4
6:  lsl     r7, r3, r6
    lsl     r2, r1, r5
    orr     r7, r7, r2
    str     r7, [r0, #0x274]                // DCCISW
    subs    r3, #1
    bpl     6b
    subs    r1, #1
    bpl     5b
    movs    r2, #0
    str     r2, [r0, #0x250]                // ICIALLU
    dsb
    isb
4:  ldr     r0, =__data_start
    ldr     r1, =__data_load
    ldr     r2, =__data_end
1:  cmp     r0, r2
    itt     lo
    ldrlo   r3, [r1], #4
    strlo   r3, [r0], #4
    blo     1b
    ldr     r0, =__bss_start
    ldr     r2, =__bss_end
    movs    r3, #0
2:  cmp     r0, r2
    it      lo
    strlo   r3, [r0], #4
    blo     2b
    ldr     r0, =0xE000ED00                 // SCB
    ldr     r1, =0x00070000                 // SHCSR: MemManage, BusFault and UsageFault
    str     r1, [r0, #0x24]
    ldr     r1, =0x10000000                 // ICSR.PENDSVSET
    str     r1, [r0, #0x04]
    dsb
    isb
3:  b       3b
    .ltorg

    .section .text.entry, "ax", %progbits

    .type   bulkhead_first, %function
    .thumb_func
bulkhead_first:
    .if     {has_early}
    ldr     r0, ={early}
    ldr     r1, [r0, #{has_begun}]
    cmp     r1, #0
    bne     bulkhead_trap
    movs    r1, #1
    str     r1, [r0, #{has_begun}]
    .endif
    ldr     r0, =__stack_top
    mov     sp, r0
    movs    r0, #1                          // CONTROL.nPRIV: Thread mode is unprivileged from now on
    msr     control, r0
    isb
    bl      primary_main

    .macro  trap name, function, counter
    .type   \name, %function
    .thumb_func
\name:
    mrs     r1, psp
    ldrd    r2, r0, [sp]
    stmia   r2!, {{r4-r11}}
    strd    r1, lr, [r2]
    subs    r2, #32
    ldr     r3, [sp, #8]
    ldr     r1, [r3, #\counter]
    adds    r1, #1
    str     r1, [r3, #\counter]
    mrs     r1, ipsr
    bl      \function
    cbnz    r0, 2f
    ldr     r0, [sp]
    ldmia   r0!, {{r4-r11}}
    ldrd    r1, lr, [r0]
    msr     psp, r1
    bx      lr
2:  add     sp, #12
    pop     {{r4-r11, pc}}
    .endm
    trap    bulkhead_call, {on_call}, {calls}
    trap    bulkhead_memory, {on_memory}, {accesses}
    trap    bulkhead_bus, {on_bus}, {accesses}
    trap    bulkhead_usage, {on_usage}, {instructions}
    .global bulkhead_fault
    trap    bulkhead_fault, {on_trap}, {other}
    trap    bulkhead_trap, {on_trap}, {interrupts}

    // The handler of a line. If the line is prompt, it may have interrupted the hypervisor. The handler then
    // notes the time (`bulkhead_arrival`), and the line waits for its turn. Only registers that the CPU has
    // pushed are changed.
    .type   bulkhead_line, %function
    .thumb_func
bulkhead_line:
    mrs     r0, ipsr
    subs    r0, #16
    ldr     r1, =0xE000E400                 // NVIC_IPR (B3.4.7)
    ldrb    r2, [r1, r0]
    cmp     r2, #{own}
    bhs     bulkhead_trap
    .if     {has_early}
    cmp     r2, #{early_lines}
    beq     bulkhead_early
    .endif
    .global bulkhead_arrival
    .type   bulkhead_arrival, %function
    .thumb_func
bulkhead_arrival:
    ldr     r3, ={arrivals}
    ldr     r2, [r3], #4                    // the address of the counter
    ldr     r2, [r2]
    str     r2, [r3, r0, lsl #2]
    movs    r2, #{partitions}
    strb    r2, [r1, r0]
    ldr     r1, =0xE000EF00                 // STIR (B3.2.26): it is pending again
    str     r0, [r1]
    ldr     r1, =__log_area + {arrived}
    ldr     r0, [r1]
    adds    r0, #1
    str     r0, [r1]
    dsb
    bx      lr
    .ltorg

    .global bulkhead_enter
    .type   bulkhead_enter, %function
    .thumb_func
bulkhead_enter:
    push    {{r4-r11, lr}}
    push    {{r0-r2}}
    ldr     r0, [sp]
    ldmia   r0!, {{r4-r11}}
    ldrd    r1, lr, [r0]
    msr     psp, r1
    bx      lr

    // A fault from Thread mode is a guest's: BKPT without a debugger (C1.5.1). No line preempts HardFault
    // (B1.5.4), also no prompt one. So the hypervisor does not handle the fault here, but as SysTick, which
    // nothing else makes pending, and which follows without an instruction of the guest between them.
    //
    // The hypervisor itself has one such instruction, to ask an emulator to end. Where no code listens, that
    // instruction does nothing.
    .type   bulkhead_hard_fault, %function
    .thumb_func
bulkhead_hard_fault:
    tst     lr, #4
    beq     1f
    .if     {has_early}
    ldr     r0, ={early}
    ldr     r1, [r0, #{state}]
    cmp     r1, #{started}
    beq     bulkhead_early_end
    .endif
    ldr     r0, =0xE000ED00                 // SCB
    ldr     r1, =0x04000000                 // ICSR.PENDSTSET
    str     r1, [r0, #0x04]
    dsb
    bx      lr
1:  ldr     r0, [sp, #24]
    ldr     r1, =bulkhead_ask_emulator
    bic     r1, r1, #1
    cmp     r0, r1
    bne     bulkhead_crash
    adds    r0, #2
    str     r0, [sp, #24]
    bx      lr

    .type   bulkhead_crash, %function
    .thumb_func
bulkhead_crash:
    mov     r0, sp
    mrs     r1, ipsr
    ldr     r2, =__stack_top
    subs    r3, r2, r0
    cmp     r3, #bulkhead_crash_room        // deeper, or on no stack at all: what is at the stack's top is not needed any more
    it      hi
    movhi   sp, r2
    bl      {crash}
    // Bytes of the stack that a crash record has: those below the frame of a shallow crash, those at the top
    // for any other. `xtask stack` reads this symbol.
    .global bulkhead_crash_room
    .set    bulkhead_crash_room, 1024

    .global bulkhead_exit_emulator
    .type   bulkhead_exit_emulator, %function
    .thumb_func
bulkhead_exit_emulator:
    push    {{r4, lr}}
    mov     r1, r0
    movs    r0, #0x18                       // SYS_EXIT
    .type   bulkhead_ask_emulator, %function
    .thumb_func
bulkhead_ask_emulator:
    bkpt    #0xab
    pop     {{r4, pc}}

    // Waits for an interrupt, in privileged Thread mode.
    .global bulkhead_idle
    .type   bulkhead_idle, %function
    .thumb_func
bulkhead_idle:
    dsb                                     // what was written is there before the CPU sleeps (B1.5.19)
    wfi
    b       bulkhead_idle
    .ltorg
"#,
    lines = const MAX_LINES,
    own = const OWN,
    partitions = const PARTITIONS,
    arrivals = sym ARRIVALS,
    has_early = const starts::IS_THERE as u32,
    early = sym EARLY,
    early_lines = const lines::EARLY,
    started = const STARTED,
    state = const offset_of!(Early, state),
    has_begun = const offset_of!(Early, has_begun),
    on_trap = sym on_trap,
    on_call = sym on_call,
    on_memory = sym on_memory,
    on_bus = sym on_bus,
    on_usage = sym on_usage,
    calls = const offset_of!(Exits, calls),
    accesses = const offset_of!(Exits, accesses),
    instructions = const offset_of!(Exits, instructions),
    other = const offset_of!(Exits, other),
    interrupts = const offset_of!(Exits, interrupts),
    arrived = const offset_of!(Area, pcpus) + offset_of!(Pcpu, exits.interrupts),
    crash = sym crash,
);

#[expect(
    improper_ctypes,
    reason = "the machine goes through the assembly as an address"
)]
unsafe extern "C" {
    /// Runs with these registers until `on_trap` ends the run. See the module's table.
    pub(crate) fn bulkhead_enter(
        registers: *mut Registers,
        machine: *mut crate::Machine,
        exits: &'static Exits,
    );
    /// Asks a debugger or emulator to end everything with this reason. Returns if there is none.
    pub(crate) fn bulkhead_exit_emulator(reason: u32);
    /// Waits for an interrupt.
    pub(crate) fn bulkhead_idle() -> !;
}
