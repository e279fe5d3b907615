// SPDX-License-Identifier: Apache-2.0
//! All assembly of the backend that is more than one instruction: image header, first instructions of every
//! pCPU, exception vectors, and the way into and out of a guest.
//!
//! **Boot.** The flashable file starts with the 64-byte header of the arm64 boot protocol (Linux
//! Documentation/arm64/booting.rst), so that any loader that can start Linux can start it. The class binary
//! is a static position-independent executable. It relocates itself, builds the translation tables of EL2
//! with the MMU off ([`boot::build_tables`]), and only then runs ordinary Rust code.
//!
//! | at | register | meaning in | meaning out |
//! |---|---|---|---|
//! | `_start` | x0 | device tree of the board (ignored) | |
//! | `_secondary_start` | x0 | index of the pCPU (PSCI context id) | |
//! | `primary_main`, `secondary_main` | x0 | index of the pCPU | never returns |
//!
//! **Guest entry and exit.** The stack pointer of EL2 never moves while a guest runs. Below it lies a frame
//! with the host's callee-saved registers, the guest's [`Context`], the [`Machine`](crate::Machine) and the
//! counters of the vCPU's exits. An exception saves only the registers that Rust's calling convention
//! clobbers, and calls a handler. If the handler answers [`RESUME`](crate::enter::RESUME), only those
//! registers are loaded again. A handler must look at x19..x29 if the instruction names one of them. Such a
//! handler answers [`ALL_REGISTERS`] before it does anything but count. Another handler is called then,
//! with all registers saved, and all are loaded again. Any other answer makes `bulkhead_enter` return.
//!
//! | at | register | meaning in | meaning out |
//! |---|---|---|---|
//! | `bulkhead_enter` | x0 | `*mut Context` to run | reason, never `RESUME` |
//! | | x1 | `*mut Machine`, lent to the handlers | |
//! | | x2 | `&Exits` of the vCPU, lent to the handlers | |
//! | | x19..x30, sp | the host's | the same |
//! | handlers | x0 | `*mut Context`, x0..x18 and x30 of the guest saved in it | `RESUME`, `ALL_REGISTERS`, or the reason to return |
//! | | x1 | `*mut Machine` | |
//! | | x2 | ESR_EL2 of a synchronous exception; of another one `&Exits` | |
//! | | x4 | (synchronous) `&Exits`, not if x19..x29 of the guest are saved as well | |
//! | | x19..x29 | the guest's | the guest's |
//! | `bulkhead_take_serror` | x0 | | ESR_EL2 of the SError that was pending, else 0 |
//! | | x1..x3 | | any; ELR_EL2 and SPSR_EL2 are lost |
//! | `record_short` | x0 | `&Context` | |
//! | | x1 | `&Machine` | |
//! | | x2 | ESR_EL2 of a synchronous exception; of another one 0 | |
//! | crash | TPIDR_EL2 | top of this pCPU's emergency stack | |

use crate::context::Context;
use crate::crash::crash;
use crate::enter::ALL_REGISTERS;
use crate::short_trace::record_short;
use crate::stacks::{EMERGENCY_SIZE, EMERGENCY_STACKS, GUARD_SIZE, STACK_SIZE, STACKS};
use crate::traps::{
    on_interrupt, on_serror, on_synchronous, on_synchronous_aarch32, on_synchronous_aarch32_complete,
    on_synchronous_complete,
};
use crate::{boot, mmu};
use core::arch::global_asm;
use core::mem::offset_of;

// Frame at the stack pointer while a guest runs: six pairs x29,x30,x19..x28, then context, machine, counters.
const FRAME_SIZE: usize = 128;
const FRAME_CONTEXT: usize = 96;
const FRAME_MACHINE: usize = 104;
const FRAME_EXITS: usize = 112;

/// SCTLR_EL2 with the MMU off: the RES1 bits of Armv8.0 (Arm DDI 0487 D19.2.119), alignment checks.
const SCTLR_OFF: u64 = 0x30C5_0830 | 1 << 1;
/// SCTLR_EL2: M, C, SA, I and WXN besides.
const SCTLR_ON: u64 = SCTLR_OFF | 1 | 1 << 2 | 1 << 3 | 1 << 12 | 1 << 19;
/// HCR_EL2 while no guest runs: EL1 is AArch64, E2H is 0.
const HCR_BOOT: u64 = 1 << 31;

