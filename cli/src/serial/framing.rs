// SPDX-License-Identifier: Apache-2.0
//! Takes the consoles of one serial line apart again.
//!
//! The hypervisor starts every line, and every switch of console within a line, with the tag that
//! [`bulkhead_abi::framing`] defines. [`Demultiplexer`] is fed with the bytes of the line, in pieces of any
//! size. It says which bytes belong to which console, and tells the time. The demultiplexer holds no text,
//! only the tag that it is reading, so its memory is bounded for any input.
//!
//! The line is not trusted: bytes may be lost, and a hypervisor under test may send anything. A tag that is
//! too long or unreadable directs the text after it to the console [`UNTAGGED`], where the text is still
//! seen. The next good tag ends that. Text before the first tag (firmware) is [`UNTAGGED`], too.

use bulkhead_abi::framing::{DLE, ESCAPE_MASK, HYPERVISOR_CONSOLE, RS, US, needs_escape};
use bulkhead_abi::log::record::{RECORD, RECORD_MAX};

/// Name of the console that text without a readable tag belongs to. No partition can have it.
pub const UNTAGGED: &str = "-";

/// Longest tag: a 20-digit time and a 31-byte name fit with room to spare.
const TAG_MAX: usize = 96;

/// Virtual time since the board's power-on, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct VirtualTime {
    /// Microseconds since power-on.
    pub micros: u64,
}

impl VirtualTime {
    /// Returns the time of this many whole seconds.
    #[must_use]
    pub const fn from_seconds(seconds: u64) -> Self {
        Self {
            micros: seconds.saturating_mul(1_000_000),
        }
    }
}

impl std::fmt::Display for VirtualTime {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{}.{:06}", self.micros / 1_000_000, self.micros % 1_000_000);
        out.pad_integral(true, "", &text)
    }
}

/// A thing that the line delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The bytes that follow belong to this console.
    Switch {
        /// Its name.
        console: &'a str,
        /// The time at which the hypervisor wrote the tag. `None` for [`UNTAGGED`], and for last words of a
        /// backend that has lost its clock.
        time: Option<VirtualTime>,
    },
    /// A record of the hypervisor's log, whole or damaged: the bytes between RS and US, without the line end
    /// at their begin. No console is current after it.
    Record(&'a [u8]),
    /// Bytes of the current console.
    Text(&'a [u8]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    Escape,
    Tag,
}

/// The state between two pieces of input.
#[derive(Debug)]
pub struct Demultiplexer {
    state: State,
    tag: Vec<u8>,
    /// The console whose text comes, and whether its line has no end yet.
    current: (String, bool),
}

impl Default for Demultiplexer {
    fn default() -> Self {
        Self {
            state: State::Text,
            tag: Vec::with_capacity(TAG_MAX),
            current: (UNTAGGED.to_owned(), false),
        }
    }
}

impl Demultiplexer {
    /// Takes `input` apart and hands each [`Event`] to `sink`, in order. Text that arrives before the
    /// first `Switch` belongs to [`UNTAGGED`].
    pub fn feed(&mut self, input: &[u8], mut sink: impl FnMut(Event<'_>)) {
        let mut text = Vec::with_capacity(input.len());
        for &byte in input {
            match (self.state, byte) {
                (_, RS) => {
                    self.flush(&mut text, &mut sink);
                    // A record that another tag interrupts is a damaged one.
                    if let (State::Tag, Some(bytes)) = (self.state, record(&self.tag)) {
                        sink(Event::Record(bytes));
                    }
                    self.tag.clear();
                    self.state = State::Tag;
                }
                (State::Text, DLE) => self.state = State::Escape,
                (State::Text, _) => text.push(byte),
                (State::Escape, _) => {
                    text.push(byte ^ ESCAPE_MASK);
                    self.state = State::Text;
                }
                (State::Tag, US) if record(&self.tag).is_some() => {
                    sink(Event::Record(record(&self.tag).unwrap_or_default()));
                    self.current = (UNTAGGED.to_owned(), false);
                    self.state = State::Text;
                }
                (State::Tag, US) => {
                    let event = read_tag(&self.tag).unwrap_or(LOST);
                    // Last words come in the place of the rest of a line: a crash does not wait for its end.
                    if let (Event::Switch { console, .. }, (current, true)) = (event, &self.current)
                        && console == current
                        && self.tag.starts_with(LINE_END)
                    {
                        sink(Event::Text(LINE_END));
                    }
                    if let Event::Switch { console, .. } = event {
                        self.current = (console.to_owned(), false);
                    }
                    sink(event);
                    self.state = State::Text;
                }
                (State::Tag, _) if self.tag.len() == longest(&self.tag) => {
                    // This was never a tag of the hypervisor's. Show the bytes instead of swallowing them.
                    sink(LOST);
                    text.extend_from_slice(&self.tag);
                    text.push(byte);
                    self.state = State::Text;
                }
                (State::Tag, _) => self.tag.push(byte),
            }
        }
        self.flush(&mut text, &mut sink);
    }

    fn flush(&mut self, text: &mut Vec<u8>, sink: &mut impl FnMut(Event<'_>)) {
        if let Some(last) = text.last() {
            let (_, is_open) = &mut self.current;
            *is_open = *last != b'\n';
            sink(Event::Text(text));
            text.clear();
        }
    }
}

/// The beginning of a tag that breaks a line.
const LINE_END: &[u8] = b"\r\n";

/// Returns the bytes of a record, if a tag is one.
fn record(tag: &[u8]) -> Option<&[u8]> {
    let tag = tag.strip_prefix(LINE_END).unwrap_or(tag);
    tag.starts_with(&[RECORD]).then_some(tag)
}

/// Returns the length at which a tag with this begin is given up.
fn longest(tag: &[u8]) -> usize {
    match record(tag) {
        Some(_) => RECORD_MAX + LINE_END.len(),
        None => TAG_MAX,
    }
}

const LOST: Event<'static> = Event::Switch {
    console: UNTAGGED,
    time: None,
};

/// Reads `["\r\n"] "[" seconds "." microseconds "] " name ": "`. Only the hypervisor's own name may be
/// without a time.
fn read_tag(tag: &[u8]) -> Option<Event<'_>> {
    let tag = std::str::from_utf8(tag).ok()?;
    let tag = tag.strip_prefix("\r\n").unwrap_or(tag);
    if tag.strip_suffix(": ") == Some(HYPERVISOR_CONSOLE) {
        return Some(Event::Switch {
            console: HYPERVISOR_CONSOLE,
            time: None,
        });
    }
    let (time, name) = tag.strip_prefix('[')?.split_once("] ")?;
    let console = name.strip_suffix(": ")?;
    let (seconds, micros) = time.trim_start().split_once('.')?;
    let fraction: u64 = if micros.len() == 6 {
        micros.parse().ok()?
    } else {
        return None;
    };
    let micros = seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000)?
        .checked_add(fraction)?;
    if console.is_empty() || console == UNTAGGED || console.chars().any(char::is_control) {
        return None;
    }
    Some(Event::Switch {
        console,
        time: Some(VirtualTime { micros }),
    })
}

