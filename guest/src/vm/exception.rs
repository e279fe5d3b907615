// SPDX-License-Identifier: Apache-2.0
//! Exception vectors of a VM, and what a guest can do about an exception.
//!
//! - An interrupt calls the function given to [`set_interrupt_handler`], with interrupts masked.
//! - A synchronous exception within [`probe`] is noted and skipped: a guest uses this to ask "does this
//!   instruction work here?".
//! - An SError within [`probe`] is noted too.
//! - Anything else is printed as `exception ec=.. ..` and ends the machine.
//!
//! The entry saves x0..x30 only: the library and our guests are compiled without FP/SIMD, so a handler cannot
//! touch those registers. Invariant: an interrupt handler is a plain function whose shared state is atomic.

use core::arch::{asm, global_asm};
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::smp::MAX_CPUS;
use super::{cpu, psci};
use crate::println;

/// Registers of the interrupted program; the handler may change them.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct Frame {
    /// x0..x30.
    pub general: [u64; 31],
    /// The address at which it goes on.
    pub pc: u64,
    /// Its processor state.
    pub state: u64,
}

/// A synchronous exception or SError that was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// `ESR_EL1`.
    pub syndrome: u64,
    /// `FAR_EL1`.
    pub address: u64,
    /// The instruction.
    pub pc: u64,
}

impl Fault {
    /// Returns the exception class (`ESR_ELx.EC`).
    #[must_use]
    pub const fn class(&self) -> u64 {
        self.syndrome >> 26 & 0x3F
    }
}

/// Exception classes (Arm ARM DDI 0487 ESR_EL1.EC).
pub mod class {
    /// Unknown reason: an undefined instruction.
    pub const UNKNOWN: u64 = 0x00;
    /// SVC in AArch64 state.
    pub const SVC: u64 = 0x15;
    /// Instruction abort from the same level.
    pub const INSTRUCTION_ABORT: u64 = 0x21;
    /// Data abort from the same level.
    pub const DATA_ABORT: u64 = 0x25;
    /// SError.
    pub const SERROR: u64 = 0x2F;
    /// Hardware breakpoint at the same level.
    pub const BREAKPOINT: u64 = 0x31;
    /// Software step at the same level.
    pub const STEP: u64 = 0x33;
    /// Watchpoint at the same level.
    pub const WATCHPOINT: u64 = 0x35;
    /// BRK instruction.
    pub const BRK: u64 = 0x3C;
}

static INTERRUPT_HANDLER: AtomicUsize = AtomicUsize::new(0);

/// The notes of [`probe`], per CPU.
struct Probe {
    active: AtomicBool,
    faults: AtomicU32,
    syndrome: AtomicU64,
    address: AtomicU64,
    pc: AtomicU64,
}

static PROBES: [Probe; MAX_CPUS] = [const {
    Probe {
        active: AtomicBool::new(false),
        faults: AtomicU32::new(0),
        syndrome: AtomicU64::new(0),
        address: AtomicU64::new(0),
        pc: AtomicU64::new(0),
    }
}; MAX_CPUS];

/// Has `handler` called for every interrupt of every CPU.
pub fn set_interrupt_handler(handler: fn()) {
    INTERRUPT_HANDLER.store(handler as usize, Ordering::Release);
}

/// Runs `action`; its synchronous exceptions are skipped (an instruction abort returns to the caller of the
/// code that is missing). Returns the last of them, if any, and the action's result, which is worth
/// nothing then.
pub fn probe<T>(action: impl FnOnce() -> T) -> Result<T, Fault> {
    let probe = &PROBES[cpu::index() % MAX_CPUS];
    probe.faults.store(0, Ordering::Relaxed);
    probe.active.store(true, Ordering::Release);
    let result = action();
    cpu::synchronize();
    probe.active.store(false, Ordering::Release);
    if probe.faults.load(Ordering::Acquire) == 0 {
        return Ok(result);
    }
    Err(Fault {
        syndrome: probe.syndrome.load(Ordering::Relaxed),
        address: probe.address.load(Ordering::Relaxed),
        pc: probe.pc.load(Ordering::Relaxed),
    })
}

/// Returns the number of synchronous exceptions in the last [`probe`] of this CPU.
#[must_use]
pub fn probed_faults() -> u32 {
    PROBES[cpu::index() % MAX_CPUS].faults.load(Ordering::Relaxed)
}

