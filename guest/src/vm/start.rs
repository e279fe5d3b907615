// SPDX-License-Identifier: Apache-2.0
//! First instructions of a VM's CPUs.
//!
//! | entry | register | in | out |
//! |---|---|---|---|
//! | `_vm_start` | x0 | device tree, or 0 | to `vm_start`: unchanged |
//! | | x1 | | to `vm_start`: `CNTPCT_EL0` at the first instruction |
//! | `vm_secondary_start` | x0 | context given to `CPU_ON` | to `smp::secondary`: unchanged |
//!
//! Both come in at EL1 with the MMU off and interrupts masked, as the arm64 boot protocol and PSCI's
//! `CPU_ON` (Arm DEN 0022 section 5.6) say. Stacks are from `link/vm.ld`, one per CPU, in order.

use core::arch::global_asm;

use super::{Machine, psci, smp};

/// Bytes of each CPU's stack, as `link/vm.ld` reserves them.
const STACK_SIZE: usize = 16 << 10;

global_asm!(
    ".pushsection .text.start.vm, \"ax\"",
    ".global _vm_start",
    "_vm_start:",
    "mrs x5, cntpct_el0",
    "msr daifset, #0xf",
    "adrp x1, __bss_start",
    "add x1, x1, :lo12:__bss_start",
    "adrp x2, __bss_end",
    "add x2, x2, :lo12:__bss_end",
    "1: cmp x1, x2",
    "b.hs 2f",
    "stp xzr, xzr, [x1], #16",
    "b 1b",
    "2: mov x1, xzr",
    "bl 3f",
    "mov x1, x5",
    "bl {start}",
    ".global vm_secondary_start",
    "vm_secondary_start:",
    "msr daifset, #0xf",
    "mrs x1, mpidr_el1",
    "and x1, x1, #0xff",
    "bl 3f",
    "bl {secondary}",
    // x1 = index of the CPU: sets its vectors and its stack.
    "3: adrp x2, vm_vectors",
    "add x2, x2, :lo12:vm_vectors",
    "msr vbar_el1, x2",
    "isb",
    "adrp x2, __stacks_start",
    "add x2, x2, :lo12:__stacks_start",
    "add x1, x1, #1",
    "mov x3, #{stack_size}",
    "madd x2, x1, x3, x2",
    "mov sp, x2",
    "mov x29, xzr",
    "ret",
    ".popsection",
    start = sym vm_start,
    secondary = sym smp::secondary,
    stack_size = const STACK_SIZE,
);

unsafe extern "Rust" {
    /// Runs the VM's program, defined by [`vm_main!`](crate::vm_main).
    fn bulkhead_vm_main(machine: Machine);
}

extern "C" fn vm_start(device_tree: usize, started: u64) -> ! {
    // SAFETY: `vm_main!` defines the symbol with this signature; the linker fails without it.
    unsafe { bulkhead_vm_main(Machine::new(device_tree, started)) }
    psci::system_off()
}
