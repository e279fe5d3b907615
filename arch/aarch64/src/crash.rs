// SPDX-License-Identifier: Apache-2.0
//! The end: an exception or a panic of the hypervisor itself, or a first step that fails.
//!
//! The hypervisor's own invariant is broken, so it stops every other pCPU, leaves a record in the log area,
//! reports and stops. An exception runs on the emergency stack of its pCPU. Nothing here uses a part that may
//! have broken: no lock, no formatting machinery, the UART by polling. The record comes before the console,
//! because the console may hang.

use crate::parking::park;
use crate::stacks::{EMERGENCY_SIZE, EMERGENCY_STACKS, GUARD_SIZE, STACK_SIZE, STACKS};
use crate::sysreg::read_register;
use crate::{console, gic, layout, log};
use bulkhead_abi::log::ending::{BASE, ELR, EXCEPTION_BY_VECTOR};
use bulkhead_abi::log::line::Line;
use bulkhead_abi::log::{AREA_SIZE, CRASH_EXCEPTION, CRASH_LOCKDOWN, CRASH_PANIC, Crash, NONE};
use bulkhead_arch_api::MAX_PCPUS;
use bulkhead_arch_support::crash::{self, Origin};
use bulkhead_arch_support::{physical, tell_panic};
use core::sync::atomic::{AtomicBool, Ordering};

static CRASHED: AtomicBool = AtomicBool::new(false);

/// Bytes of a report.
const ROOM: usize = 240;

/// Makes sure that only the first CPU to crash reports, and only once: a crash while reporting ends here.
#[inline(never)]
fn claim() {
    if CRASHED.swap(true, Ordering::AcqRel) {
        park();
    }
    gic::stop_others();
}

/// Makes a crash record. `details` adds everything that is known besides the message.
fn leave(kind: u32, pcpu: u32, message: &[u8], details: impl FnOnce(&Crash)) {
    let origin = Origin {
        kind,
        pcpu,
        counter: || read_register!("cntpct_el0"),
        base: layout::load_address(),
    };
    crash::leave(log::area(), &origin, message, details, || log::keep(0, AREA_SIZE));
}

/// Ends the run at an exception of EL2 itself. The vectors of such exceptions lead here, with the general
/// registers, the number of the vector, and the stack pointer as they were.
pub(crate) extern "C" fn crash(registers: &[u64; 31], vector: u64, stack: u64) -> ! {
    claim();
    let (syndrome, pc) = (read_register!("esr_el2"), read_register!("elr_el2"));
    let address = read_register!("far_el2");
    let mut line = Line::<ROOM>::of(EXCEPTION_BY_VECTOR);
    line.hex(vector);
    line.text(" esr=").hex(syndrome);
    line.text(ELR).hex(pc);
    line.text(" far=").hex(address);
    line.text(" sp=").hex(stack);
    // An address in the binary's ELF file is the ELR less this address.
    line.text(BASE).hex(layout::load_address());
    leave(CRASH_EXCEPTION, own_pcpu(), line.as_bytes(), |record| {
        record.syndrome.store(syndrome, Ordering::Relaxed);
        record.address.store(address, Ordering::Relaxed);
        record.pc.store(pc, Ordering::Relaxed);
        record.status.store(read_register!("spsr_el2"), Ordering::Relaxed);
        record.vector.store(vector, Ordering::Relaxed);
        for (place, value) in record.registers.iter().zip(registers) {
            place.store(*value, Ordering::Relaxed);
        }
        store_stack(record, stack as usize);
    });
    console::last_words(line.as_bytes());
    park()
}

/// Ends the run at a panic, which is a broken invariant as well.
pub fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    claim();
    let mut line = Line::<ROOM>::new();
    tell_panic(&mut line, info);
    let stack = &raw const line as u64 & !7;
    leave(CRASH_PANIC, own_pcpu(), line.as_bytes(), |record| {
        store_stack(record, stack as usize);
    });
    console::last_words(line.as_bytes());
    park()
}

/// Ends this CPU with a reason, before the kernel could.
pub(crate) fn halt(reason: &str) -> ! {
    refuse(reason);
    park()
}

/// Refuses to start, because something at the very beginning is wrong. Also works with the MMU off and below
/// EL2.
pub(crate) fn refuse(reason: &str) {
    leave(CRASH_LOCKDOWN, NONE, reason.as_bytes(), |_| ());
    console::last_words(reason.as_bytes());
}

/// Returns a word of a pCPU's stack, if the address is in one.
fn stack_word(address: usize) -> Option<u64> {
    let part = GUARD_SIZE + STACK_SIZE;
    let offset = address.wrapping_sub((&raw const STACKS).addr());
    let inside = offset < part * MAX_PCPUS && offset % part >= GUARD_SIZE;
    // SAFETY: a word of a stack, which is mapped.
    (inside && address.is_multiple_of(8)).then(|| unsafe { physical::read_word(address) })
}

/// Stores words of the stack from `from` on.
#[inline(never)]
fn store_stack(record: &Crash, from: usize) {
    crash::store_stack(record, from, stack_word);
}

/// Returns the number of this pCPU, by its emergency stack.
fn own_pcpu() -> u32 {
    let offset = read_register!("tpidr_el2").wrapping_sub((&raw const EMERGENCY_STACKS) as u64);
    (offset / EMERGENCY_SIZE as u64).wrapping_sub(1) as u32
}
