// SPDX-License-Identifier: Apache-2.0
//! Developer commands: the rules of this repository as programs.
//!
//! A rule that is not checked erodes, so each one that a machine can check is a command here, and
//! `xtask ci` runs them all. Users never need this; their tool is `bulkhead`.
#![forbid(unsafe_code)]

mod barriers;
mod bless;
mod borders;
mod ci;
mod circles;
mod classes;
mod dependencies;
mod english;
mod figures;
mod forks;
mod parts;
mod picture;
mod porting;
mod prose;
mod size;
mod spdx;
mod stack;
mod stretch;
mod toolchain;
mod tuples;
mod unsafety;
mod workspace;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// The findings of a check, one a line. An empty list means that the rule holds.
type Findings = Vec<String>;
/// A check that could not be carried out says why.
type Outcome = Result<Findings, String>;

/// Developer commands of Bulkhead.
#[derive(Parser)]
#[command(name = "xtask", about, version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run all checks of continuous integration but the tests: format, lints, rules, documentation, builds
    Ci,
    /// The dependency rule: which crate of the workspace may use which
    Deps,
    /// Files of a crate that import each other, against `circles-budget.toml`
    Circles {
        /// List the largest circle of this crate instead
        folder: Option<String>,
    },
    /// Parts of the kernel that name another part, against the list in `xtask/src/borders.rs`
    Borders,
    /// Code outside the folders of a class that names the class
    Classes,
    /// Places of a class that `docs/porting.md` does not name
    Porting,
    /// Places of the kernel that ask a constant of the build, against the number in `xtask/src/forks.rs`
    Forks {
        /// List the places instead
        #[arg(long)]
        list: bool,
    },
    /// Parameters of functions that are tuples, against `tuples-budget.toml`
    Tuples {
        /// List the places in this folder or file instead
        folder: Option<String>,
    },
    /// Unsafe code per crate against `unsafe-budget.toml`
    Unsafe,
    /// The SPDX line at the top of every source file
    Spdx,
    /// Sentences that are hard to read, per crate or folder against `english-budget.toml`
    English {
        /// List the places in this folder or file instead
        folder: Option<String>,
    },
    /// Measured figures in the documentation: each says what holds it
    Figures,
    /// Text, read-only data, data and bss of an ELF file, and no heap in it
    Size {
        /// The file; without it the class binary is built and measured
        elf: Option<PathBuf>,
        /// The class binary of microcontrollers
        #[arg(long)]
        small: bool,
        /// The largest functions, so many, and what each crate has
        #[arg(long)]
        functions: Option<usize>,
    },
    /// The deepest chains of calls of the class binaries, and whether their stacks hold them
    Stack {
        /// The file; without it the class binaries are built and measured
        elf: Option<PathBuf>,
        /// Show the chains
        #[arg(long)]
        chains: bool,
        /// Lower the limits in `parts.toml` to what is measured
        #[arg(long, conflicts_with = "elf")]
        lower: bool,
    },
    /// Barriers of the class binaries, and sequences that a CPU forbids
    Barriers {
        /// The file; without it the class binaries are built and judged
        elf: Option<PathBuf>,
    },
    /// Lines and bytes of the parts of the kernel against `parts.toml`
    Parts {
        /// Count and measure them, and rewrite the file
        #[arg(long)]
        measure: bool,
        /// Measure on this class only
        #[arg(long, requires = "measure")]
        class: Option<String>,
        /// Measure this part only
        #[arg(long, requires = "measure")]
        part: Option<String>,
        /// Lower the limits of the variants to what is measured
        #[arg(long, conflicts_with = "measure")]
        lower: bool,
    },
    /// Lines of code per crate
    Lines,
    /// Rewrite the generated files (C header, schema, reference, errors), and lower the budgets of prose
    Bless,
    /// Run a system in its emulator, and show the longest stretches without a look at interrupts
    Stretch {
        /// The manifest
        system: PathBuf,
        /// Seconds of the board's time
        #[arg(long = "for", default_value_t = 1.0)]
        seconds: f64,
        /// Kinds of stretches whose profiles are shown
        #[arg(long, default_value_t = 5)]
        profiles: usize,
        /// The run is traced
        #[arg(long)]
        trace: bool,
    },
    /// Turn captured terminal output (with colour codes) on standard input into an SVG picture
    Picture {
        /// Where to write it
        output: PathBuf,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.command {
        Command::Ci => ci::run(),
        Command::Deps => dependencies::check(),
        Command::Circles { folder: None } => circles::check(),
        Command::Circles { folder: Some(folder) } => circles::list(folder),
        Command::Borders => borders::check(),
        Command::Classes => classes::check(),
        Command::Porting => porting::check(),
        Command::Forks { list: false } => forks::check(),
        Command::Forks { list: true } => forks::list(),
        Command::Tuples { folder: None } => tuples::check(),
        Command::Tuples { folder: Some(folder) } => tuples::list(folder),
        Command::Unsafe => unsafety::check(),
        Command::Spdx => spdx::check(),
        Command::English { folder: None } => english::check(),
        Command::English { folder: Some(folder) } => english::list(folder),
        Command::Figures => figures::check(),
        Command::Size {
            elf,
            small,
            functions,
        } => size::check(elf.as_deref(), *small, *functions),
        Command::Parts { lower: true, .. } => parts::lower(),
        Command::Parts { measure: false, .. } => parts::check(),
        Command::Parts { class, part, .. } => parts::measure(class.as_deref(), part.as_deref()),
        Command::Lines => size::lines(),
        Command::Stack {
            elf: Some(elf),
            chains,
            ..
        } => stack::check(elf, *chains),
        Command::Stack { chains, lower, .. } => stack::check_all(*chains, *lower),
        Command::Barriers { elf: Some(elf) } => barriers::check(elf),
        Command::Barriers { elf: None } => barriers::check_all(),
        Command::Bless => bless::run(),
        Command::Stretch {
            system,
            seconds,
            profiles,
            trace,
        } => stretch::show(system, *seconds, *profiles, *trace),
        Command::Picture { output } => picture::draw(output),
    };
    match outcome {
        Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
        Ok(findings) => {
            for finding in findings {
                eprintln!("error: {finding}");
            }
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
