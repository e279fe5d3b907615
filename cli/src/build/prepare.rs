// SPDX-License-Identifier: Apache-2.0
//! From a manifest to everything a run or a flash needs: the checked system, its image, the flashable file.
//!
//! The needs of a manifest are known before the manifest is checked (`@guests/...`, `@debian/...`), so
//! building and fetching start at once and side by side. The check then finds every payload there.

use crate::build::artifacts::Workspace;
use crate::build::own_policy::OwnCrate;
use crate::build::payload::Payload;
use crate::build::payloads::{self, Payloads, Request};
use crate::build::policies::Policies;
use crate::build::start::Uefi;
use crate::build::variant::{self, Choice, Tailoring};
use crate::emulator::attach::Attachments;
use crate::emulator::launch::Board;
use crate::problem::Problem;
use crate::sign::{self, PrivateKey};
use crate::ui::progress::Progress;
use crate::{build::efi, build::host, build::iso, class, ui::terminal};
use bulkhead_abi::own_policy;
use bulkhead_manifest::board::Emulator;
use bulkhead_manifest::parts::{self, UsedPart};
use bulkhead_manifest::{
    ClassBinary, CompileInput, Kind, Report, System, Unchecked, compile, flashable, nearest, read_manifest,
    table_counts,
};
use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

// Tests damage and forge the image that they boot.
pub use bulkhead_manifest::{claim_twice, move_base, move_controller, name_policy, need_part, set_version};

/// Prefix of the name of a guest of this repository.
const GUESTS: &str = "@guests/";
/// Prefix of the name of a payload from Debian.
const DEBIAN: &str = "@debian/";

/// The options with which a system is prepared.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Seconds of the board's time after which the hypervisor powers the board off.
    pub stop_after: Option<f64>,
    /// Most records of each pCPU's ring of the trace. With `None`, nothing is traced.
    pub trace_records: Option<u32>,
    /// True if the checks of `arch/conformance` run on the class's backend instead of the kernel.
    pub conformance: bool,
    /// The parts of the kernel that the class binary has.
    pub parts: Choice,
    /// True if warnings are not shown: a user cannot do anything about warnings of our own manifests.
    pub quiet: bool,
    /// True if programs that this process has built before are taken as they are. For a process that
    /// prepares many systems while the sources stay as they are.
    pub built_once: bool,
    /// The file with the private key that signs the image.
    pub sign: Option<PathBuf>,
}

/// The way in which the emulator starts a system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Medium {
    /// The emulator itself loads the flashable file.
    #[default]
    Direct,
    /// The board's firmware starts the ISO file.
    Disc,
    /// UEFI firmware starts the PE file.
    Uefi,
}

impl Medium {
    /// Returns the name of the file that the board starts from.
    fn name(self) -> &'static str {
        match self {
            Self::Direct => "the flashable file",
            Self::Disc => "an ISO file",
            Self::Uefi => "UEFI",
        }
    }

    /// Returns the option that asks for the medium.
    fn option(self) -> &'static str {
        match self {
            Self::Direct => "",
            Self::Disc => "iso",
            Self::Uefi => "efi",
        }
    }
}

/// A system, ready to run.
#[derive(Debug)]
pub struct Prepared {
    system: System,
    image: Vec<u8>,
    flash: Vec<u8>,
    class_binary: PathBuf,
    images: Vec<Option<PathBuf>>,
    folder: PathBuf,
    /// The disks and networks, made when the emulator is asked for: an image for a real board needs no
    /// disks.
    attachments: OnceLock<Attachments>,
}

