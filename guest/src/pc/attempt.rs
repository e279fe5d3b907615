// SPDX-License-Identifier: Apache-2.0
//! Instructions that may raise an exception, and code that may do anything: for suites and hostile guests.
//!
//! An attempt is one instruction. An exception that it raises goes on after it, and its vector is the
//! result. [`run`] jumps to arbitrary code; an exception, an interrupt or a return gets out of that again, if
//! the code has left enough of the machine for that.

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU64, Ordering};

use super::frame::Frame;

/// Where the instruction after an attempt is, 0 if there is no attempt.
static BEHIND: AtomicU64 = AtomicU64::new(0);
/// The vector of the last attempt's exception plus 1, 0 if there was none.
static RAISED: AtomicU64 = AtomicU64::new(0);
/// The stack pointer of the function that runs arbitrary code, 0 if none does.
static OUTSIDE: AtomicU64 = AtomicU64::new(0);

/// First vector that is no exception.
const FIRST_INTERRUPT: u64 = 32;

/// Makes an instruction an attempt. The stack pointer is the same after it.
macro_rules! attempt {
    ($code:literal $(, $($operand:tt)+)?) => {{
        RAISED.store(0, Ordering::Relaxed);
        // SAFETY: an exception goes on after the instruction with all registers as they were; the effect of
        // the instruction is what the caller wants, on memory and registers that no Rust code refers to.
        unsafe {
            asm!("lea {behind}, [rip + 77f]", "mov [rip + {place}], {behind}", $code, "77:",
                 "mov qword ptr [rip + {place}], 0",
                 behind = out(reg) _, place = sym BEHIND $(, $($operand)+)?);
        }
        result()
    }};
}

/// Returns the vector that the last attempt has raised.
fn result() -> Result<(), u8> {
    match RAISED.load(Ordering::Relaxed) {
        0 => Ok(()),
        vector => Err(vector.wrapping_sub(1) as u8),
    }
}

/// Goes on after an attempt, if the frame is of one. Returns whether it was.
pub(super) fn recover(frame: &mut Frame) -> bool {
    if OUTSIDE.load(Ordering::Relaxed) != 0 {
        if frame.vector >= FIRST_INTERRUPT {
            super::apic::end();
        }
        RAISED.store(frame.vector + 1, Ordering::Relaxed);
        // SAFETY: `__pc_run` has stored its stack pointer, and waits for this to come back.
        unsafe { __pc_run_end() }
    }
    // One exception is the attempt's: after it a non-maskable interrupt may come before the next
    // instruction.
    let behind = BEHIND.load(Ordering::Relaxed);
    if behind == 0 || frame.vector >= FIRST_INTERRUPT {
        return false;
    }
    BEHIND.store(0, Ordering::Relaxed);
    RAISED.store(frame.vector + 1, Ordering::Relaxed);
    frame.rip = behind;
    true
}

global_asm!(
    r#"
    .text
    .global __pc_run
__pc_run:
    // RDI = code, RSI = selector of its segment, RDX = value of all other registers.
    push    rbx
    push    rbp
    push    r12
    push    r13
    push    r14
    push    r15
    mov     [rip + {outside}], rsp
    lea     rax, [rip + __pc_run_end]
    push    rax
    push    rsi
    push    rdi
    mov     rax, rdx
    mov     rbx, rdx
    rol     rbx, 13
    mov     rcx, rdx
    rol     rcx, 27
    mov     rbp, rdx
    rol     rbp, 33
    mov     r8, rbx
    mov     r9, rcx
    mov     r10, rbp
    mov     r11, rax
    mov     r12, rbx
    mov     r13, rcx
    mov     r14, rbp
    mov     r15, rax
    mov     rdi, rcx
    mov     rsi, rbp
    retfq

    .global __pc_run_user
__pc_run_user:
    // RDI = code, RSI = selector of its segment, RDX = selector of its stack.
    push    rbx
    push    rbp
    push    r12
    push    r13
    push    r14
    push    r15
    mov     [rip + {outside}], rsp
    push    rdx
    push    0
    push    2
    push    rsi
    push    rdi
    xor     eax, eax
    xor     ecx, ecx
    xor     edx, edx
    iretq
    .global __pc_run_end
__pc_run_end:
    cli
    cld
    mov     rsp, [rip + {outside}]
    mov     qword ptr [rip + {outside}], 0
    mov     eax, 0x18
    mov     ds, eax
    mov     es, eax
    mov     ss, eax
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     rbp
    pop     rbx
    ret
"#,
    outside = sym OUTSIDE,
);

