// SPDX-License-Identifier: Apache-2.0
//! The emulator's debugging port, as far as a measurement needs it: stop, go on, breakpoints, registers.
//!
//! Memory is read by physical address, so the CPU's protection unit does not stand in the way. Time stands
//! still while the machine is stopped.

use bulkhead::emulator::debugger::{Debugger, decode};
use bulkhead::problem::Problem;
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time that the emulator may take to listen, and to stop.
const PATIENCE: Duration = Duration::from_secs(30);

/// Number of the PC among the registers of an M-profile CPU.
const PC: u32 = 15;

/// A stopped or running machine.
pub(super) struct Remote(Debugger<TcpStream>);

impl Remote {
    /// Connects to the machine with this port.
    pub(super) fn connect(port: u16) -> Result<Self, Problem> {
        let begun = Instant::now();
        let mut debugger = loop {
            match Debugger::connect(&port.to_string()) {
                Ok(debugger) => break debugger,
                Err(problem) if begun.elapsed() > PATIENCE => return Err(problem),
                Err(_) => sleep(Duration::from_millis(20)),
            }
        };
        debugger.wait_for(PATIENCE)?;
        // QEMU gives single registers only to a client that has asked for their description.
        debugger.ask("qXfer:features:read:target.xml:0,ff")?;
        Ok(Self(debugger))
    }

    /// Reads a word of memory or a register of a device.
    pub(super) fn word(&mut self, address: u32) -> Result<u32, Problem> {
        let bytes = self.0.memory(address.into(), 4)?;
        word(&bytes).ok_or_else(|| Problem::new("the emulator answers with less than a word"))
    }

    /// Returns the address at which the CPU is.
    pub(super) fn program_counter(&mut self) -> Result<u32, Problem> {
        self.register(PC)
    }

    fn register(&mut self, number: u32) -> Result<u32, Problem> {
        let answer = self.0.ask(&format!("p{number:x}"))?;
        let value = decode(&answer).as_deref().and_then(word);
        value.ok_or_else(|| Problem::new(format!("the emulator answers `{answer}` instead of a register")))
    }

    /// Sets a breakpoint on a Thumb instruction.
    pub(super) fn set(&mut self, address: u32) -> Result<(), Problem> {
        self.0.ask(&format!("Z0,{address:x},2")).map(drop)
    }

    /// Takes a breakpoint away.
    pub(super) fn clear(&mut self, address: u32) -> Result<(), Problem> {
        self.0.ask(&format!("z0,{address:x},2")).map(drop)
    }

    /// Sends a command to the emulator's monitor.
    pub(super) fn tell(&mut self, command: &str) -> Result<(), Problem> {
        let digits: String = command.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.0.ask(&format!("qRcmd,{digits}")).map(drop)
    }

    /// Lets the machine run.
    pub(super) fn resume(&mut self) -> Result<(), Problem> {
        self.0.send("c")
    }

    /// Stops the machine wherever it is.
    pub(super) fn interrupt(&mut self) -> Result<(), Problem> {
        self.0.interrupt()?;
        self.stopped()
    }

    /// Waits until the machine stops.
    pub(super) fn stopped(&mut self) -> Result<(), Problem> {
        self.0.packet().map(drop)
    }
}

/// Returns the word that the target has in memory as these bytes, or `None` if they are no word.
fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_little_endian() {
        let read = |text: &str| decode(text).as_deref().and_then(word);
        assert_eq!(read("02000000"), Some(2));
        assert_eq!(read("E14"), None);
        assert_eq!(read("0200"), None);
    }
}
