// SPDX-License-Identifier: Apache-2.0
//! The faults that a system image can have.
//!
//! Plain data, so that the target can keep it in a crash record and the host tool can say more about it
//! than the short sentence that fits on a lockdown line.

use crate::layout::Name;
use crate::trust::Refused;
use Phrase::{Byte, Number, Text};
use bulkhead_abi::parts::{PARTS, Part};
use core::fmt::{self, Write};

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
    /// For a hypervisor with a part that this one lacks. Records of a part that the image does not name are
    /// refused by their own rules.
    Lacks {
        /// The name of the first such part.
        part: &'static str,
    },
    /// It lies elsewhere than where it was built to lie: it was built for a class binary of another size.
    Elsewhere,
    /// The lengths in the header cannot be.
    Lengths,
    /// The tables are not what was built.
    TablesDigest,
    /// The image is not damaged, but the hypervisor has keys, and does not run it.
    Refused(Refused),
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
        /// The fault.
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
    /// Places that look like a replaced instruction.
    Lookalikes,
    /// Interfaces to networks.
    Nics,
    /// Ports.
    Ports,
    /// Locks.
    Locks,
    /// Channels.
    Channels,
    /// Sides of channels.
    Sides,
    /// Windows that partitions answer.
    Served,
}

impl Table {
    /// Returns the name of one record of the table.
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
            Self::Lookalikes => "lookalike",
            Self::Nics => "network interface",
            Self::Ports => "port",
            Self::Locks => "lock",
            Self::Channels => "channel",
            Self::Sides => "side",
            Self::Served => "served window",
        }
    }
}

/// A fault of a record. It has four bytes, so that each rule returns it in a register: an index has 16 bits,
/// since no table has more records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A reserved field is not zero.
    Reserved,
    /// The name is empty, not UTF-8, has control characters, or belongs to the hypervisor.
    BadName,
    /// Another record, this one, has the same name or number.
    SameAs(u16),
    /// A number that stands for no kind, role, policy or trigger.
    UnknownKind,
    /// A bit without a meaning, or of a part that the image does not name, or bits that exclude each other.
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
    Overlaps(Table, u16),
    /// Not within one stretch of the board's RAM.
    OutsideRam,
    /// Device registers where the board has RAM.
    InRam,
    /// In the hypervisor's own memory.
    InHypervisor,
    /// Not in the hypervisor's own memory, where it has to be.
    OutsideHypervisor,
    /// The vCPUs or capabilities of the partitions (or the windows of the schedules, or the schedules or
    /// domains of the pCPUs) are not consecutive, or not as many as there are.
    NotConsecutive,
    /// More than the limit, or fewer than one.
    BadCount,
    /// Outside the range that the field has, or of a part that the image does not name.
    OutOfRange,
    /// The policy can run one vCPU only.
    NotAlone,
    /// The policy of the pCPU has no such thing, or needs what is not there.
    WrongPolicy,
    /// The partition has no vCPU on the pCPU.
    NotBound,
    /// The window ends after its frame.
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
    LineTaken(Table, u16),
    /// The window is too small for the device.
    WindowTooSmall,
    /// Not within one stretch of the board's code memory.
    OutsideCode,
    /// Another address than on the bus, and the class translates none.
    NotIdentical,
    /// Not after the record before it.
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

/// A piece of the sentence that says what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phrase<'a> {
    /// A letter of the words between the facts.
    Byte(u8),
    /// As it is.
    Text(&'a str),
    /// In decimal.
    Number(u64),
}