impl Prepared {
    /// Returns the board of an emulator of this system.
    #[must_use]
    pub fn board_of<'e>(&self, emulator: &'e Emulator) -> Board<'e> {
        Board {
            emulator,
            cpus: self.system.cpu_count(),
        }
    }

    /// Returns the checked system.
    #[must_use]
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Returns the files that the system was made from, beside the manifest.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.images.iter().flatten().map(PathBuf::as_path)
    }

    /// Returns the system image.
    #[must_use]
    pub fn image(&self) -> &[u8] {
        &self.image
    }

    /// Returns the flashable file: class binary and system image.
    #[must_use]
    pub fn flash(&self) -> &[u8] {
        &self.flash
    }

    /// Returns the class binary as the linker made it, with symbols.
    #[must_use]
    pub fn class_binary(&self) -> &Path {
        &self.class_binary
    }

    /// Returns the file with the image of a partition.
    ///
    /// # Errors
    /// There is no such partition, or it has no image.
    pub fn image_of(&self, partition: &str) -> Result<PathBuf, Problem> {
        let names = || {
            let partitions = self.system.partitions().into_iter();
            partitions.map(|partition| partition.name())
        };
        let number = names().position(|name| name == partition).ok_or_else(|| {
            let known: Vec<&str> = names().collect();
            Problem::usage(format!("there is no partition `{partition}`"))
                .remedy(format!("partitions of this system: {}", known.join(", ")))
        })?;
        let image = self.images.get(number).cloned().flatten();
        image.ok_or_else(|| Problem::new(format!("partition `{partition}` has no image")))
    }

    /// Returns the emulator of the board, with the files that the manifest plugs into its devices. The
    /// emulator is of use for as long as `self`.
    ///
    /// # Errors
    /// The board has no emulator, or a disk is not there.
    pub fn emulator(&self) -> Result<Emulator, Problem> {
        let board = self.system.board();
        let mut emulator = board.emulator.clone().ok_or_else(|| {
            Problem::new(format!("board `{}` has no emulator", board.name))
                .remedy("build the flashable file with `bulkhead build` and load it on the board")
        })?;
        let attachments = match self.attachments.get() {
            Some(attachments) => attachments,
            None => {
                let made = Attachments::new(&self.system, &self.folder)?;
                self.attachments.get_or_init(|| made)
            }
        };
        emulator.arguments.extend(attachments.arguments.iter().cloned());
        Ok(emulator)
    }

    /// Returns the ISO file that starts the flashable file on a PC.
    ///
    /// # Errors
    /// Boards of the class do not start from a disc, or a program that makes the file is missing.
    pub fn disc(&self) -> Result<Vec<u8>, Problem> {
        let board = self.system.board();
        if !class::of(board).starts_from_disc() {
            return Err(
                Problem::usage(format!("board `{}` does not start from an ISO file", board.name))
                    .remedy(format!("load {} on the board", class::of(board).flash_name())),
            );
        }
        iso::make(&self.flash)
    }

    /// Returns the PE file that starts the system from UEFI, and the way in which the class starts so.
    ///
    /// # Errors
    /// Boards of the class have no UEFI, or the loader cannot be built.
    pub fn efi(&self, progress: &Progress) -> Result<(Vec<u8>, &'static Uefi), Problem> {
        let board = self.system.board();
        let class = class::of(board);
        let uefi = class.uefi().ok_or_else(|| {
            Problem::usage(format!("board `{}` does not start from UEFI", board.name))
                .remedy(format!("load {} on the board", class.flash_name()))
        })?;
        let loader = Workspace::locate()?.loader(uefi.target, progress)?;
        let loader = fs::read(&loader).map_err(Problem::io(loader.display()))?;
        Ok((efi::make(&loader, uefi, &self.flash, &self.system)?, uefi))
    }

    /// Returns the emulator and the file that it starts.
    ///
    /// # Errors
    /// As [`Prepared::emulator`], [`Prepared::disc`] and [`Prepared::efi`], or the emulator does not start
    /// from this medium.
    pub fn start(&self, medium: Medium, progress: &Progress) -> Result<(Emulator, Cow<'_, [u8]>), Problem> {
        let mut emulator = self.emulator()?;
        let (file, arguments) = match medium {
            Medium::Direct => return Ok((emulator, Cow::Borrowed(&self.flash))),
            Medium::Disc => (self.disc()?, emulator.disc.clone()),
            Medium::Uefi => {
                let (file, uefi) = self.efi(progress)?;
                let payloads = Payloads::new(host::cache_folder());
                let firmware = payloads.provide(Request::Whole(uefi.firmware), progress)?;
                let firmware = firmware.display().to_string();
                let arguments = emulator.uefi.iter();
                let arguments = arguments.map(|argument| argument.replace("{firmware}", &firmware));
                (file, arguments.collect())
            }
        };
        let board = self.system.board();
        if arguments.is_empty() {
            return Err(Problem::usage(format!(
                "the emulator of board `{}` does not start from {}",
                board.name,
                medium.name()
            ))
            .remedy(format!("leave out --{}", medium.option())));
        }
        let own = board.emulator.as_ref().map_or(0, |own| own.arguments.len());
        emulator.arguments.splice(..own, arguments);
        Ok((emulator, Cow::Owned(file)))
    }

    /// Returns the policies of the pCPUs for a simulation.
    ///
    /// # Errors
    /// The policy of the user's own cannot be built.
    pub fn policies(&self, progress: &Progress) -> Result<Policies, Problem> {
        Policies::of(&self.system, &self.folder, progress)
    }

    /// Returns the names of the partitions with a console, in the order of the manifest.
    #[must_use]
    pub fn consoles(&self) -> Vec<String> {
        let with_console = self
            .system
            .partitions()
            .into_iter()
            .filter(|partition| partition.console());
        with_console
            .map(|partition| partition.name().to_owned())
            .collect()
    }

    /// Returns the index among [`Prepared::consoles`] of the first VM's console, where a user most likely
    /// wants to type.
    #[must_use]
    pub fn first_vm_console(&self) -> usize {
        let mut with_console = self
            .system
            .partitions()
            .into_iter()
            .filter(|partition| partition.console());
        with_console
            .position(|partition| partition.kind() == Kind::Vm)
            .unwrap_or(0)
    }
}

