// SPDX-License-Identifier: Apache-2.0
//! Linux on 32-bit PowerPC: its entry, its call, and the counter.
//!
//! Numbers and structures are from the kernel's `arch/powerpc/kernel/syscalls/syscall.tbl` and
//! `arch/powerpc/include/uapi/asm`.

use core::arch::{asm, global_asm};

pub(super) const READ: usize = 3;
pub(super) const WRITE: usize = 4;
pub(super) const CLOSE: usize = 6;
pub(super) const EXECVE: usize = 11;
pub(super) const MOUNT: usize = 21;
pub(super) const KILL: usize = 37;
pub(super) const GETPPID: usize = 64;
pub(super) const REBOOT: usize = 88;
pub(super) const MMAP: usize = 90;
pub(super) const MUNMAP: usize = 91;
pub(super) const WAIT4: usize = 114;
pub(super) const CLONE: usize = 120;
pub(super) const NANOSLEEP: usize = 162;
pub(super) const PRCTL: usize = 171;
pub(super) const RT_SIGACTION: usize = 173;
pub(super) const EXIT_GROUP: usize = 234;
pub(super) const OPENAT: usize = 286;
pub(super) const NEWFSTATAT: usize = 291;
pub(super) const DUP3: usize = 316;
pub(super) const PIPE2: usize = 317;
pub(super) const GETRANDOM: usize = 359;

/// Nanoseconds of a tick of the time base, which has 333 333 333 Hz.
const NANOSECONDS: u64 = 3;

global_asm!(
    ".global _start",
    "_start:",
    "    li 0, 0",
    "    lwz 3, 4(1)",
    "    lbz 3, 0(3)",
    "    clrrwi 1, 1, 4",
    "    stwu 0, -16(1)",
    "    b {main}",
    main = sym super::entered,
);

/// Returns the flag and the code that a program gives for the return from a signal. The kernel has the code.
pub(super) fn restorer() -> [usize; 2] {
    [0; 2]
}

/// Makes a system call. The result is negative if the call failed.
///
/// # Safety
/// The arguments point to what the call expects there, and no other code uses the memory that the call
/// writes.
pub(super) unsafe fn call(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel changes r0, r3 to r12, CR0, CTR, XER and, as the caller promises, memory that is the
    // call's. A failure sets CR0.SO, and r3 is the positive number of the error.
    unsafe {
        asm!("sc", "bns+ 2f", "neg 3, 3", "2:", inout("r0") number => _, inout("r3") a as isize => result,
             inout("r4") b => _, inout("r5") c => _, inout("r6") d => _, inout("r7") e => _, inout("r8") f => _,
             out("r9") _, out("r10") _, out("r11") _, out("r12") _, out("cr0") _, out("ctr") _, out("xer") _, options(nostack));
    }
    result
}

/// Returns the time, in nanoseconds.
pub(crate) fn now() -> u64 {
    let (mut high, mut low, mut again): (u32, u32, u32);
    loop {
        // SAFETY: reads the counter's halves, which programs may.
        unsafe {
            asm!("mftbu {high}", "mftb {low}", "mftbu {again}", high = out(reg) high, low = out(reg) low,
                 again = out(reg) again, options(nomem, nostack));
        }
        if high == again {
            return (u64::from(high) << 32 | u64::from(low)) * NANOSECONDS;
        }
    }
}
