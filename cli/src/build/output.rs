// SPDX-License-Identifier: Apache-2.0
//! The files that a command writes at its end.
//!
//! A command claims its files before its work, which may take minutes. So the user learns at once of a path
//! that cannot be written, and a file that the command reads is never replaced.

use crate::problem::Problem;
use std::fs::{self, OpenOptions};
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
    /// The path is that of one of `inputs`, or cannot be written.
    pub fn claim(path: &Path, inputs: &[&Path]) -> Result<Self, Problem> {
        if is_one_of(path, inputs) {
            return Err(Problem::usage(format!(
                "{} is read, it cannot be the output, too",
                path.display()
            ))
            .remedy("name another file"));
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
    pub fn claim_if(path: Option<&Path>, inputs: &[&Path]) -> Result<Option<Self>, Problem> {
        path.map(|path| Self::claim(path, inputs)).transpose()
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

/// Tells whether `path` is the same file as one of `others`, whatever it is called.
pub fn is_one_of(path: &Path, others: &[&Path]) -> bool {
    let Ok(real) = path.canonicalize() else {
        return false;
    };
    others
        .iter()
        .any(|other| other.canonicalize().is_ok_and(|other| other == real))
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_new {
            // A file that cannot be removed is empty: it misleads nobody.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(Output::claim(&other, &[&input]).is_err());
        assert_eq!(fs::read_to_string(&input).unwrap(), "precious");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_claim_that_comes_to_nothing_leaves_nothing_and_an_old_file_as_it_was() {
        let folder = folder("claim");
        let (new, old) = (folder.join("new"), folder.join("old"));
        fs::write(&old, "old").unwrap();
        drop(Output::claim(&new, &[]).unwrap());
        drop(Output::claim(&old, &[]).unwrap());
        assert!(!new.exists());
        assert_eq!(fs::read_to_string(&old).unwrap(), "old");
        Output::claim(&old, &[&new]).unwrap().write("new").unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "new");
        assert!(Output::claim(&folder.join("none/x"), &[]).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
