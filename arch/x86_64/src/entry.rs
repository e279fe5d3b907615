// SPDX-License-Identifier: Apache-2.0
//! All assembly of the backend that is more than one instruction: first instructions of every pCPU, handlers
//! of exceptions and interrupts, the way into and out of a guest, and the registers of floating point.
//!
//! **Boot.** A PVH loader (Xen `docs/misc/pvh.pandoc`) enters `_start` in flat 32-bit mode without paging.
//! The other pCPUs begin in real mode in the trampoline, a page below 1 MiB, and join the same way.
//!
//! | at | register | meaning in | meaning out |
//! |---|---|---|---|
//! | `_start` | EBX | start information (ignored) | |
//! | `primary_main` | | | never returns |
//! | `secondary_main` | RDI | index of the pCPU | never returns |
//! | `bulkhead_enter` | RDI | `*mut Context`, whose control block is first | |
//! | | RSI | the control block for the hypervisor's own VMLOAD | |
//! | | RBX, RBP, RSP, R12..R15 | the host's | the same |
//! | `bulkhead_enter_direct` | RDX | a byte; does nothing unless it is 0 | |
//! | | others | as of `bulkhead_enter` | |
//! | `bulkhead_fp_switch` | RDI | where registers are saved, or 0 | |
//! | | RSI | where registers are loaded from | |
//! | interrupt stubs | | | EAX: the vector; interrupts are masked |
//! | exception stubs | RSP | the processor's frame on the emergency stack | never return |

use crate::context::Context;
use crate::crash::{CRASHED, crash};
use crate::mmu::{self, TRAMPOLINE};
use crate::note;
use crate::stacks::{GUARD_SIZE, STACK_SIZE, STACKS};
use core::arch::global_asm;
use core::mem::offset_of;
use core::sync::atomic::AtomicU8;

#[allow(
    improper_ctypes,
    reason = "assembly passes the pointer on and knows one field by offset_of!"
)]
unsafe extern "C" {
    /// Runs the guest until it exits. See the table above.
    pub(crate) fn bulkhead_enter(context: *mut Context, host: u64);
    /// Runs the guest as `bulkhead_enter` does, unless the byte is set. No interrupt comes between the look
    /// at the byte and the guest.
    pub(crate) fn bulkhead_enter_direct(context: *mut Context, host: u64, note: *const u8);
    /// Saves registers of floating point, and loads others.
    pub(crate) fn bulkhead_fp_switch(save: *mut u64, load: *const u64);
    static __stubs: u8;
    static __trampoline_start: u8;
    static __trampoline_end: u8;
}

/// The index of the pCPU with an APIC id, which other pCPUs find their stacks by.
#[unsafe(no_mangle)]
pub(crate) static BULKHEAD_INDICES: [AtomicU8; 256] = [const { AtomicU8::new(0) }; 256];

/// Returns the address of the first stub.
pub(crate) fn stubs() -> u64 {
    (&raw const __stubs) as u64
}

/// Returns address and length of the code for the trampoline's page.
pub(crate) fn trampoline() -> (u64, usize) {
    let start = (&raw const __trampoline_start) as u64;
    (start, ((&raw const __trampoline_end) as u64 - start) as usize)
}

const GENERAL: usize = offset_of!(Context, general);

