// SPDX-License-Identifier: Apache-2.0
//! The start of a system by a loader: what a class says of it.

use super::payload::Payload;
use crate::problem::Problem;
use bulkhead_loader_plan::Piece;
use bulkhead_manifest::Board;

/// The start of a system: the memory that its file fills, and the first instruction.
#[derive(Debug)]
pub struct Start<'a> {
    /// The address of the first instruction.
    pub entry: u64,
    /// The bytes and their places.
    pub pieces: Vec<Piece<'a>>,
}

/// The way in which a class starts from UEFI.
#[derive(Clone, Copy, Debug)]
pub struct Uefi {
    /// The Rust target of the loader.
    pub target: &'static str,
    /// The name of the file on a medium that the firmware starts by itself (UEFI 2.10, 3.5.1.1).
    pub file: &'static str,
    /// The firmware of the emulator's boards.
    pub firmware: &'static Payload,
    /// Tells which bytes of the flashable file go where.
    pub start: for<'a> fn(&'a [u8], &Board) -> Result<Start<'a>, Problem>,
}
