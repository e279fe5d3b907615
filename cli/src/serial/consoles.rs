// SPDX-License-Identifier: Apache-2.0
//! All consoles of a running board: from the bytes of its serial line to lines of text.
//!
//! [`Consoles`] joins the demultiplexer with one line editor per console and tells an [`Observer`] about the
//! lines. `run`, `demo` and the system tests differ in their observers. Their common part, the separation, is
//! here and pure.

use crate::emulator::stall::Stall;
use crate::serial::framing::{Demultiplexer, Event, UNTAGGED, VirtualTime};
use crate::serial::line::LineEditor;
use crate::serial::records::{Records, Said};
use bulkhead_abi::framing::HYPERVISOR_CONSOLE;

/// Consoles that are kept apart. A system has far fewer. A line that carries more names is garbage.
const CONSOLES_MAX: usize = 100;

/// A line, complete or not, of a console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsoleLine<'a> {
    /// The console's name.
    pub console: &'a str,
    /// Time of the tag in front of the line's last bytes.
    pub time: VirtualTime,
    /// The text that a person would see on the line.
    pub text: &'a str,
    /// Column of the cursor, for a line that is not complete.
    pub cursor: usize,
}

/// The requests of an [`Observer`] to the session that it observes.
#[derive(Debug, Default)]
pub struct Control {
    /// End the session.
    pub stop: bool,
    /// Reset the board, keeping its memory.
    pub reset: bool,
    /// Text to type, with the console it goes to.
    pub typed: Vec<(String, Vec<u8>)>,
    /// Stretches of the board's memory to look at: address and bytes.
    pub looks: Vec<(u64, usize)>,
}

/// Sees everything that happens on the consoles.
pub trait Observer {
    /// Takes exact bytes of a console.
    fn bytes(&mut self, console: &str, bytes: &[u8]) {
        let _ = (console, bytes);
    }
    /// Takes a complete line.
    fn line(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        let _ = (line, control);
    }
    /// Takes a line that the end of the session has cut off.
    fn cut(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        self.line(line, control);
    }
    /// Takes the unfinished line of a console, which has changed.
    fn partial(&mut self, line: ConsoleLine<'_>, control: &mut Control) {
        let _ = (line, control);
    }
    /// Notices that nothing has arrived for a moment.
    fn quiet(&mut self, control: &mut Control) {
        let _ = control;
    }
    /// Takes the next stretch of memory that it asked for, or nothing if it cannot be read.
    fn looked(&mut self, bytes: Option<&[u8]>, control: &mut Control) {
        let _ = (bytes, control);
    }
    /// Notices that the board's clock stands still.
    fn stalled(&mut self, stall: &Stall, control: &mut Control) {
        let _ = (stall, control);
    }
}

#[derive(Debug)]
struct Console {
    name: String,
    editor: LineEditor,
    time: VirtualTime,
    /// Bytes that it has printed.
    printed: usize,
}

impl Console {
    /// Returns a line of this console, of the time of its last tag.
    fn line<'l>(&'l self, text: &'l str, cursor: usize) -> ConsoleLine<'l> {
        ConsoleLine {
            console: &self.name,
            time: self.time,
            text,
            cursor,
        }
    }
}

/// The consoles seen so far.
#[derive(Debug)]
pub struct Consoles {
    demultiplexer: Demultiplexer,
    records: Records,
    seen: Seen,
}

/// The consoles, and the one whose text comes.
#[derive(Debug)]
struct Seen {
    list: Vec<Console>,
    current: usize,
    now: VirtualTime,
}

impl Seen {
    /// Makes a console the one whose text comes.
    fn switch(&mut self, console: &str, time: Option<VirtualTime>) {
        self.current = find(&mut self.list, console);
        // A lost or invented tag must not turn the clock back.
        self.now = time.map_or(self.now, |time| time.max(self.now));
        self.list[self.current].time = time.unwrap_or(self.now);
    }

    /// Takes text of the current console.
    fn text(&mut self, bytes: &[u8], observer: &mut dyn Observer, control: &mut Control) {
        let console = &mut self.list[self.current];
        observer.bytes(&console.name, bytes);
        console.printed = console.printed.wrapping_add(bytes.len());
        for &byte in bytes {
            if let Some(text) = console.editor.push(byte) {
                observer.line(console.line(&text, 0), control);
            }
        }
    }

    /// Takes the text of a record.
    fn say(&mut self, said: &Said, observer: &mut dyn Observer, control: &mut Control) {
        match said.time {
            Some(time) => self.switch(said.console, Some(time)),
            None => self.current = find(&mut self.list, said.console),
        }
        self.text(&said.text, observer, control);
    }
}

