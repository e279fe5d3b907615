// SPDX-License-Identifier: Apache-2.0
//! When an interrupt arrived: the handler of all CPUs notes the time first of all.

use bulkhead_guest::vm::timer::Timer;
use bulkhead_guest::vm::{cpu, gic};
use core::sync::atomic::{AtomicU64, Ordering};

/// When the last interrupt that was measured arrived, 0 = not yet.
static ARRIVED: AtomicU64 = AtomicU64::new(0);

/// SGI that wakes a CPU and is not measured.
pub const SGI_WAKE: u32 = 1;
/// SGI whose arrival is measured.
pub const SGI_MEASURED: u32 = 2;

/// Handles the interrupt.
pub fn on_interrupt() {
    let now = Timer::Virtual.now();
    let interrupt = gic::acknowledge();
    if interrupt >= gic::FIRST_SPECIAL {
        return;
    }
    if interrupt == Timer::Virtual.line() {
        Timer::Virtual.disarm();
    }
    gic::end(interrupt);
    if interrupt != SGI_WAKE {
        ARRIVED.store(now, Ordering::Release);
    }
}

/// Forgets an interrupt that has arrived.
pub fn forget() {
    ARRIVED.store(0, Ordering::Release);
}

/// Tells whether an interrupt has arrived.
pub fn has_come() -> bool {
    ARRIVED.load(Ordering::Acquire) != 0
}

/// Waits until something has arrived, busy or idle; when it did.
pub fn wait(idle: bool) -> u64 {
    cpu::unmask_interrupts();
    while !has_come() {
        if idle {
            cpu::wait_for_interrupt();
        } else {
            cpu::relax();
        }
    }
    cpu::mask_interrupts();
    ARRIVED.load(Ordering::Acquire)
}
