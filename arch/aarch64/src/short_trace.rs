// SPDX-License-Identifier: Apache-2.0
//! Records of the exits that the backend answers without the kernel ([`bulkhead_abi::trace::Event::Short`]).
//!
//! A pCPU that records them has vectors of its own, which differ in nothing but the way back into the guest:
//! that way stores a record first. So no other code asks whether such exits are recorded. The ring and its
//! count are the same as for the kernel's records. Both are only written on their own pCPU, with interrupts
//! masked.

use crate::board::BOARD;
use crate::context::Context;
use crate::log;
use crate::machine::{Machine, ShortTrace};
use crate::sysreg::write_guest_register;
use crate::timer;
use bulkhead_abi::trace::{Event, Record, ShortCause};
use bulkhead_arch_aarch64_core::syndrome::{
    EC_CP14_MEMORY, EC_CP14_PAIR, EC_CP15, EC_DATA_ABORT, EC_FP, EC_HVC32, EC_HVC64, EC_SMC32, EC_SMC64,
    EC_SVC64, EC_SYSTEM, EC_VMRS, EC_WFX, class,
};
use bulkhead_arch_api::Traces;
use core::sync::atomic::Ordering;

unsafe extern "C" {
    /// The vectors that record the short ways, in `entry`. Only their address is of use.
    static bulkhead_tracing_vectors: u8;
}

/// Lets the pCPU record its short ways, if the system image wants it.
pub(crate) fn init(machine: &mut Machine) {
    if !BOARD.get().is_some_and(|board| board.traces_short_exits) {
        return;
    }
    let ring = machine.trace_ring();
    let counters = log::area().pcpus.get(usize::from(machine.pcpu.0));
    let Some(counters) = counters.filter(|_| ring.len().is_power_of_two()) else {
        return;
    };
    machine.short_trace = Some(ShortTrace { ring, counters });
    write_guest_register!("vbar_el2", &raw const bulkhead_tracing_vectors as u64);
}

/// Records that an exit of the vCPU was answered. Called by `entry`.
///
/// # Safety
/// Only for `entry`, which passes the context and the machine of the vCPU that runs.
pub(crate) unsafe extern "C" fn record_short(context: &Context, machine: &Machine, syndrome: u64) {
    let Some(trace) = &machine.short_trace else { return };
    let stored = trace.counters.traced.load(Ordering::Relaxed);
    let Some(entry) = trace.ring.get(stored as usize & (trace.ring.len() - 1)) else {
        return;
    };
    let record = Record {
        time: timer::counter().0,
        pcpu: machine.pcpu.0,
        event: Event::Short {
            vcpu: context.id.0,
            cause: cause(syndrome),
            argument: syndrome as u32,
        },
    };
    entry.store(record.encode());
    trace
        .counters
        .traced
        .store(stored.wrapping_add(1), Ordering::Release);
}

/// Returns the cause, as [`crate::traps`] counts it. An interrupt has no syndrome; one whose class and
/// details are all 0 does not exist, because bit 25 says that an instruction has 32 bits or is unknown.
#[inline(always)]
fn cause(syndrome: u64) -> ShortCause {
    if syndrome == 0 {
        return ShortCause::Interrupt;
    }
    match class(syndrome) {
        EC_HVC64 | EC_HVC32 | EC_SMC64 | EC_SMC32 | EC_SVC64 => ShortCause::Call,
        EC_DATA_ABORT => ShortCause::Access,
        EC_SYSTEM | EC_CP15..=EC_CP14_MEMORY | EC_CP14_PAIR | EC_VMRS => ShortCause::Instruction,
        EC_WFX => ShortCause::Idle,
        EC_FP => ShortCause::Fp,
        _ => ShortCause::Other,
    }
}
