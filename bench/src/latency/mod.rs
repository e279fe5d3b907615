// SPDX-License-Identifier: Apache-2.0
//! The latency of a serial receive: of an RTOS alone on the chip, and of a bare-metal partition beside that
//! RTOS, each without and with a ping flood at the RTOS.
//!
//! The machine is stopped at a random moment, a byte arrives at UART 1, and the machine goes on: that moment
//! is the arrival. From the arrival on, `steps` counts the machine's instructions up to two places. The first
//! place is the first instruction of the interrupt (the ISR: the RTOS's handler, or the hypervisor's). The
//! second place is the first instruction of the user's code (the RTOS's task, or the handler in the
//! partition). The programs do not notice the measurement. An instruction takes 32 ns, so the CPU is about as
//! fast as the board's. Both programs are the same whether there is a flood (`flood`) or not.

mod certainty;
mod flood;
mod histogram;
mod remote;
mod steps;

pub use certainty::{Certainty, certainties};
pub use histogram::{Distribution, svg};

use super::runs::{emulator_of, prepare};
use bulkhead::build::artifacts::Workspace;
use bulkhead::build::tables::table;
use bulkhead::emulator::bare::Bare;
use bulkhead::emulator::launch::{Launch, TemporaryFile};
use bulkhead::problem::Problem;
use bulkhead::ui::progress::Progress;
use bulkhead_manifest::Board;
use flood::{Cable, Flood, MAC};
use object::{Object, ObjectSegment, ObjectSymbol};
use remote::Remote;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use steps::Log;

/// The board's counter, 25 MHz (Arm DAI 0386D, section 4.9).
const COUNTER: u32 = 0x4002_8018;
/// The time that an instruction takes.
const NANOSECONDS: u64 = 32;
/// State of UART 1, and the bit that says that a byte is there (Arm DDI 0479D, section 4.3).
const UART_STATE: u32 = 0x4000_5004;
const RECEIVE_FULL: u32 = 2;
/// Control register of UART 1, and the bit that says that a program listens.
const UART_CONTROL: u32 = 0x4000_5008;
const RECEIVE_ENABLE: u32 = 2;
/// Number of the exception that the UART's interrupt raises, and offset of its vector in a table.
const EXCEPTION: u32 = 16 + 2;
const VECTOR: u32 = 4 * EXCEPTION;
/// The clock of the experiment: an instruction takes 32 ns. QEMU 7.2 takes a CPU that stands still for one
/// that waits, and its clock goes on to the next timer of the emulator. The filter on an unconnected hub,
/// which does nothing, has such a timer every microsecond, so the clock goes no further than that.
const CLOCK: [&str; 6] = [
    "-icount",
    "shift=5,sleep=off",
    "-netdev",
    "hubport,id=slice,hubid=0",
    "-object",
    "filter-buffer,id=slices,netdev=slice,interval=1",
];
/// The function that the RTOS calls when its task has a byte.
const USER: &str = "serial_user";
/// The time that the machine runs between two bytes: the least time, and the most that is added to it.
const PAUSE_US: (u64, u64) = (2000, 8000);
/// The time that all programs have to start.
const SETTLE: Duration = Duration::from_millis(100);
/// The least number of the board's ticks between two bytes: a millisecond, in which all programs have done
/// with the first byte.
const SETTLED: u32 = 25_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// One of the experiments.
#[derive(Debug, Clone, Copy)]
struct Setting {
    title: &'static str,
    /// True if the RTOS is a partition and the serial line belongs to another partition.
    hypervised: bool,
    /// True if the RTOS is flooded with pings.
    flooded: bool,
    /// The line of the manifest about the interrupts of the partition with the serial line.
    key: &'static str,
}

const fn setting(title: &'static str, hypervised: bool, flooded: bool, key: &'static str) -> Setting {
    Setting {
        title,
        hypervised,
        flooded,
        key,
    }
}

