// SPDX-License-Identifier: Apache-2.0
//! Runs beside a debugger, and beside a person who types.
//!
//! - The log of a board without a UART, read while the board runs, through the server that a debugger would
//!   use. `bulkhead log --live` does the same. The board stands still until the first connection is given up,
//!   and goes on after each.
//! - A line that is piped into `bulkhead run` reaches a Linux that has to boot first.
//! - A guest that prints the name of another console ends no run that waits for that console, and `explain`
//!   explains no line of it, on any class.
//! - The file of commands that `bulkhead run --gdb` writes for a debugger has the symbols of hypervisor and
//!   guest, on any class, and is gone afterwards.
//! - The system that `bulkhead new` makes for a board of any class runs as it is.

use bulkhead::build::artifacts::Workspace;
use bulkhead::build::prepare::{Options, prepare_text};
use bulkhead::emulator::debugger::Debugger;
use bulkhead::emulator::launch::{Launch, TemporaryFile};
use bulkhead::log::log_area::LogArea;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_abi::log::AREA_SIZE;
use bulkhead_tests::ENABLE;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The board without a UART, and on it a VM that prints a line each second, for ever.
const FOLDER: &str = "system/aarch64/boot/no-console";
/// Real time for the emulator to get so far.
const PATIENCE: Duration = Duration::from_secs(60);

