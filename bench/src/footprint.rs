// SPDX-License-Identifier: Apache-2.0
//! Sizes of a class binary, and the number of lines of code in it.

use crate::page::Page;
use bulkhead::problem::Problem;
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, elf};
use std::path::{Path, PathBuf};

/// Bytes of a program by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Instructions.
    pub text: u64,
    /// Read-only data.
    pub read_only: u64,
    /// Initialised data.
    pub data: u64,
    /// Data that starts as zero, stacks included.
    pub bss: u64,
    /// Further memory, from a pool that has no section of its own: bytes of each interrupt line, and of each
    /// partition.
    pub pool: (u64, u64),
}

/// The number of partitions in the figure of RAM.
const PARTITIONS: u64 = 4;
/// Lines of the interrupt controller in the figure of RAM: as many as the MPS2 boards have.
const LINES: u64 = 32;

impl Sizes {
    /// Returns the sizes of an ELF file.
    ///
    /// # Errors
    /// The bytes are no ELF file.
    pub fn of(bytes: &[u8]) -> Result<Self, String> {
        let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
        let mut sizes = Self::default();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
                continue;
            };
            let has = |flag: elf::SectionFlags| sh_flags.0 & flag.0 != 0;
            if !has(elf::SHF_ALLOC) {
                continue;
            }
            let total = if has(elf::SHF_EXECINSTR) {
                &mut sizes.text
            } else if section.kind() == object::SectionKind::UninitializedData {
                &mut sizes.bss
            } else if has(elf::SHF_WRITE) {
                &mut sizes.data
            } else {
                &mut sizes.read_only
            };
            *total += section.size();
        }
        let of_pool = |name| {
            file.symbols()
                .find(|symbol| symbol.name() == Ok(name))
                .map_or(0, |symbol| symbol.address())
        };
        sizes.pool = (of_pool("__pool_line"), of_pool("__pool_partition"));
        Ok(sizes)
    }

    /// Returns the RAM with four partitions and 32 interrupt lines, the stack included.
    #[must_use]
    pub const fn ram(&self) -> u64 {
        self.ram_of(PARTITIONS)
    }

    /// Returns the RAM with so many partitions and 32 interrupt lines, the stack included.
    #[must_use]
    pub const fn ram_of(&self, partitions: u64) -> u64 {
        let (line, partition) = self.pool;
        self.data + self.bss + LINES * line + partitions * partition
    }
}

/// Lines of a crate, neither blank nor comment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lines {
    /// Code.
    pub code: usize,
    /// Tests.
    pub tests: usize,
}

impl Lines {
    /// Counts the lines of a file. By our convention the tests within a file are its last item.
    #[must_use]
    pub fn of(text: &str, is_test_file: bool) -> Self {
        let mut in_tests = is_test_file;
        let mut lines = Self::default();
        for line in text.lines().map(str::trim) {
            in_tests |= line == "#[cfg(test)]";
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            *if in_tests {
                &mut lines.tests
            } else {
                &mut lines.code
            } += 1;
        }
        lines
    }

    /// Returns the sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            code: self.code + other.code,
            tests: self.tests + other.tests,
        }
    }
}

/// Sizes and lines of a class binary.
#[derive(Debug, Clone, Default)]
pub struct Footprint {
    /// Sizes.
    pub sizes: Sizes,
    /// Lines per crate, by its folder.
    pub lines: Vec<(&'static str, Lines)>,
    /// The same of the device models, which are no part of the class binary.
    pub models: Vec<(&'static str, Lines)>,
}

impl Footprint {
    /// Looks at the class binary, and at the sources of the `crates` and `models` of a page, folders below
    /// `root`.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn measure(class_binary: &Path, root: &Path, page: &Page) -> Result<Self, Problem> {
        let bytes = std::fs::read(class_binary).map_err(Problem::io(class_binary.display()))?;
        let sizes =
            Sizes::of(&bytes).map_err(|why| Problem::new(format!("{}: {why}", class_binary.display())))?;
        Ok(Self {
            sizes,
            lines: lines(root, page.crates)?,
            models: lines(root, page.models)?,
        })
    }
}

/// Returns the lines of crates, each with its folder below `root`.
fn lines(root: &Path, crates: &[&'static str]) -> Result<Vec<(&'static str, Lines)>, Problem> {
    let mut lines = Vec::new();
    for folder in crates {
        let mut total = Lines::default();
        for file in sources(&root.join(folder).join("src"))? {
            let text = std::fs::read_to_string(&file).map_err(Problem::io(file.display()))?;
            let is_test = file.file_name().is_some_and(|name| name == "tests.rs");
            total = total.plus(Lines::of(&text, is_test));
        }
        lines.push((*folder, total));
    }
    Ok(lines)
}

/// Returns all Rust files below a folder. The depth is bounded by the depth of our own tree.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(Problem::io(folder.display()))? {
            let path = entry.map_err(Problem::io(folder.display()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_tests_are_told_from_code() {
        let text = "// a\n\nfn b() {}\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(Lines::of(text, false), Lines { code: 1, tests: 3 });
        assert_eq!(Lines::of(text, true), Lines { code: 0, tests: 4 });
    }

    #[test]
    fn what_is_no_program_has_no_size() {
        assert!(Sizes::of(b"no ELF").is_err());
    }
}
