// SPDX-License-Identifier: Apache-2.0
//! Picks modules of a kernel package, with those they need, in the order in which they must be loaded.
//!
//! A Debian kernel package has no `modules.dep`, which is made at installation. This module therefore reads
//! dependencies from their source: the strings `depends=` and `softdep=` in each module's own `.modinfo`
//! section. The modules that the kernel has built in are in `modules.builtin` and need nothing.

use crate::build::debian;
use crate::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders deeper than this are not looked into: a package has six levels.
const DEPTH: usize = 16;

/// A module to load.
#[derive(Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name, as the kernel shows it.
    pub name: String,
    /// The ELF file.
    pub bytes: Vec<u8>,
}

/// The modules of one kernel.
#[derive(Debug)]
pub struct Modules {
    release: String,
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

impl Modules {
    /// Reads the modules in the unpacked kernel package at `folder`.
    ///
    /// # Errors
    /// The package has no modules.
    pub fn read(folder: &Path) -> Result<Self, Problem> {
        let modules = folder.join("lib/modules");
        let entries = fs::read_dir(&modules).map_err(Problem::io(modules.display()))?;
        let kernel = entries
            .flatten()
            .next()
            .ok_or_else(|| Problem::new(format!("no kernel release in {}", modules.display())))?;
        let mut files = BTreeMap::new();
        collect(&kernel.path().join("kernel"), DEPTH, &mut files)?;
        let list = kernel.path().join("modules.builtin");
        let built_in = fs::read_to_string(&list).map_err(Problem::io(list.display()))?;
        Ok(Self {
            release: kernel.file_name().to_string_lossy().into_owned(),
            files,
            built_in: built_in
                .lines()
                .filter_map(|line| module_name(Path::new(line)))
                .collect(),
        })
    }

    /// Returns the modules of `names` with all they need, each after those it needs.
    ///
    /// # Errors
    /// There is no such module, or it cannot be read.
    pub fn select<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Module>, Problem> {
        let mut selected = Vec::new();
        let mut seen = BTreeSet::new();
        for name in names {
            self.add(&canonical(name), &mut seen, &mut selected)?;
        }
        Ok(selected)
    }

    fn add(
        &self,
        name: &str,
        seen: &mut BTreeSet<String>,
        selected: &mut Vec<Module>,
    ) -> Result<(), Problem> {
        if self.built_in.contains(name) || !seen.insert(name.to_owned()) {
            return Ok(());
        }
        let path = self.files.get(name).ok_or_else(|| {
            Problem::new(format!("kernel {} has no module `{name}`", self.release))
                .remedy("give the name that `lsmod` shows, without `.ko`")
        })?;
        let bytes = contents(path)?;
        for needed in strings(&bytes, "depends").flat_map(|list| names(list, ',')) {
            self.add(&needed, seen, selected)?;
        }
        for wanted in strings(&bytes, "softdep").filter_map(|text| text.strip_prefix("pre: ")) {
            for name in names(wanted, ' ').filter_map(|name| self.provider(name)) {
                self.add(&name, seen, selected)?;
            }
        }
        let name = name.to_owned();
        selected.push(Module { name, bytes });
        Ok(())
    }

    /// Returns the module of a name in a soft dependency, which names a module that should be loaded
    /// before. The name of an algorithm is `crypto-NAME`, and its plain implementation is `NAME_generic`.
    fn provider(&self, name: String) -> Option<String> {
        let generic = format!("{}_generic", name.strip_prefix("crypto_").unwrap_or(&name));
        [name, generic]
            .into_iter()
            .find(|name| self.files.contains_key(name))
    }
}

/// Returns the name as the kernel shows it: the kernel treats `-` and `_` in names as equal and shows `_`.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// Returns the name of the module in a file called `NAME.ko` or `NAME.ko.xz`.
fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let stem = file.strip_suffix(".xz").unwrap_or(file).strip_suffix(".ko")?;
    Some(canonical(stem))
}

