// SPDX-License-Identifier: Apache-2.0
//! The lines of all consoles on one screen.
//!
//! Each line is `time name | text`, names aligned, one stable colour per console. On a live terminal the
//! bottom line is the unfinished line of the console that has the keyboard. Finished lines scroll by above
//! it. Elsewhere an unfinished line (a prompt) is printed once its console has been quiet for a moment, and
//! again only when it is complete, if it is another one by then.

use crate::serial::consoles::ConsoleLine;
use crate::serial::framing::VirtualTime;
use bulkhead_abi::framing::HYPERVISOR_CONSOLE;
use std::io::{self, Write};

/// Colours that read well on dark and on light ground, in order of assignment.
const COLOURS: &[u8] = &[36, 32, 33, 35, 34, 96, 92, 93, 95, 94];

/// The abilities of the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// Colours may be used.
    pub colour: bool,
    /// Columns of a terminal that keeps the console with the keyboard on its bottom line; `None` without such
    /// a line.
    pub live: Option<usize>,
}

/// Writes lines of consoles to a stream.
#[derive(Debug)]
pub struct Screen<W: Write> {
    out: W,
    look: Look,
    names: Vec<String>,
    width: usize,
    /// Unfinished lines: text, cursor, time, and the text that is printed already.
    partials: Vec<Option<Partial>>,
    focus: Option<usize>,
    bottom_shown: bool,
}

#[derive(Debug, Clone)]
struct Partial {
    text: String,
    cursor: usize,
    time: VirtualTime,
    printed: Option<String>,
}

impl<W: Write> Screen<W> {
    /// Makes a screen for these consoles. Other consoles may turn up later.
    pub fn new(out: W, look: Look, names: &[String]) -> Self {
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        Self {
            out,
            look,
            names: names.to_vec(),
            width: width.max(HYPERVISOR_CONSOLE.len()),
            partials: vec![None; names.len()],
            focus: None,
            bottom_shown: false,
        }
    }

    /// Gives the keyboard to a console.
    ///
    /// # Errors
    /// The stream's.
    pub fn focus(&mut self, name: &str) -> io::Result<()> {
        self.focus = Some(self.index(name));
        self.show_bottom()
    }

    /// Shows a complete line.
    ///
    /// # Errors
    /// The stream's.
    pub fn line(&mut self, line: ConsoleLine<'_>) -> io::Result<()> {
        let index = self.index(line.console);
        let printed = self.partials[index].take();
        if printed.is_some_and(|partial| partial.printed.as_deref() == Some(line.text)) {
            return Ok(());
        }
        self.hide_bottom()?;
        self.write_line(index, line.time, line.text)?;
        self.show_bottom()
    }

    /// Notes the unfinished line of a console.
    ///
    /// # Errors
    /// The errors of the stream.
    pub fn partial(&mut self, line: ConsoleLine<'_>) -> io::Result<()> {
        let index = self.index(line.console);
        // Printed text cannot be taken back. Its later states would be a heap of pieces.
        let printed = self.partials[index].take().and_then(|partial| partial.printed);
        let partial = Partial {
            text: line.text.to_owned(),
            cursor: line.cursor,
            time: line.time,
            printed,
        };
        self.partials[index] = Some(partial);
        if self.focus == Some(index) {
            self.show_bottom()
        } else {
            Ok(())
        }
    }

    /// Shows the unfinished lines that are not shown yet: the consoles have been quiet for a moment.
    ///
    /// # Errors
    /// The errors of the stream.
    pub fn quiet(&mut self) -> io::Result<()> {
        if self.look.live.is_none() {
            for index in 0..self.partials.len() {
                let Some(partial) = &mut self.partials[index] else {
                    continue;
                };
                if partial.printed.is_none() && !partial.text.trim().is_empty() {
                    partial.printed = Some(partial.text.clone());
                    let partial = partial.clone();
                    self.write_line(index, partial.time, &partial.text)?;
                }
            }
        }
        self.out.flush()
    }

    /// Shows a remark of the tool itself.
    ///
    /// # Errors
    /// The stream's.
    pub fn remark(&mut self, text: &str) -> io::Result<()> {
        self.hide_bottom()?;
        for line in text.lines() {
            if self.look.colour {
                writeln!(self.out, "\x1b[2m{line}\x1b[0m")?;
            } else {
                writeln!(self.out, "{line}")?;
            }
        }
        self.show_bottom()
    }

    /// Leaves the bottom line.
    ///
    /// # Errors
    /// The stream's.
    pub fn close(&mut self) -> io::Result<()> {
        self.hide_bottom()?;
        self.look.live = None;
        self.out.flush()
    }

    fn index(&mut self, name: &str) -> usize {
        if let Some(index) = self.names.iter().position(|known| known == name) {
            return index;
        }
        self.names.push(name.to_owned());
        self.partials.push(None);
        self.width = self.width.max(name.chars().count());
        self.names.len() - 1
    }

