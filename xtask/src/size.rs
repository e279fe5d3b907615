// SPDX-License-Identifier: Apache-2.0
//! Measures the size of a class binary, and checks that the binary has no heap.

use crate::workspace::{Source, sources};
use crate::{Outcome, toolchain};
use bulkhead::build::artifacts::Workspace;
use bulkhead::ui::progress::Progress;
use bulkhead_bench::{Lines, Sizes};
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Symbols only a program with an allocator has.
const HEAP_SYMBOLS: &[&str] = &["__rust_alloc", "__rg_alloc", "malloc"];

/// Prints the sizes of `elf`, or of a class binary (that of microcontrollers if `is_small`), with so many of
/// its largest functions; a heap in it is a finding.
pub fn check(elf: Option<&Path>, is_small: bool, functions: Option<usize>) -> Outcome {
    let path = match elf {
        Some(path) => path.to_path_buf(),
        None => class_binary(is_small)?,
    };
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let file = object::File::parse(&*bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    let sizes = Sizes::of(&bytes)?;
    println!(
        "text {}  read-only data {}  data {}  bss {}",
        sizes.text, sizes.read_only, sizes.data, sizes.bss
    );
    if sizes.pool != (0, 0) {
        println!("RAM with four partitions {}", sizes.ram());
    }
    if let Some(count) = functions {
        print_functions(&file, count);
    }
    let has_heap =
        |symbol: &object::Symbol<'_, '_>| symbol.name().is_ok_and(|name| HEAP_SYMBOLS.contains(&name));
    Ok(file
        .symbols()
        .filter(has_heap)
        .map(|symbol| format!("heap symbol {}", symbol.name().unwrap_or("?")))
        .collect())
}

/// Builds a class binary, that of microcontrollers if `is_small`, and returns its path.
pub fn class_binary(is_small: bool) -> Result<PathBuf, String> {
    let workspace = Workspace::locate().map_err(|problem| problem.to_string())?;
    let class = toolchain::Class::with_tables(is_small).ok_or("no class has such tables")?;
    let name = class.binary();
    let built = workspace.build(core::slice::from_ref(&name), &Progress::new());
    built.map_err(|problem| problem.to_string())?;
    let linked = workspace.any_class_binary(&name);
    linked.map_err(|problem| problem.to_string())
}

/// Prints the code of each crate and the largest functions. Generic code counts for the crate that has its
/// source.
fn print_functions(file: &object::File<'_>, count: usize) {
    let mut functions: Vec<(u64, String)> = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() != 0)
        .map(|symbol| {
            let name = rustc_demangle::demangle(symbol.name().unwrap_or("?"));
            (symbol.size(), format!("{name:#}"))
        })
        .collect();
    functions.sort_by(|a, b| b.cmp(a));
    let mut crates: BTreeMap<&str, u64> = BTreeMap::new();
    for (size, name) in &functions {
        *crates.entry(crate_of(name)).or_default() += size;
    }
    let mut crates: Vec<_> = crates.into_iter().collect();
    crates.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    println!("{:>7}  crate", "code");
    for (name, size) in crates {
        println!("{size:>7}  {name}");
    }
    println!("{:>7}  function", "code");
    for (size, name) in functions.iter().take(count) {
        println!("{size:>7}  {name}");
    }
}

/// Returns the crate in front of the first `::` of a demangled name.
fn crate_of(name: &str) -> &str {
    let path = name.trim_start_matches(['<', '&', '*']);
    let path = path.strip_prefix("mut ").unwrap_or(path);
    match path.split_once("::") {
        Some((first, _)) if first.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => first,
        _ => "no crate",
    }
}

/// Prints the lines of code (neither blank nor comment) per crate.
pub fn lines() -> Outcome {
    let mut totals: BTreeMap<String, Lines> = BTreeMap::new();
    for Source { path, name, folder } in sources()? {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        let total = totals.entry(folder).or_default();
        *total = total.plus(Lines::of(&text, name.contains("/tests/")));
    }
    println!("{:>7} {:>7}  crate", "code", "tests");
    for (folder, Lines { code, tests }) in totals {
        println!("{code:>7} {tests:>7}  {folder}");
    }
    Ok(Vec::new())
}
