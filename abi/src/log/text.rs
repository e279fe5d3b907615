// SPDX-License-Identifier: Apache-2.0
//! The text of an [`Entry`], written a piece at a time.
//!
//! One definition for all who show a log: the hypervisor, which writes a piece when the transmitter has room
//! for one, and the host tool. A piece is a key and a value, so it is short whatever the line is.

use super::entry::{
    Entry, Failure, HAS_ADDRESS, HAS_VIRTUAL, IS_AGAIN, IS_NAMED, IS_NOT_STARTED, IS_TASK, IS_WARM, Kind,
    LIMIT_REACHED,
};
use super::line::Line;
use super::registers::RegisterFile;
use crate::status::{HealthAction, HealthClass, PartitionState};
use crate::{Error, log::NAME_LEN};
use Value::{
    Action, Again, Bytes, Client, Decimal, Detail, ErrorName, Hex, LineNumber, Name, Nothing, Number,
    Partition, Pcpu, Register, Vcpu,
};

/// Bytes of a piece at most: the longest text before a value, and the longest value.
pub const PIECE_LEN: usize = BEFORE_LEN + VALUE_LEN;
const BEFORE_LEN: usize = 24;
const VALUE_LEN: usize = super::entry::TEXT_LEN;
/// The vCPUs whose pCPUs an entry of [`Kind::Partition`] has.
pub const PLACED_VCPUS: u8 = 16;

const _: () = assert!(NAME_LEN <= VALUE_LEN);

/// A piece of a line.
pub type PieceLine = Line<PIECE_LEN>;

/// Where a text finds the names of partitions and registers.
pub trait Names {
    /// Adds the name of a partition.
    fn add_name(&self, partition: u8, to: &mut PieceLine);
    /// Returns the register files that a report may be about.
    fn files(&self) -> &[&RegisterFile];
}

/// What stands behind the text of a piece.
#[derive(Clone, Copy)]
enum Value {
    Nothing,
    /// The name of the partition.
    Partition,
    /// The name of the partition whose number is the fact.
    Client(u8),
    /// The number of the vCPU.
    Vcpu,
    /// The line of the manifest.
    LineNumber,
    /// The name of what `detail` says.
    Detail,
    Hex(u8),
    Decimal(u8),
    /// The number of the event.
    Number,
    /// The number of the start, counted from 1.
    Again,
    /// The health action.
    Action,
    ErrorName,
    /// The first facts as a name.
    Name,
    /// The first facts as text.
    Bytes,
    /// The pCPU of a vCPU.
    Pcpu(u8),
    /// A register: its name and its value.
    Register(u8),
}

/// When a piece is part of the line.
#[derive(Clone, Copy)]
enum When {
    Always,
    /// All of these flags are set.
    Set(u8),
    /// None of these flags is set.
    Clear(u8),
    /// `detail` is greater.
    Above(u8),
}