/// Returns the bytes to send to the board so that `text` reaches `console`.
#[must_use]
pub fn direct(console: &str, text: &[u8]) -> Vec<u8> {
    let mut out = vec![RS];
    out.extend_from_slice(console.as_bytes());
    out.push(US);
    for &byte in text {
        if needs_escape(byte) {
            out.extend_from_slice(&[DLE, byte ^ ESCAPE_MASK]);
        } else {
            out.push(byte);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_end_the_line_that_they_come_into() {
        let said = |before: &str| {
            let line =
                format!("\x1e[0.000001] bulkhead: \x1f{before}\x1e\r\n[0.000002] bulkhead: \x1fend\r\n");
            let parts: Vec<_> = collect(&[line.as_bytes()])
                .into_iter()
                .map(|(_, _, text)| String::from_utf8(text).unwrap())
                .collect();
            parts.concat()
        };
        assert_eq!(said("partition a: ru"), "partition a: ru\r\nend\r\n");
        assert_eq!(
            said("partition a: running\r\n"),
            "partition a: running\r\nend\r\n"
        );
    }

    #[test]
    fn a_line_goes_on_after_the_line_of_another_console() {
        let line = "\x1e[0.000001] a: \x1fhal\x1e\r\n[0.000002] b: \x1fx\r\n\x1e[0.000003] a: \x1ff\r\n";
        let of_a: Vec<_> = collect(&[line.as_bytes()])
            .into_iter()
            .filter(|(console, _, _)| console == "a")
            .flat_map(|(_, _, text)| text)
            .collect();
        assert_eq!(of_a, b"half\r\n");
    }

    fn collect(pieces: &[&[u8]]) -> Vec<(String, Option<u64>, Vec<u8>)> {
        let mut demultiplexer = Demultiplexer::default();
        let mut seen: Vec<(String, Option<u64>, Vec<u8>)> = Vec::new();
        for piece in pieces {
            demultiplexer.feed(piece, |event| match event {
                Event::Switch { console, time } => {
                    seen.push((console.to_owned(), time.map(|time| time.micros), Vec::new()));
                }
                Event::Record(bytes) => seen.push(("record".to_owned(), None, bytes.to_vec())),
                Event::Text(text) => match seen.last_mut() {
                    Some(last) => last.2.extend_from_slice(text),
                    None => seen.push((UNTAGGED.to_owned(), None, text.to_vec())),
                },
            });
        }
        seen
    }

    #[test]
    fn separates_lines_and_mid_line_switches() {
        let line =
            b"firmware\r\n\x1e[    0.000412] bulkhead: \x1fhello\r\n\x1e[    1.500000] linux: \x1f~ # \
                     \x1e\r\n[    1.500001] control: \x1ftick\r\n\x1e[    1.500002] linux: \x1fls";
        let seen = collect(&[line]);
        let texts: Vec<(&str, Option<u64>, &[u8])> = seen
            .iter()
            .map(|(name, time, text)| (name.as_str(), *time, text.as_slice()))
            .collect();
        assert_eq!(
            texts,
            [
                ("-", None, b"firmware\r\n".as_slice()),
                ("bulkhead", Some(412), b"hello\r\n"),
                ("linux", Some(1_500_000), b"~ # "),
                ("control", Some(1_500_001), b"tick\r\n"),
                ("linux", Some(1_500_002), b"ls"),
            ]
        );
    }

    #[test]
    fn pieces_of_any_size_give_the_same_result() {
        let line = b"\x1e[    1.000001] a: \x1fx\x10\x5ey\r\n\x1e\r\n[    2.000000] b: \x1fz\x10\x50";
        let whole = collect(&[line]);
        for cut in 0..line.len() {
            assert_eq!(collect(&[&line[..cut], &line[cut..]]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = line.chunks(1).collect();
        assert_eq!(collect(&bytes), whole);
        assert_eq!(whole[0].2, b"x\x1ey\r\n");
        assert_eq!(whole[1].2, b"z\x10");
    }

    #[test]
    fn a_bad_tag_costs_only_the_text_up_to_the_next() {
        for bad in [
            b"nonsense".as_slice(),
            b"",
            b"[1.5] a: ",
            b"[99999999999999999999.000000] a: ",
            b"[18446744073709551615.000000] a: ",
            b"[    1.000000] : ",
            b"[    1.000000] a\x07: ",
            b"[    1.000000] -: ",
            b"\xff\xfe",
        ] {
            let mut line = b"\x1e".to_vec();
            line.extend_from_slice(bad);
            line.extend_from_slice(b"\x1flost\x1e[    3.000000] a: \x1fkept");
            let seen = collect(&[&line]);
            assert_eq!(seen[0], (UNTAGGED.to_owned(), None, b"lost".to_vec()), "{bad:?}");
            assert_eq!(
                seen[1],
                ("a".to_owned(), Some(3_000_000), b"kept".to_vec()),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn last_words_of_the_hypervisor_have_no_time() {
        let seen = collect(&[
            b"\x1e[    1.500000] linux: \x1f~ # \x1e\r\nbulkhead: \x1fLOCKDOWN: x\r\n\x1elinux: \x1fy",
        ]);
        assert_eq!(
            seen[1],
            ("bulkhead".to_owned(), None, b"LOCKDOWN: x\r\n".to_vec())
        );
        assert_eq!(seen[2], (UNTAGGED.to_owned(), None, b"y".to_vec()));
    }

    #[test]
    fn an_endless_tag_becomes_text() {
        let mut line = vec![RS];
        line.extend(std::iter::repeat_n(b'x', 300));
        let seen = collect(&[&line]);
        assert_eq!(seen, [(UNTAGGED.to_owned(), None, vec![b'x'; 300])]);
    }

    #[test]
    fn records_are_whole_or_end_at_the_next_tag() {
        let line = b"\x1e[0.000001] a: \x1fhal\x1e\r\n=0 1 2 3\r\n\x1f\x1e=1 4\x1e[0.000002] a: \x1ff\r\n";
        let parts: Vec<_> = collect(&[line])
            .into_iter()
            .map(|(name, _, text)| (name, text))
            .collect();
        let expected = [
            ("a", &b"hal"[..]),
            ("record", b"=0 1 2 3\r\n"),
            ("record", b"=1 4"),
            ("a", b"f\r\n"),
        ];
        let expected = expected.map(|(name, text)| (name.to_owned(), text.to_vec()));
        assert_eq!(parts, expected);
        // A partition cannot begin a record: its RS is escaped.
        let forged = [
            b"\x1e[0.000001] a: \x1f".as_slice(),
            &direct("a", b"\x1e=0 1 2\r\n\x1f")[3..],
        ]
        .concat();
        assert_eq!(collect(&[&forged])[0].2, b"\x1e=0 1 2\r\n\x1f");
    }

    #[test]
    fn random_bytes_lose_nothing_but_tags() {
        // A fixed linear congruential sequence makes the input. The code must digest any input.
        let mut seed = 12_345_u32;
        let noise: Vec<u8> = (0..200_000)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            })
            .collect();
        let mut text = 0;
        Demultiplexer::default().feed(&noise, |event| {
            if let Event::Text(bytes) = event {
                text += bytes.len();
            }
        });
        assert!(text > 0 && text <= noise.len());
    }

    #[test]
    fn input_is_directed_and_escaped() {
        assert_eq!(
            direct("linux", b"a\x1e\x10\n"),
            b"\x1elinux\x1fa\x10\x5e\x10\x50\n"
        );
    }

    #[test]
    fn time_pads() {
        assert_eq!(
            format!("{:>12}", VirtualTime { micros: 3_000_042 }),
            "    3.000042"
        );
    }
}
