// SPDX-License-Identifier: Apache-2.0
//! UART and dual timer of the Cortex-M System Design Kit (Arm DDI 0479D, 4.3 and 4.2), as the MPS2 boards
//! have them.
//!
//! The UART has no FIFO: one byte is being sent, one waits. It never waits itself. The timer counts down from
//! a value and interrupts at zero; it is used for one interrupt at a time.

use crate::uart::Uart;
use bulkhead_arch_support::{Mmio, relax};

/// UART: data.
const DATA: usize = 0x00;
/// UART: state.
const STATE: usize = 0x04;
/// UART: control.
const CONTROL: usize = 0x08;
/// UART: interrupt status, and clear.
const INTERRUPT: usize = 0x0C;
/// UART: clock cycles of a bit.
const DIVIDER: usize = 0x10;

const STATE_TRANSMIT_FULL: u32 = 1;
const STATE_RECEIVE_FULL: u32 = 1 << 1;
const CONTROL_TRANSMIT: u32 = 1;
const CONTROL_RECEIVE: u32 = 1 << 1;
const CONTROL_RECEIVE_INTERRUPT: u32 = 1 << 3;
const INTERRUPT_ALL: u32 = 0xF;
const BAUD: u32 = 115_200;
/// Smallest divider the UART works with.
const DIVIDER_MIN: u32 = 16;

/// Polls of the state before [`Uart::flush`] gives up: two characters last 0.2 ms.
const FLUSH_POLLS: u32 = 100_000;

/// The UART.
#[derive(Debug)]
pub struct CmsdkUart {
    registers: Mmio,
}

impl Uart for CmsdkUart {
    fn new(registers: Mmio, hertz: u32) -> Self {
        registers.write32(DIVIDER, (hertz / BAUD).max(DIVIDER_MIN));
        registers.write32(CONTROL, CONTROL_TRANSMIT | CONTROL_RECEIVE);
        Self { registers }
    }

    fn attach(registers: Mmio) -> Self {
        Self { registers }
    }

    fn enable_receive_interrupt(&mut self) {
        let control = CONTROL_TRANSMIT | CONTROL_RECEIVE | CONTROL_RECEIVE_INTERRUPT;
        self.registers.write32(CONTROL, control);
    }

    fn send(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        for byte in bytes {
            if self.registers.read32(STATE) & STATE_TRANSMIT_FULL != 0 {
                break;
            }
            self.registers.write32(DATA, u32::from(*byte));
            taken += 1;
        }
        taken
    }

    fn receive(&mut self) -> Option<u8> {
        self.registers.write32(INTERRUPT, INTERRUPT_ALL);
        if self.registers.read32(STATE) & STATE_RECEIVE_FULL == 0 {
            return None;
        }
        Some(self.registers.read32(DATA) as u8)
    }

    /// Waits until the byte that waits is being sent, for `FLUSH_POLLS` polls at most.
    fn flush(&mut self) {
        for _ in 0..FLUSH_POLLS {
            if self.registers.read32(STATE) & STATE_TRANSMIT_FULL == 0 {
                return;
            }
            relax();
        }
    }
}

/// Dual timer, first counter: what it counts down from, at once.
const TIMER_LOAD: usize = 0x0;
/// Dual timer, first counter: control.
const TIMER_CONTROL: usize = 0x8;
/// Dual timer, first counter: interrupt clear.
const TIMER_CLEAR: usize = 0xC;
/// Stops at zero.
const TIMER_ONE_SHOT: u32 = 1;
const TIMER_32_BITS: u32 = 1 << 1;
const TIMER_INTERRUPT_ENABLE: u32 = 1 << 5;
/// Counts from the load value, not from all ones.
const TIMER_PERIODIC: u32 = 1 << 6;
const TIMER_ENABLE: u32 = 1 << 7;
const TIMER_STOPPED: u32 = TIMER_ONE_SHOT | TIMER_32_BITS | TIMER_INTERRUPT_ENABLE | TIMER_PERIODIC;

/// The dual timer (Arm DDI 0479D, section 4.2; programmed as an SP804), of which the first counter is used.
#[derive(Clone, Copy, Debug)]
pub struct DualTimer {
    registers: Mmio,
}

impl DualTimer {
    /// Takes the timer whose registers these are.
    #[must_use]
    pub const fn new(registers: Mmio) -> Self {
        Self { registers }
    }

    /// Interrupts in `ticks` of its clock, which are at least 1; an earlier request is forgotten.
    pub fn start(&self, ticks: u32) {
        // The width comes first: of what is loaded into 16 bits the rest is lost.
        self.stop();
        self.registers.write32(TIMER_LOAD, ticks);
        self.registers
            .write32(TIMER_CONTROL, TIMER_STOPPED | TIMER_ENABLE);
    }

    /// Interrupts no more.
    pub fn stop(&self) {
        self.registers.write32(TIMER_CONTROL, TIMER_STOPPED);
        self.registers.write32(TIMER_CLEAR, 1);
    }
}
