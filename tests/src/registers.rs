// SPDX-License-Identifier: Apache-2.0
//! Compares the system registers that trap with the table of the documentation.
//!
//! A row of the table names registers, their encoding, and how many of them trap when they are read and when
//! they are written, on the CPU of the test. Each field of an encoding is a number or a range `A-B`. A
//! register that traps belongs to the first row that it fits. So a register that begins to trap and one that
//! ends to trap both change a count, or fit no row.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter, Write};
use std::ops::RangeInclusive;

/// The page with the table.
pub(crate) const PUBLISHED: &str = include_str!("../../docs/aarch64.md");
/// The lines around the table.
const BEGIN: &str = "<!-- begin system registers that trap -->";
const END: &str = "<!-- end system registers that trap -->";

/// An access to a system register: op0, op1, CRn, CRm, op2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Access {
    name: [u8; 5],
    is_read: bool,
}

impl Access {
    /// Reads a syndrome of exception class 0x18 (Arm DDI 0487 D19.2.37).
    pub(crate) fn of(syndrome: u32) -> Self {
        let field = |at: u32, mask: u32| (syndrome >> at & mask) as u8;
        Self {
            name: [
                field(20, 3),
                field(14, 7),
                field(10, 15),
                field(1, 15),
                field(17, 7),
            ],
            is_read: syndrome & 1 == 1,
        }
    }
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [op0, op1, crn, crm, op2] = self.name;
        let what = if self.is_read { "a read" } else { "a write" };
        write!(f, "{what} of {op0} {op1} {crn} {crm} {op2}")
    }
}

/// A row of the table.
struct Row<'a> {
    names: &'a str,
    encoding: Vec<RangeInclusive<u8>>,
    reads: usize,
    writes: usize,
}

impl<'a> Row<'a> {
    /// Reads `| names | encoding | reads | writes | ...`; nothing for the head of the table.
    fn read(line: &'a str) -> Option<Self> {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let names = cells.next()?;
        let encoding: Option<Vec<_>> = cells.next()?.split(' ').map(field).collect();
        Some(Self {
            names,
            encoding: encoding?,
            reads: cells.next()?.parse().ok()?,
            writes: cells.next()?.parse().ok()?,
        })
    }

    fn fits(&self, access: &Access) -> bool {
        let mut fields = self.encoding.iter().zip(access.name);
        self.encoding.len() == access.name.len() && fields.all(|(range, field)| range.contains(&field))
    }
}

/// Reads a number or a range.
fn field(text: &str) -> Option<RangeInclusive<u8>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

/// Describes every difference between the accesses that trapped and the table of `page`. `seen` has `None`
/// for a trapped instruction that is no access to a register of AArch64 state.
pub(crate) fn difference(seen: &BTreeSet<Option<Access>>, page: &str) -> Option<String> {
    let Some((table, _)) = page.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)) else {
        return Some("the documentation has no table of registers that trap".to_owned());
    };
    let rows: Vec<Row<'_>> = table.lines().filter_map(Row::read).collect();
    let mut found = vec![(0, 0); rows.len()];
    let mut text = String::new();
    for access in seen {
        let row = access.and_then(|access| Some((access, rows.iter().position(|row| row.fits(&access))?)));
        match (access, row) {
            (_, Some((access, row))) if access.is_read => found[row].0 += 1,
            (_, Some((_, row))) => found[row].1 += 1,
            (Some(access), None) => {
                let _ = write!(text, "\n    {access} traps, and is not published");
            }
            (None, None) => text.push_str("\n    an instruction trapped that is none of AArch64's registers"),
        }
    }
    for (row, (reads, writes)) in rows.iter().zip(found) {
        if (row.reads, row.writes) != (reads, writes) {
            let (names, published) = (row.names, (row.reads, row.writes));
            let _ = write!(
                text,
                "\n    {names}: {reads} reads and {writes} writes trap, {published:?} are published"
            );
        }
    }
    (!text.is_empty()).then(|| format!("the registers that trap are not the published ones:{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
<!-- begin system registers that trap -->
| registers | encoding | reads | writes | answered |
|---|---|---:|---:|---|
| ACTLR_EL1 | 3 0 1 0 1 | 1 | 1 | so |
| comparators | 2 0 0 0-15 4-7 | 0 | 2 | so |
<!-- end system registers that trap -->
";

    fn seen(accesses: &[([u8; 5], bool)]) -> BTreeSet<Option<Access>> {
        let access = |(name, is_read): &([u8; 5], bool)| {
            Some(Access {
                name: *name,
                is_read: *is_read,
            })
        };
        accesses.iter().map(access).collect()
    }

    #[test]
    fn a_syndrome_names_register_and_direction() {
        // MRS x2, ACTLR_EL1 and MSR OSLAR_EL1, x2.
        assert_eq!(Access::of(0x6232_0441).to_string(), "a read of 3 0 1 0 1");
        assert_eq!(Access::of(0x6228_0440).to_string(), "a write of 2 0 1 0 4");
    }

    #[test]
    fn a_register_too_many_or_too_few_is_a_difference() {
        let all = [
            ([3, 0, 1, 0, 1], true),
            ([3, 0, 1, 0, 1], false),
            ([2, 0, 0, 0, 4], false),
            ([2, 0, 0, 15, 7], false),
        ];
        assert_eq!(difference(&seen(&all), PAGE), None);
        assert!(difference(&seen(&all[1..]), PAGE).is_some_and(|why| why.contains("ACTLR_EL1: 0 reads")));
        assert!(
            difference(&seen(&all[..3]), PAGE).is_some_and(|why| why.contains("comparators: 0 reads and 1 "))
        );
        let more = [&all[..], &[([3, 0, 2, 0, 0], true)]].concat();
        assert!(difference(&seen(&more), PAGE).is_some_and(|why| why.contains("a read of 3 0 2 0 0 traps")));
        let mut other = seen(&all);
        other.insert(None);
        assert!(difference(&other, PAGE).is_some_and(|why| why.contains("none of AArch64")));
        assert!(difference(&seen(&all), "").is_some());
    }
}
