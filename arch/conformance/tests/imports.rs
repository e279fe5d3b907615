// SPDX-License-Identifier: Apache-2.0
//! The files of a backend import each other one way. A backend is built for its target only, so the test
//! reads its text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Gives the imports of a file from its crate: the first name after each `crate::`, also in braces.
fn imports(text: &str) -> BTreeSet<String> {
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect();
    let code = code.join("\n");
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(group) => found.extend(group_members(group)),
            None => {
                found.insert(first_word(rest));
            }
        }
    }
    found
}

/// Gives the first names of a group's members, up to its closing brace.
fn group_members(group: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let mut members = vec![String::new()];
    for character in group.chars() {
        match character {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                members.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(member) = members.last_mut() {
            member.push(character);
        }
    }
    members.iter().map(|member| first_word(member.trim())).collect()
}

fn first_word(text: &str) -> String {
    text.chars()
        .take_while(|character| character.is_alphanumeric() || *character == '_')
        .collect()
}

/// Gives the imports of each module of a folder. A module's own folder is a part of the module.
fn modules(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("the backend's sources are there") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let files = if path.is_dir() {
            std::fs::read_dir(&path)
                .expect("a folder")
                .map(|entry| entry.expect("an entry").path())
                .collect()
        } else {
            vec![path]
        };
        for file in files {
            let text = std::fs::read_to_string(&file).expect("text");
            modules.entry(name.clone()).or_default().extend(imports(&text));
        }
    }
    modules
}

/// Takes away every module that imports none of the others, again and again, and gives the rest.
fn circle(mut modules: BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    loop {
        let names: BTreeSet<String> = modules.keys().cloned().collect();
        let before = modules.len();
        modules.retain(|name, imports| imports.iter().any(|other| other != name && names.contains(other)));
        if modules.len() == before {
            return modules.into_keys().collect();
        }
    }
}

/// The backends, and the fewest modules that each has.
const BACKENDS: [(&str, usize); 2] = [("aarch64", 30), ("x86_64", 20)];

#[test]
fn no_backend_has_a_circle() {
    for (class, least) in BACKENDS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{class}/src"));
        let found = modules(&folder);
        assert!(found.len() > least, "{class}: {} modules", found.len());
        assert!(found["vcpu"].contains("context"), "{class}: imports are found");
        assert_eq!(circle(found), Vec::<String>::new(), "{class}");
    }
}

#[test]
fn a_circle_is_found() {
    let text = "use crate::{b::{self, X}, c};\n// crate::d\nlet x = crate::e::f();";
    let expected: BTreeSet<String> = ["b", "c", "e"].map(String::from).into();
    assert_eq!(imports(text), expected);
    let a = ("a".to_owned(), imports("use crate::b::X;"));
    let b = ("b".to_owned(), imports("use crate::{c, a::Y};"));
    let c = ("c".to_owned(), BTreeSet::new());
    assert_eq!(circle([a, b, c].into()), ["a", "b"]);
}
