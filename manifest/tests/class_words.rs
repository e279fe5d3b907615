// SPDX-License-Identifier: Apache-2.0
//! A remedy for a board of one class names nothing that only another class has.
//!
//! Each bad manifest of the corpus is read once more for a board of each class. Most of them have other
//! mistakes there, which is what is wanted: every rule that speaks is heard on every class where it speaks.

mod support;

use std::path::Path;

use bulkhead_manifest::{Report, load_text, timing};

/// A board of each class, and the words of other classes.
const CLASSES: &[(&str, &[&str])] = &[
    (
        "qemu-virt-aarch64",
        &["x86", "amd64", "PowerPC", "ppc", "MPU", "T32", "bzImage"],
    ),
    (
        "mps2-an500",
        &[
            "x86",
            "amd64",
            "arm64",
            "64-bit Arm",
            "PowerPC",
            "ppc",
            "GIC",
            "TLB",
            "bzImage",
            "zImage",
            "EFI",
        ],
    ),
    (
        "mps2-an505",
        &[
            "x86",
            "amd64",
            "arm64",
            "64-bit Arm",
            "PowerPC",
            "ppc",
            "GIC",
            "TLB",
            "bzImage",
            "zImage",
            "EFI",
        ],
    ),
    (
        "ref405ep",
        &[
            "x86", "amd64", "arm64", "Arm", "MPU", "T32", "GIC", "bzImage", "zImage", "EFI",
        ],
    ),
    (
        "qemu-q35-x86_64",
        &[
            "arm64",
            "Arm",
            "PowerPC",
            "ppc",
            "MPU",
            "T32",
            "GIC",
            "zImage for",
            "PL011",
            "device tree",
        ],
    ),
];

/// Returns the findings about `text`, as if it were the manifest at `path`.
fn report(path: &Path, text: &str) -> Report {
    match load_text(path, text, &support::resolve) {
        Ok(system) => {
            let mut report = system.report().clone();
            report.diagnostics.extend(timing::judge(&system).diagnostics);
            report
        }
        Err(report) => report,
    }
}

/// Returns the text for another board, if it names a board of the tool.
fn moved(text: &str, board: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("board = \""))?;
    (!line.contains(".toml")).then(|| text.replacen(line, &format!("board = \"{board}\""), 1))
}

#[test]
fn no_remedy_names_what_only_another_class_has() {
    let mut wrong = Vec::new();
    let mut heard = 0;
    for path in support::bad_manifests() {
        let path = support::root().join(path);
        // One file of the corpus is no text.
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        for (board, words) in CLASSES {
            let Some(text) = moved(&text, board) else { continue };
            for found in report(&path, &text).diagnostics {
                heard += 1;
                let foreign = words.iter().find(|word| {
                    // A help may repeat the words of the manifest.
                    let said = [&found.help, &found.label]
                        .iter()
                        .any(|said| said.contains(**word));
                    said && !text.contains(**word)
                });
                if let Some(word) = foreign {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    wrong.push(format!(
                        "{name} on {board}: `{word}` in {:?}, {:?}",
                        found.label, found.help
                    ));
                }
            }
        }
    }
    assert!(heard > 500, "only {heard} findings");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
