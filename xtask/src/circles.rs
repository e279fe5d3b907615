// SPDX-License-Identifier: Apache-2.0
//! The files of a crate import each other one way.
//!
//! Files that import each other in a circle can only be read together. A file may take names from the file
//! that stands for its folder, as a folder is a module with parts. `circles-budget.toml` has the crates with
//! such circles, and how many files the largest of each has. The numbers may only fall. A number that is too
//! high is a finding, too. A file is a module, tests are left out, and a module that is written within a file
//! counts for the file. The root of a crate is not looked at, as it declares the others. A name that it gives
//! to several files by `#[path]`, one for each CPU, stands for all of them.

use crate::workspace::{Source, packages, root, sources};
use crate::{Findings, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// The file with the numbers, from the root of the repository.
const FILE: &str = "circles-budget.toml";

/// A module: the names from the root of its crate.
pub type Module = Vec<String>;
/// The modules of a crate, each with those that it imports from.
pub type Graph = BTreeMap<Module, BTreeSet<Module>>;
/// The names in the root of a crate that stand for files elsewhere, each with these.
type Aliases = BTreeMap<String, Vec<Module>>;

/// The files of a crate, and the other names that its root gives them.
#[derive(Default)]
struct Files {
    texts: BTreeMap<Module, String>,
    aliases: Aliases,
}

/// Checks the crates of the whole workspace.
pub fn check() -> Outcome {
    let path = root().join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let budgets: BTreeMap<String, usize> =
        toml::from_str(&text).map_err(|error| format!("{FILE}: {error}"))?;
    let mut findings = Findings::new();
    let graphs = graphs()?;
    for (folder, graph) in &graphs {
        let circle = largest_circle(graph);
        findings.extend(verdict(
            folder,
            &circle,
            budgets.get(folder).copied().unwrap_or(0),
        ));
    }
    let gone = budgets.keys().filter(|folder| !graphs.contains_key(*folder));
    findings.extend(gone.map(|folder| format!("{FILE} has {folder}, which is no crate")));
    Ok(findings)
}

/// Returns the imports of the files of a crate.
pub fn imports(folder: &str) -> Result<Graph, String> {
    let mut graphs = graphs()?;
    graphs.remove(folder).ok_or(format!("{folder} is no crate"))
}

/// Prints the files of the largest circle of a crate.
pub fn list(folder: &str) -> Outcome {
    let graphs = graphs()?;
    let graph = graphs.get(folder).ok_or(format!("{folder} is no crate"))?;
    let circle = largest_circle(graph);
    for module in &circle {
        let imports = graph.get(module).into_iter().flatten();
        let inside: Vec<String> = imports
            .filter(|other| circle.contains(other))
            .map(|other| other.join("::"))
            .collect();
        println!("{} imports {}", module.join("::"), inside.join(", "));
    }
    Ok(Findings::new())
}

/// Compares the largest circle of a crate with what it may have.
fn verdict(folder: &str, circle: &[Module], budget: usize) -> Option<String> {
    let size = circle.len();
    if size < budget {
        return Some(format!(
            "{folder}: the largest circle has {size} files, {budget} in {FILE}: write the lower number"
        ));
    }
    let names = || {
        circle
            .iter()
            .map(|module| module.join("::"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    (size > budget).then(|| {
        format!(
            "{folder}: {size} files import each other in a circle, {budget} in {FILE}: {}",
            names()
        )
    })
}

/// Reads all crates.
fn graphs() -> Result<BTreeMap<String, Graph>, String> {
    let folders: BTreeSet<String> = packages()?.iter().map(|package| package.folder()).collect();
    let mut crates: BTreeMap<String, Files> = folders
        .into_iter()
        .map(|folder| (folder, Files::default()))
        .collect();
    for Source { path, name, folder } in sources()? {
        let Some(inside) = name.strip_prefix(&format!("{folder}/src/")) else {
            continue;
        };
        let read = || std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"));
        let module = module_of(inside);
        let files = crates.entry(folder).or_default();
        if let Some(module) = module {
            files.texts.insert(module, read()?);
        } else if inside == "lib.rs" || inside == "main.rs" {
            files.aliases = aliases(&read()?).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    let graph = |(folder, files): (String, Files)| {
        graph(&files)
            .map(|graph| (folder.clone(), graph))
            .map_err(|why| format!("{folder}: {why}"))
    };
    crates.into_iter().map(graph).collect()
}

/// Returns the names that the root of a crate gives to files elsewhere.
fn aliases(root: &str) -> Result<Aliases, syn::Error> {
    let mut found = Aliases::new();
    for item in syn::parse_file(root)?.items {
        let syn::Item::Mod(item) = item else { continue };
        let file = item.attrs.iter().find_map(path_of);
        if let Some(module) = file.as_deref().and_then(module_of) {
            found.entry(item.ident.to_string()).or_default().push(module);
        }
    }
    Ok(found)
}

/// Returns the file that an attribute `#[path]` names.
fn path_of(attribute: &syn::Attribute) -> Option<String> {
    let pair = attribute.meta.require_name_value().ok()?;
    match &pair.value {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(file),
            ..
        }) if pair.path.is_ident("path") => Some(file.value()),
        _ => None,
    }
}

/// Returns the module of a file in `src`. The roots of a crate, and programs, have none.
pub fn module_of(file: &str) -> Option<Module> {
    let path = file.strip_suffix(".rs")?;
    let mut names: Module = path.split('/').map(str::to_owned).collect();
    if names.last().is_some_and(|last| last == "mod") {
        names.pop();
    }
    let is_root = names.len() == 1 && (names[0] == "lib" || names[0] == "main");
    let is_program = names.first().is_some_and(|first| first == "bin");
    let is_test = names.iter().any(|name| name == "tests");
    (!is_root && !is_program && !is_test).then_some(names)
}

/// Reads the imports of files.
fn graph(files: &Files) -> Result<Graph, String> {
    let modules: BTreeSet<Module> = files.texts.keys().cloned().collect();
    let mut graph = Graph::new();
    for (module, text) in &files.texts {
        let file = syn::parse_file(text).map_err(|error| format!("{}: {error}", module.join("::")))?;
        let mut imports = Imports {
            place: module.clone(),
            own: module,
            modules: &modules,
            aliases: &files.aliases,
            found: BTreeSet::new(),
        };
        imports.visit_file(&file);
        graph.insert(module.clone(), imports.found);
    }
    Ok(graph)
}

/// The imports of a file.
struct Imports<'a> {
    own: &'a Module,
    /// The module within the file.
    place: Module,
    modules: &'a BTreeSet<Module>,
    aliases: &'a Aliases,
    found: BTreeSet<Module>,
}

impl Imports<'_> {
    /// Adds a path: the file is the longest part of it that is a module.
    fn add(&mut self, names: &[String]) {
        let mut absolute = match names.first().map(String::as_str) {
            Some("crate") => Module::new(),
            Some("self" | "super") => self.place.clone(),
            // A file of the own folder.
            Some(name) if self.has(name) => self.place.clone(),
            _ => return,
        };
        for name in names {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => {
                    absolute.pop();
                }
                _ => absolute.push(name.clone()),
            }
        }
        let others = absolute.first().and_then(|first| self.aliases.get(first));
        match others {
            Some(others) => {
                for other in others {
                    self.add_file(other.iter().chain(&absolute[1..]).cloned().collect());
                }
            }
            None => self.add_file(absolute),
        }
    }

    /// Adds the file that is the longest part of a path from the root.
    fn add_file(&mut self, mut absolute: Module) {
        while !self.modules.contains(&absolute) && absolute.pop().is_some() {}
        if !self.own.starts_with(&absolute) {
            self.found.insert(absolute);
        }
    }

    /// Tells whether the folder of the file has another with this name.
    fn has(&self, name: &str) -> bool {
        let mut file = self.place.clone();
        file.push(name.to_owned());
        self.modules.contains(&file)
    }

    fn add_tree(&mut self, before: &mut Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(before, &path.tree);
                before.pop();
            }
            syn::UseTree::Name(name) => self.add_last(before, name.ident.to_string()),
            syn::UseTree::Rename(name) => self.add_last(before, name.ident.to_string()),
            syn::UseTree::Glob(_) => self.add(before),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(before, tree);
                }
            }
        }
    }

    fn add_last(&mut self, before: &mut Vec<String>, name: String) {
        before.push(name);
        self.add(before);
        before.pop();
    }
}

