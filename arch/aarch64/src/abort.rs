// SPDX-License-Identifier: Apache-2.0
//! The common parts of every abort of a guest: its address, and the ways in which it ends.

use crate::context::Context;
use crate::enter::RESUME;
use crate::inject;
use crate::outcome::{fault, leave, report};
use crate::sysreg::{instruction, instruction_with, read_register, write_guest_register};
use bulkhead_abi::HealthClass;
use bulkhead_arch_aarch64_core::syndrome::{self, AbortAddress};
use bulkhead_arch_api::{Access, AccessKind, AddressSpace, Exit, GuestPhys};

/// Returns the address of a translation fault, for which HPFAR_EL2 is valid (D19.2.65). The offset in the
/// page is FAR's.
#[inline(always)]
pub(crate) fn faulting_address() -> GuestPhys {
    let page = (read_register!("hpfar_el2") & 0xFFF_FFFF_FFF0) << 8;
    GuestPhys(page | read_register!("far_el2") & 0xFFF)
}

/// Returns the guest-physical address of an abort, if the hardware or a translation by it can tell.
pub(crate) fn abort_address(syndrome: u64) -> Option<GuestPhys> {
    match syndrome::abort_address(syndrome) {
        AbortAddress::Page => Some(faulting_address()),
        AbortAddress::Unknown => None,
        // The address is not valid for a permission fault that is not on a walk. Translate again.
        AbortAddress::Translate => translate(read_register!("far_el2")),
    }
}

/// Translates an address of the guest's EL1 by the guest's own tables, keeping the guest's PAR_EL1.
pub(crate) fn translate(address: u64) -> Option<GuestPhys> {
    let kept = read_register!("par_el1");
    instruction_with!("at s1e1r", address);
    instruction!("isb");
    let result = read_register!("par_el1");
    write_guest_register!("par_el1", kept);
    (result & 1 == 0).then_some(GuestPhys(result & 0xF_FFFF_FFFF_F000 | address & 0xFFF))
}

/// Leaves to the kernel an access that the kernel decides about. The kernel's answer completes the
/// instruction.
pub(crate) fn access(
    context: &mut Context,
    syndrome: u64,
    address: GuestPhys,
    size: u8,
    kind: AccessKind,
) -> u64 {
    let report = report(HealthClass::Memory, syndrome, Some(address));
    leave(
        context,
        Exit::Access(Access {
            space: AddressSpace::Memory,
            address,
            size,
            kind,
            report,
        }),
    )
}

/// Answers an access that is not aligned. Registers are device memory, where a CPU gives such an access to
/// EL1 (B2.7.2, "Device memory"). An access comes here in two cases: the guest's own translation says that
/// the registers are normal memory, or the CPU is an emulator that does not look.
#[cold]
pub(crate) fn misaligned(context: &mut Context, syndrome: u64, address: GuestPhys) -> u64 {
    if context.is_task() || context.is_aarch32() {
        return memory_fault(context, syndrome, Some(address));
    }
    inject::alignment_now(syndrome);
    RESUME
}

/// Reports an access that cannot be emulated, or that hits memory the partition may not use that way.
pub(crate) fn memory_fault(context: &mut Context, syndrome: u64, address: Option<GuestPhys>) -> u64 {
    fault(context, HealthClass::Memory, syndrome, address)
}
