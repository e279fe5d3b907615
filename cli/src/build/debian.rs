// SPDX-License-Identifier: Apache-2.0
//! Fetches packages of Debian for another architecture, without touching the machine's own.
//!
//! `apt-get` runs with a private state (lists, cache, an empty status file) for the foreign architecture, so
//! nothing is installed, no foreign architecture is added to dpkg, and no root is needed. apt itself verifies
//! the signed lists with the machine's Debian keys. The tool compares a downloaded package with the SHA-256
//! of those lists once more before unpacking it, so that a damaged download never becomes a payload.

use crate::problem::Problem;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Options that make the lists smaller: descriptions, icons and contents are not needed.
const OPTIONS: &[&str] = &[
    "Acquire::Languages=none",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
    "Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled=false",
    "Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled=false",
    "Acquire::IndexTargets::deb::DEP-11-icons-hidpi::DefaultEnabled=false",
    "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false",
    "Acquire::Retries=3",
    "Acquire::http::Timeout=60",
    // The download goes to a folder of the caller, to which apt's own user cannot write.
    "APT::Sandbox::User=",
];

/// Lists younger than this are not fetched again.
const FRESH: Duration = Duration::from_secs(600);

/// A private view of Debian's packages for one architecture.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    architecture: &'static str,
}

/// A version of a package, by Debian's lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    sha256: String,
    depends: String,
}

impl Archive {
    /// Returns an archive whose state is kept in `folder`.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: PathBuf, architecture: &'static str) -> Result<Self, Problem> {
        for part in ["lists/partial", "cache/archives/partial", "packages"] {
            let path = folder.join(part);
            fs::create_dir_all(&path).map_err(Problem::io(path.display()))?;
        }
        let status = folder.join("status");
        fs::write(&status, "").map_err(Problem::io(status.display()))?;
        Ok(Self { folder, architecture })
    }

    /// Gets the current lists of packages, unless that was done a moment ago.
    ///
    /// # Errors
    /// The error carries the message of apt.
    pub fn update(&self) -> Result<(), Problem> {
        let stamp = self.folder.join("updated");
        let age = stamp
            .metadata()
            .and_then(|meta| meta.modified())
            .ok()
            .and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age < FRESH) {
            return Ok(());
        }
        self.apt("apt-get", &["-q", "update"])?;
        fs::write(&stamp, "").map_err(Problem::io(stamp.display()))
    }

    /// Looks a package up.
    ///
    /// # Errors
    /// Debian has no package of this name.
    pub fn find(&self, name: &str) -> Result<Package, Problem> {
        let text = self.apt("apt-cache", &["--no-all-versions", "show", name])?;
        parse_show(&text).ok_or_else(|| {
            Problem::new(format!(
                "Debian's lists have no package `{name}` for {}",
                self.architecture
            ))
        })
    }

    /// Downloads a package and verifies it.
    ///
    /// # Errors
    /// The download fails with a message of apt, or the digest is wrong.
    pub fn download(&self, package: &Package) -> Result<Vec<u8>, Problem> {
        let download = self.folder.join("packages").join(&package.name);
        // The folder may be left over from a run that was interrupted.
        let _ = fs::remove_dir_all(&download);
        fs::create_dir_all(&download).map_err(Problem::io(download.display()))?;
        let wanted = format!("{}={}", package.name, package.version);
        self.apt_in(&download, "apt-get", &["-q", "download", &wanted])?;
        let file = only_file(&download)?;
        let bytes = fs::read(&file).map_err(Problem::io(file.display()))?;
        let found = sha256_hex(&bytes);
        if found != package.sha256 {
            return Err(Problem::new(format!(
                "the package {wanted} is damaged: its SHA-256 is {found}, Debian's lists say {}",
                package.sha256
            ))
            .remedy("run the command again; if it stays, the mirror or a proxy delivers wrong data"));
        }
        Ok(bytes)
    }

    /// Forgets downloaded packages.
    pub fn clean(&self) {
        // Only disk space is at stake.
        let _ = fs::remove_dir_all(self.folder.join("packages"));
    }

    fn apt(&self, program: &str, arguments: &[&str]) -> Result<String, Problem> {
        self.apt_in(&self.folder, program, arguments)
    }

    fn apt_in(&self, folder: &Path, program: &str, arguments: &[&str]) -> Result<String, Problem> {
        let mut command = Command::new(program);
        command
            .current_dir(folder)
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive");
        let state = |part: &str| self.folder.join(part).display().to_string();
        let own = [
            format!("APT::Architecture={}", self.architecture),
            format!("APT::Architectures={}", self.architecture),
            format!("Dir::State::Lists={}", state("lists")),
            format!("Dir::Cache={}", state("cache")),
            format!("Dir::State::status={}", state("status")),
        ];
        for option in own.iter().map(String::as_str).chain(OPTIONS.iter().copied()) {
            command.args(["-o", option]);
        }
        run(command.args(arguments))
    }
}

