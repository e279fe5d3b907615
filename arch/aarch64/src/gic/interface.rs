// SPDX-License-Identifier: Apache-2.0
//! The CPU interface of this pCPU: the physical one (`ICC_*`) and the control of the virtual one (`ICH_*`).
//!
//! IHI 0069 12.2 and 12.4. EOImode is 1 at EL2: the end of an interrupt only drops its priority, so that the
//! interrupt stays active until the guest (linked list register) or [`deactivate`] ends it.

use crate::sysreg::{instruction, read_register, write_guest_register};
use bulkhead_arch_vgic::{Control, CpuInterface, ListRegister};

/// `ICC_IAR1_EL1`: from here on no interrupt of ours.
pub(super) const SPURIOUS: u32 = 1020;

/// `ICC_SRE_EL2` and `ICC_SRE_EL1`: SRE, DFB, DIB. The bit Enable is not set. On a CPU that lets SRE of EL1
/// be cleared, a guest could clear it for all guests that come after, so the guest's accesses trap (IHI 0069
/// 12.2.22, 12.2.23).
const SRE: u64 = 7;
/// `ICC_CTLR_EL1.EOImode`.
const EOI_MODE: u64 = 1 << 1;
/// `ICH_HCR_EL2`: En, LRENPIE, NPIE, TDIR; EOIcount.
const HCR_ENABLE: u64 = 1 | 1 << 2;
const HCR_NO_PENDING: u64 = 1 << 3;
const HCR_TRAP_DEACTIVATE: u64 = 1 << 14;
const HCR_END_COUNT: u64 = 0x1F << 27;

/// `ICH_VTR_EL2.PREbits`: 4 to 6 stand for five to seven bits. With more than five bits, there is more than
/// one register of active priorities.
const VTR_FINE: u64 = 3 << 26;

/// Brings up the CPU interface of this pCPU.
pub(super) fn init() {
    write_guest_register!("icc_sre_el2", SRE);
    instruction!("isb");
    // This write comes after the one of EL2, without which the register may not be there.
    write_guest_register!("icc_sre_el1", SRE);
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
    interface.set_active_priorities(&[[0; 4]; 2]);
    instruction!("isb");
}

/// Switches the virtual CPU interface off: no vCPU of a VM is loaded.
#[inline]
pub(super) fn close() {
    write_guest_register!("ich_hcr_el2", 0);
}

