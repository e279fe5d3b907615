// SPDX-License-Identifier: Apache-2.0
//! The hypervisor's stretches between the instructions of two partitions, in the emulator's log.

use crate::runs::launch;
use crate::steps::follow;
use bulkhead::build::prepare::Prepared;
use bulkhead::emulator::launch::TemporaryFile;
use bulkhead::problem::Problem;
use bulkhead_manifest::board::Emulator;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::ops::Range;
use std::path::Path;

/// A part of the name of the function that takes nearly all of the boot, and is not logged.
const DIGEST: &str = "compress256";

/// A partition whose instructions are seen.
#[derive(Debug, Clone)]
pub(super) struct Side {
    /// The addresses of its code.
    code: Range<u32>,
    /// The functions by which it separates its operations, and ends.
    marks: Option<[u32; 2]>,
}

impl Side {
    /// Returns the partition with the program in this ELF file.
    pub(super) fn of(program: &Path) -> Result<Self, Problem> {
        let bytes = std::fs::read(program).map_err(Problem::io(program.display()))?;
        let file = object::File::parse(&*bytes).map_err(|error| Problem::new(error.to_string()))?;
        let code = file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text);
        let code = code.map(|section| section.address() as u32..(section.address() + section.size()) as u32);
        let code = code.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end));
        let symbol = |name| {
            let found = file.symbols().find(|symbol| symbol.name() == Ok(name));
            found.map(|symbol| symbol.address() as u32 & !1)
        };
        Ok(Self {
            code: code.ok_or_else(|| Problem::new(format!("{}: no code", program.display())))?,
            marks: symbol("bench_mark")
                .zip(symbol("bench_end"))
                .map(<[u32; 2]>::from),
        })
    }
}

/// Instructions of the hypervisor, and the sides before and after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) length: u64,
}

/// The stretches of a run. Each part but the first begins with a mark of the first side.
#[derive(Debug, Default)]
struct Seen {
    last: Option<usize>,
    length: u64,
    parts: Vec<Vec<Stretch>>,
    switches: usize,
    is_over: bool,
}

impl Seen {
    fn take(&mut self, address: u32, sides: &[Side]) {
        let Some(to) = sides.iter().position(|side| side.code.contains(&address)) else {
            self.length += 1;
            return;
        };
        let length = std::mem::take(&mut self.length);
        if let Some(from) = self.last.replace(to)
            && length != 0
        {
            if let Some(part) = self.parts.last_mut() {
                part.push(Stretch { from, to, length });
            }
            self.switches += usize::from(from != to);
        }
        if to != 0 {
            return;
        }
        match sides.first().and_then(|side| side.marks) {
            Some([mark, _]) if mark == address => self.parts.push(Vec::new()),
            Some([_, end]) => self.is_over |= end == address,
            None => {}
        }
    }
}

/// Returns the stretches of a system's run up to its end, or until `count` of them go from one side to the
/// other. The first part is before the first mark.
pub(super) fn of_run(
    emulator: &Emulator,
    system: &Prepared,
    sides: &[Side],
    count: usize,
) -> Result<Vec<Vec<Stretch>>, Problem> {
    let flash = TemporaryFile::write("bin", system.flash())?;
    let mut command = launch().command(emulator, flash.path(), 1, None);
    if let Some(digest) = symbol_range(system.class_binary(), DIGEST)? {
        command.extend(without(&digest));
    }
    let mut seen = Seen {
        parts: vec![Vec::new()],
        ..Seen::default()
    };
    follow(&command, |address| {
        seen.take(address, sides);
        seen.is_over || seen.switches >= count
    })?;
    Ok(seen.parts)
}

/// Returns the arguments of an emulator that does not log these addresses.
fn without(addresses: &Range<u32>) -> [String; 2] {
    let Range { start, end } = addresses;
    [
        "-dfilter".to_owned(),
        format!("0x0..{:#x},{end:#x}..0xffffffff", start.saturating_sub(1)),
    ]
}

/// Returns the addresses of the function whose name has this part.
fn symbol_range(program: &Path, name: &str) -> Result<Option<Range<u32>>, Problem> {
    let bytes = std::fs::read(program).map_err(Problem::io(program.display()))?;
    let file = object::File::parse(&*bytes).map_err(|error| Problem::new(error.to_string()))?;
    let found = file
        .symbols()
        .find(|symbol| symbol.name().is_ok_and(|own| own.contains(name)) && symbol.size() != 0);
    Ok(found.map(|symbol| {
        let start = symbol.address() as u32 & !1;
        start..start + symbol.size() as u32
    }))
}

#[cfg(test)]
mod tests {
    use super::{Seen, Side, Stretch};

    #[test]
    fn stretches_are_between_sides_and_parts_between_marks() {
        let side = |start: u32, marks| Side {
            code: start..start + 0x10,
            marks,
        };
        let sides = [side(0x100, Some([0x104, 0x108])), side(0x200, None)];
        let mut seen = Seen {
            parts: vec![Vec::new()],
            ..Seen::default()
        };
        for address in [
            0x900, 0x100, 0x102, 0x900, 0x902, 0x200, 0x900, 0x104, 0x106, 0x900, 0x106, 0x108,
        ] {
            seen.take(address, &sides);
        }
        let stretch = |from, to, length| Stretch { from, to, length };
        let parts = [vec![stretch(0, 1, 2), stretch(1, 0, 1)], vec![stretch(0, 0, 1)]];
        assert_eq!(seen.parts, parts);
        assert!(seen.is_over && seen.switches == 2);
    }
}
