// SPDX-License-Identifier: Apache-2.0
//! Measures the size of a class binary, and checks that the binary has no heap.

use crate::workspace::{Source, root, sources};
use crate::{Outcome, parts, toolchain};
use bulkhead::build::artifacts::{Workspace, class_binaries};
use bulkhead::ui::progress::Progress;
use bulkhead_bench::{Lines, Sizes, trusted_lines};
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Functions that only a program with an allocator has, as symbols name them: the compiler's own come with
/// the name of a crate around them (`_RNvCs..._7___rustc12___rust_alloc`).
const HEAP_FUNCTIONS: &[&str] = &["__rust_alloc", "__rdl_alloc", "__rg_alloc"];

/// Prints the sizes of `elf`, or of a class binary (the microcontrollers' if `is_small`), with so many of
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
        println!("trusted lines {}", trusted_lines(&bytes, &root())?);
    }
    if file.symbols().next().is_none() {
        return Ok(vec!["there are no symbols to look at".into()]);
    }
    Ok(heap_symbols(&file))
}

/// Prints the sizes of the class binaries of all boards; a heap in one of them is a finding.
pub fn check_all() -> Outcome {
    let workspace = Workspace::locate().map_err(|problem| problem.to_string())?;
    let names: Vec<String> = class_binaries().into_iter().collect();
    let built = workspace.build(&names, &Progress::new());
    built.map_err(|problem| problem.to_string())?;
    let mut findings = Vec::new();
    for name in names {
        let linked = workspace.any_class_binary(&name);
        let path = linked.map_err(|problem| problem.to_string())?;
        print!("{name:<32} ");
        let found = check(Some(&path), false, None)?;
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let found = found.into_iter().chain(parts::fits(&name, &bytes)?);
        findings.extend(found.map(|finding| format!("{name}: {finding}")));
    }
    Ok(findings)
}

fn heap_symbols(file: &object::File<'_>) -> Vec<String> {
    let names = file.symbols().filter_map(|symbol| symbol.name().ok());
    names
        .filter(|name| is_of_a_heap(name))
        .map(|name| format!("heap symbol {name}"))
        .collect()
}

fn is_of_a_heap(symbol: &str) -> bool {
    symbol == "malloc" || HEAP_FUNCTIONS.iter().any(|function| symbol.contains(function))
}

/// Builds a class binary, the microcontrollers' if `is_small`, and returns its path.
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

#[cfg(test)]
mod tests {
    use super::is_of_a_heap;

    #[test]
    fn an_allocator_is_known_by_its_symbols() {
        // As the compilers of 1.85 and of 1.96 write them.
        for symbol in [
            "__rust_alloc",
            "_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc",
            "_RNvCsfLfy6EI15iL_7___rustc11___rdl_alloc",
            "malloc",
        ] {
            assert!(is_of_a_heap(symbol), "{symbol}");
        }
        assert!(!is_of_a_heap("_RNvNtCs1_15bulkhead_kernel8schedule8allocate"));
    }
}
