// SPDX-License-Identifier: Apache-2.0
//! Files that a user names and that are read whole.

use crate::problem::Problem;
use bulkhead_manifest::{read_file, reason};
use std::path::Path;

/// Files larger than this are not read: no trace, dump or program is.
const MOST: u64 = 4 << 30;

/// Reads an ordinary file. A pipe could wait for ever, and a device have no end: they are refused. The words
/// `instead` say which file was to be given.
///
/// # Errors
/// The file is no ordinary file, or cannot be read.
pub fn read(path: &Path, instead: &str) -> Result<Vec<u8>, Problem> {
    read_file(path, MOST).map_err(|error| {
        Problem::new(format!("`{}` cannot be read: {}", path.display(), reason(&error)))
            .remedy(format!("give the path of {instead}"))
    })
}

/// Reads an ordinary file that is a text.
///
/// # Errors
/// As [`read`]; or the file is no text in UTF-8.
pub fn read_text(path: &Path, instead: &str) -> Result<String, Problem> {
    String::from_utf8(read(path, instead)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Problem::new(format!("`{}` is no text: byte {at} is not UTF-8", path.display()))
            .remedy(format!("give the path of {instead}, saved in UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn pipes_and_devices_are_refused_at_once() {
        let pipe = std::env::temp_dir().join(format!("bulkhead-test-{}.fifo", std::process::id()));
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        for path in [pipe.as_path(), Path::new("/dev/zero"), Path::new("/dev/tty")] {
            let problem = read(path, "a trace").expect_err("it is no file").to_string();
            assert!(
                problem.contains("no ordinary file") && problem.contains("give the path of a trace"),
                "{problem}"
            );
        }
        let _ = std::fs::remove_file(pipe);
    }

    #[test]
    fn what_is_not_there_is_told_with_a_remedy() {
        let problem = read_text(Path::new("/nonexistent"), "a module").expect_err("nothing is there");
        let problem = problem.to_string();
        assert!(
            problem.contains("no such file") && problem.contains("a module"),
            "{problem}"
        );
        assert!(!problem.contains("os error"), "{problem}");
    }
}
