// SPDX-License-Identifier: Apache-2.0
//! Function and source line of an address, from the symbols of a partition's ELF file.

use addr2line::Loader;
use object::{Architecture, Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Most functions named for one address.
const FRAMES: usize = 2;
/// Bytes after a symbol without a size, a label in assembly, that still are said to be its.
const NEAR: u64 = 0x100;

/// The symbols of one file.
pub struct Symbols {
    contents: Contents,
    /// The distance by which the program was moved from the place for which it is linked.
    moved_by: u32,
}

/// The knowledge of a file. The file is read when it is first asked for.
enum Contents {
    /// Not read yet.
    File(PathBuf),
    /// Read.
    Loaded(Box<Loaded>),
    /// There are no symbols: a raw binary, a kernel without symbols, or no file.
    Nothing,
}

/// The contents of a program's file.
pub struct Loaded {
    debug: Loader,
    /// The symbols of code by their addresses.
    labels: Vec<Label>,
    /// The stretches of A32 and T32.
    stretches: Vec<Stretch>,
    /// The memory that the program is loaded to.
    segments: Vec<Range<u64>>,
}

/// The first address of a stretch of 32-bit Arm code, and whether it is T32.
type Stretch = (u64, bool);

/// A symbol of code.
pub struct Label {
    address: u64,
    /// 0 if the file does not say.
    size: u64,
    name: String,
}

impl Label {
    /// Returns its name if `address`, which is not before it, is inside of it. Without a size the distance is
    /// said as well.
    fn holds(&self, address: u64) -> Option<String> {
        let distance = address.checked_sub(self.address)?;
        match self.size {
            0 if distance == 0 => Some(self.name.clone()),
            0 if distance < NEAR => Some(format!("{} + {distance:#x}", self.name)),
            size if distance < size => Some(self.name.clone()),
            _ => None,
        }
    }
}

impl Symbols {
    /// Returns the symbols of a file, if there is one.
    pub fn of(file: Option<PathBuf>) -> Self {
        Self {
            contents: file.map_or(Contents::Nothing, Contents::File),
            moved_by: 0,
        }
    }

    /// Returns the symbols of a program that was moved by this distance.
    #[must_use]
    pub fn moved_by(self, moved_by: u32) -> Self {
        Self { moved_by, ..self }
    }

    /// Returns the address in the file of an address of the program. Only programs of 32 bits are moved.
    fn linked(&self, address: u64) -> u64 {
        match self.moved_by {
            0 => address,
            by => u64::from((address as u32).wrapping_sub(by)),
        }
    }

    /// Returns `function (file:line)`, and the functions it was inlined into, as far as the symbols tell.
    pub fn find(&mut self, address: u64) -> Option<String> {
        let linked = self.linked(address);
        self.load();
        let Contents::Loaded(loaded) = &self.contents else {
            return None;
        };
        // A linker leaves the debug information of functions that it has left out, at address 0 (the
        // segments of a file that is not linked are none).
        let is_loaded = { loaded.segments.iter() }.any(|segment| segment.contains(&linked));
        if !is_loaded && !loaded.segments.is_empty() {
            return None;
        }
        // The library asks for the successor of the address, and the last address has none.
        linked.checked_add(1)?;
        let mut places = frames(&loaded.debug, linked);
        if places.is_empty() {
            // Code in assembly has no frame, only a symbol.
            places.push(label_at(&loaded.labels, linked)?);
        }
        Some(format!("{address:#x}: {}", places.join(", in ")))
    }

    /// Tells whether the code at an address is T32, by the symbols that assemblers write for that.
    pub fn is_thumb(&mut self, address: u64) -> bool {
        let address = self.linked(address);
        self.load();
        let Contents::Loaded(loaded) = &self.contents else {
            return false;
        };
        let behind = loaded.stretches.partition_point(|(first, _)| *first <= address);
        let before = behind.checked_sub(1).and_then(|last| loaded.stretches.get(last));
        before.is_some_and(|(_, is_thumb)| *is_thumb)
    }

    /// Reads the file, if that has not been done yet.
    fn load(&mut self) {
        if let Contents::File(path) = &self.contents {
            self.contents = Loader::new(path).map_or(Contents::Nothing, |debug| {
                Contents::Loaded(Box::new(Loaded {
                    debug,
                    labels: labels(path).unwrap_or_default(),
                    stretches: stretches(path).unwrap_or_default(),
                    segments: segments(path).unwrap_or_default(),
                }))
            });
        }
    }
}

/// Reads where a file is loaded to.
fn segments(path: &Path) -> Option<Vec<Range<u64>>> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let segments = file.segments();
    let range = |segment: object::Segment<'_, '_>| {
        let start = segment.address();
        start..start.saturating_add(segment.size())
    };
    Some(segments.map(range).collect())
}

