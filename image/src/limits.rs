// SPDX-License-Identifier: Apache-2.0
//! The limits of a system image.
//!
//! Each limit bounds a table, and with it every loop over that table on the target. Those that the kernel's
//! own tables depend on equal the constants of the arch boundary; the kernel asserts it when it is compiled.
//!
//! The checks compare records of a table pairwise at worst: the most expensive pair loop is that over
//! capabilities, `MAX_CAPABILITIES² / 2` comparisons, once, at boot.

use crate::error::Table;
use crate::layout::{
    AlternativeRecord, BoardRecord, CapabilityRecord, ChannelRecord, ControllerRecord, DomainRecord, Header,
    InterruptRecord, LoadRecord, LockRecord, LookalikeRecord, MapRecord, MemoryRecord, NicRecord,
    PartitionRecord, PayloadRecord, PcpuRecord, PortRecord, RegistersRecord, ResidentRecord, SECTION_COUNT,
    ScheduleRecord, ServedRecord, SideRecord, VcpuRecord, VirtualDeviceRecord, WatchRecord, WindowRecord,
};

use bulkhead_abi::parts::{PARTS, Part};
use bulkhead_abi::size::{TABLES, Tables, limit, own};

/// A page: what device registers of different owners are apart by.
pub const PAGE_SIZE: u64 = 4096;

/// The limits of a pCPU's schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcpuLimits {
    /// Schedules.
    pub schedules: usize,
    /// Windows of all schedules.
    pub windows: usize,
    /// Time domains.
    pub domains: usize,
}

impl PcpuLimits {
    /// Returns the limits of a class binary with tables of this size.
    #[must_use]
    pub const fn of(tables: Tables) -> Self {
        match tables {
            Tables::Small => Self::SMALL,
            Tables::Large => Self::LARGE,
        }
    }
    const SMALL: Self = Self {
        schedules: 4,
        windows: 16,
        domains: 4,
    };
    const LARGE: Self = Self {
        schedules: 8,
        windows: 64,
        domains: 16,
    };
}

/// The limits of ports and locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLimits {
    /// Ports.
    pub ports: usize,
    /// Words of 8 bytes for the messages that wait in all ports.
    pub words: usize,
    /// Locks.
    pub locks: usize,
}

impl MessageLimits {
    /// Returns the limits of a class binary with tables of this size, if the class binary has ports and
    /// locks.
    #[must_use]
    pub const fn of(tables: Tables) -> Self {
        match tables {
            Tables::Small => Self::SMALL,
            Tables::Large => Self::LARGE,
        }
    }
    const SMALL: Self = Self {
        ports: 4,
        words: 96,
        locks: 4,
    };
    const LARGE: Self = Self {
        ports: 64,
        words: 2048,
        locks: 32,
    };
}

/// Returns the limit of a table that belongs to a part: none, if this build lacks the part.
const fn of_part(part: Part, most: usize) -> usize {
    if PARTS.has(part) { most } else { 0 }
}

