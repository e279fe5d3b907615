// SPDX-License-Identifier: Apache-2.0
//! Entries of the Armv8-A VMSA with the 4 KiB granule: stage 2 and the EL2 stage 1.
//!
//! All references are to Arm DDI 0487, chapter D8, by the title of the section, because its numbers change
//! with every issue. "VMSAv8-64 descriptor formats", bits of both stages:
//!
//! | bits | meaning |
//! |---|---|
//! | 0 | valid |
//! | 1 | table (levels 0 to 2) or page (level 3); 0 is a block |
//! | 9:8 | shareability: 3 is inner |
//! | 10 | access flag: set, so that no access ever faults to set it |
//! | 47:12 | output address, or next table |
//!
//! Everything is inner shareable: all pCPUs of a system are in one inner shareable domain, and device memory
//! is outer shareable with any value of the field ("Stage 2 Shareability attributes").

use crate::format::{Attributes, Entry, Format};
use crate::geometry::{Geometry, LAST_LEVEL, PAGE_SIZE};
use bulkhead_arch_api::{HostPhys, MemoryKind, Permissions};

const VALID: u64 = 1;
const TABLE_OR_PAGE: u64 = 1 << 1;
const INNER_SHAREABLE: u64 = 3 << 8;
const ACCESSED: u64 = 1 << 10;
/// Bit 54 at either stage: no instruction fetch (stage 2: the upper of two bits; the lower one belongs to
/// FEAT_XNX and stays 0).
const EXECUTE_NEVER: u64 = 1 << 54;
/// Bits 47:12.
const ADDRESS: u64 = (1 << 48) - PAGE_SIZE;

/// Stage 2: what a partition sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage2 {}

impl Stage2 {
    /// S2AP[0]: loads ("Stage 2 data accesses").
    const READ: u64 = 1 << 6;
    /// S2AP[1]: stores.
    const WRITE: u64 = 1 << 7;
    /// MemAttr[3:0] with HCR_EL2.FWB clear ("Stage 2 memory region type and Cacheability attributes"):
    /// normal, write-back both inner and outer.
    const NORMAL: u64 = 0b1111 << 2;
    /// MemAttr: Device-nGnRE.
    const DEVICE: u64 = 0b0001 << 2;
    /// MemAttr[3:2]: zero for every kind of device memory.
    const KIND: u64 = 0b1100 << 2;

    /// Returns VTCR_EL2.T0SZ (bits 5:0) and SL0 (7:6) for a tree of this geometry with the 4 KiB granule (TG0
    /// = 0).
    ///
    /// T0SZ is 64 less the input size. SL0 counts the first level from below: 0 for level 2, 1 for level 1, 2
    /// for level 0; the number of concatenated tables follows from both. The input size must not exceed the
    /// CPU's physical address size (ID_AA64MMFR0_EL1.PARange). For a Cortex-A53 or an A57 limited to 40 bits
    /// that is a level-1 root of two tables.
    #[must_use]
    pub const fn vtcr(geometry: Geometry) -> u64 {
        let size = 64_u8.saturating_sub(geometry.input_bits()) as u64;
        let start = 2_u8.saturating_sub(geometry.start_level()) as u64;
        size | start << 6
    }
}

impl Format for Stage2 {
    fn has_blocks(level: u8) -> bool {
        has_blocks(level)
    }

    fn leaf(level: u8, output: HostPhys, attributes: Attributes) -> u64 {
        let Permissions { read, write, execute } = attributes.permissions;
        let kind = match attributes.kind {
            MemoryKind::Ram => Self::NORMAL,
            MemoryKind::Device => Self::DEVICE,
        };
        leaf(level, output)
            | kind
            | when(read, Self::READ)
            | when(write, Self::WRITE)
            | when(!execute, EXECUTE_NEVER)
    }

    fn table(table: HostPhys) -> u64 {
        table_entry(table)
    }

    #[inline(always)]
    fn decode(level: u8, entry: u64) -> Entry {
        decode(level, entry, |entry| Attributes {
            permissions: Permissions {
                read: entry & Self::READ != 0,
                write: entry & Self::WRITE != 0,
                execute: entry & EXECUTE_NEVER == 0,
            },
            kind: if entry & Self::KIND == 0 {
                MemoryKind::Device
            } else {
                MemoryKind::Ram
            },
        })
    }
}

/// Stage 1 of the EL2 translation regime without VHE: what the hypervisor itself sees.
///
/// It has one privilege level: `AP[1]` is RES1 and there is no way to withhold loads ("Stage 1 data
/// accesses"), so every mapping can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HypervisorStage1 {}

impl HypervisorStage1 {
    /// AP[1], RES1.
    const ONE_PRIVILEGE: u64 = 1 << 6;
    /// AP[2]: no stores.
    const READ_ONLY: u64 = 1 << 7;
    /// AttrIndx (bits 4:2) of device memory; RAM has 0.
    const DEVICE: u64 = 1 << 2;

    /// MAIR_EL2 for the indices above: 0 is normal, write-back, allocating; 1 is Device-nGnRE.
    pub const MAIR: u64 = 0x04FF;
}

impl Format for HypervisorStage1 {
    fn has_blocks(level: u8) -> bool {
        has_blocks(level)
    }

