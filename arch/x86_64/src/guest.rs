// SPDX-License-Identifier: Apache-2.0
//! A look at the guest at its exit: its mode, the bytes of its instruction, and the exits of what it may not
//! do.

use crate::context::{Context, Pending};
use crate::{space, svm};
use bulkhead_abi::HealthClass;
use bulkhead_arch_api::{Exit, FaultReport, GuestPhys};
use bulkhead_arch_x86_64_core::decode::{MAX_LENGTH, Mode};
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

/// Returns the bytes from the guest's instruction on, as many as there are, and their number.
pub(crate) fn code(context: &Context) -> ([u8; MAX_LENGTH], usize) {
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
    let translate = |linear| paging.translate(linear, |at| space::read_word(partition, at));
    let load = |at: u64| space::read_word(partition, at);
    let (first, skipped) = (start & !7, (start & 7) as usize);
    let mut words = [0; 3];
    let mut found = 0;
    let mut physical = 0;
    for (index, word) in (0_u64..).zip(&mut words) {
        let linear = first.wrapping_add(index * 8);
        // Words of a page have one translation.
        let is_new = index == 0 || linear & 0xFFF == 0;
        let at = if is_new {
            translate(linear)
        } else {
            Some(physical + 8)
        };
        let Some((at, loaded)) = at.and_then(|at| Some((at, load(at)?))) else {
            break;
        };
        (physical, *word) = (at, loaded);
        found += 8;
    }
    let [low, middle, high] = words;
    let shift = skipped * 8;
    let wide = (u128::from(middle) << 64 | u128::from(low)) >> shift;
    let wide = if shift == 0 {
        wide
    } else {
        wide | u128::from(high) << (128 - shift)
    };
    let mut bytes = [0; MAX_LENGTH];
    for (byte, value) in bytes.iter_mut().zip(wide.to_le_bytes()) {
        *byte = value;
    }
    let used = usize::min(MAX_LENGTH, found - skipped.min(found));
    (bytes, used)
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
