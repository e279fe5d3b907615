// SPDX-License-Identifier: Apache-2.0
//! Builds the crate of a policy of the user's own into a class binary.
//!
//! A class binary takes its policies from the package `bulkhead-policies`, which is `bulkhead-sched`. For a
//! system with a policy of the user's own, this module writes a workspace of cargo that has another package
//! of that name: all policies of ours, and the one of the crate. Everything else in the workspace is as in
//! the repository: the package of the class binary is a copy, all other packages are the repository's own.

use crate::problem::Problem;
use bulkhead_manifest::{OwnPolicy, System};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The folder with the workspaces, in the folder in which cargo builds.
pub(super) const FOLDER: &str = "own-policy";

/// The crate of a policy of the user's own.
#[derive(Clone, Debug)]
pub struct OwnCrate {
    policy: OwnPolicy,
    folder: PathBuf,
}

impl OwnCrate {
    /// Returns the crate of a system whose manifest is in the folder `base`, if the system has such a policy.
    ///
    /// # Errors
    /// The folder of the crate is not there any more.
    pub fn of(system: &System, base: &Path) -> Result<Option<Self>, Problem> {
        let Some(policy) = system.own_policy() else {
            return Ok(None);
        };
        let folder = base.join(&policy.folder);
        let folder = fs::canonicalize(&folder).map_err(Problem::io(folder.display()))?;
        Ok(Some(Self { policy, folder }))
    }

