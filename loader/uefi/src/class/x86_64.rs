// SPDX-License-Identifier: Apache-2.0
//! AMD64: from the firmware's long mode to flat 32-bit mode without paging, as a PVH loader and the
//! Multiboot2 Specification enter a program.

use crate::job::Staged;
use core::arch::global_asm;

/// The highest address of the memory apart: 32-bit code reads it.
pub(crate) const HIGHEST: u64 = 0xFFFF_FFFF;

global_asm!(
    r#"
    .section .text.bulkhead_jump, "xr"
    .balign 4096
    .global bulkhead_jump
    .code64
// RCX = first job, RDX = entry, both below 4 GiB.
bulkhead_jump:
    cli
    cld
    mov     ebp, ecx
    mov     ebx, edx
    lea     rax, [rip + .Lsegments]
    mov     [rip + .Lpointer + 2], rax
    lgdt    [rip + .Lpointer]
    lea     rax, [rip + .Lflat]
    push    0x08
    push    rax
    retfq
    .code32
.Lflat:
    mov     ax, 0x10
    mov     ds, ax
    mov     es, ax
    mov     ss, ax
    mov     fs, ax
    mov     gs, ax
    mov     eax, cr0
    and     eax, 0x7FFFFFFF                 // PG
    mov     cr0, eax
    mov     ecx, 0xC0000080
    rdmsr
    and     eax, 0xFFFFFEFF                 // LME
    wrmsr
    xor     eax, eax
    mov     cr4, eax
    mov     cr3, eax
1:  mov     edi, [ebp]
    mov     esi, [ebp + 8]
    mov     ecx, [ebp + 16]
    mov     edx, [ebp + 24]
    mov     eax, ecx
    or      eax, edx
    jz      2f
    shr     ecx, 2
    rep movsd
    mov     ecx, edx
    shr     ecx, 2
    xor     eax, eax
    rep stosd
    add     ebp, 32
    jmp     1b
2:  mov     eax, ebx
    xor     ebx, ebx                        // no start information
    jmp     eax
    .balign 8
.Lsegments:
    .quad   0
    .quad   0x00CF9B000000FFFF              // 0x08: 32-bit code
    .quad   0x00CF93000000FFFF              // 0x10: data
.Lpointer:
    .word   23
    .quad   0
    .code64
    .global bulkhead_jump_end
bulkhead_jump_end:
    "#
);

/// Goes to the instructions that are apart.
pub(crate) fn go(staged: &Staged) -> ! {
    // SAFETY: the memory apart begins with the instructions of `bulkhead_jump`, which take these arguments
    // and never return.
    let jump: extern "win64" fn(u64, u64) -> ! = unsafe { core::mem::transmute(staged.memory.base) };
    jump(staged.jobs, staged.entry)
}
