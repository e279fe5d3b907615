// SPDX-License-Identifier: Apache-2.0
//! Instructions that act on the CPU itself: waiting, masking, barriers, cache maintenance.

use core::arch::asm;

/// Returns the index of the current CPU: affinity level 0, which numbers the CPUs of the default machine.
#[must_use]
pub fn index() -> usize {
    let mpidr: u64;
    // SAFETY: reads an identification register.
    unsafe { asm!("mrs {}, mpidr_el1", out(reg) mpidr, options(nomem, nostack, preserves_flags)) }
    (mpidr & 0xFF) as usize
}

/// Lets interrupts in.
pub fn unmask_interrupts() {
    // SAFETY: the handlers were registered as functions that may run at any time (`exception`).
    unsafe { asm!("msr daifclr, #2", "isb", options(nostack)) }
}

/// Keeps interrupts out.
pub fn mask_interrupts() {
    // SAFETY: fewer interruptions break nothing.
    unsafe { asm!("msr daifset, #2", "isb", options(nostack)) }
}

/// Lets SErrors in for a moment: one that is pending is taken.
pub fn take_aborts() {
    // SAFETY: the handler of `exception` returns from an SError, or ends the machine.
    unsafe { asm!("msr daifclr, #4", "isb", "msr daifset, #4", options(nostack)) }
}

/// Sleeps until an interrupt is pending, masked or not.
pub fn wait_for_interrupt() {
    // SAFETY: a hint.
    unsafe { asm!("dsb sy", "wfi", options(nostack)) }
}

/// Sleeps until an event.
pub fn wait_for_event() {
    // SAFETY: a hint.
    unsafe { asm!("wfe", options(nostack)) }
}

/// Sends an event to all CPUs.
pub fn send_event() {
    // SAFETY: a hint.
    unsafe { asm!("dsb sy", "sev", options(nostack)) }
}

/// Waits with interrupts let in until `done`, sleeping in between. An interrupt that makes `done` true
/// between the test and the sleep still ends the sleep, because it stays masked from the test on.
pub fn sleep_until(mut done: impl FnMut() -> bool) {
    loop {
        mask_interrupts();
        let finished = done();
        if !finished {
            wait_for_interrupt();
        }
        unmask_interrupts();
        if finished {
            return;
        }
    }
}

/// Tells the CPU (and an emulator with several CPUs on one thread) that a loop only waits.
pub fn relax() {
    // SAFETY: a hint.
    unsafe { asm!("yield", options(nomem, nostack)) }
}

/// Waits until `done` or `limit` turns; whether it became true. For what another CPU does.
pub fn spin_until(limit: u32, mut done: impl FnMut() -> bool) -> bool {
    for _ in 0..limit {
        if done() {
            return true;
        }
        relax();
    }
    false
}

/// Waits until everything before has been done, for the whole system.
pub fn synchronize() {
    // SAFETY: barriers.
    unsafe { asm!("dsb sy", "isb", options(nostack)) }
}

/// Writes the cache line of `address` back to memory and drops it, so that a CPU with its caches off sees it.
pub fn clean_line(address: usize) {
    // SAFETY: clean and invalidate by address loses nothing.
    unsafe { asm!("dc civac, {}", "dsb sy", in(reg) address, options(nostack)) }
}

/// Makes an instruction just written at `address` what the CPU will execute there (Arm ARM DDI 0487 B2.4.4).
pub(super) fn publish_instruction(address: usize) {
    // SAFETY: cache maintenance by address loses nothing.
    unsafe {
        asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb", in(reg) address, options(nostack));
    }
}

/// Empties the instruction caches of this CPU (IC IALLU: Arm DDI 0487 D8.11).
pub fn forget_instructions() {
    // SAFETY: the CPU fetches its instructions again.
    unsafe { asm!("dsb sy", "ic iallu", "dsb sy", "isb", options(nostack)) }
}

/// Cleans and invalidates the first data cache by set and way, line by line, as old boot code does.
pub fn flush_by_set_and_way() {
    for way in 0..4_u64 {
        for set in 0..256_u64 {
            let operand = way << 30 | set << 6;
            // SAFETY: clean and invalidate loses nothing.
            unsafe { asm!("dc cisw, {}", in(reg) operand, options(nostack)) }
        }
    }
    synchronize();
}