/// A piece of the line of a kind.
struct Piece(When, &'static str, Value);

/// The fact that holds the number of the event, and the action in the bits from 32 on.
pub const EVENT: u8 = 4;
/// The fact that holds the error of a hypercall.
const ERROR: u8 = 2;

const fn set(flag: u8, text: &'static str, value: Value) -> Piece {
    Piece(When::Set(flag), text, value)
}

const fn always(text: &'static str, value: Value) -> Piece {
    Piece(When::Always, text, value)
}

const HEALTH: &[Piece] = &[
    always("health: partition=", Partition),
    always(" vcpu=", Vcpu),
    always(" class=", Detail),
];
const JUDGED: &[Piece] = &[
    always(" line=", LineNumber),
    always(" event=", Number),
    Piece(When::Clear(LIMIT_REACHED), " action=", Action),
    set(LIMIT_REACHED, " action=stop (restart", Nothing),
    set(LIMIT_REACHED, " limit reached)", Nothing),
];
const FAULT: &[Piece] = &[
    set(HAS_ADDRESS, " address=", Hex(0)),
    set(HAS_VIRTUAL, " virtual=", Hex(1)),
    always(" pc=", Hex(2)),
    always(" syndrome=", Hex(3)),
];
const REFUSED: &[Piece] = &[
    always(" operation=", Hex(0)),
    always(" capability=", Hex(1)),
    always(" error=", ErrorName),
];
const OF_REGISTERS: &[Piece] = &[always("registers: partition=", Partition), always(" vcpu=", Vcpu)];
const REGISTERS: &[Piece] = &[
    Piece(When::Above(0), " ", Register(0)),
    Piece(When::Above(1), " ", Register(1)),
    Piece(When::Above(2), " ", Register(2)),
    Piece(When::Above(3), " ", Register(3)),
    Piece(When::Above(4), " ", Register(4)),
    Piece(When::Above(5), " ", Register(5)),
];
const OF_PARTITION: &[Piece] = &[always("partition ", Partition)];
const STATE: &[Piece] = &[
    always(": ", Detail),
    set(IS_AGAIN, ", start ", Again),
    set(IS_WARM, ", warm", Nothing),
    set(IS_NAMED, ", alternative ", Name),
];
const PLACED: &[Piece] = &[
    Piece(When::Clear(IS_TASK), ": VM, vCPUs on pCPU", Nothing),
    set(IS_TASK, ": task, vCPUs on pCPU", Nothing),
    Piece(When::Above(0), "", Pcpu(0)),
    Piece(When::Above(4), "", Pcpu(4)),
    Piece(When::Above(8), "", Pcpu(8)),
    Piece(When::Above(12), "", Pcpu(12)),
    set(IS_NOT_STARTED, ", not started", Nothing),
];
const WRONG_SENDER: &[Piece] = &[
    always(": sends frames that ", Nothing),
    always("do not have its address;", Nothing),
    always(" they are dropped", Nothing),
];

const TEXT: &[Piece] = &[always("", Bytes)];
const NAMED: &[Piece] = &[always("partition ", Name)];
const WATCHDOG: &[Piece] = &[always(" period_ns=", Decimal(0))];
const UNANSWERED: &[Piece] = &[always(" unanswered=", Client(0))];
const LEFT_OUT: &[Piece] = &[
    always(" left out, others are ", Nothing),
    always("being written", Nothing),
];
const FAILED: &[Piece] = &[always(": ", Detail), always("", Hex(0))];
const LOST: &[Piece] = &[always("log entries lost: ", Decimal(0))];

impl Kind {
    /// Returns the pieces of its lines, in groups.
    const fn pieces(self) -> [&'static [Piece]; 3] {
        match self {
            Self::Text => [TEXT, &[], &[]],
            Self::Partition => [NAMED, PLACED, &[]],
            Self::Fault => [HEALTH, FAULT, JUDGED],
            Self::Refused => [HEALTH, REFUSED, JUDGED],
            Self::Watchdog => [HEALTH, WATCHDOG, JUDGED],
            Self::Unanswered => [HEALTH, UNANSWERED, JUDGED],
            Self::Registers => [OF_REGISTERS, REGISTERS, &[]],
            Self::LeftOut => [OF_REGISTERS, LEFT_OUT, &[]],
            Self::State => [OF_PARTITION, STATE, &[]],
            Self::Failed => [OF_PARTITION, FAILED, &[]],
            Self::WrongSender => [OF_PARTITION, WRONG_SENDER, &[]],
            Self::Lost => [LOST, &[], &[]],
        }
    }

    /// Returns the name of a detail.
    fn detail(self, detail: u8) -> Option<&'static str> {
        match self {
            Self::State => PartitionState::from_number(detail).map(PartitionState::name),
            Self::Failed => Failure::from_number(detail).map(Failure::name),
            _ => HealthClass::from_number(detail).map(HealthClass::name),
        }
    }
}

impl Entry {
    /// Writes the first piece of its text from piece `next` on that is part of the text, in the place of what
    /// `to` holds, and sets `next` to the piece after it. Returns false when the text is complete.
    ///
    /// A line has at most 16 pieces.
    #[inline(never)]
    pub fn piece(&self, names: &dyn Names, next: &mut u8, to: &mut PieceLine) -> bool {
        to.clear();
        let mut skipped = usize::from(*next);
        for group in self.kind.pieces() {
            let rest = group.get(skipped..).unwrap_or(&[]);
            skipped = skipped.saturating_sub(group.len());
            for Piece(when, before, value) in rest {
                *next = next.wrapping_add(1);
                if self.is(*when) {
                    to.text(before);
                    self.add_value(*value, names, to);
                    return true;
                }
            }
        }
        false
    }

