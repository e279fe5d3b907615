// SPDX-License-Identifier: Apache-2.0
//! The text of an [`Entry`], written a piece at a time.
//!
//! One definition for all who show a log: the hypervisor, which writes a piece when the transmitter has room
//! for one, and the host tool. A piece is a key and a value, so it is short even if the line is long.

use super::ending::Ending;
use super::entry::{
    Entry, Failure, HAS_ADDRESS, HAS_VIRTUAL, IS_AGAIN, IS_NAMED, IS_NOT_STARTED, IS_TASK, IS_WARM, Kind,
    LIMIT_REACHED, TEXT_LEN,
};
use super::line::Line;
use super::registers::RegisterFile;
use crate::status::{HealthAction, HealthClass, PartitionState};
use crate::{Error, log::NAME_LEN};

/// Bytes of a piece at most: text before a value, and the longest value.
pub const PIECE_LEN: usize = BEFORE_LEN + VALUE_LEN;
/// Bytes of text before a value at most. Longer text is a piece of its own.
const BEFORE_LEN: usize = 24;
const VALUE_LEN: usize = TEXT_LEN;
/// The vCPUs whose pCPUs an entry of [`Kind::Partition`] has.
pub const PLACED_VCPUS: u8 = 8;
/// The fact that holds the number of the event, and the action in the bits from 32 on.
pub const EVENT: u8 = 4;
/// The fact that holds the error of a hypercall.
pub(super) const ERROR: u8 = 2;

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

/// The flags that decide whether a text is there, by the letter that stands for each.
pub(super) const FLAGS: [(u8, u8); 8] = [
    (b'A', HAS_ADDRESS),
    (b'V', HAS_VIRTUAL),
    (b'L', LIMIT_REACHED),
    (b'G', IS_AGAIN),
    (b'W', IS_WARM),
    (b'I', IS_NAMED),
    (b'T', IS_TASK),
    (b'S', IS_NOT_STARTED),
];
const HEALTH: &str = "health: partition={p} vcpu={v} class={d}";
const JUDGED: &str = " line={l} event={n}<l action={a}><L action=stop (restart limit reached)>";
const OF_REGISTERS: &str = "registers: partition={p} vcpu={v}";

impl Kind {
    /// Returns the template of its lines, in three parts. `{` and `}` enclose a value ([`Entry::add_value`]),
    /// `<` and `>` a text that is there under a condition ([`Entry::is`]). Their first byte says which.
    pub(super) const fn template(self) -> [&'static str; 3] {
        match self {
            Self::Text => ["{b}", "", ""],
            Self::Partition => [
                "partition {N}<t: VM><T: task>, vCPUs on pCPU<0{P0}><4{P4}><S, not started>",
                "",
                "",
            ],
            Self::Fault => [
                HEALTH,
                "<A address={h0}><V virtual={h1}> pc={h2} syndrome={h3}",
                JUDGED,
            ],
            Self::Refused => [HEALTH, " operation={h0} capability={h1} error={e}", JUDGED],
            Self::Watchdog => [HEALTH, " period_ns={#0}", JUDGED],
            Self::Unanswered => [HEALTH, " unanswered={c0}", JUDGED],
            Self::Registers => [
                OF_REGISTERS,
                "<0 {R0}><1 {R1}><2 {R2}><3 {R3}><4 {R4}><5 {R5}>",
                "",
            ],
            Self::LeftOut => [OF_REGISTERS, " left out, others are being written", ""],
            Self::State => [
                "partition {p}: {d}<G, start {m}><W, warm><I, alternative {N}>",
                "",
                "",
            ],
            Self::Failed => ["partition {p}: {d}{h0}", "", ""],
            Self::WrongSender => [
                "partition {p}: sends frames that do not have its address; they are dropped",
                "",
                "",
            ],
            Self::Lost => ["log entries lost: {#0}", "", ""],
            Self::Begin => ["Bulkhead {b}", "", ""],
            Self::Boot => ["boot {#0}, the log of earlier ones is kept in RAM", "", ""],
            Self::Crashed => ["the hypervisor crashed in boot {#0}: ", "", ""],
            Self::Board => ["board {N}, pCPUs {#4}", "", ""],
            Self::Ended => ["{d}", "", ""],
        }
    }

    /// Returns the names of its details, from the detail 1 on, each with a line feed after it.
    pub(super) const fn details(self) -> &'static str {
        match self {
            Self::State => PartitionState::NAMES,
            Self::Failed => Failure::NAMES,
            Self::Ended => Ending::NAMES,
            _ => HealthClass::NAMES,
        }
    }
}

impl Entry {
    /// Writes the next piece of its text, from byte `next` of the template on, in the place of what `to`
    /// holds, and sets `next` to the byte after the piece. Returns false when the text is complete.
    ///
    /// A line has at most 24 pieces. The work grows with the bytes of the template that the piece takes: 255
    /// at most.
    #[inline(never)]
    pub fn piece(&self, names: &dyn Names, next: &mut u8, to: &mut PieceLine) -> bool {
        to.clear();
        let mut rest: &[u8] = &[];
        let mut skipped = usize::from(*next);
        for part in self.kind.template() {
            rest = part.as_bytes().get(skipped..).unwrap_or(&[]);
            if !rest.is_empty() {
                break;
            }
            skipped = skipped.saturating_sub(part.len());
        }
        let length = rest.len();
        while to.as_bytes().len() < BEFORE_LEN
            && let [first, behind @ ..] = rest
        {
            rest = behind;
            match (*first, behind) {
                (b'<', [condition, text @ ..]) => {
                    rest = if self.is(*condition) {
                        text
                    } else {
                        split(text, b'>').1
                    };
                }
                (b'{', [value, text @ ..]) => {
                    let (index, after) = match text {
                        [b'}', after @ ..] => (0, after),
                        [digit, _, after @ ..] => (digit.wrapping_sub(b'0'), after),
                        _ => (0, text),
                    };
                    rest = after;
                    self.add_value(*value, index, names, to);
                    break;
                }
                (b'>', _) => {}
                (byte, _) => to.byte(byte),
            }
        }
        *next = next.wrapping_add(length.wrapping_sub(rest.len()) as u8);
        length != 0
    }

