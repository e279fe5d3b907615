// SPDX-License-Identifier: Apache-2.0
//! The parts of the kernel that a system uses, for `bulkhead check`.

use crate::build::tables::table;
use bulkhead_manifest::System;
use bulkhead_manifest::parts::{UsedPart, set_of, variant_for};
use comfy_table::Table;
use serde_json::{Value, json};

/// Returns each part with the line that needs it.
pub(super) fn parts(system: &System) -> Table {
    let mut rows = table(&["part", "line", "needed by"]);
    for used in system.parts(false) {
        let line = used.line.map_or_else(|| "-".to_owned(), |line| line.to_string());
        rows.add_row([used.part.name().to_owned(), line, used.why]);
    }
    rows
}

/// Returns the sentence that names the variant which `build` and `run` take.
pub(super) fn variant(system: &System) -> String {
    let used = system.parts(false);
    let variant = variant_for(set_of(&used));
    format!(
        "`build` and `run` take the variant `{}` of the hypervisor.",
        variant.name
    )
}

/// Returns the parts and the variant for programs.
pub(super) fn values(system: &System) -> (Vec<Value>, Value) {
    let used = system.parts(false);
    let variant = variant_for(set_of(&used)).name;
    let value = |used: UsedPart| json!({ "part": used.part.name(), "line": used.line, "why": used.why });
    (used.into_iter().map(value).collect(), json!(variant))
}
