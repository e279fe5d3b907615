// SPDX-License-Identifier: Apache-2.0
//! The variant of each example, and the table of the book with the costs of the parts. `BLESS=1` writes both.

use bulkhead::build::costs::Costs;
use bulkhead::build::variant::TAILORED;
use bulkhead_abi::Operation;
use bulkhead_manifest::parts::{
    Part, Parts, UsedPart, VARIANTS, ahead_of_class, of_class, set_of, variant_for,
};
use bulkhead_manifest::{Class, Unchecked, read_manifest};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Compares a file with its text, or writes the file.
fn is_in_file(path: &Path, text: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, text).expect("the file can be written");
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    assert!(found == text, "{} is out of date:\n{text}", path.display());
}

// A part that an example begins to use makes its class binary larger, so its author sees that here.
#[test]
fn each_example_has_the_smallest_variant_with_its_parts() {
    let folders = fs::read_dir(root().join("examples")).expect("there are examples");
    let mut paths: Vec<PathBuf> = folders
        .filter_map(|entry| Some(entry.ok()?.path().join("system.toml")))
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    let mut text = String::new();
    for path in paths {
        let manifest = read_manifest(&path).expect("an example can be read");
        let used: Vec<UsedPart> = Unchecked::read(&path, &manifest).parts(false);
        let example = path.parent().and_then(Path::file_name).unwrap_or_default();
        let names: Vec<&str> = used.iter().map(|used| used.part.name()).collect();
        let variant = variant_for(set_of(&used)).map_or(TAILORED, |variant| variant.name);
        text.push_str(&format!("{} {variant} {}\n", example.display(), names.join(" ")));
    }
    is_in_file(&root().join("tests/texts/variants.txt"), &text);
}

/// Returns the table of the parts: a row each, a column for each class.
fn part_table(costs: &Costs) -> String {
    let names: Vec<&str> = Class::all().map(Class::name).collect();
    let mut text = format!(
        "| part | lines | bytes on {} |\n|---|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for part in Part::ALL {
        let name = part.name();
        text.push_str(&format!("| `{name}` | {} |", costs.lines(name).unwrap_or(0)));
        for class in Class::all() {
            let bytes = costs.bytes(name, class.name());
            let cell = match bytes.filter(|_| of_class(class).has(*part)) {
                Some(bytes) => bytes.to_string(),
                None => "-".to_owned(),
            };
            text.push_str(&format!(" {cell} |"));
        }
        text.push('\n');
    }
    text
}

