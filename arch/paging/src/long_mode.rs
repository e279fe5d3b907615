// SPDX-License-Identifier: Apache-2.0
//! Entries of x86 long mode with 4 KiB pages: nested tables of AMD-V, and the hypervisor's own.
//!
//! All references are to AMD APM volume 2 (24593), 5.3 "Long-Mode Page Translation" and 15.25 "Nested
//! Paging". Both kinds have the same bits:
//!
//! | bits | meaning |
//! |---|---|
//! | 0 | present |
//! | 1 | writable |
//! | 2 | user: nested walks are user accesses (15.25.5), so every nested entry has it |
//! | 4 | cache disable: device registers |
//! | 5, 6 | accessed and dirty: set, so that no walk has to set them |
//! | 7 | block, at levels 1 and 2 |
//! | 51:12 | output address, or next table |
//! | 63 | no instruction fetch |

use crate::format::{Attributes, Entry, Format};
use crate::geometry::{LAST_LEVEL, PAGE_SIZE};
use bulkhead_arch_api::{HostPhys, MemoryKind, Permissions};

const PRESENT: u64 = 1;
const WRITE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const CACHE_DISABLE: u64 = 1 << 4;
const ACCESSED_AND_DIRTY: u64 = 3 << 5;
const BLOCK: u64 = 1 << 7;
const EXECUTE_NEVER: u64 = 1 << 63;
/// Bits 51:12.
const ADDRESS: u64 = (1 << 52) - PAGE_SIZE;

/// Nested tables: what a partition sees. A mapping that may be used at all can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nested {}

/// The hypervisor's own tables. Nothing in them is for a program at privilege level 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hypervisor {}

impl Format for Nested {
    fn has_blocks(level: u8) -> bool {
        level == 1 || level == 2
    }

    fn leaf(level: u8, output: HostPhys, attributes: Attributes) -> u64 {
        leaf(level, output, attributes) | USER
    }

    fn table(table: HostPhys) -> u64 {
        table_entry(table) | USER
    }

    #[inline(always)]
    fn decode(level: u8, entry: u64) -> Entry {
        decode(level, entry)
    }
}

impl Format for Hypervisor {
    fn has_blocks(level: u8) -> bool {
        level == 1 || level == 2
    }

    fn leaf(level: u8, output: HostPhys, attributes: Attributes) -> u64 {
        leaf(level, output, attributes)
    }

    fn table(table: HostPhys) -> u64 {
        table_entry(table)
    }

    fn decode(level: u8, entry: u64) -> Entry {
        decode(level, entry)
    }
}

const fn leaf(level: u8, output: HostPhys, attributes: Attributes) -> u64 {
    let Permissions { read, write, execute } = attributes.permissions;
    let is_device = matches!(attributes.kind, MemoryKind::Device);
    output.0 & ADDRESS
        | ACCESSED_AND_DIRTY
        // There is no way to allow anything but loads: such a page is not there.
        | when(read, PRESENT)
        | when(write, WRITE)
        | when(is_device, CACHE_DISABLE)
        | when(level != LAST_LEVEL, BLOCK)
        | when(!execute, EXECUTE_NEVER)
}

const fn table_entry(table: HostPhys) -> u64 {
    table.0 & ADDRESS | ACCESSED_AND_DIRTY & 1 << 5 | WRITE | PRESENT
}

/// Decodes an entry. One that is not present leads to memory that may not be used, if it leads anywhere.
#[inline(always)]
fn decode(level: u8, entry: u64) -> Entry {
    let address = HostPhys(entry & ADDRESS);
    if entry == 0 {
        return Entry::Invalid;
    }
    if entry & PRESENT != 0 && level != LAST_LEVEL && entry & BLOCK == 0 {
        return Entry::Table(address);
    }
    let permissions = Permissions {
        read: entry & PRESENT != 0,
        write: entry & WRITE != 0,
        execute: entry & EXECUTE_NEVER == 0,
    };
    let kind = if entry & CACHE_DISABLE == 0 {
        MemoryKind::Ram
    } else {
        MemoryKind::Device
    };
    Entry::Leaf(address, Attributes { permissions, kind })
}

const fn when(condition: bool, bits: u64) -> u64 {
    if condition { bits } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::{Hypervisor, Nested};
    use crate::{Attributes, Entry, Format};
    use bulkhead_arch_api::{HostPhys, MemoryKind, Permissions};

    fn attributes(bits: u8, kind: MemoryKind) -> Attributes {
        let permissions = Permissions {
            read: bits & 1 != 0,
            write: bits & 2 != 0,
            execute: bits & 4 != 0,
        };
        Attributes { permissions, kind }
    }

    #[test]
    fn entries_are_those_of_the_manual() {
        let ram = attributes(7, MemoryKind::Ram);
        assert_eq!(Nested::leaf(3, HostPhys(0x1000), ram), 0x1067);
        assert_eq!(Nested::leaf(2, HostPhys(0x20_0000), ram), 0x20_00E7);
        assert_eq!(Hypervisor::leaf(3, HostPhys(0x1000), ram), 0x1063);
        let registers = attributes(3, MemoryKind::Device);
        assert_eq!(
            Hypervisor::leaf(3, HostPhys(0xFEE0_0000), registers),
            0x8000_0000_FEE0_0073
        );
        assert_eq!(Nested::table(HostPhys(0x7000)), 0x7027);
        assert_eq!(Hypervisor::table(HostPhys(0x7000)), 0x7023);
        let nothing = attributes(0, MemoryKind::Ram);
        assert_eq!(Nested::leaf(3, HostPhys(0x1000), nothing) & 1, 0, "not present");
    }

    #[test]
    fn decode_reverses_leaf_and_table() {
        for bits in 0..8 {
            for kind in [MemoryKind::Ram, MemoryKind::Device] {
                for level in 1..=3 {
                    let (output, wanted) = (HostPhys(0x40_0000_0000), attributes(bits, kind));
                    let entry = Nested::leaf(level, output, wanted);
                    assert_eq!(Nested::decode(level, entry), Entry::Leaf(output, wanted));
                    let entry = Hypervisor::leaf(level, output, wanted);
                    assert_eq!(Hypervisor::decode(level, entry), Entry::Leaf(output, wanted));
                }
            }
        }
        for level in 0..3 {
            let table = Nested::table(HostPhys(0x5000));
            assert_eq!(Nested::decode(level, table), Entry::Table(HostPhys(0x5000)));
            assert_eq!(Nested::decode(level, 0), Entry::Invalid);
        }
    }
}
