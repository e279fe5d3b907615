// SPDX-License-Identifier: Apache-2.0
//! Keys of manifests: a manifest that is right, with changes to its keys and values, is either refused with a
//! report, or it compiles, and the reader of the hypervisor takes the image.
#![no_main]

#[path = "../../manifest/tests/support/mutate.rs"]
mod mutate;
mod support;

use bulkhead_image::{Image, Portable};
use bulkhead_manifest::{CompileInput, compile, load_text, schema, timing};
use libfuzzer_sys::fuzz_target;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static SCHEMA: LazyLock<String> = LazyLock::new(schema);

/// Returns the programs that the manifests name.
fn program(name: &str) -> Result<PathBuf, String> {
    let mut programs = mutate::PROGRAMS.iter();
    let (_, file) = programs.find(|(known, _)| *known == name).ok_or("no such program")?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/config-bad/payloads");
    Ok(folder.join(file))
}

fuzz_target!(|data: &[u8]| {
    let text = mutate::mutated(data, &SCHEMA);
    match load_text(Path::new("/nonexistent/system.toml"), &text, &program) {
        Ok(system) => {
            let _ = (system.memory_map(), system.interrupts(), system.devices());
            let _ = (system.who_can_touch_what(), timing::judge(&system));
            let input = CompileInput {
                class_binary_len: 0x2_0000,
                stop_after_ms: None,
                trace_records: None,
            };
            let image = compile(&system, &input).unwrap_or_else(|error| panic!("accepted, but {error}"));
            let class = system.board().class.facts();
            Image::check(&image, class, &Portable).expect("what is compiled is right");
        }
        Err(report) => {
            assert!(report.has_errors());
            assert!(!report.render(true).is_empty());
        }
    }
});
