// SPDX-License-Identifier: Apache-2.0
//! The emulator's monitor (QMP, one JSON object a line, over a socket): reading the board's memory, and
//! resetting the board.
//!
//! The tool sends only a handful of fixed commands. Of most lines one word matters, and only the answers with
//! figures are read as JSON. A line that contains `"return"` or `"error"` answers the last command. A line
//! that contains `"SHUTDOWN"` says that the board has switched itself off. The emulator is told to stay until
//! the tool has looked.
//!
//! The emulator tells events only to a client that has agreed on a protocol before. A board can be off by
//! then, when the machine is busy. So the tool asks for the state once it is connected.

use crate::problem::Problem;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The time that the emulator may take to open its socket, or to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns a path for the socket that no other run uses.
#[must_use]
pub fn socket_path() -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("bulkhead-{}-{number}.qmp", std::process::id()))
}

/// A connection to the monitor.
#[derive(Debug)]
pub struct Monitor {
    stream: UnixStream,
    path: PathBuf,
    received: Vec<u8>,
    /// The board has switched itself off.
    pub is_off: bool,
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // Only a file of no use is at stake.
        let _ = fs::remove_file(&self.path);
    }
}

impl Monitor {
    /// Connects to the monitor. The function `is_alive` says whether the emulator still runs. Returns `None`
    /// if the emulator ended before it could be reached.
    ///
    /// # Errors
    /// The monitor cannot be reached, or does not answer.
    pub fn connect(path: &Path, mut is_alive: impl FnMut() -> bool) -> Result<Option<Self>, Problem> {
        let started = Instant::now();
        let stream = loop {
            match UnixStream::connect(path) {
                Ok(stream) => break stream,
                Err(_) if !is_alive() => return Ok(None),
                Err(_) if started.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(2)),
                Err(error) => return Err(Problem::io("the emulator's monitor")(error)),
            }
        };
        let mut monitor = Self {
            stream,
            path: path.to_owned(),
            received: Vec::new(),
            is_off: false,
        };
        monitor
            .stream
            .set_read_timeout(Some(PATIENCE))
            .map_err(Problem::io("the emulator's monitor"))?;
        monitor.command(r#"{"execute":"qmp_capabilities"}"#)?;
        monitor.command(r#"{"execute":"query-status"}"#)?;
        Ok(Some(monitor))
    }

    /// Returns a source that becomes readable when something happens.
    #[must_use]
    pub fn source(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Takes the events that have happened. Requires: [`Monitor::source`] is readable.
    pub fn take_events(&mut self) {
        // A monitor that has gone away means an emulator that has gone away. The session sees that on its
        // output.
        let _ = self.receive();
        self.take_lines();
    }

    /// Takes the events that have been received.
    fn take_lines(&mut self) {
        while self.line().is_some() {}
    }

    /// Resets the board. The memory of the board stays.
    ///
    /// # Errors
    /// The monitor refuses.
    pub fn reset(&mut self) -> Result<(), Problem> {
        // The tool starts the board's emulator so that a reset ends it.
        self.command(r#"{"execute":"set-action","arguments":{"reboot":"reset"}}"#)?;
        self.command(r#"{"execute":"system_reset"}"#)
    }

    /// Stops the board's clock and CPUs for good.
    ///
    /// # Errors
    /// The monitor refuses.
    pub fn freeze(&mut self) -> Result<(), Problem> {
        self.command(r#"{"execute":"stop"}"#)
    }

    /// Lets a frozen board go on.
    ///
    /// # Errors
    /// The monitor refuses.
    pub fn go_on(&mut self) -> Result<(), Problem> {
        self.command(r#"{"execute":"cont"}"#)
    }

    /// Returns the number of instructions that the emulator has counted, as of the last turn that a CPU has
    /// ended.
    ///
    /// # Errors
    /// The monitor refuses, or the emulator does not count.
    pub fn instructions(&mut self) -> Result<u64, Problem> {
        let answer = self.value(r#"{"execute":"query-replay"}"#)?;
        let number = answer["icount"].as_u64();
        number.ok_or_else(|| Problem::new("the emulator does not count instructions"))
    }

    /// Returns the threads that execute the board's CPUs, each once.
    ///
    /// # Errors
    /// The monitor refuses.
    pub fn cpu_threads(&mut self) -> Result<Vec<u32>, Problem> {
        let answer = self.value(r#"{"execute":"query-cpus-fast"}"#)?;
        // The properties of a CPU have a `thread-id`, too: its number in a core.
        let cpus = answer.as_array().into_iter().flatten();
        let threads = cpus.filter_map(|cpu| u32::try_from(cpu["thread-id"].as_u64()?).ok());
        let mut threads: Vec<u32> = threads.collect();
        threads.sort_unstable();
        threads.dedup();
        Ok(threads)
    }

    /// Returns the registers of all CPUs, as the emulator shows them to people.
    ///
    /// # Errors
    /// The monitor refuses.
    pub fn registers(&mut self) -> Result<String, Problem> {
        self.ask(r#"{"execute":"human-monitor-command","arguments":{"command-line":"info registers -a"}}"#)
    }

    /// Returns the two words at a virtual address of a CPU, or `None` if the CPU cannot read there.
    ///
    /// # Errors
    /// The monitor refuses, or answers otherwise than expected.
    pub fn words(&mut self, cpu: usize, address: u64) -> Result<Option<[u32; 2]>, Problem> {
        let command = format!(
            r#"{{"execute":"human-monitor-command","arguments":{{"command-line":"x /2xw {address:#x}","cpu-index":{cpu}}}}}"#
        );
        let answer = self.value(&command)?;
        let text = answer.as_str().unwrap_or_default();
        if text.contains("Cannot access memory") {
            return Ok(None);
        }
        let numbers = text
            .split_ascii_whitespace()
            .filter_map(|word| word.strip_prefix("0x"));
        let words: Vec<u32> = numbers
            .filter_map(|digits| u32::from_str_radix(digits, 16).ok())
            .collect();
        let words: Result<[u32; 2], _> = words.try_into();
        words
            .map(Some)
            .map_err(|_| Problem::new(format!("the emulator's answer to {command}: {text}")))
    }

    /// Ends the emulator.
    ///
    /// # Errors
    /// The monitor refuses.
    pub fn quit(&mut self) -> Result<(), Problem> {
        self.command(r#"{"execute":"quit"}"#)
    }

    /// Reads the board's memory.
    ///
    /// # Errors
    /// The monitor refuses.
    pub fn memory(&mut self, address: u64, length: usize) -> Result<Vec<u8>, Problem> {
        let file = self.path.with_extension("memory");
        let name = file.display().to_string();
        if name.contains(['"', '\\']) {
            return Err(Problem::new(format!(
                "the temporary folder's name is odd: {name}"
            )));
        }
        let command = format!(
            r#"{{"execute":"pmemsave","arguments":{{"val":{address},"size":{length},"filename":"{name}"}}}}"#
        );
        let answer = self.command(&command);
        let bytes = fs::read(&file);
        let _ = fs::remove_file(&file);
        answer.and_then(|()| bytes.map_err(Problem::io(&name)))
    }

    /// Sends a command and waits until it is done.
    fn command(&mut self, command: &str) -> Result<(), Problem> {
        self.ask(command).map(drop)
    }

    /// Sends a command and returns the value of its answer.
    fn value(&mut self, command: &str) -> Result<Value, Problem> {
        let line = self.ask(command)?;
        let answer: Result<Value, _> = serde_json::from_str(&line);
        let mut answer =
            answer.map_err(|error| Problem::new(format!("the emulator's answer to {command}: {error}")))?;
        Ok(answer["return"].take())
    }

    /// Sends a command and returns the line of its answer.
    fn ask(&mut self, command: &str) -> Result<String, Problem> {
        let failed = Problem::io("the emulator's monitor");
        if let Err(error) = self.stream.write_all(format!("{command}\n").as_bytes()) {
            return Err(failed(error));
        }
        loop {
            while let Some(line) = self.line() {
                if line.contains("\"return\"") {
                    // Nothing wakes the session for an event that came in the same piece.
                    self.take_lines();
                    return Ok(line);
                }
                if line.contains("\"error\"") {
                    return Err(Problem::new(format!(
                        "the emulator's monitor refuses {command}: {line}"
                    )));
                }
            }
            match self.receive() {
                Ok(0) => return Err(Problem::new("the emulator's monitor has gone away")),
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(failed(error)),
                _ => {}
            }
        }
    }

    fn receive(&mut self) -> std::io::Result<usize> {
        let mut buffer = [0; 4096];
        let count = self.stream.read(&mut buffer)?;
        self.received.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    /// Returns the next whole line.
    fn line(&mut self) -> Option<String> {
        let end = self.received.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.received.drain(..=end).collect();
        let line = String::from_utf8_lossy(&line).into_owned();
        self.is_off |= line.contains("\"SHUTDOWN\"") || line.contains("\"status\": \"shutdown\"");
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;

    const AGREED: &str = "{\"return\": {}}\r\n";
    const RUNS: &str = "{\"return\": {\"status\": \"running\", \"running\": true}}\r\n";

    /// Runs a monitor that answers each command with the next of `answers`. Returns the commands that the
    /// monitor received.
    fn talk(answers: &'static [&'static str], with: impl FnOnce(&mut Monitor)) -> Vec<String> {
        let path = socket_path();
        let listener = UnixListener::bind(&path).unwrap();
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            stream.write_all(b"{\"QMP\": {}}\r\n").unwrap();
            let mut commands = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut heard = Vec::new();
            for answer in answers {
                heard.push(commands.next().unwrap().unwrap());
                stream.write_all(answer.as_bytes()).unwrap();
            }
            heard
        });
        let mut monitor = Monitor::connect(&path, || true).unwrap().unwrap();
        with(&mut monitor);
        server.join().unwrap()
    }

    #[test]
    fn events_before_an_answer_are_noted() {
        let heard = talk(
            &[AGREED, RUNS, "{\"event\": \"SHUTDOWN\"}\r\n{\"return\": {}}\r\n"],
            |monitor| {
                assert!(!monitor.is_off);
                monitor.quit().unwrap();
                assert!(monitor.is_off);
            },
        );
        assert_eq!(heard[2], r#"{"execute":"quit"}"#);
    }

    #[test]
    fn a_board_that_was_off_before_the_emulator_tells_events_is_off() {
        const OFF: &str = "{\"return\": {\"status\": \"shutdown\", \"running\": false}}\r\n";
        talk(&[AGREED, OFF], |monitor| assert!(monitor.is_off));
    }

    #[test]
    fn an_event_in_one_piece_with_an_answer_is_noted() {
        const BOTH: &str = "{\"return\": {\"status\": \"running\"}}\r\n{\"event\": \"SHUTDOWN\"}\r\n";
        talk(&[AGREED, BOTH], |monitor| assert!(monitor.is_off));
    }

    #[test]
    fn a_refusal_is_a_problem() {
        talk(
            &[AGREED, RUNS, "{\"error\": {\"desc\": \"no\"}}\r\n"],
            |monitor| {
                let problem = monitor.memory(0x4000, 16).unwrap_err().to_string();
                assert!(
                    problem.contains("refuses") && problem.contains("\"no\""),
                    "{problem}"
                );
            },
        );
    }

    #[test]
    fn instructions_are_those_that_the_emulator_counted() {
        const COUNTED: &str = "{\"return\": {\"icount\": 902503, \"mode\": \"none\"}}\r\n";
        talk(&[AGREED, RUNS, COUNTED, AGREED], |monitor| {
            assert_eq!(monitor.instructions().unwrap(), 902_503);
            assert!(monitor.instructions().is_err(), "this one does not count");
        });
    }

    #[test]
    fn threads_are_those_of_the_cpus_each_once() {
        const CPUS: &str = "{\"return\": [{\"thread-id\": 71, \"props\": {\"thread-id\": 0}}, \
                            {\"thread-id\": 71}, {\"thread-id\": 72}]}\r\n";
        talk(&[AGREED, RUNS, CPUS], |monitor| {
            assert_eq!(monitor.cpu_threads().unwrap(), [71, 72]);
        });
    }

    #[test]
    fn words_are_read_where_a_cpu_can_read() {
        const WORDS: &str = "{\"return\": \"00100700: 0x00000000 0x14000000\\r\\n\"}\r\n";
        const NOTHING: &str = "{\"return\": \"0000000000000200: Cannot access memory\\r\\n\"}\r\n";
        let heard = talk(&[AGREED, RUNS, WORDS, NOTHING, AGREED], |monitor| {
            assert_eq!(monitor.words(1, 0x10_0700).unwrap(), Some([0, 0x1400_0000]));
            assert_eq!(monitor.words(0, 0x200).unwrap(), None);
            assert!(monitor.words(0, 0x200).is_err(), "this one says nothing");
        });
        assert!(
            heard[2].contains(r#""x /2xw 0x100700","cpu-index":1"#),
            "{heard:?}"
        );
    }

    #[test]
    fn an_emulator_that_ends_at_once_has_no_monitor() {
        assert!(Monitor::connect(&socket_path(), || false).unwrap().is_none());
    }
}
