// SPDX-License-Identifier: Apache-2.0
//! Finds a function or a constant of a class binary. The flashable file is an ELF file too, and holds it.

use object::read::elf::ElfFile32;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::path::Path;

type Elf<'d> = ElfFile32<'d, object::Endianness>;

/// Returns the offset in `flash` of the only function of `class_binary` whose symbol has `name` in it as a
/// whole part (as compilers mangle names: with its length in front). The class binary executes in place.
///
/// # Errors
/// There is none, or more than one.
pub fn offset_in(flash: &[u8], class_binary: &Path, name: &str) -> Result<usize, String> {
    let part = format!("{}{name}", name.len());
    // Bit 0 says that it is Thumb code.
    let address = address_of(class_binary, |kind, text| {
        kind == SymbolKind::Text && text.contains(&part)
    })? & !1;
    placed(flash, address)
}

/// Returns the offset in `flash` of the constant of `class_binary` whose symbol is `name`.
///
/// # Errors
/// There is none.
pub fn offset_of_constant(flash: &[u8], class_binary: &Path, name: &str) -> Result<usize, String> {
    placed(flash, address_of(class_binary, |_, text| text == name)?)
}

/// Returns the address of the only symbol of the class binary that `is_it` wants.
fn address_of(class_binary: &Path, is_it: impl Fn(SymbolKind, &str) -> bool) -> Result<u64, String> {
    let bytes =
        std::fs::read(class_binary).map_err(|error| format!("{}: {error}", class_binary.display()))?;
    let elf = Elf::parse(&*bytes).map_err(|error| format!("the class binary: {error}"))?;
    let mut found = elf
        .symbols()
        .filter(|symbol| symbol.name().is_ok_and(|text| is_it(symbol.kind(), text)));
    let (Some(symbol), None) = (found.next(), found.next()) else {
        return Err("the class binary has no such symbol, or several".to_owned());
    };
    Ok(symbol.address())
}

/// Returns the offset in `flash` of the byte at an address.
fn placed(flash: &[u8], address: u64) -> Result<usize, String> {
    let file = Elf::parse(flash).map_err(|error| format!("the flashable file: {error}"))?;
    let offset = file.segments().find_map(|segment| {
        let inside = address
            .checked_sub(segment.address())
            .filter(|inside| *inside < segment.size())?;
        usize::try_from(segment.file_range().0 + inside).ok()
    });
    offset.ok_or_else(|| format!("the address {address:#x} is not in the flashable file"))
}
