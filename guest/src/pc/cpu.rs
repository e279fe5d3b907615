// SPDX-License-Identifier: Apache-2.0
//! Instructions of the processor.

use core::arch::asm;
use core::arch::x86_64::{__cpuid_count, _rdtsc};

/// Returns the time-stamp counter.
#[must_use]
pub fn counter() -> u64 {
    // SAFETY: every machine has the counter.
    unsafe { _rdtsc() }
}

/// Returns a leaf of CPUID: EAX, EBX, ECX, EDX.
#[must_use]
pub fn cpuid(leaf: u32, subleaf: u32) -> [u32; 4] {
    let found = __cpuid_count(leaf, subleaf);
    [found.eax, found.ebx, found.ecx, found.edx]
}

/// Reads a model-specific register. One that is not there raises #GP.
#[must_use]
pub fn read_msr(number: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: a read changes nothing; an exception is taken by `exception`.
    unsafe { asm!("rdmsr", in("ecx") number, out("eax") low, out("edx") high) }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register. One that is not there raises #GP.
pub fn write_msr(number: u32, value: u64) {
    // SAFETY: a guest that writes registers with effects on its own memory does so on purpose.
    unsafe { asm!("wrmsr", in("ecx") number, in("eax") value as u32, in("edx") (value >> 32) as u32) }
}

/// Reads a byte from a port.
#[must_use]
pub fn read_port8(port: u16) -> u8 {
    let value;
    // SAFETY: ports are devices, which have no access to our memory.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack)) }
    value
}

/// Writes a byte to a port.
pub fn write_port8(port: u16, value: u8) {
    // SAFETY: as above.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack)) }
}

/// Writes two bytes to a port.
pub fn write_port16(port: u16, value: u16) {
    // SAFETY: as above.
    unsafe { asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack)) }
}

/// Reads four bytes from a port.
#[must_use]
pub fn read_port32(port: u16) -> u32 {
    let value;
    // SAFETY: as above.
    unsafe { asm!("in eax, dx", in("dx") port, out("eax") value, options(nostack)) }
    value
}

/// Reads DR0 to DR3.
#[must_use]
pub fn read_debug() -> [u64; 4] {
    let (first, second, third, fourth);
    // SAFETY: reads change nothing.
    unsafe {
        asm!("mov {}, dr0", "mov {}, dr1", "mov {}, dr2", "mov {}, dr3",
             out(reg) first, out(reg) second, out(reg) third, out(reg) fourth, options(nostack));
    }
    [first, second, third, fourth]
}

/// Writes DR0 to DR3.
pub fn write_debug([first, second, third, fourth]: [u64; 4]) {
    // SAFETY: addresses of breakpoints. A #DB is taken by `exception`.
    unsafe {
        asm!("mov dr0, {}", "mov dr1, {}", "mov dr2, {}", "mov dr3, {}",
             in(reg) first, in(reg) second, in(reg) third, in(reg) fourth, options(nostack));
    }
}

/// Writes DR7, which switches breakpoints on.
pub fn write_debug_control(value: u64) {
    // SAFETY: as above.
    unsafe { asm!("mov dr7, {}", in(reg) value, options(nostack)) }
}

/// Lets interrupts in, waits for one, and masks them again. Handlers run meanwhile.
pub fn wait() {
    // SAFETY: handlers save what they change; STI lets nothing in before HLT.
    unsafe { asm!("sti", "hlt", "cli") }
}

/// Lets interrupts in from the next instruction but one on.
pub fn unmask() {
    // SAFETY: handlers save what they change.
    unsafe { asm!("sti") }
}

/// Masks interrupts.
pub fn mask() {
    // SAFETY: a flag changes.
    unsafe { asm!("cli") }
}

/// Lets interrupts that are pending in, and masks them again.
pub fn open() {
    // SAFETY: as above.
    unsafe { asm!("sti", "nop", "cli") }
}

/// Stops for good.
pub fn stop() -> ! {
    loop {
        // SAFETY: nothing happens any more.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) }
    }
}

/// Reads a control register.
macro_rules! read_control {
    ($name:literal) => {{
        let value;
        // SAFETY: a read changes nothing.
        unsafe { asm!(concat!("mov {}, ", $name), out(reg) value, options(nomem, nostack)) }
        value
    }};
}

/// Returns CR3.
#[must_use]
pub fn cr3() -> u64 {
    read_control!("cr3")
}

/// Sets a bit of CR3 that is reserved in long mode (AMD APM volume 2, 3.1.2). A processor refuses that with
/// #GP.
pub fn set_reserved_bit_of_cr3() {
    let value = cr3() | 1 << 60;
    // SAFETY: the tables stay the same ones. A processor that refuses the value keeps the old one.
    unsafe { asm!("mov cr3, {}", in(reg) value, options(nostack, preserves_flags)) }
}

/// Returns CR4.
#[must_use]
pub fn cr4() -> u64 {
    read_control!("cr4")
}

/// Writes CR4. A bit that is not allowed raises #GP.
pub fn set_cr4(value: u64) {
    // SAFETY: the program uses none of what a bit that is allowed would change; an exception is taken by
    // `exception`.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack)) }
}

/// Loads a word of memory or of a device.
#[must_use]
pub fn load(address: u64) -> u32 {
    let value: u32;
    // SAFETY: a load changes none of our memory; an exception is taken by `exception`.
    unsafe { asm!("mov {:e}, [{}]", out(reg) value, in(reg) address, options(readonly, nostack)) }
    value
}

/// Stores a word to a device.
pub fn store(address: u64, value: u32) {
    // SAFETY: the caller names a device, or memory that is not the program's.
    unsafe { asm!("mov [{}], {:e}", in(reg) address, in(reg) value, options(nostack)) }
}

/// Jumps to an address where no program is. The exception or the exit of the fetch ends the caller.
pub fn jump(address: u64) -> ! {
    // SAFETY: nothing is executed there, and this does not come back.
    unsafe { asm!("jmp {}", in(reg) address, options(noreturn)) }
}
