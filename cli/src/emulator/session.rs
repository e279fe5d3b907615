// SPDX-License-Identifier: Apache-2.0
//! One run of a board in its emulator.
//!
//! A session owns the emulator process, its serial line and the clock on the wall. The session reads the line
//! and lets an [`Observer`] see the consoles. It writes the text that the user or the observer types, and
//! ends for exactly one [`Ending`]. There is one thread, which calls `poll`: no locks, and nothing outlives
//! the session. The emulator is killed and reaped on every way out, and is killed if the tool itself is
//! killed.
//!
//! Virtual limits are counted on the tags of the consoles. Only the wall clock ends a system that says
//! nothing any more, so unattended runs should always set [`Limits::real`].

use crate::class::Tool;
use crate::emulator::monitor::Monitor;
use crate::emulator::stall::Stall;
use crate::emulator::watch::Watch;
use crate::log::log_area::{self, LogArea};
use crate::problem::Problem;
use crate::serial::consoles::{Consoles, Control, Observer};
use crate::serial::framing::{VirtualTime, direct};
use crate::trace::Trace;
use crate::trace::collect::Collector;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The time without output after which prompts are shown.
const QUIET: Duration = Duration::from_millis(150);
/// Bytes of the emulator's own messages that are kept.
const MESSAGES_MAX: usize = 16 * 1024;
/// Bytes of a piece of typed text. A piece fits the FIFO of a guest's UART (32 bytes).
const PIECE: usize = 16;
/// The longest wait for the echo of a piece. The echo says that the guest has emptied the FIFO, however slow the
/// emulator is. Not all guests echo.
const PAUSE: Duration = Duration::from_millis(500);
/// The interval at which the rings of a trace are emptied.
const COLLECT_EVERY: Duration = Duration::from_millis(50);

/// When a session ends by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Time on the board's clock.
    pub virtual_time: Option<VirtualTime>,
    /// Time on the wall.
    pub real: Option<Duration>,
}

/// Why a session ended.
#[derive(Debug)]
pub enum Ending {
    /// The observer had seen enough.
    Stopped,
    /// The emulator ended by itself: the board was powered off, or the emulator failed.
    Exited(ExitStatus),
    /// The board's clock passed the limit.
    VirtualLimit,
    /// The wall clock passed the limit.
    RealLimit,
    /// The user, or a signal, ended the session.
    Interrupted,
}

/// The results of a session.
#[derive(Debug)]
pub struct Outcome {
    /// The reason why the session ended.
    pub ending: Ending,
    /// The last time seen on a console.
    pub virtual_time: VirtualTime,
    /// The duration of the session.
    pub real_time: Duration,
    /// The messages of the emulator itself.
    pub messages: String,
    /// The hypervisor's log area, if it was asked for and could be read.
    pub log_area: Option<Vec<u8>>,
    /// The trace, if there is one.
    pub trace: Option<Trace>,
    /// The stretches of memory that were to be read at the end, or nothing if they could not all be read.
    pub kept: Option<Vec<Vec<u8>>>,
    /// A guest was found to get nowhere, perhaps with the board's clock.
    pub stall: Option<Stall>,
}

/// The access to the board's memory.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Socket of the emulator's monitor, which is on its command line.
    pub socket: std::path::PathBuf,
    /// Address of the log area, to be read at the end.
    pub log_base: Option<u64>,
    /// True if the rings of the trace are emptied during the run.
    pub trace: bool,
    /// Stretches of memory that are read at the end: address and bytes.
    pub kept: Vec<(u64, usize)>,
    /// Looks whether a guest gets nowhere.
    pub watch: Option<Watched>,
}

/// The facts of a run that is watched.
#[derive(Clone, Copy)]
pub struct Watched {
    /// True if the board's clock counts instructions, and so can stand still.
    pub counted: bool,
    /// The class of the board, if it is known.
    pub class: Option<&'static dyn Tool>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let class = self.class.map(|class| class.facts().name);
        to.debug_struct("Watched")
            .field("counted", &self.counted)
            .field("class", &class)
            .finish()
    }
}

