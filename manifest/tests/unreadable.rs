// SPDX-License-Identifier: Apache-2.0
//! Paths at which there is no ordinary file: nothing is read there, so the tool does not wait.

use bulkhead_manifest::{NoPayloads, load, read_manifest};
use std::path::Path;
use std::process::Command;

#[test]
fn a_manifest_is_an_ordinary_file() {
    let pipe = std::env::temp_dir().join(format!("bulkhead-manifest-{}.fifo", std::process::id()));
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo");
    for path in [pipe.as_path(), Path::new("/dev/zero"), Path::new("/dev/tty")] {
        let report = read_manifest(path).expect_err("it is no file").render(false);
        assert!(report.contains("it is no ordinary file"), "{report}");
    }
    let _ = std::fs::remove_file(pipe);
}

/// Checks a file of the kernel that is an ordinary one, and makes its readers wait.
#[test]
fn a_file_without_a_length_is_empty() {
    let report = load(Path::new("/proc/kmsg"), &NoPayloads).expect_err("it is no manifest");
    assert!(report.render(false).contains("error"));
}
