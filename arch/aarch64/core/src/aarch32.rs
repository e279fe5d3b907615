// SPDX-License-Identifier: Apache-2.0
//! AArch32 state of EL1 and EL0: modes and their registers, conditions, names of coprocessor registers,
//! exception entry.

use crate::Handler;
use crate::pstate::{BIG_ENDIAN, THUMB, it_state};
use crate::registers::register;
use crate::syndrome::{EC_INSTRUCTION_ABORT, class, is_write};
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::FaultReport;

/// M of FIQ mode.
pub const MODE_FIQ: u64 = 0x11;
/// M of IRQ mode.
pub const MODE_IRQ: u64 = 0x12;
/// M of Supervisor mode.
pub const MODE_SUPERVISOR: u64 = 0x13;
/// M of Abort mode.
pub const MODE_ABORT: u64 = 0x17;
/// M of Undefined mode.
pub const MODE_UNDEFINED: u64 = 0x1B;
/// PSTATE.A, I and F of a mode.
pub const ALL_MASKED: u64 = ABORT_MASKED | IRQ_MASKED | FIQ_MASKED;
/// SCTLR after reset: RES1 bits of Armv8.0 AArch32, CP15BEN, nTWI and nTWE; MMU and caches off (G8.2.126).
pub const SCTLR_RESET: u64 = 0x00C5_0878;

/// PSTATE of the first instruction: Supervisor mode, A, I and F masked (G1.17.1).
const RESET_PSTATE: u64 = ALL_MASKED | MODE_SUPERVISOR;
const ABORT_MASKED: u64 = 1 << 8;
const IRQ_MASKED: u64 = 1 << 7;
const FIQ_MASKED: u64 = 1 << 6;
/// PSTATE bits that an exception keeps: N, Z, C, V, Q and GE.
const KEPT: u64 = 0xF80F_0000;
/// SCTLR: V (high vectors), EE, TE.
const SCTLR_V: u64 = 1 << 13;
const SCTLR_EE: u64 = 1 << 25;
const SCTLR_TE: u64 = 1 << 30;
const HIGH_VECTORS: u64 = 0xFFFF_0000;
/// TTBCR.EAE: long descriptors, and their fault status format.
const TTBCR_EAE: u64 = 1 << 31;
/// DFSR, IFSR: synchronous external abort in either format; WnR.
const STATUS_LONG: u64 = 1 << 9 | 0x10;
const STATUS_SHORT: u64 = 0x8;
const STATUS_WRITE: u64 = 1 << 11;

/// Tells where x0..x30 keep register `number` of the mode in `pstate` (D1.20.1).
///
/// A syndrome should name it that way already (D19.2.37, "the AArch64 view"), but QEMU 7.2 reports the number
/// in the instruction for data aborts and VMRS. Both are told apart: no mode can use a register that its own
/// one hides. The program counter is none of them; what would be written to it goes nowhere.
#[must_use]
pub const fn view(pstate: u64, number: u8) -> u8 {
    match (number, pstate & 0x1F) {
        (15, _) => 31,
        (8..=12, MODE_FIQ) => number + 16,
        (13, MODE_FIQ) => 29,
        (14, MODE_FIQ) => 30,
        (13, MODE_IRQ) => 17,
        (14, MODE_IRQ) => 16,
        (13, MODE_SUPERVISOR) => 19,
        (14, MODE_SUPERVISOR) => 18,
        (13, MODE_ABORT) => 21,
        (14, MODE_ABORT) => 20,
        (13, MODE_UNDEFINED) => 23,
        (14, MODE_UNDEFINED) => 22,
        _ => number,
    }
}

/// Returns the stack pointer of the mode in `pstate`, among x0..x30.
#[must_use]
pub const fn stack_pointer(pstate: u64) -> u8 {
    view(pstate, 13)
}

/// Returns the syndrome with the general register at bits `shift` and up named as it is in x0..x30.
#[must_use]
pub const fn with_view(syndrome: u64, shift: u32, pstate: u64) -> u64 {
    let number = view(pstate, (syndrome >> shift & 31) as u8);
    syndrome & !(31 << shift) | (number as u64) << shift
}

/// Tells where a CPU starts whose entry address is this one: bit 0 says T32.
#[must_use]
pub const fn start(entry: u64) -> Handler {
    let thumb = if entry & 1 != 0 { THUMB } else { 0 };
    Handler {
        pstate: RESET_PSTATE | thumb,
        pc: entry & !1,
    }
}

/// Tells whether the trapped instruction passes its condition. One that does not may trap all the same, and
/// is then a no-operation (G1.18.1).
#[must_use]
pub const fn passes(syndrome: u64, pstate: u64) -> bool {
    const VALID: u64 = 1 << 24;
    const ALWAYS: u64 = 0xE;
    let condition = if syndrome & VALID != 0 {
        syndrome >> 20 & 0xF
    } else {
        // T32: the condition comes from the IT block, if the instruction is in one.
        match it_state(pstate) {
            0 => ALWAYS,
            it => it >> 4,
        }
    };
    holds(condition, pstate)
}

