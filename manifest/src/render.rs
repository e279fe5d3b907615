// SPDX-License-Identifier: Apache-2.0
//! Renders findings as text for people: source line, caret, cause, remedy.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::code::Severity;
use crate::diagnostic::{Diagnostic, FileId, Place, Report, Source, Sources};

/// The number of columns that a finding is folded to.
const WIDTH: usize = 140;

/// Renders `diagnostics`, with a blank line after each. Without `colour` the text is plain ASCII, except for
/// the contents of the sources themselves.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    }
    .term_width(WIDTH);
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&renderer.render(&[group(diagnostic, sources)]));
        text.push_str("\n\n");
    }
    text
}

impl Report {
    /// Returns the findings as text, see [`render`].
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        render(&self.diagnostics, &self.sources, colour)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Report {}

fn group<'a>(diagnostic: &'a Diagnostic, sources: &'a Sources) -> Group<'a> {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(&diagnostic.message).id(diagnostic.code.id());
    let mut group = Group::with_title(title);
    if let Some((place, source)) = diagnostic
        .place
        .and_then(|place| Some((place, sources.get(place.file)?)))
    {
        group = group.element(snippet(diagnostic, place, source));
        for file in other_files(diagnostic, place.file) {
            if let Some(source) = sources.get(file) {
                group = group.element(related(diagnostic, file, source, Snippet::source(&source.text)));
            }
        }
    }
    if !diagnostic.help.is_empty() {
        group = group.element(Level::HELP.message(&diagnostic.help));
    }
    group
}

type Annotated<'a> = Snippet<'a, annotate_snippets::Annotation<'a>>;

fn snippet<'a>(diagnostic: &'a Diagnostic, place: Place, source: &'a Source) -> Annotated<'a> {
    let label = (!diagnostic.label.is_empty()).then_some(diagnostic.label.as_str());
    let primary = AnnotationKind::Primary.span(clip(place, source)).label(label);
    related(
        diagnostic,
        place.file,
        source,
        Snippet::source(&source.text).annotation(primary),
    )
}

fn related<'a>(
    diagnostic: &'a Diagnostic,
    file: FileId,
    source: &'a Source,
    snippet: Annotated<'a>,
) -> Annotated<'a> {
    let here = diagnostic
        .related
        .iter()
        .filter(move |(place, _)| place.file == file);
    snippet
        .path(source.path.display().to_string())
        .fold(true)
        .annotations(here.map(|(place, label)| {
            AnnotationKind::Context
                .span(clip(*place, source))
                .label(label.as_str())
        }))
}

/// Returns the files of related places other than the main file, each once.
fn other_files(diagnostic: &Diagnostic, main: FileId) -> Vec<FileId> {
    let mut files = Vec::new();
    for (place, _) in &diagnostic.related {
        if place.file != main && !files.contains(&place.file) {
            files.push(place.file);
        }
    }
    files
}

/// Returns the first line of a place. A table or a list of many lines is pointed at, not quoted.
fn clip(place: Place, source: &Source) -> std::ops::Range<usize> {
    let text = &source.text;
    let mut start = place.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = place.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    let line_end = text[start..end].find('\n').map_or(end, |newline| start + newline);
    start..line_end
}
