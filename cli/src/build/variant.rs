// SPDX-License-Identifier: Apache-2.0
//! The class binary of a system: with which parts of the kernel it is built, and its name.
//!
//! A class binary is `bulkhead-hypervisor-CLASS`, then the name of its set of parts, then the name of its
//! hardware. A set is a variant that is built ahead, or `tailored`: exactly the parts of one system. The
//! variant with everything adds nothing to the name.

use crate::build::own_policy::OwnCrate;
use crate::class::{self, Hardware, Tool};
use crate::problem::Problem;
use bulkhead_manifest::Board;
use bulkhead_manifest::parts::{FULL, Parts, UsedPart, VARIANTS, Variant, set_of, variant_for};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::Command;

/// Start of the name of a class binary.
pub(super) const HYPERVISOR: &str = "bulkhead-hypervisor-";
/// Second part of the name of a class binary that runs checks instead of the kernel.
const CONFORMANCE: &str = "conformance-";
/// The package that reads the sizes of tables.
const READS_TABLES: &str = "bulkhead-abi";
/// The set of parts of a class binary that is built for one system.
pub const TAILORED: &str = "tailored";

/// The way in which the parts of a system's class binary are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The smallest variant that has the parts that the system uses.
    #[default]
    Smallest,
    /// This variant.
    Named(Variant),
    /// Exactly the parts that the system uses, and tables of its size.
    Tailored,
}

impl Choice {
    /// Returns the name of the set of parts for a system that uses these.
    ///
    /// # Errors
    /// The variant that is asked for lacks a part.
    pub fn set(self, used: &[UsedPart], manifest: &Path) -> Result<&'static str, Problem> {
        match self {
            // Only a class binary of the system's own has a policy of the user's own.
            Self::Smallest => Ok(variant_for(set_of(used)).map_or(TAILORED, |variant| variant.name)),
            Self::Named(variant) => has_all(variant, used, manifest).map(|()| variant.name),
            Self::Tailored => Ok(TAILORED),
        }
    }
}

/// Returns the variant of this name.
#[must_use]
pub fn named(name: &str) -> Option<Variant> {
    VARIANTS.into_iter().find(|variant| variant.name == name)
}

/// Parses the name of a variant on the command line.
///
/// # Errors
/// There is none of this name.
pub fn parse(name: &str) -> Result<Variant, String> {
    named(name).ok_or_else(|| {
        let names = VARIANTS.map(|variant| variant.name);
        format!("there is no variant `{name}`; there are {}", names.join(", "))
    })
}

/// Checks that a variant has all parts that a system uses.
fn has_all(variant: Variant, used: &[UsedPart], manifest: &Path) -> Result<(), Problem> {
    let Some(lacking) = used.iter().find(|used| !variant.parts.has(used.part)) else {
        return Ok(());
    };
    let place = lacking.line.map_or_else(String::new, |line| {
        format!(", which line {line} of {} needs", manifest.display())
    });
    let remedy = match variant_for(set_of(used)) {
        Some(Variant { name, .. }) => {
            format!("leave out --variant: `{name}` is the smallest variant with all parts of this system")
        }
        None => "leave out --variant: a hypervisor is compiled for this system alone".to_owned(),
    };
    Err(Problem::new(format!(
        "the variant `{}` lacks the part `{}`{place}: {}",
        variant.name, lacking.part, lacking.why
    ))
    .remedy(remedy))
}

/// A class binary for one system.
#[derive(Clone, Debug)]
pub struct Tailoring {
    /// Its parts.
    pub parts: Parts,
    /// The records of its tables, as `abi/src/size.rs` reads them: `NAME=RECORDS`, with commas between.
    pub tables: String,
    /// The crate of the policy of the user's own, if the system has one.
    pub own_policy: Option<OwnCrate>,
}

