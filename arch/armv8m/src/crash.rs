// SPDX-License-Identifier: Apache-2.0
//! The end: an exception or a panic of the hypervisor itself, or a first step that fails.
//!
//! The hypervisor's own invariant is broken, so it leaves a record in the log area, reports and stops.
//! Nothing here uses a part that may have broken: no lock, no formatting machinery, the UART by polling. The
//! record comes before the console, because the console may hang.

use crate::log;
use crate::pair::{IS_PAIR, second_stack};
use crate::sysreg::{self, BFAR, CFSR, HFSR, SAU_CTRL, SFSR};
use bulkhead_abi::log::ending::{EXCEPTION, PC};
use bulkhead_abi::log::line::Line;
use bulkhead_abi::log::{CRASH_EXCEPTION, CRASH_LOCKDOWN, CRASH_PANIC, Crash};
use bulkhead_arch_one_pcpu::{cmsdk as console, leave};
use bulkhead_arch_support::crash::store_stack;
use bulkhead_arch_support::{Mmio, SetOnce, physical, tell_panic};
use bulkhead_image::layout::{REGISTERS_GATED, REGISTERS_QUIESCED, RegistersRecord};
use core::sync::atomic::Ordering;

unsafe extern "C" {
    static __stack_bottom: u8;
    static __stack_top: u8;
}

/// Offset of the PC in a frame.
const FRAME_PC: usize = 24;

/// Bytes of a report.
const ROOM: usize = 128;

/// Windows of registers of partitions' devices, and the gates of these devices, once the image is checked.
static DEVICES: SetOnce<(&'static [RegistersRecord], Mmio)> = SetOnce::new();

/// Stores the devices that [`stop`] has to make quiet, with the registers of their gates. Requires: of a
/// checked image.
pub(crate) fn remember_devices(records: &'static [RegistersRecord], gates: Mmio) {
    DEVICES.set((records, gates));
}

/// Ends the activity of partitions' devices, as for a partition that stops.
fn make_devices_quiet() {
    let Some((records, gates)) = DEVICES.get() else {
        return;
    };
    // Nothing is Non-secure any more, so that the hypervisor reaches all devices.
    sysreg::write(SAU_CTRL, 0);
    for record in *records {
        if record.flags.get() & REGISTERS_GATED != 0 {
            let register = record.gate_offset.get() as usize;
            gates.write32(
                register,
                gates.read32(register) & !1_u32.wrapping_shl(record.gate_bit.get()),
            );
        }
        if record.flags.get() & REGISTERS_QUIESCED != 0 {
            let register = record.host.get() as usize + record.quiesce_offset.get() as usize;
            // SAFETY: the image is checked: this is a register of a partition's device, and the partition
            // does not run any more.
            unsafe { Mmio::new(register, size_of::<u32>()) }.write32(0, record.quiesce_value.get());
        }
    }
}

/// Ends this CPU, and the activity of partitions' devices.
pub(crate) fn stop() -> ! {
    make_devices_quiet();
    loop {
        // SAFETY: masks interrupts and waits; no other effect.
        unsafe { core::arch::asm!("cpsid i", "wfi", options(nomem, nostack)) }
    }
}

/// Ends this CPU with a reason, before the kernel could.
pub(crate) fn halt(reason: &str) -> ! {
    leave(log::area(), CRASH_LOCKDOWN, reason.as_bytes(), note_pcpu);
    console::last_words(reason.as_bytes());
    stop()
}

/// Ends the run at an exception that belongs to no partition. The vectors of such exceptions lead here, with
/// the stack pointer as it was and the exception's number.
pub(crate) extern "C" fn crash(stack: u32, number: u32) -> ! {
    let (cause, hard) = (sysreg::read(CFSR), sysreg::read(HFSR));
    let pc = stack_word(stack as usize + FRAME_PC).unwrap_or(0);
    let mut line = Line::<ROOM>::of(EXCEPTION);
    line.hex(number.into());
    line.text(" in the hypervisor: cfsr=").hex(cause.into());
    line.text(" hfsr=").hex(hard.into());
    line.text(" sfsr=").hex(sysreg::read(SFSR).into());
    line.text(PC).hex(pc.into());
    line.text(" sp=").hex(stack.into());
    leave(log::area(), CRASH_EXCEPTION, line.as_bytes(), |record| {
        record
            .syndrome
            .store(u64::from(hard) << 32 | u64::from(cause), Ordering::Relaxed);
        record.address.store(sysreg::read(BFAR).into(), Ordering::Relaxed);
        record.pc.store(pc.into(), Ordering::Relaxed);
        record.vector.store(number.into(), Ordering::Relaxed);
        store_stack(record, stack as usize, stack_word);
        note_pcpu(record);
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
        store_stack(record, stack, stack_word);
        note_pcpu(record);
    });
    console::last_words(line.as_bytes());
    stop()
}

/// Notes on which pCPU the record is made, if there are two.
fn note_pcpu(record: &Crash) {
    if IS_PAIR {
        record
            .pcpu
            .store(second_stack().is_some().into(), Ordering::Relaxed);
    }
}

/// Returns a word of the main stack, if the address is on this stack.
fn stack_word(address: usize) -> Option<u32> {
    let first = (&raw const __stack_bottom).addr()..(&raw const __stack_top).addr();
    let stack = second_stack().unwrap_or(first);
    let inside = stack.contains(&address) && address & 3 == 0;
    // SAFETY: a word of the stack, which exists always.
    inside.then(|| unsafe { physical::read_word32(address) })
}
