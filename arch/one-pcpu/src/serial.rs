// SPDX-License-Identifier: Apache-2.0
//! The board's serial line.
//!
//! A bad system image must still be reported. A class binary with keys knows the UART itself. Without keys,
//! only the image knows it. So [`SerialLine::find`] looks for the console record in the *unchecked* tables
//! ([`bulkhead_arch_trust::console`]). The only use of an address that may be wrong is to write the reason of
//! a lockdown to it.

use bulkhead_arch_api::Line;
use bulkhead_arch_support::{Mmio, last_words};
use bulkhead_drivers::uart::Uart;
use bulkhead_image::layout::NONE;
use core::marker::PhantomData;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Where a class has UARTs.
#[derive(Debug)]
pub struct Window {
    /// The driver, `CONTROLLER_*`.
    pub compatible: u32,
    /// The addresses of devices. No other address is taken for a UART.
    pub devices: Range<u64>,
    /// The offset of the registers in the record's window.
    pub offset: u64,
    /// Bytes of the registers.
    pub size: usize,
}

/// A serial line with a UART of this kind, once it is found.
#[derive(Debug)]
pub struct SerialLine<U> {
    window: Window,
    base: AtomicUsize,
    line: AtomicU32,
    uart: PhantomData<fn() -> U>,
}

impl<U: Uart> SerialLine<U> {
    /// Makes a line whose UART is not found yet.
    ///
    /// # Safety
    /// Nothing but devices is in the window's addresses.
    #[must_use]
    pub const unsafe fn new(window: Window) -> Self {
        Self {
            window,
            base: AtomicUsize::new(0),
            line: AtomicU32::new(NONE),
            uart: PhantomData,
        }
    }

    /// Finds the console of an image that may be damaged.
    pub fn find(&self, image: &[u8]) {
        let Some(record) = bulkhead_arch_trust::console(image) else {
            return;
        };
        let ([base, ..], [line, ..]) = (record.base, record.lines);
        if record.compatible.get() != self.window.compatible || !self.window.devices.contains(&base.get()) {
            return;
        }
        let base = base.get() + self.window.offset;
        self.base.store(base as usize, Ordering::Relaxed);
        self.line.store(line.get(), Ordering::Relaxed);
        if let Some(registers) = self.registers() {
            U::new(registers, record.clock_hz.get()).enable_receive_interrupt();
        }
    }

    fn registers(&self) -> Option<Mmio> {
        let base = self.base.load(Ordering::Relaxed);
        // SAFETY: `find` has made sure that devices are there, not memory.
        (base != 0).then(|| unsafe { Mmio::new(base, self.window.size) })
    }

    fn uart(&self) -> Option<U> {
        self.registers().map(U::attach)
    }

    /// Writes a line to the console and waits for the line to go out. This is the last thing that the CPU
    /// does.
    pub fn last_words(&self, text: &[u8]) {
        let Some(mut uart) = self.uart() else { return };
        last_words(|bytes| uart.send(bytes), None, text);
        uart.flush();
    }

    /// Does [`bulkhead_arch_api::Console::send`]. Without a UART all bytes are gone.
    pub fn send(&self, bytes: &[u8]) -> usize {
        self.uart().map_or(bytes.len(), |mut uart| uart.send(bytes))
    }

    /// Does [`bulkhead_arch_api::Console::receive`].
    pub fn receive(&self) -> Option<u8> {
        self.uart()?.receive()
    }

    /// Does [`bulkhead_arch_api::Console::receive_line`].
    pub fn receive_line(&self) -> Option<Line> {
        let line = self.line.load(Ordering::Relaxed);
        (line != NONE).then_some(Line(line))
    }

    /// Does [`bulkhead_arch_api::Console::flush`].
    pub fn flush(&self) {
        if let Some(mut uart) = self.uart() {
            uart.flush();
        }
    }
}
