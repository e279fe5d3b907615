// SPDX-License-Identifier: Apache-2.0
//! The board's free-running counter of 32 bits, which wraps after some minutes. Each reader notices the wrap.

use bulkhead_arch_support::Mmio;
use core::cell::Cell;

/// Offset of the free-running counter among the board's own registers (Arm DAI 0386C 4.5, FPGAIO COUNTER).
const COUNTER: usize = 0x18;

/// The counter, with the bits it does not have.
#[derive(Clone, Debug)]
pub struct Counter {
    registers: Mmio,
    high: Cell<u32>,
    low: Cell<u32>,
}

impl Counter {
    /// Takes the counter in these registers, which no other code has.
    #[must_use]
    pub const fn new(registers: Mmio) -> Self {
        Self {
            registers,
            high: Cell::new(0),
            low: Cell::new(0),
        }
    }

    /// Returns its address.
    #[must_use]
    pub const fn address(&self) -> usize {
        self.registers.address(COUNTER)
    }

    /// Returns the bits that it has.
    #[inline(always)]
    pub fn low(&self) -> u32 {
        self.registers.read32(COUNTER)
    }

    /// Returns the ticks since the counter started. Requires: called at least once while the counter goes
    /// round.
    #[inline(always)]
    pub fn read(&self) -> u64 {
        let low = self.registers.read32(COUNTER);
        if low < self.low.get() {
            self.high.set(self.high.get().wrapping_add(1));
        }
        self.low.set(low);
        u64::from(self.high.get()) << 32 | u64::from(low)
    }
}
