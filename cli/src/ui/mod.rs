// SPDX-License-Identifier: Apache-2.0
//! The terminal of the user: keys, screen, progress.

pub mod keyboard;
pub mod progress;
pub mod screen;
pub mod terminal;
pub mod typing;
