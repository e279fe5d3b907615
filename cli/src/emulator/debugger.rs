// SPDX-License-Identifier: Apache-2.0
//! Talking to a debugger's server of a running board: a debug probe's, or the emulator's.
//!
//! The protocol is gdb's remote serial one (gdb manual, appendix E): `$command#checksum`, each packet
//! acknowledged by `+`. Reading memory needs three commands: `m` reads the memory, `D` lets the board go on,
//! and `Qqemu.PhyMemMode` tells QEMU that addresses are bus addresses. Other servers do not know the third
//! command and refuse it by an empty answer. A server stops the board when a debugger connects. The board
//! goes on as soon as this connection is given up, for any reason.

use crate::problem::Problem;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The time that the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes asked for at once. Twice as many characters fit the packets of every server.
const CHUNK: usize = 512;
/// Characters of the longest answer that is read.
const ANSWER_MAX: usize = 64 * 1024;

/// A connection. The board stands still while there is one.
#[derive(Debug)]
pub struct Debugger<S: Read + Write> {
    stream: S,
    place: String,
}

impl Debugger<TcpStream> {
    /// Connects to `place`: `HOST:PORT`, `:PORT` or `PORT`.
    ///
    /// # Errors
    /// No program listens there, or the listener is no such server.
    pub fn connect(place: &str) -> Result<Self, Problem> {
        let full = match place.rsplit_once(':') {
            None => format!("127.0.0.1:{place}"),
            Some(("", port)) => format!("127.0.0.1:{port}"),
            Some(_) => place.to_owned(),
        };
        let failed = |why: std::io::Error| {
            Problem::new(format!("no debugger's server at {full}: {why}")).remedy(
                "start one: `bulkhead run --gdb`, QEMU's `-gdb tcp::1234`, or that of your debug probe",
            )
        };
        let addresses = full.to_socket_addrs().map_err(failed)?;
        let mut last = std::io::ErrorKind::NotFound.into();
        for address in addresses {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
                    // Packets are short, and each waits for its answer.
                    stream.set_nodelay(true).map_err(failed)?;
                    return Self::over(stream, full);
                }
                Err(why) => last = why,
            }
        }
        Err(failed(last))
    }

    /// Waits so long for each packet.
    ///
    /// # Errors
    /// The stream takes no such time.
    pub fn wait_for(&self, patience: Duration) -> Result<(), Problem> {
        let set = self.stream.set_read_timeout(Some(patience));
        set.map_err(Problem::io(&self.place))
    }
}

impl<S: Read + Write> Debugger<S> {
    /// Talks to the server `place` over `stream`.
    fn over(stream: S, place: String) -> Result<Self, Problem> {
        let mut debugger = Self { stream, place };
        // A server that does not know this command gives an empty answer. Its addresses are then addresses of
        // the bus or of the CPU's current translation, at its own choice.
        debugger.ask("Qqemu.PhyMemMode:1")?;
        Ok(debugger)
    }

    /// Reads `length` bytes at `address`.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub fn memory(&mut self, address: u64, length: usize) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = address.saturating_add(bytes.len() as u64);
            let part = CHUNK.min(length - bytes.len());
            let answer = self.ask(&format!("m{at:x},{part:x}"))?;
            match decode(&answer) {
                Some(read) if !read.is_empty() && read.len() <= part => bytes.extend(read),
                _ => {
                    return Err(Problem::new(format!(
                        "{} cannot read memory at {at:#x}: it answers `{}`",
                        self.place,
                        answer.chars().take(40).collect::<String>()
                    )));
                }
            }
        }
        Ok(bytes)
    }

    /// Sends a command and returns its answer. A message that the server sends unasked (that the board has
    /// stopped, or output) is no answer.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn ask(&mut self, command: &str) -> Result<String, Problem> {
        self.send(command)?;
        loop {
            let answer = self.packet()?;
            let unasked =
                answer.starts_with(['T', 'S', 'W', 'X']) || answer.starts_with('O') && answer != "OK";
            if !unasked {
                return Ok(answer);
            }
        }
    }

    /// Sends a command, and does not wait for its effect.
    ///
    /// # Errors
    /// The server has gone away.
    pub fn send(&mut self, command: &str) -> Result<(), Problem> {
        let packet = format!("${command}#{:02x}", checksum(command.as_bytes()));
        let sent = self.stream.write_all(packet.as_bytes());
        sent.map_err(Problem::io(&self.place))
    }

    /// Stops the board wherever it is. The next packet says that the board has stopped.
    ///
    /// # Errors
    /// The server has gone away.
    pub fn interrupt(&mut self) -> Result<(), Problem> {
        self.stream.write_all(&[3]).map_err(Problem::io(&self.place))
    }

    /// Returns the next packet, acknowledged.
    ///
    /// # Errors
    /// The server has gone away, or what it sends is no packet.
    pub fn packet(&mut self) -> Result<String, Problem> {
        while self.byte()? != b'$' {}
        let mut contents = Vec::new();
        loop {
            match self.byte()? {
                b'#' => break,
                _ if contents.len() == ANSWER_MAX => {
                    return Err(Problem::new(format!("{} does not end its answer", self.place)));
                }
                byte => contents.push(byte),
            }
        }
        let expected = format!("{:02x}", checksum(&contents));
        let found = [self.byte()?, self.byte()?];
        if !found.eq_ignore_ascii_case(expected.as_bytes()) {
            return Err(Problem::new(format!(
                "{} is no debugger's server, or the line to it is bad: wrong checksum",
                self.place
            )));
        }
        self.stream.write_all(b"+").map_err(Problem::io(&self.place))?;
        Ok(expanded(&contents))
    }

    fn byte(&mut self) -> Result<u8, Problem> {
        let mut byte = [0];
        match self.stream.read_exact(&mut byte) {
            Ok(()) => Ok(byte[0]),
            Err(error) => Err(Problem::new(format!(
                "{} does not answer like a debugger's server: {error}",
                self.place
            ))),
        }
    }
}

