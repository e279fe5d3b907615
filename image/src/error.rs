// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with a system image.
//!
//! Plain data, so that the target can keep it in a crash record and the host tool can say more about it
//! than the short sentence that fits on a lockdown line.

use crate::layout::Name;
use core::fmt;

/// Why an image is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// Fewer bytes than the image says it has.
    Truncated {
        /// Bytes there are.
        found: u64,
        /// Bytes there should be.
        expected: u64,
    },
    /// The bytes are all there, but what should be the last of them is something else: the file that
    /// was loaded was shorter.
    NoEnd {
        /// Bytes there should be.
        expected: u64,
    },
    /// More bytes than the image says it has.
    TooLong {
        /// Bytes there are.
        found: u64,
        /// Bytes there should be.
        expected: u64,
    },
    /// The memory it lies in does not start at a multiple of 8.
    Misaligned,
    /// It does not start like a system image.
    NotAnImage,
    /// A revision of the layout that this reader does not know.
    Format {
        /// The revision.
        found: u32,
    },
    /// For a board of another class.
    Class {
        /// The class it is for.
        found: u32,
        /// The class of this hypervisor.
        expected: u32,
    },
    /// The lengths in the header cannot be.
    Lengths,
    /// The tables are not what was built.
    TablesDigest,
    /// A payload is not what was built.
    PayloadDigest {
        /// Index of the payload.
        index: u32,
        /// Its name.
        name: Name,
    },
    /// Bytes in code memory are not what was built.
    ResidentDigest {
        /// Index of the record.
        index: u32,
        /// Its name.
        name: Name,
    },
    /// The bytes that fill up to the start of a payload, or to the end of the image, are not zero.
    Padding {
        /// Index of the payload; the number of payloads for the end of the image.
        index: u32,
    },
    /// A table does not start where the one before it ends.
    Misplaced(Table),
    /// A table has too many records, or none where there must be some.
    Count {
        /// The table.
        table: Table,
        /// Its records.
        found: u32,
    },
    /// A record is wrong.
    Record {
        /// Its table.
        table: Table,
        /// Its index.
        index: u32,
        /// What is wrong.
        fault: Fault,
    },
}

/// A table of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// The board.
    Board,
    /// Physical CPUs.
    Pcpus,
    /// The board's address space.
    Map,
    /// Devices the hypervisor drives.
    Controllers,
    /// Partitions.
    Partitions,
    /// Virtual CPUs.
    Vcpus,
    /// Mappings.
    Memory,
    /// Pieces of payloads.
    Loads,
    /// Payloads.
    Payloads,
    /// Interrupts.
    Interrupts,
    /// Virtual devices.
    VirtualDevices,
    /// Capabilities.
    Capabilities,
    /// Watches.
    Watches,
    /// Alternatives.
    Alternatives,
    /// Windows of device registers that the hypervisor helps with.
    Registers,
    /// Schedules.
    Schedules,
    /// Windows of schedules.
    Windows,
    /// Time domains.
    Domains,
    /// Stretches of code memory.
    Residents,
    /// Replaced instructions.
    Sites,
}

impl Table {
    /// What one record of the table is called.
    #[must_use]
    pub const fn record(self) -> &'static str {
        match self {
            Self::Board => "board",
            Self::Pcpus => "pCPU",
            Self::Map => "map entry",
            Self::Controllers => "controller",
            Self::Partitions => "partition",
            Self::Vcpus => "vCPU",
            Self::Memory => "mapping",
            Self::Loads => "load",
            Self::Payloads => "payload",
            Self::Interrupts => "interrupt",
            Self::VirtualDevices => "virtual device",
            Self::Capabilities => "capability",
            Self::Watches => "watch",
            Self::Alternatives => "alternative",
            Self::Registers => "register window",
            Self::Schedules => "schedule",
            Self::Windows => "window",
            Self::Domains => "domain",
            Self::Residents => "resident",
            Self::Sites => "site",
        }
    }
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A reserved field is not zero.
    Reserved,
    /// The name is empty, not UTF-8, has control characters, or belongs to the hypervisor.
    BadName,
    /// Another record, this one, has the same name or number.
    SameAs(u32),
    /// A number that stands for no kind, role, policy or trigger.
    UnknownKind,
    /// A bit without a meaning, or bits that exclude each other.
    BadFlags,
    /// No health action, or one for a class that does not exist.
    UnknownAction,
    /// Rights that do not exist, or none.
    BadRights,
    /// An index that no record of that table has.
    NoSuch(Table),
    /// Not a multiple of the page size (or of what else the field needs).
    Unaligned,
    /// No bytes.
    Empty,
    /// Beyond the end of the address space.
    Overflow,
    /// Shares addresses with this record of that table.
    Overlaps(Table, u32),
    /// Not within one stretch of the board's RAM.
    OutsideRam,
    /// Device registers where the board has RAM.
    InRam,
    /// In the hypervisor's own memory.
    InHypervisor,
    /// Not in the hypervisor's own memory, where it has to be.
    OutsideHypervisor,
    /// The vCPUs of the partitions (or the windows of the schedules, or the schedules or domains of the pCPUs) are not
    /// consecutive, or not as many as there are.
    NotConsecutive,
    /// More than the limit, or fewer than one.
    BadCount,
    /// Outside the range that the field has.
    OutOfRange,
    /// The policy can run one vCPU only.
    NotAlone,
    /// The policy of the pCPU has no such thing, or needs what is not there.
    WrongPolicy,
    /// The partition has no vCPU on the pCPU.
    NotBound,
    /// The window ends behind its frame.
    OutsideFrame,
    /// Time can stand still for a partition with one vCPU only.
    FrozenShared,
    /// Something that only a VM can have.
    NotForTask,
    /// Not within one RAM mapping of the partition.
    OutsideMemory,
    /// Not within the payload.
    OutsidePayload,
    /// The entry is not in executable memory of the partition.
    BadEntry,
    /// The argument is not in readable memory of the partition.
    BadArgument,
    /// The stack is not in writable memory of the partition, or a VM has one.
    BadStack,
    /// The interrupt line belongs to this record of that table already.
    LineTaken(Table, u32),
    /// The window is too small for the device.
    WindowTooSmall,
    /// Not within one stretch of the board's code memory.
    OutsideCode,
    /// Another address than on the bus, and the class translates none.
    NotIdentical,
    /// Not behind the record before it.
    NotAscending,
}

