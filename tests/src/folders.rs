// SPDX-License-Identifier: Apache-2.0
//! The folders of the system tests: `CLASS/SUBJECT/NAME`, with `several` for tests of several classes.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folders of all tests below `root`, in order of their names.
///
/// # Errors
/// A file lies where a folder should be, or two tests have one name.
pub(crate) fn all(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut tests = Vec::new();
    for class in inside(root)? {
        for subject in inside(&class)? {
            tests.extend(inside(&subject)?);
        }
    }
    tests.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    let twice = tests
        .windows(2)
        .find(|pair| pair[0].file_name() == pair[1].file_name());
    match twice {
        Some(pair) => Err(format!(
            "{} has the name of {}",
            pair[0].display(),
            pair[1].display()
        )),
        None => Ok(tests),
    }
}

/// Returns the folders in a folder that has nothing else.
fn inside(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    match paths.iter().find(|path| !path.is_dir()) {
        Some(file) => Err(format!(
            "{}: a test is a folder CLASS/SUBJECT/NAME",
            file.display()
        )),
        None => Ok(paths),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The folder of tests with cases of several classes.
    const SEVERAL: &str = "several";

    /// Returns the class of the board that a manifest names.
    fn class(path: &Path, manifest: &str) -> Option<String> {
        let value = |text: &str, key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.strip_prefix(" = \"")?.split('"').next()?.to_owned())
        };
        let board = value(manifest, "board")?;
        let boards = Path::new(env!("CARGO_MANIFEST_DIR")).join("../boards");
        let file = if board.ends_with(".toml") {
            path.with_file_name(board)
        } else {
            boards.join(format!("{board}.toml"))
        };
        value(&fs::read_to_string(file).ok()?, "class")
    }

    #[test]
    fn each_test_lies_in_the_folder_of_its_class() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("system");
        for folder in all(&root).expect("the folders are in order") {
            let cases = crate::case::in_folder(&folder).expect("the test is right");
            let classes: BTreeSet<_> = cases
                .iter()
                .map(|case| class(&case.path, &case.manifest))
                .collect();
            let class = match classes.first() {
                Some(Some(class)) if classes.len() == 1 => class,
                _ => SEVERAL,
            };
            assert!(folder.starts_with(root.join(class)), "{}", folder.display());
        }
    }

    #[test]
    fn a_name_is_given_once_and_nothing_lies_elsewhere() {
        let root = std::env::temp_dir().join(format!("bulkhead-folders-{}", std::process::id()));
        for name in ["a/boot/y", "b/boot/x"] {
            fs::create_dir_all(root.join(name)).expect("the folder can be made");
        }
        let names = |root: &Path| -> Result<Vec<String>, String> {
            let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
            Ok(all(root)?.iter().filter_map(name).collect())
        };
        assert_eq!(names(&root), Ok(vec!["x".to_owned(), "y".to_owned()]));
        fs::create_dir_all(root.join("a/devices/x")).expect("the folder can be made");
        assert!(names(&root).is_err_and(|why| why.contains("has the name of")));
        fs::remove_dir(root.join("a/devices/x")).expect("the folder can be removed");
        fs::write(root.join("a/devices/test.toml"), "").expect("the file can be written");
        assert!(names(&root).is_err_and(|why| why.contains("CLASS/SUBJECT/NAME")));
        fs::remove_dir_all(&root).expect("the folder can be removed");
    }
}
