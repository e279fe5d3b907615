// SPDX-License-Identifier: Apache-2.0
//! The disc that starts a PC: an ISO 9660 file with GRUB, which loads the flashable file by the Multiboot2
//! Specification.
//!
//! GRUB's own `grub-mkrescue` makes the file. A PC without a disc drive starts from a USB stick with the same
//! bytes.

use super::debian;
use super::host;
use crate::problem::Problem;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// GRUB's menu: one entry, at once. The console is the serial line's, which GRUB leaves alone.
const MENU: &str = "set timeout=0
menuentry Bulkhead {
    multiboot2 /boot/bulkhead.elf
    boot
}
";
/// The programs, and GRUB's code for a PC with a BIOS.
const PROGRAMS: [&str; 2] = ["grub-mkrescue", "xorriso"];
const MODULES: &str = "/usr/lib/grub/i386-pc";

/// A folder of this process. The folder is removed when this value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Self, Problem> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("bulkhead-disc-{}-{number}", process::id()));
        let folder = Self(path);
        let grub = folder.0.join("files/boot/grub");
        fs::create_dir_all(&grub).map_err(Problem::io(grub.display()))?;
        Ok(folder)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Problem> {
        let path = self.0.join(name);
        fs::write(&path, bytes).map_err(Problem::io(path.display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Only disk space is at stake.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the contents of an ISO file that starts the flashable file `flash`.
///
/// # Errors
/// A program is missing or fails, or files cannot be written.
pub fn make(flash: &[u8]) -> Result<Vec<u8>, Problem> {
    let is_there = PROGRAMS.into_iter().all(host::is_installed) && Path::new(MODULES).is_dir();
    if !is_there {
        return Err(
            Problem::new("an ISO file needs GRUB for a PC and xorriso, which are not installed")
                .remedy("install the Debian packages grub-common, grub-pc-bin and xorriso"),
        );
    }
    let folder = Folder::create()?;
    folder.write("files/boot/bulkhead.elf", flash)?;
    folder.write("files/boot/grub/grub.cfg", MENU.as_bytes())?;
    let file = folder.0.join("disc.iso");
    let mut command = Command::new("grub-mkrescue");
    command.arg("-d").arg(MODULES).arg("-o").arg(&file);
    debian::run(command.arg(folder.0.join("files")))?;
    fs::read(&file).map_err(Problem::io(file.display()))
}
