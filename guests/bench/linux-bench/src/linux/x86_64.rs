// SPDX-License-Identifier: Apache-2.0
//! Linux on amd64: its entry, its call, and the counter.
//!
//! Numbers and structures are from the kernel's `arch/x86/entry/syscalls/syscall_64.tbl` and
//! `arch/x86/include/uapi/asm`.

use core::arch::{asm, global_asm};

pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;
pub(super) const CLOSE: usize = 3;
pub(super) const LSEEK: usize = 8;
pub(super) const MMAP: usize = 9;
pub(super) const MUNMAP: usize = 11;
pub(super) const RT_SIGACTION: usize = 13;
pub(super) const IOCTL: usize = 16;
pub(super) const NANOSLEEP: usize = 35;
pub(super) const SOCKET: usize = 41;
pub(super) const CONNECT: usize = 42;
pub(super) const ACCEPT: usize = 43;
pub(super) const BIND: usize = 49;
pub(super) const LISTEN: usize = 50;
pub(super) const SOCKETPAIR: usize = 53;
pub(super) const CLONE: usize = 56;
pub(super) const EXECVE: usize = 59;
pub(super) const WAIT4: usize = 61;
pub(super) const KILL: usize = 62;
pub(super) const FSYNC: usize = 74;
pub(super) const FTRUNCATE: usize = 77;
pub(super) const GETPPID: usize = 110;
pub(super) const PRCTL: usize = 157;
pub(super) const MOUNT: usize = 165;
pub(super) const REBOOT: usize = 169;
pub(super) const EXIT_GROUP: usize = 231;
pub(super) const OPENAT: usize = 257;
pub(super) const MKDIRAT: usize = 258;
pub(super) const NEWFSTATAT: usize = 262;
pub(super) const UNLINKAT: usize = 263;
pub(super) const DUP3: usize = 292;
pub(super) const PIPE2: usize = 293;
pub(super) const GETRANDOM: usize = 318;

/// O_DIRECT.
pub(super) const DIRECT: usize = 0o40_000;
const RT_SIGRETURN: usize = 15;
const SA_RESTORER: usize = 0x0400_0000;

global_asm!(
    ".global _start",
    "_start:",
    "    xor ebp, ebp",
    "    mov rdi, [rsp + 8]",
    "    movzx edi, byte ptr [rdi]",
    "    and rsp, -16",
    "    call {main}",
    "    ud2",
    ".global return_from_signal",
    "return_from_signal:",
    "    mov eax, {number}",
    "    syscall",
    main = sym super::entered,
    number = const RT_SIGRETURN,
);

unsafe extern "C" {
    safe fn return_from_signal();
}

/// Returns the flag and the code that a program gives for the return from a signal.
pub(super) fn restorer() -> [usize; 2] {
    [SA_RESTORER, return_from_signal as *const () as usize]
}

/// Makes a system call. The result is negative if the call failed.
///
/// # Safety
/// The arguments point to what the call expects there, and no other code uses the memory that the call
/// writes.
pub(super) unsafe fn call(number: usize, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel changes rax, rcx, r11 and, as the caller promises, memory that is the call's.
    unsafe {
        asm!("syscall", inout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
             in("r8") e, in("r9") f, out("rcx") _, out("r11") _, options(nostack));
    }
    result
}

/// Returns the time, in nanoseconds: the counter of the emulator's CPU has 1 GHz.
pub(crate) fn now() -> u64 {
    // SAFETY: orders loads. It keeps the counter from being read early (AMD 24594, RDTSC).
    unsafe { core::arch::x86_64::_mm_lfence() }
    // SAFETY: reads the counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}
