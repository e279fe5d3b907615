// SPDX-License-Identifier: Apache-2.0
//! The line from the board, which may deliver anything. The events are the same for any pieces in which the
//! bytes come in. Bytes that are sent to a console arrive at that console.
#![no_main]

// The module is not taken from the host tool's crate, whose other parts take minutes to build with this
// instrumentation.
#[allow(dead_code, reason = "a part of it is used")]
#[path = "../../cli/src/serial/framing.rs"]
mod framing;

use framing::{Demultiplexer, Event, direct};
use libfuzzer_sys::fuzz_target;

/// Returns all events, with the text between two switches in one piece.
fn collect(pieces: &[&[u8]]) -> Vec<(String, Vec<u8>)> {
    let mut seen = vec![(String::new(), Vec::new())];
    let mut demultiplexer = Demultiplexer::default();
    for piece in pieces {
        demultiplexer.feed(piece, |event| match event {
            Event::Switch { console, time } => {
                assert!(!console.is_empty() && !console.chars().any(char::is_control));
                seen.push((format!("{console} {time:?}"), Vec::new()));
            }
            Event::Record(bytes) => seen.push(("record".to_owned(), bytes.to_vec())),
            Event::Text(text) => {
                if let Some((_, all)) = seen.last_mut() {
                    all.extend_from_slice(text);
                }
            }
        });
    }
    seen
}

fuzz_target!(|data: &[u8]| {
    let Some((cut, line)) = data.split_first() else {
        return;
    };
    let (first, rest) = line.split_at(usize::from(*cut).min(line.len()));
    let whole = collect(&[line]);
    assert_eq!(whole, collect(&[first, rest]));
    let length: usize = whole.iter().map(|(_, text)| text.len()).sum();
    assert!(length <= line.len());
    // Text to the board is framed alike: its escapes undo what needed them.
    let mut tagged = b"\x1e[    0.000000] a: \x1f".to_vec();
    let sent = direct("a", line);
    tagged.extend_from_slice(sent.strip_prefix(b"\x1ea\x1f").unwrap_or_default());
    let heard = collect(&[&tagged]);
    assert_eq!(heard.last().map(|(_, text)| text.as_slice()), Some(line));
});