/// Turns the user's typing into requests.
pub trait Input {
    /// Returns the source of the input, or `None` when there is no more.
    fn source(&self) -> Option<BorrowedFd<'_>>;
    /// Reads from the source, which has something or has ended. Returns whether the session goes on.
    fn ready(&mut self, control: &mut Control) -> bool;
    /// Tells whether input is held back.
    fn has_more(&self) -> bool {
        false
    }
    /// Releases held input. Called from time to time while something is held back.
    fn release(&mut self, control: &mut Control) {
        let _ = control;
    }
}

/// No person types.
#[derive(Debug)]
pub struct NoInput;

impl Input for NoInput {
    fn source(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    fn ready(&mut self, _: &mut Control) -> bool {
        true
    }
}

/// The emulator, killed when dropped.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        // An error means that the emulator is gone already. In every case `wait` reaps the process.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `command` (program and arguments) with its serial line on standard input and output.
fn start(command: &[String]) -> Result<Emulator, Problem> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| Problem::new("the board has no emulator"))?;
    if !crate::build::host::is_installed(program) {
        return Err(
            Problem::new(format!("the emulator `{program}` is not installed")).remedy(format!(
                "apt-get install --no-install-recommends {}",
                crate::build::host::package_of(program)
            )),
        );
    }
    // `setpriv` (util-linux) asks the kernel to kill the emulator when this tool dies. Without `setpriv`, a
    // killed session could leave an emulator that spins for ever.
    let mut process = if crate::build::host::is_installed("setpriv") {
        let mut process = Command::new("setpriv");
        process.args(["--pdeathsig", "KILL", "--", program]);
        process
    } else {
        Command::new(program)
    };
    process
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A signal to all processes of a terminal or of `timeout` is for this tool, which reads the board's
        // memory before it ends the emulator.
        .process_group(0);
    process
        .spawn()
        .map(Emulator)
        .map_err(|error| Problem::new(format!("cannot start `{program}`: {error}")))
}

/// Runs `command` until one of the reasons in [`Ending`]. `signals` becomes readable when the session shall
/// end.
///
/// # Errors
/// The emulator cannot be started, or a call of the operating system fails.
pub fn run(
    command: &[String],
    limits: Limits,
    memory: Option<Memory>,
    observer: &mut dyn Observer,
    input: &mut dyn Input,
    signals: Option<BorrowedFd<'_>>,
) -> Result<Outcome, Problem> {
    let mut emulator = start(command)?;
    let log_base = memory.as_ref().and_then(|memory| memory.log_base);
    let monitor = match &memory {
        Some(memory) => Monitor::connect(&memory.socket, || matches!(emulator.0.try_wait(), Ok(None)))?,
        None => None,
    };
    let pipes = (
        emulator.0.stdin.take(),
        emulator.0.stdout.take(),
        emulator.0.stderr.take(),
    );
    let (Some(to_board), Some(from_board), Some(errors)) = pipes else {
        return Err(Problem::new("the emulator has no pipes"));
    };
    let line = Serial {
        to_board: Some(to_board),
        from_board,
        errors: Some(errors),
        outgoing: Vec::new(),
        pause: None,
    };
    let mut session = Session {
        line,
        limits,
        started: Instant::now(),
        consoles: Consoles::default(),
        control: Control::default(),
        messages: Vec::new(),
        typed: VecDeque::new(),
        echo: None,
        buffer: vec![0; 64 * 1024],
        monitor,
        log_base,
        log_area: None,
        to_keep: memory
            .as_ref()
            .map(|memory| memory.kept.clone())
            .unwrap_or_default(),
        kept: None,
        watch: memory
            .as_ref()
            .and_then(|memory| memory.watch)
            .map(|watched| (Watch::new(emulator.0.id(), watched.counted), watched)),
        stall: None,
        trace: memory
            .filter(|memory| memory.trace)
            .and_then(|memory| memory.log_base)
            .map(Collector::new),
        collected: Instant::now(),
    };
    session
        .line
        .set_nonblocking()
        .map_err(Problem::io("the emulator's pipes"))?;
    let ending = session.serve(&mut emulator, observer, input, signals)?;
    session.consoles.finish(observer, &mut session.control);
    session.show_memory(observer);
    session.save_memory();
    let trace = session.trace.map(|mut trace| trace.finish());
    let exits = session.log_area.as_deref().and_then(LogArea::at_start);
    let exits = exits.map(|area| area.exits_of_all()).unwrap_or_default();
    Ok(Outcome {
        ending,
        virtual_time: session.consoles.now(),
        real_time: session.started.elapsed(),
        messages: String::from_utf8_lossy(&session.messages).trim().to_owned(),
        log_area: session.log_area,
        kept: session.kept,
        stall: session.stall,
        trace: trace.map(|trace| Trace { exits, ..trace }),
    })
}

