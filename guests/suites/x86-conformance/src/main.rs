// SPDX-License-Identifier: Apache-2.0
//! The guest of the checks in `arch/conformance`. It gets the address of records and does what they say.
//!
//! It runs wherever it is copied to, without a stack: as a VM in flat 32-bit mode, from the first byte on,
//! with the address in EBX; as a task in 64-bit mode, from [`TASK`] on, with the address in RDI. A record has
//! 24 bytes: operation and size (words), address and value (doublewords). The numbers are from
//! `arch/conformance`. Operation 6 writes the port `address`, operation 8 reads it.
#![no_std]
#![no_main]

use core::arch::global_asm;

/// Where the part for tasks begins. The class binary of the checks has the same number.
const TASK: u32 = 0x400;

// ebx, rdi  the next record
// esi, rsi  the accumulator
// A VM has no registers to spare: eax, ecx, edx, edi are operation, size, address, value.
global_asm!(
    r#"
    .section .text.start.pc, "ax", @progbits
    .code32
    .global _pc_start
_pc_start:
    xor     esi, esi
.Lnext32:
    mov     eax, [ebx]
    mov     ecx, [ebx + 4]
    mov     edx, [ebx + 8]
    mov     edi, [ebx + 16]
    add     ebx, 24
    cmp     eax, 1
    je      .Lload32
    cmp     eax, 2
    je      .Lstore32
    cmp     eax, 3
    je      .Lcall32
    cmp     eax, 5
    je      .Lidle32
    cmp     eax, 6
    je      .Lport32
.Lbusy32:
    jmp     .Lbusy32
.Lload32:
    cmp     ecx, 2
    jb      1f
    je      2f
    mov     esi, [edx]
    jmp     .Lnext32
1:  movzx   esi, byte ptr [edx]
    jmp     .Lnext32
2:  movzx   esi, word ptr [edx]
    jmp     .Lnext32
.Lstore32:
    mov     eax, edi
    cmp     ecx, 2
    jb      1f
    je      2f
    mov     [edx], eax
    jmp     .Lnext32
1:  mov     [edx], al
    jmp     .Lnext32
2:  mov     [edx], ax
    jmp     .Lnext32
.Lcall32:
    // The first result is in EDI if the status in EAX is 0.
    mov     eax, edi
    mov     edi, esi
    vmmcall
    test    eax, eax
    jnz     .Lnext32
    mov     esi, edi
    jmp     .Lnext32
.Lidle32:
    // Only an interrupt that is let in ends a HLT.
    sti
    hlt
    cli
    jmp     .Lnext32
.Lport32:
    mov     eax, edi
    out     dx, ax
    jmp     .Lnext32

    .code64
    .org    {task}
    xor     esi, esi
    mov     rbx, rdi
.Lnext64:
    mov     eax, [rbx]
    mov     ecx, [rbx + 4]
    mov     rdx, [rbx + 8]
    mov     rdi, [rbx + 16]
    add     rbx, 24
    cmp     eax, 1
    je      .Lload64
    cmp     eax, 2
    je      .Lstore64
    cmp     eax, 4
    je      .Lcall64
.Lbusy64:
    jmp     .Lbusy64
.Lload64:
    cmp     ecx, 2
    jb      1f
    je      2f
    cmp     ecx, 4
    je      4f
    mov     rsi, [rdx]
    jmp     .Lnext64
1:  movzx   esi, byte ptr [rdx]
    jmp     .Lnext64
2:  movzx   esi, word ptr [rdx]
    jmp     .Lnext64
4:  mov     esi, [rdx]
    jmp     .Lnext64
.Lstore64:
    cmp     ecx, 2
    jb      1f
    je      2f
    cmp     ecx, 4
    je      4f
    mov     [rdx], rdi
    jmp     .Lnext64
1:  mov     [rdx], dil
    jmp     .Lnext64
2:  mov     [rdx], di
    jmp     .Lnext64
4:  mov     [rdx], edi
    jmp     .Lnext64
.Lcall64:
    // As wide as in a VM.
    mov     rax, rdi
    mov     edi, esi
    vmmcall
    test    rax, rax
    jnz     .Lnext64
    mov     rsi, rdi
    jmp     .Lnext64
"#,
    task = const TASK,
);

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