const SETTINGS: [Setting; 8] = [
    setting("RTOS alone, quiet", false, false, ""),
    setting("RTOS alone, flooded", false, true, ""),
    setting("partition, RTOS quiet", true, false, ""),
    setting("partition, RTOS flooded", true, true, ""),
    setting("early handlers, RTOS quiet", true, false, EARLY),
    setting("early handlers, RTOS flooded", true, true, EARLY),
    setting("constant latency, RTOS quiet", true, false, CONSTANT),
    setting("constant latency, RTOS flooded", true, true, CONSTANT),
];
/// Partitions of the systems that are measured.
pub const PARTITIONS: usize = 2;
/// Longer than any interrupt of the partition takes beside that RTOS.
const CONSTANT: &str = "interrupt-latency = \"400us\"\n";
/// Longer than the handler of the partition takes.
const EARLY: &str = "early-handlers = \"50us\"\n";
/// The RTOS in two builds: alone, where it answers the serial line and pings, and beside a partition, where
/// it answers pings.
const RTOS_ALONE: &str = "mcu-rtos-serial-net";
const RTOS: &str = "mcu-rtos-net";
const PARTITION: &str = "mcu-answer";

/// The figures of one setting.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The name of the setting.
    pub title: &'static str,
    /// True if the setting shows how soon the hypervisor hands an interrupt to its partition.
    pub is_charged: bool,
    /// Pings that were answered meanwhile.
    pub pings: u64,
    /// From the ISR's first instruction to the user's. A byte that the hypervisor finds by looking, while it
    /// does something else, has no ISR and is not here.
    pub from_isr: Distribution,
    /// From the byte's arrival to the user's first instruction.
    pub from_arrival: Distribution,
}

/// Measures all settings with so many bytes each.
///
/// # Errors
/// The board is none of the class, something cannot be built, or a byte gets no answer.
pub fn measure(board: &Board, samples: usize, progress: &Progress) -> Result<Vec<Measured>, Problem> {
    if !board.class.facts().delays_interrupts {
        return Err(
            Problem::usage(format!("board `{}` is no microcontroller", board.name))
                .remedy("`bulkhead bench --latency --board mps2-an500`"),
        );
    }
    let emulator = emulator_of(board)?;
    let workspace = Workspace::locate()?;
    let mut measured = Vec::new();
    for setting in SETTINGS {
        let file;
        let bare;
        let (command, places) = if setting.hypervised {
            let system = prepare(&manifest(board, setting.key), progress)?;
            file = TemporaryFile::write("bin", system.flash())?;
            let command = Launch::default().command(emulator, file.path(), 1, None);
            (command, Places::of_partition(&workspace)?)
        } else {
            let image = workspace.program(&format!("guest-{RTOS_ALONE}"));
            workspace.build_once(&[format!("guest-{RTOS_ALONE}")], progress)?;
            bare = Bare::new(emulator, &image)?;
            (bare.command(&Launch::default()), Places::of_task(&image)?)
        };
        measured.push(progress.step(&format!("measuring: {}", setting.title), || {
            let mut machine = Machine::start(with_line(command), places, setting.flooded)?;
            let latencies = (0..samples)
                .map(|number| machine.sample(number))
                .collect::<Result<Vec<_>, _>>()?;
            let pings = machine.pings();
            Ok::<_, Problem>(Measured {
                title: setting.title,
                is_charged: setting.hypervised && setting.key.is_empty(),
                pings,
                from_isr: Distribution::new(latencies.iter().filter_map(|(isr, _)| *isr).collect()),
                from_arrival: Distribution::new(latencies.iter().map(|(_, arrival)| *arrival).collect()),
            })
        })?);
    }
    Ok(measured)
}

/// Returns the figures as text for a terminal.
#[must_use]
pub fn text(measured: &[Measured]) -> String {
    let mut figures = table(&[
        "latency of a serial receive",
        "from",
        "bytes",
        "pings",
        "least",
        "median",
        "99 %",
        "most",
        "entropy",
    ]);
    for row in measured {
        for (from, values) in [("ISR", &row.from_isr), ("arrival", &row.from_arrival)] {
            let us = |nanoseconds: u64| format!("{:.2} us", nanoseconds as f64 / 1000.0);
            figures.add_row([
                row.title.to_owned(),
                from.to_owned(),
                values.count().to_string(),
                row.pings.to_string(),
                us(values.least()),
                us(values.percentile(50)),
                us(values.percentile(99)),
                us(values.most()),
                format!("{:.2} bit", values.entropy()),
            ]);
        }
    }
    figures.to_string()
}

