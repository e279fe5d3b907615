// SPDX-License-Identifier: Apache-2.0
//! `docs/papers.md` is equal to the output of the code. So every figure of ours in it is equal to the figure
//! of the page that it names. `BLESS=1` writes the page.

use bulkhead_bench::papers;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn the_page_is_current() {
    let text = papers::page(&root()).unwrap_or_else(|problem| panic!("{problem}"));
    let path = root().join(papers::PAGE);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &text).expect("the repository can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{} is out of date: BLESS=1 cargo test -p bulkhead-bench --test papers writes it anew",
        papers::PAGE
    );
}

#[test]
fn each_paper_has_its_tables_and_another_name_is_refused_with_a_list() {
    let text = |name| papers::text(&root(), name, false);
    let all = text("all").unwrap();
    for name in ["acrn", "t-visor", "urtzvisor", "rodosvisor", "hermes"] {
        let one = text(name).unwrap();
        assert!(one.len() < all.len(), "{name}");
    }
    let problem = text("xen").unwrap_err().display().to_string();
    assert!(
        problem.contains("`xen`") && problem.contains("`t-visor`"),
        "{problem}"
    );
}
