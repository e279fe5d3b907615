// SPDX-License-Identifier: Apache-2.0
//! Small programs that work like well-known applications of Linux. Each checks its own results, and a wrong
//! one ends the run.

mod database;
mod groups;
mod store;
mod transfer;
mod untar;

use crate::linux::{File, fail, fork, network, now, wait};
use crate::report;

/// Runs all of them.
pub fn measure() {
    network::start();
    untar::measure();
    groups::measure();
    store::measure();
    transfer::measure();
    database::measure();
}

/// Prints how long a piece of work takes.
fn timed(name: &str, work: impl FnOnce()) {
    let begun = now();
    work();
    report(name, now() - begun);
}

/// Starts a server in its own process, which serves one connection, and prints how long the client's work
/// takes.
fn serve(name: &str, port: u16, server: fn(File), client: impl FnOnce(File)) {
    let listener = network::listen(port);
    fork(|| server(network::accept(listener)));
    listener.close();
    let connection = network::connect(port);
    timed(name, || {
        client(connection);
        connection.close();
        wait();
    });
}

/// Ends the run unless something is as it must be.
fn expect(is_right: bool, what: &str) {
    if !is_right {
        fail(format_args!("{what}"));
    }
}

/// Makes bytes that look random and are the same for the same seed.
struct Bytes(u32);

impl Bytes {
    fn new(seed: u32) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9) | 1)
    }

    /// Returns the next 32 random bits (Marsaglia, "Xorshift RNGs", 2003).
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    fn fill(&mut self, into: &mut [u8]) {
        for word in into.chunks_mut(4) {
            let bytes = self.next().to_le_bytes();
            word.copy_from_slice(bytes.get(..word.len()).unwrap_or(&bytes));
        }
    }
}

/// Text that is put together in a buffer.
struct Text<const SIZE: usize> {
    bytes: [u8; SIZE],
    length: usize,
}

impl<const SIZE: usize> Text<SIZE> {
    fn new(text: core::fmt::Arguments<'_>) -> Self {
        let mut new = Self {
            bytes: [0; SIZE],
            length: 0,
        };
        expect(core::fmt::write(&mut new, text).is_ok(), "a text is too long");
        new
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }

    /// Returns the text as a path. The last byte is free, so a zero follows.
    fn path(&self) -> &core::ffi::CStr {
        core::ffi::CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

impl<const SIZE: usize> core::fmt::Write for Text<SIZE> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.length + text.len();
        let room = self.bytes.get_mut(self.length..end).filter(|_| end < SIZE);
        room.ok_or(core::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
