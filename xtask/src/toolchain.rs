// SPDX-License-Identifier: Apache-2.0
//! Which cargo to call, and how on-target code is built with it.
//!
//! On-target code is built with the compiler's own `core` from source where the toolchain has it
//! (`-Zbuild-std`, allowed on a stable compiler by `RUSTC_BOOTSTRAP`), else with the prebuilt target.

use crate::workspace::{output, root};
use std::path::Path;
use std::process::Command;

/// A class: what its on-target code is built with.
pub struct Class {
    /// Target.
    pub target: &'static str,
    /// Package of its class binary.
    pub binary: &'static str,
    /// Features of the compiler's own library.
    library: &'static str,
    /// Packages of this class alone.
    folders: &'static [&'static str],
    /// How the folders of its guests begin.
    guests: &'static str,
}

/// Class `aarch64`, which has the packages that no other class claims.
pub const AARCH64: Class = Class {
    target: "aarch64-unknown-none-softfloat",
    binary: "bulkhead-hypervisor-aarch64",
    library: "compiler-builtins-mem",
    folders: &[
        "arch/aarch64",
        "arch/support",
        "drivers",
        "guest",
        "hypervisor/aarch64",
        "hypervisor/conformance-aarch64",
    ],
    guests: "guests/",
};

/// Class `armv7m`.
pub const ARMV7M: Class = Class {
    target: "thumbv7em-none-eabi",
    binary: "bulkhead-hypervisor-armv7m",
    library: "compiler-builtins-mem,optimize_for_size",
    folders: &[
        "arch/armv7m",
        "hypervisor/armv7m",
        "hypervisor/conformance-armv7m",
        "guest/mcu",
    ],
    guests: "guests/mcu-",
};

/// All classes.
pub const CLASSES: [&Class; 2] = [&AARCH64, &ARMV7M];

impl Class {
    /// Whether a package exists on this class's target only.
    pub fn has(&self, folder: &str) -> bool {
        let claims = |class: &Self| class.folders.contains(&folder) || folder.starts_with(class.guests);
        claims(self) && (self.binary == ARMV7M.binary || !claims(&ARMV7M))
    }
}

/// The cargo that runs us, so that every step uses one toolchain.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// `cargo SUBCOMMAND --target ...` for packages of a class.
pub fn target_command(class: &Class, subcommand: &str) -> Result<Command, String> {
    let mut command = Command::new(cargo());
    command
        .args([subcommand, "--target", class.target])
        .current_dir(root());
    if has_library_source()? {
        command.env("RUSTC_BOOTSTRAP", "1");
        command.args(["-Zbuild-std=core,compiler_builtins"]);
        command.arg(format!("-Zbuild-std-features={}", class.library));
    }
    Ok(command)
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
        for (folder, is_small) in [
            ("arch/support", false),
            ("guests/hello", false),
            ("guests/mcu-hello", true),
            ("hypervisor/armv7m", true),
            ("hypervisor/aarch64", false),
        ] {
            assert_eq!(ARMV7M.has(folder), is_small, "{folder}");
            assert_eq!(AARCH64.has(folder), !is_small, "{folder}");
        }
        assert!(CLASSES.iter().all(|class| !class.has("kernel")));
    }
}
