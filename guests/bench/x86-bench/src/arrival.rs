// SPDX-License-Identifier: Apache-2.0
//! When an interrupt arrived: the handler of all CPUs notes the time first of all.

use bulkhead_guest::pc::exception::Frame;
use bulkhead_guest::pc::{apic, cpu};
use bulkhead_guest::println;
use core::sync::atomic::{AtomicU64, Ordering};

/// When the last interrupt that was measured arrived, 0 = not yet.
static ARRIVED: AtomicU64 = AtomicU64::new(0);
/// When a CPU was woken last.
static WOKEN: AtomicU64 = AtomicU64::new(0);

/// The vector that wakes a CPU and is not measured.
pub const WAKE: u8 = 0x41;
/// The vector whose arrival is measured.
pub const MEASURED: u8 = 0x42;
/// First vector that is no exception.
const FIRST: u64 = 32;

/// Handles the interrupt.
pub fn on_interrupt(frame: &mut Frame) {
    let now = cpu::counter();
    if frame.vector < FIRST {
        println!("bench failed: exception {} at {:#x}", frame.vector, frame.rip);
        cpu::stop();
    }
    apic::end();
    if frame.vector == MEASURED.into() {
        ARRIVED.store(now, Ordering::Release);
    } else {
        WOKEN.store(now, Ordering::Release);
    }
}

/// Forgets an interrupt that has arrived.
pub fn forget() {
    ARRIVED.store(0, Ordering::Release);
}

/// Returns when a CPU was woken last.
pub fn woken() -> u64 {
    WOKEN.load(Ordering::Acquire)
}

/// Waits until something has arrived, busy or idle. Returns when it did.
pub fn wait(is_idle: bool) -> u64 {
    if !is_idle {
        cpu::unmask();
    }
    while ARRIVED.load(Ordering::Acquire) == 0 {
        if is_idle {
            cpu::wait();
        } else {
            core::hint::spin_loop();
        }
    }
    cpu::mask();
    ARRIVED.load(Ordering::Acquire)
}
