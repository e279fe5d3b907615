// SPDX-License-Identifier: Apache-2.0
//! Hypercalls of class `x86_64`: `VMMCALL`, from a VM and from a task.

use core::arch::asm;

/// Makes a call with `identifier` in RAX and `arguments` in RDI, RSI, RDX, RCX, R8 and R9; returns RAX, RDI,
/// RSI, RDX and RCX.
pub(crate) fn call(identifier: u64, arguments: [u64; 6]) -> [u64; 5] {
    let [mut rdi, mut rsi, mut rdx, mut rcx, r8, r9] = arguments;
    let mut rax = identifier;
    // SAFETY: the hypervisor changes these registers only (head of `bulkhead-abi`), and of our memory only
    // the buffer that a call of a port names. The compiler takes all memory for changed.
    unsafe {
        asm!("vmmcall", inout("rax") rax, inout("rdi") rdi, inout("rsi") rsi, inout("rdx") rdx,
             inout("rcx") rcx, in("r8") r8, in("r9") r9, options(nostack));
    }
    [rax, rdi, rsi, rdx, rcx]
}
