// SPDX-License-Identifier: Apache-2.0
//! The JSON Schema of a manifest, for editors that complete and check TOML with a schema.

use serde_json::{Map, Value, json};

use super::form::Declared;
use super::{Key, Need, TableSchema, ValueKind};
use crate::model::Manifest;

/// Returns the schema, with a line break at the end.
#[must_use]
pub fn schema() -> String {
    let mut root = table(Manifest::SCHEMA);
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Bulkhead manifest");
    format!("{root:#}\n")
}

fn table(schema: &TableSchema) -> Value {
    let keys = schema.keys();
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| (key.name.to_owned(), property(key)))
        .collect();
    let required: Vec<&str> = keys
        .iter()
        .filter(|key| matches!(key.need, Need::Required))
        .map(|key| key.name)
        .collect();
    json!({
        "type": "object",
        "description": schema.doc,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn property(key: &Key) -> Value {
    let mut value = kind(&key.kind);
    let absence = key.need.absence();
    let default = absence.map_or_else(String::new, |absence| format!(" Default: {absence}."));
    value["description"] = json!(format!("{}.{default}", sentence(key.doc)));
    value
}

/// Makes the first letter of a text large.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn kind(kind_of: &ValueKind) -> Value {
    match kind_of {
        ValueKind::Text => json!({ "type": "string" }),
        ValueKind::Boolean => json!({ "type": "boolean" }),
        ValueKind::Integer(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        ValueKind::Address => json!({ "type": "integer", "minimum": 0 }),
        ValueKind::Size => json!({ "oneOf": [
            { "type": "string", "pattern": "^[0-9]+ *(K|M|G|KiB|MiB|GiB)?$" },
            { "type": "integer", "minimum": 0 },
        ] }),
        ValueKind::Duration => json!({ "type": "string", "pattern": "^[0-9]+ *(ns|us|ms|s)$" }),
        ValueKind::Choice(_) | ValueKind::OneOf(_) => {
            let choices = kind_of.choices();
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            json!({ "type": "string", "enum": names })
        }
        ValueKind::ChoiceOr { choice, start, .. } => json!({ "anyOf": [
            kind(choice),
            { "type": "string", "pattern": format!("^{start}") },
        ] }),
        ValueKind::List(of) => json!({ "type": "array", "items": kind(of) }),
        ValueKind::Table(of) => table(of),
        ValueKind::Map { of, .. } => json!({ "type": "object", "additionalProperties": table(of) }),
    }
}
