// SPDX-License-Identifier: Apache-2.0
//! The test programs that have to be built for a filter, or for a change.
//!
//! Cargo builds every test program before it looks at a filter. In a fresh tree that takes minutes. So the
//! sources are searched for names that the filter names, and only their programs are built. The search may
//! find too much, never too little: a name that no source shows makes all programs be built.

use crate::build::artifacts::Workspace;
use crate::problem::Problem;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate with the system tests.
pub(super) const SYSTEM_TESTS: &str = "bulkhead-tests";
/// The names of its programs, and of the tests in each that are no folder of `tests/system`.
const PROGRAMS: [(&str, &[&str]); 4] = [
    (
        "bench",
        &[
            "bench",
            "bench-mcu",
            "bench-worlds",
            "bench-x86",
            "bench-ppc",
            "bench-linux",
        ],
    ),
    ("live", &["live"]),
    ("demo", &["demo"]),
    ("guests_in_c", &["guests-in-c"]),
];
/// The program with the system cases.
const SYSTEM: &str = "system";

/// The programs to build and run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Everything.
    All,
    /// Some programs.
    Some {
        /// Packages whose own tests run.
        packages: BTreeSet<String>,
        /// Programs of the crate with the system tests.
        programs: BTreeSet<&'static str>,
        /// The names of the folders of `tests/system` that run; none says all that the filter names.
        cases: BTreeSet<String>,
        /// True if fuzz targets run.
        fuzz: bool,
    },
}

/// The output of `cargo metadata`, as far as it is read here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_default_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    path: Option<PathBuf>,
}

impl Package {
    fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }
}

impl Metadata {
    fn read(workspace: &Workspace, command: &mut Command) -> Result<Self, Problem> {
        command.args(["metadata", "--no-deps", "--quiet", "--format-version", "1"]);
        let output = command
            .current_dir(workspace.root())
            .output()
            .map_err(Problem::io("cargo metadata"))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|error| Problem::new(format!("cargo metadata: {error}")))
    }

    /// Returns the packages whose tests run on this machine.
    fn tested(&self) -> impl Iterator<Item = &Package> {
        let members = &self.workspace_default_members;
        self.packages
            .iter()
            .filter(|package| members.contains(&package.id))
    }
}

/// Returns what a filter names.
pub(super) fn of_filter(workspace: &Workspace, cargo: &mut Command, filter: &str) -> Result<Scope, Problem> {
    let root = workspace.root();
    let metadata = Metadata::read(workspace, cargo)?;
    let mut programs = BTreeSet::new();
    for (program, names) in PROGRAMS {
        if names.iter().any(|name| name.contains(filter)) {
            programs.insert(program);
        }
    }
    if system_folders(root)
        .iter()
        .any(|folder| names_case(folder, filter))
    {
        programs.insert(SYSTEM);
    }
    let packages: BTreeSet<String> = metadata
        .tested()
        .filter(|package| names_test(package.folder(), filter))
        .map(|package| package.name.clone())
        .collect();
    let fuzz = files(&root.join("fuzz/fuzz_targets"))
        .iter()
        .any(|file| format!("fuzz/{}", stem(file)).contains(filter));
    Ok(if programs.is_empty() && packages.is_empty() && !fuzz {
        Scope::All
    } else {
        Scope::Some {
            packages,
            programs,
            cases: BTreeSet::new(),
            fuzz,
        }
    })
}

/// Returns what the changes since the last commit can reach: tests of the packages that changed and of those
/// that use them, and the system cases whose class, guest or folder changed.
pub(super) fn of_change(workspace: &Workspace, cargo: &mut Command) -> Result<Scope, Problem> {
    let root = workspace.root();
    let metadata = Metadata::read(workspace, cargo)?;
    let changed = changed(root)?;
    let reached = reached(&metadata, root, &changed);
    let tested = metadata
        .tested()
        .filter(|package| reached.contains(&package.name));
    let packages: BTreeSet<String> = tested.map(|package| package.name.clone()).collect();
    let cases: BTreeSet<String> = system_folders(root)
        .iter()
        .filter(|folder| is_reached(root, folder, &changed, &reached))
        .map(|folder| stem(folder))
        .collect();
    let mut programs = BTreeSet::new();
    if !cases.is_empty() {
        programs.insert(SYSTEM);
    }
    Ok(Scope::Some {
        packages,
        programs,
        fuzz: changed.iter().any(|path| path.starts_with("fuzz")),
        cases,
    })
}