    /// Returns the folder of the crate.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the name of the crate.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.policy.name
    }

    /// Writes the workspace for the package of a class binary in the folder `class` of `hypervisor`. `root`
    /// is the repository, and the workspace goes into `target`. Returns the file that names the workspace
    /// to cargo.
    pub(super) fn with_class_binary(
        &self,
        root: &Path,
        target: &Path,
        class: &str,
    ) -> Result<PathBuf, Problem> {
        self.is_for(root)?;
        let folder = target.join(self.word()).join(class);
        // A package beside the one of the class has the sources of that one.
        let shared = class.split('-').next().unwrap_or(class);
        for own in [class, shared] {
            copy(
                &root.join("hypervisor").join(own),
                &folder.join("hypervisor").join(own),
            )?;
        }
        let policies = folder.join("policies");
        write(&policies.join("Cargo.toml"), &self.policies(root))?;
        write(&policies.join("src/lib.rs"), &self.all_policies())?;
        let file = root.join("Cargo.toml");
        let whole = fs::read_to_string(&file).map_err(Problem::io(file.display()))?;
        let own = folder.join("Cargo.toml");
        write(&own, &workspace(&whole, root, class))?;
        let lock = folder.join("Cargo.lock");
        if !lock.is_file() {
            fs::copy(root.join("Cargo.lock"), &lock).map_err(Problem::io(lock.display()))?;
        }
        Ok(own)
    }

    /// Writes the package of the program that answers for the policy in simulations. `root` is the
    /// repository, and the package goes into a folder in `target`. Returns that folder, and the name of the
    /// program.
    pub(super) fn with_simulator(
        &self,
        root: &Path,
        target: &Path,
    ) -> Result<(PathBuf, &'static str), Problem> {
        const NAME: &str = "own-policy-simulator";
        self.is_for(root)?;
        let folder = target.join(FOLDER).join(self.word()).join("simulator");
        let text = format!(
            "[workspace]\n\n[package]\nname = \"{NAME}\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n\
             [profile.dev]\nopt-level = 2\ndebug = false\n\n\
             [dependencies]\nbulkhead-remote-policy = {{ path = {} }}\n{} = {{ path = {} }}\n",
            quoted(&root.join("sched/remote")),
            self.name(),
            quoted(&self.folder)
        );
        write(&folder.join("Cargo.toml"), &text)?;
        let source = format!(
            "#![forbid(unsafe_code)]\n\n\
             // The policy is the type of the crate that has the name of the crate.\n\
             fn main() -> std::io::Result<()> {{\n    bulkhead_remote_policy::serve::<{}>()\n}}\n",
            self.path_of_type()
        );
        write(&folder.join("src/main.rs"), &source)?;
        Ok((folder, NAME))
    }

    /// Returns a word for the crate: its name, and what tells it from others of the name.
    fn word(&self) -> String {
        let digest = Sha256::digest(self.folder.as_os_str().as_encoded_bytes());
        let digest = digest.iter().take(4).map(|byte| format!("{byte:02x}"));
        format!("{}-{}", self.name(), digest.collect::<String>())
    }

    /// Returns the `Cargo.toml` of the package with the policies.
    fn policies(&self, root: &Path) -> String {
        format!(
            "[package]\nname = \"bulkhead-policies\"\nversion = \"0.1.0\"\nedition = \"2024\"\npublish = false\n\n\
             [dependencies]\nbulkhead-sched = {{ path = {}, features = [\"own-policy\"] }}\n{} = {{ path = {} }}\n",
            quoted(&root.join("sched")),
            self.name(),
            quoted(&self.folder)
        )
    }

    /// Returns the source of the package with the policies.
    fn all_policies(&self) -> String {
        format!(
            "#![no_std]\n#![forbid(unsafe_code)]\n\n\
             /// The policy is the type of the crate that has the name of the crate.\n\
             pub type AnyPolicy = bulkhead_sched::AnyOwnPolicy<{}>;\n",
            self.path_of_type()
        )
    }

    /// Returns the path of the type that is the policy.
    fn path_of_type(&self) -> String {
        format!("{}::{}", self.policy.crate_name(), self.policy.type_name())
    }

    /// Checks that the crate is written for this Bulkhead: that it takes its traits from the repository.
    fn is_for(&self, root: &Path) -> Result<(), Problem> {
        let file = self.folder.join("Cargo.toml");
        let text = fs::read_to_string(&file).map_err(Problem::io(file.display()))?;
        let manifest: Table = toml::from_str(&text)
            .map_err(|error| Problem::new(format!("{}: {}", file.display(), error.message())))?;
        let sched = manifest
            .get("dependencies")
            .and_then(|all| all.get("bulkhead-sched"));
        // The workspace of the crate says where the traits are.
        if sched.is_some_and(|sched| sched.get("workspace").is_some()) {
            return Ok(());
        }
        let ours = fs::canonicalize(root.join("sched")).unwrap_or_else(|_| root.join("sched"));
        let path = sched.and_then(|sched| sched.get("path")).and_then(Value::as_str);
        let found = path.map(|path| self.folder.join(path));
        if found
            .as_deref()
            .and_then(|path| fs::canonicalize(path).ok())
            .as_ref()
            == Some(&ours)
        {
            return Ok(());
        }
        let found = found.map_or_else(|| "of no folder".to_owned(), |path| format!("{}", path.display()));
        Err(Problem::new(format!(
            "the crate `{}` is written for another Bulkhead: its `bulkhead-sched` is {found}",
            self.name()
        ))
        .remedy(format!(
            "write in {}: bulkhead-sched = {{ path = {} }}",
            file.display(),
            quoted(&ours)
        )))
    }

    /// Returns the problem of a user whose crate the compiler refused with these words.
    pub(super) fn refused(&self, problem: &Problem) -> Problem {
        let said = problem.message();
        let remedy = if said.contains(&format!("cannot find type `{}`", self.policy.type_name())) {
            format!(
                "the policy is the public type `{}`: name it so",
                self.path_of_type()
            )
        } else if said.contains("OwnPolicy") && said.contains("is not satisfied") {
            format!(
                "implement the traits `Policy` and `OwnPolicy` of bulkhead-sched for `{}`",
                self.path_of_type()
            )
        } else {
            format!("`cargo check` in {} says more", self.folder.display())
        };
        Problem::new(format!("the policy `{}` cannot be built in; {said}", self.name())).remedy(remedy)
    }
}

