// SPDX-License-Identifier: Apache-2.0
//! The borders between the parts of the kernel.
//!
//! A part that a system can leave out has a folder in `kernel/src`, or a file. Such a part may know the core.
//! It names another part only if [`ALLOWED`] says why: by an import, or by the type of that part which
//! borrows a pCPU. An entry of the list that is not used is a finding, too.

use crate::circles::{self, Module};
use crate::workspace::sources;
use crate::{Findings, Outcome};
use std::collections::BTreeSet;

/// The folder of the kernel's crate.
const KERNEL: &str = "kernel";

/// The parts: the module, and the method that returns the part of a pCPU.
const PARTS: &[(&str, &str)] = &[
    ("channel", "channels"),
    ("flash", "flash"),
    ("function", "functions"),
    ("lent", "lent"),
    ("lock", "locks"),
    ("network", "networks"),
    ("port", "ports"),
    ("semihosting", "semihosting"),
    ("service", "services"),
    ("upcall", "upcalls"),
];

/// The parts that name another part, that part, and the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("function", "channel", "a PCI function is a side of a channel"),
    ("lent", "channel", "the memory that is lent is a channel"),
    (
        "lent",
        "port",
        "the interrupt of a line that is lent is a message",
    ),
    (
        "lock",
        "port",
        "a vCPU has one seat for its waits at ports and for locks",
    ),
    (
        "port",
        "lent",
        "a message can be one of a line, and no buffer is lent memory",
    ),
    (
        "port",
        "lock",
        "a vCPU has one seat for its waits at ports and for locks",
    ),
];

/// A part that names another part.
type Border = (&'static str, &'static str);

/// Checks the files of the kernel.
pub fn check() -> Outcome {
    let mut found = BTreeSet::new();
    for (module, imports) in circles::imports(KERNEL)? {
        let named = imports.iter().filter_map(part_of);
        found.extend(
            part_of(&module)
                .into_iter()
                .flat_map(|own| named.clone().map(move |part| (own, part))),
        );
    }
    for source in sources()?.iter().filter(|source| source.folder == KERNEL) {
        let name = &source.name;
        let inside = name.strip_prefix("kernel/src/").and_then(circles::module_of);
        let text = std::fs::read_to_string(&source.path).map_err(|error| format!("{name}: {error}"))?;
        let own = inside.as_ref().and_then(part_of);
        found.extend(
            own.into_iter()
                .flat_map(|own| called(&text).map(move |part| (own, part))),
        );
    }
    found.retain(|(own, other)| own != other);
    Ok(verdict(&found, ALLOWED))
}

/// Returns the part that a module belongs to.
fn part_of(module: &Module) -> Option<&'static str> {
    let first = module.first()?;
    PARTS.iter().map(|(part, _)| *part).find(|part| part == first)
}

/// Returns the parts of a pCPU that a text calls.
fn called(text: &str) -> impl Iterator<Item = &'static str> {
    let text: String = text.split_whitespace().collect();
    let is_called = move |method: &str| text.contains(&format!("pcpu.{method}()"));
    let parts = PARTS.iter().filter(move |(_, method)| is_called(method));
    parts.map(|(part, _)| *part)
}

/// Compares the borders that are crossed with the list.
fn verdict(found: &BTreeSet<Border>, allowed: &[(&str, &str, &str)]) -> Findings {
    let is_allowed = |own: &str, other: &str| allowed.iter().any(|(a, b, _)| (*a, *b) == (own, other));
    let crossed = found.iter().filter(|(own, other)| !is_allowed(own, other));
    let crossed = crossed.map(|(own, other)| format!("{KERNEL}: part `{own}` names part `{other}`"));
    let unused = allowed
        .iter()
        .filter(|(own, other, _)| !found.contains(&(*own, *other)));
    let unused = unused.map(|(own, other, _)| {
        format!("{KERNEL}: part `{own}` names `{other}` no more: take it out of xtask/src/borders.rs")
    });
    crossed.chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use super::{called, check, verdict};
    use crate::Findings;
    use std::collections::BTreeSet;

    #[test]
    fn this_repository_keeps_to_it() {
        assert_eq!(check(), Ok(Findings::new()));
    }

    #[test]
    fn a_part_that_names_another_is_found() {
        let found = BTreeSet::from([("lock", "flash")]);
        assert_eq!(verdict(&found, &[]), ["kernel: part `lock` names part `flash`"]);
        assert_eq!(verdict(&found, &[("lock", "flash", "a reason")]), [""; 0]);
        assert_eq!(
            verdict(&BTreeSet::new(), &[("lock", "flash", "a reason")]).len(),
            1
        );
    }

    #[test]
    fn a_call_of_another_part_is_found_across_lines() {
        let text = "self\n    .pcpu\n    .lent()\n    .take();";
        assert_eq!(called(text).collect::<Vec<_>>(), ["lent"]);
        assert_eq!(called("self.pcpu.machine.now()").count(), 0);
    }
}
