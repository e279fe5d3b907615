// SPDX-License-Identifier: Apache-2.0
//! The emulator's debugging port, as far as a measurement needs it: stop, go on, breakpoints, memory.
//!
//! The remote protocol of GDB: `$text#checksum`, each answered by `+` and a packet of its own. Memory is read by physical address, so
//! what the CPU's protection unit forbids its program does not matter. Time stands still while the machine is stopped.

use crate::problem::Problem;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the emulator may take to listen, and to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Number of xPSR among the registers of an M-profile CPU.
const XPSR: u32 = 25;
const PC: u32 = 15;

/// A stopped or running machine.
pub(super) struct Remote {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Remote {
    /// The machine whose port this is.
    pub(super) fn connect(port: u16) -> Result<Self, Problem> {
        let begun = Instant::now();
        let stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(error) if begun.elapsed() > PATIENCE => return Err(lost(&error)),
                Err(_) => sleep(Duration::from_millis(20)),
            }
        };
        stream
            .set_read_timeout(Some(PATIENCE))
            .map_err(|error| lost(&error))?;
        stream.set_nodelay(true).map_err(|error| lost(&error))?;
        let mut remote = Self {
            stream,
            received: Vec::new(),
        };
        remote.command("?")?;
        // QEMU tells single registers only to somebody who has asked for their description.
        remote.command("qXfer:features:read:target.xml:0,ff")?;
        remote.command("Qqemu.PhyMemMode:1")?;
        Ok(remote)
    }

    /// A word of memory or a register of a device.
    pub(super) fn word(&mut self, address: u32) -> Result<u32, Problem> {
        let answer = self.command(&format!("m{address:x},4"))?;
        little_endian(&answer)
    }

    /// Where the CPU is.
    pub(super) fn program_counter(&mut self) -> Result<u32, Problem> {
        self.register(PC)
    }

    /// The number of the exception that the CPU handles.
    pub(super) fn exception(&mut self) -> Result<u32, Problem> {
        Ok(self.register(XPSR)? & 0x1ff)
    }

    fn register(&mut self, number: u32) -> Result<u32, Problem> {
        let answer = self.command(&format!("p{number:x}"))?;
        little_endian(&answer)
    }

    /// Sets a breakpoint on a Thumb instruction.
    pub(super) fn set(&mut self, address: u32) -> Result<(), Problem> {
        self.command(&format!("Z0,{address:x},2")).map(drop)
    }

    /// Takes it away.
    pub(super) fn clear(&mut self, address: u32) -> Result<(), Problem> {
        self.command(&format!("z0,{address:x},2")).map(drop)
    }

    /// One instruction.
    pub(super) fn step(&mut self) -> Result<(), Problem> {
        self.command("s").map(drop)
    }

    /// Lets it run.
    pub(super) fn resume(&mut self) -> Result<(), Problem> {
        self.send("c")
    }

    /// Stops it wherever it is.
    pub(super) fn interrupt(&mut self) -> Result<(), Problem> {
        self.stream.write_all(&[3]).map_err(|error| lost(&error))?;
        self.stopped()
    }

    /// Waits until it stops.
    pub(super) fn stopped(&mut self) -> Result<(), Problem> {
        self.receive().map(drop)
    }

    fn command(&mut self, text: &str) -> Result<String, Problem> {
        self.send(text)?;
        self.receive()
    }

    fn send(&mut self, text: &str) -> Result<(), Problem> {
        let packet = packet(text);
        self.stream
            .write_all(packet.as_bytes())
            .map_err(|error| lost(&error))
    }

    fn receive(&mut self) -> Result<String, Problem> {
        loop {
            if let Some((text, length)) = unpack(&self.received) {
                self.received.drain(..length);
                self.stream.write_all(b"+").map_err(|error| lost(&error))?;
                return Ok(text);
            }
            let mut buffer = [0; 1024];
            let count = self.stream.read(&mut buffer).map_err(|error| lost(&error))?;
            if count == 0 {
                return Err(Problem::new("the emulator has ended"));
            }
            self.received.extend_from_slice(&buffer[..count]);
        }
    }
}

fn lost(error: &std::io::Error) -> Problem {
    Problem::new(format!("the emulator's debugging port does not answer: {error}"))
}

/// A text with its frame.
fn packet(text: &str) -> String {
    let sum = text.bytes().fold(0_u8, u8::wrapping_add);
    format!("${text}#{sum:02x}")
}

/// The first whole packet, and how many bytes it and what comes before it take.
fn unpack(bytes: &[u8]) -> Option<(String, usize)> {
    let start = bytes.iter().position(|byte| *byte == b'$')?;
    let end = start + bytes[start..].iter().position(|byte| *byte == b'#')?;
    let length = end + 3;
    (bytes.len() >= length).then(|| {
        (
            String::from_utf8_lossy(&bytes[start + 1..end]).into_owned(),
            length,
        )
    })
}

/// A word as the protocol writes memory and registers: bytes in the order of the target.
fn little_endian(text: &str) -> Result<u32, Problem> {
    let value = u32::from_str_radix(text, 16).ok().filter(|_| text.len() == 8);
    let value =
        value.ok_or_else(|| Problem::new(format!("the emulator answers `{text}` instead of a word")))?;
    Ok(value.swap_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_framed_and_found() {
        assert_eq!(packet("m0,4"), "$m0,4#fd");
        assert_eq!(unpack(b"+$OK#9a+$T"), Some(("OK".to_owned(), 7)));
        assert_eq!(unpack(b"+$OK#9"), None);
        assert_eq!(unpack(b"+"), None);
    }

    #[test]
    fn words_are_little_endian() {
        assert_eq!(little_endian("02000000").unwrap(), 2);
        assert!(little_endian("E14").is_err());
        assert!(little_endian("0200").is_err());
    }
}
