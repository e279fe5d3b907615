// SPDX-License-Identifier: Apache-2.0
//! The dependency rule: arrows between rooms point one way.
//!
//! The table is the list of the design charter. Only normal dependencies count: tests may reach further,
//! nothing that runs on a board may. A second rule: every outside crate that is linked into a class
//! binary of any class is named, with its reason, in `docs/dependencies.md`.

use crate::workspace::{Package, output, packages, root};
use crate::{Findings, Outcome, toolchain};
use std::collections::{BTreeMap, BTreeSet};

/// Folder, and the folders it may use. A `*` at the end stands for any rest.
const RULES: &[(&str, &[&str])] = &[
    ("abi", &[]),
    ("sched", &[]),
    ("sched/remote", &["sched"]),
    // The facts of each class.
    ("image", &["abi", "arch/api"]),
    // The check of signatures, with its cryptography.
    ("trust", &["image"]),
    ("devices", &["abi", "arch/api"]),
    ("kernel", &["abi", "sched", "image", "arch/api", "devices"]),
    (
        "manifest",
        // The host checks an image with the very code that checks it on the target.
        &[
            "image",
            "sched",
            "abi",
            "arch/api",
            "arch/paging",
            "arch/regions",
            "arch/armv7m/core",
        ],
    ),
    // The facts of each class.
    (
        "cli",
        &[
            "manifest",
            "image",
            "trust",
            "sched",
            "sched/remote",
            "abi",
            "arch/api",
            "loader/plan",
            "services/attest",
        ],
    ),
    // A plan says where a system goes in memory: the host tool writes a plan, and a loader reads it.
    ("loader/plan", &[]),
    ("loader/uefi", &["loader/plan"]),
    // An instrument of the hypervisor's developers: no user's tool depends on it.
    ("bench", &["cli", "image", "manifest", "sched", "arch/api"]),
    // The stack of a class binary, from its machine code.
    ("stack", &["abi"]),
    ("xtask", &["cli", "bench", "stack", "tests", "abi", "manifest"]),
    ("tests", &["cli", "bench", "abi"]),
    ("arch/api", &["abi"]),
    // The framing of the console, for a line from the last moment.
    ("arch/support", &["abi", "arch/api"]),
    // The halves that twins share. The system image says where the console is, and how long the image is.
    (
        "arch/one-pcpu",
        &[
            "abi",
            "image",
            "arch/api",
            "arch/support",
            "arch/trust",
            "drivers",
        ],
    ),
    (
        "arch/translating",
        &["abi", "image", "arch/api", "arch/support", "arch/paging"],
    ),
    // The record with the keys of the owner, and the first look at the system image.
    ("arch/trust", &["image", "trust", "arch/api"]),
    ("arch/paging", &["arch/api"]),
    ("arch/vgic", &["arch/api"]),
    ("arch/regions", &["arch/api"]),
    // Hypercalls are decoded there, and what a guest wrote into its own memory protection unit is combined.
    ("arch/armv7m/core", &["abi", "arch/api", "arch/regions"]),
    ("arch/sim", &["abi", "arch/api"]),
    // The class binaries of the checks find their guest in the tables of the system image.
    ("arch/conformance", &["abi", "image", "arch/api"]),
    (
        "arch/aarch64",
        &[
            "abi",
            // A backend finds its controllers in the tables of the system image.
            "image",
            "arch/api",
            "arch/translating",
            "arch/support",
            "arch/trust",
            "arch/paging",
            "arch/vgic",
            "arch/aarch64/core",
            "drivers",
        ],
    ),
    ("arch/aarch64/core", &["abi", "arch/api"]),
    (
        "arch/armv7m",
        &[
            "abi",
            "image",
            "arch/api",
            "arch/one-pcpu",
            "arch/support",
            "arch/trust",
            "arch/regions",
            "arch/armv7m/core",
            "drivers",
        ],
    ),
    // Instructions and frames are as on Armv7-M.
    ("arch/armv8m/core", &["arch/armv7m/core", "arch/regions"]),
    (
        "arch/armv8m",
        &[
            "abi",
            "image",
            "arch/api",
            "arch/one-pcpu",
            "arch/support",
            "arch/trust",
            "arch/regions",
            "arch/armv7m/core",
            "arch/armv8m/core",
            "drivers",
        ],
    ),
    (
        "arch/x86_64",
        &[
            "abi",
            "image",
            "arch/api",
            "arch/translating",
            "arch/support",
            "arch/trust",
            "arch/paging",
            "arch/x86_64/core",
        ],
    ),
    ("arch/x86_64/core", &["arch/api"]),
    (
        "arch/ppc405",
        &[
            "abi",
            "image",
            "arch/api",
            "arch/one-pcpu",
            "arch/support",
            "arch/trust",
            "arch/ppc405/core",
            "drivers",
        ],
    ),
    // Hypercalls are read and answered there.
    ("arch/ppc405/core", &["abi", "arch/api"]),
    ("drivers", &["arch/api", "arch/support"]),
    (
        "hypervisor/*",
        &["abi", "kernel", "image", "sched", "arch/*", "drivers"],
    ),
    // A policy of a user's own sees nothing but its input.
    ("examples/*", &["sched"]),
    // The register window of a device.
    ("services/attest", &[]),
    ("services/virtio", &["devices"]),
    ("guest", &["abi", "guest/ring"]),
    ("guest/ring", &[]),
    ("guest/mcu", &[]),
    ("apex", &["abi", "guest"]),
    ("apex/a653rs", &["apex"]),
    ("apex/c", &["apex", "guest"]),
    // It measures what the policies cost, apart from the rest of the hypervisor.
    ("guests/bench/bench", &["abi", "guest", "sched"]),
    ("guests/bench/calibrate", &["abi", "guest", "sched"]),
    // Back ends, and the registers that a later life finds; quotes.
    (
        "guests/serve/*",
        &["abi", "devices", "guest", "services/attest", "services/virtio"],
    ),
    (
        "guests/*",
        &["abi", "apex", "apex/a653rs", "guest", "guest/mcu", "guest/ring"],
    ),
];

