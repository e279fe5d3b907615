// SPDX-License-Identifier: Apache-2.0
//! Counts the lines of code that a class binary is trusted with.
//!
//! A file counts whole if the class binary has an instruction of the file, by the line table of its debug
//! information. So a file counts from the first function that a system can reach. A file with types and
//! constants alone does not count. Files of outside crates and of the compiler do not count either.

use crate::Lines;
use gimli::{AttributeValue, Dwarf, EndianSlice, RunTimeEndian, SectionId, Unit};
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Slice<'d> = EndianSlice<'d, RunTimeEndian>;

/// Returns the files of the workspace at `root` of which a class binary has instructions, each with its lines
/// of code.
///
/// # Errors
/// The bytes are no ELF file with debug information, or a file cannot be read.
pub fn trusted_files(bytes: &[u8], root: &Path) -> Result<BTreeMap<String, u64>, String> {
    let mut files = BTreeMap::new();
    for name in sources(bytes)? {
        let name = match Path::new(&name).strip_prefix(root) {
            Ok(inside) => inside.display().to_string(),
            Err(_) => name,
        };
        if name.starts_with('/') || !root.join(&name).is_file() {
            continue;
        }
        let text = std::fs::read_to_string(root.join(&name)).map_err(|error| format!("{name}: {error}"))?;
        files.insert(name, Lines::of(&text, false).code as u64);
    }
    if files.is_empty() {
        return Err("the class binary has no debug information with files of this workspace".into());
    }
    Ok(files)
}

/// Returns the lines of code of all files of which a class binary has instructions.
///
/// # Errors
/// As for [`trusted_files`].
pub fn trusted_lines(bytes: &[u8], root: &Path) -> Result<u64, String> {
    trusted_files(bytes, root).map(|files| files.values().sum())
}

/// Returns the names of the files of which a program has instructions.
fn sources(bytes: &[u8]) -> Result<BTreeSet<String>, String> {
    let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
    let endian = if file.is_little_endian() {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    };
    let load = |id: SectionId| -> Result<Cow<'_, [u8]>, String> {
        let Some(section) = file.section_by_name(id.name()) else {
            return Ok(Cow::Borrowed(&[]));
        };
        section.uncompressed_data().map_err(|error| error.to_string())
    };
    let sections = gimli::DwarfSections::load(load)?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
    let mut names = BTreeSet::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next().map_err(|error| error.to_string())? {
        let unit = dwarf.unit(header).map_err(|error| error.to_string())?;
        of_unit(&dwarf, &unit, &mut names).map_err(|error| error.to_string())?;
    }
    Ok(names)
}

/// Adds the files of one unit.
fn of_unit(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    names: &mut BTreeSet<String>,
) -> gimli::Result<()> {
    let Some(program) = unit.line_program.clone() else {
        return Ok(());
    };
    let mut seen = BTreeSet::new();
    let mut rows = program.rows();
    while let Some((_, row)) = rows.next_row()? {
        if !row.end_sequence() && row.line().is_some() {
            seen.insert(row.file_index());
        }
    }
    let header = rows.header();
    let text = |value: AttributeValue<Slice<'_>>| -> gimli::Result<String> {
        Ok(dwarf.attr_string(unit, value)?.to_string_lossy().into_owned())
    };
    let folder = unit.comp_dir.map(|folder| folder.to_string_lossy().into_owned());
    for index in seen {
        let Some(file) = header.file(index) else { continue };
        let mut path = Path::new(folder.as_deref().unwrap_or_default()).to_path_buf();
        if let Some(inner) = file.directory(header) {
            path.push(text(inner)?);
        }
        path.push(text(file.path_name())?);
        let plain: std::path::PathBuf = path.components().collect();
        names.insert(plain.display().to_string());
    }
    Ok(())
}