/// Draws all distributions in one picture.
#[must_use]
pub fn picture(measured: &[Measured]) -> String {
    let rows = measured.iter().flat_map(|row| {
        [
            (format!("{}, from ISR to user code", row.title), &row.from_isr),
            (
                format!("{}, from arrival to user code", row.title),
                &row.from_arrival,
            ),
        ]
    });
    svg(&rows.collect::<Vec<_>>())
}

fn manifest(board: &Board, key: &str) -> String {
    format!(
        "board = \"{}\"\n[pcpu.0]\npolicy = \"fixed-priority\"\n[network.lan]\nuplink = \"ethernet\"\n\
         [partition.echo]\nkind = \"vm\"\nimage = \"@guests/{PARTITION}\"\nmemory = \"16K\"\n\
         vcpus = [{{ pcpu = 0, priority = 30 }}]\ndevices = [\"uart1\"]\n{key}\
         [partition.rtos]\nkind = \"vm\"\nimage = \"@guests/{RTOS}\"\nmemory = \"32K\"\n\
         network = \"lan\"\nmac = \"{MAC}\"\nvcpus = [{{ pcpu = 0, priority = 20 }}]\n",
        board.name
    )
}

/// The place of the user's code.
#[derive(Debug, Clone, Copy)]
enum Places {
    /// In the vector table of the partition.
    Partition { table: u32 },
    /// Here.
    Task { user: u32 },
}

impl Places {
    fn of_partition(workspace: &Workspace) -> Result<Self, Problem> {
        let (table, _) = places_in(&workspace.program(&format!("guest-{PARTITION}")))?;
        Ok(Self::Partition { table })
    }

    fn of_task(image: &std::path::Path) -> Result<Self, Problem> {
        let (_, user) = places_in(image)?;
        let user = user.ok_or_else(|| Problem::new(format!("the image has no `{USER}`")))?;
        Ok(Self::Task { user })
    }
}

/// Returns the address at which an image begins, and the address of its user's code.
fn places_in(image: &std::path::Path) -> Result<(u32, Option<u32>), Problem> {
    let bytes = std::fs::read(image).map_err(Problem::io(image.display()))?;
    let file = object::File::parse(&*bytes).map_err(|error| Problem::new(error.to_string()))?;
    let table = file
        .segments()
        .map(|segment| segment.address())
        .min()
        .unwrap_or(0);
    let user = file.symbols().find(|symbol| symbol.name() == Ok(USER));
    Ok((table as u32, user.map(|symbol| symbol.address() as u32 & !1)))
}

/// Returns the command line with the clock of the experiment, and without the consoles.
fn with_line(mut command: Vec<String>) -> Vec<String> {
    for argument in &mut command {
        if argument == "stdio" {
            "null".clone_into(argument);
        }
    }
    command.extend(CLOCK.map(str::to_owned));
    command
}

/// A machine under measurement.
struct Machine {
    /// The emulator. It ends before its debugging port is given up.
    _emulator: Emulator,
    remote: Remote,
    line: UnixStream,
    log: Log,
    flood: Option<Flood>,
    user: u32,
    /// Of a generator of pauses.
    state: u64,
    _socket: Socket,
}

