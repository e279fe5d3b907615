// SPDX-License-Identifier: Apache-2.0
//! The serial line of a microcontroller's board: a UART of the Cortex-M System Design Kit.

use crate::{SerialLine, Window};
use bulkhead_arch_api::{Console, Line};
use bulkhead_drivers::cmsdk::CmsdkUart;
use bulkhead_image::layout::CONTROLLER_CMSDK_UART;

/// Its registers are in the range of devices on every chip of the M profile (Arm DDI 0403E, B3.1; Arm DDI
/// 0553B, B5.1).
// SAFETY: nothing else is there.
static UART: SerialLine<CmsdkUart> = unsafe {
    SerialLine::new(Window {
        compatible: CONTROLLER_CMSDK_UART,
        devices: 0x4000_0000..0x6000_0000,
        offset: 0,
        size: 4096,
    })
};

/// Finds the console of an image that may be damaged.
pub fn find(image: &[u8]) {
    UART.find(image);
}

/// Writes a line to the console and waits for the line to go out. This is the last thing that the CPU does.
pub fn last_words(text: &[u8]) {
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
