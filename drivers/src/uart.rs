// SPDX-License-Identifier: Apache-2.0
//! A UART, as the console of a class with one pCPU uses it.

use bulkhead_arch_support::Mmio;

/// A UART. It never waits, except in [`Uart::flush`].
pub trait Uart: Sized {
    /// Takes the UART whose registers these are, and switches it on. It runs at `hertz`. 0 is for a clock
    /// that is not known.
    #[must_use]
    fn new(registers: Mmio, hertz: u32) -> Self;
    /// Takes the UART as it is, after an earlier [`Uart::new`].
    #[must_use]
    fn attach(registers: Mmio) -> Self;
    /// Lets received bytes interrupt.
    fn enable_receive_interrupt(&mut self);
    /// Transmits as many of `bytes` as it takes now; returns how many.
    fn send(&mut self, bytes: &[u8]) -> usize;
    /// Takes a received byte, if there is one.
    fn receive(&mut self) -> Option<u8>;
    /// Waits until all bytes are sent, for a bounded number of polls.
    fn flush(&mut self);
}
