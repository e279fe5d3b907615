// SPDX-License-Identifier: Apache-2.0
//! A look at the guest at its exit: its mode, the bytes of its instruction, and the exits of what it may not
//! do.

use crate::context::{Context, KNOWN, Pending};
use crate::svm;
use crate::trees::{self, Word};
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::{Exit, FaultReport, GuestPhys};
use bulkhead_arch_x86_64_core::decode::{Access, Mode};
use bulkhead_arch_x86_64_core::known::{Code, Known};
use bulkhead_arch_x86_64_core::walk::Paging;

/// EFER.LMA.
const LONG_MODE: u64 = 1 << 10;
/// Attributes of a code segment: L, D.
const LONG: u16 = 1 << 9;
const DEFAULT_32: u16 = 1 << 10;
/// Vectors of exceptions.
pub(crate) const UNDEFINED: u8 = 6;
pub(crate) const PROTECTION: u8 = 13;

/// Returns the sizes that the guest's code has.
pub(crate) fn mode(context: &Context) -> Mode {
    let attributes = context.vmcb.attributes(svm::CS);
    if context.vmcb.get(svm::EFER) & LONG_MODE != 0 && attributes & LONG != 0 {
        Mode::Bits64
    } else if attributes & DEFAULT_32 != 0 {
        Mode::Bits32
    } else {
        Mode::Bits16
    }
}

/// Looks at the guest's memory from its instruction on.
#[inline(always)]
pub(crate) fn code(context: &Context) -> Code<Word> {
    let vmcb = &context.vmcb;
    let paging = Paging {
        cr0: vmcb.get(svm::CR0),
        cr3: vmcb.get(svm::CR3),
        cr4: vmcb.get(svm::CR4),
        efer: vmcb.get(svm::EFER),
    };
    let rip = vmcb.get(svm::RIP);
    let start = match mode(context) {
        Mode::Bits64 => rip,
        _ => vmcb.get(svm::CS + 8).wrapping_add(rip) & 0xFFFF_FFFF,
    };
    let partition = context.plan.partition;
    Code::fetch(&paging, start, |at| trees::word_at(partition, at), Word::read)
}

/// Returns the access to memory that the guest's instruction makes.
#[inline(always)]
pub(crate) fn memory_access(context: &mut Context) -> Option<Access> {
    let (rip, root) = (context.vmcb.get(svm::RIP), context.vmcb.get(svm::CR3));
    let place = rip as usize % KNOWN;
    let is_long = matches!(mode(context), Mode::Bits64);
    let known = context.known.get(place).and_then(Option::as_ref);
    if !known.is_some_and(|known| is_long && known.is_still(rip, root, Word::read)) {
        let decoded = decode(context)?;
        *context.known.get_mut(place)? = Some(decoded);
    }
    context.known.get(place)?.as_ref().map(|known| *known.access())
}

/// Decodes the guest's instruction.
#[inline(never)]
fn decode(context: &Context) -> Option<Known<Word>> {
    code(context).access(context.vmcb.get(svm::CR3), mode(context))
}

/// Returns the address `length` bytes after the guest's instruction.
pub(crate) fn behind(context: &Context, length: u8) -> u64 {
    let next = context.vmcb.get(svm::RIP).wrapping_add(length.into());
    match mode(context) {
        Mode::Bits64 => next,
        _ => next & 0xFFFF_FFFF,
    }
}

/// Returns the hypervisor's description of an exit: code and first information.
fn syndrome(context: &Context) -> u64 {
    let vmcb = &context.vmcb;
    vmcb.get(svm::EXIT_CODE) << 48 | vmcb.get(svm::EXIT_INFO_1) & 0xFFFF_FFFF_FFFF
}

/// Makes a report of the guest's present instruction.
pub(crate) fn report(context: &Context, class: HealthClass, address: Option<GuestPhys>) -> FaultReport {
    FaultReport {
        class,
        syndrome: syndrome(context),
        pc: context.vmcb.get(svm::RIP),
        address,
        virtual_address: None,
    }
}

/// Returns the exit of an operation that the guest may not do. `reflect`: the event that its processor would
/// have; `skip_to`: where it goes on if the operation has no effect.
///
/// A program of a VM's system has the exception and nothing else: it must not cause a health event of the VM.
pub(crate) fn refused(context: &mut Context, reflect: u64, skip_to: Option<u64>) -> Option<Exit> {
    context.pending = Pending::Nothing;
    let class = if context.is_task() {
        HealthClass::Task
    } else if context.vmcb.level() != 0 {
        context.event = reflect;
        return None;
    } else {
        HealthClass::System
    };
    (context.reflect, context.skip_to) = (reflect, skip_to);
    Some(Exit::Fault(report(context, class, None)))
}
