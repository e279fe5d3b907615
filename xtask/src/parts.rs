// SPDX-License-Identifier: Apache-2.0
//! The costs of the parts of the kernel, in `parts.toml`: lines of trusted code, and bytes of class binaries.
//!
//! The lines are counted at each check. The bytes take a build for each part and class, so they are measured
//! on demand. A check builds the variants anyway, and they may not be larger than the file says.

use crate::workspace::root;
use crate::{Findings, Outcome};
use bulkhead::build::artifacts::Workspace;
use bulkhead::build::costs::{Costs, FILE, PerClass};
use bulkhead::build::variant::{TAILORED, Tailoring, class_binary};
use bulkhead::class;
use bulkhead::ui::progress::Progress;
use bulkhead_bench::{Lines, Sizes, trusted_lines};
use bulkhead_manifest::Board;
use bulkhead_manifest::parts::{Part, Parts, VARIANTS, Variant, ahead_of_class};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The comment at the top of the file.
const HEAD: &str = "\
# SPDX-License-Identifier: Apache-2.0
# The costs of the parts of the kernel (docs/parts.md). `files` is written by hand. `xtask parts --measure`
# counts the lines of code in them, and measures the bytes of instructions and read-only data. `xtask ci`
# fails if the lines differ, or if the class binary of a variant is larger. `trusted` has the lines of code in
# the files of which the class binary of a variant has instructions. They may not grow either. `stack` has the
# bytes of the deepest chain of calls of each class binary. `xtask stack` fails if one is deeper, and
# `xtask stack --lower` lowers them.
";

/// Checks the lines of all parts.
pub fn check() -> Outcome {
    let costs = read()?;
    let mut findings = Findings::new();
    for part in Part::ALL {
        if !costs.part.contains_key(part.name()) {
            findings.push(format!("{FILE} has no part `{part}`"));
        }
    }
    for (name, cost) in &costs.part {
        let lines = lines(&cost.files)?;
        if lines != cost.lines {
            findings.push(format!(
                "{FILE}: part `{name}` has {lines} lines, not {}: run `xtask parts --measure`",
                cost.lines
            ));
        }
    }
    Ok(findings)
}

/// Returns findings if the class binary of a variant, with this name and content, is larger than it may be,
/// or is trusted with more lines.
pub fn fits(name: &str, bytes: &[u8]) -> Outcome {
    let costs = read()?;
    let mut findings = Findings::new();
    for board in usual_boards() {
        let class = board.class.name();
        let is_it = |variant: &&Variant| class_binary(&board, false, variant.name) == name;
        let Some(variant) = VARIANTS.iter().find(is_it) else {
            continue;
        };
        let sizes = Sizes::of(bytes)?;
        let rows = [
            (
                "bytes of code and constants",
                sizes.text + sizes.read_only,
                costs.variant_bytes(variant.name, class),
            ),
            (
                "trusted lines",
                trusted_lines(bytes, &root())?,
                costs.variant_lines(variant.name, class),
            ),
        ];
        for (what, found, limit) in rows {
            match limit {
                Some(limit) if found <= limit => {}
                Some(limit) => findings.push(format!("{found} {what}, {limit} in {FILE}")),
                None => findings.push(format!(
                    "{found} {what}, no limit in {FILE}: run `xtask parts --measure`"
                )),
            }
        }
    }
    Ok(findings)
}

/// Counts and measures everything, or one part, on one class or on all of them, and writes it into the file.
pub fn measure(only: Option<&str>, only_part: Option<&str>) -> Outcome {
    if let Some(name) = only_part
        && !Part::ALL.iter().any(|part| part.name() == name)
    {
        return Err(format!("there is no part `{name}`"));
    }
    let mut costs = read()?;
    for cost in costs.part.values_mut() {
        cost.lines = lines(&cost.files)?;
    }
    write(&costs)?;
    for board in usual_boards() {
        let name = board.class.name().to_owned();
        if only.is_some_and(|only| only != name) {
            continue;
        }
        if only_part.is_none() {
            lower_variants(&mut costs, &board, &mut Findings::new())?;
        }
        let is_wanted = |part: &Part| only_part.is_none_or(|only| only == part.name());
        for part in measured(&board).iter().filter(is_wanted) {
            let bytes = part_bytes(&board, part)?;
            println!("{name} {part}: {bytes} bytes");
            if let Some(cost) = costs.part.get_mut(part.name()) {
                cost.bytes.insert(name.clone(), bytes);
            }
        }
        write(&costs)?;
    }
    Ok(Findings::new())
}

/// Measures the variants of all classes, and lowers their limits. None of them may grow: the findings say
/// which has grown.
pub fn lower() -> Outcome {
    let mut costs = read()?;
    let mut findings = Findings::new();
    for board in usual_boards() {
        lower_variants(&mut costs, &board, &mut findings)?;
    }
    write(&costs)?;
    Ok(findings)
}

/// Lowers the limits of the variants of a class.
fn lower_variants(costs: &mut Costs, board: &Board, findings: &mut Findings) -> Result<(), String> {
    let class = board.class.name().to_owned();
    for variant in VARIANTS {
        let bytes = variant_binary(board, variant.name)?;
        let sizes = Sizes::of(&bytes)?;
        let rows = [
            ("bytes", &mut costs.variant, sizes.text + sizes.read_only),
            (
                "trusted lines",
                &mut costs.trusted,
                trusted_lines(&bytes, &root())?,
            ),
        ];
        for (what, limits, found) in rows {
            let limits = limits.entry(variant.name.to_owned()).or_default();
            let limit = limits.entry(class.clone()).or_insert(found);
            if found > *limit {
                findings.push(format!(
                    "{class} {}: {found} {what}, {limit} in {FILE}",
                    variant.name
                ));
            }
            *limit = found.min(*limit);
        }
    }
    Ok(())
}

