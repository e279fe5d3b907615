// SPDX-License-Identifier: Apache-2.0
//! What a class binary weighs, and that it has no heap.

use crate::workspace::{output, packages, root, tracked};
use crate::{Outcome, toolchain};
use bulkhead::bench::{Lines, Sizes};
use object::{Object, ObjectSymbol};
use std::collections::BTreeMap;
use std::path::Path;

/// Symbols only a program with an allocator has.
const HEAP_SYMBOLS: &[&str] = &["__rust_alloc", "__rg_alloc", "malloc"];

/// Prints the sizes of `elf`, or of the class binary; a heap in it is a finding.
pub fn check(elf: Option<&Path>) -> Outcome {
    let path = match elf {
        Some(path) => path.to_path_buf(),
        None => {
            let class = &toolchain::AARCH64;
            let mut command = toolchain::target_command(class, "build")?;
            output(command.args(["--profile", class.profile, "-p", class.binary]))?;
            toolchain::target_output(class, class.binary)
        }
    };
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let file = object::File::parse(&*bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    let sizes = Sizes::of(&bytes)?;
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

/// Prints the lines of code (neither blank nor comment) per crate.
pub fn lines() -> Outcome {
    let mut folders: Vec<String> = packages()?
        .iter()
        .map(crate::workspace::Package::folder)
        .collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
    let mut totals: BTreeMap<&str, Lines> = BTreeMap::new();
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
        let total = totals.entry(folder).or_default();
        *total = total.plus(Lines::of(&text, name.contains("/tests/")));
    }
    println!("{:>7} {:>7}  crate", "code", "tests");
    for (folder, Lines { code, tests }) in totals {
        println!("{code:>7} {tests:>7}  {folder}");
    }
    Ok(Vec::new())
}
