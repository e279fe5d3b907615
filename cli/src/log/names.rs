// SPDX-License-Identifier: Apache-2.0
//! The names of the partitions, as entries of the log tell them, and the text of an entry with these names.

use bulkhead_abi::log::{Entry, Kind, NAME_LEN, Names, PieceLine, RegisterFile, registers};

/// The names of the partitions in the life of the hypervisor whose entries are read.
#[derive(Clone, Debug, Default)]
pub struct PartitionNames(pub Vec<String>);

impl PartitionNames {
    /// Takes the name from the entry, if it says one.
    pub fn learn(&mut self, entry: &Entry) {
        if entry.kind != Kind::Partition {
            return;
        }
        if entry.partition == 0 {
            self.0.clear();
        }
        self.0.resize(usize::from(entry.partition), String::new());
        let bytes = entry.bytes();
        let name = bytes[..NAME_LEN].split(|byte| *byte == 0).next();
        self.0
            .push(String::from_utf8_lossy(name.unwrap_or(&[])).into_owned());
    }

    /// Returns the text of an entry.
    #[must_use]
    pub fn text(&self, entry: &Entry) -> Vec<u8> {
        let (mut next, mut piece) = (0, PieceLine::new());
        let mut text = Vec::new();
        while entry.piece(self, &mut next, &mut piece) {
            text.extend(piece.as_bytes());
        }
        text
    }
}

impl Names for PartitionNames {
    fn add_name(&self, partition: u8, to: &mut PieceLine) {
        match self.0.get(usize::from(partition)).filter(|name| !name.is_empty()) {
            Some(name) => to.text(name),
            None => to.text("#").decimal(partition.into()),
        };
    }

    fn files(&self) -> &[&RegisterFile] {
        &registers::ALL
    }
}