impl Default for Consoles {
    fn default() -> Self {
        let untagged = Console {
            name: UNTAGGED.to_owned(),
            editor: LineEditor::default(),
            time: VirtualTime::default(),
            printed: 0,
        };
        Self {
            demultiplexer: Demultiplexer::default(),
            records: Records::default(),
            seen: Seen {
                list: vec![untagged],
                current: 0,
                now: VirtualTime::default(),
            },
        }
    }
}

impl Consoles {
    /// Returns the latest time seen on any console.
    #[must_use]
    pub fn now(&self) -> VirtualTime {
        self.seen.now
    }

    /// Returns the bytes that a console has printed so far.
    #[must_use]
    pub fn printed(&self, console: &str) -> usize {
        let mut all = self.seen.list.iter();
        all.find(|one| one.name == console).map_or(0, |one| one.printed)
    }

    /// Takes the bytes that the serial line delivered.
    pub fn feed(&mut self, input: &[u8], observer: &mut dyn Observer, control: &mut Control) {
        let Self {
            demultiplexer,
            records,
            seen,
        } = self;
        demultiplexer.feed(input, |event| match event {
            Event::Switch { console, time } => {
                if console == HYPERVISOR_CONSOLE {
                    let end = records.line_end();
                    end.into_iter()
                        .for_each(|said| seen.say(&said, observer, control));
                }
                seen.switch(console, time);
            }
            Event::Record(bytes) => {
                for said in records.take(bytes) {
                    seen.say(&said, observer, control);
                }
                seen.current = 0;
            }
            Event::Text(bytes) => seen.text(bytes, observer, control),
        });
        for console in &mut self.seen.list {
            if console.editor.take_changed() {
                let text = console.editor.text();
                let cursor = console.editor.cursor();
                observer.partial(console.line(&text, cursor), control);
            }
        }
    }

    /// Ends every unfinished line.
    pub fn finish(&mut self, observer: &mut dyn Observer, control: &mut Control) {
        for console in &mut self.seen.list {
            if let Some(text) = console.editor.finish() {
                observer.cut(console.line(&text, 0), control);
            }
        }
    }
}

fn find(list: &mut Vec<Console>, name: &str) -> usize {
    if let Some(index) = list.iter().position(|console| console.name == name) {
        return index;
    }
    if list.len() == CONSOLES_MAX {
        return 0;
    }
    list.push(Console {
        name: name.to_owned(),
        editor: LineEditor::default(),
        time: VirtualTime::default(),
        printed: 0,
    });
    list.len() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Recorder(Vec<String>);

    impl Observer for Recorder {
        fn line(&mut self, line: ConsoleLine<'_>, _: &mut Control) {
            self.0
                .push(format!("{} {}|{}", line.time.micros, line.console, line.text));
        }
        fn partial(&mut self, line: ConsoleLine<'_>, _: &mut Control) {
            self.0
                .push(format!("{} {}>{}", line.time.micros, line.console, line.text));
        }
    }

    #[test]
    fn lines_survive_switches_in_their_middle() {
        let mut consoles = Consoles::default();
        let mut recorder = Recorder::default();
        let mut control = Control::default();
        consoles.feed(b"\x1e[    0.000001] a: \x1fhel", &mut recorder, &mut control);
        consoles.feed(
            b"\x1e\r\n[    0.000002] b: \x1fx\r\n\x1e[    0.000003] a: \x1flo\r\n~ #",
            &mut recorder,
            &mut control,
        );
        consoles.finish(&mut recorder, &mut control);
        assert_eq!(
            recorder.0,
            ["1 a>hel", "2 b|x", "3 a|hello", "3 a>~ #", "3 a|~ #"]
        );
        assert_eq!(consoles.now().micros, 3);
    }

    #[test]
    fn a_flood_of_names_is_bounded_and_time_never_goes_back() {
        let mut consoles = Consoles::default();
        let mut recorder = Recorder::default();
        let mut control = Control::default();
        for number in 0..1000 {
            let tag = format!("\x1e[    9.{:06}] n{number}: \x1fx\n", 1000 - number);
            consoles.feed(tag.as_bytes(), &mut recorder, &mut control);
        }
        assert_eq!(consoles.seen.list.len(), CONSOLES_MAX);
        assert_eq!(consoles.now().micros, 9_001_000);
        assert_eq!(recorder.0.iter().filter(|line| line.contains("|x")).count(), 1000);
    }
}
