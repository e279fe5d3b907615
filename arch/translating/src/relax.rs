// SPDX-License-Identifier: Apache-2.0
//! The way a pCPU waits for another one.

/// The way to wait inside a spin loop.
#[derive(Debug)]
pub enum Relax {}

impl spin::RelaxStrategy for Relax {
    #[inline]
    fn relax() {
        bulkhead_arch_support::relax();
    }
}
