// SPDX-License-Identifier: Apache-2.0
//! The tool's answers about `tests/texts/system.toml`, a system with every policy, are the texts in the files
//! beside it.
//!
//! `BLESS=1 cargo test -p bulkhead --test texts` writes the files anew. They hold only texts that follow from
//! the manifest: tables, refusals, simulated times. The author of a change sees a text there as its readers
//! will.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the tool's answer and its exit code.
fn tool(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bulkhead"))
        .current_dir(root())
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("the tool runs");
    let code = output.status.code().expect("it ends by itself");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}{}exit code {code}\n",
        text(&output.stdout),
        text(&output.stderr)
    )
}

fn is_in_file(name: &str, text: &str) {
    let path = root().join("tests/texts").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, text).expect("the file can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let first = expected.lines().zip(text.lines()).find(|(old, new)| old != new);
    assert!(
        expected == text,
        "{name} differs, first in (expected, printed) {first:?}"
    );
}

const SYSTEM: &str = "tests/texts/system.toml";

#[test]
fn check_and_its_suggestions() {
    is_in_file("check.txt", &tool(&["check", "--suggest", SYSTEM]));
}

#[test]
fn simulate_and_a_report_of_it() {
    let folder = std::env::temp_dir().join(format!("bulkhead-texts-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("there is room");
    let file = |name: &str| folder.join(name).display().to_string();
    let (trace, page) = (file("simulated.trace"), file("page.html"));
    let simulated = tool(&[
        "simulate",
        SYSTEM,
        "--duration",
        "0.2",
        "--trace",
        &trace,
        "--html",
        &page,
    ]);
    let reported = tool(&["report", &trace]);
    let listed = tool(&["report", &trace, "--list", "0..2"]);
    let html = fs::read_to_string(&page).unwrap_or_default();
    fs::remove_dir_all(&folder).expect("it was made above");
    is_in_file("simulate.txt", &simulated);
    is_in_file("report.txt", &reported);
    is_in_file("list.txt", &listed);
    // The chart has each vCPU, and no part of it is elsewhere.
    for lane in [
        "control", "planner", "flight", "display", "camera", "radio", "alarm", "driver", "batch", "motor",
    ] {
        assert!(html.contains(&format!(">{lane}</text>")), "no lane of {lane}");
    }
    for (mark, text) in [
        ("critical", "critical interrupt"),
        ("period", "period starts"),
        ("exhausted", "budget used up"),
    ] {
        assert!(
            html.contains(&format!("class=\"mark {mark}\"")) && html.contains(text),
            "no mark {mark}"
        );
    }
    assert!(html.contains("@media print") && html.contains("wheel") && !html.contains("http"));
}

#[test]
fn policies() {
    is_in_file("policies.txt", &tool(&["policies"]));
}
