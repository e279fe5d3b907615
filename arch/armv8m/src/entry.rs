// SPDX-License-Identifier: Apache-2.0
//! All assembly of the backend that is more than one instruction: vector table, first instructions, the way
//! into and out of a partition, and the few instructions that the hypervisor has the Non-secure world
//! execute.
//!
//! **Boot.** The CPU starts in Secure Thread mode. The first steps make memory what the compiler expects,
//! enable the configurable faults and make PendSV pending. The handler of PendSV is where the hypervisor
//! begins, and it never returns.
//!
//! **Entry and exit.** While a partition runs, the Secure main stack holds the registers that Rust code wants
//! back, and below them the partition's [`Registers`](crate::context::Registers), the
//! [`Machine`](crate::Machine) and the counters of exits. Any Secure exception of the partition saves r4 to
//! r11 there, is counted by its vector, and calls `on_trap`. Only SysTick is not counted: it follows a line,
//! which is. If the answer is 0, the partition goes on. Otherwise `bulkhead_enter` returns, still in Handler
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

use crate::crash::crash;
use crate::enter::{FRAME_BYTES, FRAMES};
use crate::pair::{IS_PAIR, STACK_BYTES};
use crate::sysreg::MAX_LINES;
use crate::traps::on_trap;
use crate::world::{NO_STACK, World};
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
    .word   bulkhead_after_line             // SysTick
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
    .global bulkhead_start_cpu