unsafe extern "C" {
    fn __pc_run(code: u64, selector: u64, value: u64);
    fn __pc_run_user(code: u64, selector: u64, stack: u64);
    fn __pc_run_end() -> !;
}

/// Selectors of the program's own descriptor table: 64-bit code, 32-bit code.
pub const CODE_64: u64 = 0x10;
/// 32-bit code.
pub const CODE_32: u64 = 0x20;

/// Runs code at an address below 4 GiB in the segment of this selector, all registers made of `value`.
/// Returns the vector of the exception or interrupt that ended it.
///
/// # Errors
/// The vector; without one the code has returned.
pub fn run(code: u64, selector: u64, value: u64) -> Result<(), u8> {
    RAISED.store(0, Ordering::Relaxed);
    // SAFETY: the code may destroy the program, which is the caller's intent; it can reach nothing else.
    unsafe { __pc_run(code, selector, value) }
    result()
}

/// Runs code at privilege level 3 until it raises an exception, with no stack. [`super::user::open`] comes
/// first. Returns the vector.
pub fn run_user(code: &'static [u8]) -> u8 {
    RAISED.store(0, Ordering::Relaxed);
    let (selector, stack) = super::user::SELECTORS;
    // SAFETY: nothing but an exception leads out of the code, and that ends it (`recover`).
    unsafe { __pc_run_user(code.as_ptr() as u64, selector, stack) }
    result().err().unwrap_or(u8::MAX)
}

/// Reads a model-specific register.
///
/// # Errors
/// The vector of the exception; so for all functions of this module.
pub fn read_msr(number: u32) -> Result<u64, u8> {
    let (low, high): (u32, u32);
    attempt!("rdmsr", in("ecx") number, out("eax") low, out("edx") high)?;
    Ok(u64::from(high) << 32 | u64::from(low))
}

/// Writes a model-specific register.
///
/// # Errors
/// See [`read_msr`].
pub fn write_msr(number: u32, value: u64) -> Result<(), u8> {
    attempt!("wrmsr", in("ecx") number, in("eax") value as u32, in("edx") (value >> 32) as u32)
}

/// Reads a port: 1, 2 or 4 bytes.
///
/// # Errors
/// See [`read_msr`].
pub fn read_port(port: u16, size: u8) -> Result<u32, u8> {
    let value: u32;
    match size {
        1 => attempt!("in al, dx", in("edx") u32::from(port), inout("eax") 0_u32 => value),
        2 => attempt!("in ax, dx", in("edx") u32::from(port), inout("eax") 0_u32 => value),
        _ => attempt!("in eax, dx", in("edx") u32::from(port), inout("eax") 0_u32 => value),
    }?;
    Ok(value)
}

/// Writes a port: 1, 2 or 4 bytes.
///
/// # Errors
/// See [`read_msr`].
pub fn write_port(port: u16, size: u8, value: u32) -> Result<(), u8> {
    match size {
        1 => attempt!("out dx, al", in("edx") u32::from(port), in("eax") value),
        2 => attempt!("out dx, ax", in("edx") u32::from(port), in("eax") value),
        _ => attempt!("out dx, eax", in("edx") u32::from(port), in("eax") value),
    }
}

