// SPDX-License-Identifier: Apache-2.0
//! The user's terminal: its abilities, and raw mode while a system runs on it.
//!
//! Raw means: keys arrive one by one and unechoed, and Ctrl-C is a key. Output processing stays on, so "\n"
//! still starts a new row. [`Raw`] restores the terminal when dropped, on every way out including a panic.

use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetwinsize,
    tcsetattr,
};

/// Tells people what they should know beside the answer of a command. Perhaps no person is there to read it:
/// that changes nothing for the command.
pub fn tell(text: impl std::fmt::Display) {
    use std::io::{Write, stderr};
    let _ = writeln!(stderr(), "{text}");
}

/// Tells whether standard input and output are both a terminal, so that a user can talk to a system.
#[must_use]
pub fn is_interactive() -> bool {
    isatty(stdin()) && isatty(stdout())
}

/// Tells whether to colour standard output: it is a terminal, and the user does not object (`NO_COLOR`,
/// `TERM=dumb`), or the user insists (`CLICOLOR_FORCE`).
#[must_use]
pub fn has_colour() -> bool {
    let objected = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|value| value == "dumb" || value.is_empty());
    let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0" && !value.is_empty());
    !objected && (forced || isatty(stdout()) && !dumb)
}

/// Returns the columns of the terminal, if there is one.
#[must_use]
pub fn columns() -> Option<usize> {
    let size = tcgetwinsize(stdout()).or_else(|_| tcgetwinsize(stderr())).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

/// Raw mode of standard input, until dropped.
pub struct Raw(Termios);

impl Raw {
    /// Enters raw mode. Returns `None` if standard input is no terminal.
    #[must_use]
    pub fn enter() -> Option<Self> {
        let before = tcgetattr(stdin()).ok()?;
        let mut raw = before.clone();
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        raw.input_modes -= InputModes::IXON | InputModes::ICRNL | InputModes::INLCR | InputModes::ISTRIP;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}
