// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::log::entry::{ENTRY_WORDS, Failure, LIMIT_REACHED};
use std::string::String;
use std::vec::Vec;

/// The names of the partitions in written lines: two, of which the second has an odd one.
struct TwoNames;

impl Names for TwoNames {
    fn add_name(&self, partition: u8, to: &mut PieceLine) {
        to.text(if partition & 1 == 0 {
            "control"
        } else {
            "class-a_1"
        });
    }

    fn files(&self) -> &[&RegisterFile] {
        &registers::ALL
    }
}

fn text(entry: &Entry, names: &dyn Names) -> String {
    let (mut next, mut piece) = (0, PieceLine::new());
    let mut bytes = Vec::new();
    while entry.piece(names, &mut next, &mut piece) {
        bytes.extend(piece.as_bytes());
    }
    String::from_utf8(bytes).unwrap()
}

/// A fixed linear congruential sequence.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // Short numbers are as frequent as long ones.
        (self.0 ^ self.0 >> 29) >> (self.0 >> 58)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Returns an entry with facts in the bounds of what the kernel can write.
fn entry(kind: Kind, random: &mut Random) -> Entry {
    let mut words = [0; ENTRY_WORDS].map(|_: u64| random.next());
    words[1] = kind as u64;
    let mut entry = Entry::decode(words).unwrap();
    entry.flags = random.next() as u8;
    entry.partition = random.below(2) as u8;
    entry.vcpu = random.below(8) as u8;
    entry.line = random.below(1 << 24) as u32;
    entry.detail = 1 + random.below(5) as u8;
    match kind {
        Kind::Failed => entry.detail = 1 + random.below(Failure::ALL.len() as u64) as u8,
        Kind::Refused => entry.facts[2] = (1 + random.below(8)).wrapping_neg(),
        Kind::Unanswered => entry.facts[0] = random.below(2),
        Kind::Registers => {
            let file = registers::ALL[random.below(6) as usize];
            entry.line = u32::from(file.number) | (random.below(20) as u32) << 8;
            entry.detail = 1 + random.below(6) as u8;
        }
        Kind::Partition => entry.detail = 1 + random.below(8) as u8,
        Kind::Ended => entry.detail = 1 + random.below(2) as u8,
        Kind::Begin => {
            let text = &b"0.1.0 class aarch64"[..1 + random.below(19) as usize];
            entry.put_bytes(text);
            entry.detail = text.len() as u8;
        }
        _ => {}
    }
    if matches!(kind, Kind::Partition | Kind::State | Kind::Board) {
        entry.facts[..4].fill(0);
        entry.put_bytes([&b"safe-mode"[..], &[b'n'; NAME_LEN]][random.below(2) as usize]);
    }
    if !matches!(kind, Kind::Partition | Kind::Board | Kind::Begin) {
        let action = 1 + random.below(HealthAction::ALL.len() as u64);
        entry.facts[usize::from(EVENT)] &= 0xFFFF_FFFF;
        entry.facts[usize::from(EVENT)] |= action << 32;
    }
    entry
}

/// Returns the values that the line of an entry has, by their places in the template.
fn values(entry: &Entry) -> Vec<(u8, u8)> {
    let template = entry.kind.template().concat();
    let mut rest = template.as_bytes();
    let mut values = Vec::new();
    loop {
        rest = match rest {
            [] => return values,
            [b'<', condition, text @ ..] if !entry.is(*condition) => split(text, b'>').1,
            [b'<', _, text @ ..] => text,
            [b'{', value, b'}', ..] => {
                values.push((*value, 0));
                &rest[3..]
            }
            [b'{', value, digit, ..] => {
                values.push((*value, digit - b'0'));
                &rest[4..]
            }
            [_, text @ ..] => text,
        };
    }
}

fn same_facts(entry: &Entry, told: &Told<'_>, line: &str) {
    for (value, index) in values(entry) {
        let (own, read) = (entry.fact(index), told.fact(index));
        let event = (entry.fact(EVENT), told.fact(EVENT));
        match value {
            b'p' => assert_eq!(
                told.partition(),
                ["control", "class-a_1"][usize::from(entry.partition)]
            ),
            b'c' => assert_eq!(told.names[1], ["control", "class-a_1"][own as usize & 1]),
            b'v' => assert_eq!(told.entry.vcpu, entry.vcpu, "{line}"),
            b'l' => assert_eq!(told.entry.line, entry.line, "{line}"),
            b'd' => assert_eq!(told.entry.detail, entry.detail, "{line}"),
            b'h' | b'#' | b'e' => assert_eq!(read, own, "{line}"),
            b'n' | b'm' => assert_eq!(event.0 as u32, event.1 as u32, "{line}"),
            b'a' => assert_eq!(event.0 >> 32, event.1 >> 32, "{line}"),
            b'b' => assert_eq!(
                entry.bytes()[..entry.detail.into()],
                told.entry.bytes()[..entry.detail.into()],
                "{line}"
            ),
            b'N' => assert_eq!(entry.facts[..4], told.entry.facts[..4], "{line}"),
            b'R' => assert_eq!((read, told.entry.detail), (own, entry.detail), "{line}"),
            b'P' => {
                let seen = (1_u64 << (4 * entry.detail.min(PLACED_VCPUS))) - 1;
                assert_eq!(event.0 & seen, event.1 & seen, "{line}");
            }
            _ => panic!("{} in a template", char::from(value)),
        }
    }
}

