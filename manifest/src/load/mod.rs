// SPDX-License-Identifier: Apache-2.0
//! Makes a checked system from a manifest file, in stages. A stage runs only if its input is sound.
#![deny(clippy::arithmetic_side_effects)]

mod draft;
mod guests;

use std::path::{Path, PathBuf};

use crate::board::Board;
use crate::board_file;
use crate::class;
use crate::diagnostic::{Code, Diagnostic, FileId, Place, Report};
use crate::model::{Manifest, PartitionSpec};
use crate::parts::{self, UsedPart};
use crate::payload::{self, Loader, PayloadResolver, no_payload, read_file, reason};
use crate::place;
use crate::rules;
use crate::schema;
use crate::schema::form::{Declared, Head};
use crate::system::System;
use crate::value::{self, Data, Table, Value};
use draft::Draft;

/// Largest size of a manifest. Larger manifests are refused.
const MANIFEST_MAX: usize = 256 << 10;

/// Reads, checks and plans the manifest at `path`. Named payloads (`@...`) come from `resolver`.
///
/// # Errors
/// A [`Report`] with every error found, and warnings. Warnings alone are in [`System::report`].
pub fn load(path: &Path, resolver: &dyn PayloadResolver) -> Result<System, Report> {
    load_text(path, &read_manifest(path)?, resolver)
}

/// Reads the text of the manifest at `path`.
///
/// # Errors
/// A report that says why there is no text, and where it ends if that is known.
pub fn read_manifest(path: &Path) -> Result<String, Report> {
    let mut report = Report::default();
    let bytes = match read_file(path, (MANIFEST_MAX as u64).saturating_add(1)) {
        Ok(bytes) => bytes,
        Err(error) => {
            let file = report.sources.add(path, String::new());
            let message = format!(
                "the manifest `{}` cannot be read: {}",
                path.display(),
                reason(&error)
            );
            let place = Place {
                file,
                start: 0,
                end: 0,
            };
            report.push(
                Diagnostic::at(Code::Unreadable, place, message)
                    .help("give the path of a manifest; `bulkhead new` writes one to start from"),
            );
            return Err(report);
        }
    };
    String::from_utf8(bytes).map_err(|error| {
        let start = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(start).copied().unwrap_or_default();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let file = report.sources.add(path, text);
        // The replacement character of the text stands for the bytes that are none.
        let end = start.saturating_add(char::REPLACEMENT_CHARACTER.len_utf8());
        let message = format!("byte {start} of the manifest, {byte:#04x}, is not UTF-8");
        report.push(
            Diagnostic::at(Code::Unreadable, Place { file, start, end }, message)
                .label("what stands here is in another encoding")
                .help("save the file as UTF-8; TOML has no other encoding"),
        );
        report
    })
}

/// Does the same as [`load`] for a text at hand; relative paths start at `path`.
///
/// # Errors
/// The same as for [`load`].
pub fn load_text(path: &Path, text: &str, resolver: &dyn PayloadResolver) -> Result<System, Report> {
    Unchecked::read(path, text).check(resolver)
}

/// A manifest that is read and not checked yet. It tells what its check needs.
#[derive(Debug)]
pub struct Unchecked<'a> {
    base: &'a Path,
    /// Nothing if the text cannot be read. The report says why.
    manifest: Option<Manifest>,
    payloads: Vec<String>,
    files: Vec<String>,
    report: Report,
}

/// Keys whose values are paths of files.
const FILE_KEYS: &[&str] = &[
    "board",
    "code",
    "data",
    "device-tree-overlay",
    "file",
    "image",
    "init",
    "keep",
    "payload",
    "ramdisk",
];

impl<'a> Unchecked<'a> {
    /// Reads the manifest `text`. Relative paths start where `path` is.
    #[must_use]
    pub fn read(path: &'a Path, text: &str) -> Self {
        let mut report = Report::default();
        let mut named = Named::default();
        let manifest = parse(path, text, &mut named, &mut report);
        Self {
            base: path.parent().unwrap_or(Path::new("")),
            manifest,
            payloads: named.payloads,
            files: named.files,
            report,
        }
    }

