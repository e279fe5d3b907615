// SPDX-License-Identifier: Apache-2.0
//! The PE file that starts a system from UEFI: the loader of `loader/uefi`, and after its last section one
//! more with the [plan](bulkhead_loader_plan) of the system.
//!
//! The file is whole: the firmware checks its signature once, where Secure Boot is on, and the loader opens
//! no other file.

use super::start::Uefi;
use crate::problem::Problem;
use bulkhead_loader_plan::{Range, write};
use bulkhead_manifest::{Board, System};
use object::LittleEndian as LE;
use object::endian::{U16, U32};
use object::pe::{IMAGE_SCN_CNT_INITIALIZED_DATA, IMAGE_SCN_MEM_READ, ImageNtHeaders64, ImageSectionHeader};
use object::pod;
use object::read::pe::ImageNtHeaders;

/// The name of the section with the plan.
const SECTION: [u8; 8] = *b".system\0";
/// The section of the loader with the record that says where the plan is.
const RECORD: [u8; 8] = *b".plan\0\0\0";
/// The place of the offset of the PE header (Microsoft PE Format, "MS-DOS Stub").
const OFFSET: usize = 0x3C;

/// Returns the PE file of a system with this flashable file.
///
/// # Errors
/// The loader or the flashable file is not as it should be.
pub fn make(loader: &[u8], uefi: &Uefi, flash: &[u8], system: &System) -> Result<Vec<u8>, Problem> {
    let start = (uefi.start)(flash, system.board())?;
    let plan = write(start.entry, &start.pieces, &used(system));
    with_plan(loader, &plan).ok_or_else(|| Problem::new("the loader for UEFI has no room for a system"))
}

/// Returns the RAM that a system uses, as far as it has an owner.
fn used(system: &System) -> Vec<Range> {
    let is_ram = |board: &Board, base: u64| {
        let mut ram = board.ram.iter();
        ram.any(|ram| ram.base <= base && base - ram.base < ram.size)
    };
    let rows = system.memory_map().into_iter();
    let rows = rows.filter(|row| is_ram(system.board(), row.host));
    rows.map(|row| Range {
        base: row.host,
        length: row.size,
    })
    .collect()
}

/// Adds the section with the plan to the loader, if its headers have room for one more section.
fn with_plan(loader: &[u8], plan: &[u8]) -> Option<Vec<u8>> {
    let nt = u32::from_le_bytes(*loader.get(OFFSET..)?.first_chunk()?) as usize;
    let mut behind = nt as u64;
    let (headers, _) = ImageNtHeaders64::parse(loader, &mut behind).ok()?;
    let optional = headers.optional_header;
    let sections = headers.sections(loader, behind).ok()?;
    let record = sections.iter().find(|section| section.name == RECORD)?;
    let ends = sections.iter().map(|section| {
        let length = section.virtual_size.get(LE).max(section.size_of_raw_data.get(LE));
        section.virtual_address.get(LE).saturating_add(length)
    });
    let (in_memory, in_file) = (
        optional.section_alignment.get(LE),
        optional.file_alignment.get(LE),
    );
    let address = ends.max()?.checked_next_multiple_of(in_memory)?;
    let length = u32::try_from(plan.len()).ok()?;
    let raw = u32::try_from(loader.len())
        .ok()?
        .checked_next_multiple_of(in_file)?;
    let raw_length = length.checked_next_multiple_of(in_file)?;
    let section = ImageSectionHeader {
        name: SECTION,
        virtual_size: U32::new(LE, length),
        virtual_address: U32::new(LE, address),
        size_of_raw_data: U32::new(LE, raw_length),
        pointer_to_raw_data: U32::new(LE, raw),
        pointer_to_relocations: U32::new(LE, 0),
        pointer_to_linenumbers: U32::new(LE, 0),
        number_of_relocations: U16::new(LE, 0),
        number_of_linenumbers: U16::new(LE, 0),
        characteristics: U32::new(LE, IMAGE_SCN_CNT_INITIALIZED_DATA | IMAGE_SCN_MEM_READ),
    };
    let at = behind as usize + sections.len() * size_of::<ImageSectionHeader>();
    if at + size_of::<ImageSectionHeader>() > optional.size_of_headers.get(LE) as usize {
        return None;
    }
    let distance = u64::from(address).wrapping_sub(record.virtual_address.get(LE).into());
    let record = record.pointer_to_raw_data.get(LE) as usize;

    let mut file = loader.to_vec();
    put(&mut file, at, pod::bytes_of(&section))?;
    put(&mut file, record, &distance.to_le_bytes())?;
    put(&mut file, record + 8, &u64::from(length).to_le_bytes())?;
    let (headers, _) = pod::from_bytes_mut::<ImageNtHeaders64>(file.get_mut(nt..)?).ok()?;
    let count = u16::try_from(sections.len() + 1).ok()?;
    headers.file_header.number_of_sections.set(LE, count);
    let optional = &mut headers.optional_header;
    let end = address.checked_add(length)?.checked_next_multiple_of(in_memory)?;
    optional.size_of_image.set(LE, end);
    let data = optional.size_of_initialized_data.get(LE);
    optional
        .size_of_initialized_data
        .set(LE, data.checked_add(raw_length)?);
    file.resize(raw as usize, 0);
    file.extend_from_slice(plan);
    file.resize(raw as usize + raw_length as usize, 0);
    Some(file)
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    file.get_mut(at..at.checked_add(bytes.len())?)?
        .copy_from_slice(bytes);
    Some(())
}
