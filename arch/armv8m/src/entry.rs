// SPDX-License-Identifier: Apache-2.0
//! All assembly of the backend that is more than one instruction: vector table, first instructions, the way
//! into and out of a partition, and the few instructions that the hypervisor has the Non-secure world execute.
//!
//! **Boot.** The CPU starts in Secure Thread mode. The first steps make memory what the compiler expects, enable
//! the configurable faults and make PendSV pending. The handler of PendSV is where the hypervisor begins, and
//! it never returns.
//!
//! **Entry and exit.** While a partition runs, the Secure main stack holds the registers that Rust code wants
//! back, and below them the partition's [`Registers`], the [`Machine`](crate::Machine) and the counters of
//! exits. Any Secure exception of the partition saves r4 to r11 there, is counted by its vector, and calls
//! `on_trap`. If that answers 0, the partition goes on. Otherwise `bulkhead_enter` returns, still in Handler
//! mode, as the handler of that exception. The next `bulkhead_enter` returns from the exception.
//!
//! | at | register | meaning in | meaning out |
//! |---|---|---|---|
//! | `bulkhead_enter` | r0 | `*mut Registers` to run with | |
//! | | r1 | `*mut Machine`, lent to the handler | |
//! | | r2 | `&Exits` of the vCPU, or of the pCPU | |
//! | | r4..r11, sp | the host's | the same |
//! | `on_trap` | r0 | `*mut Machine` | 0: go on in the partition |
//! | | r1 | number of the exception | |
//! | `crash` | r0 | where the stack pointer was | |
//! | | r1 | number of the exception | |
//!
//! **The Non-secure block.** One block of the hypervisor's RAM is always Non-secure for the memory protection
//! controller, and for the CPU only while the hypervisor has opened it (`attribution`). No VM runs then. The
//! block has a vector table, some instructions, and room for frames.
//!
//! References are to the Armv8-M Architecture Reference Manual, Arm DDI 0553B, here and everywhere in this
//! crate.

use crate::context::Registers;
use crate::crash::crash;
use crate::sysreg::MAX_LINES;
use crate::traps::on_trap;
use bulkhead_abi::log::Exits;
use core::arch::global_asm;
use core::mem::offset_of;