/// Returns the table of the variants.
fn variant_table(costs: &Costs) -> String {
    let names: Vec<&str> = Class::all().map(Class::name).collect();
    let mut text = format!(
        "| variant | more than the one before | calls | bytes (trusted lines) on {} |\n|---|---|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    let mut before = Parts::NONE;
    for variant in VARIANTS {
        let more: Vec<String> = variant
            .parts
            .without(before)
            .iter()
            .map(|part| format!("`{part}`"))
            .collect();
        before = variant.parts;
        let calls = calls(variant.parts);
        text.push_str(&format!("| `{}` | {} | {calls} |", variant.name, more.join(", ")));
        for class in names.iter() {
            let number =
                |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
            let bytes = number(costs.variant_bytes(variant.name, class));
            let lines = number(costs.variant_lines(variant.name, class));
            text.push_str(&format!(" {bytes} ({lines}) |"));
        }
        text.push('\n');
    }
    text
}

/// The words that begin the reason for which there is a call.
const REASON: &str = "Without this call, ";

/// Returns the first sentence of each operation's documentation and its reason, by the operation's name.
fn sentences() -> BTreeMap<String, (String, String)> {
    let source = fs::read_to_string(root().join("abi/src/hypercall.rs")).expect("there is a source");
    let (mut all, mut words) = (BTreeMap::new(), String::new());
    for line in source.lines().map(str::trim) {
        if let Some(more) = line.strip_prefix("///") {
            words.push_str(more);
        } else {
            let name = line.split(" = ").next().unwrap_or_default().to_owned();
            let words = std::mem::take(&mut words);
            let first = words.split_inclusive(". ").next().unwrap_or_default();
            let reason = words.split_once(REASON).map_or("", |(_, reason)| reason);
            let plain = |text: &str| text.trim().trim_end_matches('.').to_owned();
            all.entry(name).or_insert_with(|| (plain(first), plain(reason)));
        }
    }
    all
}

/// Returns the calls of a set of parts.
fn calls(parts: Parts) -> usize {
    let is_there = |call: &&Operation| call.part().is_none_or(|part| parts.has(part));
    Operation::ALL.iter().filter(is_there).count()
}

/// Returns the table of the calls: the core's first, then each part's.
fn call_table() -> String {
    let sentences = sentences();
    let mut text = "| call | part | purpose | without it |\n|---|---|---|---|\n".to_owned();
    let order = std::iter::once(None).chain(Part::ALL.iter().copied().map(Some));
    for part in order {
        for call in Operation::ALL.iter().filter(|call| call.part() == part) {
            let name = format!("{call:?}");
            let (purpose, reason) = sentences.get(&name).expect("each call is documented");
            assert!(
                !reason.is_empty(),
                "{name} has no reason: a sentence with `{REASON}`"
            );
            let part = part.map_or("the core", Part::name);
            let purpose = links_removed(purpose);
            text.push_str(&format!("| `{name}` | {part} | {purpose} | {reason} |\n"));
        }
    }
    text
}

/// Returns a sentence for a cell of a table, without the links of the documentation.
fn links_removed(sentence: &str) -> String {
    let plain = sentence.replace("[`crate::status::", "`").replace("[`", "`");
    // A bar would end the cell.
    plain.replace("`]", "`").replace('|', "\\|")
}

// A published microkernel of this kind has 25 calls.
#[test]
fn the_smallest_variant_has_25_calls_at_most() {
    let [smallest, .., full] = VARIANTS;
    assert!(calls(smallest.parts) <= 25, "{}", calls(smallest.parts));
    assert!(calls(full.parts) <= 52, "{}", calls(full.parts));
}

#[test]
fn the_book_has_the_costs() {
    let path = root().join("docs/parts.md");
    let mut page = fs::read_to_string(&path).expect("there is a page");
    let costs = Costs::built_in();
    for (mark, table) in [
        ("variants", variant_table(&costs)),
        ("parts", part_table(&costs)),
        ("calls", call_table()),
    ] {
        let (start, end) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->"));
        let from = page.find(&start).expect("the page has the mark") + start.len();
        let to = page.find(&end).expect("the page has the end of the mark");
        page.replace_range(from..to, &format!("\n{table}\n"));
    }
    is_in_file(&path, &page);
}

/// A package, as far as its features go, from its `Cargo.toml`.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Package {
    features: BTreeMap<String, Vec<String>>,
    dependencies: BTreeMap<String, toml::Value>,
}

impl Package {
    fn read(folder: &str) -> Self {
        let path = root().join("hypervisor").join(folder).join("Cargo.toml");
        toml::from_str(&fs::read_to_string(path).expect("there is a package")).expect("it is one of cargo's")
    }

    /// Adds the parts that a feature brings.
    fn add(&self, feature: &str, parts: &mut Parts) {
        for other in self.features.get(feature).into_iter().flatten() {
            self.add_name(other, parts);
        }
    }

    fn add_name(&self, name: &str, parts: &mut Parts) {
        let part = name.strip_prefix("bulkhead-kernel/").unwrap_or(name);
        match Part::ALL.iter().find(|own| own.name() == part) {
            Some(part) => *parts = parts.with(*part),
            None => self.add(name, parts),
        }
    }

    /// Returns the parts that the package asks of the kernel for itself.
    fn own(&self) -> Parts {
        let mut parts = Parts::NONE;
        let features = self
            .dependencies
            .get("bulkhead-kernel")
            .and_then(|kernel| kernel.get("features"));
        for feature in features.and_then(toml::Value::as_array).into_iter().flatten() {
            self.add_name(feature.as_str().unwrap_or_default(), &mut parts);
        }
        parts
    }
}

#[test]
fn a_variant_has_its_parts_as_far_as_the_class_has_them() {
    for class in Class::all().filter(|class| class.name() != "stub") {
        for variant in VARIANTS {
            let suffixed = format!("{}-{}", class.name(), variant.name);
            let has_own = root().join("hypervisor").join(&suffixed).is_dir();
            let package = Package::read(if has_own { &suffixed } else { class.name() });
            let mut parts = package.own();
            package.add(variant.name, &mut parts);
            let expected = Parts(variant.parts.0 & ahead_of_class(class).0);
            let lacking: Vec<&str> = expected.without(parts).iter().map(Part::name).collect();
            assert!(lacking.is_empty(), "{suffixed} lacks {lacking:?}");
            assert!(variant.parts.covers(parts), "{suffixed}");
        }
    }
}