    /// Returns the paths of the files that the manifest names, as far as the files are there.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let paths = self.files.iter().map(|name| self.base.join(name));
        paths.filter(|path| path.is_file()).collect()
    }

    /// Returns the board that the manifest names, if both are sound enough to tell. The check says what is
    /// wrong.
    #[must_use]
    pub fn board(&self) -> Option<Board> {
        let name = self.manifest.as_ref()?.board.as_ref()?;
        board_file::find(&name.value, name.place, self.base, &mut Report::default())
    }

    /// Returns the parts of the kernel that the system uses, as far as the manifest is sound enough to tell.
    /// Programs that can call a debugger are not known yet ([`System::parts`], also for `is_traced`).
    #[must_use]
    pub fn parts(&self, is_traced: bool) -> Vec<UsedPart> {
        let Some(manifest) = &self.manifest else {
            return Vec::new();
        };
        let class = self.board().map(|board| board.class);
        parts::of_manifest(manifest, class, is_traced, &self.report.sources)
    }

    /// Returns the names of the partitions that have a console, if the manifest is sound enough to tell.
    #[must_use]
    pub fn consoles(&self) -> Option<Vec<&str>> {
        let partitions = self.manifest.as_ref()?.partitions.iter();
        let with_console = partitions.filter(|partition| partition.console);
        Some(
            with_console
                .map(|partition| partition.name.value.as_str())
                .collect(),
        )
    }

    /// Returns the names of the partitions, if the manifest is sound enough to tell.
    #[must_use]
    pub fn partitions(&self) -> Option<Vec<&str>> {
        let partitions = self.manifest.as_ref()?.partitions.iter();
        Some(
            partitions
                .map(|partition| partition.name.value.as_str())
                .collect(),
        )
    }

    /// Returns the names of payloads (`@...`) in the manifest.
    #[must_use]
    pub fn payloads(&self) -> &[String] {
        &self.payloads
    }

    /// Returns the findings for which no payload need be there, if one of them is an error. So no user builds
    /// or fetches a payload for a manifest that is refused all the same. The function `unknown` says why
    /// there is no payload of a name (`@...`).
    #[must_use]
    pub fn early_faults(&self, unknown: &dyn Fn(&str) -> Option<String>) -> Option<Report> {
        let mut report = self.report.clone();
        if let Some(manifest) = self.manifest.clone() {
            let manifest = ruled(manifest, self.base, &mut report).map(|(manifest, _)| manifest);
            let names = manifest.iter().flat_map(|manifest| &manifest.partitions);
            for name in names.flat_map(PartitionSpec::payloads) {
                if name.value.starts_with('@')
                    && let Some(why) = unknown(&name.value)
                {
                    report.push(no_payload(name, &why));
                }
            }
        }
        report.sort();
        report.has_errors().then_some(report)
    }

    /// Returns the files of the disks that the manifest plugs into the emulator, each with its device.
    pub fn disks(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        let disks = self.manifest.iter().flat_map(|manifest| &manifest.emulator.disks);
        disks.filter_map(|disk| {
            let (device, file) = (disk.device.as_ref()?, disk.file.as_ref()?);
            Some((device.value.as_str(), self.base.join(&file.value)))
        })
    }

    /// Checks and plans the manifest. Named payloads come from `resolver`.
    ///
    /// # Errors
    /// As for [`load`].
    pub fn check(self, resolver: &dyn PayloadResolver) -> Result<System, Report> {
        let Self {
            base,
            manifest,
            mut report,
            ..
        } = self;
        let built = manifest.and_then(|manifest| build(manifest, base, resolver, &mut report));
        report.sort();
        match built {
            Some(mut system) if !report.has_errors() => {
                system.report = report;
                Ok(system)
            }
            _ => Err(report),
        }
    }
}

/// The payloads and files that a manifest names.
#[derive(Debug, Default)]
struct Named {
    /// Payloads of the host tool (`@...`).
    payloads: Vec<String>,
    /// Files, as the manifest writes them.
    files: Vec<String>,
}

