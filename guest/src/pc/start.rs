// SPDX-License-Identifier: Apache-2.0
//! First instructions of a VM of class `x86_64`, of the same program on a bare PC, and of its other
//! processors.
//!
//! | entry | register | in | out |
//! |---|---|---|---|
//! | `_pc_start` | rsi | start information of PVH | to `pc_start`: rdi; rsi: the counter at the start |
//! | `_pc_start_flat` | ebx | the same | to `_pc_start` |
//! | trampoline | | | to `pc_start_other`: rdi, the function of [`super::smp::start`] |
//!
//! `_pc_start` comes in in 64-bit mode with interrupts masked, as the 64-bit boot protocol of Linux says. A
//! note names `_pc_start_flat` for the loader of a bare PC, which enters in flat protected mode (Xen
//! `docs/misc/pvh.pandoc`). A start-up IPI enters the trampoline in real mode.

use core::arch::global_asm;
use core::sync::atomic::AtomicU64;

use super::{Machine, exception, power_off};

/// The page that a start-up IPI begins at: below 1 MiB, and nothing else is there.
pub(super) const TRAMPOLINE: u64 = 0x1_0000;

/// Root of the translation tables, end of the stack, and function of the processor that starts next.
pub(super) static OTHER_ROOT: AtomicU64 = AtomicU64::new(0);
pub(super) static OTHER_STACK: AtomicU64 = AtomicU64::new(0);
pub(super) static OTHER_ENTRY: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    static __pc_trampoline: u8;
    static __pc_trampoline_end: u8;
    static __pc_segments: u8;
}

/// Loads the program's own descriptor table on this processor.
pub(super) fn load_segments() {
    let pointer = &raw const __pc_segments;
    // SAFETY: the table stays where it is, and has the selectors that are in use.
    unsafe { core::arch::asm!("lgdt [{}]", in(reg) pointer, options(readonly, nostack)) }
}

/// Returns address and length of the code for the trampoline's page.
pub(super) fn trampoline() -> (u64, usize) {
    let start = (&raw const __pc_trampoline) as u64;
    (start, ((&raw const __pc_trampoline_end) as u64 - start) as usize)
}

global_asm!(
    r#"
    .pushsection .note.pvh, "a", @progbits
    .balign 4
    .long   4, 8, 18                        // XEN_ELFNOTE_PHYS32_ENTRY
    .ascii  "Xen\0"
    .quad   _pc_start_flat
    .popsection

    .pushsection .text.start.pc, "ax"
    .global _pc_start
_pc_start:
    cli
    cld
    rdtsc
    mov     r12d, eax
    shl     rdx, 32
    or      r12, rdx
    lea     rsp, [rip + __stack_top]
    lea     rdi, [rip + __bss_start]
    lea     rcx, [rip + __bss_end]
    sub     rcx, rdi
    xor     eax, eax
    rep stosb
    mov     rdi, rsi
    mov     rsi, r12
    xor     ebp, ebp
    call    {start}
    ud2

    .code32
    .global _pc_start_flat
_pc_start_flat:
    cli
    mov     esi, ebx
    mov     eax, offset .Lpc_root
    call    .Lpc_long_mode
    lgdt    [.Lpc_pointer]
    .byte   0xEA                            // far jump to 64-bit code
    .long   .Lpc_first
    .word   0x10

    // EAX = root of the tables.
.Lpc_long_mode:
    mov     cr3, eax
    mov     eax, cr4
    or      eax, 0x20                       // PAE
    mov     cr4, eax
    mov     ecx, 0xC0000080
    rdmsr
    or      eax, 0x100                      // LME
    wrmsr
    mov     eax, cr0
    and     eax, 0x9FFFFFFF                 // caches on
    or      eax, 0x80000001                 // PG, PE
    mov     cr0, eax
    ret

.Lpc_second:
    mov     eax, 0x18
    mov     ds, eax
    mov     es, eax
    mov     ss, eax
    mov     esp, [{stack}]
    mov     eax, [{root}]
    call    .Lpc_long_mode
    .byte   0xEA
    .long   .Lpc_other
    .word   0x10

    .code64
.Lpc_first:
    mov     eax, 0x18
    mov     ds, eax
    mov     es, eax
    mov     ss, eax
    mov     esi, esi
    jmp     _pc_start

.Lpc_other:
    mov     rsp, [{stack}]
    mov     rdi, [{entry}]
    xor     ebp, ebp
    call    {other}
    ud2

    .code16
    .balign 16
    .global __pc_trampoline
__pc_trampoline:
    cli
    mov     ax, cs
    mov     ds, ax
    .byte   0x66, 0x0F, 0x01, 0x16          // lgdt, 32-bit, [.Lpc_small_pointer]
    .word   .Lpc_small_pointer - __pc_trampoline
    mov     eax, cr0
    or      al, 1
    mov     cr0, eax
    .byte   0x66, 0xEA                      // far jump, 32-bit
    .long   .Lpc_second
    .word   0x20
    .balign 8
.Lpc_small_pointer:
    .word   39
    .long   .Lpc_segments
    .global __pc_trampoline_end
__pc_trampoline_end:
    .code64
    .popsection

    .pushsection .data.pc, "aw"
    .balign 4096
.Lpc_root:
    .quad   .Lpc_directory + 3
    .skip   4088
    // The first 4 GiB in pages of 1 GiB.
.Lpc_directory:
    .quad   0x83, 0x40000083, 0x80000083, 0xC0000083
    .skip   4064
    // The selectors are those that the host tool gives a VM, and one for 32-bit code.
.Lpc_segments:
    .quad   0, 0
    .quad   0x00AF9B000000FFFF              // 0x10: 64-bit code
    .quad   0x00CF93000000FFFF              // 0x18: data
    .quad   0x00CF9B000000FFFF              // 0x20: 32-bit code
    .global __pc_segments
__pc_segments:
.Lpc_pointer:
    .word   39
    .quad   .Lpc_segments
    .popsection
"#,
    start = sym pc_start,
    other = sym pc_start_other,
    root = sym OTHER_ROOT,
    stack = sym OTHER_STACK,
    entry = sym OTHER_ENTRY,
);

unsafe extern "Rust" {
    /// Runs the VM's program, defined by [`pc_main!`](crate::pc_main).
    fn bulkhead_pc_main(machine: Machine);
}

extern "C" fn pc_start(start_info: usize, started: u64) -> ! {
    exception::init();
    // SAFETY: `pc_main!` defines the symbol with this signature; the linker fails without it.
    unsafe { bulkhead_pc_main(Machine::new(start_info, started)) }
    power_off()
}

extern "C" fn pc_start_other(entry: extern "C" fn()) -> ! {
    exception::load();
    entry();
    super::cpu::stop()
}