    /// Tells whether a condition of a template holds: a capital letter if its flag is set, a small one if its
    /// flag is not set, a digit if `detail` is greater.
    pub(super) fn is(&self, condition: u8) -> bool {
        let letter = condition.to_ascii_uppercase();
        match FLAGS.iter().find(|(flag_letter, _)| *flag_letter == letter) {
            Some((_, flag)) => (self.flags & flag != 0) == (condition == letter),
            None => self.detail > condition.wrapping_sub(b'0'),
        }
    }

    pub(super) fn fact(&self, index: u8) -> u64 {
        self.facts.get(usize::from(index)).copied().unwrap_or(0)
    }

    /// Adds a value of a template: `index` is the number that stands after the byte of the value.
    fn add_value(&self, value: u8, index: u8, names: &dyn Names, to: &mut PieceLine) {
        let (fact, event) = (self.fact(index), self.fact(EVENT));
        let number = event & 0xFFFF_FFFF;
        match value {
            b'p' => names.add_name(self.partition, to),
            b'c' => names.add_name(fact as u8, to),
            b'v' => _ = to.decimal(self.vcpu.into()),
            b'l' => _ = to.decimal(self.line.into()),
            b'd' => add_name(self.kind.details(), self.detail, to),
            b'h' => _ = to.hex(fact),
            b'#' => _ = to.decimal(fact),
            b'n' => _ = to.decimal(number),
            b'm' => _ = to.decimal(number.saturating_add(1)),
            b'a' => add_name(HealthAction::NAMES, (event >> 32) as u8, to),
            b'e' => add_name(Error::NAMES, self.fact(ERROR).wrapping_neg() as u8, to),
            b'N' => self.add_bytes(NAME_LEN, to),
            b'b' => self.add_bytes(self.detail.into(), to),
            b'P' => {
                for vcpu in index..self.detail.min(PLACED_VCPUS).min(index.saturating_add(4)) {
                    to.text(" ").decimal(event.wrapping_shr(u32::from(vcpu) * 4) & 15);
                }
            }
            _ => self.add_register(index, names, to),
        }
    }

    /// Adds the first `length` bytes of the facts, up to a byte of zero.
    fn add_bytes(&self, length: usize, to: &mut PieceLine) {
        for fact in self.facts.iter().take(length.div_ceil(8)) {
            let bytes = fact.to_le_bytes();
            to.bytes(split(&bytes, 0).0);
        }
    }

    /// Adds the name and the value of a register.
    fn add_register(&self, index: u8, names: &dyn Names, to: &mut PieceLine) {
        let [file, first, ..] = self.line.to_le_bytes();
        let number = usize::from(first).saturating_add(index.into());
        let mut files = names.files().iter();
        match files
            .find(|entry| entry.number == file)
            .and_then(|file| file.name(number))
        {
            Some(name) => to.text(name),
            None => to.text("r").decimal(number as u64),
        };
        to.text("=").hex(self.fact(index));
    }
}

/// Adds the name of a number, counted from 1, out of names with a line feed after each.
#[inline(never)]
fn add_name(names: &str, number: u8, to: &mut PieceLine) {
    let mut rest = names.as_bytes();
    for _ in 1..number {
        rest = split(rest, b'\n').1;
    }
    let (name, _) = split(rest, b'\n');
    to.bytes(if name.is_empty() || number == 0 {
        b"?"
    } else {
        name
    });
}

/// Returns the bytes before the first `end`, and those after it.
#[inline(never)]
pub(super) fn split(text: &[u8], end: u8) -> (&[u8], &[u8]) {
    let mut rest = text;
    while let [byte, behind @ ..] = rest {
        if *byte == end {
            let before = text.len().wrapping_sub(rest.len());
            return (text.get(..before).unwrap_or(&[]), behind);
        }
        rest = behind;
    }
    (text, &[])
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
        state.detail = PartitionState::Loading as u8 + 1;
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
    fn names_are_found_by_their_numbers() {
        fn found(names: &str, number: u8) -> String {
            let mut piece = PieceLine::new();
            add_name(names, number, &mut piece);
            String::from_utf8(piece.as_bytes().to_vec()).unwrap()
        }
        for class in HealthClass::ALL {
            assert_eq!(found(HealthClass::NAMES, *class as u8), class.name());
        }
        for action in HealthAction::ALL {
            assert_eq!(found(HealthAction::NAMES, *action as u8), action.name());
        }
        for state in PartitionState::ALL {
            assert_eq!(found(PartitionState::NAMES, *state as u8 + 1), state.name());
        }
        for failure in Failure::ALL {
            assert_eq!(found(Failure::NAMES, *failure as u8), failure.name());
        }
        for error in Error::ALL {
            let name = found(Error::NAMES, (*error as i64).unsigned_abs() as u8);
            assert_eq!(name.replace('-', ""), std::format!("{error:?}").to_lowercase());
        }
        assert_eq!(found(HealthClass::NAMES, 0), "?");
        assert_eq!(found(HealthClass::NAMES, 6), "?");
        assert_eq!(found(HealthClass::NAMES, 255), "?");
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
                assert!(kind.template().map(str::len).iter().sum::<usize>() < 256);
                for _ in 0..24 {
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
