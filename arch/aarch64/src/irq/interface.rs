// SPDX-License-Identifier: Apache-2.0
//! The CPU interface of this pCPU: the physical one (`ICC_*`) and the control of the virtual one (`ICH_*`).
//!
//! IHI 0069 12.2 and 12.4. EOImode is 1 at EL2: the end of an interrupt only drops its priority, so that
//! it stays active until the guest (linked list register) or [`deactivate`] ends it.

use crate::sysreg::{instruction, read_register, write_guest_register};
use bulkhead_arch_vgic::{Control, CpuInterface, ListRegister};

/// `ICC_IAR1_EL1`: from here on no interrupt of ours.
pub(super) const SPURIOUS: u32 = 1020;

/// `ICC_SRE_EL2`: SRE, DFB, DIB, Enable (EL1 reaches its own ICC_SRE_EL1).
const SRE: u64 = 0xF;
/// `ICC_CTLR_EL1.EOImode`.
const EOI_MODE: u64 = 1 << 1;
/// `ICH_HCR_EL2`: En, LRENPIE, NPIE, TDIR; EOIcount.
const HCR_ENABLE: u64 = 1 | 1 << 2;
const HCR_NO_PENDING: u64 = 1 << 3;
const HCR_TRAP_DEACTIVATE: u64 = 1 << 14;
const HCR_END_COUNT: u64 = 0x1F << 27;

/// Brings up the CPU interface of this pCPU.
pub(super) fn init() {
    write_guest_register!("icc_sre_el2", SRE);
    instruction!("isb");
    write_guest_register!("icc_pmr_el1", 0xFF);
    write_guest_register!("icc_bpr1_el1", 0);
    write_guest_register!("icc_ctlr_el1", EOI_MODE);
    write_guest_register!("icc_igrpen1_el1", 1);
    close();
    let mut interface = Interface;
    for slot in 0..interface.slots() {
        interface.set_list_register(slot, ListRegister::EMPTY);
    }
    instruction!("isb");
}

/// The virtual CPU interface is off: no vCPU of a VM is loaded.
pub(super) fn close() {
    write_guest_register!("ich_hcr_el2", 0);
    write_guest_register!("ich_vmcr_el2", 0);
}

/// Takes the most urgent pending interrupt; its priority is dropped at once, it is active from now on.
#[inline]
pub(super) fn acknowledge() -> u32 {
    let line = read_register!("icc_iar1_el1");
    // What the interrupt announces must be seen by the loads that follow (IHI 0069, 4.1.1).
    instruction!("dsb sy");
    if line < u64::from(SPURIOUS) {
        write_guest_register!("icc_eoir1_el1", line);
    }
    line as u32
}

/// Ends an acknowledged interrupt that no guest will end.
#[inline]
pub(super) fn deactivate(line: u32) {
    write_guest_register!("icc_dir_el1", u64::from(line));
}

/// Sends a software-generated interrupt to the pCPU with this affinity (as in MPIDR).
pub(super) fn send(affinity: u64, line: u32) {
    let [aff0, aff1, aff2, _, aff3, ..] = affinity.to_le_bytes().map(u64::from);
    let range = aff0 >> 4;
    let target = 1 << (aff0 & 15);
    let value = aff3 << 48 | range << 44 | aff2 << 32 | u64::from(line) << 24 | aff1 << 16 | target;
    // What was written for the other pCPU is visible there before the interrupt is (IHI 0069, 4.1.1).
    instruction!("dsb ishst");
    write_guest_register!("icc_sgi1r_el1", value);
    instruction!("isb");
}

/// The virtual CPU interface of this pCPU.
pub(super) struct Interface;

/// Reads or writes one of the list registers, which have no index register.
macro_rules! list_registers {
    ($slot:expr, $($number:literal)*, $access:ident $(, $value:expr)?) => {
        match $slot {
            $($number => $access!(concat!("ich_lr", $number, "_el2") $(, $value)?),)*
            _ => Default::default(),
        }
    };
}

macro_rules! read_list {
    ($slot:expr; $($number:literal)*) => {
        match $slot {
            $($number => read_list!(@ $number),)*
            _ => 0,
        }
    };
    (@ 0) => { read_register!("ich_lr0_el2") };
}
