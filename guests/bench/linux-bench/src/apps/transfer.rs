// SPDX-License-Identifier: Apache-2.0
//! A large file by HTTP, as `curl` fetches it.

use super::{Text, expect, serve};
use crate::linux::File;

const PORT: u16 = 80;
const PIECE: usize = 16 << 10;
const PIECES: usize = 1024;
/// A prime number, so that pieces of the file are unlike each other.
const TURN: usize = 251;

/// Returns the bytes of a piece of the file and some more.
fn pattern() -> [u8; PIECE + TURN] {
    core::array::from_fn(|place| (place % TURN) as u8)
}

fn piece(pattern: &[u8], number: usize) -> &[u8] {
    pattern
        .get(number % TURN..)
        .and_then(|bytes| bytes.get(..PIECE))
        .unwrap_or(&[])
}

/// Reads until an empty line. Returns the bytes.
fn head(connection: File) -> Text<256> {
    let mut head = Text::new(format_args!(""));
    while !head.bytes().ends_with(b"\r\n\r\n") {
        let byte = connection.read();
        let text = Text::<256>::new(format_args!(
            "{}{}",
            core::str::from_utf8(head.bytes()).unwrap_or(""),
            char::from(byte)
        ));
        head = text;
    }
    head
}

fn server(connection: File) {
    let request = head(connection);
    expect(
        request.bytes().starts_with(b"GET /file HTTP/1.1\r\n"),
        "another request",
    );
    let length = PIECE * PIECES;
    let answer = Text::<256>::new(format_args!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    ));
    connection.write_all(answer.bytes());
    let pattern = pattern();
    for number in 0..PIECES {
        connection.write_all(piece(&pattern, number));
    }
}

fn client(connection: File) {
    connection.write_all(b"GET /file HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let answer = head(connection);
    expect(answer.bytes().starts_with(b"HTTP/1.1 200 OK\r\n"), "no file");
    let pattern = pattern();
    let mut bytes = [0; PIECE];
    for number in 0..PIECES {
        expect(connection.read_full(&mut bytes) == PIECE, "the file is cut");
        expect(bytes[..] == *piece(&pattern, number), "the file has other bytes");
    }
    expect(connection.read_some(&mut bytes) == 0, "the file has no end");
}

pub fn measure() {
    serve("transfer", PORT, server, client);
}
