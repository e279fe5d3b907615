// SPDX-License-Identifier: Apache-2.0
//! Lines of the log, read back: the reverse of [`super::text`], by the same templates.
//!
//! A line is read only if it is, byte for byte, the line that the facts in it are written as. So a line that
//! was cut off, changed or made up in another form is no entry. A reader must know that the line is the
//! hypervisor's: a partition can print the same bytes on its own console.

use super::entry::{Entry, Kind, TEXT_LEN};
use super::registers::{self, RegisterFile};
use super::text::{EVENT, FLAGS, Names, PLACED_VCPUS, PieceLine, split};
use crate::log::NAME_LEN;
use crate::status::{HealthAction, HealthClass, PartitionState};
use core::str::from_utf8;

/// The number of the partition that a line names, in the entry that was read from the line.
const PARTITION: u8 = 0;
/// The number of the client that a line names.
const CLIENT: u8 = 1;
/// Registers of a line.
const REGISTERS: usize = super::entry::REGISTERS;

/// The contents of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told<'t> {
    /// The facts. Numbers of partitions are not in a line, and time and order are not either.
    entry: Entry,
    /// The names of the partition and of its client.
    names: [&'t str; 2],
    /// The names of registers.
    registers: [&'t str; REGISTERS],
}

impl<'t> Told<'t> {
    /// Reads a line of the hypervisor's log. Returns `None` if the line is text, or no line of the log.
    #[must_use]
    pub fn read(line: &'t str) -> Option<Self> {
        let mut kinds = Kind::ALL.iter().filter(|kind| **kind != Kind::Text);
        kinds.find_map(|kind| {
            let mut flat = [0; 256];
            let mut length = 0;
            let template = kind.template();
            for byte in template.iter().flat_map(|part| part.bytes()) {
                *flat.get_mut(length)? = byte;
                length = length.wrapping_add(1);
            }
            let told = Self {
                entry: Entry::new(*kind, 0),
                names: [""; 2],
                registers: [""; REGISTERS],
            };
            told.matched(flat.get(..length)?, line, line)
        })
    }

    /// Returns the facts. The number of a partition is not among them.
    #[must_use]
    pub const fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns the kind of the line.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.entry.kind
    }

    /// Returns the name of the partition that the line is about. It is empty if the line is about none.
    #[must_use]
    pub const fn partition(&self) -> &'t str {
        let [partition, _] = self.names;
        partition
    }

    /// Returns the fact with this number.
    #[must_use]
    pub fn fact(&self, index: u8) -> u64 {
        self.entry.fact(index)
    }

    /// Returns the class of the health event, if the line tells of one.
    #[must_use]
    pub const fn class(&self) -> Option<HealthClass> {
        let is_health = matches!(
            self.entry.kind,
            Kind::Fault | Kind::Refused | Kind::Watchdog | Kind::Unanswered
        );
        if is_health {
            HealthClass::from_number(self.entry.detail)
        } else {
            None
        }
    }

    /// Returns the action that answered the health event.
    #[must_use]
    pub fn action(&self) -> Option<HealthAction> {
        if self.entry.flags & super::entry::LIMIT_REACHED != 0 {
            return Some(HealthAction::Stop);
        }
        HealthAction::from_number((self.fact(EVENT) >> 32) as u8)
    }

    /// Returns the number of the health event among the events of its kind.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.fact(EVENT) as u32
    }

    /// Returns the name of the error by which a hypercall was refused, if the line tells of one.
    #[must_use]
    pub fn error(&self) -> Option<&'static str> {
        let number = self.fact(super::text::ERROR).wrapping_neg();
        let before = usize::try_from(number.checked_sub(1)?).ok()?;
        let is_refused = self.entry.kind == Kind::Refused;
        crate::Error::NAMES.lines().nth(before).filter(|_| is_refused)
    }

    /// Returns the state that the partition entered, if the line tells of one.
    #[must_use]
    pub fn state(&self) -> Option<PartitionState> {
        let number = self.entry.detail.checked_sub(1)?;
        let is_state = self.entry.kind == Kind::State;
        PartitionState::from_number(number).filter(|_| is_state)
    }

    /// Returns the name and the value of each register.
    pub fn registers(&self) -> impl Iterator<Item = (&'t str, u64)> {
        let named = self.registers.into_iter().zip(self.entry.facts);
        named.filter(|(name, _)| !name.is_empty())
    }

    /// Returns the contents, if the rest of a template gives the rest of a line. The facts must then be
    /// written as `line`.
    fn matched(self, template: &[u8], rest: &'t str, line: &'t str) -> Option<Self> {
        let mut told = self;
        match template {
            [] => (rest.is_empty() && told.is_written_as(line)).then_some(told),
            [b'<', condition, text @ ..] => {
                let (_, after) = split(text, b'>');
                told.assume(*condition, true)
                    .matched(text, rest, line)
                    .or_else(|| told.assume(*condition, false).matched(after, rest, line))
            }
            [b'>', after @ ..] => told.matched(after, rest, line),
            [b'{', value, b'}', after @ ..] => told.take(*value, 0, rest)?.matched_after(after, line),
            [b'{', value, digit, _, after @ ..] => {
                let index = digit.wrapping_sub(b'0');
                told.take(*value, index, rest)?.matched_after(after, line)
            }
            [byte, after @ ..] => {
                let (first, rest) = rest.split_at_checked(1)?;
                told = (first.as_bytes() == [*byte]).then_some(told)?;
                told.matched(after, rest, line)
            }
        }
    }

    /// Returns the contents with the flag of a condition set, so that the condition holds or not. The
    /// condition that is a digit rests on the values that are read.
    fn assume(mut self, condition: u8, holds: bool) -> Self {
        let letter = condition.to_ascii_uppercase();
        if let Some((_, flag)) = FLAGS.iter().find(|(flag_letter, _)| *flag_letter == letter) {
            if holds == (condition == letter) {
                self.entry.flags |= flag;
            } else {
                self.entry.flags &= !flag;
            }
        }
        self
    }

    /// Takes a value of a template from the begin of `text`. Returns the contents with it, and the rest.
    fn take(mut self, value: u8, index: u8, text: &'t str) -> Option<After<'t>> {
        let entry = &mut self.entry;
        let rest = match value {
            b'p' | b'c' => {
                let (name, rest) = name(text)?;
                let number = if value == b'p' { PARTITION } else { CLIENT };
                *self.names.get_mut(usize::from(number))? = name;
                if value == b'c' {
                    *entry.facts.get_mut(usize::from(index))? = number.into();
                }
                rest
            }
            b'v' | b'l' => {
                let (number, rest) = decimal(text)?;
                if value == b'v' {
                    entry.vcpu = number as u8;
                } else {
                    entry.line = number as u32;
                }
                rest
            }
            b'n' | b'm' => {
                let ahead = u64::from(value == b'm');
                let (number, rest) = decimal(text)?;
                let number = u32::try_from(number.checked_sub(ahead)?).ok()?;
                *entry.facts.get_mut(usize::from(EVENT))? |= u64::from(number);
                rest
            }
            b'h' | b'#' => {
                let (number, rest) = if value == b'h' { hex(text)? } else { decimal(text)? };
                *entry.facts.get_mut(usize::from(index))? = number;
                rest
            }
            b'd' => {
                let (number, rest) = numbered(entry.kind.details(), text)?;
                entry.detail = number;
                rest
            }
            b'a' => {
                let (number, rest) = numbered(HealthAction::NAMES, text)?;
                *entry.facts.get_mut(usize::from(EVENT))? |= u64::from(number) << 32;
                rest
            }
            b'e' => {
                let (number, rest) = numbered(crate::Error::NAMES, text)?;
                *entry.facts.get_mut(usize::from(super::text::ERROR))? = u64::from(number).wrapping_neg();
                rest
            }
            b'N' => {
                let (name, rest) = name(text)?;
                (name.len() <= NAME_LEN).then(|| entry.put_bytes(name.as_bytes()))?;
                rest
            }
            b'b' => {
                (text.len() <= TEXT_LEN).then(|| entry.put_bytes(text.as_bytes()))?;
                entry.detail = text.len() as u8;
                ""
            }
            b'P' => self.take_places(index, text)?,
            b'R' => self.take_register(index, text)?,
            _ => return None,
        };
        Some(After(self, rest))
    }

    /// Takes the pCPUs of up to four vCPUs, from `first` on. Returns the rest.
    fn take_places(&mut self, first: u8, text: &'t str) -> Option<&'t str> {
        let mut rest = text;
        let event = self.entry.facts.get_mut(usize::from(EVENT))?;
        for vcpu in first..PLACED_VCPUS.min(first.saturating_add(4)) {
            let Some((pcpu, after)) = rest.strip_prefix(' ').and_then(decimal) else {
                break;
            };
            *event |= (pcpu & 15).wrapping_shl(u32::from(vcpu).wrapping_mul(4));
            self.entry.detail = vcpu.wrapping_add(1);
            rest = after;
        }
        Some(rest)
    }

    /// Takes the name and the value of a register. Returns the rest.
    fn take_register(&mut self, index: u8, text: &'t str) -> Option<&'t str> {
        let (name, rest) = text.split_once('=')?;
        let (value, rest) = hex(rest)?;
        *self.registers.get_mut(usize::from(index))? = name;
        *self.entry.facts.get_mut(usize::from(index))? = value;
        self.entry.detail = index.wrapping_add(1);
        if let Some((file, first)) = self.file() {
            self.entry.line = u32::from(file) | u32::from(first) << 8;
        }
        Some(rest)
    }

    /// Returns the number of a file with these registers one after the other, and of the first one there.
    fn file(&self) -> Option<(u8, u8)> {
        let count = usize::from(self.entry.detail);
        let names = self.registers.get(..count)?;
        registers::ALL.iter().find_map(|file| {
            let has = |first: &u8| {
                let numbers = usize::from(*first)..;
                names
                    .iter()
                    .zip(numbers)
                    .all(|(name, number)| file.is_called(number, name))
            };
            Some((file.number, (0..=u8::MAX).find(has)?))
        })
    }

    /// Tells whether the facts are written as this line.
    fn is_written_as(&self, line: &str) -> bool {
        let mut rest = line.as_bytes();
        let (mut next, mut piece) = (0, PieceLine::new());
        while self.entry.piece(self, &mut next, &mut piece) {
            match rest.strip_prefix(piece.as_bytes()) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.is_empty()
    }
}

impl Names for Told<'_> {
    fn add_name(&self, partition: u8, to: &mut PieceLine) {
        to.text(self.names.get(usize::from(partition)).copied().unwrap_or(""));
    }

    fn files(&self) -> &[&RegisterFile] {
        &registers::ALL
    }
}

/// The contents of a line so far, and the rest of the line.
struct After<'t>(Told<'t>, &'t str);

impl<'t> After<'t> {
    fn matched_after(self, template: &[u8], line: &'t str) -> Option<Told<'t>> {
        let Self(told, rest) = self;
        told.matched(template, rest, line)
    }
}

/// Takes a name from the begin of a text. No name has a space, a comma or a colon.
fn name(text: &str) -> Option<(&str, &str)> {
    let end = text.find([' ', ',', ':']).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end)?;
    (!name.is_empty()).then_some((name, rest))
}

/// Takes a decimal number from the begin of a text.
fn decimal(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

/// Takes a hexadecimal number with `0x` from the begin of a text.
fn hex(text: &str) -> Option<(u64, &str)> {
    let text = text.strip_prefix("0x")?;
    let end = text
        .find(|char: char| !char.is_ascii_hexdigit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((u64::from_str_radix(digits, 16).ok()?, rest))
}

/// Takes the longest name with a number from the begin of a text. Each name has a line feed after it. A
/// number without a name is written as `?`.
fn numbered<'t>(names: &str, text: &'t str) -> Option<(u8, &'t str)> {
    let mut found = text.strip_prefix('?').map(|rest| (0, rest));
    let mut number = 0_u8;
    for name in names.lines() {
        number = number.wrapping_add(1);
        if let Some(rest) = text.strip_prefix(name)
            && found.is_none_or(|(_, other)| rest.len() < other.len())
        {
            found = Some((number, rest));
        }
    }
    found
}

impl RegisterFile {
    /// Tells whether the register with this number has the name.
    fn is_called(&self, number: usize, name: &str) -> bool {
        match self.name(number) {
            Some(own) => own == name,
            None => {
                let digits = name.strip_prefix('r').map(str::as_bytes).unwrap_or_default();
                from_utf8(digits).is_ok_and(|digits| digits.parse() == Ok(number))
            }
        }
    }
}

#[cfg(test)]
mod tests;
