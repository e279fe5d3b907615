// SPDX-License-Identifier: Apache-2.0
//! First instructions of a VM of class `x86_64`.
//!
//! | entry | register | in | out |
//! |---|---|---|---|
//! | `_pc_start` | rsi | start information of PVH | to `pc_start`: rdi |
//!
//! It comes in in 64-bit mode with interrupts masked, as the 64-bit boot protocol of Linux says.

use core::arch::global_asm;

use super::{Machine, exception, power_off};

global_asm!(
    ".pushsection .text.start.pc, \"ax\"",
    ".global _pc_start",
    "_pc_start:",
    "cli",
    "cld",
    "lea rsp, [rip + __stack_top]",
    "lea rdi, [rip + __bss_start]",
    "lea rcx, [rip + __bss_end]",
    "sub rcx, rdi",
    "xor eax, eax",
    "rep stosb",
    "mov rdi, rsi",
    "xor ebp, ebp",
    "call {start}",
    "ud2",
    ".popsection",
    start = sym pc_start,
);

unsafe extern "Rust" {
    /// Runs the VM's program, defined by [`pc_main!`](crate::pc_main).
    fn bulkhead_pc_main(machine: Machine);
}

extern "C" fn pc_start(start_info: usize) -> ! {
    exception::init();
    // SAFETY: `pc_main!` defines the symbol with this signature; the linker fails without it.
    unsafe { bulkhead_pc_main(Machine::new(start_info)) }
    power_off()
}
