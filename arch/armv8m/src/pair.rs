// SPDX-License-Identifier: Apache-2.0
//! The hardware of a system with two pCPUs: the parts of an SSE-200 (Arm 101104) by which one CPU starts and
//! interrupts the other, and the timer of the second one.
//!
//! Nothing of this is in the class binary of a system with one pCPU ([`IS_PAIR`]).
//!
//! **Division.** Each CPU has its own SAU, protection units, interrupt controller and SysTick. The memory
//! protection controllers and the gates of devices are one for both. So here the blocks of all VMs are
//! Non-secure for their controllers from boot on, and the SAU of each CPU alone says which of them are
//! Non-secure for the VM that runs there (`view`).
//!
//! **Time.** The board's timer interrupts both CPUs, and is the first one's. The second CPU has its deadlines
//! from its Secure SysTick.

use crate::sysreg::{self, ICSR, SYST_CSR, SYST_CVR, SYST_RVR};
use bulkhead_arch_api::{MAX_PARTITIONS, MAX_PCPUS, PcpuId, VcpuId};
use bulkhead_arch_support::Mmio;
use core::cell::Cell;
use core::ops::Range;

/// True if this class binary is for two pCPUs.
pub const IS_PAIR: bool = MAX_PCPUS > 1;
/// Places for a value that only such a class binary has.
pub(crate) const PLACES: usize = IS_PAIR as usize;

/// Bytes of the stack of the second pCPU: as many as the linker script gives the first one.
pub(crate) const STACK_BYTES: usize = 0x2200;

/// Reasons for a call of the other pCPU, each a bit of the message handling unit.
pub(crate) const SIGNAL: u32 = 1;
pub(crate) const LINES: u32 = 1 << 1;

/// Message handling unit (Arm 101104, section 3.5): registers of CPU 0. The
/// same registers of CPU 1 are at this distance.
const STATUS: usize = 0x0;
const SET: usize = 0x4;
const CLEAR: usize = 0x8;
const OF_SECOND: usize = 0x10;

/// System control (Arm 101104, section 3.6.2): vectors of CPU 1 after a reset, and CPUs that wait for their
/// start.
const INITSVTOR1: usize = 0x114;
const CPUWAIT: usize = 0x118;

/// ICSR (D1.2.146): SysTick is pending, and is not.
const PENDSTSET: u32 = 1 << 26;
const PENDSTCLR: u32 = 1 << 25;
/// SYST_CSR (D1.2.250): on, with its exception, by the clock of the processor.
const TICKS: u32 = 7;
/// The largest value of SYST_RVR (D1.2.253).
const LONGEST: u32 = 0xFF_FFFF;

/// The way to wait inside a spin loop.
#[derive(Debug)]
pub enum Relax {}

impl spin::RelaxStrategy for Relax {
    #[inline]
    fn relax() {
        if IS_PAIR {
            bulkhead_arch_support::relax();
        }
    }
}

/// The share that the SAU of this CPU has, as an address; 0 for none.
pub(crate) struct Shown([Cell<usize>; PLACES]);

impl Shown {
    pub(crate) const fn new() -> Self {
        Self([const { Cell::new(0) }; PLACES])
    }

    /// Notes the share that VMs reach from now on.
    #[inline(always)]
    pub(crate) fn set(&self, share: usize) {
        if let Some(shown) = self.0.first() {
            shown.set(share);
        }
    }

    /// Tells whether VMs reach this share.
    pub(crate) fn is(&self, share: usize) -> bool {
        self.0.first().is_some_and(|shown| shown.get() == share)
    }
}

/// Returns the address of a value, by which it is told from others.
pub(crate) fn address<T>(value: &T) -> usize {
    core::ptr::from_ref(value).addr()
}

/// The place of a partition.
#[derive(Clone, Copy)]
pub(crate) struct Home {
    pub(crate) pcpu: PcpuId,
    pub(crate) vcpu: VcpuId,
}

/// The facts that a pCPU of two has of itself and of the other one.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) pcpu: PcpuId,
    /// The message handling unit.
    messages: Mmio,
    /// System control.
    control: Mmio,
    /// The line of the message handling unit.
    pub(crate) line: u32,
    /// The places of the partitions.
    pub(crate) homes: [Option<Home>; MAX_PARTITIONS],
    /// vCPUs of the second pCPU.
    pub(crate) on_second: usize,
    /// True if SysTick is pending because a line has interrupted (`traps`).
    pub(crate) leaves_line: bool,
}

impl Pair {
    pub(crate) const fn new(control: Mmio, messages: Mmio, line: u32) -> Self {
        Self {
            pcpu: PcpuId(0),
            messages,
            control,
            line,
            homes: [None; MAX_PARTITIONS],
            on_second: 0,
            leaves_line: false,
        }
    }

    /// Tells whether this is the second pCPU.
    pub(crate) const fn is_second(&self) -> bool {
        self.pcpu.0 != 0
    }

    /// Interrupts a pCPU, which then sees all that was written before.
    pub(crate) fn call(&self, pcpu: PcpuId, why: u32) {
        sysreg::synchronize();
        self.messages.write32(SET + OF_SECOND * usize::from(pcpu.0), why);
    }

    /// Takes the reasons for which this pCPU was called.
    pub(crate) fn calls(&self) -> u32 {
        let own = OF_SECOND * usize::from(self.pcpu.0);
        let why = self.messages.read32(STATUS + own);
        self.messages.write32(CLEAR + own, why);
        sysreg::synchronize();
        why
    }

    /// Starts the second CPU with these vectors.
    pub(crate) fn start(&self, vectors: u32) {
        sysreg::synchronize();
        self.control.write32(INITSVTOR1, vectors);
        self.control.write32(CPUWAIT, 0);
    }
}

/// Has SysTick interrupt after so many cycles, or as late as it can.
pub(crate) fn start_ticks(ahead: u32) {
    sysreg::write(SYST_CSR, 0);
    sysreg::write(SYST_RVR, ahead.clamp(1, LONGEST));
    // Any value makes it count from RVR on (D1.2.251).
    sysreg::write(SYST_CVR, 0);
    sysreg::write(SYST_CSR, TICKS);
}

/// Stops SysTick. An exception that it has made pending stays so.
pub(crate) fn stop_ticks() {
    sysreg::write(SYST_CSR, 0);
}

/// Tells whether SysTick has made its exception pending.
pub(crate) fn has_ticked() -> bool {
    sysreg::read(ICSR) & PENDSTSET != 0
}

/// Takes the exception of SysTick, if it is pending.
pub(crate) fn take_tick() -> bool {
    let has_ticked = has_ticked();
    if has_ticked {
        sysreg::write(ICSR, PENDSTCLR);
    }
    has_ticked
}

/// Returns the stack of this CPU if it is the second pCPU, for code that has no machine: only the second one
/// has a limit of the main stack.
pub(crate) fn second_stack() -> Option<Range<usize>> {
    if !IS_PAIR {
        return None;
    }
    let bottom = sysreg::own_main_limit() as usize;
    (bottom != 0).then(|| bottom..bottom + STACK_BYTES)
}
