// SPDX-License-Identifier: Apache-2.0
//! Reads the output of the plugin. The layout is `struct output` in `tests/plugin/stretch.c`.

use super::places::{Symbols, TAGS};
use std::collections::BTreeMap;

const MAGIC: u64 = u64::from_le_bytes(*b"STRETCH1");
const KINDS: usize = 512;
const KEPT: usize = 3;
const PARTS: usize = 512;
const BUCKETS: usize = 32;
const STRETCH: usize = 24 + 8 * PARTS;
const KIND: usize = 32 + 8 * BUCKETS + KEPT * STRETCH;
const HEADER: usize = 32;
/// Beginnings of stretches that no guest begins.
const AFTER_LOOK: u32 = 0x100;
const AFTER_WAIT: u32 = 0x101;

/// One of the longest stretches of its kind.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// Instructions.
    pub length: u32,
    /// pCPU, as the emulator counts them.
    pub cpu: u32,
    /// The first instruction of the guest's last block before it.
    pub guest: u64,
    /// The number of stretches that had ended before this one.
    pub ordinal: u32,
    /// The instructions of the stretch by function, the most first.
    pub profile: Vec<(u64, String)>,
}

/// The stretches of one kind.
#[derive(Clone, Debug)]
pub struct StretchKind {
    /// The beginning and the subject of these stretches.
    pub name: String,
    /// The number of them.
    pub count: u64,
    /// Instructions of all.
    pub total: u64,
    /// The number of stretches whose length has so many bits.
    pub histogram: [u64; BUCKETS],
    /// The longest, the very longest first.
    pub longest: Vec<Stretch>,
}

/// All that was found, the kind with the longest stretch first.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// By kind.
    pub kinds: Vec<StretchKind>,
    /// Stretches of more kinds than the plugin has room for.
    pub forgotten: u64,
}

impl Found {
    /// Stretches that were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }

    /// Returns the longest of all.
    #[must_use]
    pub fn longest(&self) -> Option<(&StretchKind, &Stretch)> {
        let kind = self.kinds.first()?;
        Some((kind, kind.longest.first()?))
    }
}

/// Numbers at offsets of the file; what is not there is 0.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn word(&self, at: usize) -> u32 {
        let word = self.0.get(at..).and_then(<[u8]>::first_chunk);
        word.map_or(0, |word| u32::from_le_bytes(*word))
    }

    fn double(&self, at: usize) -> u64 {
        let double = self.0.get(at..).and_then(<[u8]>::first_chunk);
        double.map_or(0, |double| u64::from_le_bytes(*double))
    }
}

/// Reads the file; kinds that share their most telling function are one.
pub(super) fn read(bytes: &[u8], symbols: &Symbols) -> Result<Found, String> {
    let file = Bytes(bytes);
    if file.double(0) != MAGIC || file.double(8) != (HEADER + KINDS * KIND) as u64 {
        return Err("the plugin has written something else".to_owned());
    }
    let mut kinds: BTreeMap<String, StretchKind> = BTreeMap::new();
    for number in 0..KINDS {
        let at = HEADER + number * KIND;
        if file.word(at) == 0 {
            continue;
        }
        let name = name(file.word(at + 4), file.double(at + 8));
        let kind = kinds.entry(name.clone()).or_insert_with(|| StretchKind {
            name,
            count: 0,
            total: 0,
            histogram: [0; BUCKETS],
            longest: Vec::new(),
        });
        kind.count += file.double(at + 16);
        kind.total += file.double(at + 24);
        for (bucket, sum) in kind.histogram.iter_mut().enumerate() {
            *sum += file.double(at + 32 + 8 * bucket);
        }
        let kept = (0..KEPT).map(|index| at + 32 + 8 * BUCKETS + index * STRETCH);
        kind.longest
            .extend(kept.filter_map(|place| stretch(&file, place, symbols)));
    }
    let mut kinds: Vec<StretchKind> = kinds.into_values().collect();
    for kind in &mut kinds {
        kind.longest
            .sort_by_key(|stretch| std::cmp::Reverse(stretch.length));
        kind.longest.truncate(KEPT);
    }
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.longest.first().map(|stretch| stretch.length)));
    Ok(Found {
        kinds,
        forgotten: file.double(24),
    })
}

fn stretch(file: &Bytes<'_>, at: usize, symbols: &Symbols) -> Option<Stretch> {
    let length = file.word(at);
    let parts = (file.word(at + 20) as usize).min(PARTS);
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    for part in (0..parts).map(|part| at + 24 + 8 * part) {
        let address = symbols.start() + u64::from(file.word(part));
        *functions.entry(symbols.function(address)).or_default() += u64::from(file.word(part + 4));
    }
    let mut profile: Vec<(u64, String)> = functions
        .into_iter()
        .map(|(name, count)| (count, format!("{:#}", rustc_demangle::demangle(name))))
        .collect();
    profile.sort_by(|left, right| right.cmp(left));
    (length != 0).then(|| Stretch {
        length,
        cpu: file.word(at + 4),
        guest: file.double(at + 8),
        ordinal: file.word(at + 16),
        profile,
    })
}

/// Tells how a stretch began, and the most telling function it went through.
fn name(entry: u32, tags: u64) -> String {
    let begun = match entry {
        2 => "HardFault or NMI",
        3 => "HardFault",
        4 => "MemManage",
        5 => "BusFault",
        6 => "UsageFault",
        8 => "synchronous",
        9 => "interrupt",
        10 => "FIQ",
        11 => "SError or SVC",
        12 => "synchronous, AArch32",
        13 => "interrupt, AArch32",
        14 => "FIQ, AArch32",
        15 => "SError, AArch32",
        16 => "line",
        AFTER_LOOK => "after a look",
        AFTER_WAIT => "after a wait",
        _ => "other",
    };
    let about = TAGS
        .iter()
        .enumerate()
        .find(|(bit, _)| tags >> bit & 1 != 0)
        .map_or("nothing of these", |(_, (name, _))| name);
    format!("{begun}: {about}")
}
