// SPDX-License-Identifier: Apache-2.0
//! Counts the entries of vCPUs of class `x86_64` by the emulator's own record.
//!
//! The emulator writes a line for each VMRUN, with the address of the control block (`-d in_asm`). A vCPU has
//! one block, and the blocks are in the order of the vCPUs. An entry follows each exit but the last one, so
//! few entries are few exits, without trust in the hypervisor's own count.

use bulkhead::build::prepare::Prepared;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// The emulator's record of one run.
#[derive(Debug)]
pub(crate) struct Entries {
    file: PathBuf,
    /// The partitions in their order, with their vCPUs.
    partitions: Vec<(String, usize)>,
}

impl Entries {
    /// Makes the record of a run of `prepared`.
    pub(crate) fn new(prepared: &Prepared) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("bulkhead-entries-{}-{number}", std::process::id());
        let partitions = prepared.system().partitions().into_iter();
        Self {
            file: std::env::temp_dir().join(name),
            partitions: partitions
                .map(|partition| (partition.name().to_owned(), partition.vcpus().len()))
                .collect(),
        }
    }

    /// Tells what the emulator has to be told.
    pub(crate) fn arguments(&self) -> [String; 4] {
        let file = self.file.display().to_string();
        ["-d".to_owned(), "in_asm".to_owned(), "-D".to_owned(), file]
    }

    /// Returns which partition was entered more often than it may be, or not at all.
    pub(crate) fn findings(&self, most: &BTreeMap<String, u64>) -> Vec<String> {
        let file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) => return vec![format!("the emulator's record of entries: {error}")],
        };
        let blocks = count(BufReader::new(file));
        judge(&self.partitions, &blocks, most)
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        // Only disk space is at stake.
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Counts the entries by the addresses of the control blocks.
fn count(record: impl BufRead) -> BTreeMap<u64, u64> {
    let mut blocks = BTreeMap::new();
    for line in record.split(b'\n').map_while(Result::ok) {
        let text = line
            .strip_prefix(b"vmrun! ")
            .and_then(|rest| std::str::from_utf8(rest).ok());
        if let Some(block) = text.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()) {
            *blocks.entry(block).or_default() += 1;
        }
    }
    blocks
}

fn judge(
    partitions: &[(String, usize)],
    blocks: &BTreeMap<u64, u64>,
    most: &BTreeMap<String, u64>,
) -> Vec<String> {
    let all: usize = partitions.iter().map(|(_, vcpus)| vcpus).sum();
    if blocks.len() != all {
        return vec![format!(
            "{all} vCPUs, but the emulator has entered {}: its record says nothing of any one",
            blocks.len()
        )];
    }
    let mut counts = blocks.values();
    let mut findings = Vec::new();
    for (name, vcpus) in partitions {
        let entries: u64 = counts.by_ref().take(*vcpus).sum();
        if let Some(most) = most.get(name).filter(|most| entries > **most) {
            findings.push(format!("{name} was entered {entries} times, more than {most}"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &[u8] = b"vmrun! 0000000000267000\nvmexit(00000060, 0, 0, 1)!\nIN: \n\xff\n\
vmrun! 0000000000267000\nvmrun! 0000000000269000\n";

    #[test]
    fn entries_are_counted_by_control_block() {
        let blocks = count(RECORD);
        assert_eq!(blocks, BTreeMap::from([(0x26_7000, 2), (0x26_9000, 1)]));
        let partitions = [("one".to_owned(), 1), ("two".to_owned(), 1)];
        let most = |number| BTreeMap::from([("one".to_owned(), number)]);
        assert!(judge(&partitions, &blocks, &most(2)).is_empty());
        assert_eq!(judge(&partitions, &blocks, &most(1)).len(), 1);
        assert_eq!(judge(&partitions[..1], &blocks, &most(9)).len(), 1);
    }
}