bulkhead_start_cpu:
    ldr     r0, =0xE000ED00                 // SCB
    .if     {is_pair}
    ldr     r1, =bulkhead_vectors
    str     r1, [r0, #0x08]                 // VTOR
    .endif
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
    .if     {is_pair}
    mrs     r0, msplim                      // the stack of the second CPU, which alone has this limit
    cbz     r0, 1f
    b       bulkhead_second_first
1:
    .endif
    ldr     r0, =__stack_top
    mov     sp, r0
    movs    r0, #1                          // CONTROL.nPRIV: Secure Thread mode is unprivileged from now on
    msr     control, r0
    isb
    bl      primary_main

    // EXC_RETURN (D1.2.95): S tells the world whose stack has the frame. SPSEL is about the Secure world's
    // stacks, also if the frame is on another one. The frame of the Non-secure world is on its process stack
    // if its Thread mode was interrupted and CONTROL_NS.SPSEL is set, else on its main stack. The hypervisor
    // itself is the only Secure code on the Secure main stack.
    //
    // A VM that returns from a handler with a value of a processor without worlds (ES or S set) gets a
    // SecureFault, INVER, with S as the VM had it. With S alone set it gets INVIS: the Secure stacks have no
    // signature for it. No other software makes either. Or the VM's own fault becomes a HardFault of which
    // the Secure registers say nothing. The handler has ended, so the value is made what it would be here.
    // Its SPSEL is lost, so the stack is the one that CONTROL_NS says.
    .macro  trap name, counter, may_be_foreign
    .type   \name, %function
    .thumb_func
\name:
    tst     lr, #0x40
    beq     1f
    .if     \may_be_foreign
    ldr     r3, =0xE000EDE4                 // SFSR
    ldr     r1, [r3]
    tst     r1, #6                          // INVIS, INVER
    bne     6f
    .if     \may_be_foreign > 1
    ldr     r2, [r3, #-0xBC]                // CFSR
    orrs    r1, r2
    bne     5f
    ldr     r2, [r3, #-0xB8]                // HFSR
    lsls    r2, r2, #1                      // FORCED
    bmi     6f
    .endif
    b       5f
6:  bic     lr, lr, #0x44
    orr     lr, lr, #0x21
    b       1f
5:
    .endif
    tst     lr, #4
    beq     bulkhead_crash
    mrs     r1, psp
    b       3f
1:  tst     lr, #8
    beq     4f
    mrs     r1, control_ns
    tst     r1, #2
    beq     4f
    mrs     r1, psp_ns
    b       3f
4:  mrs     r1, msp_ns
3:  ldr     r3, =0xE000ED94                 // MPU_CTRL: the hypervisor writes where partitions may only read
    movs    r2, #0
    str     r2, [r3]
    dsb                                     // the stores that follow are checked by the unit as it is now (B6.4)
    isb
    ldrd    r2, r0, [sp]
    stmia   r2!, {{r4-r11}}
    strd    r1, lr, [r2]
    .if     \counter >= 0
    ldr     r3, [sp, #8]
    ldr     r1, [r3, #\counter]
    adds    r1, #1
    str     r1, [r3, #\counter]
    .endif
    mrs     r1, ipsr
    bl      {on_trap}
    cbnz    r0, 2f
    b       bulkhead_resume
2:  add     sp, #12
    pop     {{r4-r11, pc}}
    .endm
    trap    bulkhead_call, {calls}, 0
    trap    bulkhead_access, {accesses}, 1
    trap    bulkhead_instruction, {instructions}, 0
    .global bulkhead_fault
    trap    bulkhead_fault, {other}, 2
    trap    bulkhead_line, {interrupts}, 0
    trap    bulkhead_after_line, -1, 0      // the line is counted

    .global bulkhead_enter
    .type   bulkhead_enter, %function
    .thumb_func
bulkhead_enter:
    push    {{r4-r11, lr}}
    push    {{r0-r2}}
    // The next function.
    .global bulkhead_resume
    .type   bulkhead_resume, %function
    .thumb_func
bulkhead_resume:
    .if     {is_pair}
    yield                                   // an emulator with one thread runs the other CPU next
    .endif
    ldr     r0, [sp]
    ldmia   r0!, {{r4-r11}}
    ldrd    r1, lr, [r0]
    tst     lr, #0x40
    beq     1f
    msr     psp, r1
    ldr     r0, =0xE000ED94
    movs    r1, #5                          // MPU_CTRL: ENABLE, PRIVDEFENA
    str     r1, [r0]
    dsb
    bx      lr
1:  ldr     r0, =bulkhead_vectors           // no signature for a return to the Secure world
    msr     psp, r0
    movs    r0, #0                          // an exception that follows at once would find what is here
    movs    r1, #0
    movs    r2, #0
    movs    r3, #0
    mov     r12, r0
    bx      lr
    .ltorg

    .type   bulkhead_crash, %function
    .thumb_func
bulkhead_crash:
    mov     r0, sp
    mrs     r1, ipsr
    .if     {is_pair}
    mrs     r2, msplim
    cbz     r2, 1f
    add     r2, r2, #{second_stack}
    b       2f
1:
    .endif
    ldr     r2, =__stack_top
2:  subs    r3, r2, r0
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
    dsb                                     // what was written is there before the CPU sleeps
    wfi
    b       bulkhead_idle
    .ltorg

    // Takes the Non-secure world out of the processor into the `World` at r0, but for PRIMASK, lines and
    // floating point. The world is left as after a reset, as far as the instructions of the hypervisor need
    // it.
    .global bulkhead_save_world
    .type   bulkhead_save_world, %function
    .thumb_func
bulkhead_save_world:
    push    {{r3-r11, lr}}
    mrs     r1, msp_ns
    mrs     r2, psp_ns
    mrs     r3, msplim_ns
    mrs     r4, psplim_ns
    mrs     r5, control_ns
    mrs     r6, basepri_ns
    mrs     r7, faultmask_ns
    stmia   r0!, {{r1-r7}}
    movs    r1, #0
    msr     msplim_ns, r1
    msr     psplim_ns, r1
    msr     control_ns, r1
    msr     basepri_ns, r1
    msr     faultmask_ns, r1
    mov     r1, #{no_stack}
    msr     msp_ns, r1
    msr     psp_ns, r1
    ldr     r12, =0xE002ED00                // the Non-secure SCB
    add     r2, r12, #0x08                  // VTOR, AIRCR, SCR, CCR, SHPR1 to SHPR3, SHCSR
    ldm     r2, {{r1, r3-r9}}
    stmia   r0!, {{r1, r3-r9}}
    ldr     r1, [r12, #0x04]                // ICSR
    ldr     r2, [r12, #0x34]                // MMFAR
    ldr     r3, [r12, #0x88]                // CPACR
    ldr     r4, [r12, #0x94]                // MPU_CTRL
    ldr     r5, [r12, #0x98]                // MPU_RNR
    ldr     r6, [r12, #0xC0]                // MPU_MAIR0
    ldr     r7, [r12, #0xC4]                // MPU_MAIR1
    ldr     r8, [r12, #0x234]               // FPCCR
    ldr     r9, [r12, #0x238]               // FPCAR
    ldr     r10, [r12, #0x23C]              // FPDSCR
    stmia   r0!, {{r1-r10}}
    bic     r8, r8, #1                      // no room is to be filled by an instruction of ours (FPCCR.LSPACT)
    str     r8, [r12, #0x234]
    movs    r1, #0
    str     r1, [r12, #0x94]
    str     r1, [r12, #0x10]                // SCR: no sleep at the end of a handler
    ldr     r1, =0x05FA0000                 // AIRCR: the key, PRIGROUP 0
    str     r1, [r12, #0x0C]
    add     r2, r12, #0x9C                  // RBAR, RLAR and their aliases
    .irp    region, 0, 4, 8, 12
    movs    r1, #\region
    str     r1, [r12, #0x98]
    ldm     r2, {{r4-r11}}
    stmia   r0!, {{r4-r11}}
    .endr
    ldr     r3, =bulkhead_other_stop
    b       bulkhead_ask_timer

    // Reads CSR, RVR and CVR of the Non-secure SysTick to memory at r0.
    .global bulkhead_read_timer
    .type   bulkhead_read_timer, %function
    .thumb_func
bulkhead_read_timer:
    push    {{r3-r11, lr}}
    ldr     r6, =0xE002ED94                 // the VM's protection unit may forbid the block
    ldr     r5, [r6]
    movs    r1, #0
    str     r1, [r6]
    ldr     r3, =bulkhead_other_read
    bl      bulkhead_ask_timer_by
    str     r5, [r6]
    dsb
    pop     {{r3-r11, pc}}

bulkhead_ask_timer_by:
    push    {{r3-r11, lr}}
bulkhead_ask_timer:
    mov     r4, r0
    bic     r3, r3, #1                      // BLXNS (C2.4.26): to the Non-secure world
    dsb
    isb
    blxns   r3
    stmia   r4!, {{r0-r2}}
    pop     {{r3-r11, pc}}
    .ltorg

    // Puts the world at r0 into the processor, likewise. r1 has what its timer's CVR is to be, and r2 the
    // bits that ICSR is to get.
    .global bulkhead_load_world
    .type   bulkhead_load_world, %function
    .thumb_func
bulkhead_load_world:
    push    {{r3-r11, lr}}
    mov     r11, r2
    mov     r10, r0
    mov     r2, r1
    add     r3, r0, #{timer}
    ldrd    r0, r1, [r3]
    and     r0, r0, #7
    ldr     r3, =bulkhead_other_start
    bic     r3, r3, #1
    dsb
    isb
    blxns   r3
    ldr     r12, =0xE002ED00
    add     r0, r10, #{regions}
    add     r3, r12, #0x9C
    mov     r1, r10
    mov     lr, r11
    .irp    region, 0, 4, 8, 12
    movs    r2, #\region
    str     r2, [r12, #0x98]
    ldmia   r0!, {{r4-r11}}
    stm     r3, {{r4-r11}}
    .endr
    mov     r0, r1
    ldmia   r0!, {{r1-r7}}
    msr     msp_ns, r1
    msr     psp_ns, r2
    msr     msplim_ns, r3
    msr     psplim_ns, r4
    msr     control_ns, r5
    msr     basepri_ns, r6
    msr     faultmask_ns, r7
    ldmia   r0!, {{r1, r3-r9}}
    ldr     r2, =0xFFFF                     // AIRCR without the status that stands for its key
    and     r3, r3, r2
    movt    r3, #0x05FA
    add     r2, r12, #0x08
    stm     r2, {{r1, r3-r9}}
    ldmia   r0!, {{r1-r10}}
    str     lr, [r12, #0x04]
    str     r2, [r12, #0x34]
    str     r3, [r12, #0x88]
    str     r6, [r12, #0xC0]
    str     r7, [r12, #0xC4]
    str     r9, [r12, #0x238]
    str     r10, [r12, #0x23C]
    str     r8, [r12, #0x234]
    str     r5, [r12, #0x98]
    str     r4, [r12, #0x94]
    pop     {{r3-r11, pc}}
    .ltorg

    // Takes the state of the Non-secure lines into memory at r0: enabled, pending, active, priorities.
    .global bulkhead_save_lines
    .type   bulkhead_save_lines, %function
    .thumb_func
bulkhead_save_lines:
    push    {{r4-r11}}
    ldr     r1, =0xE002E100                 // NVIC_ISER
    ldm     r1, {{r4-r7}}
    add     r2, r1, #0x100                  // NVIC_ISPR
    ldm     r2, {{r8-r11}}
    stmia   r0!, {{r4-r11}}
    add     r2, r1, #0x200                  // NVIC_IABR
    ldm     r2, {{r4-r7}}
    stmia   r0!, {{r4-r7}}
    add     r1, r1, #0x300                  // NVIC_IPR
    .rept   4
    ldmia   r1!, {{r4-r11}}
    stmia   r0!, {{r4-r11}}
    .endr
    pop     {{r4-r11}}
    bx      lr

    // Puts it back, but for active handlers.
    .global bulkhead_load_lines
    .type   bulkhead_load_lines, %function
    .thumb_func
bulkhead_load_lines:
    push    {{r4-r11}}
    ldr     r1, =0xE002E100
    add     r2, r1, #0x300
    add     r3, r0, #48
    .rept   4
    ldmia   r3!, {{r4-r11}}
    stmia   r2!, {{r4-r11}}
    .endr
    ldm     r0, {{r4-r11}}
    add     r2, r1, #0x100
    stm     r2, {{r8-r11}}
    stm     r1, {{r4-r7}}
    pop     {{r4-r11}}
    bx      lr

    // Leaves no Non-secure line and no exception of the system pending or enabled, and no exception of the
    // system active.
    .global bulkhead_clear_other
    .type   bulkhead_clear_other, %function
    .thumb_func
bulkhead_clear_other:
    push    {{r4, r5}}
    ldr     r1, =0xE002E180                 // NVIC_ICER
    mvn     r2, #0
    mvn     r3, #0
    mvn     r4, #0
    mvn     r5, #0
    stm     r1, {{r2-r5}}
    add     r0, r1, #0x100                  // NVIC_ICPR
    stm     r0, {{r2-r5}}
    ldr     r1, =0xE002ED00
    mov     r3, #0x0A000000                 // ICSR: PENDSVCLR, PENDSTCLR
    str     r3, [r1, #0x04]
    movs    r3, #0
    str     r3, [r1, #0x24]                 // SHCSR
    strd    r2, r4, [r1, #0x28]             // CFSR, HFSR
    dsb                                     // no line comes from here on; Cortex-M33, erratum 1435973
    isb
    pop     {{r4, r5}}
    bx      lr
    .ltorg

    .section .nonsecure, "aw", %progbits    // data of the hypervisor, which never executes it
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
    // Reads them.
    .thumb_func
    .global bulkhead_other_read
bulkhead_other_read:
    ldr     r3, =0xE000E010
    ldmia   r3, {{r0-r2}}
    bx      lr
    // Starts SysTick with the CSR in r0, RVR in r1 and what is left of its period in r2, if that is not 0.
    // With bit 31 of r2 its COUNTFLAG is set. Changes r4 and r5.
    .thumb_func
    .global bulkhead_other_start
bulkhead_other_start:
    ldr     r3, =0xE000E010
    cbz     r2, 2f
    tst     r2, #0x80000000
    bne     4f
    str     r2, [r3, #4]
    str     r2, [r3, #8]
    str     r0, [r3]
    mov     r12, #512                       // a cycle of a clock that is as slow as 32 kHz; a clock that stands still ends it
1:  ldr     r2, [r3, #8]
    cbnz    r2, 3f
    subs    r12, r12, #1
    bne     1b
3:  str     r1, [r3, #4]
    bx      lr
2:  str     r1, [r3, #4]
    str     r2, [r3, #8]
    str     r0, [r3]
    bx      lr
4:  ubfx    r4, r2, #0, #24
    movs    r5, #2                          // only the end of a period sets COUNTFLAG: a short one, without interrupt
    str     r5, [r3, #4]
    str     r5, [r3, #8]
    bic     r5, r0, #2
    str     r5, [r3]
    mov     r12, #512
5:  ldr     r5, [r3, #8]
    cbnz    r5, 6f
    subs    r12, r12, #1
    bne     5b
6:  str     r4, [r3, #4]
    mov     r12, #512
7:  ldr     r5, [r3, #8]                    // the rest is larger than the short period
    cmp     r5, #2
    bhi     8f
    subs    r12, r12, #1
    bne     7b
8:  str     r1, [r3, #4]
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
    is_pair = const IS_PAIR as u32,
    second_stack = const STACK_BYTES,
    lines = const MAX_LINES,
    vectors = const MAX_LINES + 16,
    frames = const FRAMES * FRAME_BYTES,
    no_stack = const NO_STACK,
    timer = const offset_of!(World, timer),
    regions = const offset_of!(World, regions),
    on_trap = sym on_trap,
    calls = const offset_of!(Exits, calls),
    accesses = const offset_of!(Exits, accesses),
    instructions = const offset_of!(Exits, instructions),
    other = const offset_of!(Exits, other),
    interrupts = const offset_of!(Exits, interrupts),
    crash = sym crash,
);
