// SPDX-License-Identifier: Apache-2.0
//! An exception of the hypervisor itself: its own invariant is broken, so it reports and stops.
//!
//! Runs on the emergency stack of its pCPU, uses nothing that could be what broke: no lock, no formatting
//! machinery, the UART by polling.

use crate::console;
use crate::sysreg::{instruction, read_register};
use core::sync::atomic::{AtomicBool, Ordering};

static CRASHED: AtomicBool = AtomicBool::new(false);

/// `text` with `value` in hexadecimal behind it.
fn field(line: &mut Report, text: &str, value: u64) {
    line.text(text);
    for digit in 0..16 {
        let nibble = (value >> (60 - 4 * digit) & 0xF) as u8;
        line.byte(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 });
    }
}

/// A line of fixed room; what does not fit is cut off.
struct Report {
    bytes: [u8; 256],
    used: usize,
}

impl Report {
    fn byte(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.used) {
            *slot = byte;
            self.used += 1;
        }
    }

    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            self.byte(byte);
        }
    }
}

/// The vectors of EL2's own exceptions end here: which one, and the stack pointer it found.
pub(crate) extern "C" fn crash(vector: u64, stack: u64) -> ! {
    if !CRASHED.swap(true, Ordering::AcqRel) {
        let mut line = Report { bytes: [0; 256], used: 0 };
        line.text("LOCKDOWN: exception in the hypervisor:");
        field(&mut line, " vector ", vector);
        field(&mut line, " ESR ", read_register!("esr_el2"));
        field(&mut line, " ELR ", read_register!("elr_el2"));
        field(&mut line, " FAR ", read_register!("far_el2"));
        field(&mut line, " SP ", stack);
        field(&mut line, " at load address ", crate::mmu::load_address());
        let Report { bytes, used } = line;
        let text = bytes.get(..used).and_then(|bytes| core::str::from_utf8(bytes).ok());
        console::last_words(text.unwrap_or("LOCKDOWN"));
    }
    loop {
        instruction!("wfe");
    }
}