struct Serial {
    to_board: Option<std::process::ChildStdin>,
    from_board: std::process::ChildStdout,
    errors: Option<std::process::ChildStderr>,
    outgoing: Vec<u8>,
    pause: Option<Instant>,
}

impl Serial {
    fn set_nonblocking(&self) -> std::io::Result<()> {
        let pipes = [
            self.to_board.as_ref().map(AsFd::as_fd),
            Some(self.from_board.as_fd()),
            self.errors.as_ref().map(AsFd::as_fd),
        ];
        for pipe in pipes.into_iter().flatten() {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(())
    }

    /// Writes as much as the line takes now.
    fn send(&mut self) {
        let Some(pipe) = &mut self.to_board else { return };
        match pipe.write(&self.outgoing) {
            Ok(count) => {
                self.outgoing.drain(..count);
                self.pause = Some(Instant::now() + PAUSE);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // The board takes no input any more. The session sees on its output that the board ended.
            Err(_) => {
                self.to_board = None;
                self.outgoing.clear();
            }
        }
    }

    /// Returns the time until the next piece may be sent.
    fn pause_left(&self) -> Duration {
        self.pause.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(Instant::now())
        })
    }
}

/// The state of the serial line after a read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// There may be more.
    More,
    /// There is nothing now.
    Empty,
    /// The emulator has closed it.
    Ended,
}

/// The sources that are ready.
#[derive(Clone, Copy, Default)]
struct Ready {
    output: bool,
    errors: bool,
    room: bool,
    input: bool,
    signal: bool,
    monitor: bool,
}

struct Session {
    line: Serial,
    limits: Limits,
    started: Instant,
    consoles: Consoles,
    control: Control,
    messages: Vec<u8>,
    typed: VecDeque<(String, Vec<u8>)>,
    /// The console that got the last piece of typed text, and the bytes that it has printed with the echo.
    echo: Option<(String, usize)>,
    buffer: Vec<u8>,
    monitor: Option<Monitor>,
    log_base: Option<u64>,
    log_area: Option<Vec<u8>>,
    trace: Option<Collector>,
    /// Stretches of memory to be read at the end, and their contents once they are read.
    to_keep: Vec<(u64, usize)>,
    kept: Option<Vec<Vec<u8>>>,
    watch: Option<(Watch, Watched)>,
    stall: Option<Stall>,
    /// When the rings were emptied last.
    collected: Instant,
}

