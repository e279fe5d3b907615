// SPDX-License-Identifier: Apache-2.0
//! The generated pages of the book and the schema are equal to the output of the code. `BLESS=1` writes them.

mod support;

use bulkhead_manifest::{error_index_markdown, reference_markdown, schema};

fn check(name: &str, text: &str) {
    let path = support::root().join("docs").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).expect("the repository can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "docs/{name} is out of date: BLESS=1 cargo test -p bulkhead-manifest writes it anew"
    );
}

#[test]
fn schema_is_current() {
    check("manifest.schema.json", &schema());
}

#[test]
fn reference_is_current() {
    check("manifest-reference.md", &reference_markdown());
}

#[test]
fn error_index_is_current() {
    let manifests = support::bad_manifests();
    let folder = |name: &str| {
        let path = manifests
            .iter()
            .find(|path| path.file_stem().is_some_and(|stem| stem == name));
        let folder = path.and_then(|path| path.iter().rev().nth(1));
        folder.map_or_else(String::new, |folder| folder.to_string_lossy().into_owned())
    };
    check("manifest-errors.md", &error_index_markdown(folder));
}
