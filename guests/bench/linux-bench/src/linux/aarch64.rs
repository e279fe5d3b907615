// SPDX-License-Identifier: Apache-2.0
//! Linux on 64-bit Arm: its entry, its call, and the counter.
//!
//! Numbers and structures are from the kernel's `include/uapi/asm-generic/unistd.h` and
//! `arch/arm64/include/uapi/asm`.

use core::arch::{asm, global_asm};

pub(super) const DUP3: usize = 24;
pub(super) const IOCTL: usize = 29;
pub(super) const MKDIRAT: usize = 34;
pub(super) const UNLINKAT: usize = 35;
pub(super) const MOUNT: usize = 40;
pub(super) const FTRUNCATE: usize = 46;
pub(super) const OPENAT: usize = 56;
pub(super) const CLOSE: usize = 57;
pub(super) const PIPE2: usize = 59;
pub(super) const LSEEK: usize = 62;
pub(super) const READ: usize = 63;
pub(super) const WRITE: usize = 64;
pub(super) const NEWFSTATAT: usize = 79;
pub(super) const FSYNC: usize = 82;
pub(super) const EXIT_GROUP: usize = 94;
pub(super) const NANOSLEEP: usize = 101;
pub(super) const KILL: usize = 129;
pub(super) const RT_SIGACTION: usize = 134;
pub(super) const REBOOT: usize = 142;
pub(super) const PRCTL: usize = 167;
pub(super) const GETPPID: usize = 173;
pub(super) const SOCKET: usize = 198;
pub(super) const SOCKETPAIR: usize = 199;
pub(super) const BIND: usize = 200;
pub(super) const LISTEN: usize = 201;
pub(super) const ACCEPT: usize = 202;
pub(super) const CONNECT: usize = 203;
pub(super) const MUNMAP: usize = 215;
pub(super) const CLONE: usize = 220;
pub(super) const EXECVE: usize = 221;
pub(super) const MMAP: usize = 222;
pub(super) const WAIT4: usize = 260;
pub(super) const GETRANDOM: usize = 278;

/// O_DIRECT.
pub(super) const DIRECT: usize = 0o200_000;

/// Returns the flag and the code that a program gives for the return from a signal. The kernel has the code.
pub(super) fn restorer() -> [usize; 2] {
    [0; 2]
}

global_asm!(
    ".global _start",
    "_start:",
    "    mov x29, xzr",
    "    mov x30, xzr",
    "    ldr x0, [sp, #8]",
    "    ldrb w0, [x0]",
    "    b {main}",
    main = sym super::entered,
);

/// Makes a system call. The result is negative if the call failed.
///
/// # Safety
/// The arguments point to what the call expects there, and no other code uses the memory that the call
/// writes.
pub(super) unsafe fn call(number: usize, [x0, x1, x2, x3, x4, x5]: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel changes x0 and, as the caller promises, memory that is the call's.
    unsafe {
        asm!("svc #0", in("x8") number, inout("x0") x0 => result, in("x1") x1, in("x2") x2, in("x3") x3, in("x4") x4,
             in("x5") x5, options(nostack));
    }
    result
}

/// Returns the time, in nanoseconds. Linux lets programs read the virtual counter (CNTKCTL_EL1.EL0VCTEN).
pub(crate) fn now() -> u64 {
    let (ticks, hertz): (u64, u64);
    // SAFETY: reads two registers. The barrier keeps the counter from being read early (Arm DDI 0487,
    // D11.1.2).
    unsafe {
        asm!("isb", "mrs {ticks}, cntvct_el0", "mrs {hertz}, cntfrq_el0", ticks = out(reg) ticks, hertz = out(reg) hertz,
             options(nomem, nostack));
    }
    (u128::from(ticks) * 1_000_000_000 / u128::from(hertz.max(1))) as u64
}