impl Fault {
    const fn text(self) -> &'static str {
        match self {
            Self::Reserved => "reserved field not zero",
            Self::BadName => "bad name",
            Self::SameAs(_) => "same as record",
            Self::UnknownKind => "unknown kind",
            Self::BadFlags => "bad flags",
            Self::UnknownAction => "unknown health action",
            Self::BadRights => "bad rights",
            Self::NoSuch(_) => "no such",
            Self::Unaligned => "not aligned",
            Self::Empty => "empty",
            Self::Overflow => "leaves the address space",
            Self::Overlaps(..) => "overlaps",
            Self::OutsideRam => "outside RAM",
            Self::InRam => "device in RAM",
            Self::InHypervisor => "in the hypervisor's memory",
            Self::OutsideHypervisor => "outside the hypervisor's memory",
            Self::NotConsecutive => "not consecutive",
            Self::BadCount => "bad count",
            Self::OutOfRange => "out of range",
            Self::NotAlone => "policy runs one vCPU only",
            Self::WrongPolicy => "not for the pCPU's policy",
            Self::NotBound => "partition has no vCPU on the pCPU",
            Self::OutsideFrame => "window behind the frame",
            Self::FrozenShared => "frozen time with several vCPUs",
            Self::NotForTask => "not for a task",
            Self::OutsideMemory => "outside the partition's RAM",
            Self::OutsidePayload => "outside the payload",
            Self::BadEntry => "entry not executable",
            Self::BadArgument => "argument not readable",
            Self::BadStack => "bad stack",
            Self::LineTaken(..) => "line taken by",
            Self::WindowTooSmall => "window too small",
            Self::OutsideCode => "outside code memory",
            Self::NotIdentical => "not at its bus address",
            Self::NotAscending => "not in ascending order",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())?;
        match *self {
            Self::SameAs(index) => write!(f, " {index}"),
            Self::NoSuch(table) => write!(f, " {}", table.record()),
            Self::Overlaps(table, index) | Self::LineTaken(table, index) => {
                write!(f, " {} {index}", table.record())
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { found, expected } => write!(f, "image truncated: {found} of {expected} bytes"),
            Self::NoEnd { expected } => {
                write!(f, "image truncated: end mark missing, {expected} bytes expected")
            }
            Self::TooLong { found, expected } => {
                write!(f, "image too long: {found} bytes, {expected} expected")
            }
            Self::Misaligned => f.write_str("not at a multiple of 8 bytes"),
            Self::NotAnImage => f.write_str("not a system image"),
            Self::Format { found } => {
                write!(
                    f,
                    "image format {found}, this hypervisor reads {}",
                    crate::layout::FORMAT
                )
            }
            Self::Class { found, expected } => {
                write!(f, "image for class {found}, this hypervisor is {expected}")
            }
            Self::Lengths => f.write_str("header: bad lengths"),
            Self::TablesDigest => f.write_str("tables: digest mismatch"),
            Self::PayloadDigest { index, name } => write!(f, "payload {index} \"{name}\": digest mismatch"),
            Self::ResidentDigest { index, name } => write!(f, "resident {index} \"{name}\": digest mismatch"),
            Self::Padding { index } => write!(f, "padding before payload {index} not zero"),
            Self::Misplaced(table) => write!(f, "{} table: misplaced", table.record()),
            Self::Count { table, found } => write!(f, "{} table: {found} records", table.record()),
            Self::Record { table, index, fault } => write!(f, "{} {index}: {fault}", table.record()),
        }
    }
}

impl core::error::Error for ImageError {}