/// Loads 1, 2, 4 or 8 bytes.
///
/// # Errors
/// See [`read_msr`].
pub fn load(address: u64, size: u8) -> Result<u64, u8> {
    let value: u64;
    match size {
        1 => attempt!("movzx eax, byte ptr [rdx]", in("rdx") address, inout("rax") 0_u64 => value),
        2 => attempt!("movzx eax, word ptr [rdx]", in("rdx") address, inout("rax") 0_u64 => value),
        4 => attempt!("mov eax, [rdx]", in("rdx") address, inout("rax") 0_u64 => value),
        _ => attempt!("mov rax, [rdx]", in("rdx") address, inout("rax") 0_u64 => value),
    }?;
    Ok(value)
}

/// Stores 1, 2, 4 or 8 bytes.
///
/// # Errors
/// See [`read_msr`].
pub fn store(address: u64, size: u8, value: u64) -> Result<(), u8> {
    match size {
        1 => attempt!("mov [rdx], al", in("rdx") address, in("rax") value),
        2 => attempt!("mov [rdx], ax", in("rdx") address, in("rax") value),
        4 => attempt!("mov [rdx], eax", in("rdx") address, in("rax") value),
        _ => attempt!("mov [rdx], rax", in("rdx") address, in("rax") value),
    }
}

/// Adds to 4 bytes of memory, which is a load and a store.
///
/// # Errors
/// See [`read_msr`].
pub fn add(address: u64, value: u32) -> Result<(), u8> {
    attempt!("add [rdx], eax", in("rdx") address, in("eax") value)
}

/// Writes a control register (0, 3, 4 or 8), or a debug register (any other number).
///
/// # Errors
/// See [`read_msr`].
pub fn write_control(number: u8, value: u64) -> Result<(), u8> {
    match number {
        0 => attempt!("mov cr0, rax", in("rax") value),
        3 => attempt!("mov cr3, rax", in("rax") value),
        4 => attempt!("mov cr4, rax", in("rax") value),
        8 => attempt!("mov cr8, rax", in("rax") value),
        1 => attempt!("mov dr0, rax", in("rax") value),
        2 => attempt!("mov dr3, rax", in("rax") value),
        5 => attempt!("mov dr6, rax", in("rax") value),
        _ => attempt!("mov dr7, rax", in("rax") value),
    }
}

/// Loads a descriptor table from 10 bytes at an address: of interrupts, else of segments.
///
/// # Errors
/// See [`read_msr`].
pub fn load_table(of_interrupts: bool, bytes: &[u8; 10]) -> Result<(), u8> {
    let at = bytes.as_ptr() as u64;
    if of_interrupts {
        attempt!("lidt [rdx]", in("rdx") at)
    } else {
        attempt!("lgdt [rdx]", in("rdx") at)
    }
}

/// Loads the task register, else the local descriptor table.
///
/// # Errors
/// See [`read_msr`].
pub fn load_selector(of_task: bool, selector: u16) -> Result<(), u8> {
    if of_task {
        attempt!("ltr ax", in("eax") u32::from(selector))
    } else {
        attempt!("lldt ax", in("eax") u32::from(selector))
    }
}

/// Executes an instruction of AMD-V or one that only the hypervisor may use, by its index below 12.
///
/// # Errors
/// See [`read_msr`].
pub fn privileged(index: u64) -> Result<(), u8> {
    match index {
        0 => attempt!("vmrun rax", in("rax") 0_u64),
        1 => attempt!("vmload rax", in("rax") 0_u64),
        2 => attempt!("vmsave rax", in("rax") 0_u64),
        3 => attempt!("stgi"),
        4 => attempt!("clgi"),
        5 => attempt!("skinit eax", in("eax") 0_u32),
        6 => attempt!("invlpga rax, ecx", in("rax") 0_u64, in("ecx") 1_u32),
        7 => attempt!("monitor", in("rax") 0_u64, in("ecx") 0_u32, in("edx") 0_u32),
        8 => attempt!("mwait", in("eax") 0_u32, in("ecx") 0_u32),
        9 => attempt!("xsetbv", in("eax") 7_u32, in("ecx") 0_u32, in("edx") 0_u32),
        10 => attempt!("rdpmc", in("ecx") 0_u32, out("eax") _, out("edx") _),
        _ => attempt!("wbinvd"),
    }
}