/// Reads the mapping symbols of code of a file (Arm IHI 0044, 5.5.5), in ascending order.
fn stretches(path: &Path) -> Option<Vec<Stretch>> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let stretch = |symbol: object::Symbol<'_, '_>| match symbol.name().ok()?.get(..2)? {
        "$t" => Some((symbol.address(), true)),
        "$a" => Some((symbol.address(), false)),
        _ => None,
    };
    let mut stretches: Vec<Stretch> = file.symbols().filter_map(stretch).collect();
    stretches.sort_unstable();
    Some(stretches)
}

/// Reads the symbols of code of a file, in ascending order.
fn labels(path: &Path) -> Option<Vec<Label>> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    // The lowest bit of the value of an Arm function says that its code is Thumb.
    let mode = u64::from(file.architecture() == Architecture::Arm);
    let mut labels: Vec<Label> = file
        .symbols()
        .filter(|symbol| {
            symbol.is_definition()
                || symbol.kind() == SymbolKind::Label
                || symbol.kind() == SymbolKind::Unknown
        })
        .filter(|symbol| symbol.kind() != SymbolKind::Data && symbol.section_index().is_some())
        .filter_map(|symbol| {
            let name = symbol.name().ok()?;
            // Mapping symbols (Arm IHI 0044, 5.5.5) are no names.
            let is_name = !name.is_empty() && !name.starts_with('$');
            is_name.then(|| Label {
                address: symbol.address() & !mode,
                size: symbol.size(),
                name: addr2line::demangle_auto(name.into(), None).into_owned(),
            })
        })
        .collect();
    labels.sort_by_key(|label| (label.address, label.size));
    Some(labels)
}

/// Returns the symbol that an address belongs to: of the last ones before it, the first that holds it.
fn label_at(labels: &[Label], address: u64) -> Option<String> {
    /// Symbols that may begin inside of another one.
    const LOOKED_AT: usize = 16;
    let behind = labels.partition_point(|label| label.address <= address);
    let before = labels.get(..behind)?.iter().rev().take(LOOKED_AT);
    before
        .clone()
        .find_map(|label| (label.size != 0).then(|| label.holds(address)).flatten())
        .or_else(|| before.take(1).find_map(|label| label.holds(address)))
}

/// Returns the functions to which an address belongs by inlining, the innermost first.
fn frames(loader: &Loader, address: u64) -> Vec<String> {
    let mut places = Vec::new();
    let Ok(mut frames) = loader.find_frames(address) else {
        return places;
    };
    while places.len() < FRAMES
        && let Ok(Some(frame)) = frames.next()
    {
        let Some(Ok(name)) = frame.function.as_ref().map(addr2line::FunctionName::demangle) else {
            break;
        };
        let line = frame
            .location
            .and_then(|location| Some((location.file?.to_owned(), location.line?)));
        places.push(match line {
            Some((file, line)) => format!("{name} ({}:{line})", shorter(&file)),
            None => name.into_owned(),
        });
    }
    places
}

/// Returns the path relative to the current folder, if the path is below that folder.
fn shorter(path: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    Path::new(path)
        .strip_prefix(here)
        .map_or(path.to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_is_named_inside_of_its_size_or_near_it_alone() {
        let label = |address, size, name: &str| Label {
            address,
            size,
            name: name.into(),
        };
        let labels = [
            label(0x1000, 0x20, "first"),
            label(0x1020, 0, "second"),
            label(0x2000, 0x100, "whole"),
            label(0x2010, 0, "inside"),
        ];
        let named = |address| label_at(&labels, address);
        assert_eq!(named(0xFFF), None);
        assert_eq!(named(0x1000).as_deref(), Some("first"));
        assert_eq!(named(0x101F).as_deref(), Some("first"));
        assert_eq!(named(0x1020).as_deref(), Some("second"));
        assert_eq!(named(0x111F).as_deref(), Some("second + 0xff"));
        assert_eq!(named(0x1120), None, "too far from a label");
        assert_eq!(named(0x2014).as_deref(), Some("whole"));
        assert_eq!(named(0x2110), None, "behind the last function");
        assert_eq!(named(u64::MAX), None);
    }

    #[test]
    fn our_own_code_is_found_and_nonsense_is_not() {
        let own = std::env::current_exe().ok();
        let mut symbols = Symbols::of(own);
        assert_eq!(symbols.find(u64::MAX), None);
        assert_eq!(symbols.find(1 << 60), None);
        assert_eq!(Symbols::of(None).find(0x1000), None);
        assert_eq!(Symbols::of(Some("no such file".into())).find(0x1000), None);
    }
}