/// Prepares the manifest at `path`.
///
/// # Errors
/// The manifest is wrong, or a payload cannot be built or fetched.
pub fn prepare(path: &Path, options: &Options, progress: &Progress) -> Result<Prepared, Problem> {
    let text = read_manifest(path).map_err(|report| refusal(&report))?;
    prepare_text(path, &text, options, progress)
}

/// Prepares a manifest whose text is `text`, as if it were at `path`.
///
/// # Errors
/// The manifest is wrong, or a payload cannot be built or fetched.
pub fn prepare_text(
    path: &Path,
    text: &str,
    options: &Options,
    progress: &Progress,
) -> Result<Prepared, Problem> {
    let key = options.sign.as_deref().map(PrivateKey::read).transpose()?;
    let manifest = Unchecked::read(path, text);
    let early = early_binary(&manifest, path, options)?;
    let needs = Needs::new(&manifest, early)?;
    let system = needs
        .check(manifest, options.built_once, progress)?
        .map_err(|report| refusal(&report))?;
    if !options.quiet {
        warn(&system);
    }
    signable(&system, options, path)?;
    let used = system.parts(options.trace_records.is_some());
    let set = options.parts.set(&used, path)?;
    let name = variant::class_binary(system.board(), options.conformance, set);
    let folder = path.parent().unwrap_or(Path::new(""));
    let wanted = WantedBinary {
        name: &name,
        used: &used,
        system: &system,
        folder,
    };
    let class_binary = needs.class_binary(&wanted, options.built_once, progress)?;
    let elf = fs::read(&class_binary).map_err(Problem::io(class_binary.display()))?;
    let mut binary = ClassBinary::from_elf(&elf).map_err(|error| Problem::new(error.to_string()))?;
    let stop_after_ms = options.stop_after.map(|seconds| (seconds * 1000.0) as u32);
    let input = CompileInput {
        class_binary_len: binary.len(),
        stop_after_ms,
        trace_records: options.trace_records,
    };
    let mut image = compile(&system, &input).map_err(|error| Problem::new(error.to_string()))?;
    if let Some(signature) = system.signature() {
        let load_address = system.board().load_address;
        sign::bind(
            &signature,
            folder,
            key.as_ref(),
            load_address,
            &mut binary,
            &mut image,
        )?;
    }
    let flash = flashable(&binary, &image, &system).map_err(|error| Problem::new(error.to_string()))?;
    let file = |number| {
        let name = system.image_name(number)?;
        if name.starts_with('@') {
            needs.resolve(name, progress).ok()
        } else {
            Some(folder.join(name))
        }
    };
    let images = (0..system.partitions().len()).map(file).collect();
    Ok(Prepared {
        system,
        image,
        flash,
        class_binary,
        images,
        folder: folder.to_owned(),
        attachments: OnceLock::new(),
    })
}