    fn write_line(&mut self, index: usize, time: VirtualTime, text: &str) -> io::Result<()> {
        let (name, width) = (&self.names[index], self.width);
        if self.look.colour {
            let colour = self.colour(index);
            writeln!(
                self.out,
                "\x1b[2m{time:>12}\x1b[0m \x1b[{colour}m{name:<width$} |\x1b[0m {text}"
            )
        } else {
            writeln!(self.out, "{time:>12} {name:<width$} | {text}")
        }
    }

    /// Returns the colour of a console. The hypervisor's own console is bold, the others get a colour by
    /// their place in the list.
    fn colour(&self, index: usize) -> u8 {
        if self.names[index] == HYPERVISOR_CONSOLE {
            1
        } else {
            COLOURS[index % COLOURS.len()]
        }
    }

    fn hide_bottom(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.bottom_shown) {
            self.out.write_all(b"\r\x1b[K")?;
        }
        Ok(())
    }

    fn show_bottom(&mut self) -> io::Result<()> {
        let (Some(columns), Some(index)) = (self.look.live, self.focus) else {
            return Ok(());
        };
        self.hide_bottom()?;
        let name = &self.names[index];
        let (text, cursor) = self.partials[index]
            .as_ref()
            .map_or(("", 0), |partial| (partial.text.as_str(), partial.cursor));
        let label = format!("keyboard: {name} > ");
        // Only one row is shown, so that the row can be taken back. Of a long line the row shows the end.
        let room = columns.saturating_sub(label.chars().count() + 1).max(1);
        let skip = cursor.max(text.chars().count()).saturating_sub(room);
        let visible: String = text.chars().skip(skip).take(room).collect();
        let column = label.chars().count() + cursor.saturating_sub(skip);
        if self.look.colour {
            let colour = self.colour(index);
            write!(
                self.out,
                "\r\x1b[K\x1b[7;{colour}m{label}\x1b[0m{visible}\r\x1b[{column}C"
            )?;
        } else {
            write!(self.out, "\r\x1b[K{label}{visible}\r\x1b[{column}C")?;
        }
        self.bottom_shown = true;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<'a>(console: &'a str, text: &'a str) -> ConsoleLine<'a> {
        ConsoleLine {
            console,
            time: VirtualTime { micros: 1_500_000 },
            text,
            cursor: text.len(),
        }
    }

    fn shown(look: Look, act: impl FnOnce(&mut Screen<Vec<u8>>) -> io::Result<()>) -> String {
        let mut screen = Screen::new(Vec::new(), look, &["linux".to_owned(), "control-loop".to_owned()]);
        act(&mut screen).unwrap();
        String::from_utf8(screen.out).unwrap()
    }

    #[test]
    fn names_are_aligned() {
        let text = shown(Look::default(), |screen| {
            screen.line(line("linux", "a"))?;
            screen.line(line("control-loop", "b"))
        });
        assert_eq!(
            text,
            "    1.500000 linux        | a\n    1.500000 control-loop | b\n"
        );
    }

    #[test]
    fn a_prompt_is_printed_when_quiet_and_again_only_if_it_grew() {
        let text = shown(Look::default(), |screen| {
            screen.partial(line("linux", "~ # "))?;
            screen.quiet()?;
            screen.quiet()?;
            screen.line(line("linux", "~ # "))?;
            screen.partial(line("linux", "$ "))?;
            screen.quiet()?;
            screen.partial(line("linux", "$ l"))?;
            screen.quiet()?;
            screen.partial(line("linux", "$ ls"))?;
            screen.quiet()?;
            screen.line(line("linux", "$ ls"))
        });
        let lines: Vec<&str> = text
            .lines()
            .map(|line| line.split_once("| ").unwrap().1)
            .collect();
        assert_eq!(lines, ["~ # ", "$ ", "$ ls"]);
    }

    #[test]
    fn the_live_bottom_line_is_taken_back_and_fits() {
        let look = Look {
            colour: false,
            live: Some(30),
        };
        let text = shown(look, |screen| {
            screen.focus("linux")?;
            screen.partial(line("linux", "0123456789abcdef"))?;
            screen.line(line("control-loop", "tick"))?;
            screen.close()
        });
        let bottom = "\r\x1b[Kkeyboard: linux > 56789abcdef\r\x1b[29C";
        assert!(text.contains(bottom), "{text:?}");
        assert!(
            text.contains("\r\x1b[K    1.500000 control-loop | tick\n"),
            "{text:?}"
        );
        assert!(text.ends_with("\r\x1b[K"), "{text:?}");
    }

    #[test]
    fn colours_are_stable_and_the_hypervisor_is_bold() {
        let look = Look {
            colour: true,
            live: None,
        };
        let text = shown(look, |screen| {
            screen.line(line("control-loop", "b"))?;
            screen.line(line(HYPERVISOR_CONSOLE, "c"))
        });
        assert!(text.contains("\x1b[32mcontrol-loop |\x1b[0m b"), "{text:?}");
        assert!(text.contains("\x1b[1mbulkhead     |\x1b[0m c"), "{text:?}");
    }
}
