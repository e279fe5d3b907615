// SPDX-License-Identifier: Apache-2.0
//! Words of an image that has not been checked.

use crate::layout::{ControllerRecord, Header, ROLE_CONSOLE, SECTION_CONTROLLERS};
use zerocopy::FromBytes;

/// Returns the console that an image which may be damaged names: for the reason why it is refused. Nothing
/// about the record is verified but that it is inside `bytes`.
#[must_use]
pub fn claimed_console(bytes: &[u8]) -> Option<ControllerRecord> {
    // The magic number may be what is damaged.
    let (header, _) = Header::ref_from_prefix(bytes).ok()?;
    let section = header.sections.get(SECTION_CONTROLLERS)?;
    let table = bytes.get(section.offset.get() as usize..)?;
    let count = section.count.get() as usize;
    let (records, _) = <[ControllerRecord]>::ref_from_prefix_with_elems(table, count).ok()?;
    records
        .iter()
        .find(|record| record.role.get() == ROLE_CONSOLE)
        .copied()
}
