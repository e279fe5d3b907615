// SPDX-License-Identifier: Apache-2.0
//! Finds a function of a class binary that executes in place. The function is in the flashable file, which is
//! an ELF file too.

use object::read::elf::ElfFile32;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::path::Path;

type Elf<'d> = ElfFile32<'d, object::Endianness>;

/// Returns the offset in `flash` of the only function of `class_binary` whose symbol has `name` in it as a
/// whole part (as compilers mangle names: with its length in front).
///
/// # Errors
/// There is none, or more than one.
pub fn offset_in(flash: &[u8], class_binary: &Path, name: &str) -> Result<usize, String> {
    let bytes =
        std::fs::read(class_binary).map_err(|error| format!("{}: {error}", class_binary.display()))?;
    let elf = Elf::parse(&*bytes).map_err(|error| format!("the class binary: {error}"))?;
    let part = format!("{}{name}", name.len());
    let mut found = elf.symbols().filter(|symbol| {
        symbol.kind() == SymbolKind::Text && symbol.name().is_ok_and(|text| text.contains(&part))
    });
    let (Some(symbol), None) = (found.next(), found.next()) else {
        return Err(format!("the class binary has no function `{name}`, or several"));
    };
    // Bit 0 says that it is Thumb code.
    let address = symbol.address() & !1;
    let placed = Elf::parse(flash).map_err(|error| format!("the flashable file: {error}"))?;
    let offset = placed.segments().find_map(|segment| {
        let inside = address
            .checked_sub(segment.address())
            .filter(|inside| *inside < segment.size())?;
        usize::try_from(segment.file_range().0 + inside).ok()
    });
    offset.ok_or_else(|| format!("`{name}` is not in the flashable file"))
}