/// Checks the whole workspace.
pub fn check() -> Outcome {
    let packages = packages()?;
    let mut findings = arrows(&packages);
    findings.extend(unexplained(
        &linked_into_class_binaries(&packages)?,
        &dependencies_page()?,
    ));
    Ok(findings)
}

fn matches(pattern: &str, folder: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => folder.starts_with(prefix),
        None => pattern == folder,
    }
}

fn arrows(packages: &[Package]) -> Findings {
    let folders: BTreeMap<&str, String> = packages
        .iter()
        .map(|package| (package.name.as_str(), package.folder()))
        .collect();
    let mut findings = Findings::new();
    for package in packages {
        let folder = package.folder();
        let Some((_, allowed)) = RULES.iter().find(|(pattern, _)| matches(pattern, &folder)) else {
            findings.push(format!(
                "{folder}: no rule says what it may use; add one to the charter and to xtask"
            ));
            continue;
        };
        let used = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.path.is_some() && dependency.kind.is_none());
        for name in used.map(|dependency| dependency.name.as_str()) {
            let target = folders.get(name).map_or(name, String::as_str);
            if !allowed.iter().any(|pattern| matches(pattern, target)) {
                findings.push(format!(
                    "{folder} must not depend on {target} (allowed: {})",
                    allowed.join(", ")
                ));
            }
        }
    }
    findings
}

/// Outside crates that cargo links into a class binary of any class; procedural macros stay on the host.
fn linked_into_class_binaries(packages: &[Package]) -> Result<Vec<String>, String> {
    let mut names = BTreeSet::new();
    for (package, class) in class_binaries(packages) {
        names.extend(linked_into(&package, class)?);
    }
    Ok(names.into_iter().collect())
}

/// Returns the packages of class binaries, each with its class. The packages of the conformance suite run on
/// the boards of developers only.
fn class_binaries(packages: &[Package]) -> Vec<(String, toolchain::Class)> {
    let mut found = Vec::new();
    for package in packages {
        let folder = package.folder();
        if folder.starts_with("hypervisor/") && !folder.starts_with("hypervisor/conformance-") {
            let classes = toolchain::Class::all();
            let own = classes.filter(|class| class.has_binary(&folder));
            found.extend(own.map(|class| (package.name.clone(), class)));
        }
    }
    found
}