/// Takes the most urgent pending interrupt. Its priority is dropped at once, and the interrupt is active from
/// now on.
#[inline]
pub(super) fn acknowledge() -> u32 {
    let line = read_register!("icc_iar1_el1");
    // The loads that follow must see everything that the interrupt announces (IHI 0069, 4.1.1).
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

/// Returns the value that calls the pCPU with this affinity (as in MPIDR): `ICC_SGI1R_EL1` without the
/// interrupt.
pub(super) fn call_of(affinity: u64) -> u64 {
    let [aff0, aff1, aff2, _, aff3, ..] = affinity.to_le_bytes().map(u64::from);
    aff3 << 48 | (aff0 >> 4) << 44 | aff2 << 32 | aff1 << 16 | 1 << (aff0 & 15)
}

/// Sends a software-generated interrupt by a value of [`call_of`]. The value 0 reaches no pCPU.
#[inline]
pub(super) fn send(call: u64, line: u32) {
    let value = call | u64::from(line) << 24;
    // Everything that was written for the other pCPU is visible there before the interrupt is (IHI 0069,
    // 4.1.1).
    instruction!("dsb ishst");
    write_guest_register!("icc_sgi1r_el1", value);
    instruction!("isb");
}

/// Sends a software-generated interrupt to all pCPUs but this one (ICC_SGI1R_EL1.IRM, IHI 0069 12.2.19).
pub(super) fn send_to_others(line: u32) {
    instruction!("dsb ishst");
    write_guest_register!("icc_sgi1r_el1", 1 << 40 | u64::from(line) << 24);
    instruction!("isb");
}

/// The virtual CPU interface of this pCPU.
pub(super) struct Interface;

/// List registers have no index register: one arm for each.
macro_rules! list_registers {
    ($($number:literal $name:literal)*) => {
        #[inline]
        fn read_list_register(slot: u32) -> u64 {
            match slot {
                $($number => read_register!($name),)*
                _ => 0,
            }
        }

        #[inline(never)]
        fn write_list_register(slot: u32, value: u64) {
            match slot {
                $($number => write_guest_register!($name, value),)*
                _ => {}
            }
        }
    };
}

list_registers! {
    0 "ich_lr0_el2"
    1 "ich_lr1_el2"
    2 "ich_lr2_el2"
    3 "ich_lr3_el2"
    4 "ich_lr4_el2"
    5 "ich_lr5_el2"
    6 "ich_lr6_el2"
    7 "ich_lr7_el2"
    8 "ich_lr8_el2"
    9 "ich_lr9_el2"
    10 "ich_lr10_el2"
    11 "ich_lr11_el2"
    12 "ich_lr12_el2"
    13 "ich_lr13_el2"
    14 "ich_lr14_el2"
    15 "ich_lr15_el2"
}

impl Interface {
    /// Returns the bits of a preemption level: `ICH_VTR_EL2.PREbits` + 1.
    fn preemption_bits() -> u32 {
        ((read_register!("ich_vtr_el2") >> 26 & 7) + 1) as u32
    }
}

/// Tells whether there is more than one register of active priorities a group.
#[inline(always)]
pub(crate) fn has_fine_priorities() -> bool {
    read_register!("ich_vtr_el2") & VTR_FINE != 0
}

/// Returns the active-priorities registers that every interface has, together.
#[inline(always)]
pub(super) fn coarse_priorities() -> u64 {
    read_register!("ich_ap0r0_el2") | read_register!("ich_ap1r0_el2")
}

/// Returns the active-priorities registers that only interfaces with more than 5 preemption bits have,
/// together.
#[inline(always)]
fn fine_priorities() -> u64 {
    let mut all = read_register!("ich_ap0r1_el2") | read_register!("ich_ap1r1_el2");
    if Interface::preemption_bits() > 6 {
        all |= read_register!("ich_ap0r2_el2") | read_register!("ich_ap1r2_el2");
        all |= read_register!("ich_ap0r3_el2") | read_register!("ich_ap1r3_el2");
    }
    all
}

impl CpuInterface for Interface {
    #[inline]
    fn slots(&self) -> u32 {
        (read_register!("ich_vtr_el2") & 0xF) as u32 + 1
    }

    #[inline]
    fn empty_slots(&self) -> u32 {
        read_register!("ich_elrsr_el2") as u32
    }

    #[inline]
    fn ended_slots(&self) -> u32 {
        read_register!("ich_eisr_el2") as u32
    }

    fn settle(&mut self) {
        instruction!("isb");
    }

    #[inline]
    fn list_register(&self, slot: u32) -> ListRegister {
        ListRegister(read_list_register(slot))
    }

    #[inline]
    fn set_list_register(&mut self, slot: u32, value: ListRegister) {
        if slot < 4 {
            self.set_near_register(slot, value);
        } else {
            write_list_register(slot, value.0);
        }
    }

    /// Writes a list register without a call, because the short ways of the exit handlers end here.
    #[inline(always)]
    fn set_near_register(&mut self, slot: u32, value: ListRegister) {
        if slot & 2 != 0 {
            if slot & 1 != 0 {
                write_guest_register!("ich_lr3_el2", value.0);
            } else {
                write_guest_register!("ich_lr2_el2", value.0);
            }
        } else if slot & 1 != 0 {
            write_guest_register!("ich_lr1_el2", value.0);
        } else {
            write_guest_register!("ich_lr0_el2", value.0);
        }
    }

    fn set_control(&mut self, control: Control) {
        let mut value = HCR_ENABLE | read_register!("ich_hcr_el2") & HCR_END_COUNT;
        if control.refill {
            value |= HCR_NO_PENDING;
        }
        if control.trap_deactivate {
            value |= HCR_TRAP_DEACTIVATE;
        }
        write_guest_register!("ich_hcr_el2", value);
    }

    fn take_end_count(&mut self) -> u32 {
        let value = read_register!("ich_hcr_el2");
        write_guest_register!("ich_hcr_el2", value & !HCR_END_COUNT);
        ((value & HCR_END_COUNT) >> 27) as u32
    }

    fn machine_control(&self) -> u64 {
        read_register!("ich_vmcr_el2")
    }

    fn set_machine_control(&mut self, value: u64) {
        write_guest_register!("ich_vmcr_el2", value);
    }

    #[inline(always)]
    fn has_active_priorities(&self) -> bool {
        let mut all = coarse_priorities();
        if has_fine_priorities() {
            all |= fine_priorities();
        }
        all != 0
    }

    #[inline(always)]
    fn open(&mut self) {
        write_guest_register!("ich_hcr_el2", HCR_ENABLE);
    }

    #[inline(always)]
    fn names_senders(&self) -> bool {
        false
    }

    fn active_priorities(&self) -> [[u32; 4]; 2] {
        let mut group0 = [read_register!("ich_ap0r0_el2") as u32, 0, 0, 0];
        let mut group1 = [read_register!("ich_ap1r0_el2") as u32, 0, 0, 0];
        let bits = Self::preemption_bits();
        if bits > 5 {
            group0[1] = read_register!("ich_ap0r1_el2") as u32;
            group1[1] = read_register!("ich_ap1r1_el2") as u32;
        }
        if bits > 6 {
            group0[2] = read_register!("ich_ap0r2_el2") as u32;
            group0[3] = read_register!("ich_ap0r3_el2") as u32;
            group1[2] = read_register!("ich_ap1r2_el2") as u32;
            group1[3] = read_register!("ich_ap1r3_el2") as u32;
        }
        [group0, group1]
    }

    fn set_active_priorities(&mut self, value: &[[u32; 4]; 2]) {
        let [group0, group1] = value;
        write_guest_register!("ich_ap0r0_el2", u64::from(group0[0]));
        write_guest_register!("ich_ap1r0_el2", u64::from(group1[0]));
        let bits = Self::preemption_bits();
        if bits > 5 {
            write_guest_register!("ich_ap0r1_el2", u64::from(group0[1]));
            write_guest_register!("ich_ap1r1_el2", u64::from(group1[1]));
        }
        if bits > 6 {
            write_guest_register!("ich_ap0r2_el2", u64::from(group0[2]));
            write_guest_register!("ich_ap0r3_el2", u64::from(group0[3]));
            write_guest_register!("ich_ap1r2_el2", u64::from(group1[2]));
            write_guest_register!("ich_ap1r3_el2", u64::from(group1[3]));
        }
    }

    fn preemption_shift(&self) -> u32 {
        8u32.saturating_sub(Self::preemption_bits())
    }
}
