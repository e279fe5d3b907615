// SPDX-License-Identifier: Apache-2.0
//! A store of keys and values over TCP, with the text protocol of `memcached`: `set` and `get`.

use super::{Bytes, Text, expect, serve};
use crate::linux::File;

const PORT: u16 = 11211;
const KEYS: u32 = 500;
const VALUE: usize = 100;
const SLOTS: usize = 1024;
/// Requests besides the first one of each key. One in ten stores.
const REQUESTS: u32 = 1000;
const KEY: usize = 16;

type Key = Text<KEY>;
type Value = [u8; VALUE];
type Name = [u8; KEY];
/// A place of the table, with the name and the value of a key.
type Slot = Option<(Name, Value)>;

/// A line, and the bytes that have come after it.
struct Input {
    connection: File,
    bytes: [u8; 1024],
    from: usize,
    to: usize,
}

impl Input {
    fn new(connection: File) -> Self {
        Self {
            connection,
            bytes: [0; 1024],
            from: 0,
            to: 0,
        }
    }

    /// Reads more. Tells whether there was more.
    fn more(&mut self) -> bool {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        let room = self.bytes.get_mut(self.to..).unwrap_or_default();
        let read = self.connection.read_some(room);
        self.to += read;
        read != 0
    }

    /// Returns the next line, without its end, or nothing at the end of the connection.
    fn line(&mut self) -> Option<Text<64>> {
        loop {
            let unread = self.bytes.get(self.from..self.to).unwrap_or(&[]);
            if let Some(length) = unread.windows(2).position(|end| end == b"\r\n") {
                let text = unread
                    .get(..length)
                    .and_then(|text| core::str::from_utf8(text).ok());
                let line = Text::new(format_args!("{}", text.unwrap_or("?")));
                self.from += length + 2;
                return Some(line);
            }
            if !self.more() {
                return None;
            }
        }
    }

    /// Returns the next value, without the end of its line.
    fn value(&mut self) -> Value {
        while self.to - self.from < VALUE + 2 {
            expect(self.more(), "a value is cut");
        }
        let value = self.bytes.get(self.from..self.from + VALUE);
        self.from += VALUE + 2;
        value
            .and_then(|value| value.try_into().ok())
            .unwrap_or([0; VALUE])
    }
}

/// The values by their keys: a table with open places.
struct Table {
    slots: [Slot; SLOTS],
}

impl Table {
    /// Returns the place of a key, or the free place that the key would have.
    fn place(&mut self, key: &str) -> Option<(&mut Slot, Name)> {
        let name = Key::new(format_args!("{key}")).bytes;
        // FNV-1a.
        let hash = name.iter().fold(0x811C_9DC5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
        let places = (0..SLOTS).map(|step| (hash as usize + step) % SLOTS);
        let is_own = |place: &usize| match self.slots.get(*place) {
            Some(Some((other, _))) => *other == name,
            _ => true,
        };
        let place = places.into_iter().find(is_own)?;
        self.slots.get_mut(place).map(|slot| (slot, name))
    }
}

fn server(connection: File) {
    let mut table = Table {
        slots: [const { None }; SLOTS],
    };
    let mut input = Input::new(connection);
    while let Some(line) = input.line() {
        let mut words = core::str::from_utf8(line.bytes()).unwrap_or("").split(' ');
        let (verb, key) = (words.next(), words.next().unwrap_or(""));
        let place = table.place(key);
        match (verb, place) {
            (Some("set"), Some((slot, name))) => {
                *slot = Some((name, input.value()));
                connection.write_all(b"STORED\r\n");
            }
            (Some("get"), Some((Some((_, value)), _))) => {
                let head = Text::<64>::new(format_args!("VALUE {key} 0 {VALUE}\r\n"));
                let mut answer = [0; 64 + VALUE + 7];
                let parts = [head.bytes(), &value[..], b"\r\nEND\r\n"];
                connection.write_all(joined(&parts, &mut answer));
            }
            _ => connection.write_all(b"ERROR\r\n"),
        }
    }
}

/// Puts parts into a buffer, one after the other.
fn joined<'b>(parts: &[&[u8]], buffer: &'b mut [u8]) -> &'b [u8] {
    let mut length = 0;
    for part in parts {
        if let Some(place) = buffer.get_mut(length..length + part.len()) {
            place.copy_from_slice(part);
            length += part.len();
        }
    }
    buffer.get(..length).unwrap_or(&[])
}

/// Returns a value that no other key has, nor the same key in another round.
fn value(key: u32, round: u32) -> Value {
    let mut value = [0; VALUE];
    Bytes::new(key << 16 | round).fill(&mut value);
    value
}

fn set(input: &mut Input, key: u32, round: u32) {
    let head = Text::<64>::new(format_args!("set key-{key} 0 0 {VALUE}\r\n"));
    let mut request = [0; 64 + VALUE + 2];
    let parts = [head.bytes(), &value(key, round)[..], b"\r\n"];
    input.connection.write_all(joined(&parts, &mut request));
    let answer = input.line();
    expect(
        answer.is_some_and(|line| line.bytes() == b"STORED"),
        "a value is not stored",
    );
}

fn get(input: &mut Input, key: u32, round: u32) {
    input
        .connection
        .write_all(Text::<64>::new(format_args!("get key-{key}\r\n")).bytes());
    let head = input.line();
    expect(
        head.is_some_and(|line| line.bytes().starts_with(b"VALUE key-")),
        "a key has no value",
    );
    expect(input.value() == value(key, round), "a key has another's value");
    expect(
        input.line().is_some_and(|line| line.bytes() == b"END"),
        "an answer has no end",
    );
}

fn client(connection: File) {
    let mut input = Input::new(connection);
    let mut rounds = [0_u32; KEYS as usize];
    for key in 0..KEYS {
        set(&mut input, key, 0);
    }
    let mut random = Bytes::new(1);
    for request in 0..REQUESTS {
        let key = random.next() % KEYS;
        let Some(round) = rounds.get_mut(key as usize) else {
            continue;
        };
        if request % 10 == 0 {
            *round += 1;
            set(&mut input, key, *round);
        } else {
            get(&mut input, key, *round);
        }
    }
}

pub fn measure() {
    serve("store", PORT, server, client);
}
