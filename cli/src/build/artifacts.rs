// SPDX-License-Identifier: Apache-2.0
//! Builds the programs for the target: class binaries and the repository's own guests.
//!
//! cargo decides which programs are out of date, and one call builds everything that a system needs. `core`
//! is built from source where the toolchain has the source, because then one setting of the compiler holds
//! for every instruction that runs on the target. A toolchain with the prebuilt bare-metal target serves too.

use crate::build::own_policy::{self, OwnCrate};
use crate::build::target_spec;
use crate::build::variant::{self, ClassBinary, HYPERVISOR, Tailoring};
use crate::problem::Problem;
use crate::ui::progress::Progress;
use crate::{build::c_guests, build::linker, class};
use bulkhead_manifest::Board;
use bulkhead_manifest::parts::{Part, VARIANTS};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Profile of the programs on the target. Other profiles are for targets where every byte counts.
const PROFILE: &str = "firmware";

/// The way in which a program for the target is built.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Recipe {
    /// The word for the kind of class binary. cargo unites the features of what it builds at once, so each
    /// kind is built alone.
    kind: String,
    target: String,
    profile: String,
    /// Flags for the compiler, its own library included.
    flags: String,
    /// The changes to the compiler's own description of the target, for a target whose library is built.
    spec: String,
    /// The linker script, from the root of the repository. If there is one, cargo makes an archive and
    /// [`linker`] makes the class binary of it.
    script: String,
}

/// The part of a package's `Cargo.toml` that this tool reads.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Manifest {
    package: Package,
}

/// `[package]`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Package {
    metadata: Metadata,
}

/// `[package.metadata]`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    bulkhead: OwnRecipe,
}

/// `[package.metadata.bulkhead]`: the parts of a recipe that a package names itself.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct OwnRecipe {
    target: Option<String>,
    profile: Option<String>,
    flags: String,
    spec: String,
    spec_of_pair: Option<String>,
    script: String,
}

/// The package of the loader for UEFI.
const LOADER: &str = "bulkhead-uefi";

/// First minor version of the compiler that knows all flags of every recipe.
const FLAGS_SINCE: u32 = 92;

/// Folder of the repository's guests: a folder for each purpose, and a folder for each guest in there.
const GUESTS: &str = "guests";

/// Returns the names of the class binaries of all boards, in all variants.
#[must_use]
pub fn class_binaries() -> BTreeSet<String> {
    let boards = bulkhead_manifest::boards();
    boards.iter().flat_map(variants_of).collect()
}

/// Returns the names of the class binaries of a board.
fn variants_of(board: &Board) -> [String; VARIANTS.len()] {
    VARIANTS.map(|variant| variant::class_binary(board, false, variant.name))
}

/// The repository with the sources.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
    /// The parts and tables of the class binary, if it is built for one system.
    tailoring: Option<Tailoring>,
    /// The folder for the class binary alone, if cargo shares its own folder among the class binaries of
    /// several systems.
    apart: Option<PathBuf>,
}

