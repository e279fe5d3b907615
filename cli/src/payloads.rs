// SPDX-License-Identifier: Apache-2.0
//! Named payloads that come from Debian: `@debian/linux-arm64`, `@debian/initramfs`.
//!
//! They are fetched once and cached outside the repository. A cached file has its digest beside it and
//! is used only if it still has that digest; a file is written under another name and renamed, and one
//! tool at a time fills the cache (a lock file), so an interrupted or a concurrent run leaves
//! either a good file or none.

use crate::debian::{Archive, Package, sha256_hex};
use crate::initramfs;
use crate::problem::Problem;
use crate::progress::Progress;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The names behind `@debian/`, with what they are.
pub const NAMES: &[(&str, &str)] = &[
    ("linux-arm64", "Debian's own arm64 kernel"),
    ("initramfs", "a root file system of Debian's busybox"),
];

/// The cache of payloads.
#[derive(Debug)]
pub struct Payloads {
    folder: PathBuf,
}

impl Payloads {
    /// The cache in `folder` (see [`crate::host::cache_folder`]).
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The kernel, fetched if need be.
    ///
    /// # Errors
    /// It cannot be fetched.
    pub fn linux(&self, progress: &Progress) -> Result<PathBuf, Problem> {
        self.provide("linux-arm64", progress, |archive| {
            let newest = archive.find("linux-image-arm64")?;
            let name = newest
                .dependency("linux-image-")
                .ok_or_else(|| Problem::new("Debian's linux-image-arm64 depends on no kernel"))?;
            let package = archive.find(name)?;
            let files = archive.unpack(&package)?;
            let kernel = file_in(&files.join("boot"), "vmlinuz-")?;
            Ok((fs::read(&kernel).map_err(Problem::io(kernel.display()))?, package))
        })
    }

    /// The initramfs, made if need be.
    ///
    /// # Errors
    /// Busybox cannot be fetched.
    pub fn initramfs(&self, progress: &Progress) -> Result<PathBuf, Problem> {
        let busybox = self.provide("busybox-arm64", progress, |archive| {
            let package = archive.find("busybox-static")?;
            let path = archive.unpack(&package)?.join("bin/busybox");
            Ok((fs::read(&path).map_err(Problem::io(path.display()))?, package))
        })?;
        let busybox = fs::read(&busybox).map_err(Problem::io(busybox.display()))?;
        let archive = initramfs::build(&busybox);
        let digest = sha256_hex(&archive);
        let path = self.folder.join(format!("initramfs-{}.cpio", &digest[..16]));
        if !has_digest(&path, &digest) {
            write_whole(&path, &archive)?;
        }
        Ok(path)
    }

    /// The cached file `name`, or the one that `fetch` gets.
    fn provide(
        &self,
        name: &str,
        progress: &Progress,
        fetch: impl FnOnce(&Archive) -> Result<(Vec<u8>, Package), Problem>,
    ) -> Result<PathBuf, Problem> {
        let path = self.folder.join(name);
        if self.is_good(name) {
            return Ok(path);
        }
        progress.step(&format!("getting {name} from Debian's packages"), || {
            let archive = Archive::new(self.folder.join("apt-arm64"), "arm64")?;
            let _lock = self.lock()?;
            if self.is_good(name) {
                return Ok(());
            }
            // Old lists will do if the package they name is still there; a mirror that is unreachable
            // for some of its lists, too. Only if the package cannot be had is that a problem.
            let updated = archive.update();
            let fetched = fetch(&archive).map_err(|problem| updated.err().unwrap_or(problem));
            let (bytes, package) = fetched.map_err(|problem| {
                problem.remedy(
                    "Debian's package servers must be reachable the first time; later the cache is used",
                )
            })?;
            write_whole(&path, &bytes)?;
            let origin = format!("{}  {} {}\n", sha256_hex(&bytes), package.name, package.version);
            write_whole(&self.digest_path(name), origin.as_bytes())?;
            archive.clean();
            Ok(())
        })?;
        Ok(path)
    }

    fn digest_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.sha256"))
    }

    fn is_good(&self, name: &str) -> bool {
        let Ok(recorded) = fs::read_to_string(self.digest_path(name)) else {
            return false;
        };
        recorded
            .split_whitespace()
            .next()
            .is_some_and(|digest| has_digest(&self.folder.join(name), digest))
    }

    /// Waits until no other tool fills the cache.
    fn lock(&self) -> Result<File, Problem> {
        let path = self.folder.join("lock");
        let file = File::create(&path).map_err(Problem::io(path.display()))?;
        flock(&file, FlockOperation::LockExclusive)
            .map_err(|error| Problem::io(path.display())(error.into()))?;
        Ok(file)
    }
}

fn has_digest(path: &Path, digest: &str) -> bool {
    fs::read(path).is_ok_and(|bytes| sha256_hex(&bytes) == digest)
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Problem::io(folder.display()))?;
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id()));
    fs::write(&temporary, bytes).map_err(Problem::io(path.display()))?;
    fs::rename(&temporary, path).map_err(Problem::io(path.display()))
}

fn file_in(folder: &Path, prefix: &str) -> Result<PathBuf, Problem> {
    let entries = fs::read_dir(folder).map_err(Problem::io(folder.display()))?;
    let found = entries
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    found
        .map(|entry| entry.path())
        .ok_or_else(|| Problem::new(format!("no {prefix}* in {}", folder.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bulkhead-payloads-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_damaged_file_is_not_used() {
        let payloads = Payloads::new(folder("damaged"));
        assert!(!payloads.is_good("x"));
        fs::write(payloads.folder.join("x"), "good").unwrap();
        fs::write(
            payloads.digest_path("x"),
            format!("{}  p 1\n", sha256_hex(b"good")),
        )
        .unwrap();
        assert!(payloads.is_good("x"));
        fs::write(payloads.folder.join("x"), "goof").unwrap();
        assert!(!payloads.is_good("x"));
        fs::remove_dir_all(&payloads.folder).unwrap();
    }

    #[test]
    fn a_cached_busybox_makes_one_initramfs() {
        let payloads = Payloads::new(folder("initramfs"));
        fs::write(payloads.folder.join("busybox-arm64"), "ELF").unwrap();
        fs::write(payloads.digest_path("busybox-arm64"), sha256_hex(b"ELF")).unwrap();
        let progress = Progress::new();
        let one = payloads.initramfs(&progress).unwrap();
        assert_eq!(fs::read(&one).unwrap(), initramfs::build(b"ELF"));
        assert_eq!(payloads.initramfs(&progress).unwrap(), one);
        fs::remove_dir_all(&payloads.folder).unwrap();
    }
}
