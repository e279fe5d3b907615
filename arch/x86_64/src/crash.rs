// SPDX-License-Identifier: Apache-2.0
//! The end: an exception or a panic of the hypervisor itself, or a first step that fails.
//!
//! The hypervisor's own invariant is broken, so it stops every other pCPU, leaves a record in the log area,
//! reports and stops. An exception runs on the emergency stack of its pCPU. Nothing here uses a part that may
//! have broken: no lock, no formatting machinery, the UART by polling. The record comes before the console,
//! because the console may hang.

use crate::parking::park;
use crate::stacks::{GUARD_SIZE, STACK_SIZE, STACKS};
use crate::{console, log, physical, sysreg};
use bulkhead_abi::lockdown;
use bulkhead_abi::log::ending::EXCEPTION_BY_VECTOR;
use bulkhead_abi::log::line::Line;
use bulkhead_abi::log::{CRASH_EXCEPTION, CRASH_LOCKDOWN, CRASH_PANIC, Crash, NONE};
use bulkhead_arch_api::MAX_PCPUS;
use bulkhead_arch_support::crash::{self, Origin, store_stack};
use bulkhead_arch_support::{physical as memory, tell_panic};
use core::sync::atomic::{AtomicBool, Ordering};

/// A pCPU has crashed.
pub(crate) static CRASHED: AtomicBool = AtomicBool::new(false);

/// Bytes of a report.
const ROOM: usize = 256;
/// The non-maskable interrupt, by which a pCPU that crashes stops the others.
const NMI: u64 = 2;

/// MCG_CAP, whose low bits are the number of banks; MC0_STATUS, which the address follows, and its bit VAL.
const CHECK_CAPACITIES: u32 = 0x179;
const CHECK_BANKS: u32 = 0xFF;
const CHECK_STATUS: u32 = 0x401;
const CHECK_VALID: u64 = 1 << 63;

/// The frame that `entry` makes of an exception: general registers, then what the processor has pushed.
#[repr(C)]
pub(crate) struct Frame {
    /// R15 to R8, RDI, RSI, RBP, RBX, RDX, RCX, RAX.
    registers: [u64; 15],
    vector: u64,
    code: u64,
    rip: u64,
    cs: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
}

/// Makes sure that only the first CPU to crash reports, and only once: a crash while reporting ends here.
fn claim() {
    if CRASHED.swap(true, Ordering::AcqRel) {
        park();
    }
    physical::stop_others();
}

/// Makes a crash record. `details` adds everything that is known besides the message.
fn leave(kind: u32, pcpu: u32, message: &[u8], details: impl FnOnce(&Crash)) {
    let origin = Origin {
        kind,
        pcpu,
        counter: sysreg::counter,
        base: 0,
    };
    crash::leave(log::area(), &origin, message, details, || ());
}

/// Ends the run at an exception of the hypervisor itself.
pub(crate) extern "C" fn crash(frame: &Frame) -> ! {
    if frame.vector == NMI && CRASHED.load(Ordering::Acquire) {
        park();
    }
    claim();
    let address = sysreg::fault_address();
    let mut line = Line::<ROOM>::of(EXCEPTION_BY_VECTOR);
    line.hex(frame.vector);
    line.text(" code=").hex(frame.code);
    line.text(" rip=").hex(frame.rip);
    line.text(" cr2=").hex(address);
    line.text(" rsp=").hex(frame.rsp);
    leave(CRASH_EXCEPTION, pcpu_of(frame.rsp), line.as_bytes(), |record| {
        record.syndrome.store(frame.code, Ordering::Relaxed);
        record.address.store(address, Ordering::Relaxed);
        record.pc.store(frame.rip, Ordering::Relaxed);
        record.status.store(frame.flags, Ordering::Relaxed);
        record.vector.store(frame.vector, Ordering::Relaxed);
        for (place, value) in record.registers.iter().zip(frame.registers.iter().rev()) {
            place.store(*value, Ordering::Relaxed);
        }
        store_stack(record, frame.rsp as usize, stack_word);
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
    leave(CRASH_PANIC, pcpu_of(stack), line.as_bytes(), |record| {
        store_stack(record, stack as usize, stack_word);
    });
    console::last_words(line.as_bytes());
    park()
}

/// Ends this CPU with a reason, before the kernel could.
pub(crate) fn halt(reason: &str) -> ! {
    leave(CRASH_LOCKDOWN, NONE, reason.as_bytes(), |_| ());
    console::last_words(reason.as_bytes());
    park()
}

/// Ends the run at a machine check that came while a guest ran. The record has the status and the address of
/// the first bank that has an error (AMD APM volume 2, 9.3.2). A check in the hypervisor itself is an
/// exception.
pub(crate) fn machine_check() -> ! {
    claim();
    let reason = lockdown!("a machine check of the board while a guest ran");
    let banks = sysreg::read_msr(CHECK_CAPACITIES) as u32 & CHECK_BANKS;
    let status = |bank: u32| sysreg::read_msr(CHECK_STATUS + 4 * bank);
    let found = (0..banks).find(|bank| status(*bank) & CHECK_VALID != 0);
    leave(CRASH_LOCKDOWN, NONE, reason.as_bytes(), |record| {
        let Some(bank) = found else { return };
        record.syndrome.store(status(bank), Ordering::Relaxed);
        record
            .address
            .store(sysreg::read_msr(CHECK_STATUS + 4 * bank + 1), Ordering::Relaxed);
    });
    console::last_words(reason.as_bytes());
    park()
}

/// Returns the pCPU in whose stack an address is.
fn owner_of(address: u64) -> Option<u32> {
    let part = (GUARD_SIZE + STACK_SIZE) as u64;
    let offset = address.wrapping_sub((&raw const STACKS) as u64);
    let inside = offset < part * MAX_PCPUS as u64 && offset % part >= GUARD_SIZE as u64;
    inside.then(|| (offset / part) as u32)
}

/// Returns the pCPU whose stack this is.
fn pcpu_of(stack: u64) -> u32 {
    owner_of(stack).unwrap_or(NONE)
}

/// Returns a word of a pCPU's stack, if the address is in one.
fn stack_word(address: usize) -> Option<u64> {
    let inside = owner_of(address as u64).is_some() && address.is_multiple_of(8);
    // SAFETY: a word of a stack, which is mapped.
    inside.then(|| unsafe { memory::read_word(address) })
}