impl Fault {
    /// Writes the sentence, piece by piece.
    pub fn describe(self, part: &mut dyn FnMut(Phrase<'_>)) {
        part(Text(self.text()));
        let (table, index) = match self {
            Self::SameAs(index) => (None, Some(index)),
            Self::NoSuch(table) => (Some(table), None),
            Self::Overlaps(table, index) | Self::LineTaken(table, index) => (Some(table), Some(index)),
            _ => return,
        };
        if let Some(table) = table {
            part(Text(" "));
            part(Text(table.record()));
        }
        if let Some(index) = index {
            part(Text(" "));
            part(Number(index.into()));
        }
    }
}

impl ImageError {
    /// Writes the sentence, piece by piece: the target has no use for [`core::fmt`] but this, and that is a
    /// lot of code.
    pub fn describe(&self, part: &mut dyn FnMut(Phrase<'_>)) {
        let (words, facts) = self.sentence();
        // Bytes and no slices: that is less code, and the hypervisor writes one such sentence in its life.
        let mut facts = facts.iter();
        for byte in words.bytes() {
            part(match byte {
                FACT => *facts.next().unwrap_or(&NOTHING),
                _ => Byte(byte),
            });
        }
        if let Self::Record { fault, .. } = self {
            fault.describe(part);
        }
    }

    /// Returns the words, with [`FACT`] in the place of each fact, and the facts.
    fn sentence(&self) -> (&'static str, [Phrase<'_>; 2]) {
        let name = |name| Text(Name::text(name).unwrap_or("?"));
        match *self {
            Self::Truncated { found, expected } => {
                ("image truncated: @ of @ bytes", [Number(found), Number(expected)])
            }
            Self::NoEnd { expected } => (
                "image truncated: end mark missing, @ bytes expected",
                [Number(expected), NOTHING],
            ),
            Self::TooLong { found, expected } => (
                "image too long: @ bytes, @ expected",
                [Number(found), Number(expected)],
            ),
            Self::Misaligned => ("not at a multiple of 8 bytes", NOTHINGS),
            Self::NotAnImage => ("not a system image", NOTHINGS),
            Self::Format { found } => (
                "image format @, this hypervisor reads @",
                [Number(found.into()), Number(crate::layout::FORMAT.into())],
            ),
            Self::Class { found, expected } => (
                "image for class @, this hypervisor is @",
                [Number(found.into()), Number(expected.into())],
            ),
            Self::Lacks { part } => ("lacking part @", [Text(part), NOTHING]),
            Self::Elsewhere => ("built for another class binary", NOTHINGS),
            Self::Lengths => ("header: bad lengths", NOTHINGS),
            Self::TablesDigest => ("tables: digest mismatch", NOTHINGS),
            // Only a class binary with keys refuses, and only it has the words.
            Self::Refused(why) if PARTS.has(Part::Signature) => why.sentence(),
            Self::Refused(_) => ("refused", NOTHINGS),
            Self::PayloadDigest { index, name: ref own } => (
                "payload @ \"@\": digest mismatch",
                [Number(index.into()), name(own)],
            ),
            Self::ResidentDigest { index, name: ref own } => (
                "resident @ \"@\": digest mismatch",
                [Number(index.into()), name(own)],
            ),
            Self::Padding { index } => (
                "padding before payload @ not zero",
                [Number(index.into()), NOTHING],
            ),
            Self::Misplaced(table) => ("@ table: misplaced", [Text(table.record()), NOTHING]),
            Self::Count { table, found } => {
                ("@ table: @ records", [Text(table.record()), Number(found.into())])
            }
            Self::Record { table, index, .. } => ("@ @: ", [Text(table.record()), Number(index.into())]),
        }
    }
}

impl Refused {
    /// Does the work of [`ImageError::sentence`].
    fn sentence(self) -> (&'static str, [Phrase<'static>; 2]) {
        match self {
            Self::NoKey => ("this hypervisor has no key", NOTHINGS),
            Self::Unsigned => ("image not signed", NOTHINGS),
            Self::NotOurs => ("image signed by no key of this hypervisor", NOTHINGS),
            Self::Outdated { found, least } => (
                "image of version @, this hypervisor runs version @ or later",
                [Number(found), Number(least)],
            ),
            Self::OtherBinary => (
                "image signed for another class binary, or this one is damaged",
                NOTHINGS,
            ),
        }
    }
}

/// The place of a fact in a sentence.
const FACT: u8 = b'@';
/// No fact.
const NOTHING: Phrase<'static> = Text("");
const NOTHINGS: [Phrase<'static>; 2] = [NOTHING; 2];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, |part| self.describe(part))
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, |part| self.describe(part))
    }
}

fn display(f: &mut fmt::Formatter<'_>, describe: impl FnOnce(&mut dyn FnMut(Phrase<'_>))) -> fmt::Result {
    let mut result = Ok(());
    describe(&mut |part| {
        if result.is_ok() {
            result = match part {
                Byte(byte) => f.write_char(byte.into()),
                Text(text) => f.write_str(text),
                Number(number) => write!(f, "{number}"),
            };
        }
    });
    result
}

impl core::error::Error for ImageError {}