pub use bulkhead_abi::size::MAX_PCPUS;
/// Stretches of the board's address space in the map.
pub const MAX_MAP: usize = limit(16, 64);
/// Devices the hypervisor drives.
pub const MAX_CONTROLLERS: usize = 12;
/// Partitions a system can have.
pub const MAX_PARTITIONS: usize = own("partitions", limit(8, 32));
/// vCPUs a system can have.
pub const MAX_VCPUS: usize = own("vcpus", limit(8, 64));
/// vCPUs a partition can have.
pub const MAX_VCPUS_PER_PARTITION: usize = own("vcpus_per_partition", limit(1, 8));
/// vCPUs that can be bound to a pCPU.
pub const MAX_VCPUS_PER_PCPU: usize = limit(8, 32);
/// Mappings a system can have.
pub const MAX_MEMORY: usize = own("memory", limit(128, 512));
/// Mappings a partition can have.
pub const MAX_REGIONS_PER_PARTITION: usize = limit(16, 64);
/// Pieces of payloads to copy.
pub const MAX_LOADS: usize = own("loads", limit(64, 512));
/// Alternatives of all partitions.
pub const MAX_ALTERNATIVES: usize = MAX_PARTITIONS * MAX_ALTERNATIVES_PER_PARTITION;
/// Alternatives a partition can have to its own payloads.
pub const MAX_ALTERNATIVES_PER_PARTITION: usize = limit(2, 8);
/// Payloads.
pub const MAX_PAYLOADS: usize = own("payloads", limit(32, 256));
/// Physical interrupts that belong to partitions.
pub const MAX_INTERRUPTS: usize = own("interrupts", limit(256, 1024));
/// Virtual devices.
pub const MAX_VIRTUAL_DEVICES: usize = own("devices", limit(32, 128));
/// Windows of device registers that the hypervisor helps with.
pub const MAX_REGISTERS: usize = own("registers", limit(64, 128));
/// Capabilities.
pub const MAX_CAPABILITIES: usize = MAX_PARTITIONS * bulkhead_abi::hypercall::CAPABILITY_SLOTS;
/// Watches.
pub const MAX_WATCHES: usize = MAX_PARTITIONS * MAX_PARTITIONS;
/// Schedules a pCPU can have.
pub const MAX_SCHEDULES_PER_PCPU: usize = PcpuLimits::of(TABLES).schedules;
/// Schedules of all pCPUs.
pub const MAX_SCHEDULES: usize = MAX_PCPUS * MAX_SCHEDULES_PER_PCPU;
/// Windows of all schedules of a pCPU.
pub const MAX_WINDOWS_PER_PCPU: usize = PcpuLimits::of(TABLES).windows;
/// Windows of all schedules.
pub const MAX_WINDOWS: usize = MAX_PCPUS * MAX_WINDOWS_PER_PCPU;
/// Time domains a pCPU can have.
pub const MAX_DOMAINS_PER_PCPU: usize = PcpuLimits::of(TABLES).domains;
/// Time domains of all pCPUs.
pub const MAX_DOMAINS: usize = MAX_PCPUS * MAX_DOMAINS_PER_PCPU;
/// Stretches of code memory that belong to partitions.
pub const MAX_RESIDENTS: usize = limit(32, 128);
/// Interfaces of VMs to networks.
pub const MAX_NICS: usize = of_part(Part::Networks, limit(4, 8));
/// Ports.
pub const MAX_PORTS: usize = of_part(Part::Ports, own("ports", MessageLimits::of(TABLES).ports));
/// Locks.
pub const MAX_LOCKS: usize = of_part(Part::Locks, own("locks", MessageLimits::of(TABLES).locks));
/// Windows that partitions answer. A window is a bit of a word.
pub const MAX_SERVED: usize = of_part(Part::Services, limit(0, 32));
/// Messages that can wait in a port.
pub const MAX_PORT_DEPTH: u32 = 256;
/// Words of 8 bytes for the messages that wait in all ports.
pub const MESSAGE_WORDS: usize = of_part(Part::Ports, own("words", MessageLimits::of(TABLES).words));
/// Words for a message that waits, besides its bytes.
pub const MESSAGE_HEADER_WORDS: u32 = 3;
/// Channels.
pub const MAX_CHANNELS: usize = of_part(Part::Channels, own("channels", channel_limits(TABLES).0));
/// Sides of all channels.
pub const MAX_SIDES: usize = of_part(Part::Channels, own("sides", channel_limits(TABLES).1));
/// Places in them that look like a replaced instruction.
pub const MAX_LOOKALIKES: usize = limit(4096, 8192);
/// Nanoseconds that a budget, a period, a deadline or a frame can be at most: 1000 s, so that sums never
/// overflow.
pub const MAX_DURATION_NS: u64 = 1_000_000_000_000;

/// Bytes of a channel with a side that is mapped only while it is held. Each page is mapped and unmapped by
/// itself, with interrupts masked.
pub const MAX_HELD: u64 = 64 * 4096;
/// PCI functions of all VMs; no VM has more devices on its bus.
pub const MAX_FUNCTIONS: usize = of_part(Part::Functions, limit(0, 32));

/// Returns the channels that a system can have with tables of this size, and the sides of all of them.
#[must_use]
pub const fn channel_limits(tables: Tables) -> (usize, usize) {
    (tables.limit(8, 64), tables.limit(24, 256))
}

/// Multiple at which each table starts.
pub(crate) const TABLE_ALIGN: u64 = 8;