fn collect(folder: &Path, depth: usize, files: &mut BTreeMap<String, PathBuf>) -> Result<(), Problem> {
    for entry in fs::read_dir(folder)
        .map_err(Problem::io(folder.display()))?
        .flatten()
    {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if depth > 0 {
                collect(&path, depth - 1, files)?;
            }
        } else if let Some(name) = module_name(&path) {
            files.insert(name, path);
        }
    }
    Ok(())
}

/// Returns the ELF file at `path`. It is decompressed here: the guest's kernel is not asked to decompress
/// anything.
fn contents(path: &Path) -> Result<Vec<u8>, Problem> {
    if path.extension() == Some(OsStr::new("xz")) {
        return debian::run_bytes(Command::new("xz").arg("-dc").arg(path));
    }
    fs::read(path).map_err(Problem::io(path.display()))
}

/// Returns the values of `key` in the module's `.modinfo`: strings `KEY=VALUE` that end in NUL. The compiler
/// puts the keys that matter here after others, so they follow a NUL.
fn strings<'a>(bytes: &'a [u8], key: &'static str) -> impl Iterator<Item = &'a str> {
    bytes.split(|byte| *byte == 0).filter_map(move |string| {
        let value = string.strip_prefix(key.as_bytes())?.strip_prefix(b"=")?;
        std::str::from_utf8(value).ok()
    })
}

fn names(list: &str, separator: char) -> impl Iterator<Item = String> {
    list.split(separator)
        .filter(|name| !name.is_empty())
        .map(canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a package with the given modules: path, strings of `.modinfo`.
    fn package(name: &str, modules: &[(&str, &str)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bulkhead-modules-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let kernel = folder.join("lib/modules/6.1.0-1-arm64");
        for (path, strings) in modules {
            let path = kernel.join("kernel").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(
                path,
                format!("\x7fELF junk\0{}\0rest", strings.replace(';', "\0")),
            )
            .unwrap();
        }
        fs::write(
            kernel.join("modules.builtin"),
            "kernel/drivers/virtio/virtio.ko\n",
        )
        .unwrap();
        folder
    }

    #[test]
    fn what_a_module_needs_comes_first_and_once() {
        let folder = package(
            "order",
            &[
                (
                    "fs/ext4/ext4.ko",
                    "license=GPL;depends=jbd2,mbcache,crc16;name=ext4",
                ),
                ("fs/jbd2/jbd2.ko", "license=GPL;depends=crc16"),
                (
                    "fs/mbcache.ko",
                    "a=b;depends=;softdep=pre: crypto-crc32c nothing;softdep=post: late;x=y",
                ),
                ("crypto/crc32c_generic.ko", "license=GPL"),
                ("lib/crc16.ko", "license=GPL"),
                ("drivers/block/virtio-blk.ko", "a=b;depends=virtio"),
            ],
        );
        let modules = Modules::read(&folder).unwrap();
        let selected = modules.select(["virtio_blk", "ext4", "virtio-blk"]).unwrap();
        let names: Vec<&str> = selected.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(
            names,
            ["virtio_blk", "crc16", "jbd2", "crc32c_generic", "mbcache", "ext4"]
        );
        assert!(selected[0].bytes.starts_with(b"\x7fELF"));
        assert!(modules.select(["virtio"]).unwrap().is_empty(), "built in");
        let problem = modules.select(["ext5"]).unwrap_err().to_string();
        assert!(
            problem.contains("6.1.0-1-arm64 has no module `ext5`"),
            "{problem}"
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn modules_that_need_each_other_end() {
        let folder = package("cycle", &[("a.ko", "x=;depends=b"), ("b.ko", "x=;depends=a")]);
        assert_eq!(Modules::read(&folder).unwrap().select(["a"]).unwrap().len(), 2);
        fs::remove_dir_all(folder).unwrap();
    }
}
