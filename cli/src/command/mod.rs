// SPDX-License-Identifier: Apache-2.0
//! The commands of the tool, one file each, and their arguments.
//!
//! Exit codes: 0 done, 1 the system or the manifest is at fault, 2 usage, 124 time ran out.

mod bench;
mod boards;
mod build;
mod check;
mod check_json;
mod demo;
mod explain;
mod gdb;
mod import;
mod keygen;
mod log;
mod new;
mod parts;
mod policies;
mod reach;
mod report;
mod report_json;
mod run;
mod schedule;
mod shell;
mod sign;
mod simulate;
mod test;
mod timing;
mod verify;
mod verify_quote;

use crate::build::prepare::Medium;
use crate::build::variant::{self, Choice};
use crate::hex;
use crate::problem::{Code, Problem};
use bulkhead_manifest::parts::Variant;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use crate::serial::pattern::Pattern;

const EXAMPLES: &str = "\
Examples:
  bulkhead demo                               see it work
  bulkhead new my-system                      start a system of your own
  bulkhead check my-system/system.toml        memory map, CPUs, interrupts, who can touch what
  bulkhead run my-system/system.toml          run it in the board's emulator, type into its consoles
  bulkhead build my-system/system.toml -o out the files for the board
  bulkhead bench                              what the hypervisor costs

Exit codes: 0 done, 1 the system or the manifest is at fault, 2 usage, 124 time ran out.";

