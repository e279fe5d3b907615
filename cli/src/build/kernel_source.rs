// SPDX-License-Identifier: Apache-2.0
//! Builds a Linux kernel from Debian's package of its source, for hardware that Debian has no kernel for.
//!
//! The configuration is `allnoconfig` and a list of options. Nothing of the source is changed. The build
//! takes minutes, so the kernel is kept in the cache, under a name that changes with the recipe. The build
//! leaves the machine to others (`nice`).

use crate::build::debian;
use crate::problem::Problem;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kernel that is built here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// Debian's package with the source.
    pub package: &'static str,
    /// Linux's name of the architecture.
    pub architecture: &'static str,
    /// The start of the names of the compiler's programs.
    pub compiler: &'static str,
    /// The options besides `allnoconfig`.
    pub options: &'static str,
}

/// The number changes whenever [`build`] makes another kernel of the same recipe.
const RULE: u32 = 1;

impl Recipe {
    /// Returns all that the kernel depends on, besides the version of the package and of the compiler.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{RULE} {self:?}")
    }
}

/// Builds the kernel of the source in the unpacked package `files`, and returns the path of its ELF file.
///
/// # Errors
/// The error carries the message of the program that failed.
pub fn build(recipe: &Recipe, files: &Path) -> Result<PathBuf, Problem> {
    let (source, out) = (files.join("source"), files.join("out"));
    for folder in [&source, &out] {
        fs::create_dir_all(folder).map_err(Problem::io(folder.display()))?;
    }
    let archive = files.join("usr/src").join(format!("{}.tar.xz", recipe.package));
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(&source).args(["--strip-components=1", "-xf"]);
    debian::run(tar.arg(&archive))?;
    make(recipe, &source, &out, "allnoconfig")?;
    let config = out.join(".config");
    let mut file = OpenOptions::new()
        .append(true)
        .open(&config)
        .map_err(Problem::io(config.display()))?;
    file.write_all(recipe.options.as_bytes())
        .map_err(Problem::io(config.display()))?;
    make(recipe, &source, &out, "olddefconfig")?;
    make(recipe, &source, &out, "vmlinux")?;
    Ok(out.join("vmlinux"))
}

fn make(recipe: &Recipe, source: &Path, out: &Path, target: &str) -> Result<(), Problem> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut make = Command::new("nice");
    make.args(["make", "-s", &format!("-j{jobs}"), "-C"]).arg(source);
    make.arg(format!("O={}", out.display()));
    make.args([
        format!("ARCH={}", recipe.architecture),
        format!("CROSS_COMPILE={}", recipe.compiler),
        // Equal sources give equal kernels.
        "KBUILD_BUILD_TIMESTAMP=2020-01-01".to_owned(),
        "KBUILD_BUILD_USER=bulkhead".to_owned(),
        "KBUILD_BUILD_HOST=bulkhead".to_owned(),
        target.to_owned(),
    ]);
    debian::run(&mut make).map(drop)
}
