// SPDX-License-Identifier: Apache-2.0
//! Looks at the privilege with which a microcontroller executes the code of partitions.
//!
//! The emulator writes down the state of the CPU before each block of a program that it executes (`-d
//! exec,cpu`, with a filter for the addresses of the programs). The mode stands at the end of the line of the
//! program status register. Code of a partition must always run in Thread mode without privileges,
//! CONTROL.nPRIV = 1 (Arm DDI 0403E.e, B1.4.4).

use bulkhead::build::prepare::Prepared;
use object::{Object, ObjectSegment, SegmentFlags, elf};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// The mode of code without privileges, in the emulator's words.
const UNPRIVILEGED: &str = "unpriv-thread";

/// The emulator's record of one run.
#[derive(Debug)]
pub(crate) struct Blocks {
    file: PathBuf,
    /// Each partition, and the addresses of its code.
    partitions: Vec<(String, Vec<Range<u32>>)>,
}

impl Blocks {
    /// Makes the record of what these partitions of `prepared` execute.
    pub(crate) fn new(prepared: &Prepared, partitions: &[String]) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("bulkhead-blocks-{}-{number}", std::process::id());
        let code_of = |name: &String| Ok((name.clone(), code_of(prepared, name)?));
        Ok(Self {
            file: std::env::temp_dir().join(name),
            partitions: partitions.iter().map(code_of).collect::<Result<_, String>>()?,
        })
    }

    /// Tells what the emulator has to be told.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let ranges = self.partitions.iter().flat_map(|(_, ranges)| ranges);
        let filter: Vec<String> = ranges
            .map(|range| format!("{:#x}+{:#x}", range.start, range.len()))
            .collect();
        let file = self.file.display().to_string();
        [
            "-d",
            "exec,cpu,nochain",
            "-dfilter",
            &filter.join(","),
            "-D",
            &file,
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// Returns the first block that was executed with privileges, or a partition that executed nothing.
    pub(crate) fn finding(&self) -> Option<String> {
        match File::open(&self.file) {
            Ok(file) => privileged(BufReader::new(file), &self.partitions),
            Err(error) => Some(format!("the emulator's record of blocks: {error}")),
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        // Only disk space is at stake.
        let _ = fs::remove_file(&self.file);
    }
}

/// Returns the executable segments of the program of a partition.
fn code_of(prepared: &Prepared, partition: &str) -> Result<Vec<Range<u32>>, String> {
    let path = prepared
        .image_of(partition)
        .map_err(|problem| problem.to_string())?;
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let file = object::File::parse(&*bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    let is_code = |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.0 & elf::PF_X.0 != 0);
    let segments = file.segments().filter(|segment| is_code(segment.flags()));
    let ranges = segments.map(|segment| {
        let start = segment.address() as u32;
        start..start.saturating_add(segment.size() as u32)
    });
    Ok(ranges.collect())
}

/// Looks at a record, line by line.
fn privileged(record: impl BufRead, partitions: &[(String, Vec<Range<u32>>)]) -> Option<String> {
    let mut blocks = vec![0_u64; partitions.len()];
    let mut at = None;
    for line in record.lines() {
        let line = match line {
            Ok(line) => line,
            Err(error) => return Some(format!("the emulator's record of blocks: {error}")),
        };
        if let Some(registers) = line.split_once("R15=") {
            at = u32::from_str_radix(registers.1.trim(), 16).ok();
        } else if line.starts_with("XPSR=") {
            let owner = |pc: &u32| {
                let owns =
                    |(_, ranges): &(String, Vec<Range<u32>>)| ranges.iter().any(|range| range.contains(pc));
                partitions.iter().position(owns)
            };
            let Some(owner) = at.as_ref().and_then(owner) else {
                return Some(format!("a block of nobody at {at:x?}: {line}"));
            };
            if line.split_whitespace().last() != Some(UNPRIVILEGED) {
                let (name, pc) = (&partitions[owner].0, at.unwrap_or(0));
                return Some(format!("{name}: privileged at {pc:#010x}: {line}"));
            }
            blocks[owner] += 1;
        }
    }
    let idle = blocks.iter().position(|count| *count == 0)?;
    Some(format!("{}: no block was executed", partitions[idle].0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "Trace 0: 0x7f9d44011040 [00800408/00120368/00000010/ff020200] main\n\
        R12=00000000 R13=2009ffe0 R14=00122427 R15=00120368\nXPSR=61000000 -ZC- T unpriv-thread\n";

    fn found(record: &str) -> Option<String> {
        let own = |name: &str, start: u32| {
            (
                name.to_owned(),
                Vec::from_iter([Range {
                    start,
                    end: start + 0x1000,
                }]),
            )
        };
        privileged(record.as_bytes(), &[own("a", 0x12_0000), own("b", 0x13_0000)])
    }

    #[test]
    fn each_partition_must_run_and_never_with_privileges() {
        let other = BLOCK.replace("00120368", "00130368");
        assert_eq!(found(&format!("{BLOCK}{other}")), None);
        assert!(found(BLOCK).is_some_and(|why| why.starts_with("b: no block")));
        let wrong = other.replace("unpriv", "priv");
        assert!(
            found(&format!("{BLOCK}{wrong}"))
                .is_some_and(|why| why.starts_with("b: privileged at 0x00130368"))
        );
        let handler = BLOCK.replace("unpriv-thread", "handler");
        assert!(found(&handler).is_some_and(|why| why.starts_with("a: privileged")));
        assert!(found(&BLOCK.replace("00120368", "00140368")).is_some_and(|why| why.contains("nobody")));
    }
}