#[derive(Debug, Parser)]
#[command(
    name = "bulkhead",
    version,
    about = "Host tool of Bulkhead, a real-time mixed-criticality hypervisor",
    after_help = EXAMPLES,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Boot the showcase and watch it keep its promises
    #[command(after_help = "Examples:
  bulkhead demo                     the showcase of 64-bit Arm boards
  bulkhead demo --class CLASS       a showcase of another class")]
    Demo {
        /// The class whose showcase it is
        #[arg(long, value_name = "CLASS")]
        class: Option<String>,
    },
    /// Run all tests: host tests, then system tests in the emulator
    Test(TestArgs),
    /// Validate a manifest; print memory map, CPU assignment, interrupt ownership, who can touch what
    Check(CheckArgs),
    /// Run the scheduling policies on a virtual clock with the workloads of a manifest
    Simulate(SimulateArgs),
    /// Build the system image and one flashable file
    Build(BuildArgs),
    /// Run a system in the emulator of its board
    Run(RunArgs),
    /// Say what the health reports in a log mean: instruction, source line, manifest line, likely remedy
    Explain(ExplainArgs),
    /// Show what the hypervisor has in RAM, also while it runs: log, crash, counters
    Log(LogArgs),
    /// Say what is in a trace: shares of the CPUs, exits, waiting times, windows, budgets
    Report(ReportArgs),
    /// Measure what the hypervisor costs, in instructions: bare against hypervised
    #[command(disable_help_flag = true)]
    Bench {
        /// The arguments of the program that measures
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Measure what the hypervisor costs on a machine, for its board file
    #[command(disable_help_flag = true)]
    Calibrate {
        /// The arguments of the program that measures
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// List the boards
    Boards(BoardsArgs),
    /// List the scheduling policies
    #[command(after_help = "Example:
  bulkhead policies

A pCPU gets one of them by `policy = \"NAME\"` in its table of the manifest; docs/scheduling.md says when to choose
which.")]
    Policies,
    /// Start a system of your own
    New(NewArgs),
    /// Make a manifest of an ARINC 653 configuration in XML
    #[command(name = "import-arinc653")]
    ImportArinc653(ImportArgs),
    /// Make a key with which the owner of a system signs its images
    Keygen(KeygenArgs),
    /// Sign a system image that is built already
    Sign(SignArgs),
    /// Say whether a hypervisor with a key would run an image
    Verify(VerifyArgs),
    /// Say whether a device has signed a quote, and what runs on it
    VerifyQuote(VerifyQuoteArgs),
    /// Print the completions of the command line for a shell
    Completions(CompletionsArgs),
    /// Write the manual pages
    Man(ManArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead test                     everything
  bulkhead test mcu-suite           what has this in its name
  bulkhead test --changed           what your changes can reach
  bulkhead test --host              in a few minutes, without an emulator")]
struct TestArgs {
    /// Only tests whose name contains this
    filter: Option<String>,
    /// Only what the changes since the last commit can reach
    #[arg(long, conflicts_with = "filter")]
    changed: bool,
    /// Only the tests that need no emulator
    #[arg(long, conflicts_with = "system")]
    host: bool,
    /// Only the tests in the emulator
    #[arg(long)]
    system: bool,
    /// Also the tests in the emulator that take minutes each
    #[arg(long, conflicts_with = "host")]
    long: bool,
    /// Without the fuzz targets, which take a minute or two to build and need a C++ compiler
    #[arg(long)]
    no_fuzz: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead check system.toml
  bulkhead check tests/*.toml                      each of them, in turn
  bulkhead check --json system.toml                for programs; docs/json.md says what is in it
  bulkhead check --schema > manifest.schema.json   for the TOML plug-in of an editor")]
struct CheckArgs {
    /// The manifests
    #[arg(value_name = "SYSTEM", required_unless_present = "schema")]
    systems: Vec<PathBuf>,
    /// Also propose budgets, windows and priorities that are enough for what partitions declare
    #[arg(long, conflicts_with_all = ["schema", "json"])]
    suggest: bool,
    /// Print who can reach whom as a graph for Graphviz instead of tables
    #[arg(long, conflicts_with_all = ["schema", "json", "suggest"])]
    dot: bool,
    /// Print the JSON Schema of manifests instead
    #[arg(long, conflicts_with_all = ["systems", "json"])]
    schema: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead boards
  bulkhead boards --json            for programs; docs/json.md says what is in it")]
struct BoardsArgs {
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead completions bash > ~/.local/share/bash-completion/completions/bulkhead
  bulkhead completions zsh > ~/.zfunc/_bulkhead
  bulkhead completions fish > ~/.config/fish/completions/bulkhead.fish

The completions are those of a command `bulkhead`: put a link to the script of this name into a folder of PATH.")]
struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  bulkhead man ~/.local/share/man/man1; man bulkhead-run")]
struct ManArgs {
    /// Folder for the pages, one per command
    folder: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead simulate system.toml                          who runs how much, how long jobs take
  bulkhead simulate system.toml --html schedule.html     and a chart to look at

What partitions do is in their `workload`, or else in their `demand`; without both they are always ready. Exit code
1 if a deadline is missed.")]
struct SimulateArgs {
    /// The manifest
    system: PathBuf,
    /// Length of the simulated time of the board
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true, default_value = "1")]
    duration: f64,
    /// Another seed for what is left to chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The schedule to begin with, on pCPUs with policy `arinc653` [default: the first]
    #[arg(long, value_name = "NAME")]
    schedule: Option<String>,
    /// Draw a Gantt chart: a page for a browser or a printer
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write what happens as a trace, for `bulkhead report`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  bulkhead build system.toml -o out
writes out/bulkhead.bin (class binary and system image: load this on the board), out/system.img (the system
image alone) and out/memory-map.txt. The first has another name on some boards: bulkhead.elf on a PC.
  bulkhead build system.toml -o out --iso
writes out/bulkhead.iso too, for a disc or a USB stick that starts a PC.
  bulkhead build system.toml -o out --efi
writes out/bulkhead.efi too. Copy it to EFI/BOOT/BOOTX64.EFI of a FAT file system, on Arm to EFI/BOOT/BOOTAA64.EFI.
  bulkhead build system.toml -o out --tailor
compiles a hypervisor that has nothing but what the system uses; `bulkhead check` lists that.")]
struct BuildArgs {
    /// The manifest
    system: PathBuf,
    /// Folder for the files
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Make bulkhead.iso, too, which starts a PC by GRUB
    #[arg(long)]
    iso: bool,
    /// Make bulkhead.efi, too, which UEFI firmware starts
    #[arg(long)]
    efi: bool,
    /// Sign the image with this private key; the manifest has the public one (`[signature]`)
    #[arg(long, value_name = "NAME.key")]
    sign: Option<PathBuf>,
    #[command(flatten)]
    parts: PartsArgs,
}

/// The class binary.
#[derive(Debug, Args)]
struct PartsArgs {
    /// Take this variant of the hypervisor [default: the smallest one that has what the system uses]
    #[arg(long, value_name = "NAME", value_parser = variant::parse)]
    variant: Option<Variant>,
    /// Compile a hypervisor with exactly the parts and tables that the system uses
    #[arg(long, conflicts_with = "variant")]
    tailor: bool,
}

impl RunArgs {
    /// Returns the way in which the emulator starts the system.
    fn medium(&self) -> Medium {
        match (self.iso, self.efi) {
            (true, _) => Medium::Disc,
            (_, true) => Medium::Uefi,
            _ => Medium::Direct,
        }
    }
}

impl PartsArgs {
    /// Returns the choice of the parts.
    fn choice(&self) -> Choice {
        match self.variant {
            Some(variant) => Choice::Named(variant),
            None if self.tailor => Choice::Tailored,
            None => Choice::Smallest,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead run system.toml                                  interactive; Ctrl-A ? lists the keys
  bulkhead run system.toml --until 'linux: login:' --timeout 30
  echo nproc | bulkhead run system.toml --console linux --until '^2$'
  bulkhead run system.toml --log logs                       logs/NAME.log for each console
  bulkhead run system.toml --timeout 1 --trace t.trace      then: bulkhead report t.trace

A REGEX is searched in each line and in `name: line`, so it can name a console. A match that begins with the name
of a console and `: ` counts only on that console: whatever a guest prints, `^control: PASS` is a line of `control`.
It is searched in an unfinished line (a prompt), too, where `$` is not found: the line may go on. Without --until the run ends
when the board powers off. On a terminal the board's clock follows the wall clock; elsewhere every instruction takes one
nanosecond, and runs repeat exactly.")]
struct RunArgs {
    /// The manifest
    system: PathBuf,
    /// End, with success, when a line matches; several: when each has matched
    #[arg(long, value_name = "REGEX")]
    until: Vec<Pattern>,
    /// End after this much of the board's time, with exit code 124
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    timeout: Option<f64>,
    /// End after this much time on the wall, with exit code 124 [default with --timeout: 30 s + 10 times
    /// that]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    real_timeout: Option<f64>,
    /// Write the exact bytes of each console to DIR/NAME.log, and what is left in RAM to DIR/log-area.bin
    #[arg(long, value_name = "DIR")]
    log: Option<PathBuf>,
    /// Write what every pCPU did and when to FILE, for `bulkhead report`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Stop at the first instruction and wait for a debugger, with the symbols of the hypervisor and of
    /// PARTITION
    #[arg(long, value_name = "PARTITION", num_args = 0..=1)]
    gdb: Option<Option<String>>,
    /// Start from the ISO file of `bulkhead build --iso`, as a PC does, instead of directly
    #[arg(long)]
    iso: bool,
    /// Start from the PE file of `bulkhead build --efi`, by UEFI firmware, instead of directly
    #[arg(long, conflicts_with = "iso")]
    efi: bool,
    /// Sign the image with this private key; the manifest has the public one (`[signature]`)
    #[arg(long, value_name = "NAME.key")]
    sign: Option<PathBuf>,
    /// Hand this device secret over at each reset, as the boot stage of a board does: a file of 32 bytes
    #[arg(long, value_name = "FILE")]
    device_secret: Option<PathBuf>,
    #[command(flatten)]
    parts: PartsArgs,
    /// The console that has the keyboard first [default: the first VM's]
    #[arg(long, value_name = "NAME")]
    console: Option<String>,
    /// The board's clock follows the wall clock, as on a terminal
    #[arg(long, conflicts_with = "deterministic")]
    realtime: bool,
    /// One instruction takes one nanosecond; runs repeat exactly
    #[arg(long)]
    deterministic: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead explain system.toml capture.txt        what a board's serial line said
  bulkhead run system.toml | tee log; bulkhead explain system.toml log

`bulkhead run` explains by itself; this is for what was captured elsewhere: the bytes of a serial line, the output
of `run` or `log`, or bulkhead.log of `run --log`. A line whose tag names another console, or the file of another
console, is passed over: a partition can print anything. The last line of the answer counts such lines. A text
without any tag is taken for the hypervisor's own.")]
struct ExplainArgs {
    /// The manifest of the system that wrote the log
    system: PathBuf,
    /// The log [default: standard input]
    log: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead log ram.bin                            any dump of the board's memory that holds the log
  bulkhead run system.toml --log logs; bulkhead log logs/log-area.bin
  bulkhead log --live :1234                       a board that runs, through a debugger's server

The log is 64 KiB directly below the address at which bulkhead.bin is loaded, on a microcontroller the first 4 KiB
of the hypervisor's RAM; `bulkhead check` shows the address. It survives a warm reset.
A debugger's server (a debug probe's, or QEMU's with -gdb tcp::1234) stops the board for the moment of reading.")]
struct LogArgs {
    /// The dump
    #[arg(required_unless_present = "live")]
    dump: Option<PathBuf>,
    /// Read the memory of a board that runs; the server speaks gdb's remote protocol
    #[arg(long, value_name = "[HOST:]PORT", conflicts_with = "dump")]
    live: Option<String>,
    /// With --live: the board, whose log is where its file says
    #[arg(
        long,
        default_value = "qemu-virt-aarch64",
        requires = "live",
        conflicts_with_all = ["at", "dump"]
    )]
    board: String,
    /// With --live: address of the log
    #[arg(long, value_name = "ADDRESS", value_parser = address, requires = "live", conflicts_with = "dump")]
    at: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  bulkhead run system.toml --timeout 1 --trace t.trace; bulkhead report t.trace --perfetto t.json
  bulkhead report t.trace --against system.toml    was each switch the one the policy decides?
  bulkhead report t.trace --list 99.5..101         each record of these 1.5 ms

The JSON file is for https://ui.perfetto.dev or chrome://tracing.")]
struct ReportArgs {
    /// The trace
    file: PathBuf,
    /// Also write it for Perfetto
    #[arg(long, value_name = "OUT")]
    perfetto: Option<PathBuf>,
    /// Also draw a Gantt chart: a page for a browser or a printer
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Compare each switch, budget and window with what the policies of this manifest say
    #[arg(long, value_name = "SYSTEM")]
    against: Option<PathBuf>,
    /// With --against: microseconds a switch may come later than the policy alone would have it
    #[arg(long, value_name = "MICROSECONDS", value_parser = positive, allow_negative_numbers = true, default_value = "5")]
    overhead: f64,
    /// With --against: excuse nothing. Otherwise a CPU may be late while another one is busy, because the
    /// emulator runs one at a time
    #[arg(long, requires = "against")]
    strict: bool,
    /// Instead of the summary, list the records one by one, all or those between two times in milliseconds
    /// after boot
    #[arg(long, value_name = "FROM..TO", value_parser = range, num_args = 0..=1, default_missing_value = "..")]
    list: Option<(u64, u64)>,
    /// Print one JSON document instead of the summary
    #[arg(long, conflicts_with = "list")]
    json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead new my-system; bulkhead run my-system/system.toml
  bulkhead new my-mcu --board mps2-an500")]
struct NewArgs {
    /// Folder to make
    folder: PathBuf,
    /// The board; `bulkhead boards` lists them
    #[arg(long, default_value = "qemu-virt-aarch64")]
    board: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  bulkhead import-arinc653 module.xml --output system.toml --image sensor=target/sensor.elf

What is wrong in the file is printed with line and column. The manifest is yours from then on: `bulkhead check` says
whether its windows, ports and periods are what the standard allows.")]
struct ImportArgs {
    /// The XML file, with the root ARINC_653_Module
    file: PathBuf,
    /// File for the manifest [default: print it]
    #[arg(long, value_name = "SYSTEM")]
    output: Option<PathBuf>,
    /// The board; `bulkhead boards` lists them
    #[arg(long, default_value = "qemu-virt-aarch64")]
    board: String,
    /// The program of a partition, once for each [default: PARTITION.elf]
    #[arg(long = "image", value_name = "PARTITION=PROGRAM", value_parser = pair)]
    images: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  bulkhead keygen release           makes release.key, which signs, and release.pub, which is for the manifest

Whoever has release.key can sign. Keep it off the machines that build, or at least out of the repository.")]
struct KeygenArgs {
    /// The files are NAME.key and NAME.pub
    name: PathBuf,
    /// Replace the files if they are there
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead sign out/system.img --key release.key
  bulkhead sign out/bulkhead.bin --message message.bin       for a key that never leaves another machine:
  openssl pkeyutl -sign -rawin -inkey release.key -in message.bin -out signature.bin
  bulkhead sign out/bulkhead.bin --signature signature.bin   this puts its signature in")]
struct SignArgs {
    /// The system image, or the flashable file
    file: PathBuf,
    #[command(flatten)]
    by: SignedBy,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct SignedBy {
    /// Sign with this private key
    #[arg(long, value_name = "NAME.key")]
    key: Option<PathBuf>,
    /// Write the 64 bytes that are signed to this file, and change nothing
    #[arg(long, value_name = "OUT")]
    message: Option<PathBuf>,
    /// Put this signature of 64 bytes in
    #[arg(long, value_name = "FILE")]
    signature: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead verify out/bulkhead.bin                     by the keys in its class binary, as on the board
  bulkhead verify out/system.img --key release.pub")]
struct VerifyArgs {
    /// The system image, or the flashable file
    file: PathBuf,
    /// The public key, instead of those in the class binary
    #[arg(long, value_name = "NAME.pub")]
    key: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  bulkhead verify-quote quote.cbor --key 3b6a...29 --nonce 0011...ff
  bulkhead verify-quote quote.txt --key device.pub --nonce 0011...ff --image out/bulkhead.bin

A quote is a PSA attestation token (RFC 9783). Its file has the bytes, or hexadecimal digits.")]
struct VerifyQuoteArgs {
    /// The quote
    quote: PathBuf,
    /// The public key of the device: 64 hexadecimal digits, as the attestation task prints them, or a file in
    /// PEM
    #[arg(long, value_name = "HEX|NAME.pub")]
    key: String,
    /// The nonce that the device was asked with: 32, 48 or 64 bytes in hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = hex::bytes)]
    nonce: hex::Bytes,
    /// The flashable file or system image that is to run there: all measurements have to be its own
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
}

/// Parses two words with a `=` between them.
fn pair(text: &str) -> Result<(String, String), String> {
    let words = text
        .split_once('=')
        .filter(|(name, program)| !name.is_empty() && !program.is_empty());
    let words = words.map(|(name, program)| (name.to_owned(), program.to_owned()));
    words.ok_or_else(|| format!("`{text}` is not PARTITION=PROGRAM"))
}

/// Parses a number, hexadecimal with `0x`.
fn address(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is not an address such as 0x401f0000"))
}

fn positive(text: &str) -> Result<f64, String> {
    seconds(text).map_err(|_| format!("`{text}` is not a number above 0"))
}

/// Parses a range `FROM..TO` in milliseconds, of which either may be missing. Returns nanoseconds.
fn range(text: &str) -> Result<(u64, u64), String> {
    let wrong = || "FROM..TO is two times in milliseconds, as in 99.5..101".to_owned();
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let time = |text: &str, missing: u64| match text.trim() {
        "" => Ok(missing),
        text => match text.parse::<f64>() {
            Ok(time) if time.is_finite() && time >= 0.0 => Ok((time * 1_000_000.0).round() as u64),
            _ => Err(wrong()),
        },
    };
    let (from, to) = (time(from, 0)?, time(to, u64::MAX)?);
    if from > to { Err(wrong()) } else { Ok((from, to)) }
}

fn seconds(text: &str) -> Result<f64, String> {
    // A year is longer than anybody waits, and far below the longest duration.
    let good = |seconds: &f64| seconds.is_finite() && *seconds > 0.0 && *seconds < 31_536_000.0;
    text.parse()
        .ok()
        .filter(good)
        .ok_or_else(|| format!("`{text}` is not a number of seconds above 0"))
}

/// Runs the tool with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|refusal| refused_line(&refusal, None));
    let json = cli.command.answers_in_json();
    let result = match cli.command {
        Command::Demo { class } => demo::run(class.as_deref()),
        Command::Test(args) => test::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Build(args) => build::run(&args),
        Command::Run(args) => run::run(args),
        Command::Explain(args) => explain::run(&args),
        Command::Log(args) => log::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Bench { arguments } => bench::run(None, &arguments),
        Command::Calibrate { arguments } => bench::run(Some("calibrate"), &arguments),
        Command::Boards(args) => boards::run(&args),
        Command::Policies => policies::run(),
        Command::New(args) => new::run(&args),
        Command::ImportArinc653(args) => import::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Sign(args) => sign::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::VerifyQuote(args) => verify_quote::run(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    };
    exit_code(result, json)
}

impl Command {
    /// Returns the command's name if its answer is to be a JSON document.
    fn answers_in_json(&self) -> Option<&'static str> {
        let (name, json) = match self {
            Self::Check(args) => ("check", args.json),
            Self::Simulate(args) => ("simulate", args.json),
            Self::Report(args) => ("report", args.json),
            Self::Boards(args) => ("boards", args.json),
            Self::Bench { arguments } => ("bench", arguments.iter().any(|argument| argument == "--json")),
            _ => return None,
        };
        json.then_some(name)
    }
}

/// Ends the tool, whose command line makes no sense, or asks for help. A program that asked for a document of
/// `command`, or of the command that the line begins with, gets one.
pub fn refused_line(refusal: &clap::Error, command: Option<&str>) -> ! {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if refusal.use_stderr() && arguments.iter().any(|argument| argument == "--json") {
        let problem = Problem::usage(refusal.to_string().trim_end());
        let first = arguments[0].to_string_lossy();
        // No stream is left for saying that standard output cannot be written.
        let _ = print(&crate::json::problem(command.unwrap_or(&first), &problem));
    }
    refusal.exit()
}

/// Returns the command as the user typed it: what is printed for the user to type begins with this.
fn as_typed() -> String {
    let typed = std::env::var_os("BULKHEAD_COMMAND").or_else(|| std::env::args_os().next());
    typed.map_or_else(
        || "bulkhead".to_owned(),
        |typed| typed.to_string_lossy().into_owned(),
    )
}

/// Returns the exit code of a command, and reports its problem. If the answer of the command `json` was to be
/// a JSON document, the problem is one too.
#[must_use]
pub fn exit_code(result: Result<Code, Problem>, json: Option<&str>) -> ExitCode {
    let code = result.unwrap_or_else(|problem| {
        if let Some(command) = json {
            // The problem may be that standard output cannot be written.
            let _ = print(&crate::json::problem(command, &problem));
        }
        crate::ui::terminal::tell(problem.display());
        problem.code()
    });
    ExitCode::from(code as u8)
}

/// Writes to standard output. A reader that has gone away (`| head`) ends the tool quietly.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(text: &str) -> Result<(), Problem> {
    use std::io::{ErrorKind, Write, stdout};
    match stdout()
        .write_all(text.as_bytes())
        .and_then(|()| stdout().flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Problem::io("standard output")(error)),
        _ => Ok(()),
    }
}

/// The signals by which the user or the system asks us to end.
struct Signals {
    /// Becomes readable with the first one.
    stream: UnixStream,
    /// The exit code for the last one, 0 if there was none.
    last: Arc<AtomicUsize>,
}

impl Signals {
    /// Listens from now on.
    fn listen() -> Result<Self, Problem> {
        let problem = || Problem::io("signals");
        let (stream, theirs) = UnixStream::pair().map_err(problem())?;
        let last = Arc::new(AtomicUsize::new(0));
        for (signal, code) in [
            (signal_hook::consts::SIGINT, Code::Interrupt),
            (signal_hook::consts::SIGTERM, Code::Terminate),
            (signal_hook::consts::SIGHUP, Code::HangUp),
        ] {
            // Before the stream: who wakes finds out which one it was.
            signal_hook::flag::register_usize(signal, Arc::clone(&last), code as usize).map_err(problem())?;
            let sender = theirs.try_clone().map_err(problem())?;
            signal_hook::low_level::pipe::register(signal, sender).map_err(problem())?;
        }
        Ok(Self { stream, last })
    }

    /// Returns the exit code that says which signal came last.
    fn code(&self) -> Option<Code> {
        let last = self.last.load(Ordering::SeqCst);
        [Code::Interrupt, Code::Terminate, Code::HangUp]
            .into_iter()
            .find(|code| *code as usize == last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_every_command_has_an_example() {
        // The program `bench` has a help of its own.
        for command in Cli::command()
            .get_subcommands()
            .filter(|command| !["bench", "calibrate"].contains(&command.get_name()))
        {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.contains(&format!("bulkhead {}", command.get_name())),
                "{help}"
            );
        }
    }

    #[test]
    fn a_time_below_0_is_refused_as_a_time() {
        for command in [
            ["run", "system.toml", "--timeout", "-1"],
            ["run", "system.toml", "--real-timeout", "-0.5"],
            ["simulate", "system.toml", "--duration", "-1"],
            ["report", "t.trace", "--overhead", "-1"],
        ] {
            let refusal = Cli::try_parse_from(["bulkhead"].into_iter().chain(command));
            let refusal = refusal.expect_err("it is below 0").to_string();
            assert!(
                refusal.contains("above 0") && !refusal.contains("-- -"),
                "{refusal}"
            );
        }
    }

    #[test]
    fn times_are_positive_and_finite() {
        assert_eq!(seconds("1.5"), Ok(1.5));
        for bad in ["", "0", "-1", "nan", "inf", "1e99", "x"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_log_comes_from_a_dump_or_from_a_board() {
        let Command::Log(args) = Cli::parse_from(["bulkhead", "log", "--live", ":1", "--at", "0x40"]).command
        else {
            panic!("not log")
        };
        assert_eq!(
            (args.live.as_deref(), args.at, args.dump),
            (Some(":1"), Some(0x40), None)
        );
        for bad in [
            &["log"][..],
            &["log", "x", "--live", ":1"],
            &["log", "--live", ":1", "--at", "x"],
            &["log", "x", "--at", "1"],
        ] {
            assert!(
                Cli::try_parse_from([&["bulkhead"], bad].concat()).is_err(),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn run_takes_what_the_charter_says() {
        let line = [
            "bulkhead",
            "run",
            "s.toml",
            "--until",
            "a",
            "--until",
            "b",
            "--timeout",
            "3",
            "--log",
            "d",
            "--gdb",
        ];
        let Command::Run(args) = Cli::parse_from(line).command else {
            panic!("not run")
        };
        assert_eq!(
            (args.until.len(), args.timeout, args.gdb),
            (2, Some(3.0), Some(None))
        );
        assert!(Cli::try_parse_from(["bulkhead", "run", "s.toml", "--until", "("]).is_err());
        assert!(Cli::try_parse_from(["bulkhead", "check"]).is_err());
    }
}