/// Condition codes (F1.3.1).
const fn holds(condition: u64, pstate: u64) -> bool {
    let (n, z) = (pstate >> 31 & 1 == 1, pstate >> 30 & 1 == 1);
    let (c, v) = (pstate >> 29 & 1 == 1, pstate >> 28 & 1 == 1);
    let base = match condition >> 1 {
        0 => z,
        1 => c,
        2 => n,
        3 => v,
        4 => c && !z,
        5 => n == v,
        6 => n == v && !z,
        _ => return true,
    };
    base != (condition & 1 == 1)
}

/// Returns the syndrome of the MSR or MRS that a CP15 access by MCR or MRC stands for: the numbers of the
/// register are the same, but that the generic timer's registers have op1 3.
#[must_use]
pub const fn as_system_access(syndrome: u64) -> u64 {
    const OP0_SYSTEM: u64 = 3 << 20;
    const OP1_TIMER: u64 = 3 << 14;
    const CONDITION: u64 = 0x1F << 20;
    let is_timer = syndrome >> 10 & 0xF == 14 && syndrome >> 14 & 7 == 0;
    syndrome & !CONDITION | OP0_SYSTEM | if is_timer { OP1_TIMER } else { 0 }
}

/// Returns the AArch64 register that an MCRR or MRRC names by opc1 and CRm.
#[must_use]
pub const fn register_of_pair(syndrome: u64) -> Option<u64> {
    match (syndrome >> 1 & 0xF, syndrome >> 16 & 0xF) {
        // ICC_SGI1R, ICC_ASGI1R, ICC_SGI0R.
        (12, 0) => Some(register(3, 0, 12, 11, 5)),
        (12, 1) => Some(register(3, 0, 12, 11, 6)),
        (12, 2) => Some(register(3, 0, 12, 11, 7)),
        // CNTPCT, CNTP_CVAL.
        (14, 0) => Some(register(3, 3, 14, 0, 1)),
        (14, 2) => Some(register(3, 3, 14, 2, 2)),
        _ => None,
    }
}

/// An exception that a guest is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// Undefined instruction.
    Undefined,
    /// Prefetch abort.
    PrefetchAbort,
    /// Data abort.
    DataAbort,
}

impl Exception {
    /// Returns the exception that a reported fault becomes.
    #[must_use]
    pub fn of(report: &FaultReport) -> Self {
        match (report.class, class(report.syndrome)) {
            (HealthClass::Memory, EC_INSTRUCTION_ABORT) => Self::PrefetchAbort,
            (HealthClass::Memory, _) => Self::DataAbort,
            _ => Self::Undefined,
        }
    }

    /// Returns the link register of its mode, among x0..x30.
    #[must_use]
    pub const fn link_register(self) -> u8 {
        view(self.mode(), 14)
    }

    /// Returns the return address that the link register gets, for an instruction at `pc` (G1.12.3).
    #[must_use]
    pub const fn return_address(self, pc: u64, pstate: u64) -> u64 {
        let offset = match self {
            Self::Undefined if pstate & THUMB != 0 => 2,
            Self::Undefined | Self::PrefetchAbort => 4,
            Self::DataAbort => 8,
        };
        pc.wrapping_add(offset)
    }

    /// PSTATE and PC of the handler (G1.12).
    #[must_use]
    pub const fn handler(self, pstate: u64, sctlr: u64, vbar: u64) -> Handler {
        let kept = pstate & (KEPT | ABORT_MASKED | FIQ_MASKED);
        let (vector, masks) = match self {
            Self::Undefined => (0x4, 0),
            Self::PrefetchAbort => (0xC, ABORT_MASKED),
            Self::DataAbort => (0x10, ABORT_MASKED),
        };
        let thumb = if sctlr & SCTLR_TE != 0 { THUMB } else { 0 };
        let endian = if sctlr & SCTLR_EE != 0 { BIG_ENDIAN } else { 0 };
        let base = if sctlr & SCTLR_V != 0 {
            HIGH_VECTORS
        } else {
            vbar & 0xFFFF_FFE0
        };
        Handler {
            pstate: kept | IRQ_MASKED | masks | thumb | endian | self.mode(),
            pc: base + vector,
        }
    }

    const fn mode(self) -> u64 {
        match self {
            Self::Undefined => MODE_UNDEFINED,
            Self::PrefetchAbort | Self::DataAbort => MODE_ABORT,
        }
    }
}

/// IFSR or DFSR of an abort that a reported fault becomes, with this TTBCR: an external abort.
#[must_use]
pub fn fault_status(report: &FaultReport, ttbcr: u64) -> u64 {
    let status = if ttbcr & TTBCR_EAE != 0 {
        STATUS_LONG
    } else {
        STATUS_SHORT
    };
    let is_store = Exception::of(report) == Exception::DataAbort && is_write(report.syndrome);
    status | if is_store { STATUS_WRITE } else { 0 }
}