global_asm!(
    ".pushsection .text.vectors, \"ax\"",
    ".macro vector kind",
    ".balign 0x80",
    "sub sp, sp, #{size}",
    "stp x0, x1, [sp]",
    "mov x1, #\\kind",
    "b vm_exception",
    ".endm",
    ".balign 0x800",
    // in: the exception state of the CPU; out (to `exception`): x0 = frame, x1 = index of the vector
    "vm_vectors:",
    ".irp kind, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
    "vector \\kind",
    ".endr",
    ".purgem vector",
    "vm_exception: stp x2, x3, [sp, #16]",
    "stp x4, x5, [sp, #32]",
    "stp x6, x7, [sp, #48]",
    "stp x8, x9, [sp, #64]",
    "stp x10, x11, [sp, #80]",
    "stp x12, x13, [sp, #96]",
    "stp x14, x15, [sp, #112]",
    "stp x16, x17, [sp, #128]",
    "stp x18, x19, [sp, #144]",
    "stp x20, x21, [sp, #160]",
    "stp x22, x23, [sp, #176]",
    "stp x24, x25, [sp, #192]",
    "stp x26, x27, [sp, #208]",
    "stp x28, x29, [sp, #224]",
    "mrs x2, elr_el1",
    "mrs x3, spsr_el1",
    "stp x30, x2, [sp, #240]",
    "str x3, [sp, #{state}]",
    "mov x0, sp",
    "bl {exception}",
    "ldr x3, [sp, #{state}]",
    "ldp x30, x2, [sp, #240]",
    "msr elr_el1, x2",
    "msr spsr_el1, x3",
    "ldp x2, x3, [sp, #16]",
    "ldp x4, x5, [sp, #32]",
    "ldp x6, x7, [sp, #48]",
    "ldp x8, x9, [sp, #64]",
    "ldp x10, x11, [sp, #80]",
    "ldp x12, x13, [sp, #96]",
    "ldp x14, x15, [sp, #112]",
    "ldp x16, x17, [sp, #128]",
    "ldp x18, x19, [sp, #144]",
    "ldp x20, x21, [sp, #160]",
    "ldp x22, x23, [sp, #176]",
    "ldp x24, x25, [sp, #192]",
    "ldp x26, x27, [sp, #208]",
    "ldp x28, x29, [sp, #224]",
    "ldp x0, x1, [sp]",
    "add sp, sp, #{size}",
    "eret",
    ".popsection",
    size = const size_of::<Frame>(),
    state = const offset_of!(Frame, state),
    exception = sym exception,
);

const _: () = assert!(offset_of!(Frame, general) == 0 && offset_of!(Frame, pc) == 248);

/// Vector index of the first kind of exception (synchronous); the next are IRQ, FIQ, SError, then the same
/// for other sources.
const SYNCHRONOUS: u64 = 0;
const IRQ: u64 = 1;
const SERROR: u64 = 3;

extern "C" fn exception(frame: &mut Frame, vector: u64) {
    match vector % 4 {
        IRQ => {
            let handler = INTERRUPT_HANDLER.load(Ordering::Acquire);
            assert!(handler != 0, "interrupt without a handler");
            // SAFETY: `set_interrupt_handler` stored a function of this type; zero has been excluded.
            let handler = unsafe { core::mem::transmute::<usize, fn()>(handler) };
            handler();
        }
        SYNCHRONOUS | SERROR => fault(frame, vector),
        _ => panic!("FIQ"),
    }
}

fn fault(frame: &mut Frame, vector: u64) {
    let fault = current_fault(frame);
    let probe = &PROBES[cpu::index() % MAX_CPUS];
    if !probe.active.load(Ordering::Acquire) {
        println!(
            "exception ec={:#04x} syndrome={:#010x} address={:#x} pc={:#x} vector={vector}",
            fault.class(),
            fault.syndrome,
            fault.address,
            fault.pc
        );
        psci::system_off();
    }
    probe.syndrome.store(fault.syndrome, Ordering::Relaxed);
    probe.address.store(fault.address, Ordering::Relaxed);
    probe.pc.store(fault.pc, Ordering::Relaxed);
    probe.faults.store(
        probe.faults.load(Ordering::Relaxed).saturating_add(1),
        Ordering::Release,
    );
    if vector % 4 == SERROR {
        return;
    }
    match fault.class() {
        // There is nothing to skip where nothing could be fetched: back to the caller.
        class::INSTRUCTION_ABORT => frame.pc = frame.general[30],
        // These are reported before the instruction runs, and would be again: the debug exceptions are off
        // from here on (PSTATE.D is set by the return).
        class::BREAKPOINT | class::WATCHPOINT | class::STEP => {
            frame.state = frame.state & !(1 << 21) | 1 << 9
        }
        // SVC reports the next instruction already.
        class::SVC => {}
        _ => frame.pc = frame.pc.wrapping_add(4),
    }
}

fn current_fault(frame: &Frame) -> Fault {
    let (syndrome, address): (u64, u64);
    // SAFETY: reads what the exception left.
    unsafe {
        asm!("mrs {}, esr_el1", "mrs {}, far_el1", out(reg) syndrome, out(reg) address, options(nomem, nostack));
    }
    Fault {
        syndrome,
        address,
        pc: frame.pc,
    }
}