impl<'ast> Visit<'ast> for Imports<'_> {
    fn visit_item_mod(&mut self, found: &'ast syn::ItemMod) {
        if is_for_tests(&found.attrs) {
            return;
        }
        self.place.push(found.ident.to_string());
        visit::visit_item_mod(self, found);
        self.place.pop();
    }

    fn visit_item_use(&mut self, found: &'ast syn::ItemUse) {
        if !is_for_tests(&found.attrs) {
            self.add_tree(&mut Vec::new(), &found.tree);
        }
    }

    fn visit_path(&mut self, found: &'ast syn::Path) {
        let names: Vec<String> = found
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.add(&names);
        visit::visit_path(self, found);
    }
}

/// Tells whether an item exists in tests only.
pub fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let list = attribute.meta.require_list();
        attribute.path().is_ident("cfg") && list.is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// Returns the modules that a module imports from, and those that they import from, and so on.
fn reached<'a>(graph: &'a Graph, from: &'a Module) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut rest = vec![from];
    while let Some(module) = rest.pop() {
        for other in graph.get(module).into_iter().flatten() {
            if found.insert(other) {
                rest.push(other);
            }
        }
    }
    found
}

/// Returns the largest set of modules of which each reaches each other.
fn largest_circle(graph: &Graph) -> Vec<Module> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = graph
        .keys()
        .map(|module| (module, reached(graph, module)))
        .collect();
    let reaches = |from: &Module, to: &Module| reached.get(from).is_some_and(|found| found.contains(to));
    let circle = |module: &Module| -> Vec<Module> {
        let others = graph
            .keys()
            .filter(|other| reaches(module, other) && reaches(other, module));
        others.cloned().collect()
    };
    graph.keys().map(circle).max_by_key(Vec::len).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_keeps_to_it() {
        assert_eq!(check(), Ok(Findings::new()));
    }

    fn circle(texts: &[(&str, &str)]) -> Vec<String> {
        let texts = texts
            .iter()
            .map(|(file, text)| (module_of(file).unwrap(), (*text).to_owned()));
        let files = Files {
            texts: texts.collect(),
            aliases: aliases("#[path = \"x/mod.rs\"]\nmod cpu;\n#[path = \"y/mod.rs\"]\nmod cpu;").unwrap(),
        };
        let graph = graph(&files).unwrap();
        largest_circle(&graph)
            .iter()
            .map(|module| module.join("::"))
            .collect()
    }

    #[test]
    fn a_circle_is_found() {
        let b = ("b.rs", "use crate::{c, a::Y};");
        assert_eq!(
            circle(&[("a.rs", "use crate::b::X;"), b, ("c.rs", "")]),
            ["a", "b"]
        );
        assert_eq!(circle(&[("a.rs", "use crate::c::X;"), b, ("c.rs", "")]), [""; 0]);
        assert_eq!(circle(&[("a.rs", "fn f() { crate::b::x(); }"), b]), ["a", "b"]);
    }

    #[test]
    fn a_part_may_know_its_folder() {
        let part = ("a/part.rs", "use super::X;");
        assert_eq!(circle(&[("a.rs", "mod part;\nuse part::Y;"), part]), [""; 0]);
        let part = ("a/part.rs", "use super::X;\nuse crate::b::Z;");
        let texts = [
            ("a/mod.rs", "pub use self::part::Y;"),
            part,
            ("b.rs", "use crate::a::Y;"),
        ];
        assert_eq!(circle(&texts), ["a", "a::part", "b"]);
    }

    #[test]
    fn a_name_for_several_files_stands_for_each() {
        let part = ("y/part.rs", "use crate::a::X;");
        let user = ("a.rs", "use crate::cpu::part::Y;");
        assert_eq!(circle(&[user, ("x/part.rs", ""), part]), ["a", "y::part"]);
        assert_eq!(
            circle(&[user, ("x/part.rs", ""), ("y/other.rs", "use crate::a::X;")]),
            [""; 0]
        );
    }

    #[test]
    fn tests_may_close_a_circle() {
        let tests = "#[cfg(test)]\nmod tests { use crate::b::X; }";
        assert_eq!(circle(&[("a.rs", tests), ("b.rs", "use crate::a::Y;")]), [""; 0]);
    }

    #[test]
    fn a_number_is_right_in_both_directions() {
        let circle = vec![vec!["a".to_owned()], vec!["b".to_owned()]];
        assert!(verdict("x", &circle, 1).is_some_and(|finding| finding.ends_with(": a, b")));
        assert_eq!(verdict("x", &circle, 2), None);
        assert!(verdict("x", &circle, 3).is_some());
    }
}
