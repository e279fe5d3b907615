// SPDX-License-Identifier: Apache-2.0
//! A class is a folder: class `stub`, whose folders are in `tests/stub-class`, builds, checks and simulates a
//! system. The rest of the tool has only the class's lines in the lists of classes.
#![cfg(feature = "stub-class")]

use bulkhead_manifest::{ClassBinary, CompileInput, NoPayloads, compile, flashable, load};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn manifest() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/stub-class/system.toml")
}

fn tool(command: &str) -> Output {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_bulkhead"));
    tool.arg(command)
        .arg(manifest())
        .output()
        .expect("the tool starts")
}

#[test]
fn it_builds() {
    let system = load(&manifest(), &NoPayloads).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(system.board().class.name(), "stub");
    let binary = ClassBinary::from_elf(&[b"STUB".as_slice(), &[0; 0xffc]].concat()).expect("a class binary");
    let image = compile(
        &system,
        &CompileInput {
            class_binary_len: binary.len(),
            stop_after_ms: None,
            trace_records: None,
        },
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let file = flashable(&binary, &image, &system).expect("a file");
    assert_eq!(file.len(), 0x1000 + image.len());
    // The hypervisor of another class refuses the image.
    let number = bulkhead_arch_api::class::STUB.number;
    assert_eq!(image[12..16], number.to_le_bytes());
}

#[test]
fn it_is_checked() {
    let found = tool("check");
    let text = String::from_utf8_lossy(&found.stdout);
    assert!(
        found.status.success(),
        "{}",
        String::from_utf8_lossy(&found.stderr)
    );
    assert!(text.contains("Board stub: no hardware at all"), "{text}");
}

#[test]
fn it_is_simulated() {
    let found = tool("simulate");
    let text = String::from_utf8_lossy(&found.stdout);
    assert!(
        found.status.success(),
        "{}",
        String::from_utf8_lossy(&found.stderr)
    );
    assert!(text.contains("one") && text.contains("two"), "{text}");
}
