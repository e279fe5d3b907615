// SPDX-License-Identifier: Apache-2.0
//! 32-bit little-endian ELF files (System V ABI, chapters 4 and 5). They are read as plainly as possible, by
//! the offsets of their fields.

const LOAD: u32 = 1;
const NO_BITS: u32 = 8;
const SYMBOLS: u32 = 2;
const ALLOCATED: u32 = 2;
const EXECUTABLE: u32 = 4;

/// Returns the word at `at`.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

/// A file.
pub struct Elf<'a>(pub &'a [u8]);

/// A loadable segment with contents.
pub struct Segment {
    pub offset: u32,
    pub paddr: u32,
    pub size: u32,
}

/// A section.
struct Section {
    index: usize,
    kind: u32,
    flags: u32,
    address: u32,
    offset: u32,
    size: u32,
    link: u32,
}

impl Section {
    fn is_loaded(&self) -> bool {
        self.flags & ALLOCATED != 0 && self.kind != NO_BITS
    }

    fn holds(&self, offset: u32) -> bool {
        self.is_loaded() && (self.offset..self.offset.saturating_add(self.size)).contains(&offset)
    }
}

impl Elf<'_> {
    /// Returns the halfword at a file offset.
    pub fn half(&self, offset: u32) -> Option<u16> {
        let pair = self.0.get(offset as usize..offset as usize + 2)?;
        Some(u16::from_le_bytes([pair[0], pair[1]]))
    }

    fn field(&self, table: usize, index: usize, size: usize, at: usize) -> u32 {
        word(self.0, table + index * size + at).unwrap_or(0)
    }

    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        let table = word(self.0, 28).unwrap_or(0) as usize;
        let count = usize::from(self.half(44).unwrap_or(0));
        let field = move |index, at| self.field(table, index, 32, at);
        (0..count)
            .filter(move |index| field(*index, 0) == LOAD && field(*index, 20) > 0 && field(*index, 16) > 0)
            .map(move |index| Segment {
                offset: field(index, 4),
                paddr: field(index, 12),
                size: field(index, 16),
            })
    }

    fn sections(&self) -> impl Iterator<Item = Section> + '_ {
        let table = word(self.0, 32).unwrap_or(0) as usize;
        let count = if table == 0 {
            0
        } else {
            usize::from(self.half(48).unwrap_or(0))
        };
        let field = move |index, at| self.field(table, index, 40, at);
        (0..count).map(move |index| Section {
            index,
            kind: field(index, 4),
            flags: field(index, 8),
            address: field(index, 12),
            offset: field(index, 16),
            size: field(index, 20),
            link: field(index, 24),
        })
    }

    /// Returns where the contents of a segment begin, from its start. If the segment begins with the file's
    /// own headers, its contents begin at its first section.
    pub fn first_contents(&self, segment: &Segment) -> u32 {
        if segment.offset != 0 {
            return 0;
        }
        let inside = self
            .sections()
            .filter(|section| section.is_loaded() && section.offset < segment.size);
        inside.map(|section| section.offset).min().unwrap_or(0)
    }

    /// Tells whether the byte at a file offset is T32 code, by the mapping symbols of the section that holds
    /// it.
    pub fn is_code(&self, offset: u32) -> bool {
        let is_code = |section: &Section| {
            section.flags & EXECUTABLE != 0
                || self
                    .mapping(section.index)
                    .iter()
                    .any(|(_, letter)| *letter == b't')
        };
        let Some(section) = self
            .sections()
            .find(|section| section.holds(offset) && is_code(section))
        else {
            return false;
        };
        let place = section.address.wrapping_add(offset - section.offset);
        let last = self
            .mapping(section.index)
            .into_iter()
            .filter(|(address, _)| *address <= place);
        last.max_by_key(|(address, _)| *address)
            .is_some_and(|(_, kind)| kind == b't')
    }

    /// Returns the mapping symbols of a section in the order of the file: address and letter.
    fn mapping(&self, section: usize) -> Vec<(u32, u8)> {
        let Some(table) = self.sections().find(|section| section.kind == SYMBOLS) else {
            return Vec::new();
        };
        let names = self
            .sections()
            .nth(table.link as usize)
            .map_or(0, |names| names.offset as usize);
        let symbols = (0..table.size as usize / 16).map(|index| table.offset as usize + 16 * index);
        let own = symbols.filter(|at| usize::from(self.half(*at as u32 + 14).unwrap_or(0)) == section);
        own.filter_map(|at| {
            let name = self.0.get(names + word(self.0, at)? as usize..)?;
            let is_mapping = name.first() == Some(&b'$') && matches!(name.get(2), Some(0 | b'.'));
            let letter = *name.get(1)?;
            (is_mapping && b"tda".contains(&letter)).then_some((word(self.0, at + 4)?, letter))
        })
        .collect()
    }
}