    const fn is(&self, when: When) -> bool {
        match when {
            When::Always => true,
            When::Set(flags) => self.flags & flags == flags,
            When::Clear(flags) => self.flags & flags == 0,
            When::Above(number) => self.detail > number,
        }
    }

    fn fact(&self, index: u8) -> u64 {
        self.facts.get(usize::from(index)).copied().unwrap_or(0)
    }

    fn add_value(&self, value: Value, names: &dyn Names, to: &mut PieceLine) {
        let number = self.fact(EVENT) & 0xFFFF_FFFF;
        match value {
            Nothing => {}
            Partition => names.add_name(self.partition, to),
            Client(fact) => names.add_name(self.fact(fact) as u8, to),
            Vcpu => to.decimal(self.vcpu.into()),
            LineNumber => to.decimal(self.line.into()),
            Detail => to.text(self.kind.detail(self.detail).unwrap_or("?")),
            Hex(fact) => to.hex(self.fact(fact)),
            Decimal(fact) => to.decimal(self.fact(fact)),
            Number => to.decimal(number),
            Again => to.decimal(number.saturating_add(1)),
            Action => {
                let action = HealthAction::from_number((self.fact(EVENT) >> 32) as u8);
                to.text(action.map_or("?", HealthAction::name));
            }
            ErrorName => {
                let error = Error::from_code(self.fact(ERROR) as i64);
                to.text(error.map_or("?", Error::name));
            }
            Name => {
                let bytes = self.bytes();
                let name = bytes.get(..NAME_LEN).unwrap_or(&bytes);
                to.bytes(name.split(|byte| *byte == 0).next().unwrap_or(name));
            }
            Bytes => {
                let bytes = self.bytes();
                to.bytes(bytes.get(..usize::from(self.detail)).unwrap_or(&bytes));
            }
            Pcpu(first) => {
                for vcpu in first..self.detail.min(PLACED_VCPUS).min(first.saturating_add(4)) {
                    let shift = u32::from(vcpu) * 4;
                    to.text(" ");
                    to.decimal(self.fact(EVENT).wrapping_shr(shift) & 15);
                }
            }
            Register(index) => {
                let [file, first, ..] = self.line.to_le_bytes();
                let number = usize::from(first).saturating_add(index.into());
                let mut files = names.files().iter();
                match files
                    .find(|entry| entry.number == file)
                    .and_then(|file| file.name(number))
                {
                    Some(name) => to.text(name),
                    None => {
                        to.text("r");
                        to.decimal(number as u64);
                    }
                }
                to.text("=");
                to.hex(self.fact(index));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    struct Letters;

    impl Names for Letters {
        fn add_name(&self, partition: u8, to: &mut PieceLine) {
            to.bytes(&[b'a'.wrapping_add(partition)]);
        }

        fn files(&self) -> &[&RegisterFile] {
            &super::super::registers::ALL
        }
    }

    fn text(entry: &Entry) -> String {
        let (mut next, mut piece) = (0, PieceLine::new());
        let mut bytes = Vec::new();
        while entry.piece(&Letters, &mut next, &mut piece) {
            bytes.extend(piece.as_bytes());
        }
        String::from_utf8(bytes).unwrap()
    }

    fn judged(kind: Kind, class: HealthClass, action: HealthAction) -> Entry {
        let mut entry = Entry::new(kind, 0);
        (entry.partition, entry.vcpu, entry.detail, entry.line) = (1, 2, class as u8, 17);
        entry.facts[usize::from(EVENT)] = 9 | (action as u64) << 32;
        entry
    }

    #[test]
    fn each_kind_of_health_event_has_its_keys() {
        let mut fault = judged(Kind::Fault, HealthClass::Memory, HealthAction::Inject);
        fault.facts[..4].copy_from_slice(&[0x10, 0x20, 0x30, 0x40]);
        let end = "line=17 event=9 action=inject";
        let head = "health: partition=b vcpu=2 class=memory";
        assert_eq!(text(&fault), std::format!("{head} pc=0x30 syndrome=0x40 {end}"));
        fault.flags = HAS_ADDRESS | HAS_VIRTUAL;
        assert_eq!(
            text(&fault),
            std::format!("{head} address=0x10 virtual=0x20 pc=0x30 syndrome=0x40 {end}")
        );
        let mut refused = judged(Kind::Refused, HealthClass::Hypercall, HealthAction::Restart);
        refused.flags = LIMIT_REACHED;
        refused.facts[..3].copy_from_slice(&[0xC600_0001, u64::MAX, Error::NoRight as i64 as u64]);
        assert_eq!(
            text(&refused),
            "health: partition=b vcpu=2 class=hypercall operation=0xc6000001 capability=0xffffffffffffffff \
             error=no-right line=17 event=9 action=stop (restart limit reached)"
        );
        let mut watchdog = judged(Kind::Watchdog, HealthClass::Watchdog, HealthAction::Log);
        watchdog.facts[0] = 5_000_000;
        assert!(text(&watchdog).contains("class=watchdog period_ns=5000000 line=17"));
        let mut late = judged(Kind::Unanswered, HealthClass::Watchdog, HealthAction::Stop);
        late.facts[0] = 3;
        assert!(text(&late).contains("class=watchdog unanswered=d line=17"));
    }

    #[test]
    fn states_and_partitions_read_as_sentences() {
        let mut state = Entry::new(Kind::State, 0);
        state.detail = PartitionState::Loading as u8;
        assert_eq!(text(&state), "partition a: loading");
        state.put_bytes(b"safe-mode");
        state.facts[usize::from(EVENT)] = 1;
        state.flags = IS_AGAIN | IS_WARM | IS_NAMED;
        assert_eq!(
            text(&state),
            "partition a: loading, start 2, warm, alternative safe-mode"
        );
        let mut partition = Entry::new(Kind::Partition, 0);
        partition.put_bytes(&[b'n'; NAME_LEN]);
        partition.facts[usize::from(EVENT)] = 0x6_5432_1076;
        partition.detail = 5;
        partition.flags = IS_NOT_STARTED;
        let name = "n".repeat(NAME_LEN);
        assert_eq!(
            text(&partition),
            std::format!("partition {name}: VM, vCPUs on pCPU 6 7 0 1 2, not started")
        );
        (partition.flags, partition.detail) = (IS_TASK, 1);
        assert_eq!(
            text(&partition),
            std::format!("partition {name}: task, vCPUs on pCPU 6")
        );
    }

    #[test]
    fn registers_have_the_names_of_their_file() {
        let mut entry = Entry::new(Kind::Registers, 0);
        (entry.detail, entry.line) = (6, 1 | 30 << 8);
        entry.facts = [1, 2, u64::MAX, 4, 5, 6];
        assert_eq!(
            text(&entry),
            "registers: partition=a vcpu=0 r30=0x1 far=0x2 elr=0xffffffffffffffff esr=0x4 vbar=0x5 sp=0x6"
        );
        (entry.detail, entry.line) = (1, 5 | 21 << 8);
        assert_eq!(text(&entry), "registers: partition=a vcpu=0 cs-base=0x1");
    }

    #[test]
    fn whatever_the_words_are_each_piece_has_room_and_the_line_ends() {
        let mut seed = 1_u64;
        let mut random = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            seed ^ seed >> 29
        };
        for kind in Kind::ALL {
            for _ in 0..1000 {
                let head = random() & !0xFF | *kind as u64;
                let mut words = [0; super::super::entry::ENTRY_WORDS].map(|_: u64| random());
                words[1] = head;
                let entry = Entry::decode(words).unwrap();
                let (mut next, mut piece) = (0, PieceLine::new());
                for _ in 0..17 {
                    if !entry.piece(&Letters, &mut next, &mut piece) {
                        break;
                    }
                    assert!(!piece.is_cut(), "{kind:?} {piece:?}");
                }
                assert!(!entry.piece(&Letters, &mut next, &mut piece), "{kind:?} goes on");
            }
        }
    }
}
