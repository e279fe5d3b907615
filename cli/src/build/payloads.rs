// SPDX-License-Identifier: Apache-2.0
//! Named payloads that come from Debian: `@debian/linux-arm64`, `@debian/initramfs` and their kin.
//!
//! Payloads are fetched once and cached outside the repository. A cached file has its digest and its origin
//! (package and version) beside it. The file is used only if it still has that digest. A file is written
//! under another name and renamed, and one tool at a time makes a payload (a lock file each), so an
//! interrupted or a concurrent run leaves either a good file or none. The package of a kernel stays in the
//! cache too: its modules fit that very kernel only, so both are always taken from the same package.

use crate::build::debian::{self, Archive, sha256_hex};
use crate::build::initramfs;
use crate::build::kernel_source::{self, Recipe};
use crate::build::modules::Modules;
use crate::build::payload::{Payload, Source};
use crate::class;
use crate::problem::Problem;
use crate::ui::progress::Progress;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Part of the name in the cache. The number changes whenever other modules are picked for the same names, or
/// packed otherwise.
const MODULES_RULE: u32 = 1;

/// Returns the payload of that name (without `@debian/`).
#[must_use]
pub fn find(name: &str) -> Option<&'static Payload> {
    let mut all = class::all().flat_map(class::Tool::payloads);
    all.find(|payload| payload.name == name)
}

/// Returns the names of the payloads for VMs of a class, or of all classes.
#[must_use]
pub fn names(class: Option<&str>) -> Vec<String> {
    let own = class::all().filter(|tool| class.is_none_or(|class| tool.facts().name == class));
    let payloads = own.flat_map(class::Tool::payloads);
    payloads.map(|payload| payload.name.to_owned()).collect()
}

/// The request that a name after `@debian/` stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// A payload.
    Whole(&'static Payload),
    /// `KERNEL/modules/NAME,NAME...`: an archive with modules of a kernel and an `/init` that loads them.
    Modules(&'static Payload, &'a str),
}

impl Payload {
    /// Returns the class whose VMs it is for.
    #[must_use]
    pub fn class(&self) -> &'static str {
        let mut all = class::all();
        let own = all.find(|tool| tool.payloads().iter().any(|payload| payload.name == self.name));
        own.map_or("", |tool| tool.facts().name)
    }
}

impl<'a> Request<'a> {
    /// Reads a name (without `@debian/`).
    #[must_use]
    pub fn read(name: &'a str) -> Option<Self> {
        match name.split_once("/modules/") {
            None => find(name).map(Self::Whole),
            Some((kernel, modules)) => find(kernel)
                .filter(|payload| matches!(payload.source, Source::Kernel(_)))
                .map(|payload| Self::Modules(payload, modules)),
        }
    }

    /// Returns the payload, or the kernel that the modules are for.
    #[must_use]
    pub const fn payload(self) -> &'static Payload {
        match self {
            Self::Whole(payload) | Self::Modules(payload, _) => payload,
        }
    }
}

/// The cache of payloads.
#[derive(Debug)]
pub struct Payloads {
    folder: PathBuf,
}