global_asm!(
    r#"
    .section .head, "ax"
    .global _start
_start:
    b       1f
    nop
    .quad   0                               // text_offset
    .quad   __image_size                    // image_size
    .quad   0xA                             // flags: little-endian, 4 KiB pages, place anywhere
    .quad   0, 0, 0
    .ascii  "ARM\x64"
    .long   0
1:
    msr     daifset, #0xF
    // A loader may have left the MMU on. Nothing may be in the caches alone when it goes off, so this comes
    // before the first store; the loader has cleaned the file to the point of coherency.
    mrs     x9, CurrentEL
    cmp     x9, #(2 << 2)
    b.ne    8f                              // told later
    bl      .Lset_control
8:
    // Relocate; the binary is linked at 0. An entry of RELR (System V ABI, "Relative relocations") is the
    // address of a word to which the load address is added. With bit 0 set, an entry says instead which of
    // the 63 words after the last one are such words too.
    adrp    x9, __image_start
    adrp    x10, __relr_start
    add     x10, x10, :lo12:__relr_start
    adrp    x11, __relr_end
    add     x11, x11, :lo12:__relr_end
2:  cmp     x10, x11
    b.hs    3f
    ldr     x12, [x10], #8
    tbnz    w12, #0, 5f
    add     x13, x12, x9
    ldr     x14, [x13]
    add     x14, x14, x9
    str     x14, [x13], #8
    b       2b
5:  mov     x15, x13
    add     x13, x13, #(63 * 8)
6:  lsr     x12, x12, #1
    cbz     x12, 2b
    tbz     w12, #0, 7f
    ldr     x14, [x15]
    add     x14, x14, x9
    str     x14, [x15]
7:  add     x15, x15, #8
    b       6b
3:  mov     x19, xzr
    bl      .Lset_stack
    mrs     x0, CurrentEL
    cmp     x0, #(2 << 2)
    b.eq    4f
    bl      {wrong_level}
    b       .Lhang
4:  bl      {build}
    bl      .Lenable_mmu
    mov     x0, x19
    bl      primary_main
    b       .Lhang

    .global bulkhead_secondary_start
bulkhead_secondary_start:
    msr     daifset, #0xF
    mov     x19, x0
    bl      .Lset_control
    bl      .Lenable_mmu
    bl      .Lset_stack
    mov     x0, x19
    bl      secondary_main
.Lhang:
    wfe
    b       .Lhang

// x19 = index of the pCPU. Sets SP, at EL2 also TPIDR_EL2. Clobbers x9..x11.
.Lset_stack:
    adrp    x9, {stacks}
    mov     x10, #({guard} + {stack})
    madd    x9, x10, x19, x9
    add     x9, x9, x10
    mov     sp, x9
    adrp    x9, {emergency}
    add     x9, x9, :lo12:{emergency}
    mov     x10, #{emergency_size}
    madd    x9, x10, x19, x9
    add     x9, x9, x10
    mrs     x11, CurrentEL
    cmp     x11, #(2 << 2)
    b.ne    1f
    msr     tpidr_el2, x9
1:  ret

// EL2 in a known state, MMU off. Clobbers x9.
.Lset_control:
    ldr     x9, ={hcr_boot}
    msr     hcr_el2, x9
    isb
    ldr     x9, ={sctlr_off}
    msr     sctlr_el2, x9
    adrp    x9, .Lvectors
    add     x9, x9, :lo12:.Lvectors
    msr     vbar_el2, x9
    isb
    ret

// Turns MMU and caches on. The code needs only addresses and constants, so that a secondary reads nothing
// that may sit in another CPU's cache. Clobbers x9..x11.
.Lenable_mmu:
    ldr     x9, ={mair}
    msr     mair_el2, x9
    ldr     x9, ={tcr}
    mrs     x10, id_aa64mmfr0_el1
    and     x10, x10, #0xF
    mov     x11, #5                         // 48 bits are all that four levels of 4 KiB tables reach
    cmp     x10, x11
    csel    x10, x10, x11, lo
    bfi     x9, x10, #16, #3
    msr     tcr_el2, x9
    adrp    x9, {root}
    msr     ttbr0_el2, x9
    isb
    tlbi    alle2
    dsb     nsh
    ic      iallu
    dsb     nsh
    isb
    ldr     x9, ={sctlr_on}
    msr     sctlr_el2, x9
    isb
    ret
    .ltorg

// A saved register pair is at 8 * its number in Context.
.macro  save_volatile exits
    stp     x0, x1, [sp, #-16]!
    ldr     x0, [sp, #(16 + {frame_context})]
    stp     x2, x3, [x0, #16]
    stp     x4, x5, [x0, #32]
    stp     x6, x7, [x0, #48]
    stp     x8, x9, [x0, #64]
    stp     x10, x11, [x0, #80]
    stp     x12, x13, [x0, #96]
    stp     x14, x15, [x0, #112]
    stp     x16, x17, [x0, #128]
    str     x18, [x0, #144]
    str     x30, [x0, #240]
    ldp     x2, x3, [sp], #16
    stp     x2, x3, [x0]
    ldp     x1, \exits, [sp, #{frame_machine}]
.endm

.macro  save_preserved context
    stp     x19, x20, [\context, #152]
    stp     x21, x22, [\context, #168]
    stp     x23, x24, [\context, #184]
    stp     x25, x26, [\context, #200]
    stp     x27, x28, [\context, #216]
    str     x29, [\context, #232]
.endm

// A handler's answer RESUME leads to \resume with the context in x0.
.macro  synchronous_vector handler, other, resume
    .balign 0x80
    save_volatile x4
    mrs     x2, esr_el2
    bl      \handler
    cbnz    x0, \other
    ldr     x0, [sp, #{frame_context}]
    b       \resume
.endm

.macro  interrupt_vector handler, resume
    .balign 0x80
    save_volatile x2
    bl      \handler
    cbnz    x0, .Lsave_and_leave
    ldr     x0, [sp, #{frame_context}]
    b       \resume
.endm

.macro  crash_vector number
    .balign 0x80
    msr     sp_el0, x0                      // the guest's, lost
    mrs     x0, tpidr_el2
    stp     x1, x2, [x0, #(8 - 256)]        // the 256 bytes below the top hold x0..x30
    mov     x1, #\number
    mov     x2, sp
    b       .Lcrash
.endm

// An SError of EL2 is expected at one place. The handler ends there with the SError's syndrome in x0 and the
// next SError masked. PSTATE.A is set everywhere else.
.macro  serror_vector
    .balign 0x80
    msr     sp_el0, x0
    mrs     x0, tpidr_el2
    stp     x1, x2, [x0, #(8 - 256)]
    mrs     x1, elr_el2
    adr     x2, .Lserror_window
    sub     x1, x1, x2
    cmp     x1, #4                          // before the ISB or after it
    mov     x1, #7
    mov     x2, sp
    b.hi    .Lcrash
    mrs     x0, esr_el2
    mrs     x1, spsr_el2
    orr     x1, x1, #(1 << 8)
    msr     spsr_el2, x1
    eret
    dsb     nsh
    isb
.endm

// A table of vectors. There is a second one for pCPUs that trace each short way, so that others do not ask.
.macro  vectors other, other_aarch32, resume, resume_interrupt
    crash_vector 0                          // current EL with SP_EL0
    crash_vector 1
    crash_vector 2
    crash_vector 3
    crash_vector 4                          // current EL with SP_EL2; IRQ and FIQ are masked, so never
    crash_vector 5
    crash_vector 6
    serror_vector
    synchronous_vector {on_synchronous}, \other, \resume        // EL1 is AArch64
    interrupt_vector {on_interrupt}, \resume_interrupt
    interrupt_vector {on_interrupt}, \resume_interrupt
    interrupt_vector {on_serror}, \resume_interrupt
    synchronous_vector {on_synchronous_aarch32}, \other_aarch32, \resume  // EL1 is AArch32
    interrupt_vector {on_interrupt}, \resume_interrupt
    interrupt_vector {on_interrupt}, \resume_interrupt
    interrupt_vector {on_serror}, \resume_interrupt
.endm

    .section .vectors, "ax"
    .balign 0x800
.Lvectors:
    vectors .Lother, .Lother_aarch32, .Lresume, .Lresume
    .balign 0x800
    .global bulkhead_tracing_vectors
bulkhead_tracing_vectors:
    vectors .Ltraced_other, .Ltraced_other_aarch32, .Lresume_traced, .Lresume_traced_interrupt

.Lcrash:
    sub     x0, x0, #256
    mov     sp, x0
    stp     x3, x4, [x0, #24]
    stp     x5, x6, [x0, #40]
    stp     x7, x8, [x0, #56]
    stp     x9, x10, [x0, #72]
    stp     x11, x12, [x0, #88]
    stp     x13, x14, [x0, #104]
    stp     x15, x16, [x0, #120]
    stp     x17, x18, [x0, #136]
    stp     x19, x20, [x0, #152]
    stp     x21, x22, [x0, #168]
    stp     x23, x24, [x0, #184]
    stp     x25, x26, [x0, #200]
    stp     x27, x28, [x0, #216]
    stp     x29, x30, [x0, #232]
    mrs     x3, sp_el0
    str     x3, [x0]
    b       {crash}

    .global bulkhead_take_serror
bulkhead_take_serror:
    mrs     x3, sp_el0                      // a guest's, which the vector uses
    mov     x0, xzr
    msr     daifclr, #4
.Lserror_window:
    isb
    msr     daifset, #4
    msr     sp_el0, x3
    ret

    .global bulkhead_enter
bulkhead_enter:
    stp     x29, x30, [sp, #-{frame_size}]!
    stp     x19, x20, [sp, #16]
    stp     x21, x22, [sp, #32]
    stp     x23, x24, [sp, #48]
    stp     x25, x26, [sp, #64]
    stp     x27, x28, [sp, #80]
    stp     x0, x1, [sp, #{frame_context}]
    str     x2, [sp, #{frame_exits}]
    ldp     x2, x3, [x0, #{context_pc}]
    msr     elr_el2, x2
    msr     spsr_el2, x3
.Lresume_all:
    ldp     x19, x20, [x0, #152]
    ldp     x21, x22, [x0, #168]
    ldp     x23, x24, [x0, #184]
    ldp     x25, x26, [x0, #200]
    ldp     x27, x28, [x0, #216]
    ldr     x29, [x0, #232]
.Lresume:
    ldp     x2, x3, [x0, #16]
    ldp     x4, x5, [x0, #32]
    ldp     x6, x7, [x0, #48]
    ldp     x8, x9, [x0, #64]
    ldp     x10, x11, [x0, #80]
    ldp     x12, x13, [x0, #96]
    ldp     x14, x15, [x0, #112]
    ldp     x16, x17, [x0, #128]
    ldr     x18, [x0, #144]
    ldr     x30, [x0, #240]
    ldp     x0, x1, [x0]
    eret
    dsb     nsh                             // no speculation past eret
    isb

// Does what a handler's answer in x0 asks. The answer is not RESUME.
.macro  synchronous_other handler, resume_all
    cmp     x0, #{all_registers}
    b.ne    .Lsave_and_leave
    ldp     x0, x1, [sp, #{frame_context}]
    save_preserved x0
    mrs     x2, esr_el2
    bl      \handler
    cbnz    x0, .Lleave
    ldr     x0, [sp, #{frame_context}]
    b       \resume_all
.endm

.Lother:
    synchronous_other {on_synchronous_complete}, .Lresume_all
.Lother_aarch32:
    synchronous_other {on_synchronous_aarch32_complete}, .Lresume_all
.Ltraced_other:
    synchronous_other {on_synchronous_complete}, .Lresume_all_traced
.Ltraced_other_aarch32:
    synchronous_other {on_synchronous_aarch32_complete}, .Lresume_all_traced

// Records the exit that was answered, and goes on in the guest. ESR_EL2 still describes the exception.
.macro  record_and resume
    ldr     x1, [sp, #{frame_machine}]
    bl      {record_short}
    ldr     x0, [sp, #{frame_context}]
    b       \resume
.endm

.Lresume_traced:
    mrs     x2, esr_el2
    record_and .Lresume
.Lresume_traced_interrupt:
    mov     x2, xzr
    record_and .Lresume
.Lresume_all_traced:
    mrs     x2, esr_el2
    record_and .Lresume_all

.Lleave:
    ldr     x1, [sp, #{frame_context}]
    b       1f
.Lsave_and_leave:
    ldr     x1, [sp, #{frame_context}]
    save_preserved x1
1:  mrs     x2, elr_el2
    mrs     x3, spsr_el2
    stp     x2, x3, [x1, #{context_pc}]
    ldp     x19, x20, [sp, #16]
    ldp     x21, x22, [sp, #32]
    ldp     x23, x24, [sp, #48]
    ldp     x25, x26, [sp, #64]
    ldp     x27, x28, [sp, #80]
    ldp     x29, x30, [sp], #{frame_size}
    ret
    .text
"#,
    wrong_level = sym boot::wrong_level,
    build = sym boot::build_tables,
    root = sym mmu::TABLES,
    stacks = sym STACKS,
    emergency = sym EMERGENCY_STACKS,
    crash = sym crash,
    on_synchronous = sym on_synchronous,
    on_synchronous_aarch32 = sym on_synchronous_aarch32,
    on_synchronous_complete = sym on_synchronous_complete,
    on_synchronous_aarch32_complete = sym on_synchronous_aarch32_complete,
    on_interrupt = sym on_interrupt,
    on_serror = sym on_serror,
    record_short = sym record_short,
    emergency_size = const EMERGENCY_SIZE,
    guard = const GUARD_SIZE,
    stack = const STACK_SIZE,
    hcr_boot = const HCR_BOOT,
    sctlr_off = const SCTLR_OFF,
    sctlr_on = const SCTLR_ON,
    mair = const mmu::MAIR,
    tcr = const mmu::TCR,
    all_registers = const ALL_REGISTERS,
    frame_size = const FRAME_SIZE,
    frame_context = const FRAME_CONTEXT,
    frame_machine = const FRAME_MACHINE,
    frame_exits = const FRAME_EXITS,
    context_pc = const offset_of!(Context, pc),
);

const _: () =
    assert!(offset_of!(Context, general) == 0 && offset_of!(Context, pstate) == offset_of!(Context, pc) + 8);
