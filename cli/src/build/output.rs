// SPDX-License-Identifier: Apache-2.0
//! The files that a command writes at its end.
//!
//! A command claims its files before its work, which may take minutes. So the user learns at once of a path
//! that cannot be written, and a file that the command reads is never replaced.

use crate::problem::Problem;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A file to be written, which can be.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// True if the file was made by the claim: a claim that comes to nothing leaves nothing.
    is_new: bool,
}

impl Output {
    /// Claims `path`.
    ///
    /// # Errors
    /// The path is one of `inputs`, or cannot be written.
    pub fn claim(path: &Path, inputs: &[impl AsRef<Path>]) -> Result<Self, Problem> {
        if is_one_of(path, inputs) {
            return Err(Problem::usage(format!(
                "{} is read, it cannot be the output, too",
                path.display()
            ))
            .remedy("name another file"));
        }
        // To open a pipe waits until somebody reads.
        if path.metadata().is_ok_and(|file| file.file_type().is_fifo()) {
            let message = format!(
                "{} is a pipe, and the output is written as a whole",
                path.display()
            );
            return Err(Problem::usage(message).remedy("name a file"));
        }
        let is_new = !path.exists();
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(Problem::io(path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            is_new,
        })
    }

    /// Claims `path` if there is one.
    ///
    /// # Errors
    /// As [`Output::claim`].
    pub fn claim_if(path: Option<&Path>, inputs: &[impl AsRef<Path>]) -> Result<Option<Self>, Problem> {
        path.map(|path| Self::claim(path, inputs)).transpose()
    }

    /// Claims two files of a command.
    ///
    /// # Errors
    /// As [`Output::claim`], or both are the same file.
    pub fn claim_both(
        first: Option<&Path>,
        second: Option<&Path>,
        inputs: &[impl AsRef<Path>],
    ) -> Result<(Option<Self>, Option<Self>), Problem> {
        let both = (Self::claim_if(first, inputs)?, Self::claim_if(second, inputs)?);
        if let (Some(first), Some(second)) = &both
            && is_one_of(&second.path, &[&first.path])
        {
            return Err(
                Problem::usage(format!("{} cannot be both outputs", second.path.display()))
                    .remedy("name two files"),
            );
        }
        Ok(both)
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the whole file.
    ///
    /// # Errors
    /// The file cannot be written any more.
    pub fn write(mut self, bytes: impl AsRef<[u8]>) -> Result<(), Problem> {
        self.is_new = false;
        fs::write(&self.path, bytes).map_err(Problem::io(self.path.display()))
    }
}

/// Tells whether `path` is the same file as one of `others`, by any name.
pub fn is_one_of(path: &Path, others: &[impl AsRef<Path>]) -> bool {
    // The same device and number: links of both kinds lead to the same file.
    let identity = |path: &Path| path.metadata().map(|file| (file.dev(), file.ino())).ok();
    let Some(file) = identity(path) else {
        return false;
    };
    others.iter().any(|other| identity(other.as_ref()) == Some(file))
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_new {
            // A file that cannot be removed is empty: it does not mislead.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &[&Path] = &[];

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bulkhead-output-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn an_input_is_never_replaced_whatever_it_is_called() {
        let folder = folder("input");
        let input = folder.join("x.toml");
        fs::write(&input, "precious").unwrap();
        let other = folder.join(".").join("x.toml");
        let (soft, hard) = (folder.join("soft"), folder.join("hard"));
        std::os::unix::fs::symlink(&input, &soft).unwrap();
        fs::hard_link(&input, &hard).unwrap();
        for name in [&input, &other, &soft, &hard] {
            assert!(Output::claim(name, &[&input]).is_err(), "{}", name.display());
        }
        assert_eq!(fs::read_to_string(&input).unwrap(), "precious");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_refused_at_once() {
        let folder = folder("pipe");
        let pipe = folder.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        assert!(Output::claim(&pipe, NONE).is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn two_outputs_are_two_files() {
        let folder = folder("both");
        let (one, two) = (folder.join("one"), folder.join("two"));
        assert!(Output::claim_both(Some(&one), Some(&two), NONE).is_ok());
        let same = folder.join(".").join("one");
        assert!(Output::claim_both(Some(&one), Some(&same), NONE).is_err());
        assert!(!one.exists(), "nothing is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_claim_that_comes_to_nothing_leaves_nothing_and_an_old_file_as_it_was() {
        let folder = folder("claim");
        let (new, old) = (folder.join("new"), folder.join("old"));
        fs::write(&old, "old").unwrap();
        drop(Output::claim(&new, NONE).unwrap());
        drop(Output::claim(&old, NONE).unwrap());
        assert!(!new.exists());
        assert_eq!(fs::read_to_string(&old).unwrap(), "old");
        Output::claim(&old, &[&new]).unwrap().write("new").unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "new");
        assert!(Output::claim(&folder.join("none/x"), NONE).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