/// Returns the `Cargo.toml` of the workspace: the repository's, with one package, and with paths that start
/// at the root of the file system.
fn workspace(whole: &str, root: &Path, class: &str) -> String {
    let rest = whole
        .find("[workspace.package]")
        .map_or("", |start| &whole[start..]);
    let mut text = format!("[workspace]\nresolver = \"3\"\nmembers = [\"hypervisor/{class}\"]\n\n");
    for line in rest.lines() {
        let own = if line.starts_with("bulkhead-policies = ") {
            "bulkhead-policies = { path = \"policies\" }".to_owned()
        } else if let Some((start, (path, end))) = line
            .split_once("path = \"")
            .and_then(|(start, rest)| Some((start, rest.split_once('"')?)))
        {
            format!("{start}path = {}{end}", quoted(&root.join(path)))
        } else {
            line.to_owned()
        };
        text.push_str(&own);
        text.push('\n');
    }
    text
}

/// Returns a path as a string of TOML.
fn quoted(path: &Path) -> String {
    toml_string(&path.display().to_string())
}

/// Returns a text as a string of TOML.
#[must_use]
pub fn toml_string(text: &str) -> String {
    // A string of JSON is one of TOML too.
    serde_json::Value::from(text).to_string()
}

/// Copies a folder. Files that are the same already are left alone, so that cargo does not build anew.
fn copy(from: &Path, to: &Path) -> Result<(), Problem> {
    for entry in fs::read_dir(from).map_err(Problem::io(from.display()))? {
        let path = entry.map_err(Problem::io(from.display()))?.path();
        let Some(name) = path.file_name() else { continue };
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else {
            let text = fs::read_to_string(&path).map_err(Problem::io(path.display()))?;
            write(&to.join(name), &text)?;
        }
    }
    Ok(())
}

/// Writes a text, unless the file has it already.
fn write(file: &Path, text: &str) -> Result<(), Problem> {
    if fs::read_to_string(file).is_ok_and(|found| found == text) {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(Problem::io(folder.display()))?;
    }
    fs::write(file, text).map_err(Problem::io(file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    fn own() -> OwnCrate {
        let folder = root().join("examples/aarch64-own-policy/weighted-turns");
        OwnCrate {
            policy: OwnPolicy {
                name: "weighted-turns".to_owned(),
                folder: "weighted-turns".to_owned(),
            },
            folder,
        }
    }

    #[test]
    fn a_crate_has_the_traits_of_this_repository() {
        assert!(own().is_for(&root()).is_ok());
        let other = own().is_for(Path::new("/elsewhere")).unwrap_err();
        let shown = other.display();
        assert!(shown.contains("is written for another Bulkhead"), "{shown}");
        assert!(
            shown.contains("bulkhead-sched = { path = \"/elsewhere/sched\" }"),
            "{shown}"
        );
    }

    #[test]
    fn the_workspace_has_one_package_and_absolute_paths() {
        let whole = "[workspace]\nmembers = [\"abi\"]\n[workspace.package]\nversion = \"1\"\n\
                     [workspace.dependencies]\nabi = { path = \"abi\" }\nspin = \"1\"\n\
                     bulkhead-policies = { package = \"bulkhead-sched\", path = \"sched\" }\n[profile.firmware]\nlto = true\n";
        assert_eq!(
            workspace(whole, Path::new("/b"), "ppc405"),
            "[workspace]\nresolver = \"3\"\nmembers = [\"hypervisor/ppc405\"]\n\n\
             [workspace.package]\nversion = \"1\"\n\
             [workspace.dependencies]\nabi = { path = \"/b/abi\" }\nspin = \"1\"\n\
             bulkhead-policies = { path = \"policies\" }\n[profile.firmware]\nlto = true\n"
        );
    }

    #[test]
    fn a_refusal_of_the_compiler_says_what_to_do() {
        let remedy = |said: &str| own().refused(&Problem::new(said)).display();
        let none = remedy("error[E0425]: cannot find type `WeightedTurns` in crate `weighted_turns`");
        assert!(
            none.contains("the public type `weighted_turns::WeightedTurns`"),
            "{none}"
        );
        let no_trait = remedy("the trait bound `WeightedTurns: OwnPolicy` is not satisfied");
        assert!(no_trait.contains("implement the traits"), "{no_trait}");
        let other = remedy("error: expected `;`");
        assert!(
            other.contains("`cargo check` in") && other.contains("expected `;`"),
            "{other}"
        );
    }
}
