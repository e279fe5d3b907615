// SPDX-License-Identifier: Apache-2.0
//! The findings of the tool about a manifest.
//!
//! A [`Diagnostic`] is data: a [`Code`], a message (the cause), the place in a file, a label under the caret,
//! perhaps a second place, and a remedy. Only [`crate::render`] makes text for people, so that an editor or a
//! test can read the same facts without parsing prose.

use std::path::{Path, PathBuf};

pub use crate::code::{Code, Severity};

/// A file among the [`Sources`] of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId(pub(crate) usize);

/// A stretch of a source file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: usize,
    /// The first byte after the stretch.
    pub end: usize,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The rule that made the finding.
    pub code: Code,
    /// The cause, one line.
    pub message: String,
    /// The place, if the finding is about a place in a file.
    pub place: Option<Place>,
    /// The text at that place; may be empty.
    pub label: String,
    /// Other places that take part, for example the first use of a name.
    pub related: Vec<(Place, String)>,
    /// The remedy.
    pub help: String,
}

impl Diagnostic {
    /// Makes a finding about `place`.
    pub(crate) fn at(code: Code, place: Place, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            place: Some(place),
            label: String::new(),
            related: Vec::new(),
            help: String::new(),
        }
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(crate) fn also(mut self, place: Place, label: impl Into<String>) -> Self {
        self.related.push((place, label.into()));
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// Returns the severity, which follows from the code.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

/// A source file as it was read.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path as the user gave it.
    pub path: PathBuf,
    /// The text of the file.
    pub text: String,
}

/// The files that places refer to.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    pub(crate) fn add(&mut self, path: &Path, text: String) -> FileId {
        self.files.push(Source {
            path: path.to_owned(),
            text,
        });
        FileId(self.files.len() - 1)
    }

    /// Returns the file of a place.
    #[must_use]
    pub fn get(&self, file: FileId) -> Option<&Source> {
        self.files.get(file.0)
    }

    /// Returns line and column of the first byte of `place`, both counted from 1. Columns count characters.
    #[must_use]
    pub fn line_column(&self, place: Place) -> (u32, u32) {
        let Some(source) = self.get(place.file) else {
            return (0, 0);
        };
        let mut start = place.start.min(source.text.len());
        while !source.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &source.text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        (line as u32, before[line_start..].chars().count() as u32 + 1)
    }
}

/// All findings, with the sources to show them in.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The findings, errors first, each group in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that the findings point into.
    pub sources: Sources,
    /// Errors and warnings that were found and are not kept, each with the code of the last one.
    left_out: [Option<(Code, usize)>; 2],
}

/// Errors, and warnings, that are kept. A person reads no more, and each costs a search for its line.
const MOST: usize = 100;

impl Report {
    /// Makes a report of these files, without a finding.
    pub(crate) fn about(sources: Sources) -> Self {
        Self {
            sources,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.contains(&diagnostic) {
            return;
        }
        let severity = diagnostic.severity();
        if self.kept(severity) < MOST {
            self.diagnostics.push(diagnostic);
            return;
        }
        let left_out = &mut self.left_out[severity as usize];
        let before = left_out.map_or(0, |(_, count)| count);
        *left_out = Some((diagnostic.code, before + 1));
    }

    fn kept(&self, severity: Severity) -> usize {
        let all = self.diagnostics.iter();
        all.filter(|diagnostic| diagnostic.severity() == severity).count()
    }

    /// Tells whether a finding is about something within `place`.
    pub(crate) fn blames(&self, place: Place) -> bool {
        let within =
            |other: Place| other.file == place.file && place.start <= other.start && other.end <= place.end;
        self.diagnostics
            .iter()
            .any(|found| found.place.is_some_and(within))
    }

    /// Tells whether any finding is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity() == Severity::Error)
    }

    pub(crate) fn error_count(&self) -> usize {
        let left_out = self.left_out[0].map_or(0, |(_, count)| count);
        self.kept(Severity::Error) + left_out
    }

    /// Takes the findings of another report about the same files.
    pub(crate) fn absorb(&mut self, other: Self) {
        for diagnostic in other.diagnostics {
            self.push(diagnostic);
        }
        for (own, others) in self.left_out.iter_mut().zip(other.left_out) {
            let before = own.map_or(0, |(_, count)| count);
            *own = others.map(|(code, count)| (code, before + count)).or(*own);
        }
    }

    /// Puts the findings in order. The last one of a severity says how many more there are.
    pub(crate) fn sort(&mut self) {
        self.diagnostics.sort_by_key(|diagnostic| {
            (
                diagnostic.severity(),
                diagnostic
                    .place
                    .map_or((0, 0), |place| (place.file.0, place.start)),
            )
        });
        for (severity, noun) in [(Severity::Error, "errors"), (Severity::Warning, "warnings")] {
            let Some((code, count)) = self.left_out[severity as usize].take() else {
                continue;
            };
            let last = self
                .diagnostics
                .partition_point(|diagnostic| diagnostic.severity() <= severity);
            let rest = Diagnostic {
                code,
                message: format!("{count} more {noun} are not shown"),
                place: None,
                label: String::new(),
                related: Vec::new(),
                help: "mend those that are shown, then check again".to_owned(),
            };
            self.diagnostics.insert(last, rest);
        }
    }
}
