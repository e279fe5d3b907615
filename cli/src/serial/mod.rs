// SPDX-License-Identifier: Apache-2.0
//! From the serial line of a board to lines of text of its consoles.

pub mod capture;
pub mod consoles;
pub mod framing;
pub mod health;
pub mod line;
pub mod own;
pub mod pattern;
pub mod records;
