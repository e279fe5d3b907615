// SPDX-License-Identifier: Apache-2.0
//! Manifests: any text is either refused with a report that can be shown, or compiles.
#![no_main]

mod support;

use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        support::exercise(text, Path::new("/nonexistent/system.toml"), &support::program());
    }
});
