// SPDX-License-Identifier: Apache-2.0
//! Hypercalls of a 64-bit CPU: `HVC #0` from a VM, `SVC #0` from a task.

use core::arch::asm;

use crate::kind;

/// Makes a call with `identifier` in x0 and `arguments` in x1..x6; returns x0..x4.
pub(crate) fn call(identifier: u64, arguments: [u64; 6]) -> [u64; 5] {
    let [mut x1, mut x2, mut x3, mut x4, x5, x6] = arguments;
    let mut x0 = identifier;
    if kind::is_task() {
        // SAFETY: the hypervisor changes x0..x4 only (head of `bulkhead-abi`), and of our memory only the
        // buffer that a call of a port names. The compiler takes all memory for changed.
        unsafe {
            asm!("svc #0", inout("x0") x0, inout("x1") x1, inout("x2") x2, inout("x3") x3, inout("x4") x4,
                 in("x5") x5, in("x6") x6, options(nostack));
        }
    } else {
        // SAFETY: as above; SMCCC 1.1 section 2.5 preserves x4..x17 too, and ours says which change.
        unsafe {
            asm!("hvc #0", inout("x0") x0, inout("x1") x1, inout("x2") x2, inout("x3") x3, inout("x4") x4,
                 in("x5") x5, in("x6") x6, options(nostack));
        }
    }
    [x0, x1, x2, x3, x4]
}
