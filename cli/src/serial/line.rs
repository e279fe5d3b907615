// SPDX-License-Identifier: Apache-2.0
//! One line of a console as a person sees it.
//!
//! Shells edit their prompt with backspaces, carriage returns and a few control sequences. Since the lines of
//! several consoles share one screen, these sequences must not reach the terminal. A [`LineEditor`] carries
//! them out on a line of its own. The result is plain text and a cursor column. Patterns are matched against
//! this text, so a match never depends on how a line was drawn.
//!
//! A character that is no ASCII and that would change how a terminal shows others (a control byte of C1, a
//! separator of lines, a change of the direction of text) is shown by its number, such as `\u{202e}`.
//!
//! Only sequences that act within a line are carried out (CR, BS, TAB, and CSI C, D, G, K, J, P, @). Colours,
//! queries and everything about other lines are dropped. The exact bytes are in the log files.

/// Columns after which a line is broken. The limit bounds the memory that a console can take.
const COLUMNS_MAX: usize = 4096;
/// Bytes after which a control sequence is given up.
const SEQUENCE_MAX: usize = 64;

/// Tells whether a terminal that gets this character may show others elsewhere or in another order: a
/// control character, a separator of lines or paragraphs, or a change of direction (Unicode 16, UAX #9).
#[must_use]
pub fn changes_others(char: char) -> bool {
    let is_separator = matches!(char, '\u{2028}' | '\u{2029}');
    let is_direction = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    char.is_control() || is_separator || is_direction
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    Control,
    /// An operating-system command or the like, up to BEL or ESC.
    Command,
}

/// The line a console is writing.
#[derive(Debug)]
pub struct LineEditor {
    cells: Vec<char>,
    cursor: usize,
    state: State,
    sequence: Vec<u8>,
    partial_char: Vec<u8>,
    changed: bool,
}

impl Default for LineEditor {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            cursor: 0,
            state: State::Ground,
            sequence: Vec::new(),
            partial_char: Vec::new(),
            changed: false,
        }
    }
}

impl LineEditor {
    /// Takes one byte. Returns `Some(text)` when the byte ended the line.
    pub fn push(&mut self, byte: u8) -> Option<String> {
        match self.state {
            State::Ground => return self.ground(byte),
            State::Escape => {
                self.sequence.clear();
                self.state = match byte {
                    b'[' => State::Control,
                    b']' | b'P' | b'_' | b'^' | b'X' => State::Command,
                    _ => State::Ground,
                };
            }
            State::Control => match byte {
                0x40..=0x7E => {
                    self.control(byte);
                    self.state = State::Ground;
                }
                0x20..=0x3F if self.sequence.len() < SEQUENCE_MAX => self.sequence.push(byte),
                _ => self.state = State::Ground,
            },
            State::Command => {
                self.sequence.push(byte);
                if byte == 0x07 || byte == 0x1B || byte == b'\n' || self.sequence.len() == SEQUENCE_MAX {
                    self.state = if byte == 0x1B {
                        State::Escape
                    } else {
                        State::Ground
                    };
                }
            }
        }
        None
    }

    /// Returns the unfinished line.
    #[must_use]
    pub fn text(&self) -> String {
        self.cells.iter().collect()
    }

    /// Returns the column of the cursor in the unfinished line.
    #[must_use]
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Tells whether the unfinished line is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Tells whether the unfinished line changed since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Ends the line as it is. Returns `None` if the line is empty.
    pub fn finish(&mut self) -> Option<String> {
        let line = (!self.cells.is_empty()).then(|| self.text());
        self.cells.clear();
        self.cursor = 0;
        self.changed = false;
        line
    }

    fn ground(&mut self, byte: u8) -> Option<String> {
        match byte {
            b'\n' => return Some(self.finish().unwrap_or_default()),
            b'\r' => self.cursor = 0,
            0x08 => self.cursor = self.cursor.saturating_sub(1),
            b'\t' => {
                for _ in 0..8 - self.cursor % 8 {
                    self.put(' ');
                }
            }
            0x1B => self.state = State::Escape,
            0x00..=0x1F | 0x7F => {}
            0x20..=0x7E => self.put(char::from(byte)),
            _ => self.multi_byte(byte),
        }
        self.changed = true;
        if self.cells.len() >= COLUMNS_MAX {
            self.finish()
        } else {
            None
        }
    }

    /// Collects a UTF-8 sequence. An invalid sequence becomes the replacement character.
    fn multi_byte(&mut self, byte: u8) {
        self.partial_char.push(byte);
        match std::str::from_utf8(&self.partial_char) {
            Ok(text) => {
                if let Some(char) = text.chars().next() {
                    self.put(char);
                }
                self.partial_char.clear();
            }
            Err(error) if error.error_len().is_none() && self.partial_char.len() < 4 => {}
            Err(_) => {
                self.put(char::REPLACEMENT_CHARACTER);
                self.partial_char.clear();
            }
        }
    }

