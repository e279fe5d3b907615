// SPDX-License-Identifier: Apache-2.0
//! Registers of the processor, I/O ports, and single instructions.

use core::arch::asm;
use core::arch::x86_64::{__cpuid_count, _rdtsc};

/// EFER, and its bits SVME and NXE.
pub(crate) const EFER: u32 = 0xC000_0080;
pub(crate) const EFER_SVME: u64 = 1 << 12;
/// TSC_AUX.
pub(crate) const TSC_AUX: u32 = 0xC000_0103;
/// VM_HSAVE_PA (AMD APM volume 2, 15.30.4).
pub(crate) const HOST_SAVE: u32 = 0xC001_0117;
/// VM_CR, and its bit SVMDIS (15.30.1).
pub(crate) const VM_CR: u32 = 0xC001_0114;
pub(crate) const SVM_DISABLED: u64 = 1 << 4;

/// Reads a model-specific register of the hypervisor's own list.
pub(crate) fn read_msr(number: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the register exists on processors with AMD-V (the callers name constants above), and a read
    // changes nothing.
    unsafe {
        asm!("rdmsr", in("ecx") number, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register of the hypervisor's own list.
pub(crate) fn write_msr(number: u32, value: u64) {
    // SAFETY: the register exists on processors with AMD-V (the callers name constants above), and has no
    // effect on memory that Rust code refers to.
    unsafe {
        asm!("wrmsr", in("ecx") number, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags));
    }
}

/// CR4.OSXSAVE, and XCR0: x87, SSE, AVX.
const OSXSAVE: u64 = 1 << 18;
const X87: u32 = 1;
const WIDE: u32 = 7;

/// Lets the hypervisor use registers of 256 bits (AMD APM volume 2, 11.5.2), which the processor must have.
pub(crate) fn open_wide() {
    // SAFETY: the caller has asked CPUID; a bit more of CR4 and XCR0 changes nothing that is in use.
    unsafe {
        asm!("mov rax, cr4", "or rax, {bit}", "mov cr4, rax", "xor ecx, ecx", "xor edx, edx", "mov eax, {all}",
             "xsetbv", bit = const OSXSAVE, all = const WIDE,
             out("rax") _, out("rcx") _, out("rdx") _, options(nostack));
    }
}

/// Takes back [`open_wide`], so that guests do not find it.
pub(crate) fn close_wide() {
    // SAFETY: as above; the registers are not in use any more.
    unsafe {
        asm!("xor ecx, ecx", "xor edx, edx", "mov eax, {x87}", "xsetbv", "mov rax, cr4", "and rax, {others}",
             "mov cr4, rax", x87 = const X87, others = const !OSXSAVE as i64,
             out("rax") _, out("rcx") _, out("rdx") _, options(nostack));
    }
}

/// Returns the time-stamp counter.
#[inline(always)]
pub(crate) fn counter() -> u64 {
    // SAFETY: RDTSC is there on every processor of the class, and reads a counter.
    unsafe { _rdtsc() }
}

/// Returns a leaf of CPUID.
pub(crate) fn cpuid(leaf: u32, subleaf: u32) -> [u32; 4] {
    let found = __cpuid_count(leaf, subleaf);
    [found.eax, found.ebx, found.ecx, found.edx]
}

/// Reads a byte from a port.
pub(crate) fn read_port8(port: u16) -> u8 {
    let value;
    // SAFETY: ports are devices of the board that the hypervisor drives; no memory changes.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags));
    }
    value
}

/// Writes a byte to a port.
pub(crate) fn write_port8(port: u16, value: u8) {
    // SAFETY: as above.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags));
    }
}

/// Reads four bytes from a port.
pub(crate) fn read_port32(port: u16) -> u32 {
    let value;
    // SAFETY: as above.
    unsafe {
        asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags));
    }
    value
}

/// Writes two bytes to a port.
pub(crate) fn write_port16(port: u16, value: u16) {
    // SAFETY: as above.
    unsafe {
        asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags));
    }
}

/// Loads the root of the hypervisor's translation tables.
///
/// # Safety
/// The tables map code, data and stack that are in use, as they are mapped now.
pub(crate) unsafe fn load_root(root: u64) {
    // SAFETY: the caller's promise.
    unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack, preserves_flags)) }
}

/// Returns the address of the last page fault.
pub(crate) fn fault_address() -> u64 {
    let address;
    // SAFETY: a read of CR2 changes nothing.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack, preserves_flags)) }
    address
}

/// Reads DR0 to DR3. The hypervisor has no use for them, so they are a guest's.
pub(crate) fn read_debug() -> [u64; 4] {
    let (first, second, third, fourth);
    // SAFETY: reads change nothing.
    unsafe {
        asm!("mov {}, dr0", "mov {}, dr1", "mov {}, dr2", "mov {}, dr3",
             out(reg) first, out(reg) second, out(reg) third, out(reg) fourth,
             options(nomem, nostack, preserves_flags));
    }
    [first, second, third, fourth]
}

/// Writes DR0 to DR3.
pub(crate) fn write_debug([first, second, third, fourth]: [u64; 4]) {
    // SAFETY: DR7 enables no breakpoint while the hypervisor runs (AMD APM volume 2, 15.6).
    unsafe {
        asm!("mov dr0, {}", "mov dr1, {}", "mov dr2, {}", "mov dr3, {}",
             in(reg) first, in(reg) second, in(reg) third, in(reg) fourth,
             options(nomem, nostack, preserves_flags));
    }
}

/// Takes the interrupt with the highest priority, if one is pending; returns its vector. `entry` has the
/// stubs: each puts its vector into EAX, and returns with interrupts masked.
#[inline(always)]
pub(crate) fn take_interrupt() -> Option<u8> {
    let vector: u32;
    // SAFETY: a stub of `entry` changes EAX and the flag, and uses the stack below RSP, which the compiler
    // leaves alone because `nostack` is not given.
    unsafe { asm!("xor eax, eax", "sti", "nop", "cli", out("eax") vector) }
    (vector != 0).then_some(vector as u8)
}

/// Waits for an interrupt, and takes it.
pub(crate) fn wait_for_interrupt() -> u8 {
    let vector: u32;
    // SAFETY: as above; STI lets no interrupt in before HLT waits.
    unsafe { asm!("xor eax, eax", "sti", "hlt", "cli", out("eax") vector) }
    vector as u8
}