/// Returns the bytes that the deepest chain of calls of each class binary may take.
pub fn stacks() -> Result<BTreeMap<String, u64>, String> {
    read().map(|costs| costs.stack)
}

/// Writes the bytes of the deepest chains of calls. None of them may grow.
pub fn lower_stacks(measured: &BTreeMap<String, u64>) -> Result<(), String> {
    let mut costs = read()?;
    let lower = |(name, bytes): (&String, &u64)| {
        let limit = costs.stack.get(name).map_or(*bytes, |limit| *limit.min(bytes));
        (name.clone(), limit)
    };
    costs.stack = measured.iter().map(lower).collect();
    write(&costs)
}

fn read() -> Result<Costs, String> {
    let path = root().join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Costs::parse(&text)
}

/// Writes the file, in the order of the parts.
fn write(costs: &Costs) -> Result<(), String> {
    let row = |numbers: &PerClass| {
        let numbers = numbers
            .iter()
            .map(|(class, number)| format!("{class} = {number}"));
        format!("{{ {} }}", numbers.collect::<Vec<_>>().join(", "))
    };
    let mut text = HEAD.to_owned();
    for part in Part::ALL {
        let Some(cost) = costs.part.get(part.name()) else {
            return Err(format!("{FILE} has no part `{part}`"));
        };
        let _ = write!(text, "\n[part.{part}]\nlines = {}\n", cost.lines);
        if !cost.bytes.is_empty() {
            let _ = writeln!(text, "bytes = {}", row(&cost.bytes));
        }
        text.push_str("files = [\n");
        for file in &cost.files {
            let _ = writeln!(text, "    \"{file}\",");
        }
        text.push_str("]\n");
    }
    for (section, limits) in [("variant", &costs.variant), ("trusted", &costs.trusted)] {
        let _ = writeln!(text, "\n[{section}]");
        for variant in VARIANTS {
            if let Some(numbers) = limits.get(variant.name) {
                let _ = writeln!(text, "{} = {}", variant.name, row(numbers));
            }
        }
    }
    text.push_str("\n[stack]\n");
    for (name, bytes) in &costs.stack {
        let _ = writeln!(text, "{name} = {bytes}");
    }
    std::fs::write(root().join(FILE), text).map_err(|error| format!("{FILE}: {error}"))
}

/// Counts the lines of code in files.
fn lines(files: &[String]) -> Result<u64, String> {
    let mut all = 0;
    for file in files {
        let text = std::fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
        all += Lines::of(&text, false).code as u64;
    }
    Ok(all)
}

/// Returns a board of each class, with the usual hardware of the class.
fn usual_boards() -> Vec<Board> {
    let mut found: Vec<Board> = Vec::new();
    for board in bulkhead_manifest::boards() {
        let is_usual = class::of(&board).hardware_of(&board).is_none();
        if is_usual && found.iter().all(|other| other.class != board.class) {
            found.push(board);
        }
    }
    found
}

/// Returns the class binary of a variant.
fn variant_binary(board: &Board, variant: &str) -> Result<Vec<u8>, String> {
    let workspace = Workspace::locate().map_err(|problem| problem.to_string())?;
    binary(&workspace, board, class_binary(board, false, variant))
}

/// Returns the parts that are measured: all that a board can have, but for most parts that no variant has.
/// The bytes of a user's own policy belong to the user's crate, and a second pCPU changes all other code.
fn measured(board: &Board) -> Parts {
    ahead_of_class(board.class).with(Part::Signature)
}

/// Returns the bytes that a part adds to the others, but for those that are built on it. The part `signature`
/// is measured beside the smallest variant: with all other parts it does not fit a microcontroller.
fn part_bytes(board: &Board, part: Part) -> Result<u64, String> {
    let built_on = |user: &Part| user.needs().has(part);
    let users: Vec<Part> = Part::ALL.iter().copied().filter(built_on).collect();
    let signature = Parts::of(&[Part::Signature]);
    let with = if part == Part::Signature {
        let [smallest, ..] = VARIANTS;
        let lacked = Parts::ALL.without(ahead_of_class(board.class));
        smallest.parts.without(lacked).and(signature)
    } else {
        measured(board).without(signature).without(Parts::of(&users))
    };
    let without = with.without(Parts::of(&[part]));
    Ok(own_bytes(board, with)?.saturating_sub(own_bytes(board, without)?))
}

/// Returns the bytes of a class binary with these parts.
fn own_bytes(board: &Board, parts: Parts) -> Result<u64, String> {
    let workspace = Workspace::locate().map_err(|problem| problem.to_string())?;
    let tables = String::new();
    let workspace = workspace.measured(Tailoring {
        parts,
        tables,
        own_policy: None,
    });
    let sizes = Sizes::of(&binary(&workspace, board, class_binary(board, false, TAILORED))?)?;
    Ok(sizes.text + sizes.read_only)
}

/// Builds a class binary, and returns its bytes.
fn binary(workspace: &Workspace, board: &Board, name: String) -> Result<Vec<u8>, String> {
    let built = workspace.build(core::slice::from_ref(&name), &Progress::new());
    built.map_err(|problem| problem.to_string())?;
    let linked = workspace.class_binary(board, &name);
    let path = linked.map_err(|problem| problem.to_string())?;
    std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}
