// SPDX-License-Identifier: Apache-2.0
//! Which cargo to call, and how on-target code is built with it.
//!
//! On-target code is built with the compiler's own `core` from source where the toolchain has it
//! (`-Zbuild-std`, allowed on a stable compiler by `RUSTC_BOOTSTRAP`), else with the prebuilt target.

use crate::workspace::{output, root};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Target of class `aarch64`.
pub const TARGET: &str = "aarch64-unknown-none-softfloat";
/// Package of its class binary.
pub const CLASS_BINARY: &str = "bulkhead-hypervisor-aarch64";

/// The cargo that runs us, so that every step uses one toolchain.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// Packages that only exist on the target.
pub fn is_target_folder(folder: &str) -> bool {
    let target_only = ["arch/aarch64", "arch/support", "drivers", "guest"];
    target_only.contains(&folder) || folder.starts_with("hypervisor/") || folder.starts_with("guests/")
}

/// `cargo SUBCOMMAND --target ...` for on-target packages.
pub fn target_command(subcommand: &str) -> Result<Command, String> {
    let mut command = Command::new(cargo());
    command.args([subcommand, "--target", TARGET]).current_dir(root());
    if has_library_source()? {
        command.env("RUSTC_BOOTSTRAP", "1");
        command.args([
            "-Zbuild-std=core,compiler_builtins",
            "-Zbuild-std-features=compiler-builtins-mem",
        ]);
    }
    Ok(command)
}

/// Where cargo puts what it builds for the target with profile `firmware`.
pub fn target_output(name: &str) -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    folder.join(TARGET).join("firmware").join(name)
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
