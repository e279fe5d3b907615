// SPDX-License-Identifier: Apache-2.0
//! The halves that backends of classes with one pCPU share: `armv7m`, `armv8m` and `ppc405`.
//!
//! Their serial line is a UART by address ([`SerialLine`]), their crash record names no pCPU ([`leave`]), and
//! no code of theirs ever waits for another pCPU ([`Relax`]).
//!
//! The microcontrollers among them run from code memory ([`flash`]) with a [`cmsdk`] UART, take memory for
//! tables ([`Slots`]) from a [`Pool`], and the time from a [`Counter`] of the board. Symbols of their linker
//! scripts say where all of this is.
#![no_std]

mod clear;
pub mod cmsdk;
mod counter;
mod crash;
pub mod flash;
mod idle;
pub mod log;
mod pool;
mod relax;
mod second;
mod serial;
mod slots;
mod told;

pub use clear::clear;
pub use counter::Counter;
pub use crash::leave;
pub use idle::idle_frame;
pub use pool::Pool;
pub use relax::Relax;
pub use serial::{SerialLine, Window};
pub use slots::Slots;
pub use told::told;
