// SPDX-License-Identifier: Apache-2.0
//! The meaning of the keys of a terminal while a system runs.
//!
//! All keys go to the console that has the keyboard, except those after Ctrl-A, as in the emulator and in
//! `screen`. Ctrl-C belongs to the guest, because a shell in the guest needs Ctrl-C. A user who insists ends
//! the session: by the third Ctrl-C in a row.

/// The reaction to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this byte to the console.
    Send(u8),
    /// Give the keyboard to the console with this number, from 1.
    Select(usize),
    /// Give the keyboard to the next console.
    Next,
    /// Show the keys.
    Help,
    /// End the session.
    Quit,
    /// Nothing.
    Nothing,
}

/// The keys, for people.
pub const HELP: &str = "\
Ctrl-A 1..9  give the keyboard to a console   Ctrl-A n  to the next one
Ctrl-A x     quit                             Ctrl-A ?  this help
Ctrl-A a     send Ctrl-A                      Ctrl-C    goes to the guest; three in a row quit";

const CTRL_A: u8 = 0x01;
const CTRL_C: u8 = 0x03;

/// The state between two keys.
#[derive(Debug, Default)]
pub struct Keyboard {
    prefixed: bool,
    interrupts: u8,
}

impl Keyboard {
    /// Takes the next byte of the terminal.
    pub fn key(&mut self, byte: u8) -> Action {
        self.interrupts = if byte == CTRL_C { self.interrupts + 1 } else { 0 };
        if self.interrupts == 3 {
            return Action::Quit;
        }
        if !std::mem::take(&mut self.prefixed) {
            if byte == CTRL_A {
                self.prefixed = true;
                return Action::Nothing;
            }
            return Action::Send(byte);
        }
        match byte {
            b'1'..=b'9' => Action::Select(usize::from(byte - b'0')),
            b'n' | b'N' => Action::Next,
            b'x' | b'X' | b'q' => Action::Quit,
            b'a' | b'A' | CTRL_A => Action::Send(CTRL_A),
            CTRL_C => Action::Nothing,
            _ => Action::Help,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(keys: &[u8]) -> Vec<Action> {
        let mut keyboard = Keyboard::default();
        keys.iter().map(|&key| keyboard.key(key)).collect()
    }

    #[test]
    fn keys_go_to_the_guest_unless_prefixed() {
        assert_eq!(actions(b"l\r"), [Action::Send(b'l'), Action::Send(b'\r')]);
        assert_eq!(actions(b"\x012"), [Action::Nothing, Action::Select(2)]);
        assert_eq!(
            actions(b"\x01nn"),
            [Action::Nothing, Action::Next, Action::Send(b'n')]
        );
        assert_eq!(actions(b"\x01x"), [Action::Nothing, Action::Quit]);
        assert_eq!(actions(b"\x01a"), [Action::Nothing, Action::Send(1)]);
        assert_eq!(actions(b"\x01?"), [Action::Nothing, Action::Help]);
    }

    #[test]
    fn three_interrupts_in_a_row_quit() {
        assert_eq!(actions(b"\x03\x03a\x03\x03\x03")[5], Action::Quit);
        assert_eq!(actions(b"\x03\x03a")[1], Action::Send(3));
    }
}
