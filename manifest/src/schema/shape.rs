// SPDX-License-Identifier: Apache-2.0
//! Unknown keys, missing keys and wrong types: the findings that need no knowledge of meanings.

use std::ops::RangeInclusive;

use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::Manifest;
use crate::nearest::nearest;
use crate::schema::form::Declared;
use crate::schema::{Need, TableSchema, ValueKind, Word};
use crate::units;
use crate::value::{Data, Entry, Table, Value};

/// Checks `table`, whose header or braces are at `place`, against `schema`.
pub(crate) fn check(table: &Table, place: Place, schema: &TableSchema, report: &mut Report) {
    let keys = schema.keys();
    for entry in &table.entries {
        match keys.iter().find(|key| key.name == entry.key) {
            Some(key) => check_value(&entry.value, &entry.key, &key.kind, report),
            None => report.push(unknown_key(entry, schema)),
        }
    }
    for key in keys.iter().filter(|key| matches!(key.need, Need::Required)) {
        if table.get(key.name).is_none() {
            report.push(
                Diagnostic::at(
                    Code::MissingKey,
                    place,
                    format!("{} needs `{}`", schema.what, key.name),
                )
                .help(format!(
                    "add `{} = ...`: {}; it is {}",
                    key.name,
                    key.doc,
                    key.kind.describe()
                )),
            );
        }
    }
}

fn unknown_key(entry: &Entry, schema: &TableSchema) -> Diagnostic {
    let keys = schema.keys();
    let known = keys.iter().map(|key| key.name);
    let help = match nearest(&entry.key, known.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let elsewhere = owner_of(&entry.key, Manifest::SCHEMA)
                .map(|what| format!("`{}` is a key of {what}; ", entry.key))
                .unwrap_or_default();
            let known = known.collect::<Vec<_>>().join(", ");
            format!("{elsewhere}known keys: {known}")
        }
    };
    let message = format!("unknown key `{}` in {}", entry.key, schema.what);
    Diagnostic::at(Code::UnknownKey, entry.key_place, message).help(help)
}

/// Returns the noun of the first table in `schema` that has this key. Tables within tables are searched, too.
fn owner_of(name: &str, schema: &'static TableSchema) -> Option<&'static str> {
    let keys = schema.keys();
    if keys.iter().any(|key| key.name == name) {
        return Some(schema.what);
    }
    let tables = keys.iter().filter_map(|key| inner(key.kind));
    tables.into_iter().find_map(|table| owner_of(name, table))
}

/// Returns the tables that a value of this kind consists of.
fn inner(kind: ValueKind) -> Option<&'static TableSchema> {
    match kind {
        ValueKind::Table(schema) => Some(schema),
        ValueKind::Map { of, .. } => Some(of),
        ValueKind::List(of) => inner(*of),
        _ => None,
    }
}

fn check_value(value: &Value, name: &str, kind: &ValueKind, report: &mut Report) {
    let fits = match (kind, &value.data) {
        (ValueKind::Text, Data::Text(_)) | (ValueKind::Boolean, Data::Boolean(_)) => true,
        (ValueKind::Integer(low, high), Data::Integer(number)) => {
            check_range(value, name, *number, *low..=*high, report);
            true
        }
        (ValueKind::Address, Data::Integer(number)) => {
            check_range(value, name, *number, 0..=u64::MAX, report);
            true
        }
        (ValueKind::Size, Data::Integer(number)) => {
            check_range(value, name, *number, 0..=u64::MAX, report);
            true
        }
        (ValueKind::Size, Data::Text(text)) => {
            check_unit(value, name, kind, units::parse_size(text).is_some(), report);
            true
        }
        (ValueKind::Duration, Data::Text(text)) => {
            check_unit(value, name, kind, units::parse_duration(text).is_some(), report);
            true
        }
        (ValueKind::ChoiceOr { start, .. }, Data::Text(text)) if text.starts_with(start) => true,
        (ValueKind::Choice(_) | ValueKind::ChoiceOr { .. } | ValueKind::OneOf(_), Data::Text(text)) => {
            let choices = kind.choices();
            check_choice(value, name, text, &choices, report);
            true
        }
        (ValueKind::List(of), Data::List(values)) => {
            for value in values {
                check_value(value, name, of, report);
            }
            true
        }
        (ValueKind::Table(schema), Data::Table(table)) => {
            check(table, value.place, schema, report);
            true
        }
        (ValueKind::Map { of, .. }, Data::Table(table)) => {
            for entry in &table.entries {
                check_value(&entry.value, &entry.key, &ValueKind::Table(of), report);
            }
            true
        }
        _ => false,
    };
    if !fits {
        let message = format!(
            "`{name}` is {}, but must be {}",
            value.type_name(),
            kind.describe()
        );
        report.push(
            Diagnostic::at(Code::WrongType, value.place, message).help(match (kind, &value.data) {
                (ValueKind::Duration, Data::Integer(number)) => format!("give a unit: \"{number}ms\""),
                (ValueKind::List(_), Data::Text(text)) => format!("write an array: [\"{text}\"]"),
                (ValueKind::Boolean, Data::Text(text)) if text == "true" || text == "false" => {
                    format!("write {text} without quotes")
                }
                (ValueKind::Integer(..) | ValueKind::Address, Data::Text(_)) => {
                    "write the number without quotes".to_owned()
                }
                _ => format!("give {}", kind.describe()),
            }),
        );
    }
}

fn check_range(value: &Value, name: &str, number: i128, range: RangeInclusive<u64>, report: &mut Report) {
    let (low, high) = range.into_inner();
    if number >= i128::from(low) && number <= i128::from(high) {
        return;
    }
    let range = if high == u64::MAX {
        "64 bits without a sign".to_owned()
    } else {
        format!("{low} to {high}")
    };
    report.push(
        Diagnostic::at(
            Code::OutOfRange,
            value.place,
            format!("`{name}` is {number}, outside {range}"),
        )
        .help(format!("choose a value within {range}")),
    );
}

fn check_unit(value: &Value, name: &str, kind: &ValueKind, parsed: bool, report: &mut Report) {
    if !parsed {
        let message = format!("`{name}` is not {}", kind.describe());
        report.push(
            Diagnostic::at(Code::BadUnit, value.place, message)
                .help("write a whole number directly followed by its unit"),
        );
    }
}

fn check_choice(value: &Value, name: &str, text: &str, choices: &[Word], report: &mut Report) {
    if choices.iter().any(|(choice, _)| *choice == text) {
        return;
    }
    let names = choices.iter().map(|(choice, _)| *choice);
    let all = names
        .clone()
        .map(|choice| format!("\"{choice}\""))
        .collect::<Vec<_>>()
        .join(", ");
    let help = match nearest(text, names) {
        Some(choice) => format!("did you mean \"{choice}\"? Possible: {all}"),
        None => format!("possible: {all}"),
    };
    let message = format!("`{name}` cannot be \"{text}\"");
    report.push(Diagnostic::at(Code::UnknownChoice, value.place, message).help(help));
}