impl Session {
    fn serve(
        &mut self,
        emulator: &mut Emulator,
        observer: &mut dyn Observer,
        input: &mut dyn Input,
        signals: Option<BorrowedFd<'_>>,
    ) -> Result<Ending, Problem> {
        let mut quiet = true;
        // The board can be off already.
        self.let_go(observer)?;
        loop {
            let ready = self.wait(input, signals, self.patience(quiet, input.has_more()))?;
            if ready.signal {
                return Ok(Ending::Interrupted);
            }
            if ready.errors {
                self.read_messages();
            }
            if ready.room {
                self.line.send();
            }
            if ready.monitor {
                self.monitor_ready(observer)?;
            }
            if self.trace.is_some() && self.collected.elapsed() >= COLLECT_EVERY {
                // The session sees on the output that an emulator has gone.
                let _ = self.collect();
                self.collected = Instant::now();
                // The board may have said among the answers that it is off.
                self.let_go(observer)?;
            }
            let is_open = !ready.output || self.read_line(observer)? != Line::Ended;
            if ready.input && !input.ready(&mut self.control) {
                return Ok(Ending::Interrupted);
            }
            self.watch_guests(observer)?;
            if ready.output {
                quiet = false;
            } else if !quiet && !ready.errors && !ready.room && !ready.input {
                quiet = true;
                observer.quiet(&mut self.control);
            }
            input.release(&mut self.control);
            self.typed.extend(self.control.typed.drain(..));
            self.send_piece();
            if std::mem::take(&mut self.control.reset)
                && let Some(monitor) = &mut self.monitor
            {
                monitor.reset()?;
            }
            if self.control.stop {
                return Ok(Ending::Stopped);
            }
            if !is_open {
                self.read_messages();
                let status = emulator.0.wait().map_err(Problem::io("the emulator"))?;
                self.read_messages();
                return Ok(Ending::Exited(status));
            }
            if self
                .limits
                .virtual_time
                .is_some_and(|limit| self.consoles.now() > limit)
            {
                return Ok(Ending::VirtualLimit);
            }
            if self
                .limits
                .real
                .is_some_and(|limit| self.started.elapsed() >= limit)
            {
                return Ok(Ending::RealLimit);
            }
        }
    }

    /// Reads from the monitor, which has something to say.
    fn monitor_ready(&mut self, observer: &mut dyn Observer) -> Result<(), Problem> {
        if let Some(monitor) = &mut self.monitor {
            monitor.take_events();
        }
        self.let_go(observer)
    }

    /// Looks whether a guest gets nowhere.
    fn watch_guests(&mut self, observer: &mut dyn Observer) -> Result<(), Problem> {
        let (Some((watch, watched)), Some(monitor)) = (&mut self.watch, &mut self.monitor) else {
            return Ok(());
        };
        if let Some(stall) = watch.look(monitor, self.log_base, watched.class) {
            observer.stalled(&stall, &mut self.control);
            self.stall = Some(stall);
        }
        self.let_go(observer)
    }

    /// Shows the observer the memory that it asked to look at.
    fn show_memory(&mut self, observer: &mut dyn Observer) {
        for (address, length) in std::mem::take(&mut self.control.looks) {
            let monitor = self.monitor.as_mut();
            let bytes = monitor.and_then(|monitor| monitor.memory(address, length).ok());
            observer.looked(bytes.as_deref(), &mut self.control);
        }
    }

    /// Reads the memory that a board leaves when it is off, and ends its emulator.
    fn let_go(&mut self, observer: &mut dyn Observer) -> Result<(), Problem> {
        if self.monitor.as_ref().is_some_and(|monitor| monitor.is_off) {
            // The observer may want to look at memory for what the board said last.
            while self.read_line(observer)? == Line::More {}
            self.save_memory();
            // The session sees on the output that the emulator has gone.
            if let Some(mut monitor) = self.monitor.take() {
                let _ = monitor.quit();
            }
        }
        Ok(())
    }

    /// Reads the log area and the records that are left in the rings, once. Finds none if the emulator is
    /// gone or refuses.
    fn save_memory(&mut self) {
        if let (Some(monitor), Some(base), None) = (&mut self.monitor, self.log_base, &self.log_area) {
            if !monitor.is_off {
                // The board is frozen so that all figures are of one moment, and the last records whole.
                let _ = monitor.freeze();
            }
            self.log_area = log_area::read(base, &mut |at, length| monitor.memory(at, length)).ok();
            let stretches = self.to_keep.iter();
            let read = stretches.map(|(address, length)| monitor.memory(*address, *length));
            self.kept = read.collect::<Result<_, _>>().ok();
            let _ = self.collect();
        }
    }

    /// Empties the rings.
    fn collect(&mut self) -> Result<(), Problem> {
        match (&mut self.trace, &mut self.monitor) {
            (Some(trace), Some(monitor)) => {
                trace.take(&mut |address, length| monitor.memory(address, length))
            }
            _ => Ok(()),
        }
    }

