// SPDX-License-Identifier: Apache-2.0
//! An exception of the hypervisor itself: its own invariant is broken, so it reports and stops.
//!
//! Runs on the emergency stack of its pCPU, uses nothing that could be what broke: no lock, no formatting
//! machinery, the UART by polling.

use crate::console;
use crate::sysreg::{instruction, read_register};
use core::sync::atomic::{AtomicBool, Ordering};

static CRASHED: AtomicBool = AtomicBool::new(false);

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

    fn text(&mut self, text: &str) -> &mut Self {
        for byte in text.bytes() {
            self.byte(byte);
        }
        self
    }

    /// A number in hexadecimal.
    fn number(&mut self, value: u64) -> &mut Self {
        let digits = (u64::BITS - value.leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            let nibble = (value >> (4 * digit) & 0xF) as u8;
            self.byte(if nibble < 10 {
                b'0' + nibble
            } else {
                b'a' + nibble - 10
            });
        }
        self
    }

    /// Sends it, and stops this CPU.
    fn end(&self) -> ! {
        let text = self
            .bytes
            .get(..self.used)
            .and_then(|bytes| core::str::from_utf8(bytes).ok());
        console::last_words(text.unwrap_or("LOCKDOWN"));
        stop()
    }
}

/// Makes sure that only the first CPU to crash reports, and only once: a crash while reporting ends here.
fn claim() -> Report {
    if CRASHED.swap(true, Ordering::AcqRel) {
        stop();
    }
    Report {
        bytes: [0; 256],
        used: 0,
    }
}

fn stop() -> ! {
    loop {
        instruction!("wfe");
    }
}

/// The vectors of EL2's own exceptions end here: which one, and the stack pointer it found.
pub(crate) extern "C" fn crash(vector: u64, stack: u64) -> ! {
    let mut line = claim();
    line.text("LOCKDOWN: exception in the hypervisor: vector=0x")
        .number(vector);
    line.text(" esr=0x").number(read_register!("esr_el2"));
    line.text(" elr=0x").number(read_register!("elr_el2"));
    line.text(" far=0x").number(read_register!("far_el2"));
    line.text(" sp=0x").number(stack);
    // An address in the binary's ELF is the ELR less this.
    line.text(" base=0x").number(crate::mmu::load_address());
    line.end()
}

/// A panic: which is a broken invariant as well.
pub fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let mut line = claim();
    line.text("LOCKDOWN: panic in the hypervisor");
    if let Some(location) = info.location() {
        line.text(" at ").text(location.file());
        line.text(" line 0x").number(u64::from(location.line()));
    }
    line.end()
}