global_asm!(
    r#"
    .section .head, "ax"
    .code32
    .global _start
_start:
    cli
    cld
    // The first map: 2 MiB pages from 0 to 4 GiB in four tables, which the tree does not use any more later.
    mov     edi, offset .Lboot_tables
    xor     eax, eax
    mov     ecx, 6 * 1024
    rep stosd
    mov     edi, offset .Lboot_tables
    lea     eax, [edi + 0x1003]
    mov     [edi], eax
    lea     ecx, [edi + 0x1000]
    lea     eax, [edi + 0x2003]
    mov     edx, 4
1:  mov     [ecx], eax
    add     eax, 0x1000
    add     ecx, 8
    dec     edx
    jnz     1b
    lea     ecx, [edi + 0x2000]
    mov     eax, 0x83
    mov     edx, 2048
2:  mov     [ecx], eax
    add     eax, 0x200000
    add     ecx, 8
    dec     edx
    jnz     2b
    mov     eax, edi
    xor     ebp, ebp
.Ljoin:
    // EAX = root of the tables, EBP = 0 on the boot pCPU.
    mov     cr3, eax
    mov     eax, cr4
    or      eax, 0x660                      // PAE, MCE, OSFXSR, OSXMMEXCPT
    mov     cr4, eax
    mov     ecx, 0xC0000080
    rdmsr
    or      eax, 0x900                      // LME, NXE
    wrmsr
    mov     eax, cr0
    and     eax, 0x9FFFFFF3                 // caches on, no emulation of floating point
    or      eax, 0x80010022                 // PG, WP, NE, MP
    mov     cr0, eax
    lgdt    [.Lboot_pointer]
    .byte   0xEA                            // far jump to 64-bit code
    .long   .Llong
    .word   0x08
    .balign 8
.Lboot_segments:
    .quad   0
    .quad   0x00AF9B000000FFFF              // 0x08: 64-bit code
    .quad   0x00CF93000000FFFF              // 0x10: data
    .quad   0x00CF9B000000FFFF              // 0x18: 32-bit code
.Lboot_pointer:
    .word   31
    .quad   .Lboot_segments

    .code64
.Llong:
    mov     ax, 0x10
    mov     ds, ax
    mov     es, ax
    mov     ss, ax
    xor     eax, eax
    mov     fs, ax
    mov     gs, ax
    fninit
    test    ebp, ebp
    jnz     3f
    mov     rsp, offset {stacks} + {guard} + {stack}
    call    primary_main
    ud2
3:  mov     eax, 1
    xor     ecx, ecx
    cpuid
    shr     ebx, 24
    movzx   edi, byte ptr [BULKHEAD_INDICES + rbx]
    imul    rax, rdi, {guard} + {stack}
    lea     rsp, [rax + {stacks} + {guard} + {stack}]
    call    secondary_main
    ud2

    .code32
.Lsecondary:
    mov     ax, 0x10
    mov     ds, ax
    mov     es, ax
    mov     ss, ax
    mov     eax, offset {tables}
    mov     ebp, 1
    jmp     .Ljoin

    // Copied to the trampoline's page, where a start-up IPI begins: CS is the page. Bochs checks the limit of
    // a segment, so nothing beyond the page is touched before protected mode.
    .code16
    .global __trampoline_start
__trampoline_start:
    cli
    mov     ax, cs
    mov     ds, ax
    .byte   0x66, 0x0F, 0x01, 0x16          // lgdt, 32-bit, [.Lsmall_pointer]
    .word   .Lsmall_pointer - __trampoline_start
    mov     eax, cr0
    or      al, 1
    mov     cr0, eax
    .byte   0x66, 0xEA                      // far jump, 32-bit
    .long   .Lsecondary
    .word   0x18
    .balign 8
.Lsmall_segments:
    .quad   0
    .quad   0x00AF9B000000FFFF
    .quad   0x00CF93000000FFFF
    .quad   0x00CF9B000000FFFF
.Lsmall_pointer:
    .word   31
    .long   {trampoline} + .Lsmall_segments - __trampoline_start
    .global __trampoline_end
__trampoline_end:
    .code64

    .section .tables, "aw", @nobits
    .balign 4096
.Lboot_tables:
    .skip   6 * 4096

    .text
    .balign 16
    .global bulkhead_enter
bulkhead_enter:
    push    rbx
    push    rbp
    push    r12
    push    r13
    push    r14
    push    r15
    push    rsi
    mov     rax, rdi
    clgi
    sti                                     // interrupts leave the guest (15.13.1), none is taken here
    vmload  rax
    mov     rcx, [rdi + {general} + 8 * 1]
    mov     rdx, [rdi + {general} + 8 * 2]
    mov     rbx, [rdi + {general} + 8 * 3]
    mov     rbp, [rdi + {general} + 8 * 5]
    mov     rsi, [rdi + {general} + 8 * 6]
    mov     r8,  [rdi + {general} + 8 * 8]
    mov     r9,  [rdi + {general} + 8 * 9]
    mov     r10, [rdi + {general} + 8 * 10]
    mov     r11, [rdi + {general} + 8 * 11]
    mov     r12, [rdi + {general} + 8 * 12]
    mov     r13, [rdi + {general} + 8 * 13]
    mov     r14, [rdi + {general} + 8 * 14]
    mov     r15, [rdi + {general} + 8 * 15]
    mov     rdi, [rdi + {general} + 8 * 7]
    vmrun   rax
    vmsave  rax
    mov     [rax + {general} + 8 * 1], rcx
    mov     [rax + {general} + 8 * 2], rdx
    mov     [rax + {general} + 8 * 3], rbx
    mov     [rax + {general} + 8 * 5], rbp
    mov     [rax + {general} + 8 * 6], rsi
    mov     [rax + {general} + 8 * 7], rdi
    mov     [rax + {general} + 8 * 8], r8
    mov     [rax + {general} + 8 * 9], r9
    mov     [rax + {general} + 8 * 10], r10
    mov     [rax + {general} + 8 * 11], r11
    mov     [rax + {general} + 8 * 12], r12
    mov     [rax + {general} + 8 * 13], r13
    mov     [rax + {general} + 8 * 14], r14
    mov     [rax + {general} + 8 * 15], r15
    pop     rax
    vmload  rax
    cli
    stgi
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbp
    pop     rbx
    ret

    .global bulkhead_enter_direct
bulkhead_enter_direct:
    clgi
    cmp     byte ptr [rdx], 0
    je      bulkhead_enter
    stgi
    ret

    .global bulkhead_fp_switch
bulkhead_fp_switch:
    test    rdi, rdi
    jz      1f
    fxsave64 [rdi]
1:  fnclex                                  // FXRSTOR leaves the last x87 instruction's addresses as they are
    fild    dword ptr [rip + .Lnothing]     // without a pending exception (CVE-2006-1056), so they become ours
    fxrstor64 [rsi]
    ret
    .balign 4
.Lnothing:
    .long   0

    .global bulkhead_exception
bulkhead_exception:
    push    rax
    push    rcx
    push    rdx
    push    rbx
    push    rbp
    push    rsi
    push    rdi
    push    r8
    push    r9
    push    r10
    push    r11
    push    r12
    push    r13
    push    r14
    push    r15
    cld
    mov     rdi, rsp
    and     rsp, -16
    call    {crash}
    ud2
"#,
    stacks = sym STACKS,
    tables = sym mmu::TABLES,
    crash = sym crash,
    guard = const GUARD_SIZE,
    stack = const STACK_SIZE,
    trampoline = const TRAMPOLINE,
    general = const GENERAL,
);