impl Named {
    /// Adds what `value`, which stands after `key`, names. The parser bounds the depth.
    fn add(&mut self, key: &str, value: &Value) {
        match &value.data {
            Data::Text(text) if text.starts_with('@') => self.payloads.push(text.clone()),
            Data::Text(text) if FILE_KEYS.contains(&key) => self.files.push(text.clone()),
            Data::List(list) => list.iter().for_each(|value| self.add(key, value)),
            Data::Table(table) => self.add_all(table),
            Data::Text(_) | Data::Integer(_) | Data::Boolean(_) | Data::Other(_) => {}
        }
    }

    fn add_all(&mut self, table: &Table) {
        for entry in &table.entries {
            self.add(&entry.key, &entry.value);
        }
    }
}

/// Parses the text, and adds what the text names outside itself to `named`.
fn parse(path: &Path, text: &str, named: &mut Named, report: &mut Report) -> Option<Manifest> {
    let file = report.sources.add(path, text.to_owned());
    let top = first_line(file, text);
    if text.len() > MANIFEST_MAX {
        let message = format!("the manifest has {} bytes, more than {MANIFEST_MAX}", text.len());
        report.push(Diagnostic::at(Code::Unreadable, top, message).help("give a manifest, not a payload"));
        return None;
    }
    let table = value::parse(file, text, report);
    // After a syntax error a key may seem to be missing only because its line was not understood.
    if report.has_errors() {
        return None;
    }
    named.add_all(&table);
    let manifest = Manifest::read(&Head {
        table: &table,
        place: top,
        key: None,
    });
    let mut shape = Report::default();
    schema::shape::check(&table, top, Manifest::SCHEMA, &mut shape);
    let no_partition = table.get("partition").is_none();
    // The finding "no partition" is clearer than "missing key".
    shape.diagnostics.retain(|diagnostic| {
        !(no_partition && diagnostic.code == Code::MissingKey && diagnostic.message.contains("`partition`"))
    });
    report.absorb(shape);
    Some(manifest)
}

/// Returns the first line that is neither empty nor a comment: the place of findings about things that are
/// missing as a whole.
fn first_line(file: FileId, text: &str) -> Place {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if !line.trim().is_empty() && !line.starts_with('#') {
            return Place {
                file,
                start,
                end: start.saturating_add(line.trim_end().len()),
            };
        }
        start = start.saturating_add(line.len());
    }
    Place {
        file,
        start: 0,
        end: 0,
    }
}

/// Applies the rules that need no payload's contents; `None` if the board or an error was reported.
fn ruled(manifest: Manifest, base: &Path, report: &mut Report) -> Option<(Manifest, Board)> {
    let board = manifest
        .board
        .as_ref()
        .and_then(|name| board_file::find(&name.value, name.place, base, report));
    let mut manifest = manifest;
    if let Some(board) = &board {
        class::host(board.class).settle(&mut manifest, board);
    }
    place::channels::count_functions(&mut manifest);
    place::lending::lend(&mut manifest, board.as_ref(), report);
    place::services::place(&mut manifest, board.as_ref());
    rules::check(&manifest, board.as_ref(), report);
    rules::disks_are_files(&manifest, base, report);
    rules::own_policies(&manifest, base, report);
    rules::keys_are_keys(&manifest, base, report);
    let board = board?;
    if report.has_errors() {
        return None;
    }
    payload::are_there(
        base,
        manifest.partitions.iter().flat_map(PartitionSpec::payloads),
        report,
    );
    (!report.has_errors()).then_some((manifest, board))
}

fn build(
    manifest: Manifest,
    base: &Path,
    resolver: &dyn PayloadResolver,
    report: &mut Report,
) -> Option<System> {
    let (manifest, board) = ruled(manifest, base, report)?;
    let draft = Draft {
        manifest,
        board,
        loader: Loader::new(base, resolver),
    };
    draft.finish(report)
}