/// Returns the files that differ from the last commit, from the root on.
fn changed(root: &Path) -> Result<Vec<PathBuf>, Problem> {
    let output = Command::new("git")
        .args(["status", "--porcelain", "--untracked-files=all", "--no-renames"])
        .current_dir(root)
        .output()
        .map_err(Problem::io("git"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let paths = text.lines().filter_map(|line| line.get(3..));
    Ok(paths.map(|path| PathBuf::from(path.trim_matches('"'))).collect())
}

/// Returns the names of packages that a change of these files can reach.
fn reached(metadata: &Metadata, root: &Path, changed: &[PathBuf]) -> BTreeSet<String> {
    let folders: BTreeMap<&Path, &Package> = metadata
        .packages
        .iter()
        .map(|package| (package.folder(), package))
        .collect();
    let owner = |path: &PathBuf| {
        let path = root.join(path);
        path.ancestors().find_map(|folder| folders.get(folder).copied())
    };
    let mut reached: BTreeSet<String> = changed
        .iter()
        .filter_map(owner)
        .map(|own| own.name.clone())
        .collect();
    // Each round adds a package at least, so there are at most as many rounds as packages.
    for _ in &metadata.packages {
        let uses = |package: &Package| {
            let own = package
                .dependencies
                .iter()
                .filter(|dependency| dependency.path.is_some());
            own.into_iter()
                .any(|dependency| reached.contains(&dependency.name))
        };
        let more: Vec<String> = metadata
            .packages
            .iter()
            .filter(|package| uses(package))
            .map(|package| package.name.clone())
            .collect();
        let before = reached.len();
        reached.extend(more);
        if reached.len() == before {
            break;
        }
    }
    reached
}

/// Tells whether a change reaches a folder of system cases: its files, its board's class binary, its guests.
fn is_reached(root: &Path, folder: &Path, changed: &[PathBuf], reached: &BTreeSet<String>) -> bool {
    let own = |path: &PathBuf| root.join(path).starts_with(folder);
    if changed.iter().any(own) {
        return true;
    }
    let text =
        ["system.toml", "test.toml"].map(|file| fs::read_to_string(folder.join(file)).unwrap_or_default());
    let text = text.concat();
    let boards = files(&root.join("boards"));
    let used = boards
        .iter()
        .filter(|file| text.contains(&format!("\"{}\"", stem(file))));
    let mut classes = used.filter_map(|file| {
        let board = fs::read_to_string(file).ok()?;
        let line = board.lines().find_map(|line| line.strip_prefix("class = \""))?;
        Some(format!("bulkhead-hypervisor-{}", line.trim_end_matches('"')))
    });
    let mut guests = reached.iter().filter_map(|name| name.strip_prefix("guest-"));
    classes.any(|class| reached.contains(&class))
        || guests.any(|guest| text.contains(&format!("@guests/{guest}\"")))
}

/// Returns the folders of the system cases: `tests/system/CLASS/SUBJECT/NAME`.
fn system_folders(root: &Path) -> Vec<PathBuf> {
    let classes = files(&root.join("tests/system"));
    let subjects = classes.iter().flat_map(|class| files(class));
    subjects.flat_map(|subject| files(&subject)).collect()
}

/// Returns the contents of a folder, in order. An absent folder is empty.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Tells whether `FOLDER/CASE` can contain the filter.
fn names_case(folder: &Path, filter: &str) -> bool {
    let name = stem(folder);
    let (first, case) = filter.split_once('/').unwrap_or((filter, ""));
    if name.contains(first) {
        return true;
    }
    // The filter may be in the name of a case alone.
    let wanted = if case.is_empty() { first } else { return false };
    let text = fs::read_to_string(folder.join("test.toml")).unwrap_or_default();
    text.lines()
        .any(|line| line.contains("name = \"") && line.contains(wanted))
}

/// Tells whether a package has a test whose path can contain the filter.
fn names_test(folder: &Path, filter: &str) -> bool {
    let last = filter.rsplit("::").next().unwrap_or(filter);
    ["src", "tests"]
        .iter()
        .any(|part| sources_name(&folder.join(part), last))
}

fn sources_name(folder: &Path, name: &str) -> bool {
    files(folder).iter().any(|path| {
        if path.is_dir() {
            return sources_name(path, name) || stem(path).contains(name);
        }
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        let names = |text: String| {
            let mut lines = text.lines();
            lines.any(|line| {
                line.split_once("fn ")
                    .is_some_and(|(_, rest)| rest.split(['(', '<']).next().unwrap_or_default().contains(name))
            })
        };
        is_source && (stem(path).contains(name) || fs::read_to_string(path).is_ok_and(names))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn a_case_is_named_by_its_folder_by_itself_or_by_both() {
        let folder = root().join("tests/system/aarch64/kernels/linux-smp");
        for filter in ["linux", "smp/gicv2", "gicv2", "linux-smp"] {
            assert!(names_case(&folder, filter), "{filter}");
        }
        assert!(!names_case(&folder, "ppc-linux"));
    }

    #[test]
    fn a_change_reaches_the_cases_of_its_folder_of_its_class_and_of_its_guest() {
        let names = |changed: &[&str], packages: &[&str]| -> Vec<String> {
            let root = root().canonicalize().expect("the repository exists");
            let changed: Vec<PathBuf> = changed.iter().map(PathBuf::from).collect();
            let packages = packages.iter().map(|name| (*name).to_owned()).collect();
            let folders = system_folders(&root);
            let reached = folders
                .iter()
                .filter(|folder| is_reached(&root, folder, &changed, &packages));
            reached.map(|folder| stem(folder)).collect()
        };
        let file = "tests/system/x86_64/boot/x86-hello/test.toml";
        assert_eq!(names(&[file], &[]), ["x86-hello"]);
        assert!(names(&["docs/testing.md"], &[]).is_empty());
        assert!(names(&[], &["guest-x86-hello"]).contains(&"x86-hello".to_owned()));
        let of_class = names(&[], &["bulkhead-hypervisor-ppc405"]);
        assert!(of_class.contains(&"ppc-hostile".to_owned()) && !of_class.contains(&"hostile".to_owned()));
    }

    #[test]
    fn only_packages_with_a_test_of_the_name_are_built() {
        let name = "only_packages_with_a_test_of_the_name_are_built";
        assert!(names_test(&root().join("cli"), name));
        assert!(names_test(
            &root().join("cli"),
            &format!("command::test::scope::tests::{name}")
        ));
        assert!(!names_test(&root().join("sched"), name));
    }

    #[test]
    fn a_change_reaches_those_who_use_it_and_nobody_else() {
        let package = |name: &str, uses: &[&str]| Package {
            id: name.to_owned(),
            name: name.to_owned(),
            manifest_path: Path::new("/r").join(name).join("Cargo.toml"),
            dependencies: uses
                .iter()
                .map(|name| Dependency {
                    name: (*name).to_owned(),
                    path: Some(PathBuf::new()),
                })
                .collect(),
        };
        let metadata = Metadata {
            packages: vec![
                package("a", &[]),
                package("b", &["a"]),
                package("c", &["b"]),
                package("d", &[]),
            ],
            workspace_default_members: Vec::new(),
        };
        let reached = reached(
            &metadata,
            Path::new("/r"),
            &[PathBuf::from("b/src/lib.rs"), PathBuf::from("docs/x.md")],
        );
        assert_eq!(reached.into_iter().collect::<Vec<_>>(), ["b", "c"]);
    }
}
