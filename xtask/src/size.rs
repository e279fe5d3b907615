// SPDX-License-Identifier: Apache-2.0
//! What a class binary weighs, and that it has no heap.

use crate::workspace::{output, packages, root, tracked};
use crate::{Outcome, toolchain};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, elf};
use std::collections::BTreeMap;
use std::path::Path;

/// Symbols only a program with an allocator has.
const HEAP_SYMBOLS: &[&str] = &["__rust_alloc", "__rg_alloc", "malloc"];

#[derive(Debug, Default, PartialEq, Eq)]
struct Sizes {
    text: u64,
    read_only: u64,
    data: u64,
    bss: u64,
}

/// Prints the sizes of `elf`, or of the class binary; a heap in it is a finding.
pub fn check(elf: Option<&Path>) -> Outcome {
    let path = match elf {
        Some(path) => path.to_path_buf(),
        None => {
            let mut command = toolchain::target_command("build")?;
            output(command.args(["--profile", "firmware", "-p", toolchain::CLASS_BINARY]))?;
            toolchain::target_output(toolchain::CLASS_BINARY)
        }
    };
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let file = object::File::parse(&*bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    let sizes = measure(&file);
    println!(
        "text {}  read-only data {}  data {}  bss {}",
        sizes.text, sizes.read_only, sizes.data, sizes.bss
    );
    let has_heap =
        |symbol: &object::Symbol<'_, '_>| symbol.name().is_ok_and(|name| HEAP_SYMBOLS.contains(&name));
    Ok(file
        .symbols()
        .filter(has_heap)
        .map(|symbol| format!("heap symbol {}", symbol.name().unwrap_or("?")))
        .collect())
}

fn measure(file: &object::File<'_>) -> Sizes {
    let mut sizes = Sizes::default();
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
    sizes
}

/// Prints the lines of code (neither blank nor comment) per crate.
pub fn lines() -> Outcome {
    let mut folders: Vec<String> = packages()?
        .iter()
        .map(crate::workspace::Package::folder)
        .collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
    let mut totals: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for file in tracked(&[".rs"])? {
        let name = file
            .strip_prefix(root())
            .unwrap_or(&file)
            .to_string_lossy()
            .into_owned();
        let Some(folder) = folders
            .iter()
            .find(|folder| name.starts_with(&format!("{folder}/")))
        else {
            continue;
        };
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{name}: {error}"))?;
        let (code, tests) = code_lines(&text, name.contains("/tests/"));
        let total = totals.entry(folder).or_default();
        total.0 += code;
        total.1 += tests;
    }
    println!("{:>7} {:>7}  crate", "code", "tests");
    for (folder, (code, tests)) in totals {
        println!("{code:>7} {tests:>7}  {folder}");
    }
    Ok(Vec::new())
}

/// Lines of code, and lines of test code; in-file tests are by our convention the last item.
fn code_lines(text: &str, is_test_file: bool) -> (usize, usize) {
    let mut in_tests = is_test_file;
    let (mut code, mut tests) = (0, 0);
    for line in text.lines().map(str::trim) {
        in_tests |= line == "#[cfg(test)]";
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        *if in_tests { &mut tests } else { &mut code } += 1;
    }
    (code, tests)
}

#[cfg(test)]
mod tests {
    #[test]
    fn comments_and_tests_are_told_from_code() {
        let text = "// a\n\nfn b() {}\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(super::code_lines(text, false), (1, 3));
        assert_eq!(super::code_lines(text, true), (0, 4));
    }
}