/// Refuses to sign a system without an owner, and says that a system with one will not boot unsigned.
fn signable(system: &System, options: &Options, path: &Path) -> Result<(), Problem> {
    match (system.signature(), &options.sign) {
        (None, Some(_)) => Err(Problem::usage(format!(
            "{} has no table `signature`: no hypervisor would look at the signature",
            path.display()
        ))
        .remedy("add [signature] with key = \"NAME.pub\", or leave out --sign")),
        (Some(_), None) if !options.quiet => {
            terminal::tell(
                "bulkhead: the image is not signed, and its hypervisor refuses it until it is: --sign NAME.key, or `bulkhead sign`",
            );
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns the name of the class binary of a manifest as far as its parts are known before the check.
fn early_binary(manifest: &Unchecked<'_>, path: &Path, options: &Options) -> Result<Option<String>, Problem> {
    let set = match options.parts {
        Choice::Tailored => return Ok(None),
        choice => choice.set(&manifest.parts(options.trace_records.is_some()), path)?,
    };
    // The tables of a class binary for one system are known when the system is checked.
    if set == variant::TAILORED {
        return Ok(None);
    }
    let board = manifest.board();
    Ok(board.map(|board| variant::class_binary(&board, options.conformance, set)))
}

/// Returns the programs for the target that [`prepare_text`] builds first.
///
/// # Errors
/// The variant that the options name lacks a part.
pub fn programs(path: &Path, text: &str, options: &Options) -> Result<Vec<String>, Problem> {
    let manifest = Unchecked::read(path, text);
    let early = early_binary(&manifest, path, options)?;
    Ok(Needs::new(&manifest, early)?.programs)
}

/// Returns the files that no output may replace: the manifest at `path`, and the files that it names. A
/// manifest that is no ordinary file is not looked into, because a pipe can be read only once.
#[must_use]
pub fn inputs(path: &Path) -> Vec<PathBuf> {
    let mut inputs = vec![path.to_owned()];
    if path.is_file()
        && let Ok(text) = read_manifest(path)
    {
        inputs.extend(Unchecked::read(path, &text).files());
    }
    inputs
}

/// Checks the manifest at `path` without making an image of it.
///
/// # Errors
/// The manifest is wrong, or a payload cannot be built or fetched.
pub fn check(path: &Path, progress: &Progress) -> Result<System, Problem> {
    let system = inspect(path, progress)?.map_err(|report| refusal(&report))?;
    warn(&system);
    Ok(system)
}

/// Checks the manifest at `path` as [`check`] does, and leaves the findings to the caller.
///
/// # Errors
/// Outside: a payload cannot be built or fetched. Inside: the manifest is wrong.
pub fn inspect(path: &Path, progress: &Progress) -> Result<Result<System, Report>, Problem> {
    let text = match read_manifest(path) {
        Ok(text) => text,
        Err(report) => return Ok(Err(report)),
    };
    let manifest = Unchecked::read(path, &text);
    Needs::new(&manifest, None)?.check(manifest, false, progress)
}

/// Returns the problem of a user whose manifest was refused with these findings.
#[must_use]
pub fn refusal(report: &Report) -> Problem {
    Problem::reported(
        report.render(terminal::has_colour()),
        crate::json::findings(report),
    )
}

/// Shows the warnings of the check about a system that it accepts.
pub fn warn(system: &System) {
    if !system.report().diagnostics.is_empty() {
        terminal::tell(system.report().render(terminal::has_colour()).trim_end());
    }
}

/// Returns the records of the tables of a system, as a class binary that is built for it alone reads them.
fn tables(system: &System) -> Result<String, Problem> {
    let counts = table_counts(system).map_err(|error| Problem::new(error.to_string()))?;
    let counts = counts.iter().map(|(name, count)| format!("{name}={count}"));
    let own = system.own_policy();
    let own = own.map(|own| {
        format!(
            "own-policy={}",
            own_policy::number(&own.name) & !own_policy::POLICY_OWN
        )
    });
    Ok(counts.chain(own).collect::<Vec<_>>().join(","))
}

/// The class binary that a system asks for.
struct WantedBinary<'a> {
    /// Its name.
    name: &'a str,
    /// The parts that the system uses.
    used: &'a [UsedPart],
    system: &'a System,
    /// The folder of the manifest.
    folder: &'a Path,
}

/// The payloads that a manifest asks for.
struct Needs {
    workspace: Workspace,
    /// The class of the board, if it is known.
    class: Option<&'static str>,
    payloads: Payloads,
    programs: Vec<String>,
    debian: Vec<&'static Payload>,
}

impl Needs {
    /// Returns the needs of a manifest with these names of payloads. A name that leads nowhere is no need:
    /// the check reports such a name. The class binary, if one is named, is needed too.
    fn new(manifest: &Unchecked<'_>, class_binary: Option<String>) -> Result<Self, Problem> {
        let names = manifest.payloads();
        let workspace = Workspace::locate()?;
        let mut programs: Vec<String> = class_binary.into_iter().collect();
        for guest in names.iter().filter_map(|name| name.strip_prefix(GUESTS)) {
            let program = format!("guest-{guest}");
            if workspace.has_guest(guest) && !programs.contains(&program) {
                programs.push(program);
            }
        }
        Ok(Self {
            workspace,
            class: manifest.board().map(|board| board.class.name()),
            payloads: Payloads::new(host::cache_folder()),
            programs,
            debian: names
                .iter()
                .filter_map(|name| Request::read(name.strip_prefix(DEBIAN)?))
                .map(Request::payload)
                .collect(),
        })
    }

    /// Builds and fetches side by side, then checks the manifest. For a manifest that is refused with any
    /// payloads, nothing is built or fetched. With `built_once`, nothing is built again.
    fn check(
        &self,
        manifest: Unchecked<'_>,
        built_once: bool,
        progress: &Progress,
    ) -> Result<Result<System, Report>, Problem> {
        if let Some(report) = manifest.early_faults(&|name| self.unknown(name)) {
            return Ok(Err(report));
        }
        std::thread::scope(|scope| {
            let fetched = scope.spawn(|| {
                let mut payloads = self.debian.iter();
                payloads.try_for_each(|payload| {
                    self.payloads.provide(Request::Whole(payload), progress).map(drop)
                })
            });
            let built = if self.programs.is_empty() {
                Ok(())
            } else if built_once {
                self.workspace.build_once(&self.programs, progress)
            } else {
                self.workspace.build(&self.programs, progress)
            };
            let fetched = fetched
                .join()
                .unwrap_or_else(|_| Err(Problem::new("fetching payloads failed")));
            built.and(fetched)
        })?;
        let resolve = |name: &str| self.resolve(name, progress);
        Ok(manifest.check(&resolve))
    }

    /// Returns the class binary of a system, and builds it first if what was built with the payloads is
    /// another one: programs can need parts that the manifest alone does not.
    fn class_binary(
        &self,
        wanted: &WantedBinary<'_>,
        built_once: bool,
        progress: &Progress,
    ) -> Result<PathBuf, Problem> {
        let WantedBinary {
            name,
            used,
            system,
            folder,
        } = *wanted;
        if self.programs.iter().any(|program| program == name) {
            return self.workspace.class_binary(system.board(), name);
        }
        let mut own_policy = None;
        let workspace = if variant::is_tailored(name) {
            own_policy = OwnCrate::of(system, folder)?;
            let tailoring = Tailoring {
                parts: parts::set_of(used),
                tables: tables(system)?,
                own_policy: own_policy.clone(),
            };
            self.workspace.tailored(name, tailoring)
        } else {
            self.workspace.clone()
        };
        let program = [name.to_owned()];
        if built_once {
            workspace.build_once(&program, progress)?;
        } else {
            workspace.build(&program, progress)?;
        }
        let file = workspace.class_binary(system.board(), name)?;
        if let Some(own) = &own_policy {
            self.workspace.check_stack(own, &file, progress)?;
        }
        Ok(file)
    }

    /// Returns the file of a name. Every file is there already, unless the name is not known.
    fn resolve(&self, name: &str, progress: &Progress) -> Result<PathBuf, String> {
        if let Some(why) = self.unknown(name) {
            return Err(why);
        }
        if let Some(guest) = name.strip_prefix(GUESTS) {
            return Ok(self.workspace.program(&format!("guest-{guest}")));
        }
        let request = name.strip_prefix(DEBIAN).and_then(Request::read);
        let request = request.ok_or("there is none of this name")?;
        let found = self.payloads.provide(request, progress);
        found.map_err(|problem| problem.to_string())
    }

    /// Returns the reason why the board has no payload of this name.
    fn unknown(&self, name: &str) -> Option<String> {
        let is_foreign = |class: &str| self.class.is_some_and(|own| own != class);
        if let Some(guest) = name.strip_prefix(GUESTS) {
            let class = |guest: &str| self.workspace.foreign_class(guest, self.class?);
            if self.workspace.has_guest(guest) {
                return class(guest).map(of_class);
            }
            let mut known = self.workspace.guests();
            known.retain(|guest| class(guest).is_none());
            return Some(unknown(guest, GUESTS, &known));
        }
        let word = name.strip_prefix(DEBIAN);
        if let Some(request) = word.and_then(Request::read) {
            let class = request.payload().class();
            return is_foreign(class).then(|| of_class(class));
        }
        Some(unknown(
            word.unwrap_or(name),
            DEBIAN,
            &payloads::names(self.class),
        ))
    }
}

/// Explains that a payload is for boards of another class.
fn of_class(class: &str) -> String {
    format!("it is for boards of class `{class}`")
}

/// Explains that there is no payload `word` among the `known` ones of `family`.
fn unknown(word: &str, family: &str, known: &[String]) -> String {
    if known.is_empty() {
        return "there is none for this board".to_owned();
    }
    match nearest(word, known.iter().map(String::as_str)) {
        Some(name) => format!("there is none of this name; did you mean `{family}{name}`?"),
        None => format!(
            "there is none of this name; {family}NAME can be: {}",
            known.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_payload_is_answered_with_the_nearest_or_with_all() {
        let known = ["mcu-serial".to_owned(), "mcu-rtos".to_owned()];
        assert_eq!(
            unknown("mcu-serail", GUESTS, &known),
            "there is none of this name; did you mean `@guests/mcu-serial`?"
        );
        assert_eq!(
            unknown("zephyr", GUESTS, &known),
            "there is none of this name; @guests/NAME can be: mcu-serial, mcu-rtos"
        );
    }

    #[test]
    fn needs_are_known_before_the_check() {
        let text = "image = \"@guests/control-loop\" # \"@guests/hello\"\ninit = '@guests/control-loop'\n\
                    initrd = [\"@debian/initramfs\", \"@guests/../cli\", \"@debian/linux-arm64/modules/x\"]";
        let on = |board: &str| {
            let (board, table) = board.split_once(' ').unwrap_or((board, ""));
            let text = format!("board = \"{board}\"\n{table}\n[partition.a]\nkind = \"vm\"\n{text}");
            let manifest = Unchecked::read(Path::new("a.toml"), &text);
            let used = manifest.parts(false);
            let set = Choice::Smallest.set(&used, Path::new("a.toml")).unwrap();
            let binary = |board: &bulkhead_manifest::Board| variant::class_binary(board, false, set);
            Needs::new(&manifest, manifest.board().as_ref().map(binary)).unwrap()
        };
        let needs = on("qemu-virt-aarch64");
        assert_eq!(
            needs.programs,
            ["bulkhead-hypervisor-aarch64-static", "guest-control-loop"]
        );
        let gic_v2 = on("xlnx-zcu102");
        assert_eq!(gic_v2.programs[0], "bulkhead-hypervisor-aarch64-static-gic-v2");
        assert_eq!(on("mps2-an500").programs[0], "bulkhead-hypervisor-armv7m-static");
        for table in ["[port.a]", "[lock.a]"] {
            let messages = on(&format!("mps2-an500 {table}"));
            assert_eq!(messages.programs[0], "bulkhead-hypervisor-armv7m-ipc");
            let messages = on(&format!("qemu-virt-aarch64 {table}"));
            assert_eq!(messages.programs[0], "bulkhead-hypervisor-aarch64-ipc");
        }
        assert_eq!(on("no-such-board").programs, ["guest-control-loop"]);
        let debian: Vec<&str> = needs.debian.iter().map(|payload| payload.name).collect();
        assert_eq!(debian, ["initramfs", "linux-arm64"]);
        let unreadable = Unchecked::read(Path::new("a.toml"), "image = \"@guests/hello\"\nimage =");
        assert!(unreadable.payloads().is_empty() && unreadable.board().is_none());
    }

    #[test]
    fn unknown_names_are_answered_with_the_known() {
        let on = |board: &str| {
            let text = format!("board = \"{board}\"");
            Needs::new(&Unchecked::read(Path::new("a.toml"), &text), None).unwrap()
        };
        let needs = on("no-such-board");
        let progress = Progress::new();
        assert!(
            needs
                .resolve("@guests/../cli", &progress)
                .unwrap_err()
                .contains("control-loop")
        );
        assert!(
            needs
                .resolve("@debian/windows", &progress)
                .unwrap_err()
                .contains("@debian/NAME can be: linux-arm64")
        );
        // A near name, and a name that there is, help only if they are for the class of the board.
        let pc = on("qemu-q35-x86_64");
        let why = |name: &str| pc.unknown(name).unwrap_or_default();
        assert_eq!(why("@debian/linux-arm64"), "it is for boards of class `aarch64`");
        assert_eq!(why("@guests/hello"), "it is for boards of class `aarch64`");
        assert!(
            !why("@debian/linux-amr64").contains("arm64"),
            "{}",
            why("@debian/linux-amr64")
        );
        assert!(why("@guests/x86-helo").contains("did you mean `@guests/x86-hello`"));
        assert!(!why("@guests/nothing-like-it").contains("mcu-"));
        assert_eq!(pc.unknown("@debian/linux-cloud-amd64"), None);
        let small = on("mps2-an500");
        assert_eq!(
            small.unknown("@debian/any").unwrap(),
            "there is none for this board"
        );
    }
}
