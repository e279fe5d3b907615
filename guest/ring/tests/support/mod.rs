// SPDX-License-Identifier: Apache-2.0
//! Programs in C beside these tests.

use std::path::Path;
use std::process::Command;

/// Compiles `NAME.c`, runs it, and returns the numbers that it prints, one a line. It must end with 0.
pub fn words_of(name: &str) -> Vec<u32> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{name}.c"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let built = Command::new("cc")
        .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status()
        .unwrap();
    assert!(built.success());
    let run = Command::new(&program).output().unwrap();
    assert!(run.status.success(), "{}", run.status);
    let printed = String::from_utf8(run.stdout).unwrap();
    printed.lines().map(|line| line.parse().unwrap()).collect()
}
