// SPDX-License-Identifier: Apache-2.0
//! Helpers that the targets for manifests and payloads share.
#![allow(dead_code, reason = "each target uses a part of it")]

use bulkhead_manifest::{CompileInput, compile, load_text};
use std::path::{Path, PathBuf};

/// Returns the path of a file of this process.
pub fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("bulkhead-fuzz-{}-{name}", std::process::id()))
}

/// Returns the path of a program that every name of a payload stands for: a loop, as a raw binary.
pub fn program() -> PathBuf {
    static MADE: std::sync::LazyLock<PathBuf> = std::sync::LazyLock::new(|| {
        let path = file("program");
        std::fs::write(&path, 0x1400_0000_u32.to_le_bytes()).expect("the temporary folder can be written");
        path
    });
    MADE.clone()
}

/// Loads `text`, renders the findings, and compiles an accepted manifest. `@file` is `payload`, every other
/// name a loop.
pub fn exercise(text: &str, path: &Path, payload: &Path) {
    let resolve = |name: &str| {
        Ok(if name == "@file" {
            payload.to_owned()
        } else {
            program()
        })
    };
    match load_text(path, text, &resolve) {
        Ok(system) => {
            let _ = (system.memory_map(), system.interrupts(), system.devices());
            let _ = (system.cpu_assignment(), system.who_can_touch_what());
            let input = CompileInput {
                class_binary_len: 0x2_0000,
                stop_after_ms: None,
                trace_records: None,
            };
            compile(&system, &input).unwrap_or_else(|error| panic!("accepted, but {error}"));
        }
        Err(report) => {
            assert!(report.has_errors());
            assert!(!report.render(true).is_empty() && !report.render(false).is_empty());
        }
    }
}
