// SPDX-License-Identifier: Apache-2.0
//! AArch64: from the firmware's translation tables to an arm64 Image (Linux Documentation/arm64/booting.rst):
//! MMU and data cache off, the Image clean to the point of coherency, x0 to x3 zero.

use crate::job::Staged;
use core::arch::global_asm;

/// The highest address of the memory apart.
pub(crate) const HIGHEST: u64 = u64::MAX;

global_asm!(
    r#"
    .section .text.bulkhead_jump, "xr"
    .balign 4096
    .global bulkhead_jump
// x0 = first job, x1 = entry, x2 and x3 = the memory apart.
bulkhead_jump:
    msr     daifset, #0xF
    mrs     x9, ctr_el0                     // DminLine: words of the shortest line of a data cache
    ubfx    x9, x9, #16, #4
    mov     x10, #4
    lsl     x10, x10, x9
    sub     x11, x10, #1
    // The memory apart goes to RAM, where it is read with the cache off.
    bic     x12, x2, x11
1:  dc      civac, x12
    add     x12, x12, x10
    cmp     x12, x3
    b.lo    1b
    // No line of a piece's memory may be written back over the piece later.
    mov     x13, x0
2:  ldp     x4, x5, [x13]
    ldp     x6, x7, [x13, #16]
    add     x8, x6, x7
    cbz     x8, 4f
    add     x8, x8, x4
    bic     x12, x4, x11
3:  dc      civac, x12
    add     x12, x12, x10
    cmp     x12, x8
    b.lo    3b
    add     x13, x13, #32
    b       2b
4:  dsb     sy
    mrs     x9, CurrentEL
    cmp     x9, #(2 << 2)
    b.ne    5f
    mrs     x9, sctlr_el2
    bic     x9, x9, #1                      // M
    bic     x9, x9, #4                      // C
    msr     sctlr_el2, x9
    isb
    tlbi    alle2
    b       6f
5:  mrs     x9, sctlr_el1                   // the class binary says that it needs EL2
    bic     x9, x9, #1
    bic     x9, x9, #4
    msr     sctlr_el1, x9
    isb
    tlbi    vmalle1
6:  dsb     sy
    isb
    mov     x13, x0
7:  ldp     x4, x5, [x13]
    ldp     x6, x7, [x13, #16]
    add     x8, x6, x7
    cbz     x8, 11f
    add     x8, x8, x4
    mov     x12, x4
8:  cbz     x6, 9f
    ldp     x14, x15, [x5], #16
    stp     x14, x15, [x4], #16
    sub     x6, x6, #16
    b       8b
9:  cbz     x7, 10f
    stp     xzr, xzr, [x4], #16
    sub     x7, x7, #16
    b       9b
    // The CPU may have loaded lines of the old contents meanwhile.
10: bic     x12, x12, x11
12: dc      ivac, x12
    add     x12, x12, x10
    cmp     x12, x8
    b.lo    12b
    add     x13, x13, #32
    b       7b
11: dsb     sy
    ic      iallu
    dsb     sy
    isb
    mov     x4, x1
    mov     x0, xzr
    mov     x1, xzr
    mov     x2, xzr
    mov     x3, xzr
    br      x4
    .global bulkhead_jump_end
bulkhead_jump_end:
    "#
);

/// Goes to the instructions that are apart.
pub(crate) fn go(staged: &Staged) -> ! {
    // SAFETY: the memory apart begins with the instructions of `bulkhead_jump`, which take these arguments
    // and never return; the instruction cache has nothing of memory that was just given to the loader, and is
    // emptied for it.
    let jump: extern "C" fn(u64, u64, u64, u64) -> ! = unsafe { core::mem::transmute(staged.memory.base) };
    clean(staged);
    jump(staged.jobs, staged.entry, staged.memory.base, staged.memory.end())
}

/// Makes the instructions that are apart visible to the fetches of this CPU.
fn clean(staged: &Staged) {
    for line in (staged.memory.base..staged.memory.base + crate::job::CODE_BYTES as u64).step_by(16) {
        // SAFETY: the instruction writes a line of memory of this loader back, and changes no value.
        unsafe { core::arch::asm!("dc cvau, {line}", line = in(reg) line, options(nostack, preserves_flags)) }
    }
    // SAFETY: barriers and the invalidation of the instruction cache change no value.
    unsafe {
        core::arch::asm!(
            "dsb ish",
            "ic iallu",
            "dsb ish",
            "isb",
            options(nostack, preserves_flags)
        )
    }
}
