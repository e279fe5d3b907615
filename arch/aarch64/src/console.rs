// SPDX-License-Identifier: Apache-2.0
//! The board's serial line.
//!
//! A bad system image must still be reported. Without keys, only the image knows the UART. So [`find`] looks
//! for the console record in the *unchecked* tables, with a check of bounds only. It runs before anything
//! else does. The only use of an address that may be wrong is to write the reason of a lockdown to it.

use crate::sysreg::read_register;
use crate::{log, mmu};
use bulkhead_arch_api::{Console, HostPhys, Line};
use bulkhead_arch_support::{self as support, Mmio, since_boot};
use bulkhead_drivers::cadence::CadenceUart;
use bulkhead_drivers::pl011::Pl011;
use bulkhead_image::layout::{CONTROLLER_CADENCE_UART, CONTROLLER_PL011, ControllerRecord, NONE};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes of the UART's registers.
const WINDOW: usize = 4096;

static BASE: AtomicU64 = AtomicU64::new(0);
static LINE: AtomicU32 = AtomicU32::new(NONE);
/// The driver, `CONTROLLER_*`.
static DRIVER: AtomicU32 = AtomicU32::new(CONTROLLER_PL011);

/// The UART of either kind.
enum Uart {
    Pl011(Pl011),
    Cadence(CadenceUart),
}

impl Uart {
    fn enable_receive_interrupt(&mut self) {
        match self {
            Self::Pl011(uart) => uart.enable_receive_interrupt(),
            Self::Cadence(uart) => uart.enable_receive_interrupt(),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> usize {
        match self {
            Self::Pl011(uart) => uart.send(bytes),
            Self::Cadence(uart) => uart.send(bytes),
        }
    }

    fn receive(&mut self) -> Option<u8> {
        match self {
            Self::Pl011(uart) => uart.receive(),
            Self::Cadence(uart) => uart.receive(),
        }
    }

    fn flush(&mut self) {
        match self {
            Self::Pl011(uart) => uart.flush(),
            Self::Cadence(uart) => uart.flush(),
        }
    }
}

/// Returns the console record of an image that may be damaged.
fn record(image: &[u8]) -> Option<ControllerRecord> {
    let record = bulkhead_arch_trust::console(image)?;
    let [base, ..] = record.base;
    let is_known = matches!(
        record.compatible.get(),
        CONTROLLER_PL011 | CONTROLLER_CADENCE_UART
    );
    let is_window = base.get() != 0 && base.get().is_multiple_of(WINDOW as u64);
    (is_known && is_window).then_some(record)
}

/// Remembers the console's place without mapping it, while the MMU is off.
pub(crate) fn find_unmapped(image: &[u8]) {
    let Some(record) = record(image) else { return };
    let ([base, ..], [line, ..]) = (record.base, record.lines);
    DRIVER.store(record.compatible.get(), Ordering::Relaxed);
    BASE.store(base.get(), Ordering::Relaxed);
    LINE.store(line.get(), Ordering::Relaxed);
    if let Some(mut uart) = uart_new() {
        uart.enable_receive_interrupt();
    }
}

/// Finds and maps the console.
pub(crate) fn find(image: &[u8]) {
    let Some(record) = record(image) else { return };
    let [base, ..] = record.base;
    if mmu::map_device(HostPhys(base.get()), WINDOW as u64).is_ok() {
        find_unmapped(image);
    }
}

fn registers() -> Option<Mmio> {
    let base = BASE.load(Ordering::Relaxed) as usize;
    // SAFETY: `find` mapped the window as device memory before the address was stored.
    (base != 0).then(|| unsafe { Mmio::new(base, WINDOW) })
}

fn is_cadence() -> bool {
    DRIVER.load(Ordering::Relaxed) == CONTROLLER_CADENCE_UART
}

fn uart_new() -> Option<Uart> {
    let registers = registers()?;
    Some(if is_cadence() {
        Uart::Cadence(CadenceUart::new(registers))
    } else {
        Uart::Pl011(Pl011::new(registers))
    })
}

fn uart() -> Option<Uart> {
    let registers = registers()?;
    Some(if is_cadence() {
        Uart::Cadence(CadenceUart::attach(registers))
    } else {
        Uart::Pl011(Pl011::attach(registers))
    })
}

/// Writes a line to the console and waits for the line to go out. This is the last thing that the CPU does.
pub(crate) fn last_words(text: &[u8]) {
    let Some(mut uart) = uart() else { return };
    let time = since_boot(&log::area().header, read_register!("cntpct_el0"));
    support::last_words(|bytes| uart.send(bytes), Some(time), text);
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