/// Puts the files of a package into `folder`, which must not exist yet.
///
/// # Errors
/// The error carries the message of dpkg.
pub fn unpack(package: &Path, folder: &Path) -> Result<(), Problem> {
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(folder)).map(drop)
}

/// Runs a command. Returns its output as text, or its message as a problem.
pub(crate) fn run(command: &mut Command) -> Result<String, Problem> {
    run_bytes(command).map(|output| String::from_utf8_lossy(&output).into_owned())
}

/// Runs a command. Returns its output, or its message as a problem.
pub(crate) fn run_bytes(command: &mut Command) -> Result<Vec<u8>, Problem> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| {
            Problem::new(format!("cannot start `{name}`: {error}")).remedy(format!(
                "apt-get install {}",
                crate::build::host::package_of(&name)
            ))
        })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let arguments: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
    Err(Problem::new(format!(
        "`{name} {}` failed:\n{}",
        arguments.join(" "),
        said.trim()
    )))
}

/// Parses the first record of `apt-cache show`.
fn parse_show(text: &str) -> Option<Package> {
    let record = text.split("\n\n").next()?;
    let field = |name: &str| {
        record
            .lines()
            .find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.trim().to_owned()))
    };
    Some(Package {
        name: field("Package")?,
        version: field("Version")?,
        sha256: field("SHA256")?,
        depends: field("Depends").unwrap_or_default(),
    })
}

impl Package {
    /// Returns the name and version, as kept beside the files that were taken from the package.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// Returns the first package whose name starts with `prefix` among those that this package depends on.
    #[must_use]
    pub fn dependency(&self, prefix: &str) -> Option<&str> {
        let names = self
            .depends
            .split([',', '|'])
            .filter_map(|entry| entry.split_whitespace().next());
        names.into_iter().find(|name| name.starts_with(prefix))
    }
}

fn only_file(folder: &Path) -> Result<PathBuf, Problem> {
    let entries = fs::read_dir(folder).map_err(Problem::io(folder.display()))?;
    let mut files = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some(OsStr::new("deb")));
    files
        .next()
        .ok_or_else(|| Problem::new(format!("apt-get left no package in {}", folder.display())))
}

/// Returns the SHA-256 as Debian's lists write it.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_the_lists_are_read() {
        let text = "Package: linux-image-arm64\nVersion: 6.1.192-2\nDepends: foo (>= 1), linux-image-6.1.0-56-arm64 (= 6.1.192-2)\n\
                    SHA256: 7d00\nDescription: x\n\nPackage: linux-image-arm64\nVersion: 6.1.1\nSHA256: ffff\n";
        let package = parse_show(text).unwrap();
        assert_eq!(
            (package.version.as_str(), package.sha256.as_str()),
            ("6.1.192-2", "7d00")
        );
        assert_eq!(
            package.dependency("linux-image-"),
            Some("linux-image-6.1.0-56-arm64")
        );
        assert_eq!(package.dependency("bar"), None);
        assert_eq!(parse_show("N: Unable to locate package"), None);
    }

    #[test]
    fn digests_are_written_like_debian_does() {
        assert_eq!(
            sha256_hex(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
