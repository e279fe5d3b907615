// SPDX-License-Identifier: Apache-2.0
//! The log of a board without a UART, read while the board runs, through the server that a debugger would
//! use.
//!
//! `bulkhead log --live` does the same. The board stands still until the first connection is given up, and
//! goes on after each.

use bulkhead::build::prepare::{Options, prepare_text};
use bulkhead::emulator::debugger::Debugger;
use bulkhead::emulator::launch::{Launch, TemporaryFile};
use bulkhead::log::log_area::LogArea;
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_abi::log::AREA_SIZE;
use bulkhead_tests::ENABLE;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The board without a UART, and on it a VM that prints a line each second, for ever.
const FOLDER: &str = "system/no-console";
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
    match watch() {
        Ok(()) => {
            println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("system live: {why}");
            println!("test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
            ExitCode::FAILURE
        }
    }
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