impl<S: Read + Write> Drop for Debugger<S> {
    fn drop(&mut self) {
        // If the server does not receive this command, nothing more can be done.
        let _ = self.ask("D");
    }
}

fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte))
}

/// Undoes run lengths: `X*n` is X and n - 29 more of it (gdb manual, E.1).
fn expanded(contents: &[u8]) -> String {
    let mut text = String::new();
    let mut bytes = contents.iter();
    while let Some(byte) = bytes.next() {
        match (byte, text.chars().last()) {
            (b'*', Some(last)) => {
                let count = bytes.next().map_or(0, |count| count.saturating_sub(29));
                text.extend(std::iter::repeat_n(last, usize::from(count)));
            }
            _ => text.push(char::from(*byte)),
        }
    }
    text
}

/// Decodes bytes written as hexadecimal digits. Returns `None` if they are no digits, as in the errors `E01`
/// to `Eff`.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A server whose answers are fixed. The commands that it receives are kept.
    struct Script {
        answers: Cursor<Vec<u8>>,
        heard: std::rc::Rc<std::cell::RefCell<Vec<u8>>>,
    }

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.answers.read(buffer)
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.heard.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn framed(answer: &str) -> String {
        format!("+${answer}#{:02x}", checksum(answer.as_bytes()))
    }

    /// Reads two bytes at 0x1000 from a server with these answers. Returns the result, and the messages that
    /// the server received.
    fn read(answers: &[String]) -> (Result<Vec<u8>, String>, String) {
        let heard = std::rc::Rc::default();
        let script = Script {
            answers: Cursor::new(answers.concat().into_bytes()),
            heard: std::rc::Rc::clone(&heard),
        };
        let result = Debugger::over(script, "server".to_owned())
            .and_then(|mut debugger| debugger.memory(0x1000, 2))
            .map_err(|problem| problem.to_string());
        let heard = String::from_utf8(heard.borrow().clone()).unwrap();
        (result, heard)
    }

    #[test]
    fn memory_is_read_and_the_board_goes_on() {
        let answers = [
            framed("OK"),
            framed("T05thread:01;"),
            framed("beef"),
            framed("OK"),
        ];
        let (result, heard) = read(&answers);
        assert_eq!(result, Ok(vec![0xbe, 0xef]));
        assert_eq!(heard, "$Qqemu.PhyMemMode:1#77+$m1000,2#8c++$D#44+");
    }

    #[test]
    fn answers_may_come_in_parts_and_with_run_lengths() {
        let answers = [framed(""), framed("aa"), framed("0* "), framed("OK")];
        // `0* ` stands for four zeroes, which are two bytes, but only one byte was left to read.
        assert!(
            read(&answers)
                .0
                .unwrap_err()
                .contains("cannot read memory at 0x1001")
        );
        let answers = [framed(""), framed("aa"), framed("07"), framed("OK")];
        assert_eq!(read(&answers).0, Ok(vec![0xaa, 0x07]));
        assert_eq!(expanded(b"0* "), "0000");
        assert_eq!(expanded(b"*"), "*");
    }

    #[test]
    fn a_refusal_and_a_stranger_are_told() {
        let (result, heard) = read(&[framed("OK"), framed("E14"), framed("OK")]);
        assert!(result.unwrap_err().contains("it answers `E14`"));
        assert!(heard.ends_with("$D#44+"), "{heard}");
        let bad = ["HTTP/1.1 400 Bad Request\r\n\r\n".to_owned()];
        assert!(
            read(&bad)
                .0
                .unwrap_err()
                .contains("does not answer like a debugger's server")
        );
        assert!(
            read(&["+$OK#00".to_owned()])
                .0
                .unwrap_err()
                .contains("wrong checksum")
        );
    }

    #[test]
    fn nobody_there_is_told_with_what_helps() {
        // Port 1 of this machine: no program listens on a port that needs root.
        let problem = Debugger::connect(":1").unwrap_err().to_string();
        assert!(
            problem.contains("no debugger's server at 127.0.0.1:1"),
            "{problem}"
        );
        assert!(problem.contains("bulkhead run --gdb"), "{problem}");
    }
}
