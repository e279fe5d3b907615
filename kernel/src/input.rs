// SPDX-License-Identifier: Apache-2.0
//! Console input: the console that each byte of the one serial line is for.
//!
//! `RS name US` selects the console for the bytes that follow ([`bulkhead_abi::framing`]). A byte that looks
//! like part of such a selection comes escaped. Until a selection arrives, bytes go to the first partition
//! with a virtual UART, so that a plain terminal is of use. Bytes that follow the name of no console are
//! dropped. A lost byte is better than a byte typed into the shell of another partition.

use bulkhead_abi::framing::{DLE, ESCAPE_MASK, RS, US};
use bulkhead_arch_api::PartitionId;
use bulkhead_image::layout::NAME_LEN;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    Escape,
    /// Within a selection, with the length of the name so far. A name that is longer than its place is the
    /// name of no console.
    Name(usize),
}

/// The meaning of a received byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received<'n> {
    /// Part of a selection or an escape, or a byte for no console.
    Nothing,
    /// The end of a selection. The caller looks for the partition with this name and tells it to
    /// [`Selector::select`].
    Selection(&'n [u8]),
    /// A byte for the selected console.
    Byte(PartitionId, u8),
}

/// The state between two bytes.
#[derive(Debug)]
pub struct Selector {
    state: State,
    name: [u8; NAME_LEN],
    focus: Option<PartitionId>,
}

impl Default for Selector {
    fn default() -> Self {
        Self::new()
    }
}

impl Selector {
    /// Makes a selector that has selected no partition.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: State::Text,
            name: [0; NAME_LEN],
            focus: None,
        }
    }

    /// Directs the bytes that follow to `partition`, or to no partition.
    pub const fn select(&mut self, partition: Option<PartitionId>) {
        self.focus = partition;
    }

    /// Tells whether bytes are directed to a partition.
    #[must_use]
    pub const fn is_directed(&self) -> bool {
        self.focus.is_some()
    }

    /// Takes the next byte.
    pub fn receive(&mut self, byte: u8) -> Received<'_> {
        match (self.state, byte) {
            (_, RS) => self.state = State::Name(0),
            (State::Name(length), US) => {
                self.state = State::Text;
                // An overlong name matches nothing, as the empty one does.
                return Received::Selection(self.name.get(..length).unwrap_or(&[]));
            }
            (State::Name(length), _) => {
                if let Some(place) = self.name.get_mut(length) {
                    *place = byte;
                }
                self.state = State::Name(length.saturating_add(1));
            }
            (State::Text, DLE) => self.state = State::Escape,
            (State::Text, _) => return self.direct(byte),
            (State::Escape, _) => {
                self.state = State::Text;
                return self.direct(byte ^ ESCAPE_MASK);
            }
        }
        Received::Nothing
    }

    fn direct(&self, byte: u8) -> Received<'_> {
        self.focus
            .map_or(Received::Nothing, |partition| Received::Byte(partition, byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Feeds `input` with consoles "a" = 0 and "bc" = 1. Returns the bytes that arrive, with their owner.
    fn feed(selector: &mut Selector, input: &[u8]) -> Vec<(u8, u8)> {
        let mut arrived = Vec::new();
        for byte in input {
            let chosen = match selector.receive(*byte) {
                Received::Nothing => continue,
                Received::Byte(PartitionId(owner), byte) => {
                    arrived.push((owner, byte));
                    continue;
                }
                Received::Selection(name) => match name {
                    b"a" => Some(PartitionId(0)),
                    b"bc" => Some(PartitionId(1)),
                    _ => None,
                },
            };
            selector.select(chosen);
        }
        arrived
    }

    #[test]
    fn bytes_go_to_the_console_selected_last() {
        let mut selector = Selector::new();
        assert_eq!(feed(&mut selector, b"lost"), []);
        selector.select(Some(PartitionId(0)));
        assert_eq!(
            feed(&mut selector, b"x\x1ebc\x1fyz\x1ea\x1fw"),
            [(0, b'x'), (1, b'y'), (1, b'z'), (0, b'w')]
        );
    }

    #[test]
    fn escapes_are_undone() {
        let mut selector = Selector::new();
        selector.select(Some(PartitionId(1)));
        assert_eq!(
            feed(&mut selector, &[DLE, RS ^ 0x40, DLE, DLE ^ 0x40, b'q']),
            [(1, RS), (1, DLE), (1, b'q')]
        );
    }

    #[test]
    fn bytes_behind_an_unknown_or_overlong_name_are_dropped() {
        let mut selector = Selector::new();
        selector.select(Some(PartitionId(1)));
        assert_eq!(feed(&mut selector, b"\x1ewho\x1fsecret"), []);
        let long = [
            &[RS][..],
            &[b'a'; 200],
            &[US],
            b"secret",
            &[RS],
            b"a",
            &[US],
            b"k",
        ]
        .concat();
        assert_eq!(feed(&mut selector, &long), [(0, b'k')]);
    }

    #[test]
    fn a_selection_that_is_cut_off_by_another_is_forgotten() {
        let mut selector = Selector::new();
        assert_eq!(feed(&mut selector, b"\x1ezz\x1ebc\x1fm"), [(1, b'm')]);
    }
}
