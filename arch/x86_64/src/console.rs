// SPDX-License-Identifier: Apache-2.0
//! The board's serial line: an NS 16550A at I/O ports (TI SLLS597).
//!
//! A bad system image must still be reported. Without keys, only the image knows the UART. So [`find`] looks
//! for the console record in the *unchecked* tables, with a check of bounds only. The only use of a port that
//! may be wrong is to write the reason of a lockdown to it.
//!
//! Firmware has set baud rate and line control; they are left alone. Transmission is polled and never waits.

use crate::log;
use crate::sysreg::{counter, read_port8, write_port8};
use bulkhead_arch_api::{Console, Line};
use bulkhead_arch_support::{self as support, since_boot};
use bulkhead_image::layout::{CONTROLLER_NS16550, ControllerRecord, NONE};
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering};

const DATA: u16 = 0;
const INTERRUPT_ENABLE: u16 = 1;
const FIFO_CONTROL: u16 = 2;
const MODEM_CONTROL: u16 = 4;
const LINE_STATUS: u16 = 5;
const RECEIVED: u8 = 1;
/// FIFOs on and empty, an interrupt for each byte.
const FIFOS: u8 = 7;
/// DTR, RTS, and OUT2, which lets the interrupt line out of the chip on a PC.
const MODEM: u8 = 0xB;
const READY: u8 = 1;
/// The transmitter holds nothing any more, and its FIFO neither.
const EMPTY: u8 = 1 << 5;
const IDLE: u8 = 1 << 6;
/// Depth of the transmit FIFO.
const DEPTH: usize = 16;
/// Polls before [`Serial`] gives up to flush: 16 characters at 9600 baud last 17 ms, a poll takes 1 us.
const FLUSH_POLLS: u32 = 100_000;

static PORT: AtomicU16 = AtomicU16::new(0);
static LINE: AtomicU32 = AtomicU32::new(NONE);

/// Returns the console record of an image that may be damaged.
fn record(image: &[u8]) -> Option<ControllerRecord> {
    let record = bulkhead_arch_trust::console(image)?;
    let [base, ..] = record.base;
    let is_known = record.compatible.get() == CONTROLLER_NS16550;
    let is_port = base.get() != 0 && base.get() <= 0xFFF8;
    (is_known && is_port).then_some(record)
}

/// Finds the console and switches its receiver on.
pub(crate) fn find(image: &[u8]) {
    let Some(record) = record(image) else { return };
    let ([base, ..], [line, ..]) = (record.base, record.lines);
    let port = base.get() as u16;
    LINE.store(line.get(), Ordering::Relaxed);
    write_port8(port + FIFO_CONTROL, FIFOS);
    write_port8(port + MODEM_CONTROL, MODEM);
    write_port8(port + INTERRUPT_ENABLE, RECEIVED);
    PORT.store(port, Ordering::Relaxed);
}

fn port() -> Option<u16> {
    let port = PORT.load(Ordering::Relaxed);
    (port != 0).then_some(port)
}

fn send(port: u16, bytes: &[u8]) -> usize {
    if read_port8(port + LINE_STATUS) & EMPTY == 0 {
        return 0;
    }
    let taken = bytes.iter().take(DEPTH);
    taken.map(|byte| write_port8(port + DATA, *byte)).count()
}

fn flush(port: u16) {
    for _ in 0..FLUSH_POLLS {
        if read_port8(port + LINE_STATUS) & IDLE != 0 {
            break;
        }
    }
}

/// Writes a line to the console and waits for the line to go out. This is the last thing that the CPU does.
pub(crate) fn last_words(text: &[u8]) {
    let Some(port) = port() else { return };
    let time = since_boot(&log::area().header, counter());
    support::last_words(|bytes| send(port, bytes), Some(time), text);
    flush(port);
}

/// The board's serial line, which [`find`] has found.
#[derive(Clone, Copy, Debug)]
pub struct Serial;

impl Console for Serial {
    fn send(&mut self, bytes: &[u8]) -> usize {
        port().map_or(bytes.len(), |port| send(port, bytes))
    }

    fn receive(&mut self) -> Option<u8> {
        let port = port()?;
        (read_port8(port + LINE_STATUS) & READY != 0).then(|| read_port8(port + DATA))
    }

    fn receive_line(&self) -> Option<Line> {
        let line = LINE.load(Ordering::Relaxed);
        (line != NONE).then_some(Line(line))
    }

    fn flush(&mut self) {
        if let Some(port) = port() {
            flush(port);
        }
    }
}