    fn leaf(level: u8, output: HostPhys, attributes: Attributes) -> u64 {
        let Permissions { write, execute, .. } = attributes.permissions;
        leaf(level, output)
            | Self::ONE_PRIVILEGE
            | when(attributes.kind == MemoryKind::Device, Self::DEVICE)
            | when(!write, Self::READ_ONLY)
            | when(!execute, EXECUTE_NEVER)
    }

    fn table(table: HostPhys) -> u64 {
        table_entry(table)
    }

    fn decode(level: u8, entry: u64) -> Entry {
        decode(level, entry, |entry| Attributes {
            permissions: Permissions {
                read: true,
                write: entry & Self::READ_ONLY == 0,
                execute: entry & EXECUTE_NEVER == 0,
            },
            kind: if entry & Self::DEVICE == 0 {
                MemoryKind::Ram
            } else {
                MemoryKind::Device
            },
        })
    }
}

/// Blocks of 1 GiB and 2 MiB; level 0 has none with this granule.
const fn has_blocks(level: u8) -> bool {
    level == 1 || level == 2
}

const fn leaf(level: u8, output: HostPhys) -> u64 {
    output.0 & ADDRESS | ACCESSED | INNER_SHAREABLE | VALID | when(level == LAST_LEVEL, TABLE_OR_PAGE)
}

const fn table_entry(table: HostPhys) -> u64 {
    table.0 & ADDRESS | TABLE_OR_PAGE | VALID
}

/// Decodes an entry. At the last level a page has bit 1 set, and an entry without it is invalid.
#[inline(always)]
fn decode(level: u8, entry: u64, attributes: impl Fn(u64) -> Attributes) -> Entry {
    let address = HostPhys(entry & ADDRESS);
    match (
        entry & VALID != 0,
        entry & TABLE_OR_PAGE != 0,
        level == LAST_LEVEL,
    ) {
        (false, ..) | (true, false, true) => Entry::Invalid,
        (true, true, false) => Entry::Table(address),
        (true, ..) => Entry::Leaf(address, attributes(entry)),
    }
}

const fn when(condition: bool, bits: u64) -> u64 {
    if condition { bits } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::{HypervisorStage1, Stage2};
    use crate::{Attributes, Entry, Format, Geometry};
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
    fn stage_2_entries_are_those_of_the_manual() {
        let ram = attributes(7, MemoryKind::Ram);
        assert_eq!(Stage2::leaf(3, HostPhys(0x4000_0000), ram), 0x4000_07FF);
        assert_eq!(Stage2::leaf(2, HostPhys(0x4000_0000), ram), 0x4000_07FD);
        let registers = attributes(3, MemoryKind::Device);
        assert_eq!(
            Stage2::leaf(3, HostPhys(0x0901_0000), registers),
            0x0040_0000_0901_07C7
        );
        let code = attributes(5, MemoryKind::Ram);
        assert_eq!(Stage2::leaf(3, HostPhys(0x1000), code), 0x177F);
        assert_eq!(Stage2::table(HostPhys(0x7000)), 0x7003);
    }

    #[test]
    fn stage_1_entries_are_those_of_the_manual() {
        let text = attributes(5, MemoryKind::Ram);
        assert_eq!(HypervisorStage1::leaf(3, HostPhys(0x1000), text), 0x17C3);
        let data = attributes(3, MemoryKind::Ram);
        assert_eq!(
            HypervisorStage1::leaf(1, HostPhys(0x4000_0000), data),
            0x0040_0000_4000_0741
        );
        let registers = attributes(3, MemoryKind::Device);
        assert_eq!(
            HypervisorStage1::leaf(3, HostPhys(0x0900_0000), registers),
            0x0040_0000_0900_0747
        );
    }

    #[test]
    fn decode_reverses_leaf_and_table() {
        for bits in 0..8 {
            for kind in [MemoryKind::Ram, MemoryKind::Device] {
                for level in 1..=3 {
                    let (output, wanted) = (HostPhys(0x40_0000_0000), attributes(bits, kind));
                    let entry = Stage2::leaf(level, output, wanted);
                    assert_eq!(Stage2::decode(level, entry), Entry::Leaf(output, wanted));
                    let readable = attributes(bits | 1, kind);
                    let entry = HypervisorStage1::leaf(level, output, wanted);
                    assert_eq!(
                        HypervisorStage1::decode(level, entry),
                        Entry::Leaf(output, readable)
                    );
                }
            }
        }
        for level in 0..3 {
            assert_eq!(
                Stage2::decode(level, Stage2::table(HostPhys(0x5000))),
                Entry::Table(HostPhys(0x5000))
            );
            assert_eq!(Stage2::decode(level, 0), Entry::Invalid);
        }
        assert_eq!(
            Stage2::decode(3, 0x1001),
            Entry::Invalid,
            "a block descriptor at the last level is reserved"
        );
    }

    #[test]
    fn vtcr_fields_follow_from_the_geometry() {
        let vtcr = |bits| Stage2::vtcr(Geometry::concatenated_root(bits).unwrap());
        assert_eq!(vtcr(40), 24 | 1 << 6);
        assert_eq!(vtcr(39), 25 | 1 << 6);
        assert_eq!(vtcr(32), 32);
        assert_eq!(vtcr(48), 16 | 2 << 6);
    }
}
