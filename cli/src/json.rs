// SPDX-License-Identifier: Apache-2.0
//! The answers of commands for programs: one JSON document per answer, as `docs/json.md` says.
//!
//! Sizes and addresses are numbers of bytes, times are nanoseconds. A key that has no value is null, and no
//! key is ever left out.

use crate::problem::Problem;
use bulkhead_manifest::diagnostic::{Diagnostic, Place, Sources};
use bulkhead_manifest::{Report, Severity};
use serde_json::{Value, json};

/// The version of every document. A new key does not change the version. A key that goes, or gets another
/// meaning, does.
pub const VERSION: u32 = 1;

/// Returns the document of `command` with the keys of `body`, which is an object.
#[must_use]
pub fn document(command: &str, body: Value) -> String {
    let mut document = json!({ "format": format!("bulkhead-{command}"), "version": VERSION });
    if let (Value::Object(all), Value::Object(body)) = (&mut document, body) {
        all.extend(body);
    }
    format!("{document:#}\n")
}

/// Returns the document of a `command` that could not give its answer.
#[must_use]
pub fn problem(command: &str, problem: &Problem) -> String {
    let body = json!({
        "command": command,
        "message": problem.message(),
        "help": problem.help(),
        "findings": problem.findings(),
        "exit_code": problem.code() as u8,
    });
    document("problem", body)
}

/// Returns the findings of a check as a list.
#[must_use]
pub fn findings(report: &Report) -> Vec<Value> {
    let all = report.diagnostics.iter();
    all.map(|found| finding(found, &report.sources)).collect()
}

fn finding(found: &Diagnostic, sources: &Sources) -> Value {
    let related = found.related.iter().map(|(place, label)| {
        let mut related = position(Some(*place), sources);
        related["label"] = json!(label);
        related
    });
    let mut value = json!({
        "code": found.code.id(),
        "severity": match found.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "message": found.message,
        "label": found.label,
        "help": found.help,
        "related": related.collect::<Vec<_>>(),
    });
    if let (Value::Object(all), Value::Object(place)) = (&mut value, position(found.place, sources)) {
        all.extend(place);
    }
    value
}

/// Returns the file, line and column of a place.
fn position(place: Option<Place>, sources: &Sources) -> Value {
    let Some((place, source)) = place.and_then(|place| Some((place, sources.get(place.file)?))) else {
        return json!({ "file": null, "line": null, "column": null });
    };
    let (line, column) = sources.line_column(place);
    json!({ "file": source.path.display().to_string(), "line": line, "column": column })
}