/// Returns the outside crates of a package of a class, with all its features.
fn linked_into(package: &str, class: toolchain::Class) -> Result<BTreeSet<String>, String> {
    let mut command = toolchain::for_target(class, "tree");
    command.args(["-p", package, "--all-features"]).args([
        "-e",
        "normal,no-proc-macro",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let listed = output(&mut command)?;
    let outside = listed.lines().filter(|line| !line.contains('/'));
    let names = outside.filter_map(|line| line.split_whitespace().next());
    Ok(names.map(str::to_owned).collect())
}

fn dependencies_page() -> Result<String, String> {
    let path = root().join("docs/dependencies.md");
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn unexplained(names: &[String], page: &str) -> Findings {
    let is_named = |name: &&String| {
        page.lines()
            .any(|line| line.starts_with(&format!("| `{name}` |")))
    };
    names
        .iter()
        .filter(|name| !is_named(name))
        .map(|name| format!("docs/dependencies.md does not say why `{name}` runs on the target"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(folder: &str, uses: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: (*name).into(),
            kind: kind.map(Into::into),
            path: Some(root().join(name)),
        };
        Package {
            metadata: None,
            name: folder.into(),
            manifest_path: root().join(folder).join("Cargo.toml"),
            dependencies: uses.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn an_arrow_against_the_rule_is_found() {
        let packages = [
            package("kernel", &[("abi", None), ("arch/aarch64", None)]),
            package("abi", &[]),
            package("arch/aarch64", &[]),
        ];
        let findings = arrows(&packages);
        assert_eq!(findings.len(), 1);
        assert!(
            findings[0].starts_with("kernel must not depend on arch/aarch64"),
            "{}",
            findings[0]
        );
    }

    #[test]
    fn tests_may_reach_further() {
        let packages = [
            package("kernel", &[("arch/sim", Some("dev"))]),
            package("arch/sim", &[]),
        ];
        assert_eq!(arrows(&packages), Findings::new());
    }

    #[test]
    fn a_new_room_needs_a_rule() {
        assert!(arrows(&[package("attic", &[])])[0].starts_with("attic: no rule"));
    }

    #[test]
    fn a_target_crate_without_a_reason_is_found() {
        let page = "| `spin` | locks |\n";
        assert_eq!(unexplained(&["spin".into()], page), Findings::new());
        assert_eq!(unexplained(&["sp".into()], page).len(), 1);
    }

    #[test]
    fn every_crate_on_a_target_has_a_reason() {
        let linked = linked_into_class_binaries(&packages().unwrap()).unwrap();
        assert!(linked.iter().any(|name| name == "spin"), "{linked:?}");
        assert_eq!(
            unexplained(&linked, &dependencies_page().unwrap()),
            Findings::new()
        );
    }

    #[test]
    fn the_crates_of_each_class_are_looked_at() {
        let binaries = class_binaries(&packages().unwrap());
        for class in toolchain::Class::all() {
            let own = binaries.iter().filter(|(_, of)| of.target() == class.target());
            assert_ne!(own.count(), 0, "{}", class.target());
        }
        let folders = packages().unwrap();
        let all = folders.iter().map(Package::folder);
        let variants = all.filter(|folder| {
            folder.starts_with("hypervisor/") && !folder.starts_with("hypervisor/conformance-")
        });
        assert_eq!(binaries.len(), variants.count());
    }

    /// Returns the names of all packages of the workspace that are built for the tests of one of them.
    fn built_for(tests: &str, packages: &[Package]) -> Vec<String> {
        let mut found = vec![tests.to_owned()];
        let mut next = 0;
        while let Some(name) = found.get(next).cloned() {
            next += 1;
            let own = packages.iter().filter(|package| package.name == name);
            for dependency in own.flat_map(|package| &package.dependencies) {
                let is_built = dependency.kind.as_deref() != Some("dev") || name == tests;
                if dependency.path.is_some() && is_built && !found.contains(&dependency.name) {
                    found.push(dependency.name.clone());
                }
            }
        }
        found
    }

    /// Between a change of the kernel and the verdict of a system case the class binary is built, and nothing
    /// else: a developer who changes the kernel waits for seconds.
    #[test]
    fn a_change_of_the_kernel_builds_neither_the_tool_nor_its_system_tests() {
        let packages = packages().unwrap();
        let built = built_for("bulkhead-tests", &packages);
        assert!(built.iter().any(|name| name == "bulkhead"), "{built:?}");
        let changed = [
            "bulkhead-kernel",
            "bulkhead-devices",
            "bulkhead-hypervisor-aarch64",
        ];
        for name in changed {
            assert!(
                packages.iter().any(|package| package.name == name),
                "{name} is no package"
            );
            assert!(!built.iter().any(|other| other == name), "{name}: {built:?}");
        }
    }
}
