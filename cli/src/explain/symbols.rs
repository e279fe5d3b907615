// SPDX-License-Identifier: Apache-2.0
//! Function and source line of an address, from the symbols of a partition's ELF file.

use addr2line::Loader;
use std::path::{Path, PathBuf};

/// Most functions named for one address.
const FRAMES: usize = 2;

/// The symbols of one file, read when they are first asked for.
pub enum Symbols {
    /// Not read yet.
    File(PathBuf),
    /// Read.
    Loaded(Box<Loader>),
    /// There are no symbols: a raw binary, a kernel without symbols, or no file.
    Nothing,
}

impl Symbols {
    /// Returns the symbols of a file, if there is one.
    pub fn of(file: Option<PathBuf>) -> Self {
        file.map_or(Self::Nothing, Self::File)
    }

    /// Returns `function (file:line)`, and the functions it was inlined into, as far as the symbols tell.
    pub fn find(&mut self, address: u64) -> Option<String> {
        if let Self::File(path) = self {
            *self = Loader::new(&*path).map_or(Self::Nothing, |loader| Self::Loaded(Box::new(loader)));
        }
        let Self::Loaded(loader) = self else {
            return None;
        };
        // The library asks for the successor of the address, and the last address has none.
        address.checked_add(1)?;
        let mut places = frames(loader, address);
        if places.is_empty() {
            // Code in assembly has no frame, only a symbol.
            places.push(loader.find_symbol(address)?.to_owned());
        }
        Some(format!("{address:#x}: {}", places.join(", in ")))
    }
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
    fn our_own_code_is_found_and_nonsense_is_not() {
        let own = std::env::current_exe().ok();
        let mut symbols = Symbols::of(own);
        assert_eq!(symbols.find(u64::MAX), None);
        assert_eq!(symbols.find(1 << 60), None);
        assert_eq!(Symbols::of(None).find(0x1000), None);
        assert_eq!(Symbols::of(Some("no such file".into())).find(0x1000), None);
    }
}
