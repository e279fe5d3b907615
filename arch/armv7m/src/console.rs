// SPDX-License-Identifier: Apache-2.0
//! The board's serial line.
//!
//! A bad system image must still be reported, and only the image knows the UART. So [`find`] looks for the
//! console record in the *unchecked* tables ([`bulkhead_image::claimed_console`]). The only use of an address
//! that may be wrong is to write the reason of a lockdown to it.

use bulkhead_arch_api::{Console, Line};
use bulkhead_arch_support::Mmio;
use bulkhead_drivers::cmsdk::CmsdkUart;
use bulkhead_image::claimed_console;
use bulkhead_image::layout::{CONTROLLER_CMSDK_UART, NONE};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Bytes of the UART's registers.
const WINDOW: usize = 4096;
/// The range of devices on every Armv7-M chip (B3.1). No other address is taken for a UART.
const DEVICES: core::ops::Range<u64> = 0x4000_0000..0x6000_0000;

static BASE: AtomicUsize = AtomicUsize::new(0);
static LINE: AtomicU32 = AtomicU32::new(NONE);

/// Finds the console of an image that may be damaged.
pub(crate) fn find(image: &[u8]) {
    let Some(record) = claimed_console(image) else {
        return;
    };
    let ([base, ..], [line, ..]) = (record.base, record.lines);
    if record.compatible.get() != CONTROLLER_CMSDK_UART || !DEVICES.contains(&base.get()) {
        return;
    }
    BASE.store(base.get() as usize, Ordering::Relaxed);
    LINE.store(line.get(), Ordering::Relaxed);
    if let Some(registers) = registers() {
        CmsdkUart::new(registers, record.clock_hz.get()).enable_receive_interrupt();
    }
}

fn registers() -> Option<Mmio> {
    let base = BASE.load(Ordering::Relaxed);
    // SAFETY: `find` has made sure that devices are there, not memory.
    (base != 0).then(|| unsafe { Mmio::new(base, WINDOW) })
}

fn uart() -> Option<CmsdkUart> {
    registers().map(CmsdkUart::attach)
}

/// Writes a line to the console and waits for the line to go out. This is the last thing that the CPU does.
pub(crate) fn last_words(text: &[u8]) {
    let Some(mut uart) = uart() else { return };
    bulkhead_arch_support::last_words(|bytes| uart.send(bytes), None, text);
    uart.flush();
}

/// The board's serial line, which [`find`] has found.
#[derive(Clone, Copy, Debug)]
pub struct Serial;

impl Console for Serial {
    fn send(&mut self, bytes: &[u8]) -> usize {
        uart().map_or(bytes.len(), |mut uart| uart.send(bytes))
    }

    fn receive(&mut self) -> Option<u8> {
        uart()?.receive()
    }

    fn receive_line(&self) -> Option<Line> {
        let line = LINE.load(Ordering::Relaxed);
        (line != NONE).then_some(Line(line))
    }

    fn flush(&mut self) {
        if let Some(mut uart) = uart() {
            uart.flush();
        }
    }
}