impl Workspace {
    /// Finds the repository at the place that the entry script names, or else at the place where the tool was
    /// built.
    ///
    /// # Errors
    /// The repository is not there any more.
    pub fn locate() -> Result<Self, Problem> {
        let built_in = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .unwrap_or(Path::new("/"))
            .to_owned();
        let root = env::var_os("BULKHEAD_ROOT").map_or(built_in, PathBuf::from);
        if !root.join("hypervisor").is_dir() {
            return Err(
                Problem::new(format!("the sources of Bulkhead are not in {}", root.display()))
                    .remedy("start the tool with the script `bulkhead` of the repository"),
            );
        }
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |path| root.join(path));
        Ok(Self {
            root,
            target,
            tailoring: None,
            apart: None,
        })
    }

    /// Returns the root of the repository.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder in which cargo builds.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Returns the path that a program for the target has once the program is built.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        if c_guests::is_one(&self.folder_of(name)) {
            return c_guests::program(&self.target, name);
        }
        let Recipe {
            target,
            profile,
            script,
            ..
        } = self.recipe_of(name);
        let folder = self.apart.clone();
        let folder = folder.unwrap_or_else(|| self.target.join(target).join(profile));
        if script.is_empty() {
            folder.join(name)
        } else {
            folder.join(format!("lib{}.a", name.replace('-', "_")))
        }
    }

    /// Returns a class binary for a board, once its program is built. The class binary of a
    /// class that executes code in place is linked here, for the places that the board gives.
    ///
    /// # Errors
    /// The error carries the message of the linker.
    pub fn class_binary(&self, board: &Board, name: &str) -> Result<PathBuf, Problem> {
        let (program, script) = (self.program(name), self.recipe_of(name).script);
        if script.is_empty() {
            return Ok(program);
        }
        let link = class::of(board).link(board);
        let link = link.ok_or_else(|| {
            Problem::new(format!(
                "{name} has a linker script, but its class is not linked here"
            ))
        })?;
        linker::link(linker()?, &program, &self.root.join(script), name, &link)
    }

    /// Returns the class binary `name`, once its program is built, for the first of the tool's boards that
    /// has this class binary. The size is the same for all boards.
    ///
    /// # Errors
    /// No board has the class binary, or the linker fails with a message.
    pub fn any_class_binary(&self, name: &str) -> Result<PathBuf, Problem> {
        let boards = bulkhead_manifest::boards();
        let mut boards = boards.iter();
        let board = boards.find(|board| variants_of(board).iter().any(|own| own == name));
        let board = board.ok_or_else(|| Problem::new(format!("no board has the class binary {name}")))?;
        self.class_binary(board, name)
    }

    /// Returns the repository as the place of the class binary `name` that is built for one system. The
    /// binary has a folder of its own. cargo shares with all other builds what depends on no system: the
    /// compiler's library above all.
    #[must_use]
    pub fn tailored(&self, name: &str, tailoring: Tailoring) -> Self {
        let apart = self.target.join(variant::TAILORED).join(tailoring.word(name));
        Self {
            root: self.root.clone(),
            target: self.target.clone(),
            tailoring: Some(tailoring),
            apart: Some(apart),
        }
    }

    /// Returns the repository as the place where class binaries are built one after the other to be measured.
    /// Only the last one is kept.
    #[must_use]
    pub fn measured(&self, tailoring: Tailoring) -> Self {
        Self {
            root: self.root.clone(),
            target: self.target.join(variant::TAILORED).join("measured"),
            tailoring: Some(tailoring),
            apart: None,
        }
    }

    /// Tells cargo with which features the package of a class binary is built.
    fn choose_parts(&self, command: &mut Command, binary: &ClassBinary<'_>) {
        if binary.set.is_some() {
            command.arg("--no-default-features");
        }
        for feature in binary.features(self.tailoring.as_ref()) {
            command.args(["--features", &format!("{}/{feature}", binary.package)]);
        }
    }

    /// Returns the way in which a program is built. The program's package can name its own `target`,
    /// `profile`, `flags`, `spec`, `spec-of-pair` and `script` in `[package.metadata.bulkhead]`.
    fn recipe_of(&self, program: &str) -> Recipe {
        let file = self.folder_of(program).join("Cargo.toml");
        // cargo says it better if the file is missing or damaged.
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let own = toml::from_str::<Manifest>(&text).unwrap_or_default();
        let own = own.package.metadata.bulkhead;
        let target = own.target.unwrap_or_else(|| class::default().target().to_owned());
        let own_spec = own.spec_of_pair.filter(|_| self.is_for_pair());
        let own_spec = own_spec.unwrap_or(own.spec);
        let spec = if own_spec.is_empty() {
            usual_changes(&target)
        } else {
            own_spec.replace('\'', "\"")
        };
        Recipe {
            kind: ClassBinary::of(program).map_or_else(String::new, |binary| binary.kind()),
            target,
            profile: own.profile.unwrap_or_else(|| PROFILE.to_owned()),
            flags: own.flags,
            spec,
            script: own.script,
        }
    }

    /// Tells whether the class binary is for a microcontroller with two pCPUs, whose atomic accesses are
    /// others than those for one.
    fn is_for_pair(&self) -> bool {
        let mut tailoring = self.tailoring.iter();
        tailoring.any(|own| own.parts.has(Part::SecondPcpu))
    }

    /// Returns the description of a target that the compiler does not know, from the folder of the class
    /// binary that is built for it.
    fn own_target(&self, target: &str) -> Option<PathBuf> {
        let tool = class::all().find(|tool| tool.target() == target)?;
        let folder = self.root.join("hypervisor").join(tool.facts().name);
        let description = folder.join(format!("{target}.json"));
        description.is_file().then_some(description)
    }

    /// Returns the folder with the sources of a program. A guest that does not exist has no folder to find,
    /// and the path of such a guest leads nowhere.
    fn folder_of(&self, program: &str) -> PathBuf {
        let package = package_of(program);
        if let Some(class) = package.strip_prefix(HYPERVISOR) {
            return self.root.join("hypervisor").join(class);
        }
        let name = package.strip_prefix("guest-").unwrap_or(package);
        let mut folders = self.guest_folders();
        let found = folders.find(|folder| folder.file_name().is_some_and(|own| own == name));
        found.unwrap_or_else(|| self.root.join(GUESTS).join(name))
    }

    /// Returns the folders of the repository's guests. Each guest is in the folder of its purpose.
    fn guest_folders(&self) -> impl Iterator<Item = PathBuf> {
        let purposes = folders_in(&self.root.join(GUESTS));
        let folders = purposes.flat_map(|purpose| folders_in(&purpose));
        folders.filter(|folder| folder.join("Cargo.toml").is_file() || c_guests::is_one(folder))
    }

    /// Tells whether the repository has a guest of this name.
    #[must_use]
    pub fn has_guest(&self, name: &str) -> bool {
        self.guests().iter().any(|guest| guest == name)
    }

    /// Returns the names of the repository's guests.
    #[must_use]
    pub fn guests(&self) -> Vec<String> {
        let folders = self.guest_folders();
        let names = folders.filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Returns the name of a class that a guest is for, if its package tells by the target that it does not
    /// run on boards of class `own`.
    #[must_use]
    pub fn foreign_class(&self, name: &str, own: &str) -> Option<&'static str> {
        let program = format!("guest-{name}");
        let folder = self.folder_of(&program);
        let able: Vec<&str> = if c_guests::is_one(&folder) {
            let targets = c_guests::targets(&folder)?;
            let able = class::all().filter(|tool| tool.target().starts_with(targets));
            able.map(|tool| tool.facts().name).collect()
        } else {
            let target = self.recipe_of(&program).target;
            let able = class::all().filter(|tool| tool.runs(&target));
            able.map(|tool| tool.facts().name).collect()
        };
        let is_own = able.contains(&own);
        able.first().copied().filter(|_| !is_own)
    }

    /// Returns the names of the programs of guests that are in C, or have parts in C.
    #[must_use]
    pub fn guests_in_c(&self) -> Vec<String> {
        let folders = self.guest_folders().filter(|folder| c_guests::has_c(folder));
        let names = folders.filter_map(|folder| Some(format!("guest-{}", folder.file_name()?.to_str()?)));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Builds these programs as [`Workspace::build`] does, unless this process has built them before. cargo
    /// needs a third of a second to find that nothing has changed.
    ///
    /// # Errors
    /// The error carries the message of the compiler.
    pub fn build_once(&self, programs: &[String], progress: &Progress) -> Result<(), Problem> {
        static BUILT: Mutex<BTreeSet<(Option<PathBuf>, String)>> = Mutex::new(BTreeSet::new());
        let built = || BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        let key = |program: &String| (self.apart.clone(), program.clone());
        let mut missing = programs.to_vec();
        missing.retain(|program| !built().contains(&key(program)));
        if !missing.is_empty() {
            self.build(&missing, progress)?;
            built().extend(missing.iter().map(key));
        }
        Ok(())
    }

    /// Returns the programs in groups: one call of cargo builds a group. The groups of a target are together.
    #[must_use]
    pub fn in_groups(&self, programs: &BTreeSet<String>) -> Vec<Vec<String>> {
        let mut groups: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for program in programs {
            // Guests in C are built one by one, and soon.
            let is_in_c = c_guests::is_one(&self.folder_of(program));
            let recipe = (!is_in_c).then(|| self.recipe_of(program));
            let key = recipe.map(|recipe| (recipe.target.clone(), recipe));
            groups.entry(key).or_default().push(program.clone());
        }
        groups.into_values().collect()
    }

    /// Builds these programs for the target.
    ///
    /// # Errors
    /// The error carries the message of the compiler.
    pub fn build(&self, programs: &[String], progress: &Progress) -> Result<(), Problem> {
        let title = format!("building {}", programs.join(", "));
        let mut by_recipe: BTreeMap<Recipe, Vec<&String>> = BTreeMap::new();
        let (in_c, in_rust): (Vec<&String>, Vec<&String>) = programs
            .iter()
            .partition(|program| c_guests::is_one(&self.folder_of(program)));
        for program in in_rust {
            by_recipe
                .entry(self.recipe_of(program))
                .or_default()
                .push(program);
        }
        progress.step(&title, || {
            for program in in_c {
                self.build_in_c(program)?;
            }
            by_recipe.iter().try_for_each(|(recipe, programs)| {
                let built = run(&mut self.cargo(recipe, programs)?);
                built.map_err(|problem| match self.own_policy(programs) {
                    Some(own) => own.refused(&problem),
                    None => problem,
                })
            })
        })
    }

    /// Returns the loader that starts systems from UEFI, for a target, and builds it first.
    ///
    /// # Errors
    /// The error carries the message of the compiler.
    pub fn loader(&self, target: &str, progress: &Progress) -> Result<PathBuf, Problem> {
        let recipe = Recipe {
            kind: String::new(),
            target: target.to_owned(),
            profile: PROFILE.to_owned(),
            flags: String::new(),
            spec: String::new(),
            script: String::new(),
        };
        let program = LOADER.to_owned();
        let built = || run(&mut self.cargo(&recipe, &[&program])?);
        progress.step(&format!("building {LOADER}"), built)?;
        let file = self.target.join(target).join(PROFILE).join(LOADER);
        Ok(file.with_extension("efi"))
    }

    /// Returns the program that answers for a policy of the user's own in simulations, and builds it first.
    ///
    /// # Errors
    /// The error carries the message of the compiler.
    pub fn simulator_of(&self, own: &OwnCrate, progress: &Progress) -> Result<PathBuf, Problem> {
        let (folder, name) = own.with_simulator(&self.root, &self.target)?;
        let target = folder.join("target");
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root).arg("build");
        command.arg("--manifest-path").arg(folder.join("Cargo.toml"));
        command.arg("--target-dir").arg(&target);
        let built = progress.step(&format!("building the policy {}", own.name()), || {
            run(&mut command)
        });
        built.map_err(|problem| own.refused(&problem))?;
        Ok(target.join("debug").join(name))
    }

    /// Builds a guest in C, and before it the static library that it is linked with.
    fn build_in_c(&self, program: &str) -> Result<(), Problem> {
        let (folder, output) = (self.folder_of(program), self.program(program));
        let Some(named) = c_guests::archive(&folder) else {
            return c_guests::build(&folder, &output, None);
        };
        let recipe = Recipe {
            kind: String::new(),
            target: named.target.clone(),
            profile: PROFILE.to_owned(),
            flags: String::new(),
            spec: usual_changes(&named.target),
            script: folder.display().to_string(),
        };
        run(&mut self.cargo(&recipe, &[&named.package])?)?;
        let file = format!("lib{}.a", named.package.replace('-', "_"));
        let archive = self.target.join(&named.target).join(PROFILE).join(file);
        c_guests::build(&folder, &output, Some((&named.package, &archive)))
    }

    /// Returns the policy of the user's own that is built into these programs.
    fn own_policy(&self, programs: &[&String]) -> Option<&OwnCrate> {
        let own = self.tailoring.as_ref()?.own_policy.as_ref()?;
        programs
            .iter()
            .any(|name| variant::is_tailored(name))
            .then_some(own)
    }

    /// Tells cargo which workspace it builds: the repository, or one with a policy of the user's own.
    fn choose_sources(&self, command: &mut Command, programs: &[&String]) -> Result<(), Problem> {
        if let (Some(own), Some(program)) = (self.own_policy(programs), programs.first()) {
            let sources = self.target.join(own_policy::FOLDER);
            let package = package_of(program);
            let class = package.strip_prefix(HYPERVISOR).unwrap_or(package);
            let workspace = own.with_class_binary(&self.root, &sources, class)?;
            command.arg("--manifest-path").arg(workspace);
        }
        Ok(())
    }

    /// Tells cargo which programs it builds: archives, if there is a linker script.
    fn choose_programs(&self, command: &mut Command, programs: &[&String], script: &str) {
        for program in programs.iter().map(|name| name.as_str()) {
            command.args(["-p", package_of(program)]);
            if script.is_empty() {
                // The programs are named one by one: a feature must not change a program of the package that
                // others call by its name.
                command.args(["--bin", program]);
            } else {
                command.arg("--lib");
            }
            if let Some(binary) = ClassBinary::of(program) {
                self.choose_parts(command, &binary);
            }
        }
    }

    fn cargo(&self, recipe: &Recipe, programs: &[&String]) -> Result<Command, Problem> {
        let Recipe {
            target,
            profile,
            flags,
            spec,
            script,
            ..
        } = recipe;
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .current_dir(&self.root)
            .args(["build", "--profile", profile]);
        self.choose_sources(&mut command, programs)?;
        command.arg("--target");
        let libraries = sysroot()?.join("lib/rustlib");
        if libraries.join("src/rust/library/core/Cargo.toml").is_file() {
            let minor = minor_version()?;
            if let Some(own) = self.own_target(target) {
                command.arg(own);
                if minor >= target_spec::SINCE {
                    command.arg("-Zjson-target-spec");
                }
            } else if !spec.is_empty() && minor >= target_spec::SINCE {
                let mut folder = self.target.join("target-spec");
                if self.is_for_pair() {
                    folder.push(Part::SecondPcpu.name());
                }
                command.arg(target_spec::write(&folder, target, spec)?);
                command.arg("-Zjson-target-spec");
            } else {
                command.arg(target);
            }
            let features = if profile == PROFILE {
                "compiler-builtins-mem"
            } else {
                "compiler-builtins-mem,optimize_for_size"
            };
            command.args([
                "-Zbuild-std=core,compiler_builtins",
                &format!("-Zbuild-std-features={features}"),
            ]);
            // Building `core` is a nightly option, and the compiler is a stable one. Nothing else depends on
            // this variable.
            command.env("RUSTC_BOOTSTRAP", "1");
            if !flags.is_empty() && minor >= FLAGS_SINCE {
                let list: Vec<String> = flags.split(' ').map(|flag| format!("{flag:?}")).collect();
                command.args([
                    "--config",
                    &format!("target.{target}.rustflags=[{}]", list.join(",")),
                ]);
            }
        } else if libraries.join(target).is_dir() {
            command.arg(target);
        } else {
            return Err(Problem::new(format!(
                "the Rust toolchain has neither its library's source nor {target}"
            ))
            .remedy(
                "start the tool with the script `bulkhead` of the repository, which chooses a toolchain",
            ));
        }
        if own_linker(&libraries).is_none() {
            // Debian's toolchain leaves out `rust-lld`. Debian's package `lld` is the same linker.
            let variable = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
            let is_pe = target.ends_with("-uefi");
            command.env(variable, if is_pe { "lld-link" } else { "ld.lld" });
        }
        self.choose_programs(&mut command, programs, script);
        if let Some(tailoring) = &self.tailoring {
            tailoring.choose(&mut command, profile, self.apart.as_deref());
        }
        command.arg("--target-dir").arg(&self.target);
        Ok(command)
    }
}

