// SPDX-License-Identifier: Apache-2.0
//! Images that are nothing but contents: raw binaries, and files of Intel HEX. The build of a vendor often
//! ends with one.
//!
//! Such an image says where its contents are, with the help of the manifest if it is a raw binary. It does
//! not say which RAM the program uses, so the manifest says that (`place`). It has no symbols either. So a
//! class that replaces instructions takes an image only if nothing in the image could be one of them.

use super::firmware::{Firmware, FirmwareError};
use super::section::{Contents, Instructions, Refusals, Section};
use crate::board::Board;
use crate::payload::hex::HexError;
use crate::payload::{Stretch, hex};
use crate::window::Window;

impl From<HexError> for FirmwareError {
    fn from(error: HexError) -> Self {
        Self::Hex(error)
    }
}

/// Reads a file of Intel HEX.
///
/// # Errors
/// [`FirmwareError`].
pub(crate) fn read_hex(
    contents: &[u8],
    board: &Board,
    instructions: Option<&dyn Instructions>,
) -> Result<Firmware, FirmwareError> {
    settle(hex::read(contents)?, board, instructions)
}

/// Reads a raw binary that begins at `address`.
///
/// # Errors
/// [`FirmwareError`].
pub(crate) fn read_raw(
    contents: &[u8],
    address: u64,
    board: &Board,
    instructions: Option<&dyn Instructions>,
) -> Result<Firmware, FirmwareError> {
    let bytes = contents.to_vec();
    settle(vec![Stretch { address, bytes }], board, instructions)
}

/// Makes contents, which are in ascending order, a program.
fn settle(
    contents: Vec<Stretch>,
    board: &Board,
    instructions: Option<&dyn Instructions>,
) -> Result<Firmware, FirmwareError> {
    let mut firmware = Firmware {
        is_silent: true,
        ..Firmware::default()
    };
    for stretch in contents {
        let Window { base, size } = stretch.window();
        if !firmware.add(stretch, board) {
            return Err(FirmwareError::Outside {
                what: "a stretch".to_owned(),
                address: base,
                size,
            });
        }
    }
    if let Some(instructions) = instructions {
        keep(&mut firmware, instructions)?;
    }
    Ok(firmware)
}

/// Checks that nothing in the program could be an instruction that has to be replaced.
fn keep(firmware: &mut Firmware, instructions: &dyn Instructions) -> Result<(), FirmwareError> {
    let mut refusals = Refusals::new();
    for stretch in &mut firmware.code {
        let before = stretch.bytes.clone();
        let address = stretch.address as u32;
        let whole = Section {
            name: "the image".to_owned(),
            address,
            bytes: &before,
            map: vec![(address, Contents::Untold)],
        };
        instructions.replace(&whole, &mut stretch.bytes, &mut firmware.rewritten, &mut refusals);
    }
    if refusals.is_empty() {
        Ok(())
    } else {
        Err(FirmwareError::Untold(refusals))
    }
}
