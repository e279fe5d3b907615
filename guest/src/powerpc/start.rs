// SPDX-License-Identifier: Apache-2.0
//! First instructions of a VM on a PowerPC 405, and its vectors.
//!
//! | entry | register | in | out |
//! |---|---|---|---|
//! | `_powerpc_start` | r3 | device tree, or 0 | to `powerpc_start`: unchanged |
//!
//! An unexpected interrupt prints its vector and ends the program. A system call returns at once, so
//! that a hypercall on the bare board has no effect but an error in r3.

use core::arch::global_asm;

use super::{Machine, device_tree, end};
use crate::println;

global_asm!(
    ".pushsection .text.start.powerpc, \"ax\", @progbits",
    ".global _powerpc_start",
    "_powerpc_start:",
    "lis 1, __stack_top@ha",
    "addi 1, 1, __stack_top@l",
    "lis 4, __bss_start@ha",
    "addi 4, 4, __bss_start@l",
    "lis 5, __bss_end@ha",
    "addi 5, 5, __bss_end@l",
    "li 6, 0",
    "1: cmplw 4, 5",
    "bge 2f",
    "stw 6, 0(4)",
    "addi 4, 4, 4",
    "b 1b",
    "2: lis 4, __vectors@ha",
    "addi 4, 4, __vectors@l",
    "mtspr 982, 4",
    "stwu 6, -16(1)",
    "bl {start}",
    ".popsection",
    ".pushsection .vectors, \"ax\", @progbits",
    ".macro unexpected offset",
    ".org \\offset",
    "li 3, \\offset",
    "b 4f",
    ".endm",
    ".irp offset, 0x100, 0x200, 0x300, 0x400, 0x500, 0x600, 0x700, 0x800",
    "unexpected \\offset",
    ".endr",
    ".org 0xC00",
    "li 3, -1",
    "rfi",
    // The timer ends a wait: SRR1 loses WE and EE.
    ".org 0x1000",
    "b 5f",
    ".irp offset, 0x1010, 0x1020, 0x1100, 0x1200, 0x2000",
    "unexpected \\offset",
    ".endr",
    "5: mtspr 273, 3",
    "mfspr 3, 27",
    "rlwinm 3, 3, 0, 17, 15",
    "rlwinm 3, 3, 0, 14, 12",
    "mtspr 27, 3",
    "mfspr 3, 273",
    "rfi",
    "4: lis 1, __stack_top@ha",
    "addi 1, 1, __stack_top@l",
    "stwu 6, -16(1)",
    "mfspr 4, 26",
    "mfspr 5, 980",
    "mfspr 6, 981",
    "bl {unexpected}",
    ".popsection",
    start = sym powerpc_start,
    unexpected = sym unexpected,
);

unsafe extern "Rust" {
    /// Runs the VM's program, defined by [`powerpc_main!`](crate::powerpc_main).
    fn bulkhead_powerpc_main(machine: Machine);
}

extern "C" fn powerpc_start(tree: usize) -> ! {
    let machine = Machine {
        device_tree: device_tree(tree),
    };
    // SAFETY: `powerpc_main!` defines the symbol with this signature; the linker fails without it.
    unsafe { bulkhead_powerpc_main(machine) }
    end()
}

extern "C" fn unexpected(vector: u32, pc: u32, syndrome: u32, address: u32) -> ! {
    println!("UNEXPECTED interrupt {vector:#x} at {pc:#x}, ESR {syndrome:#x}, DEAR {address:#x}");
    end()
}