impl Tailoring {
    /// Returns a word that stands for the parts and tables.
    pub(super) fn word(&self, name: &str) -> String {
        let own = self.own_policy.as_ref().map(OwnCrate::folder);
        let text = format!("{name} {} {} {own:?}", self.parts.0, self.tables);
        let digest = Sha256::digest(text);
        digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Tells cargo the tables of the class binary, and the folder `apart` that the class binary is put in.
    ///
    /// The size of a table is an environment variable. cargo would build the crate that reads the variable
    /// anew at each change. So the crate gets a flag for each set of sizes. The flag means nothing to the
    /// compiler, but cargo keeps apart what was built with another flag, and all that depends on it. The
    /// finished binary has the name of every other system's, so it gets a folder that no other build uses.
    pub(super) fn choose(&self, command: &mut Command, profile: &str, apart: Option<&Path>) {
        command.env("BULKHEAD_TABLES", &self.tables);
        let Some(apart) = apart else { return };
        let word = apart.file_name().unwrap_or_default().display();
        command.args(["-Zprofile-rustflags", "-Zunstable-options", "--config"]);
        command.arg(format!(
            "profile.{profile}.package.{READS_TABLES}.rustflags=['--cfg=tables=\"{word}\"']"
        ));
        command.arg("--artifact-dir").arg(apart);
        // Both options are of nightly compilers, as the building of `core` is.
        command.env("RUSTC_BOOTSTRAP", "1");
    }
}

/// Returns the name of the class binary for a board, with this set of parts. With `conformance`, the class
/// binary runs the checks of `arch/conformance`, and it has no set.
#[must_use]
pub fn class_binary(board: &Board, conformance: bool, set: &str) -> String {
    let what = if conformance { CONFORMANCE } else { "" };
    let set = match set {
        _ if conformance => String::new(),
        FULL => String::new(),
        set => format!("-{set}"),
    };
    let hardware = class::of(board)
        .hardware_of(board)
        .map_or("", |hardware| hardware.suffix);
    format!("{HYPERVISOR}{what}{}{set}{hardware}", board.class.name())
}

/// Tells whether a class binary of this name is built for one system.
pub(super) fn is_tailored(name: &str) -> bool {
    ClassBinary::of(name).is_some_and(|binary| binary.set == Some(TAILORED))
}

/// A name of a class binary, taken apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassBinary<'a> {
    /// The package of cargo.
    pub package: &'a str,
    /// The name of the set of parts, if the name has one.
    pub set: Option<&'static str>,
    /// The feature of the package that chooses the set.
    set_feature: Option<&'static str>,
    hardware: Option<&'static Hardware>,
}

