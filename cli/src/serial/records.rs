// SPDX-License-Identifier: Apache-2.0
//! The lines of a hypervisor that sends its log as records ([`bulkhead_abi::log::record`]): the same lines as
//! the text of a hypervisor that has the part `text`.

use crate::log::names::PartitionNames;
use crate::serial::framing::{UNTAGGED, VirtualTime};
use bulkhead_abi::framing::HYPERVISOR_CONSOLE;
use bulkhead_abi::log::{Kind, record};

/// Text that a record stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The console: the hypervisor's, or [`UNTAGGED`] for a remark on the line.
    pub console: &'static str,
    /// The time, unless the text goes on with a line.
    pub time: Option<VirtualTime>,
    /// The text.
    pub text: Vec<u8>,
}

impl Said {
    fn remark(text: String) -> Self {
        Self {
            console: UNTAGGED,
            time: None,
            text: text.into_bytes(),
        }
    }
}

/// The state between two records.
#[derive(Clone, Debug, Default)]
pub struct Records {
    names: PartitionNames,
    /// The number that the next record should have, once there was one.
    next: Option<u8>,
    /// Records that came damaged since the last whole one.
    damaged: u8,
    /// True if the line of the last record has no end yet.
    in_line: bool,
}

impl Records {
    /// Takes the bytes of a record, whole or not. Returns the text of the record, and remarks on records that
    /// were lost.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Said> {
        let Some((number, entry)) = record::read(bytes) else {
            self.damaged = self.damaged.saturating_add(1);
            let seen = String::from_utf8_lossy(bytes);
            let text = format!("a record of the log came damaged: {}\r\n", seen.trim_end());
            return vec![Said::remark(text)];
        };
        let mut all = Vec::new();
        let begins = entry.kind == Kind::Begin && number == 0;
        let gap = self.next.map_or(0, |next| number.wrapping_sub(next));
        if !begins && gap > self.damaged {
            let lost = gap - self.damaged;
            all.push(Said::remark(format!(
                "records of the log that were lost on the line: {lost}\r\n"
            )));
        }
        if gap != 0 && !begins {
            // The end of the line may be among the lost ones.
            all.extend(self.line_end());
        }
        (self.next, self.damaged) = (Some(number.wrapping_add(1)), 0);
        self.names.learn(&entry);
        let mut text = self.names.text(&entry);
        if !entry.has_more() {
            text.extend(b"\r\n");
        }
        let time = VirtualTime {
            micros: entry.time / 1000,
        };
        all.push(Said {
            console: HYPERVISOR_CONSOLE,
            time: (!self.in_line).then_some(time),
            text,
        });
        self.in_line = entry.has_more();
        all
    }

    /// Ends the line of the last record, if its end is missing: other text of the hypervisor follows.
    pub fn line_end(&mut self) -> Option<Said> {
        std::mem::take(&mut self.in_line).then(|| Said {
            console: HYPERVISOR_CONSOLE,
            time: None,
            text: b"\r\n".to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_abi::PartitionState;
    use bulkhead_abi::framing::US;
    use bulkhead_abi::log::entry::MORE;
    use bulkhead_abi::log::line::Line;
    use bulkhead_abi::log::record::Written;
    use bulkhead_abi::log::{Entry, Kind};

    /// Returns the records of entries, without RS and US.
    fn records(entries: &[Entry]) -> Vec<Vec<u8>> {
        let mut state = Written::new();
        let record = |entry: &Entry| {
            let (mut bytes, mut piece) = (Vec::new(), Line::new());
            while !state.piece(entry, &mut piece) {
                bytes.extend(piece.as_bytes());
            }
            bytes.extend(piece.as_bytes());
            assert_eq!(bytes.pop(), Some(US));
            bytes
        };
        entries.iter().map(record).collect()
    }

    fn entries() -> Vec<Entry> {
        let mut begin = Entry::new(Kind::Begin, 1000);
        begin.put_bytes(b"0.1 class armv7m");
        begin.detail = 16;
        let mut partition = Entry::new(Kind::Partition, 2000);
        partition.put_bytes(b"control");
        partition.detail = 1;
        let mut state = Entry::new(Kind::State, 3000);
        state.detail = PartitionState::Running as u8 + 1;
        let mut half = Entry::text(4000, b"LOCKDOWN: ");
        half.flags = MORE;
        vec![begin, partition, state, half, Entry::text(4000, b"over")]
    }

    fn said(records: &[Vec<u8>]) -> String {
        let mut state = Records::default();
        let all = records.iter().flat_map(|record| state.take(record));
        let show = |said: Said| {
            let time = said
                .time
                .map_or(String::new(), |time| format!("[{time}] {}: ", said.console));
            time + &String::from_utf8(said.text).unwrap()
        };
        all.map(show).collect::<String>().replace("\r\n", "\n")
    }

    #[test]
    fn records_become_the_lines_of_the_board() {
        assert_eq!(
            said(&records(&entries())),
            "[0.000001] bulkhead: Bulkhead 0.1 class armv7m\n[0.000002] bulkhead: partition control: VM, vCPUs on \
             pCPU 0\n[0.000003] bulkhead: partition control: running\n[0.000004] bulkhead: LOCKDOWN: over\n"
        );
    }

    #[test]
    fn a_lost_or_damaged_record_is_noticed_and_costs_no_other() {
        let whole = records(&entries());
        let mut lost = whole.clone();
        lost.remove(2);
        let text = said(&lost);
        assert!(
            text.contains("lost on the line: 1\n[0.000004] bulkhead: LOCKDOWN"),
            "{text}"
        );
        let mut damaged = whole.clone();
        damaged[2][4] ^= 1;
        let text = said(&damaged);
        assert!(
            text.contains("came damaged: =2 ") && !text.contains("were lost"),
            "{text}"
        );
        assert!(
            text.contains("LOCKDOWN: over\n") && !text.contains("running"),
            "{text}"
        );
        let mut without_name = whole.clone();
        without_name.remove(1);
        assert!(said(&without_name).contains("partition #0: running"));
        // The end of a line is lost, and the board begins anew.
        let again = [&whole[..4], &whole[..]].concat();
        let text = said(&again);
        assert!(!text.contains("were lost"), "{text}");
    }
}