/// The path of a socket, gone when dropped.
struct Socket(std::path::PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // Only the name of the file is at stake.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// An emulator that ends with the measurement.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        // The emulator may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Machine {
    fn start(mut command: Vec<String>, places: Places, flooded: bool) -> Result<Self, Problem> {
        let socket = Socket(bulkhead::emulator::monitor::socket_path());
        let path = socket.0.display();
        let port = free_port()?;
        command.extend(
            [
                "-chardev",
                &format!("socket,id=line,path={path},server=on,wait=off"),
                "-serial",
                "chardev:line",
                "-S",
                "-gdb",
                &format!("tcp:127.0.0.1:{port}"),
            ]
            .map(str::to_owned),
        );
        let (cable, log) = (Cable::new()?, Log::new()?);
        command.extend(cable.arguments()?);
        command.extend(log.arguments());
        let (program, arguments) = command.split_first().ok_or_else(|| Problem::new("no emulator"))?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| Problem::new(format!("cannot start {program}: {error}")))?;
        let emulator = Emulator(child);
        let mut remote = Remote::connect(port)?;
        let line = UnixStream::connect(&socket.0).map_err(Problem::io(socket.0.display()))?;
        line.set_nonblocking(true)
            .map_err(Problem::io(socket.0.display()))?;
        let user = match places {
            Places::Partition { table } => remote.word(table + VECTOR)?,
            Places::Task { user } => user,
        };
        let mut machine = Self {
            _emulator: emulator,
            remote,
            line,
            log,
            flood: None,
            user: user & !1,
            state: 0x9e37_79b9_7f4a_7c15,
            _socket: socket,
        };
        let begun = Instant::now();
        while machine.remote.word(UART_CONTROL)? & RECEIVE_ENABLE == 0 {
            if begun.elapsed() > PATIENCE {
                return Err(Problem::new("nobody listens to the serial line"));
            }
            machine.run(SETTLE)?;
        }
        machine.flood = flooded.then(|| cable.flood());
        machine.run(SETTLE)?;
        Ok(machine)
    }

    /// Returns the number of pings that were answered so far.
    fn pings(&self) -> u64 {
        self.flood.as_ref().map_or(0, Flood::answers)
    }

    /// Lets the machine run for a while.
    fn run(&mut self, duration: Duration) -> Result<(), Problem> {
        self.remote.resume()?;
        sleep(duration);
        self.remote.interrupt()
    }

    fn pause(&mut self) -> Duration {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        Duration::from_micros(PAUSE_US.0 + (self.state >> 11) % PAUSE_US.1)
    }

    fn is_full(&mut self) -> Result<bool, Problem> {
        Ok(self.remote.word(UART_STATE)? & RECEIVE_FULL != 0)
    }

    /// Runs until a random moment at which all programs have long done with the last byte, and a flood goes
    /// on. Returns false if that moment does not come.
    fn come_to_rest(&mut self) -> Result<bool, Problem> {
        let answered = self.remote.word(COUNTER)?;
        let pings = self.pings();
        let begun = Instant::now();
        while begun.elapsed() <= PATIENCE {
            let pause = self.pause();
            self.run(pause)?;
            // A host with other work to do gives the emulator little of such a pause.
            let passed = self.remote.word(COUNTER)?.wrapping_sub(answered);
            let goes_on = self.flood.is_none() || self.pings() > pings;
            if passed >= SETTLED && goes_on && !self.is_full()? {
                let mut echo = [0; 64];
                // The experiment does not look at the answers. An empty line is no failure.
                while matches!(self.line.read(&mut echo), Ok(count) if count > 0) {}
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends one byte. Returns the nanoseconds from the ISR, if there was one, and from the arrival to the
    /// user's code.
    fn sample(&mut self, number: usize) -> Result<(Option<u64>, u64), Problem> {
        let unanswered = || Problem::new(format!("byte {number} is not answered"));
        if !self.come_to_rest()? {
            return Err(unanswered());
        }
        self.line
            .write_all(b"a")
            .map_err(Problem::io("the serial line"))?;
        let sent = Instant::now();
        while !self.is_full()? {
            if sent.elapsed() > PATIENCE {
                return Err(Problem::new("the emulator's UART takes no byte"));
            }
        }
        self.remote.set(self.user)?;
        let steps = self.log.count(&mut self.remote, EXCEPTION)?;
        if self.remote.program_counter()? != self.user {
            return Err(unanswered());
        }
        self.remote.clear(self.user)?;
        // A hypervisor that looks for interrupts finds this one without an exception. The moment of the look
        // is not known, and other work may be before it: all that can be charged is the time since the
        // arrival.
        let since_exception = steps.since_exception.map(|steps| steps * NANOSECONDS);
        Ok((since_exception, steps.all * NANOSECONDS))
    }
}

/// Returns a port on which no code listens.
fn free_port() -> Result<u16, Problem> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(Problem::io("a local port"))?;
    Ok(listener.local_addr().map_err(Problem::io("a local port"))?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_that_of_the_experiment() {
        let command = ["e", "-serial", "stdio"].map(str::to_owned).to_vec();
        let changed = with_line(command);
        assert_eq!(changed[..4], ["e", "-serial", "null", "-icount"]);
        assert_eq!(changed.len(), 3 + CLOCK.len());
    }
}
