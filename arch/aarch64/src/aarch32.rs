// SPDX-License-Identifier: Apache-2.0
//! AArch32 state at EL1: what a VM with a 32-bit kernel has besides, or otherwise.
//!
//! The general registers of all AArch32 modes are x0..x30 (Arm DDI 0487 D1.20.1), and syndromes should name registers
//! by their AArch64 numbers, but see [`with_view`]. What is here: the registers that have
//! no AArch64 use, the first state, condition codes of trapped instructions, the names of CP15 registers,
//! and how exceptions are taken.

use crate::fp::CPTR_OPEN;
use crate::machine::Machine;
use crate::sysreg::{instruction, read_register, write_guest_register};
use crate::vcpu::Context;
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::FaultReport;

/// PSTATE.A, I and F of a mode.
pub(crate) const PSTATE_ALL_MASKED: u64 = 0x1C0;
/// SPSR of the first instruction: Supervisor mode, A, I and F masked (G1.17.1).
const RESET_PSTATE: u64 = PSTATE_ALL_MASKED | MODE_SUPERVISOR;
/// Modes that have registers of their own (G1.9.1).
pub(crate) const MODE_FIQ: u64 = 0x11;
pub(crate) const MODE_IRQ: u64 = 0x12;
pub(crate) const MODE_SUPERVISOR: u64 = 0x13;
pub(crate) const MODE_ABORT: u64 = 0x17;
pub(crate) const MODE_UNDEFINED: u64 = 0x1B;
/// SCTLR after reset: RES1 bits of Armv8.0 AArch32, CP15BEN, nTWI and nTWE; MMU and caches off (G8.2.126).
pub(crate) const SCTLR_RESET: u64 = 0x00C5_0878;
/// Machine type that says "see the device tree" (kernel documentation, `arch/arm/booting`).
const NO_MACHINE_TYPE: u64 = 0xFFFF_FFFF;
/// PSTATE.T: T32 instructions.
const PSTATE_THUMB: u64 = 1 << 5;

macro_rules! banked_registers {
    ($($field:ident = $name:literal),* $(,)?) => {
        /// Registers that only AArch32 uses. FPEXC does not wait for the FP registers, because an instruction that it
        /// makes undefined is not one that traps to us: another vCPU's value would show.
        #[derive(Clone, Copy)]
        pub(crate) struct Banked {
            $(pub(crate) $field: u64),*
        }

        impl Banked {
            /// Every register zero.
            pub(crate) const ZERO: Self = Self { $($field: 0),* };

            /// Reads all from the hardware. FP does not trap afterwards.
            pub(crate) fn save(&mut self) {
                open_fp();
                $(self.$field = read_register!($name);)*
            }

            /// Writes all to the hardware. FP does not trap afterwards.
            pub(crate) fn load(&self) {
                open_fp();
                $(write_guest_register!($name, self.$field);)*
            }
        }
    };
}

banked_registers! {
    dacr = "dacr32_el2",
    ifsr = "ifsr32_el2",
    fpexc = "fpexc32_el2",
    spsr_abt = "spsr_abt",
    spsr_und = "spsr_und",
    spsr_irq = "spsr_irq",
    spsr_fiq = "spsr_fiq",
}

/// FPEXC32_EL2 is an FP register to CPTR_EL2.TFP (D19.2.46).
fn open_fp() {
    write_guest_register!("cptr_el2", CPTR_OPEN);
    instruction!("isb");
}

