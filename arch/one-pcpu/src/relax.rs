// SPDX-License-Identifier: Apache-2.0
//! The way to wait where there is nothing to wait for.

/// The way to wait inside a spin loop. There is one pCPU and nothing interrupts it, so no code ever waits.
#[derive(Debug)]
pub enum Relax {}

impl spin::RelaxStrategy for Relax {
    #[inline]
    fn relax() {}
}
