// SPDX-License-Identifier: Apache-2.0
//! `--log DIR`: one file per console, with its exact bytes.

use crate::problem::Problem;
use crate::serial::framing::UNTAGGED;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The files of a run.
#[derive(Debug)]
pub struct LogFiles {
    folder: PathBuf,
    files: BTreeMap<String, File>,
    failed: Option<Problem>,
}

impl LogFiles {
    /// Creates log files in `folder`, one for each of `names` even if its console stays silent.
    ///
    /// # Errors
    /// The folder or a file in it cannot be made.
    pub fn create(folder: &Path, names: &[String]) -> Result<Self, Problem> {
        fs::create_dir_all(folder).map_err(Problem::io(folder.display()))?;
        let mut files = Self {
            folder: folder.to_owned(),
            files: BTreeMap::new(),
            failed: None,
        };
        for name in names {
            files.open(name)?;
        }
        Ok(files)
    }

    /// Appends bytes of a console. The first error is kept for [`LogFiles::finish`].
    pub fn bytes(&mut self, console: &str, bytes: &[u8]) {
        let result = self
            .open(console)
            .and_then(|file| file.write_all(bytes).map_err(Problem::io(console)));
        if let Err(problem) = result {
            self.failed.get_or_insert(problem);
        }
    }

    /// Ends logging.
    ///
    /// # Errors
    /// The error is the first write that failed.
    pub fn finish(self) -> Result<(), Problem> {
        self.failed.map_or(Ok(()), Err)
    }

    fn open(&mut self, console: &str) -> Result<&mut File, Problem> {
        if !self.files.contains_key(console) {
            let path = self.folder.join(file_name(console));
            let file = File::create(&path).map_err(Problem::io(path.display()))?;
            self.files.insert(console.to_owned(), file);
        }
        self.files
            .get_mut(console)
            .ok_or_else(|| Problem::new("a log file is missing"))
    }
}

/// Returns the console whose file of a run this is, by its name.
#[must_use]
pub fn console_of<'n>(path: &Path, consoles: &[&'n str]) -> Option<&'n str> {
    let name = path.file_name()?;
    let mut consoles = consoles.iter().copied();
    consoles.find(|console| name == file_name(console).as_str())
}

/// Returns the name of the file of a console. The console's name comes from the serial line, so the name must
/// not lead out of the folder.
fn file_name(console: &str) -> String {
    if console == UNTAGGED {
        return "untagged.log".to_owned();
    }
    let harmless = |char: char| {
        if char.is_alphanumeric() || "-_.".contains(char) {
            char
        } else {
            '_'
        }
    };
    let name: String = console.chars().map(harmless).collect();
    format!("{}.log", name.trim_start_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_folder() {
        assert_eq!(file_name("linux"), "linux.log");
        assert_eq!(file_name("../../etc/passwd"), "_.._etc_passwd.log");
        assert_eq!(file_name("-"), "untagged.log");
    }

    #[test]
    fn a_file_of_a_run_tells_its_console() {
        let of = |path: &str| console_of(Path::new(path), &["rogue", "other"]);
        assert_eq!(of("logs/rogue.log"), Some("rogue"));
        assert_eq!(
            (of("logs/bulkhead.log"), of("rogue.txt"), of("/")),
            (None, None, None)
        );
    }

    #[test]
    fn bytes_are_exact_and_silent_consoles_have_a_file() {
        let folder = std::env::temp_dir().join(format!("bulkhead-log-{}", std::process::id()));
        let mut files = LogFiles::create(&folder, &["a".to_owned(), "b".to_owned()]).unwrap();
        files.bytes("a", b"x\r\n\x1b[0m");
        files.bytes("c", b"new");
        files.finish().unwrap();
        assert_eq!(fs::read(folder.join("a.log")).unwrap(), b"x\r\n\x1b[0m");
        assert_eq!(fs::read(folder.join("b.log")).unwrap(), b"");
        assert_eq!(fs::read(folder.join("c.log")).unwrap(), b"new");
        fs::remove_dir_all(&folder).unwrap();
    }
}