/// Returns the changes to a target's description for packages that name none.
fn usual_changes(target: &str) -> String {
    let mut classes = class::all();
    let class = classes.find(|class| class.target() == target);
    class.map_or_else(String::new, |class| class.target_changes().to_owned())
}

/// Returns the package of a program.
fn package_of(program: &str) -> &str {
    ClassBinary::of(program).map_or(program, |binary| binary.package)
}

/// Returns the folders in a folder.
fn folders_in(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// Returns the linker that the targets ask for, if the toolchain brings it.
fn own_linker(libraries: &Path) -> Option<PathBuf> {
    let hosts = std::fs::read_dir(libraries).into_iter().flatten().flatten();
    hosts
        .into_iter()
        .map(|host| host.path().join("bin/rust-lld"))
        .find(|linker| linker.is_file())
}

/// Returns the linker, for direct calls by this tool.
fn linker() -> Result<Command, Problem> {
    let Some(own) = own_linker(&sysroot()?.join("lib/rustlib")) else {
        return Ok(Command::new("ld.lld"));
    };
    let mut command = Command::new(own);
    command.args(["-flavor", "gnu"]);
    Ok(command)
}

/// Returns the second number of the compiler's version, or 0 for a name without one.
fn minor_version() -> Result<u32, Problem> {
    let name = compiler()?;
    let minor = name.split('.').nth(1).and_then(|minor| minor.parse().ok());
    Ok(minor.unwrap_or(0))
}

/// Returns the name and version that the compiler in use prints of itself.
///
/// # Errors
/// There is no compiler.
pub fn compiler() -> Result<String, Problem> {
    static NAME: Mutex<Option<String>> = Mutex::new(None);
    ask_once(&NAME, &["--version"])
}

/// Returns the folder of the compiler in use.
fn sysroot() -> Result<PathBuf, Problem> {
    static FOLDER: Mutex<Option<String>> = Mutex::new(None);
    ask_once(&FOLDER, &["--print", "sysroot"]).map(PathBuf::from)
}

/// Returns what the compiler prints if it is asked this. It is asked once: it takes a tenth of a second to
/// start, and one process of the tests would ask hundreds of times.
fn ask_once(answer: &Mutex<Option<String>>, arguments: &[&str]) -> Result<String, Problem> {
    let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = answer.as_ref() {
        return Ok(text.clone());
    }
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = crate::build::debian::run(Command::new(rustc).args(arguments))?;
    Ok(answer.insert(text.trim().to_owned()).clone())
}

/// Runs cargo. The output of cargo matters only if cargo fails.
pub(super) fn run(command: &mut Command) -> Result<(), Problem> {
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| Problem::new(format!("cannot start cargo: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let errors = said.find("error").map_or(said.as_ref(), |start| &said[start..]);
    Err(Problem::new(format!(
        "the build of the on-target code failed:\n{}",
        errors.trim()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_folders_of_the_repository_and_nothing_else() {
        let workspace = Workspace::locate().unwrap();
        assert!(workspace.has_guest("control-loop"));
        assert!(workspace.guests().contains(&"control-loop".to_owned()));
        // A folder of a purpose is no guest.
        for bad in [
            "",
            "..",
            "../cli",
            "control-loop/",
            "demo",
            "demo/control-loop",
            "no-such-guest",
        ] {
            assert!(!workspace.has_guest(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_name_of_a_guest_is_used_once() {
        let guests = Workspace::locate().unwrap().guests();
        let mut names = guests.clone();
        names.dedup();
        assert_eq!(names, guests);
    }

    // A guest in Rust is a package of cargo, and cargo must not look for a package in a guest in C.
    #[test]
    fn a_guest_is_in_c_or_a_package_of_cargo() {
        let workspace = Workspace::locate().unwrap();
        let manifest = std::fs::read_to_string(workspace.root().join("Cargo.toml")).unwrap();
        let purposes = folders_in(&workspace.root().join(GUESTS));
        let mut in_c = 0;
        for folder in purposes.flat_map(|purpose| folders_in(&purpose)) {
            let name = folder.strip_prefix(workspace.root()).unwrap().to_str().unwrap();
            let has_package = folder.join("Cargo.toml").is_file();
            assert_ne!(c_guests::is_one(&folder), has_package, "{name}");
            assert_eq!(manifest.contains(&format!("\"{name}\"")), !has_package, "{name}");
            in_c += u32::from(!has_package);
        }
        assert!(in_c > 0);
    }
}