/// The facts that the directory can state about a table.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// The table.
    pub table: Table,
    /// Number of the part that it belongs to.
    pub part: u8,
    /// Bytes of a record.
    pub record_len: u16,
    /// The fewest records.
    pub min: u16,
    /// The most records.
    pub max: u16,
}

/// The number that stands for the core, which every system uses.
pub(crate) const CORE: u8 = 31;

impl Shape {
    /// Makes the shape of a table that is empty if the system does not use a part.
    const fn of(self, part: Part) -> Self {
        Self {
            part: part as u8,
            max: if PARTS.has(part) { self.max } else { 0 },
            ..self
        }
    }
}

/// Makes the shape of a table with at most `max` records of this type, and at least `min`.
const fn shape<R>(table: Table, min: u16, max: usize) -> Shape {
    assert!(max <= u16::MAX as usize && size_of::<R>() <= u16::MAX as usize);
    Shape {
        table,
        part: CORE,
        record_len: size_of::<R>() as u16,
        min,
        max: max as u16,
    }
}

/// The tables in the order of the directory.
pub(crate) const SHAPES: [Shape; SECTION_COUNT] = [
    shape::<BoardRecord>(Table::Board, 1, 1),
    shape::<PcpuRecord>(Table::Pcpus, 1, MAX_PCPUS),
    shape::<MapRecord>(Table::Map, 1, MAX_MAP),
    shape::<ControllerRecord>(Table::Controllers, 0, MAX_CONTROLLERS),
    shape::<PartitionRecord>(Table::Partitions, 1, MAX_PARTITIONS),
    shape::<VcpuRecord>(Table::Vcpus, 1, MAX_VCPUS),
    shape::<MemoryRecord>(Table::Memory, 0, MAX_MEMORY),
    shape::<LoadRecord>(Table::Loads, 0, MAX_LOADS),
    shape::<PayloadRecord>(Table::Payloads, 0, MAX_PAYLOADS),
    shape::<InterruptRecord>(Table::Interrupts, 0, MAX_INTERRUPTS),
    shape::<VirtualDeviceRecord>(Table::VirtualDevices, 0, MAX_VIRTUAL_DEVICES),
    shape::<CapabilityRecord>(Table::Capabilities, 0, MAX_CAPABILITIES),
    shape::<WatchRecord>(Table::Watches, 0, MAX_WATCHES),
    shape::<AlternativeRecord>(Table::Alternatives, 0, MAX_ALTERNATIVES),
    shape::<RegistersRecord>(Table::Registers, 0, MAX_REGISTERS),
    shape::<ScheduleRecord>(Table::Schedules, 0, MAX_SCHEDULES).of(Part::Arinc653),
    shape::<WindowRecord>(Table::Windows, 0, MAX_WINDOWS).of(Part::Arinc653),
    shape::<DomainRecord>(Table::Domains, 0, MAX_DOMAINS).of(Part::Domains),
    shape::<ResidentRecord>(Table::Residents, 0, MAX_RESIDENTS),
    shape::<LookalikeRecord>(Table::Lookalikes, 0, MAX_LOOKALIKES),
    shape::<NicRecord>(Table::Nics, 0, MAX_NICS).of(Part::Networks),
    shape::<PortRecord>(Table::Ports, 0, MAX_PORTS).of(Part::Ports),
    shape::<LockRecord>(Table::Locks, 0, MAX_LOCKS).of(Part::Locks),
    shape::<ChannelRecord>(Table::Channels, 0, MAX_CHANNELS).of(Part::Channels),
    shape::<SideRecord>(Table::Sides, 0, MAX_SIDES).of(Part::Channels),
    shape::<ServedRecord>(Table::Served, 0, MAX_SERVED).of(Part::Services),
];

/// Bytes that header and tables can take; nothing longer is ever hashed before it is believed.
pub const MAX_TABLES_LEN: u64 = size_of::<Header>() as u64 + longest(&SHAPES);

/// Returns the number of bytes that these tables can take.
const fn longest(mut shapes: &[Shape]) -> u64 {
    let mut sum = 0_u64;
    while let [first, rest @ ..] = shapes {
        let length = (first.max as u64).saturating_mul(first.record_len as u64);
        sum = sum.saturating_add(length).saturating_add(TABLE_ALIGN);
        shapes = rest;
    }
    sum
}