/// Killed when dropped.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() -> ExitCode {
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    if std::env::var_os(ENABLE).is_none() || filter.is_some_and(|filter| !"live".contains(&filter)) {
        println!("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out");
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, result) in [
        ("log", watch()),
        ("commands", MACHINES.iter().try_for_each(leaves_nothing_behind)),
        ("new", MACHINES.iter().try_for_each(runs_as_it_is)),
        ("pipe", types()),
        ("forged", MACHINES.iter().try_for_each(cannot_forge)),
    ] {
        if let Err(why) = result {
            println!("system live: {name}: {why}");
            failed += 1;
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out",
        5 - failed
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Lets the tool type a line of a pipe to a Linux, which reads it when it is up, and not before.
fn types() -> Result<(), Problem> {
    let workspace = Workspace::locate()?;
    let tool = workspace.target().join("debug/bulkhead");
    let system = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/x86-linux/system.toml");
    let mut process = Command::new(&tool);
    process.arg("run").arg(system);
    process.args(["--console", "linux", "--until", "hi 42", "--timeout", "30"]);
    process
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut run = Emulator(process.spawn().map_err(Problem::io(tool.display()))?);
    let mut pipe = run.0.stdin.take().ok_or_else(|| Problem::new("no input"))?;
    let written = pipe.write_all(b"echo hi $((40+2))\n");
    written.map_err(Problem::io("the pipe"))?;
    drop(pipe);
    let status = run.0.wait().map_err(Problem::io(tool.display()))?;
    if status.success() {
        return Ok(());
    }
    Err(Problem::new("Linux has not got the line"))
}

/// A system of each class, as far as it differs: board, program that prints `hello: ...`, program that never
/// starts, and the memory of each. Two programs of a microcontroller cannot be linked to the same addresses.
const MACHINES: [[&str; 4]; 5] = [
    [
        "qemu-virt-aarch64",
        "hello",
        "hello",
        "memory = \"2M\"\nbootargs = \"-\"",
    ],
    ["mps2-an500", "mcu-hello", "mcu-ticker", "memory = \"16K\""],
    [
        "mps2-an505",
        "mcu-hello",
        "world-ticker",
        "memory = \"16K\"\nmachine.uart = { base = 0x40004000 }",
    ],
    [
        "ref405ep",
        "ppc-hello",
        "ppc-hello",
        "memory = \"1M\"\nbootargs = \"-\"",
    ],
    [
        "qemu-q35-x86_64",
        "x86-hello",
        "x86-hello",
        "memory = \"4M\"\nbootargs = \"-\"",
    ],
];

/// Runs a guest `rogue` that prints `hello: ...` beside a partition `hello` that never starts.
fn cannot_forge(machine: &[&str; 4]) -> Result<(), Problem> {
    let board = machine[0];
    let system = TemporaryFile::write("toml", pair(machine).as_bytes())?;
    let until = ["--timeout", "0.5", "--until"];
    let ends = |pattern: &str| {
        let (code, _) = tool("run", system.path(), &[&until[..], &[pattern]].concat(), "")?;
        Ok::<bool, Problem>(code == Some(0))
    };
    if !ends("^rogue: hello: ")? {
        return Err(Problem::new(format!(
            "{board}: the guest has not printed the name"
        )));
    }
    if ends("^hello: ")? || ends("hello: ")? {
        return Err(Problem::new(format!(
            "{board}: the guest ended a run that waited for another"
        )));
    }
    for (console, said) in [("bulkhead", "why |"), ("rogue", "1 line looks like a report")] {
        let log = format!(
            "0.1 {console} | health: partition=hello vcpu=0 class=watchdog period_ns=1 line=1 event=1 action=stop\n"
        );
        let (_, answer) = tool("explain", system.path(), &[], &log)?;
        if !answer.contains(said) || answer.contains("why |") != (console == "bulkhead") {
            return Err(Problem::new(format!("{board}: a line of `{console}`: {answer}")));
        }
    }
    Ok(())
}

/// Runs a command of the tool about a system. Returns its exit code and what it prints.
fn tool(
    command: &str,
    system: &Path,
    arguments: &[&str],
    input: &str,
) -> Result<(Option<i32>, String), Problem> {
    let tool = Workspace::locate()?.target().join("debug/bulkhead");
    let mut process = Command::new(&tool);
    process.arg(command).arg(system).args(arguments);
    process
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut run = process.spawn().map_err(Problem::io(tool.display()))?;
    if let Some(mut pipe) = run.stdin.take() {
        pipe.write_all(input.as_bytes())
            .map_err(Problem::io("the pipe"))?;
    }
    let output = run.wait_with_output().map_err(Problem::io(tool.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((output.status.code(), text))
}

/// Returns a manifest for a guest `rogue` beside a partition `hello` that never starts.
fn pair([board, program, silent, memory]: &[&str; 4]) -> String {
    let partition = |name: &str, program: &str| {
        format!(
            "[partition.{name}]\nkind = \"vm\"\nimage = \"@guests/{program}\"\n{memory}\nvcpus = [{{ pcpu = 0 }}]\n"
        )
    };
    format!(
        "board = \"{board}\"\n{}{}autostart = false\n",
        partition("rogue", program),
        partition("hello", silent)
    )
}

/// Starts the tool with `--gdb`, and ends it as a user does once it has named the file for the debugger.
fn leaves_nothing_behind(machine: &[&str; 4]) -> Result<(), Problem> {
    let tool = Workspace::locate()?.target().join("debug/bulkhead");
    let [board, program, ..] = machine;
    let system = TemporaryFile::write("toml", pair(machine).as_bytes())?;
    let mut process = Command::new(&tool);
    process.arg("run").arg(system.path());
    process.args(["--gdb", "rogue", "--timeout", "5"]);
    process
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut run = Emulator(process.spawn().map_err(Problem::io(tool.display()))?);
    let said = run.0.stderr.take().ok_or_else(|| Problem::new("no output"))?;
    let mut lines = BufReader::new(said).lines().map_while(Result::ok);
    let file = lines.find_map(|line| Some(line.trim().strip_prefix("gdb-multiarch -x ")?.to_owned()));
    let file = file.ok_or_else(|| Problem::new(format!("{board}: no file for the debugger was named")))?;
    let commands = std::fs::read_to_string(&file).map_err(Problem::io(&file))?;
    let guest = format!("/guest-{program} -o 0\n");
    for part in [
        "set architecture ",
        "\nsymbol-file ",
        "\nadd-symbol-file ",
        &guest,
        "\ntarget remote :",
    ] {
        if !commands.contains(part) {
            return Err(Problem::new(format!(
                "{board}: no `{part}` for the debugger: {commands}"
            )));
        }
    }
    kill_process(Pid::from_child(&run.0), Signal::INT)
        .map_err(|error| Problem::new(format!("the tool got no signal: {error}")))?;
    // The tool closes its output when it ends.
    lines.for_each(drop);
    run.0.wait().map_err(Problem::io(tool.display()))?;
    if Path::new(&file).exists() {
        return Err(Problem::new(format!("{file} is still there")));
    }
    Ok(())
}

/// Makes a system for the board as a new user does, and runs it until a guest speaks.
fn runs_as_it_is([board, ..]: &[&str; 4]) -> Result<(), Problem> {
    let folder = std::env::temp_dir().join(format!("bulkhead-new-{}-{board}", std::process::id()));
    let ran = make_and_run(board, &folder);
    let removed = std::fs::remove_dir_all(&folder).map_err(Problem::io(folder.display()));
    // A folder that was never made is not the reason.
    ran.and(removed)
}

fn make_and_run(board: &str, folder: &Path) -> Result<(), Problem> {
    let succeeds = |(code, said): (Option<i32>, String), what: &str| match code {
        Some(0) => Ok(()),
        _ => Err(Problem::new(format!(
            "{board}: {what} ends with {code:?}: {said}"
        ))),
    };
    let until = ["--until", "^(hello|control|task): ", "--timeout", "2"];
    succeeds(tool("new", folder, &["--board", board], "")?, "`bulkhead new`")?;
    let ran = tool("run", &folder.join("system.toml"), &until, "")?;
    succeeds(ran, "its new system")
}

fn watch() -> Result<(), Problem> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(FOLDER)
        .join("system.toml");
    let text = std::fs::read_to_string(&path).map_err(Problem::io(path.display()))?;
    let text = text.replace("@guests/hello\"", "@guests/control-loop\"");
    let prepared = prepare_text(&path, &text, &Options::default(), &Progress::new())?;
    let file = TemporaryFile::write("bin", prepared.flash())?;
    let port = free_port()?;
    let launch = Launch {
        deterministic: true,
        gdb: Some(port),
        ..Launch::default()
    };
    let cpus = prepared.system().cpu_count();
    let command = launch.command(&prepared.emulator()?, file.path(), cpus, None);
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]);
    process.stdin(Stdio::null()).stdout(Stdio::null());
    let emulator = Emulator(process.spawn().map_err(Problem::io(&command[0]))?);
    let base = prepared.system().log_base();
    let started = Instant::now();
    let mut looks = Vec::new();
    while started.elapsed() < PATIENCE {
        // The server listens a moment after the emulator was started.
        if let Ok(mut debugger) = Debugger::connect(&port.to_string()) {
            let memory = debugger.memory(base, AREA_SIZE)?;
            let area = LogArea::at_start(&memory);
            looks.push(area.map(|area| (area.counts().time, area.text_of_all())));
        }
        if let Some(verdict) = judge(&looks) {
            return verdict.map_err(Problem::new);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(emulator);
    Err(Problem::new(format!("what was seen in a minute: {looks:?}")))
}

/// Returns the verdict of the looks at the board so far, if they tell enough.
fn judge(looks: &[Option<(u64, String)>]) -> Option<Result<(), String>> {
    if let Some(Some((_, text))) = looks.first() {
        return Some(Err(format!(
            "there is a log before the first instruction:\n{text}"
        )));
    }
    let logs: Vec<_> = looks.iter().flatten().collect();
    let [first, .., last] = logs.as_slice() else {
        return None;
    };
    let has = |what: &str| last.1.lines().any(|line| line.contains(what));
    // The board went on between the looks.
    let complete = last.0 > first.0
        && has("log of board virt-without-console, boot 1")
        && has("] Bulkhead ")
        && has("partition hello: running")
        && has("partition hello-task: stopped");
    complete.then_some(Ok(()))
}

fn free_port() -> Result<u16, Problem> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(Problem::io("a port"))?;
    let address = listener.local_addr().map_err(Problem::io("a port"))?;
    Ok(address.port())
}
