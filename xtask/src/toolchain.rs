// SPDX-License-Identifier: Apache-2.0
//! Which cargo to call, and how on-target code is built with it.
//!
//! On-target code is built with the compiler's own `core` from source where the toolchain has it
//! (`-Zbuild-std`, allowed on a stable compiler by `RUSTC_BOOTSTRAP`), else with the prebuilt target.

use crate::workspace::{cargo, output, root};
use bulkhead::class::{self, Tool};
use bulkhead_abi::size::Tables;
use std::path::Path;
use std::process::Command;

/// A class: what its on-target code is built with.
#[derive(Clone, Copy)]
pub struct Class(&'static dyn Tool);

/// Folders that several classes share. Their code is checked as code of the usual class.
const SHARED: &[&str] = &[
    "arch/support",
    "arch/one-pcpu",
    "arch/translating",
    "drivers",
    "guest",
];

impl Class {
    /// Returns all classes.
    pub fn all() -> impl Iterator<Item = Self> {
        class::all().map(Self)
    }

    /// Returns the class that has the packages that no other class claims.
    pub fn usual() -> Self {
        Self(class::default())
    }

    /// Returns the first class with small tables, or with large ones.
    pub fn with_tables(is_small: bool) -> Option<Self> {
        let tables = if is_small { Tables::Small } else { Tables::Large };
        Self::all().find(|class| class.0.facts().tables == tables)
    }

    /// Target.
    pub fn target(self) -> &'static str {
        self.0.target()
    }

    /// Package of its class binary.
    pub fn binary(self) -> String {
        format!("bulkhead-hypervisor-{}", self.name())
    }

    fn name(self) -> &'static str {
        self.0.facts().name
    }

    /// Features of the compiler's own library.
    fn library(self) -> &'static str {
        match self.0.facts().tables {
            Tables::Small => "compiler-builtins-mem,optimize_for_size",
            Tables::Large => "compiler-builtins-mem",
        }
    }

    /// Tells whether a package exists on this class's target only. `target` is the one that the package
    /// itself names.
    pub fn has(self, folder: &str, target: Option<&str>) -> bool {
        let owner = Self::all().find(|class| class.claims(folder, target));
        let usual = SHARED.contains(&folder) || folder.starts_with("guests/");
        owner
            .or(usual.then(Self::usual))
            .is_some_and(|owner| owner.name() == self.name())
    }

    /// Tells whether a folder has a class binary of the class, in one of its variants.
    pub fn has_binary(self, folder: &str) -> bool {
        let rest = folder
            .strip_prefix("hypervisor/")
            .and_then(|own| own.strip_prefix(self.name()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// Tells whether the folder has the name of the class, or a guest is for a CPU of the class.
    fn claims(self, folder: &str, target: Option<&str>) -> bool {
        let (room, own) = folder.split_once('/').unwrap_or_default();
        let own = own.strip_prefix("conformance-").unwrap_or(own);
        let cpu = |target: &str| target.split('-').next().map(str::to_owned);
        match room {
            "arch" | "hypervisor" => own == self.name(),
            "guest" | "guests" => target.and_then(cpu) == cpu(self.target()) && target.is_some(),
            _ => false,
        }
    }
}

/// `cargo SUBCOMMAND --target ...`, which builds nothing.
pub fn for_target(class: Class, subcommand: &str) -> Command {
    let mut command = Command::new(cargo());
    command.args([subcommand, "--target"]).current_dir(root());
    let own = root().join(format!("hypervisor/{}/{}.json", class.name(), class.target()));
    if own.is_file() {
        // The compiler does not know the target.
        command.arg(own).arg("-Zjson-target-spec");
        command.env("RUSTC_BOOTSTRAP", "1");
    } else {
        command.arg(class.target());
    }
    command
}

/// `cargo SUBCOMMAND --target ...` for packages of a class.
pub fn target_command(class: Class, subcommand: &str) -> Result<Command, String> {
    let mut command = for_target(class, subcommand);
    build_library(&mut command, class)?;
    Ok(command)
}

/// `cargo SUBCOMMAND --target ...` for the loader of a class, if the class starts from UEFI.
pub fn loader_command(class: Class, subcommand: &str) -> Result<Option<Command>, String> {
    let Some(uefi) = class.0.uefi() else {
        return Ok(None);
    };
    let mut command = Command::new(cargo());
    command
        .args([subcommand, "--target", uefi.target])
        .current_dir(root());
    build_library(&mut command, class)?;
    Ok(Some(command))
}

/// Has the compiler's own library built from its source, where there is the source.
fn build_library(command: &mut Command, class: Class) -> Result<(), String> {
    if has_library_source()? {
        command.env("RUSTC_BOOTSTRAP", "1");
        command.args(["-Zbuild-std=core,compiler_builtins"]);
        command.arg(format!("-Zbuild-std-features={}", class.library()));
    }
    Ok(())
}

fn has_library_source() -> Result<bool, String> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| {
        let beside = Path::new(&cargo()).with_file_name("rustc");
        if beside.is_file() {
            beside.to_string_lossy().into_owned()
        } else {
            "rustc".into()
        }
    });
    let sysroot = output(Command::new(rustc).args(["--print", "sysroot"]))?;
    Ok(Path::new(sysroot.trim())
        .join("lib/rustlib/src/rust/library/core/src/lib.rs")
        .is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_of_a_target_has_one_class() {
        for (folder, target, owner) in [
            ("arch/support", None, "aarch64"),
            ("guests/demo/hello", None, "aarch64"),
            ("guests/demo/hello-32", Some("armv7a-none-eabi"), "aarch64"),
            ("guests/demo/mcu-hello", Some("thumbv7em-none-eabihf"), "armv7m"),
            ("guest/mcu", Some("thumbv7em-none-eabi"), "armv7m"),
            ("hypervisor/conformance-armv7m", None, "armv7m"),
            ("hypervisor/conformance-armv8m", None, "armv8m"),
            ("hypervisor/aarch64", None, "aarch64"),
        ] {
            let owners: Vec<_> = Class::all().filter(|class| class.has(folder, target)).collect();
            assert!(owners.iter().map(|class| class.name()).eq([owner]), "{folder}");
        }
        assert!(!Class::all().any(|class| class.has("kernel", None)));
    }
}
