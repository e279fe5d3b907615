// SPDX-License-Identifier: Apache-2.0
//! The halves that backends of classes with one pCPU share: `armv7m`, `armv8m` and `ppc405`.
//!
//! Their serial line is a UART by address ([`SerialLine`]), their crash record names no pCPU ([`leave`]), and
//! no code of theirs ever waits for another pCPU ([`Relax`]). The microcontrollers among them take memory for
//! tables from a [`Pool`], and the time from a [`Counter`] of the board.
#![no_std]

mod clear;
mod counter;
mod crash;
mod pool;
mod relax;
mod serial;
mod told;

pub use clear::clear;
pub use counter::Counter;
pub use crash::leave;
pub use pool::Pool;
pub use relax::Relax;
pub use serial::{SerialLine, Window};
pub use told::told;
