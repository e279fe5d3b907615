// SPDX-License-Identifier: Apache-2.0
//! The user's typing, on a terminal or through a pipe, becomes input of consoles.
//!
//! Keys of a terminal go out at once. A pipe delivers everything at the start, long before a guest listens.
//! The lines of a pipe are therefore held back and go out one at a time. A line goes out when the console
//! shows a prompt (an unfinished line) and rests, or has said something and then nothing for a longer while.
//! On a slow machine a program that only computes is silent for longer, so the while is longer there.

use crate::emulator::session::Input;
use crate::serial::consoles::Control;
use crate::ui::keyboard::{Action, HELP, Keyboard};
use crate::ui::terminal::Raw;
use rustix::io::{Errno, ioctl_fionread, read};
use rustix::stdio::stdin;
use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// A prompt that stays this long waits for input.
const PROMPT_REST: Duration = Duration::from_millis(150);
/// The silence of a console without a prompt that counts as waiting for input.
const SILENCE: Duration = Duration::from_secs(1);
/// A machine is not taken for slower than that.
const SLOWEST: f64 = 20.0;

/// Tells whether lines for a console wait in a pipe or in a file.
#[must_use]
pub fn is_piped() -> bool {
    ioctl_fionread(stdin()).is_ok_and(|count| count != 0)
}

/// The latest state of the console with the keyboard. The observer keeps it up to date.
#[derive(Clone, Copy, Debug, Default)]
pub struct Activity {
    /// The time of the latest change on the console.
    pub changed: Option<Instant>,
    /// True if the console shows an unfinished line.
    pub prompt: bool,
    /// Seconds that a second of the board has taken so far.
    pub pace: f64,
}

impl Activity {
    /// Returns the silence that counts as waiting for input.
    fn patience(self) -> Duration {
        let rest = if self.prompt { PROMPT_REST } else { SILENCE };
        rest.mul_f64(self.pace.clamp(1.0, SLOWEST))
    }
}

/// A note that the display should show.
#[derive(Clone, Copy, Debug)]
pub enum Note<'a> {
    /// This console has the keyboard now.
    Focus(&'a str),
    /// A remark.
    Remark(&'a str),
}

/// A person or a pipe that types.
pub struct Typist<'a> {
    consoles: Vec<String>,
    current: usize,
    keyboard: Keyboard,
    raw: Option<Raw>,
    ended: bool,
    held: VecDeque<u8>,
    activity: &'a Cell<Activity>,
    notify: &'a dyn Fn(Note<'_>),
}

impl<'a> Typist<'a> {
    /// Makes a typist for `consoles`, which begins with the one at `current`. On a terminal keys go out one
    /// by one and can switch the console. Otherwise everything goes to one console, whose `activity` the
    /// observer reports.
    pub fn new(
        consoles: Vec<String>,
        current: usize,
        interactive: bool,
        activity: &'a Cell<Activity>,
        notify: &'a dyn Fn(Note<'_>),
    ) -> Self {
        let raw = if interactive { Raw::enter() } else { None };
        let keyboard = Keyboard::default();
        let typist = Self {
            consoles,
            current,
            keyboard,
            raw,
            ended: false,
            held: VecDeque::new(),
            activity,
            notify,
        };
        if typist.raw.is_some() {
            typist.show_focus();
        }
        typist
    }

    fn show_focus(&self) {
        if let Some(name) = self.consoles.get(self.current) {
            (self.notify)(Note::Focus(name));
        }
    }

    fn send(&self, bytes: Vec<u8>, control: &mut Control) {
        if let Some(console) = self.consoles.get(self.current) {
            control.typed.push((console.clone(), bytes));
        }
    }

    fn key(&mut self, byte: u8, control: &mut Control) -> bool {
        match self.keyboard.key(byte) {
            Action::Send(byte) => self.send(vec![byte], control),
            Action::Select(number) if number <= self.consoles.len() => {
                self.current = number - 1;
                self.show_focus();
            }
            Action::Next if !self.consoles.is_empty() => {
                self.current = (self.current + 1) % self.consoles.len();
                self.show_focus();
            }
            Action::Select(_) | Action::Next | Action::Help => self.help(),
            Action::Quit => return false,
            Action::Nothing => {}
        }
        true
    }

    fn help(&self) {
        let names = self.consoles.iter().enumerate();
        let listed: Vec<String> = names
            .map(|(index, name)| format!("{}: {name}", index + 1))
            .collect();
        (self.notify)(Note::Remark(&format!("{HELP}\nConsoles: {}", listed.join("  "))));
    }

    /// Tells whether the console waits for input, as far as one can see.
    fn is_waiting(&self) -> bool {
        let activity = self.activity.get();
        activity
            .changed
            .is_some_and(|changed| changed.elapsed() >= activity.patience())
    }
}

/// Returns the keys that type a line of a pipe. The line ends with the key Enter, which every terminal sends
/// as a carriage return. UEFI takes a line feed for no key at all.
fn keys_of(mut line: Vec<u8>) -> Vec<u8> {
    if line.pop_if(|last| *last == b'\n').is_some() {
        line.pop_if(|last| *last == b'\r');
        line.push(b'\r');
    }
    line
}

impl Input for Typist<'_> {
    fn source(&self) -> Option<BorrowedFd<'_>> {
        (!self.ended).then(stdin)
    }

    fn ready(&mut self, control: &mut Control) -> bool {
        let mut buffer = [0; 4096];
        let count = match read(stdin(), &mut buffer) {
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return true,
            Err(_) => 0,
        };
        if count == 0 {
            // A pipe has ended. A terminal that is gone ends the session.
            self.ended = true;
            return self.raw.is_none();
        }
        let bytes = &buffer[..count];
        if self.raw.is_none() {
            self.held.extend(bytes);
            return true;
        }
        bytes.iter().all(|&byte| self.key(byte, control))
    }

    fn has_more(&self) -> bool {
        !self.held.is_empty()
    }

    fn release(&mut self, control: &mut Control) {
        if self.held.is_empty() || !self.is_waiting() {
            return;
        }
        let end = self
            .held
            .iter()
            .position(|&byte| byte == b'\n')
            .map_or(self.held.len(), |end| end + 1);
        let line = self.held.drain(..end).collect();
        self.send(keys_of(line), control);
        // The next line waits for the next prompt.
        self.activity.set(Activity {
            changed: Some(Instant::now()),
            prompt: false,
            ..self.activity.get()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Activity, PROMPT_REST, SILENCE, keys_of};

    #[test]
    fn silence_is_longer_on_a_slow_machine() {
        let activity = |prompt, pace| Activity {
            changed: None,
            prompt,
            pace,
        };
        assert_eq!(activity(false, 0.2).patience(), SILENCE);
        assert_eq!(activity(false, 4.0).patience(), 4 * SILENCE);
        assert_eq!(activity(true, 2.0).patience(), 2 * PROMPT_REST);
        assert_eq!(activity(true, f64::INFINITY).patience(), 20 * PROMPT_REST);
    }

    #[test]
    fn a_line_of_a_pipe_ends_with_the_key_enter() {
        for (line, keys) in [
            ("ls\n", "ls\r"),
            ("ls\r\n", "ls\r"),
            ("\n", "\r"),
            ("y", "y"),
            ("", ""),
        ] {
            assert_eq!(keys_of(line.into()), keys.as_bytes());
        }
    }
}