    /// Returns the time to wait for something to happen.
    fn patience(&self, quiet: bool, held: bool) -> Option<Duration> {
        let deadline = self
            .limits
            .real
            .map(|limit| limit.saturating_sub(self.started.elapsed()));
        let rest = (!quiet || held).then_some(QUIET);
        let collect = self
            .trace
            .as_ref()
            .map(|_| COLLECT_EVERY.saturating_sub(self.collected.elapsed()));
        let idle = self.line.outgoing.is_empty() && !self.typed.is_empty();
        let pause = idle.then(|| self.line.pause_left());
        let watch = self.watch.as_ref().filter(|_| self.monitor.is_some());
        let watch = watch.map(|(watch, _)| watch.patience());
        [deadline, rest, pause, collect, watch]
            .into_iter()
            .flatten()
            .min()
    }

    /// Tells whether the last piece of typed text is through: the guest has echoed the piece, or has had its
    /// time.
    fn is_through(&self) -> bool {
        let has_echoed = |(console, printed): &(String, usize)| self.consoles.printed(console) >= *printed;
        self.line.outgoing.is_empty()
            && (self.echo.as_ref().is_none_or(has_echoed) || self.line.pause_left().is_zero())
    }

    /// Hands the next piece of typed text to the line, when the last one is through.
    fn send_piece(&mut self) {
        if !self.is_through() {
            return;
        }
        if self.line.to_board.is_none() {
            self.typed.clear();
        }
        let Some((console, text)) = self.typed.front_mut() else {
            return;
        };
        let piece: Vec<u8> = text.drain(..text.len().min(PIECE)).collect();
        self.line.outgoing = direct(console, &piece);
        let printed = self.consoles.printed(console).saturating_add(piece.len());
        self.echo = Some((console.clone(), printed));
        if text.is_empty() {
            self.typed.pop_front();
        }
    }

