// SPDX-License-Identifier: Apache-2.0
//! Facts about the machine the tool runs on.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the path at which a shell would find a program.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        path.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

/// Tells whether a program can be started by this name.
#[must_use]
pub fn is_installed(name: &str) -> bool {
    find_program(name).is_some()
}

/// Returns the Debian package that has a program the tool uses.
#[must_use]
pub fn package_of(program: &str) -> &str {
    match program {
        "qemu-system-aarch64" | "qemu-system-arm" => "qemu-system-arm",
        "qemu-system-x86_64" => "qemu-system-x86",
        "qemu-system-ppc" => "qemu-system-ppc",
        "powerpc-linux-gnu-gcc" => "gcc-powerpc-linux-gnu",
        "arm-none-eabi-gcc" => "gcc-arm-none-eabi",
        "aarch64-linux-gnu-gcc" => "gcc-aarch64-linux-gnu",
        "dtc" => "device-tree-compiler",
        "apt-get" | "apt-cache" => "apt",
        "dpkg" => "dpkg",
        other => other,
    }
}

/// Returns the folder for files that can be fetched again: `$XDG_CACHE_HOME/bulkhead` or `~/.cache/bulkhead`.
#[must_use]
pub fn cache_folder() -> PathBuf {
    let given = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    given("XDG_CACHE_HOME")
        .or_else(|| given("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(|| env::temp_dir().join("bulkhead-cache"))
        .join("bulkhead")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_the_path_only() {
        assert!(is_installed("sh"));
        assert!(is_installed("/bin/sh"));
        assert!(!is_installed("/etc/passwd"));
        assert!(!is_installed("no-such-program-anywhere"));
    }
}
