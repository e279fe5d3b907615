// SPDX-License-Identifier: Apache-2.0
//! The parts of the kernel that a system uses, for `bulkhead check`.

use crate::build::costs::Costs;
use crate::build::tables::table;
use crate::build::variant::TAILORED;
use bulkhead_manifest::System;
use bulkhead_manifest::parts::{UsedPart, Variant, set_of, variant_for};
use comfy_table::Table;
use serde_json::{Value, json};

/// Returns a number, or a dash.
fn cell(number: Option<impl ToString>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

/// Returns each part with its costs and the line that needs it.
pub(super) fn parts(system: &System) -> Table {
    let (costs, class) = (Costs::built_in(), system.board().class.name());
    let mut rows = table(&["part", "trusted lines", "bytes", "line", "needed by"]);
    for used in system.parts(false) {
        let name = used.part.name();
        rows.add_row([
            name.to_owned(),
            cell(costs.lines(name)),
            cell(costs.bytes(name, class)),
            cell(used.line),
            used.why,
        ]);
    }
    rows
}

/// The variant that `build` and `run` take, with its costs.
struct Choice {
    variant: Option<Variant>,
    /// Bytes of code and constants.
    bytes: Option<u64>,
    /// Lines of code.
    lines: Option<u64>,
}

impl Choice {
    fn of(system: &System) -> Self {
        let variant = variant_for(set_of(&system.parts(false)));
        let (costs, class) = (Costs::built_in(), system.board().class.name());
        Self {
            variant,
            bytes: variant.and_then(|variant| costs.variant_bytes(variant.name, class)),
            lines: variant.and_then(|variant| costs.variant_lines(variant.name, class)),
        }
    }
}

/// Returns the sentence that names the variant which `build` and `run` take.
pub(super) fn variant(system: &System) -> String {
    let choice = Choice::of(system);
    let Some(variant) = choice.variant else {
        return "`build` and `run` compile a hypervisor for this system alone: no variant has all its parts."
            .to_owned();
    };
    let size = choice.bytes.map_or_else(String::new, |bytes| {
        format!(", with {bytes} bytes of code and constants")
    });
    let lines = choice
        .lines
        .map_or_else(String::new, |lines| format!(" from {lines} trusted lines"));
    format!(
        "`build` and `run` take the variant `{}` of the hypervisor{size}{lines}.",
        variant.name
    )
}

/// Returns the parts and the variant for programs.
pub(super) fn values(system: &System) -> (Vec<Value>, Value) {
    let (costs, class) = (Costs::built_in(), system.board().class.name());
    let value = |used: UsedPart| {
        let name = used.part.name();
        json!({
            "part": name,
            "lines": costs.lines(name),
            "bytes": costs.bytes(name, class),
            "line": used.line,
            "why": used.why,
        })
    };
    let choice = Choice::of(system);
    let parts = system.parts(false).into_iter().map(value).collect();
    let name = choice.variant.map_or(TAILORED, |variant| variant.name);
    (
        parts,
        json!({ "name": name, "bytes": choice.bytes, "lines": choice.lines }),
    )
}
