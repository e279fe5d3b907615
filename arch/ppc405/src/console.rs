// SPDX-License-Identifier: Apache-2.0
//! The board's serial line: an NS 16550 of the chip.

use bulkhead_arch_api::class::driver::PPC405EP_UART_OFFSET;
use bulkhead_arch_api::{Console, Line};
use bulkhead_arch_one_pcpu::{SerialLine, Window};
use bulkhead_drivers::ns16550::Ns16550;
use bulkhead_image::layout::CONTROLLER_PPC405EP_UART;

/// Its registers are in the range of devices (PPC405EP User's Manual, table "Address Map").
// SAFETY: nothing else is there.
static UART: SerialLine<Ns16550> = unsafe {
    SerialLine::new(Window {
        compatible: CONTROLLER_PPC405EP_UART,
        devices: 0xEF60_0000..0xF000_0000,
        offset: PPC405EP_UART_OFFSET,
        size: 8,
    })
};

/// Finds the console of an image that may be damaged.
pub(crate) fn find(image: &[u8]) {
    UART.find(image);
}

/// Writes a line to the console and waits for the line to go out. This is the last thing that the CPU does.
pub(crate) fn last_words(text: &[u8]) {
    UART.last_words(text);
}

/// The board's serial line, which [`find`] has found.
#[derive(Clone, Copy, Debug)]
pub struct Serial;

impl Console for Serial {
    fn send(&mut self, bytes: &[u8]) -> usize {
        UART.send(bytes)
    }

    fn receive(&mut self) -> Option<u8> {
        UART.receive()
    }

    fn receive_line(&self) -> Option<Line> {
        UART.receive_line()
    }

    fn flush(&mut self) {
        UART.flush();
    }
}
