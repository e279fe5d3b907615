// SPDX-License-Identifier: Apache-2.0
//! The end: an interrupt or a panic of the hypervisor itself, or a first step that fails.
//!
//! The hypervisor's own invariant is broken, so it leaves a record in the log area, reports and stops.
//! Nothing here uses a part that may have broken: no lock, no formatting machinery, the UART by polling. The
//! record comes before the console, because the console may hang.

use crate::context::Trap;
use crate::{console, layout, log};
use bulkhead_abi::log::line::Line;
use bulkhead_abi::log::{CRASH_EXCEPTION, CRASH_LOCKDOWN, CRASH_PANIC, Crash, STACK_WORDS};
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
    leave(CRASH_LOCKDOWN, reason.as_bytes(), |_| ());
    console::last_words(reason.as_bytes());
    stop()
}

/// Ends the run if calls have been deeper than the stack is long. No page can be unmapped below the stack, so
/// the words there show it, unless a call has left them out. This is called where it delays no partition:
/// before the CPU sleeps, and for the report of a fault.
pub(crate) fn check_stack() {
    let mut words = layout::stack_guard().step_by(size_of::<u32>());
    if !words.all(|address| layout::stack_word(address) == Some(layout::MARK)) {
        halt("LOCKDOWN: the stack of the hypervisor has overflowed");
    }
}

/// Makes a crash record. `details` adds everything that is known besides the message.
fn leave(kind: u32, message: &[u8], details: impl FnOnce(&Crash)) {
    let area = log::area();
    area.make_if_invalid();
    area.crash.begin(kind, 0, 0, message);
    area.crash.base.store(0, Ordering::Relaxed);
    details(&area.crash);
    area.crash.complete(area.header.boots.load(Ordering::Relaxed));
}

/// Ends the run at an interrupt that belongs to no partition.
pub(crate) fn interrupted(vector: u32, pc: u32, trap: &Trap) -> ! {
    let mut line = Line::<ROOM>::of("LOCKDOWN: interrupt ");
    line.hex(vector.into());
    line.text(" in the hypervisor: esr=").hex(trap.syndrome.into());
    line.text(" dear=").hex(trap.address.into());
    line.text(" pc=").hex(pc.into());
    let stack = &raw const line as usize & !3;
    leave(CRASH_EXCEPTION, line.as_bytes(), |record| {
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
    leave(CRASH_PANIC, line.as_bytes(), |record| store_stack(record, stack));
    console::last_words(line.as_bytes());
    stop()
}

/// Stores words of the stack from `from` on.
fn store_stack(record: &Crash, from: usize) {
    record.sp.store(from as u64, Ordering::Relaxed);
    let mut words = 0;
    for (place, index) in record.stack.iter().zip(0..STACK_WORDS) {
        let Some(word) = layout::stack_word(from + 4 * index) else {
            break;
        };
        place.store(word.into(), Ordering::Relaxed);
        words += 1;
    }
    record.stack_words.store(words, Ordering::Relaxed);
}