// The stubs need symbols that change, as constants: the other syntax has a sign for them.
global_asm!(
    r#"
    .text
    .balign 16
    .global __stubs
__stubs:
    .set vector, 0
    .rept 32
    .balign 16
    // Exceptions 8, 10 to 14, 17, 21, 29 and 30 come with an error code.
    .if (vector == 8) || ((vector >= 10) && (vector <= 14)) || (vector == 17) || (vector == 21) || (vector == 29) || (vector == 30)
    .elseif vector == 2
    jmp     .Lnmi
    .else
    pushq   $0
    .endif
    pushq   $vector
    jmp     bulkhead_exception
    .set vector, vector + 1
    .endr
    .rept 224
    .balign 16
    movl    $vector, %eax
    andl    $~0x200, 16(%rsp)
    iretq
    .set vector, vector + 1
    .endr
    // A non-maskable interrupt says that there is a note for this pCPU, unless another one has crashed.
.Lnmi:
    cmpb    $0, {in_use}(%rip)
    je      1f
    cmpb    $0, {crashed}(%rip)
    jne     1f
    iretq
1:  pushq   $0
    pushq   $2
    jmp     bulkhead_exception
"#,
    in_use = sym note::IN_USE,
    crashed = sym CRASHED,
    options(att_syntax)
);
