// SPDX-License-Identifier: Apache-2.0
//! Other processors: INIT and start-up IPI (Intel SDM 3A, 8.4.4).

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;

use super::start::{OTHER_ENTRY, OTHER_ROOT, OTHER_STACK, TRAMPOLINE, trampoline};
use super::{apic, cpu};

/// Bytes of another processor's stack.
const STACK: usize = 16 << 10;
/// The most processors besides the first one.
const OTHERS: usize = 3;
/// Ticks of the counter between the messages of a start. A processor of hardware wants 10 ms at first; an
/// emulator and the hypervisor need none.
const PAUSE: u64 = 20_000;
/// The delivery modes of the interrupt command, with the level asserted.
const INIT: u32 = 0x4500;
const STARTUP: u32 = 0x4600;

#[repr(C, align(16))]
struct Stacks(UnsafeCell<[[u8; STACK]; OTHERS]>);

// SAFETY: each processor has its own part, and nothing refers to it but the processor's stack pointer.
unsafe impl Sync for Stacks {}

static STACKS: Stacks = Stacks(UnsafeCell::new([[0; STACK]; OTHERS]));

/// Lets so many ticks of the counter pass.
pub fn pause(ticks: u64) {
    let end = cpu::counter() + ticks;
    while cpu::counter() < end {
        core::hint::spin_loop();
    }
}

/// Loads the program's own descriptor table, which has 32-bit code as well.
pub fn load_segments() {
    super::start::load_segments();
}

/// Starts processor `id`, 1 to 3, in `entry`, interrupts masked. It stops when `entry` returns. The next one
/// may be started when this one has entered.
pub fn start(id: u32, entry: extern "C" fn()) {
    let stack = STACKS.0.get() as u64 + u64::from(id) * STACK as u64;
    OTHER_STACK.store(stack, Ordering::Release);
    OTHER_ENTRY.store(entry as usize as u64, Ordering::Release);
    OTHER_ROOT.store(cpu::cr3(), Ordering::Release);
    let (code, length) = trampoline();
    let page = core::ptr::with_exposed_provenance_mut::<u8>(TRAMPOLINE as usize);
    let code = core::ptr::with_exposed_provenance::<u8>(code as usize);
    // SAFETY: the page is RAM below 1 MiB that nothing else uses, and the code is between two symbols.
    unsafe { core::ptr::copy_nonoverlapping(code, page, length) }
    apic::command(id, INIT);
    pause(PAUSE);
    apic::command(id, STARTUP | (TRAMPOLINE >> 12) as u32);
}
