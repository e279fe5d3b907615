// SPDX-License-Identifier: Apache-2.0
//! The end: an interrupt or a panic of the hypervisor itself, or a first step that fails.
//!
//! The hypervisor's own invariant is broken, so it leaves a record in the log area, reports and stops.
//! Nothing here uses a part that may have broken: no lock, no formatting machinery, the UART by polling. The
//! record comes before the console, because the console may hang.

use crate::context::Trap;
use crate::{console, layout, log};
use bulkhead_abi::lockdown;
use bulkhead_abi::log::ending::{INTERRUPT, PC};
use bulkhead_abi::log::line::Line;
use bulkhead_abi::log::{CRASH_EXCEPTION, CRASH_LOCKDOWN, CRASH_PANIC, Crash};
use bulkhead_arch_one_pcpu::leave;
use bulkhead_arch_support::crash;
use bulkhead_arch_support::tell_panic;
use core::sync::atomic::Ordering;

/// Bytes of a report.
const ROOM: usize = 112;

/// Ends this CPU.
pub(crate) fn stop() -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Ends this CPU with a reason, before the kernel could.
pub(crate) fn halt(reason: &str) -> ! {
    leave(log::area(), CRASH_LOCKDOWN, reason.as_bytes(), |_| ());
    console::last_words(reason.as_bytes());
    stop()
}

/// Ends the run if calls have been deeper than the stack is long. No page can be unmapped below the stack, so
/// the words there show it, unless a call has left them out. This is called where it delays no partition:
/// before the CPU sleeps, and for the report of a fault.
#[inline(never)]
pub(crate) fn check_stack() {
    for address in layout::stack_guard().step_by(size_of::<u32>()) {
        if layout::stack_word(address) != Some(layout::MARK) {
            halt(lockdown!("the stack of the hypervisor has overflowed"));
        }
    }
}

/// Ends the run at an interrupt that belongs to no partition.
pub(crate) fn interrupted(vector: u32, pc: u32, trap: &Trap) -> ! {
    let mut line = Line::<ROOM>::of(INTERRUPT);
    line.hex(vector.into());
    line.text(" in the hypervisor: esr=").hex(trap.syndrome.into());
    line.text(" dear=").hex(trap.address.into());
    line.text(PC).hex(pc.into());
    let stack = &raw const line as usize & !3;
    leave(log::area(), CRASH_EXCEPTION, line.as_bytes(), |record| {
        record.syndrome.store(trap.syndrome.into(), Ordering::Relaxed);
        record.address.store(trap.address.into(), Ordering::Relaxed);
        record.pc.store(pc.into(), Ordering::Relaxed);
        record.vector.store(vector.into(), Ordering::Relaxed);
        store_stack(record, stack);
    });
    console::last_words(line.as_bytes());
    stop()
}

/// Ends the run at a panic, which is a broken invariant as well.
pub fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let mut line = Line::<ROOM>::new();
    tell_panic(&mut line, info);
    let stack = &raw const line as usize & !3;
    leave(log::area(), CRASH_PANIC, line.as_bytes(), |record| {
        store_stack(record, stack)
    });
    console::last_words(line.as_bytes());
    stop()
}

/// Stores words of the stack from `from` on.
#[inline(never)]
fn store_stack(record: &Crash, from: usize) {
    crash::store_stack(record, from, layout::stack_word);
}