impl Payloads {
    /// Returns the cache in `folder` (see [`crate::build::host::cache_folder`]).
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Tells whether the cache has the payload of that name as one file.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        match find(name).map(|payload| payload.source) {
            Some(Source::Built(recipe)) => self.is_good(&name_of_built(name, recipe)),
            _ => self.is_good(name),
        }
    }

    /// Returns the file of a payload, fetched or made if need be.
    ///
    /// # Errors
    /// The payload cannot be fetched.
    pub fn provide(&self, request: Request<'_>, progress: &Progress) -> Result<PathBuf, Problem> {
        let (Request::Whole(payload) | Request::Modules(payload, _)) = request;
        match (payload.source, request) {
            (Source::Busybox, _) => self.initramfs(payload, progress),
            (Source::File(package, path), _) => self.file(payload, package, path, progress),
            (Source::Built(recipe), _) => self.built(payload, recipe, progress),
            (Source::Kernel(package), Request::Whole(_)) => self.kernel(payload, package, progress),
            (Source::Kernel(package), Request::Modules(_, names)) => {
                let kernel = KernelPackage { payload, package };
                self.modules(&kernel, names, progress)
            }
        }
    }

    /// Returns an archive of the modules `names` (separated by commas) and all they need.
    fn modules(
        &self,
        kernel: &KernelPackage<'_>,
        names: &str,
        progress: &Progress,
    ) -> Result<PathBuf, Problem> {
        let KernelPackage { payload, package } = *kernel;
        let kernel = payload.name;
        let deb = self.kernel_package(payload, package, progress)?;
        let origin = self.origin(&format!("{kernel}.deb")).unwrap_or_default();
        let digest = sha256_hex(format!("{MODULES_RULE} {origin} {names}").as_bytes());
        let name = format!("{kernel}-modules-{}.cpio", &digest[..16]);
        if !self.is_good(&name) {
            progress.step(&format!("picking modules of {kernel}"), || {
                let _lock = self.lock(kernel, progress)?;
                let files = Unpacked::new(&deb, &self.folder, kernel)?;
                let modules = Modules::read(&files.0)?.select(names.split(','))?;
                self.store(&name, &initramfs::build_modules(&modules), &origin)
            })?;
        }
        Ok(self.folder.join(name))
    }

    fn kernel(&self, payload: &Payload, package: &str, progress: &Progress) -> Result<PathBuf, Problem> {
        let name = payload.name;
        let package_name = format!("{name}.deb");
        let same_origin = || {
            self.origin(name)
                .is_some_and(|origin| Some(origin) == self.origin(&package_name))
        };
        if !(same_origin() && self.is_good(name)) {
            let deb = self.kernel_package(payload, package, progress)?;
            let _lock = self.lock(name, progress)?;
            let files = Unpacked::new(&deb, &self.folder, name)?;
            let kernel = file_in(&files.0.join("boot"), "vmlinuz-")?;
            let bytes = fs::read(&kernel).map_err(Problem::io(kernel.display()))?;
            self.store(name, &bytes, &self.origin(&package_name).unwrap_or_default())?;
        }
        Ok(self.folder.join(name))
    }

    /// Returns the package with a kernel and its modules.
    fn kernel_package(
        &self,
        payload: &Payload,
        package: &str,
        progress: &Progress,
    ) -> Result<PathBuf, Problem> {
        let name = format!("{}.deb", payload.name);
        self.fetch(&name, payload.architecture, progress, |archive| {
            let newest = archive.find(package)?;
            let depends = newest
                .dependency("linux-image-")
                .ok_or_else(|| Problem::new(format!("Debian's {package} depends on no kernel")))?;
            let package = archive.find(depends)?;
            Ok((archive.download(&package)?, package.origin()))
        })
    }

    /// Returns a kernel that is built from its source.
    fn built(&self, payload: &Payload, recipe: &Recipe, progress: &Progress) -> Result<PathBuf, Problem> {
        let (name, package_name) = (payload.name, format!("{}.deb", recipe.package));
        let file = name_of_built(name, recipe);
        if !self.is_good(&file) {
            let deb = self.fetch(&package_name, payload.architecture, progress, |archive| {
                let package = archive.find(recipe.package)?;
                Ok((archive.download(&package)?, package.origin()))
            })?;
            progress.step(&format!("building {name}, which takes minutes"), || {
                let _lock = self.lock(name, progress)?;
                if self.is_good(&file) {
                    return Ok(());
                }
                let files = Unpacked::new(&deb, &self.folder, name)?;
                let kernel = kernel_source::build(recipe, &files.0)?;
                let bytes = fs::read(&kernel).map_err(Problem::io(kernel.display()))?;
                let origin = self.origin(&package_name).unwrap_or_default();
                self.store(&file, &bytes, &origin)
            })?;
        }
        Ok(self.folder.join(file))
    }

    fn initramfs(&self, payload: &Payload, progress: &Progress) -> Result<PathBuf, Problem> {
        let name = format!("busybox-{}", payload.architecture);
        let busybox = self.fetch(&name, payload.architecture, progress, |archive| {
            let package = archive.find("busybox-static")?;
            let deb = self.folder.join(format!("{name}.deb"));
            write_whole(&deb, &archive.download(&package)?)?;
            let files = Unpacked::new(&deb, &self.folder, &name)?;
            // Only disk space is at stake.
            let _ = fs::remove_file(&deb);
            let path = files.0.join("bin/busybox");
            let bytes = fs::read(&path).map_err(Problem::io(path.display()))?;
            Ok((bytes, package.origin()))
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

    /// Returns the file at `path` of a package.
    fn file(
        &self,
        payload: &Payload,
        package: &str,
        path: &str,
        progress: &Progress,
    ) -> Result<PathBuf, Problem> {
        let name = payload.name;
        self.fetch(name, payload.architecture, progress, |archive| {
            let package = archive.find(package)?;
            let deb = self.folder.join(format!("{name}.deb"));
            write_whole(&deb, &archive.download(&package)?)?;
            let files = Unpacked::new(&deb, &self.folder, name)?;
            // Only disk space is at stake.
            let _ = fs::remove_file(&deb);
            let path = files.0.join(path);
            let bytes = fs::read(&path).map_err(Problem::io(path.display()))?;
            Ok((bytes, package.origin()))
        })
    }

    /// Returns the path of the cached file `name`. If the cache has no good one, `get` gets the bytes and
    /// their origin.
    fn fetch(
        &self,
        name: &str,
        architecture: &'static str,
        progress: &Progress,
        get: impl FnOnce(&Archive) -> Result<(Vec<u8>, String), Problem>,
    ) -> Result<PathBuf, Problem> {
        let path = self.folder.join(name);
        if self.is_good(name) {
            return Ok(path);
        }
        progress.step(&format!("getting {name} from Debian's packages"), || {
            let lists = format!("apt-{architecture}");
            let archive = Archive::new(self.folder.join(&lists), architecture)?;
            // Fetching takes turns on the lists of packages, and never waits for a kernel that is built.
            let _lock = self.lock(&lists, progress)?;
            if self.is_good(name) {
                return Ok(());
            }
            // Old lists serve if the package they name is still there, and so does a mirror that cannot be
            // reached for some of its lists. A failed update is a problem only if the package cannot be had.
            let updated = archive.update();
            let fetched = get(&archive).map_err(|problem| updated.err().unwrap_or(problem));
            let (bytes, origin) = fetched.map_err(|problem| {
                problem.remedy(
                    "Debian's package servers must be reachable the first time; later the cache is used",
                )
            })?;
            self.store(name, &bytes, &origin)?;
            archive.clean();
            Ok(())
        })?;
        Ok(path)
    }

    /// Puts a file with its digest and its origin into the cache.
    fn store(&self, name: &str, bytes: &[u8], origin: &str) -> Result<(), Problem> {
        write_whole(&self.folder.join(name), bytes)?;
        let record = format!("{}  {origin}\n", sha256_hex(bytes));
        write_whole(&self.digest_path(name), record.as_bytes())
    }

    /// Returns the origin recorded for a cached file.
    fn origin(&self, name: &str) -> Option<String> {
        let record = fs::read_to_string(self.digest_path(name)).ok()?;
        Some(record.split_once("  ")?.1.trim().to_owned())
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

    /// Waits until no other process makes `what`, and says so.
    fn lock(&self, what: &str, progress: &Progress) -> Result<File, Problem> {
        let path = self.folder.join(format!("{what}.lock"));
        let file = File::create(&path).map_err(Problem::io(path.display()))?;
        let lock = |operation| flock(&file, operation);
        match lock(FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => progress.step(&waiting(what), || {
                lock(FlockOperation::LockExclusive).map_err(|error| Problem::io(path.display())(error.into()))
            })?,
            result => result.map_err(|error| Problem::io(path.display())(error.into()))?,
        }
        Ok(file)
    }
}

/// Returns the name in the cache of a kernel that is built from its source. It has a digest of the recipe in
/// it, so a kernel of another configuration is never taken for this one.
fn name_of_built(name: &str, recipe: &Recipe) -> String {
    format!("{name}-{}", &sha256_hex(recipe.text().as_bytes())[..16])
}

/// Returns the title of the step in which this tool waits for another one that makes `what`.
fn waiting(what: &str) -> String {
    format!("waiting for another bulkhead, which is making {what}")
}

/// A kernel and the package that depends on its newest version.
struct KernelPackage<'a> {
    payload: &'a Payload,
    package: &'a str,
}

/// The files of a package, which are deleted when this value is dropped.
struct Unpacked(PathBuf);

impl Unpacked {
    fn new(package: &Path, folder: &Path, name: &str) -> Result<Self, Problem> {
        let files = Self(folder.join(format!("{name}.files.{}", std::process::id())));
        // The folder may be left over from a run that was interrupted.
        let _ = fs::remove_dir_all(&files.0);
        debian::unpack(package, &files.0)?;
        Ok(files)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // Only disk space is at stake.
        let _ = fs::remove_dir_all(&self.0);
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
    fn a_kernel_of_another_recipe_is_not_used() {
        let payloads = Payloads::new(folder("recipe"));
        let payload = find("linux-ppc405").unwrap();
        let Source::Built(recipe) = payload.source else {
            panic!("the kernel is not built from its source");
        };
        let others = [
            Recipe {
                options: "CONFIG_SMP=y\n",
                ..*recipe
            },
            Recipe {
                package: "linux-source-7.0",
                ..*recipe
            },
            Recipe {
                compiler: "powerpc64-linux-gnu-",
                ..*recipe
            },
            Recipe {
                architecture: "mips",
                ..*recipe
            },
        ];
        for other in &others {
            let name = name_of_built(payload.name, other);
            payloads.store(&name, b"other", "p 1").unwrap();
            assert!(
                payloads.is_good(&name) && !payloads.has(payload.name),
                "{other:?}"
            );
        }
        payloads.store(payload.name, b"of no recipe", "p 1").unwrap();
        assert!(!payloads.has(payload.name));
        let name = name_of_built(payload.name, recipe);
        payloads.store(&name, b"own", "p 1").unwrap();
        assert!(payloads.has(payload.name));
        let provided = payloads
            .provide(Request::Whole(payload), &Progress::new())
            .unwrap();
        assert_eq!(fs::read(provided).unwrap(), b"own");
        fs::remove_dir_all(&payloads.folder).unwrap();
    }

    #[test]
    fn whoever_makes_a_payload_holds_up_nobody_who_wants_another() {
        let payloads = Payloads::new(folder("locks"));
        let progress = Progress::new();
        let kernel = payloads.lock("linux-ppc405", &progress).unwrap();
        // Both would wait for ever if the lock was one for all.
        drop(payloads.lock("apt-arm64", &progress).unwrap());
        drop(payloads.lock("linux-arm64", &progress).unwrap());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| payloads.lock("linux-ppc405", &progress).map(drop));
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
            let title = waiting("linux-ppc405");
            while !progress.has(&title) && std::time::Instant::now() < deadline {
                std::thread::yield_now();
            }
            assert!(progress.has(&title), "the one who waits says so");
            drop(kernel);
            other.join().unwrap().unwrap();
        });
        assert!(!progress.has(&waiting("linux-ppc405")));
        fs::remove_dir_all(&payloads.folder).unwrap();
    }

    #[test]
    fn a_cached_busybox_makes_one_initramfs() {
        let payloads = Payloads::new(folder("initramfs"));
        fs::write(payloads.folder.join("busybox-arm64"), "ELF").unwrap();
        fs::write(payloads.digest_path("busybox-arm64"), sha256_hex(b"ELF")).unwrap();
        let progress = Progress::new();
        let one = payloads
            .provide(Request::read("initramfs").unwrap(), &progress)
            .unwrap();
        assert_eq!(fs::read(&one).unwrap(), initramfs::build(b"ELF"));
        assert_eq!(
            payloads
                .provide(Request::read("initramfs").unwrap(), &progress)
                .unwrap(),
            one
        );
        fs::remove_dir_all(&payloads.folder).unwrap();
    }
}
