// SPDX-License-Identifier: Apache-2.0
//! Devices, lines and channels that a partition has only while it holds them.

mod change_hold;
pub(crate) mod command;
mod counted;
mod deliver;
pub(crate) mod hold;
pub(crate) mod line;