#[test]
fn each_kind_of_entry_comes_back_from_its_line() {
    let mut random = Random(7);
    for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::Text) {
        for _ in 0..2000 {
            let entry = entry(*kind, &mut random);
            let line = text(&entry, &TwoNames);
            let told = Told::read(&line).unwrap_or_else(|| panic!("not read: {line}"));
            assert_eq!(told.kind(), *kind, "{line}");
            assert_eq!(text(told.entry(), &told), line);
            same_facts(&entry, &told, &line);
            if entry.flags & LIMIT_REACHED != 0 && told.class().is_some() {
                assert_eq!(told.action(), Some(HealthAction::Stop), "{line}");
            }
        }
    }
}

#[test]
fn a_line_with_one_byte_changed_or_lost_is_refused_or_says_what_it_says() {
    let mut random = Random(11);
    let mut refused = 0;
    for kind in Kind::ALL.iter().filter(|kind| **kind != Kind::Text) {
        for _ in 0..20 {
            let line = text(&entry(*kind, &mut random), &TwoNames);
            for at in 0..line.len() {
                let lost = [&line[..at], &line[at + 1..]].concat();
                let mut bytes = line.clone().into_bytes();
                bytes[at] = 0x20 + random.below(0x5F) as u8;
                let changed = String::from_utf8(bytes).unwrap();
                for other in [lost, changed].iter().filter(|other| **other != line) {
                    match Told::read(other) {
                        Some(told) => assert_eq!(&text(told.entry(), &told), other),
                        None => refused += 1,
                    }
                }
                assert!(Told::read(&line[..at]).is_none_or(|told| text(told.entry(), &told) == line[..at]));
            }
        }
    }
    assert!(refused > 10_000, "only {refused} were refused");
}

#[test]
fn lines_that_are_no_entries_are_refused() {
    for line in [
        "",
        "health: partition=a",
        "health: partition=a vcpu=0 class=memory",
        "health: partition=a vcpu=0 class=memory address=0x80000000 action=restart",
        "health: partition=a vcpu=00 class=watchdog period_ns=1 line=1 event=1 action=log",
        "health: partition=a vcpu=0 class=watchdog period_ns=1 line=1 event=1 action=log ",
        " health: partition=a vcpu=0 class=watchdog period_ns=1 line=1 event=1 action=log",
        "health: partition=a vcpu=0 class=hypercall operation=0xAB capability=0x0 error=? line=1 event=1 action=log",
        "partition a: flying",
        "partition a: running, start 0",
        "partition a b: running",
        "partition : running",
        "registers: partition=a vcpu=0 sp=0x0 fly=0x1",
        "registers: partition=a vcpu=0 r1=0x0 r0=0x1",
        "log entries lost: 01",
        "LOCKDOWN: bad",
        "Bulk 0.1.0 class",
        "the hypervisor crashed in boot 1: LOCKDOWN: bad",
    ] {
        assert_eq!(Told::read(line), None, "{line}");
    }
}

#[test]
fn what_a_reader_asks_for_is_there() {
    let line = "health: partition=a vcpu=1 class=memory address=0x80000000 pc=0x400814c4 syndrome=0x93890005 \
                line=2 event=3 action=stop (restart limit reached)";
    let told = Told::read(line).unwrap();
    assert_eq!((told.partition(), told.entry().vcpu), ("a", 1));
    assert_eq!(told.class(), Some(HealthClass::Memory));
    assert_eq!((told.action(), told.number()), (Some(HealthAction::Stop), 3));
    let state = Told::read("partition high: loading, start 257, warm").unwrap();
    assert_eq!(state.state(), Some(PartitionState::Loading));
    assert_eq!(state.number(), 256);
    assert_eq!(state.class(), None);
    let registers = Told::read("registers: partition=a vcpu=1 sp=0x0 pc=0x200 state=0x3c5").unwrap();
    assert!(
        registers
            .registers()
            .eq([("sp", 0), ("pc", 0x200), ("state", 0x3C5)])
    );
}
