// SPDX-License-Identifier: Apache-2.0
//! Systems of one program on a microcontroller, and what becomes of them.

use bulkhead_manifest::{CompileInput, PayloadResolver, System, compile, load_text};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A resolver that hands out one file.
struct One(PathBuf);

impl PayloadResolver for One {
    fn resolve(&self, _name: &str) -> Result<PathBuf, String> {
        Ok(self.0.clone())
    }
}

/// Returns the system of a manifest in which each payload is `program`.
pub fn system_of(manifest: &str, name: &str, program: &[u8]) -> Result<System, String> {
    // Tests run at once, and two of them may choose the same name.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = format!("bulkhead-in-place-{name}-{}-{number}", std::process::id());
    let file = std::env::temp_dir().join(file);
    std::fs::write(&file, program).expect("a temporary file");
    let loaded = load_text(Path::new("a.toml"), manifest, &One(file.clone()));
    let _ = std::fs::remove_file(file);
    loaded.map_err(|report| report.render(false))
}

/// Returns the system image of a system with a class binary of 32K.
pub fn image(system: &System) -> Vec<u8> {
    let input = CompileInput {
        class_binary_len: 0x8000,
        stop_after_ms: None,
        trace_records: Some(256),
    };
    compile(system, &input).expect("an image")
}

/// Returns the contents of the segment at `address` of a flashable file.
pub fn contents(file: &[u8], address: u32) -> Option<Vec<u8>> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    let count = usize::from(file[44]);
    let headers = (0..count).map(|index| 52 + 32 * index);
    let found = headers.into_iter().find(|at| word(at + 12) == address)?;
    let (offset, size) = (word(found + 4) as usize, word(found + 16) as usize);
    Some(file[offset..offset + size].to_vec())
}