/// Where x0..x30 keep register `number` of an AArch32 mode (D1.20.1).
///
/// A syndrome should name it that way already (D19.2.37, "the AArch64 view"), but QEMU 7.2 reports the number in the
/// instruction for data aborts and VMRS. Both are told apart: no mode can use a register that its own one hides.
/// The program counter is none of them; what would be written to it goes nowhere.
const fn view(pstate: u64, number: u8) -> u8 {
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

/// x0..x30 as AArch32 names them (D1.20.1). The 16th is of Hyp mode, which no guest has.
pub(crate) const REGISTER_NAMES: [&str; 31] = [
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp_usr", "lr_usr",
    "sp_hyp", "lr_irq", "sp_irq", "lr_svc", "sp_svc", "lr_abt", "sp_abt", "lr_und", "sp_und", "r8_fiq",
    "r9_fiq", "r10_fiq", "r11_fiq", "r12_fiq", "sp_fiq", "lr_fiq",
];

/// The stack pointer of the present mode, among the general registers.
pub(crate) const fn stack_pointer(pstate: u64) -> u8 {
    view(pstate, 13)
}

/// The syndrome with the general register at bits `shift` and up named as it is in x0..x30.
pub(crate) fn with_view(syndrome: u64, shift: u32) -> u64 {
    let number = view(read_register!("spsr_el2"), (syndrome >> shift & 31) as u8);
    syndrome & !(31 << shift) | u64::from(number) << shift
}

/// Whether EL1 of this CPU can be in AArch32 state (ID_AA64PFR0_EL1.EL1).
pub(crate) fn is_supported() -> bool {
    read_register!("id_aa64pfr0_el1") >> 4 & 0xF == 2
}

/// The first state of a vCPU: r0 and r2 hold the argument, r1 no machine type. That serves Linux, which reads the
/// address of the device tree from r2, and CPU_ON, whose context is in r0.
pub(crate) fn reset(context: &mut Context, entry: u64, argument: u64) {
    let thumb = if entry & 1 != 0 { PSTATE_THUMB } else { 0 };
    context.write_general(0, argument);
    context.write_general(1, NO_MACHINE_TYPE);
    context.write_general(2, argument);
    context.pc = entry & !1;
    context.pstate = RESET_PSTATE | thumb;
    context.banked = Banked::ZERO;
}

/// Whether the trapped instruction passes its condition code. One that does not may trap all the same, and is then
/// a no-operation (G1.18.1).
pub(crate) fn passes(syndrome: u64, pstate: u64) -> bool {
    const VALID: u64 = 1 << 24;
    const ALWAYS: u64 = 0xE;
    let condition = if syndrome & VALID != 0 {
        syndrome >> 20 & 0xF
    } else {
        // T32: the condition is that of the IT block, if the instruction is in one.
        match pstate >> 8 & 0xFC | pstate >> 25 & 3 {
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

/// The AArch64 register that a CP15 access by MCR or MRC names, in the form of an MSR's syndrome: the numbers are the same,
/// but that the generic timer's registers have op1 3 there.
pub(crate) const fn register_of_mcr(syndrome: u64) -> u64 {
    const OP0_SYSTEM: u64 = 3 << 20;
    const OP1_TIMER: u64 = 3 << 14;
    const CONDITION: u64 = 0x1F << 20;
    let is_timer = syndrome >> 10 & 0xF == 14 && syndrome >> 14 & 7 == 0;
    syndrome & !CONDITION | OP0_SYSTEM | if is_timer { OP1_TIMER } else { 0 }
}

/// The same for MCRR and MRRC, which name only opc1 and CRm: op1, CRn, CRm, op2 of the AArch64 register.
pub(crate) const fn register_of_mcrr(syndrome: u64) -> Option<(u64, u64, u64, u64)> {
    match (syndrome >> 1 & 0xF, syndrome >> 16 & 0xF) {
        // ICC_SGI1R, ICC_ASGI1R, ICC_SGI0R.
        (12, 0) => Some((0, 12, 11, 5)),
        (12, 1) => Some((0, 12, 11, 6)),
        (12, 2) => Some((0, 12, 11, 7)),
        // CNTPCT, CNTP_CVAL.
        (14, 0) => Some((3, 14, 0, 1)),
        (14, 2) => Some((3, 14, 2, 2)),
        _ => None,
    }
}

/// SPSR bits: N, Z, C, V, Q, GE and the like that an exception keeps; T; E; A and I.
const PSTATE_KEPT: u64 = 0xF80F_0000;
const PSTATE_BIG_ENDIAN: u64 = 1 << 9;
const PSTATE_ABORT_MASKED: u64 = 1 << 8;
const PSTATE_IRQ_MASKED: u64 = 1 << 7;
const PSTATE_FIQ_MASKED: u64 = 1 << 6;
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

/// How an exception is entered (G1.12).
struct Entry {
    mode: u64,
    vector: u64,
    masks: u64,
}

/// PSTATE and PC of the handler.
const fn handler(entry: &Entry, pstate: u64, sctlr: u64, vbar: u64) -> (u64, u64) {
    let kept = pstate & (PSTATE_KEPT | PSTATE_ABORT_MASKED | PSTATE_FIQ_MASKED);
    let thumb = if sctlr & SCTLR_TE != 0 { PSTATE_THUMB } else { 0 };
    let endian = if sctlr & SCTLR_EE != 0 {
        PSTATE_BIG_ENDIAN
    } else {
        0
    };
    let base = if sctlr & SCTLR_V != 0 {
        HIGH_VECTORS
    } else {
        vbar & 0xFFFF_FFE0
    };
    (
        kept | PSTATE_IRQ_MASKED | entry.masks | thumb | endian | entry.mode,
        base + entry.vector,
    )
}

const UNDEFINED: Entry = Entry {
    mode: MODE_UNDEFINED,
    vector: 0x4,
    masks: 0,
};
const PREFETCH_ABORT: Entry = Entry {
    mode: MODE_ABORT,
    vector: 0xC,
    masks: PSTATE_ABORT_MASKED,
};
const DATA_ABORT: Entry = Entry {
    mode: MODE_ABORT,
    vector: 0x10,
    masks: PSTATE_ABORT_MASKED,
};
/// Link registers of the modes, by their AArch64 numbers (D1.20.1).
const LR_ABORT: u8 = 20;
const LR_UNDEFINED: u8 = 22;

/// Reflects `report` into a vCPU that is not current.
pub(crate) fn reflect(context: &mut Context, report: &FaultReport) {
    let thumb = context.pstate & PSTATE_THUMB != 0;
    let status = if context.el1.tcr & TTBCR_EAE != 0 {
        STATUS_LONG
    } else {
        STATUS_SHORT
    };
    let address = report.virtual_address.unwrap_or(0) & 0xFFFF_FFFF;
    let entry = match (report.class, report.syndrome >> 26 & 0x3F) {
        (HealthClass::Memory, 0x20) => {
            context.banked.ifsr = status;
            // FAR_EL1 holds IFAR in its upper and DFAR in its lower half.
            context.el1.far = context.el1.far & 0xFFFF_FFFF | address << 32;
            context.banked.spsr_abt = context.pstate;
            context.write_general(LR_ABORT, report.pc.wrapping_add(4));
            PREFETCH_ABORT
        }
        (HealthClass::Memory, _) => {
            let write = if report.syndrome >> 6 & 1 == 1 {
                STATUS_WRITE
            } else {
                0
            };
            context.el1.esr = status | write;
            context.el1.far = context.el1.far & !0xFFFF_FFFF | address;
            context.banked.spsr_abt = context.pstate;
            context.write_general(LR_ABORT, report.pc.wrapping_add(8));
            DATA_ABORT
        }
        _ => {
            context.banked.spsr_und = context.pstate;
            context.write_general(LR_UNDEFINED, report.pc.wrapping_add(if thumb { 2 } else { 4 }));
            UNDEFINED
        }
    };
    (context.pstate, context.pc) = handler(&entry, context.pstate, context.el1.sctlr, context.el1.vbar);
}

/// Lets the running vCPU take an undefined-instruction exception at once. All general registers are in the context.
pub(crate) fn undefined_now(machine: &mut Machine, context: &mut Context) {
    let (pstate, pc) = (read_register!("spsr_el2"), read_register!("elr_el2"));
    write_guest_register!("spsr_und", pstate);
    context.write_general(
        LR_UNDEFINED,
        pc.wrapping_add(if pstate & PSTATE_THUMB != 0 { 2 } else { 4 }),
    );
    let (sctlr, vbar) = (read_register!("sctlr_el1"), read_register!("vbar_el1"));
    let (state, vector) = handler(&UNDEFINED, pstate, sctlr, vbar);
    write_guest_register!("elr_el2", vector);
    write_guest_register!("spsr_el2", state);
    machine.give_status(context, state, pstate);
}