global_asm!(
    r#"
    .syntax unified
    .thumb
    .section .vectors, "a", %progbits
    .balign 1024                            // VTOR (D1.2.267): as many words as a power of two
bulkhead_vectors:
    .word   __stack_top
    .word   bulkhead_start
    .word   bulkhead_crash                  // NMI
    .word   bulkhead_fault                  // HardFault
    .word   bulkhead_access                 // MemManage
    .word   bulkhead_access                 // BusFault
    .word   bulkhead_instruction            // UsageFault
    .word   bulkhead_access                 // SecureFault
    .rept   3
    .word   bulkhead_crash
    .endr
    .word   bulkhead_call                   // SVCall
    .word   bulkhead_crash
    .word   bulkhead_crash
    .word   bulkhead_first                  // PendSV
    .word   bulkhead_crash                  // SysTick
    .rept   {lines}
    .word   bulkhead_line
    .endr

    .section .first, "ax", %progbits
    .global bulkhead_start
    .type   bulkhead_start, %function
    .thumb_func
bulkhead_start:
    ldr     r0, =__stack_top
    mov     sp, r0
    ldr     r0, =0xE000ED00                 // SCB
    ldr     r1, =bulkhead_vectors
    str     r1, [r0, #0x08]                 // VTOR
    ldr     r0, =__data_start
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
    ldr     r1, =0x000F0000                 // SHCSR: MemManage, BusFault, UsageFault and SecureFault
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
    ldr     r0, =__stack_top
    mov     sp, r0
    movs    r0, #1                          // CONTROL.nPRIV: Secure Thread mode is unprivileged from now on
    msr     control, r0
    isb
    bl      primary_main

    // EXC_RETURN (D1.2.95): S tells the world whose stack has the frame, SPSEL the stack. The hypervisor itself is
    // the only Secure code on the main stack.
    .macro  trap name, counter
    .type   \name, %function
    .thumb_func
\name:
    tst     lr, #0x40
    beq     1f
    tst     lr, #4
    beq     bulkhead_crash
    mrs     r1, psp
    b       3f
1:  tst     lr, #4
    ite     ne
    mrsne   r1, psp_ns
    mrseq   r1, msp_ns
3:  ldrd    r2, r0, [sp]
    stmia   r2!, {{r4-r11}}
    strd    r1, lr, [r2]
    ldr     r3, [sp, #8]
    ldr     r1, [r3, #\counter]
    adds    r1, #1
    str     r1, [r3, #\counter]
    mrs     r1, ipsr
    bl      {on_trap}
    cbnz    r0, 2f
    b       bulkhead_resume
2:  add     sp, #12
    pop     {{r4-r11, pc}}
    .endm
    trap    bulkhead_call, {calls}
    trap    bulkhead_access, {accesses}
    trap    bulkhead_instruction, {instructions}
    .global bulkhead_fault
    trap    bulkhead_fault, {other}
    trap    bulkhead_line, {interrupts}

    .global bulkhead_enter
    .type   bulkhead_enter, %function
    .thumb_func
bulkhead_enter:
    push    {{r4-r11, lr}}
    push    {{r0-r2}}
bulkhead_resume:
    ldr     r0, [sp]
    ldmia   r0!, {{r4-r11}}
    ldrd    r1, lr, [r0]
    tst     lr, #0x40
    it      ne
    msrne   psp, r1
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

    // Waits for an interrupt, in privileged Thread mode.
    .global bulkhead_idle
    .type   bulkhead_idle, %function
    .thumb_func
bulkhead_idle:
    wfi
    b       bulkhead_idle
    .ltorg

    // Copies `r2` groups of eight words from `r0` to `r1`, each by one load and one store.
    .global bulkhead_copy
    .type   bulkhead_copy, %function
    .thumb_func
bulkhead_copy:
    push    {{r4-r10}}
1:  ldmia   r0!, {{r3-r10}}
    stmia   r1!, {{r3-r10}}
    subs    r2, #1
    bne     1b
    pop     {{r4-r10}}
    bx      lr

    // Copies the 16 regions of the Non-secure protection unit to memory at r0, or from there.
    .global bulkhead_save_regions
    .type   bulkhead_save_regions, %function
    .thumb_func
bulkhead_save_regions:
    push    {{r4-r11}}
    ldr     r1, =0xE002ED98                 // MPU_RNR, then RBAR, RLAR and their aliases (D1.2.176 to 181)
    movs    r2, #0
1:  str     r2, [r1]
    adds    r3, r1, #4
    ldmia   r3, {{r4-r11}}
    stmia   r0!, {{r4-r11}}
    adds    r2, #4
    cmp     r2, #16
    bne     1b
    pop     {{r4-r11}}
    bx      lr

    .global bulkhead_load_regions
    .type   bulkhead_load_regions, %function
    .thumb_func
bulkhead_load_regions:
    push    {{r4-r11}}
    ldr     r1, =0xE002ED98
    movs    r2, #0
1:  str     r2, [r1]
    adds    r3, r1, #4
    ldmia   r0!, {{r4-r11}}
    stmia   r3, {{r4-r11}}
    adds    r2, #4
    cmp     r2, #16
    bne     1b
    pop     {{r4-r11}}
    bx      lr
    .ltorg

    // Calls Non-secure code of the block below: SysTick stops, and r0 gets its CSR, RVR and CVR.
    .global bulkhead_stop_timer
    .type   bulkhead_stop_timer, %function
    .thumb_func
bulkhead_stop_timer:
    push    {{r3-r11, lr}}
    mov     r4, r0
    ldr     r3, =bulkhead_other_stop
    bic     r3, r3, #1                      // BLXNS (C2.4.26): to the Non-secure world
    blxns   r3
    stmia   r4, {{r0-r2}}
    pop     {{r3-r11, pc}}

    // The same, to start it.
    .global bulkhead_start_timer
    .type   bulkhead_start_timer, %function
    .thumb_func
bulkhead_start_timer:
    push    {{r3-r11, lr}}
    ldm     r0, {{r0-r2}}
    ldr     r3, =bulkhead_other_start
    bic     r3, r3, #1
    blxns   r3
    pop     {{r3-r11, pc}}
    .ltorg

    .section .nonsecure, "ax", %progbits
    .balign 1024
    .global bulkhead_other_vectors
bulkhead_other_vectors:
    .rept   {vectors}
    .word   bulkhead_other_fault + 1
    .endr
    .thumb_func
    .global bulkhead_other_end
bulkhead_other_end:
    bx      lr
    // A load of Secure memory: the hypervisor gets control. r1 is 0 in each frame.
    .global bulkhead_other_fault
bulkhead_other_fault:
    ldr     r1, [r1]
    b       bulkhead_other_fault
    // Stops SysTick, whose registers Secure software may not reach in QEMU 7.2. Returns CSR, RVR and CVR.
    .thumb_func
    .global bulkhead_other_stop
bulkhead_other_stop:
    ldr     r3, =0xE000E010
    ldmia   r3, {{r0-r2}}
    mov     r12, #0
    str     r12, [r3]
    bx      lr
    // Starts SysTick with the CSR in r0, RVR in r1 and what is left of its period in r2, if that is not 0.
    .thumb_func
    .global bulkhead_other_start
bulkhead_other_start:
    ldr     r3, =0xE000E010
    cbz     r2, 2f
    str     r2, [r3, #4]
    str     r2, [r3, #8]
    str     r0, [r3]
1:  ldr     r2, [r3, #8]
    cmp     r2, #0
    beq     1b
    str     r1, [r3, #4]
    bx      lr
2:  str     r1, [r3, #4]
    str     r2, [r3, #8]
    str     r0, [r3]
    bx      lr
    .ltorg
    .balign 8
    .global bulkhead_other_frames
bulkhead_other_frames:
    .space  {frames}
    .global bulkhead_other_stack
bulkhead_other_stack:
    .balign 1024
    .text
"#,
    lines = const MAX_LINES,
    vectors = const MAX_LINES + 16,
    frames = const FRAMES_BYTES,
    on_trap = sym on_trap,
    calls = const offset_of!(Exits, calls),
    accesses = const offset_of!(Exits, accesses),
    instructions = const offset_of!(Exits, instructions),
    other = const offset_of!(Exits, other),
    interrupts = const offset_of!(Exits, interrupts),
    crash = sym crash,
);

/// Frames that the Non-secure block has room for.
pub(crate) const FRAMES: usize = 8;
const FRAMES_BYTES: usize = FRAMES * 32;

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
}

unsafe extern "C" {
    /// Waits for an interrupt.
    pub(crate) fn bulkhead_idle() -> !;
    /// Copies `groups` groups of eight words.
    pub(crate) fn bulkhead_copy(from: *const u32, to: *mut u32, groups: u32);
    /// Reads the regions of the Non-secure protection unit.
    pub(crate) fn bulkhead_save_regions(to: *mut [u32; 32]);
    /// Writes them.
    pub(crate) fn bulkhead_load_regions(from: *const [u32; 32]);
    /// Stops the Non-secure SysTick, and stores CSR, RVR and CVR.
    pub(crate) fn bulkhead_stop_timer(to: *mut [u32; 3]);
    /// Starts it with CSR, RVR, and what is left of the period.
    pub(crate) fn bulkhead_start_timer(from: *const [u32; 3]);
    pub(crate) static bulkhead_other_vectors: u8;
    pub(crate) static bulkhead_other_end: u8;
    pub(crate) static bulkhead_other_fault: u8;
    pub(crate) static bulkhead_other_frames: u8;
    pub(crate) static bulkhead_other_stack: u8;
}
