// SPDX-License-Identifier: Apache-2.0
//! Hypercalls that the kernel answers without an exit: the handler of the call asks what the kernel has lent
//! for this run ([`ShortCalls`]), on the guest's way back. docs/paths.md counts the instructions.

use crate::context::Context;
use crate::enter::LEAVE_HYPERCALL;
use crate::machine::Machine;
use crate::outcome::resume_or_wake;
use bulkhead_arch_api::ShortCalls;
use core::ptr::{self, NonNull};

/// The calls that the kernel has lent for this run, and the function that asks them. They are a pointer each
/// because the handlers are not generic.
#[derive(Clone, Copy)]
pub(crate) struct Lent {
    calls: *const (),
    ask: unsafe fn(&mut Context, &mut Machine, *const ()) -> u64,
}

impl Lent {
    /// Nothing: every call leaves.
    pub(crate) const NOTHING: Self = Self {
        calls: ptr::null(),
        ask: nobody,
    };

    /// Lends `calls`. The loan is over before `calls` is.
    #[inline(always)]
    pub(crate) fn of<C: ShortCalls<Machine>>(calls: &C) -> Self {
        Self {
            calls: NonNull::from(calls).as_ptr().cast_const().cast(),
            ask: ask::<C>,
        }
    }
}

/// Answers a hypercall whose arguments are in the general registers, or leaves with it.
#[inline(always)]
pub(crate) fn hypercall(context: &mut Context, machine: &mut Machine) -> u64 {
    let Lent { calls, ask } = machine.lent;
    // SAFETY: `run_answering` has lent both together, and the guest runs within that call. `run` lends
    // nothing.
    unsafe { ask(context, machine, calls) }
}

/// # Safety
/// None is needed.
unsafe fn nobody(_: &mut Context, _: &mut Machine, _: *const ()) -> u64 {
    LEAVE_HYPERCALL
}

/// # Safety
/// `calls` is a `C` that lives, and is not part of the machine.
unsafe fn ask<C: ShortCalls<Machine>>(context: &mut Context, machine: &mut Machine, calls: *const ()) -> u64 {
    // SAFETY: the caller's promise.
    let calls = unsafe { &*calls.cast::<C>() };
    let registers = context.general.first_chunk_mut();
    match registers.and_then(|registers| calls.answer(machine, context.id, registers)) {
        Some(woken) => resume_or_wake(machine, context, woken),
        None => LEAVE_HYPERCALL,
    }
}
