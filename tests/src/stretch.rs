// SPDX-License-Identifier: Apache-2.0
//! The instrument that finds the longest stretch in which the hypervisor looks at no interrupt, by the
//! emulator's own count.
//!
//! A plugin (`tests/plugin/stretch.c`) counts every instruction of the hypervisor from where a guest comes in
//! to where the hypervisor leaves or looks. This module does the work on the host. It compiles the plugin
//! when it is wanted and tells it the places in the class binary (`places`). It reads the results of the
//! plugin (`result`) and puts them into words (`table`). docs/longest.md has the model.

mod places;
mod result;
mod table;

pub use result::{Found, Stretch, StretchKind};
pub use table::table;

use bulkhead::build::prepare::Prepared;
use places::Symbols;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Versions of QEMU whose plugins have the interface that ours uses.
const VERSIONS: std::ops::RangeInclusive<u32> = 6..=8;

/// Why there is no instrument.
#[derive(Debug)]
pub enum Trouble {
    /// The emulator of this machine has no plugins of this interface: nothing is measured.
    NotHere(String),
    /// Something is wrong.
    Wrong(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotHere(why) => write!(formatter, "not measured: {why}"),
            Self::Wrong(why) => formatter.write_str(why),
        }
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

/// The instrument, ready for one run.
#[derive(Debug)]
pub struct Instrument {
    arguments: Vec<String>,
    files: [PathBuf; 2],
    symbols: Symbols,
    /// Nanoseconds that an instruction stands for.
    scale: u64,
    /// The time that the board charges, in nanoseconds.
    charged: Option<u64>,
}

impl Instrument {
    /// Prepares the instrument for a run of `prepared`. `Err` says why nothing can be measured here.
    ///
    /// # Errors
    /// The emulator has another interface, there is no compiler, or the class binary is not understood.
    pub fn new(prepared: &Prepared, program: &str) -> Result<Self, Trouble> {
        suits(program).map_err(Trouble::NotHere)?;
        let plugin = plugin()?;
        let board = prepared.system().board();
        let elf = fs::read(prepared.class_binary())
            .map_err(|error| format!("the class binary cannot be read: {error}"))?;
        let mut controllers = board.controllers.iter();
        let gic = controllers.find(|controller| controller.driver.compatible.starts_with("arm,gic"));
        // Version of the architecture, 0 without a GIC.
        let version = gic.map_or(0, |gic| {
            if gic.driver.compatible == "arm,gic-400" {
                2
            } else {
                3
            }
        });
        let symbols = Symbols::new(&elf, board.load_address)?;
        let interface = gic.and_then(|gic| Some(gic.windows.get(1)?.base));
        let reads = places::looking_loads(symbols.class(), version, interface);
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |what: &str| {
            std::env::temp_dir().join(format!("bulkhead-stretch-{}-{number}.{what}", std::process::id()))
        };
        let files = [name("places"), name("found")];
        let text = symbols.places(&elf, &reads)?;
        fs::write(&files[0], text).map_err(|error| format!("{}: {error}", files[0].display()))?;
        let [places, output] = &files;
        let arguments = vec![
            "-plugin".to_owned(),
            format!(
                "{},places={},output={}",
                plugin.display(),
                places.display(),
                output.display()
            ),
        ];
        Ok(Self {
            arguments,
            files,
            // The time of an instruction in the boards' figures.
            scale: board.costs.map_or(1, |costs| costs.instruction.get().max(1)),
            symbols,
            charged: prepared.system().longest_stretch(),
        })
    }

    /// Tells what the emulator has to be told.
    #[must_use]
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Tells what was found, once the emulator has ended.
    ///
    /// # Errors
    /// The plugin has written nothing, or something else.
    pub fn found(&self) -> Result<Found, String> {
        let [_, output] = &self.files;
        let bytes = fs::read(output).map_err(|error| format!("the plugin has written nothing: {error}"))?;
        result::read(&bytes, &self.symbols)
    }

    /// Nanoseconds that this many instructions take, as the board's figures count.
    #[must_use]
    pub const fn nanoseconds(&self, instructions: u64) -> u64 {
        instructions.saturating_mul(self.scale)
    }

    /// Tells what the board charges for the longest stretch, in nanoseconds.
    #[must_use]
    pub const fn charged(&self) -> Option<u64> {
        self.charged
    }

    /// Tells what of the run is longer than the board charges; nothing, if nothing is.
    ///
    /// # Errors
    /// As of [`Instrument::found`], or nothing was counted at all.
    pub fn finding(&self) -> Result<Option<String>, String> {
        let found = self.found()?;
        if found.count() == 0 {
            return Err("no stretch was counted".to_owned());
        }
        let Some((kind, longest)) = found.longest() else {
            return Err("no stretch was kept".to_owned());
        };
        let Some(charged) = self.charged else {
            return Err("the board charges nothing for the longest stretch".to_owned());
        };
        let took = self.nanoseconds(u64::from(longest.length));
        Ok((took > charged).then(|| {
            format!(
                "a stretch of {} instructions ({took} ns, {}) is longer than the {charged} ns that the board charges:\n{}",
                longest.length,
                kind.name,
                table::profile(longest)
            )
        }))
    }
}

impl Drop for Instrument {
    fn drop(&mut self) {
        for file in &self.files {
            // Only disk space is at stake.
            let _ = fs::remove_file(file);
        }
    }
}

/// Tells whether the emulator can load our plugin.
fn suits(program: &str) -> Result<(), String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text
        .split_whitespace()
        .find_map(|word| word.split_once('.')?.0.parse::<u32>().ok());
    match version {
        Some(version) if VERSIONS.contains(&version) => Ok(()),
        Some(version) => Err(format!(
            "the plugin is for QEMU {} to {}, this is QEMU {version}",
            VERSIONS.start(),
            VERSIONS.end()
        )),
        None => Err(format!("{program} does not say its version")),
    }
}

/// Returns the plugin, compiled if it is not there or older than its source.
fn plugin() -> Result<PathBuf, Trouble> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin/stretch.c");
    let workspace = bulkhead::build::artifacts::Workspace::locate().map_err(|problem| problem.to_string())?;
    let folder = workspace.target().join("plugin");
    let made = folder.join("stretch.so");
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if changed(&made) > changed(&source) {
        return Ok(made);
    }
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // Two tests may want it at once: each makes its own, and the last one counts.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let own = folder.join(format!("stretch-{}-{number}.so", std::process::id()));
    let output = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .args([&own, &source])
        .output()
        .map_err(|error| Trouble::Wrong(format!("no C compiler (Debian: gcc libc6-dev): {error}")))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(Trouble::Wrong(format!("the plugin does not compile:\n{why}")));
    }
    fs::rename(&own, &made).map_err(|error| format!("{}: {error}", made.display()))?;
    Ok(made)
}
