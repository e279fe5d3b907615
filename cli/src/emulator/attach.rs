// SPDX-License-Identifier: Apache-2.0
//! Disks and networks of a system, ready for the emulator of its board.
//!
//! The board file has the arguments that plug something into a device. The manifest says what is plugged in.
//! A disk without a file of its own is an empty (sparse) file, which is gone when the [`Attachments`] are
//! dropped.

use crate::emulator::launch::TemporaryFile;
use crate::problem::Problem;
use bulkhead_manifest::{Attachment, System};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

/// The files that the emulator plugs into devices.
#[derive(Debug, Default)]
pub struct Attachments {
    /// Arguments of the emulator.
    pub arguments: Vec<String>,
    scratch: Vec<TemporaryFile>,
}

impl Attachments {
    /// Returns the attachments of a system whose manifest is in `folder`.
    ///
    /// # Errors
    /// A disk's file is not there, or an empty one cannot be made.
    pub fn new(system: &System, folder: &Path) -> Result<Self, Problem> {
        let mut all = Self::default();
        for attachment in system.attachments() {
            let file = all.file(&attachment, folder)?;
            // In a file's name, the emulator takes a doubled comma for a comma.
            let file = file.display().to_string().replace(',', ",,");
            let arguments = attachment.arguments.iter();
            all.arguments
                .extend(arguments.map(|argument| argument.replace("{file}", &file)));
        }
        Ok(all)
    }

    fn file(&mut self, attachment: &Attachment, folder: &Path) -> Result<PathBuf, Problem> {
        if let Some(name) = &attachment.file {
            let path = folder.join(name);
            is_there(&attachment.device, &path)?;
            return Ok(path);
        }
        let Some(size) = attachment.size else {
            return Ok(PathBuf::new());
        };
        let file = TemporaryFile::write("img", &[])?;
        let path = file.path().to_owned();
        let opened = OpenOptions::new().write(true).open(&path);
        opened
            .and_then(|file| file.set_len(size))
            .map_err(Problem::io(path.display()))?;
        self.scratch.push(file);
        Ok(path)
    }
}

/// Checks that the file of a device's disk exists.
///
/// # Errors
/// It does not.
pub fn is_there(device: &str, path: &Path) -> Result<(), Problem> {
    if path.is_file() {
        return Ok(());
    }
    Err(
        Problem::new(format!("the disk of `{device}` has no file {}", path.display())).remedy(
            "the path is relative to the manifest; `size` instead of `file` makes an empty disk for one run",
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(file: Option<&str>, size: Option<u64>) -> Attachment {
        Attachment {
            device: "d".to_owned(),
            file: file.map(str::to_owned),
            size,
            arguments: Vec::new(),
        }
    }

    #[test]
    fn an_empty_disk_lives_as_long_as_the_run() {
        let mut all = Attachments::default();
        let path = all
            .file(&attachment(None, Some(1 << 20)), Path::new("/"))
            .unwrap();
        assert_eq!(path.metadata().unwrap().len(), 1 << 20);
        drop(all);
        assert!(!path.exists());
    }

    #[test]
    fn a_missing_file_is_named() {
        let mut all = Attachments::default();
        let problem = all
            .file(&attachment(Some("no.img"), None), Path::new("/tmp"))
            .unwrap_err();
        assert!(problem.to_string().contains("/tmp/no.img"), "{problem}");
        let network = all.file(&attachment(None, None), Path::new("/tmp")).unwrap();
        assert_eq!(network, PathBuf::new());
    }
}
