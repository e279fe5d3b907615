// SPDX-License-Identifier: Apache-2.0
//! Calls of the firmware (Arm DEN 0028F).

/// Calls the firmware.
pub(crate) fn firmware(function: u64, arguments: [u64; 3]) -> i64 {
    let [first, second, third] = arguments;
    let result: i64;
    // SAFETY: an SMCCC call (DEN 0028F 2.6): x0..x17 may change; the hypervisor's memory does not change,
    // except by the code of a started CPU from its entry point on, which is the hypervisor's own code.
    unsafe {
        core::arch::asm!(
            "smc #0",
            inout("x0") function as i64 => result,
            inout("x1") first => _, inout("x2") second => _, inout("x3") third => _,
            out("x4") _, out("x5") _, out("x6") _, out("x7") _, out("x8") _, out("x9") _, out("x10") _,
            out("x11") _, out("x12") _, out("x13") _, out("x14") _, out("x15") _, out("x16") _, out("x17") _,
            options(nostack)
        );
    }
    result
}
