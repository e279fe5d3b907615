// SPDX-License-Identifier: Apache-2.0
//! The halves that backends of classes with one pCPU share: `armv7m` and `ppc405`.
//!
//! Their serial line is a UART by address ([`SerialLine`]), their crash record names no pCPU ([`leave`]), and
//! no code of theirs ever waits for another pCPU ([`Relax`]).
#![no_std]

mod crash;
mod relax;
mod serial;

pub use crash::leave;
pub use relax::Relax;
pub use serial::{SerialLine, Window};
