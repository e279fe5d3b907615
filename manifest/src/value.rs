// SPDX-License-Identifier: Apache-2.0
//! A TOML document as a tree in which every key and value knows its place.
//!
//! The TOML crate parses and recovers. This tree owns its strings. It keeps the order of the file, because
//! numbers of partitions and capabilities follow this order. It widens integers to `i128`, so that a value
//! out of range reaches the rule that names the range instead of a generic parse error.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Code, Diagnostic, FileId, Place, Report};

/// A value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub place: Place,
    pub data: Data,
}

/// A value, by its type.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    Text(String),
    Integer(i128),
    Boolean(bool),
    List(Vec<Value>),
    Table(Table),
    /// A float, a date, or an integer beyond 127 bits. Nothing in our files has such a type.
    Other(&'static str),
}

/// Entries in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub key_place: Place,
    pub value: Value,
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

impl Value {
    pub fn text(&self) -> Option<&str> {
        if let Data::Text(text) = &self.data {
            Some(text)
        } else {
            None
        }
    }

    pub fn integer(&self) -> Option<i128> {
        if let Data::Integer(value) = self.data {
            Some(value)
        } else {
            None
        }
    }

    pub fn boolean(&self) -> Option<bool> {
        if let Data::Boolean(value) = self.data {
            Some(value)
        } else {
            None
        }
    }

    pub fn list(&self) -> Option<&[Value]> {
        if let Data::List(values) = &self.data {
            Some(values)
        } else {
            None
        }
    }

    pub fn table(&self) -> Option<&Table> {
        if let Data::Table(table) = &self.data {
            Some(table)
        } else {
            None
        }
    }

    /// Returns the type in words, for messages.
    pub fn type_name(&self) -> &'static str {
        match &self.data {
            Data::Text(_) => "a string",
            Data::Integer(_) => "an integer",
            Data::Boolean(_) => "a boolean",
            Data::List(_) => "an array",
            Data::Table(_) => "a table",
            Data::Other(name) => name,
        }
    }
}

/// Reads a single value that is written as the default of a key.
pub(crate) fn literal(text: &str) -> Option<Value> {
    let value = DeValue::parse(text).ok()?.into_inner();
    Some(convert(FileId::default(), 0..0, value))
}

/// Parses a document. Every syntax error becomes a finding; the part that could be understood is returned.
pub(crate) fn parse(file: FileId, text: &str, report: &mut Report) -> Table {
    let (document, errors) = DeTable::parse_recoverable(text);
    let table = convert_table(file, document.into_inner());
    let mut repeated_header: Option<usize> = None;
    for error in &errors {
        let start = error.span().map_or(0, |span| span.start);
        let duplicate = error.message().contains("duplicate key");
        // The keys below a repeated table header are repeated too. A finding about the header is enough.
        if duplicate
            && repeated_header.is_some_and(|header| {
                text.get(header..start)
                    .is_some_and(|between| !between.contains("\n["))
            })
        {
            continue;
        }
        if duplicate && line_before(text, start).starts_with('[') {
            repeated_header = Some(start);
        }
        report.push(syntax_error(file, text, error, &table));
    }
    table
}

/// Returns the part of the line of byte `at` that is before this byte.
fn line_before(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    &before[before.rfind('\n').map_or(0, |newline| newline + 1)..]
}

fn place(file: FileId, span: Range<usize>) -> Place {
    Place {
        file,
        start: span.start,
        end: span.end,
    }
}

fn convert_table(file: FileId, table: DeTable<'_>) -> Table {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, value)| Entry {
            key_place: place(file, key.span()),
            key: key.into_inner().into_owned(),
            value: convert(file, value.span(), value.into_inner()),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_place.start);
    Table { entries }
}

fn convert(file: FileId, span: Range<usize>, value: DeValue<'_>) -> Value {
    let data = match value {
        DeValue::String(text) => Data::Text(text.into_owned()),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map_or(Data::Other("an integer that is far too large"), Data::Integer),
        DeValue::Float(_) => Data::Other("a number with a fraction"),
        DeValue::Boolean(value) => Data::Boolean(value),
        DeValue::Datetime(_) => Data::Other("a date"),
        DeValue::Array(values) => Data::List(
            values
                .into_iter()
                .map(|value| {
                    let span = value.span();
                    convert(file, span, value.into_inner())
                })
                .collect(),
        ),
        DeValue::Table(table) => Data::Table(convert_table(file, table)),
    };
    Value {
        place: place(file, span),
        data,
    }
}

fn syntax_error(file: FileId, text: &str, error: &toml::de::Error, table: &Table) -> Diagnostic {
    let span = error.span().unwrap_or(0..0);
    let here = place(file, span.clone());
    let message = error.message().lines().next().unwrap_or("not TOML").to_owned();
    // The parser does not say where a key has too many parts.
    if let ("recursion limit", None) = (message.as_str(), error.span()) {
        return Diagnostic::at(
            Code::Syntax,
            deepest_line(file, text),
            "a name has more parts than TOML's parser follows",
        )
        .label("this one has the most")
        .help("shorten it: no key of a manifest has more than five parts");
    }
    if message.contains("cannot recurse") {
        return Diagnostic::at(Code::Syntax, here, "lists or tables are nested too deeply")
            .help("close some: no value of a manifest is nested more than four deep");
    }
    if !message.contains("duplicate key") {
        return Diagnostic::at(Code::Syntax, here, format!("this is not valid TOML: {message}"))
            .help("see https://toml.io for the syntax; `bulkhead new` writes a manifest to start from");
    }
    let name = text.get(span).unwrap_or_default().trim_matches(['"', '\'']);
    let diagnostic = Diagnostic::at(Code::DuplicateName, here, format!("`{name}` is defined twice"))
        .label("defined again here")
        .help("a name stands for one thing: rename one of the two, or merge them");
    match first_use(table, name, here.start, 3).or_else(|| first_header(file, text, name, here.start)) {
        Some(first) => diagnostic.also(first, "first defined here"),
        None => diagnostic,
    }
}

/// Returns the line with the most dots.
fn deepest_line(file: FileId, text: &str) -> Place {
    let mut start = 0;
    let mut deepest = (0, 0..0);
    for line in text.split_inclusive('\n') {
        let dots = line.bytes().filter(|byte| *byte == b'.').count();
        if dots > deepest.0 {
            deepest = (dots, start..start + line.trim_end().len());
        }
        start += line.len();
    }
    place(file, deepest.1)
}

/// Returns the last key `name` before byte `before`. The search goes at most `depth` tables deep.
fn first_use(table: &Table, name: &str, before: usize, depth: usize) -> Option<Place> {
    let mut found = None;
    for entry in table
        .entries
        .iter()
        .filter(|entry| entry.key_place.start < before)
    {
        if entry.key == name {
            found = Some(entry.key_place);
        } else if let (Some(inner), true) = (entry.value.table(), depth > 0) {
            found = first_use(inner, name, before, depth - 1).or(found);
        }
    }
    found
}

/// Returns the place of `name` at the end of the first table header before byte `before` that ends with
/// `name`.
fn first_header(file: FileId, text: &str, name: &str, before: usize) -> Option<Place> {
    let end = format!("{name}]");
    let mut start = 0;
    for line in text.get(..before)?.split_inclusive('\n') {
        let header = line.trim_end();
        if header.starts_with('[') && header.ends_with(&end) {
            let at = start + header.len() - end.len();
            return Some(Place {
                file,
                start: at,
                end: at + name.len(),
            });
        }
        start += line.len();
    }
    None
}
