// SPDX-License-Identifier: Apache-2.0
//! The workspace as cargo and git see it.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package of the workspace.
#[derive(Clone, Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its Cargo.toml.
    pub manifest_path: PathBuf,
    /// The packages that it depends on.
    pub dependencies: Vec<Dependency>,
    /// The settings of the package for our own tools.
    pub metadata: Option<serde_json::Value>,
}

/// One dependency of a package.
#[derive(Clone, Debug, Deserialize)]
pub struct Dependency {
    /// Name of the package.
    pub name: String,
    /// `None` = normal, else "dev" or "build".
    pub kind: Option<String>,
    /// Set for packages of the workspace.
    pub path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

impl Package {
    /// Returns the target that it asks for itself.
    pub fn target(&self) -> Option<&str> {
        self.metadata.as_ref()?.get("bulkhead")?.get("target")?.as_str()
    }

    /// Returns its folder, relative to the root of the repository, with `/`.
    pub fn folder(&self) -> String {
        let folder = self.manifest_path.parent().unwrap_or(Path::new(""));
        let relative = folder.strip_prefix(root()).unwrap_or(folder);
        relative.to_string_lossy().replace('\\', "/")
    }
}

/// Returns the cargo that runs us, so that every step uses one toolchain.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// Returns all packages of the workspace.
pub fn packages() -> Result<Vec<Package>, String> {
    let mut command = Command::new(cargo());
    command
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root());
    let text = output(&mut command)?;
    let metadata: Metadata =
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(metadata.packages)
}

/// Files git tracks (and new ones it does not ignore) whose name ends in one of `endings`.
pub fn tracked(endings: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut command = Command::new("git");
    command
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root());
    let listed = output(&mut command)?;
    let wanted = |name: &&str| endings.iter().any(|ending| name.ends_with(ending));
    Ok(listed
        .lines()
        .filter(wanted)
        .map(|name| root().join(name))
        .filter(|path| path.is_file())
        .collect())
}

/// A Rust file of a package.
pub struct Source {
    /// Its path.
    pub path: PathBuf,
    /// The same, relative to the root of the repository.
    pub name: String,
    /// The package's folder, as [`Package::folder`] has it.
    pub folder: String,
}

/// Returns all Rust files, each with the innermost package that it lies in.
pub fn sources() -> Result<Vec<Source>, String> {
    let mut folders: Vec<String> = packages()?.iter().map(Package::folder).collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
    let source = |path: PathBuf| {
        let name = path
            .strip_prefix(root())
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        let is_inside = |folder: &&String| name.starts_with(&format!("{folder}/"));
        let folder = folders.iter().find(is_inside)?.clone();
        Some(Source { path, name, folder })
    };
    Ok(tracked(&[".rs"])?.into_iter().filter_map(source).collect())
}

/// Runs a command and returns what it printed.
pub fn output(command: &mut Command) -> Result<String, String> {
    let result = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    if !result.status.success() {
        return Err(format!(
            "{command:?} failed:\n{}",
            String::from_utf8_lossy(&result.stderr)
        ));
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}