    fn put(&mut self, char: char) {
        if changes_others(char) {
            return char.escape_unicode().for_each(|shown| self.put(shown));
        }
        while self.cells.len() <= self.cursor {
            self.cells.push(' ');
        }
        self.cells[self.cursor] = char;
        self.cursor += 1;
    }

    fn control(&mut self, action: u8) {
        let first = std::str::from_utf8(&self.sequence)
            .unwrap_or("")
            .split(';')
            .next()
            .unwrap_or("");
        let number: Option<usize> = first.parse().ok().filter(|&number| number < COLUMNS_MAX);
        let count = number.unwrap_or(1).max(1);
        match action {
            b'C' => self.cursor = (self.cursor + count).min(COLUMNS_MAX - 1),
            b'D' => self.cursor = self.cursor.saturating_sub(count),
            b'G' => self.cursor = count - 1,
            b'K' | b'J' => match number.unwrap_or(0) {
                0 => self.cells.truncate(self.cursor),
                1 => {
                    let end = self.cells.len().min(self.cursor + 1);
                    self.cells[..end].fill(' ');
                }
                _ => self.cells.clear(),
            },
            b'P' => {
                let end = self.cells.len().min(self.cursor + count);
                self.cells.drain(self.cursor.min(end)..end);
            }
            b'@' if self.cursor < self.cells.len() => {
                let room = COLUMNS_MAX.saturating_sub(self.cells.len());
                let at = self.cursor;
                self.cells
                    .splice(at..at, std::iter::repeat_n(' ', count.min(room)));
            }
            _ => {}
        }
        self.changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8]) -> (Vec<String>, String, usize) {
        let mut editor = LineEditor::default();
        let done = input.iter().filter_map(|&byte| editor.push(byte)).collect();
        (done, editor.text(), editor.cursor())
    }

    #[test]
    fn lines_end_at_line_feed_and_carriage_return_goes_back() {
        let (done, rest, cursor) = lines(b"one\r\ntwo\rT\n\nab");
        assert_eq!(done, ["one", "Two", ""]);
        assert_eq!((rest.as_str(), cursor), ("ab", 2));
    }

    #[test]
    fn a_shell_edits_its_prompt() {
        // busybox ash: query of the cursor, typed "lx", backspace, "s".
        let (done, rest, cursor) = lines(b"~ # \x1b[6nlx\x08\x1b[Js");
        assert!(done.is_empty());
        assert_eq!((rest.as_str(), cursor), ("~ # ls", 6));
        assert_eq!(lines(b"abc\x1b[2D\x1b[P").1, "ac");
        assert_eq!(lines(b"abc\x1b[2G\x1b[@").1, "a bc");
        assert_eq!(lines(b"abc\r\x1b[2K").1, "");
        assert_eq!(lines(b"abc\x08\x1b[1K").1, "   ");
        assert_eq!(lines(b"a\x1b[2Cb").1, "a  b");
    }

    #[test]
    fn colours_titles_and_control_bytes_are_dropped() {
        assert_eq!(lines(b"\x1b[1;31mred\x1b[0m\x1b]0;title\x07\x07!").1, "red!");
        assert_eq!(lines(b"a\tb").1, "a       b");
    }

    #[test]
    fn text_is_utf8_and_what_is_not_is_replaced() {
        assert_eq!(lines("grüße".as_bytes()).1, "grüße");
        assert_eq!(lines(b"a\xffb\xc3").1, "a\u{fffd}b");
    }

    #[test]
    fn a_character_that_changes_others_is_shown_by_its_number() {
        assert_eq!(lines(b"\xc2\x9b2K").1, r"\u{9b}2K");
        assert_eq!(lines("a\u{85}b".as_bytes()).1, r"a\u{85}b");
        let separators = lines("a\u{2028}b\u{2029}c".as_bytes());
        assert_eq!(separators.1, r"a\u{2028}b\u{2029}c");
        for direction in [
            '\u{61c}', '\u{200e}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}',
        ] {
            let (_, text, cursor) = lines(format!("{direction}x").as_bytes());
            assert_eq!(text, format!("{}x", direction.escape_unicode()));
            assert_eq!(cursor, text.len());
        }
        assert_eq!(
            lines("\u{2027}\u{202f}\u{200d}é".as_bytes()).1,
            "\u{2027}\u{202f}\u{200d}é"
        );
    }

    #[test]
    fn an_endless_line_is_broken() {
        let (done, rest, _) = lines(&vec![b'x'; COLUMNS_MAX + 5]);
        assert_eq!(done[0].len(), COLUMNS_MAX);
        assert_eq!(rest, "xxxxx");
    }

    #[test]
    fn no_input_makes_it_panic_or_grow() {
        let mut seed = 99_u32;
        let mut editor = LineEditor::default();
        for round in 0..200_000_u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let byte = match round % 5 {
                0 => 0x1B,
                1 => b'[',
                2 => b"0123456789;"[(seed >> 24) as usize % 11],
                3 => b"CDGKJP@m"[(seed >> 24) as usize % 8],
                _ => (seed >> 24) as u8,
            };
            let _ = editor.push(byte);
            assert!(editor.cells.len() <= 2 * COLUMNS_MAX);
        }
    }
}