    fn wait(
        &self,
        input: &dyn Input,
        signals: Option<BorrowedFd<'_>>,
        patience: Option<Duration>,
    ) -> Result<Ready, Problem> {
        let errors = self.line.errors.as_ref().map(AsFd::as_fd);
        let room = self
            .line
            .to_board
            .as_ref()
            .filter(|_| !self.line.outgoing.is_empty())
            .map(AsFd::as_fd);
        let sources = [
            (Some(self.line.from_board.as_fd()), PollFlags::IN),
            (errors, PollFlags::IN),
            (room, PollFlags::OUT),
            (input.source(), PollFlags::IN),
            (signals, PollFlags::IN),
            (self.monitor.as_ref().map(Monitor::source), PollFlags::IN),
        ];
        let mut polled: Vec<PollFd<'_>> = Vec::new();
        let mut place = [None; 6];
        for (index, (source, flags)) in sources.into_iter().enumerate() {
            if let Some(source) = source {
                place[index] = Some(polled.len());
                polled.push(PollFd::from_borrowed_fd(source, flags));
            }
        }
        let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Problem::new(format!("cannot wait for the emulator: {error}"))),
        }
        let is = |index: usize| place[index].is_some_and(|place| !polled[place].revents().is_empty());
        Ok(Ready {
            output: is(0),
            errors: is(1),
            room: is(2),
            input: is(3),
            signal: is(4),
            monitor: is(5),
        })
    }

    /// Reads the serial line.
    fn read_line(&mut self, observer: &mut dyn Observer) -> Result<Line, Problem> {
        match self.line.from_board.read(&mut self.buffer) {
            Ok(0) => Ok(Line::Ended),
            Ok(count) => {
                self.consoles
                    .feed(&self.buffer[..count], observer, &mut self.control);
                self.show_memory(observer);
                Ok(Line::More)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Ok(Line::Empty)
            }
            Err(error) => Err(Problem::io("the emulator's output")(error)),
        }
    }

    fn read_messages(&mut self) {
        let Some(errors) = &mut self.line.errors else {
            return;
        };
        match errors.read(&mut self.buffer) {
            Ok(0) => self.line.errors = None,
            Ok(count) => {
                let room = MESSAGES_MAX - self.messages.len();
                self.messages.extend_from_slice(&self.buffer[..count.min(room)]);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.line.errors = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serial::consoles::ConsoleLine;

    #[derive(Default)]
    struct Recorder {
        lines: Vec<String>,
        stop_at: Option<&'static str>,
        answer_to: Option<&'static str>,
    }

    impl Observer for Recorder {
        fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
            control.stop |= self.stop_at.is_some_and(|text| line.text.contains(text));
            self.lines.push(format!("{}: {}", line.console, line.text));
        }
        fn partial(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
            if self.answer_to == Some(line.text) {
                control.typed.push(("a".to_owned(), b"yes\n".to_vec()));
                self.answer_to = None;
            }
        }
    }

    fn shell(script: &str, limits: Limits, recorder: &mut Recorder) -> Outcome {
        let command = ["sh".to_owned(), "-c".to_owned(), script.to_owned()];
        run(&command, limits, None, recorder, &mut NoInput, None).unwrap()
    }

    #[test]
    fn a_session_ends_when_the_emulator_does() {
        let mut recorder = Recorder::default();
        let script = r"printf '\036[    1.000000] a: \037hi\r\n'; echo broken >&2; exit 3";
        let outcome = shell(script, Limits::default(), &mut recorder);
        assert!(matches!(outcome.ending, Ending::Exited(status) if status.code() == Some(3)));
        assert_eq!(outcome.messages, "broken");
        assert_eq!(outcome.virtual_time.micros, 1_000_000);
        assert_eq!(recorder.lines, ["a: hi"]);
    }

    #[test]
    fn limits_end_a_session_and_the_emulator_dies() {
        let mut recorder = Recorder::default();
        let real = Limits {
            real: Some(Duration::from_millis(50)),
            ..Limits::default()
        };
        assert!(matches!(
            shell("exec sleep 1000", real, &mut recorder).ending,
            Ending::RealLimit
        ));
        let limits = Limits {
            virtual_time: Some(VirtualTime::from_seconds(5)),
            real: None,
        };
        let script = r"printf '\036[    6.000000] a: \037hi\r\n'; exec sleep 1000";
        assert!(matches!(
            shell(script, limits, &mut recorder).ending,
            Ending::VirtualLimit
        ));
    }

    /// Checks that the emulator is no member of the tool's process group, to which a terminal, or `timeout`,
    /// sends the signal that is to end the tool.
    #[test]
    fn a_signal_for_the_terminal_does_not_end_the_emulator() {
        let mut recorder = Recorder::default();
        // The fifth field of the line is the process group (proc(5)).
        let script = r"read -r pid name state parent group rest </proc/self/stat; echo group $group";
        shell(script, Limits::default(), &mut recorder);
        let own = rustix::process::getpgrp().as_raw_nonzero();
        let group = recorder.lines.first().and_then(|line| line.rsplit(' ').next());
        assert!(
            group.is_some_and(|group| group != own.to_string()),
            "{:?}",
            recorder.lines
        );
    }

    #[test]
    fn an_observer_types_and_stops() {
        let mut recorder = Recorder {
            answer_to: Some("sure? "),
            stop_at: Some("got"),
            ..Recorder::default()
        };
        let script = r"printf '\036[    1.000000] a: \037sure? '; read -r answer; printf 'got %s\n' yes; exec sleep 1000";
        let outcome = shell(script, Limits::default(), &mut recorder);
        assert!(matches!(outcome.ending, Ending::Stopped));
        assert_eq!(recorder.lines.last().unwrap(), "a: sure? got yes");
    }

    #[test]
    fn a_missing_emulator_is_a_problem_with_a_remedy() {
        let command = ["qemu-system-nothing".to_owned()];
        let problem = run(
            &command,
            Limits::default(),
            None,
            &mut Recorder::default(),
            &mut NoInput,
            None,
        )
        .unwrap_err();
        assert!(problem.to_string().contains("not installed"), "{problem}");
    }
}