impl<'a> ClassBinary<'a> {
    /// Takes the name of a program apart; `None` if it names no class binary.
    pub fn of(program: &'a str) -> Option<Self> {
        let name = program.strip_prefix(HYPERVISOR)?;
        let name = name.strip_prefix(CONFORMANCE).unwrap_or(name);
        let is_its = |tool: &&dyn Tool| {
            let rest = name.strip_prefix(tool.facts().name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let tool = class::all().find(is_its)?;
        let mut all = tool.hardware().iter();
        let hardware = all.find(|hardware| program.ends_with(hardware.suffix));
        let general = program.strip_suffix(hardware.map_or("", |hardware| hardware.suffix))?;
        let sets = VARIANTS.map(|variant| variant.name);
        let found = sets.into_iter().chain([TAILORED]).find_map(|set| {
            let package = general.strip_suffix(set)?.strip_suffix('-')?;
            Some((package, set))
        });
        let binary = |package, set: Option<&'static str>, set_feature| Self {
            package,
            set,
            set_feature,
            hardware,
        };
        Some(match found {
            Some((_, set)) if tool.sets_are_packages() => {
                // The features of the package are the parts, if it has any.
                binary(general, Some(set), (set == TAILORED).then_some(TAILORED))
            }
            Some((package, set)) => binary(package, Some(set), Some(set)),
            None => binary(general, None, None),
        })
    }

    /// Returns the word for what tells it from the usual class binary.
    pub fn kind(&self) -> String {
        let hardware = self.hardware.map_or("", |hardware| hardware.suffix);
        format!("{}{hardware}", self.set.unwrap_or(""))
    }

    /// Returns the features with which its package is built.
    pub fn features(&self, tailoring: Option<&Tailoring>) -> Vec<&'static str> {
        let hardware = self.hardware.map(|hardware| hardware.feature);
        let parts = tailoring.iter().flat_map(|own| own.parts.iter());
        let own = self.set_feature.into_iter().chain(hardware);
        own.chain(parts.map(|part| part.name())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_manifest::parts::Part;

    fn board(name: &str) -> Board {
        let boards = bulkhead_manifest::boards();
        boards.into_iter().find(|board| board.name == name).unwrap()
    }

    #[test]
    fn the_name_of_a_class_binary_says_its_parts_and_hardware() {
        let name = |own: &str, set: &str| class_binary(&board(own), false, set);
        assert_eq!(name("qemu-virt-aarch64", "full"), "bulkhead-hypervisor-aarch64");
        assert_eq!(
            name("xlnx-zcu102", "ipc"),
            "bulkhead-hypervisor-aarch64-ipc-gic-v2"
        );
        assert_eq!(name("mps2-an500", "static"), "bulkhead-hypervisor-armv7m-static");
        let checks = class_binary(&board("xlnx-zcu102"), true, "static");
        assert_eq!(checks, "bulkhead-hypervisor-conformance-aarch64-gic-v2");
    }

    #[test]
    fn a_name_leads_to_a_package_and_its_features() {
        let of = |name: &str| {
            let name = format!("{HYPERVISOR}{name}");
            let own = ClassBinary::of(&name).unwrap();
            let package = own.package.strip_prefix(HYPERVISOR).unwrap();
            format!("{package} {}", own.features(None).join(" "))
        };
        assert_eq!(of("aarch64"), "aarch64 ");
        assert_eq!(of("aarch64-gic-v2"), "aarch64 gic-v2");
        assert_eq!(of("aarch64-static"), "aarch64 static");
        assert_eq!(of("aarch64-ipc-gic-v2"), "aarch64 ipc gic-v2");
        assert_eq!(of("armv7m-ipc"), "armv7m-ipc ");
        assert_eq!(of("armv7m-tailored"), "armv7m-tailored tailored");
        assert_eq!(of("conformance-x86_64"), "conformance-x86_64 ");
        assert_eq!(of("conformance-aarch64-gic-v2"), "conformance-aarch64 gic-v2");
        assert!(ClassBinary::of("guest-static").is_none());
    }

    #[test]
    fn a_tailored_binary_has_a_feature_for_each_part() {
        let own = ClassBinary::of("bulkhead-hypervisor-x86_64-tailored").unwrap();
        let tailoring = Tailoring {
            parts: Parts::of(&[Part::Ports, Part::Edf]),
            tables: String::new(),
            own_policy: None,
        };
        assert_eq!(own.features(Some(&tailoring)), ["tailored", "ports", "edf"]);
    }

    #[test]
    fn class_binaries_of_two_systems_are_kept_apart_and_all_else_is_shared() {
        let arguments = |tables: &str| {
            let (parts, tables) = (Parts::of(&[Part::Ports]), tables.to_owned());
            let tailoring = Tailoring {
                parts,
                tables,
                own_policy: None,
            };
            let folder = Path::new("tailored").join(tailoring.word("x"));
            let mut command = Command::new("cargo");
            tailoring.choose(&mut command, "firmware", Some(&folder));
            let arguments = command.get_args().map(|argument| argument.display().to_string());
            (folder, arguments.collect::<Vec<_>>())
        };
        let (folder, first) = arguments("vcpus=2");
        let word = folder.file_name().unwrap().display();
        assert!(
            first.contains(&format!(
                "profile.firmware.package.bulkhead-abi.rustflags=['--cfg=tables=\"{word}\"']"
            )),
            "{first:?}"
        );
        assert!(
            !first.iter().any(|argument| argument == "--target-dir"),
            "{first:?}"
        );
        assert_ne!(arguments("vcpus=3"), (folder.clone(), first.clone()));
        assert_eq!(arguments("vcpus=2"), (folder, first));
    }

    #[test]
    fn a_variant_without_a_part_is_refused_with_the_line() {
        let used = [UsedPart {
            part: Part::Ports,
            line: Some(12),
            why: "port `requests`".to_owned(),
        }];
        let set = |choice: Choice| choice.set(&used, Path::new("a.toml"));
        assert_eq!(set(Choice::Smallest).unwrap(), "ipc");
        let own = [UsedPart {
            part: Part::OwnPolicy,
            ..used[0].clone()
        }];
        let path = Path::new("a.toml");
        assert_eq!(Choice::Smallest.set(&own, path).unwrap(), TAILORED);
        let full = Choice::Named(named("full").unwrap()).set(&own, path).unwrap_err();
        assert!(
            full.display()
                .contains("a hypervisor is compiled for this system alone")
        );
        assert_eq!(set(Choice::Tailored).unwrap(), "tailored");
        let refused = set(Choice::Named(named("static").unwrap())).unwrap_err();
        assert_eq!(
            refused.message(),
            "the variant `static` lacks the part `ports`, which line 12 of a.toml needs: port `requests`"
        );
        assert!(parse("tiny").unwrap_err().contains("static, ipc, full"));
    }
}
