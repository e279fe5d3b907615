// SPDX-License-Identifier: Apache-2.0
//! The rules a system image obeys beyond its format.
//!
//! One function per rule, one file per subject. A rule sees the index of a record and returns a [`Fault`];
//! [`Image::check`] adds where that was. Rules may rely on the format, and on those before them in [`RULES`].
//!
//! | file | rules |
//! |---|---|
//! | `board` | the hypervisor's memory, pCPUs, address map, controllers |
//! | `partitions` | names, kinds, flags, vCPUs and where they are bound, entry, argument, stack |
//! | `memory` | mappings apart from each other, from the hypervisor and from its devices; loads |
//! | `devices` | virtual devices, interrupt lines |
//! | `guards` | controllers that guard memory, gates of devices |
//! | `nics` | interfaces to networks, their memory |
//! | `registers` | device registers that the hypervisor touches for their owner |
//! | `schedules` | budgets of vCPUs, schedules and their windows, time domains |
//! | `residents` | code memory of partitions, and instructions replaced in it |
//! | `ports` | ports, and the memory for their messages; locks |
//! | `channels` | channels, and the partitions at them |
//! | `served` | windows that partitions answer |
//! | `access` | capabilities, watches |
//! | `secrets` | capabilities for secrets |

mod access;
mod board;
mod channels;
mod devices;
pub(crate) mod guards;
mod memory;
mod nics;
mod partitions;
mod ports;
mod registers;
mod residents;
mod schedules;
mod secrets;
mod served;

use crate::digest::Sha256;
use crate::error::{Fault, ImageError, Table};
use crate::layout::Name;
use crate::reader::Image;
use crate::trust::{Open, Trust};
use bulkhead_abi::parts::{PARTS, Part, Parts};
use bulkhead_arch_api::ClassFacts;

/// A rule: whether the record of its table with this index, which there is, obeys it.
type Rule = fn(&Image<'_>, u16) -> Result<(), Fault>;

/// All rules in their order, each for every record of its table. A function for each, called from one place:
/// together they would need more registers than there are.
const RULES: [(Table, Rule); 30] = [
    (Table::Map, board::map_entry),
    (Table::Board, board::board),
    (Table::Pcpus, board::pcpu),
    (Table::Controllers, board::controller),
    (Table::Memory, memory::mapping),
    (Table::Payloads, memory::payload),
    (Table::Loads, memory::load),
    (Table::Partitions, partitions::partition),
    (Table::Alternatives, partitions::alternative),
    (Table::Partitions, partitions::last),
    (Table::Vcpus, partitions::vcpu),
    (Table::VirtualDevices, devices::device),
    (Table::Interrupts, devices::interrupt),
    (Table::Nics, of(Part::Networks, nics::nic)),
    (Table::Registers, registers::window),
    (Table::Residents, residents::resident),
    (Table::Lookalikes, residents::lookalike),
    (Table::Schedules, of(Part::Arinc653, schedules::schedule)),
    (Table::Schedules, of(Part::Arinc653, schedules::last)),
    (Table::Windows, of(Part::Arinc653, schedules::window)),
    (Table::Domains, of(Part::Domains, schedules::domain)),
    (Table::Pcpus, schedules::pcpu),
    (Table::Vcpus, schedules::vcpu),
    (Table::Ports, of(Part::Ports, ports::port)),
    (Table::Locks, of(Part::Locks, ports::lock)),
    (Table::Channels, of(Part::Channels, channels::channel)),
    (Table::Sides, of(Part::Channels, channels::side)),
    (Table::Served, of(Part::Services, served::window)),
    (Table::Capabilities, access::capability),
    (Table::Watches, access::watch),
];

/// Returns a rule for the records of a part. A build without the part has no such record (`Shape::of`), so
/// the rule is not linked.
const fn of(part: Part, rule: Rule) -> Rule {
    if PARTS.has(part) {
        rule
    } else {
        |_, _| Err(Fault::BadCount)
    }
}

impl<'a> Image<'a> {
    /// Checks everything but the contents of the payloads, for a board of this class. `bytes` is the image,
    /// no more and no less.
    ///
    /// The digest of the tables comes first, so that damage is named as damage. It reads at most
    /// `MAX_TABLES_LEN` bytes; the checks after it compare at most all pairs of records of two tables.
    ///
    /// # Errors
    /// [`ImageError`]: the first thing found wrong.
    pub fn check(bytes: &'a [u8], class: &'static ClassFacts, sha: &impl Sha256) -> Result<Self, ImageError> {
        Self::check_at(None, bytes, class, sha, &Open)
    }

    /// Does [`Image::check`] for an image that is used where it lies, at its bus address. The hypervisor may
    /// have keys.
    ///
    /// # Errors
    /// As [`Image::check`]; [`ImageError::Refused`], [`ImageError::Elsewhere`].
    #[inline(always)]
    pub fn check_here(
        bytes: &'a [u8],
        class: &'static ClassFacts,
        sha: &impl Sha256,
        trust: &impl Trust,
    ) -> Result<Self, ImageError> {
        Self::check_at(Some(bytes.as_ptr().addr() as u64), bytes, class, sha, trust)
    }

    #[inline(always)]
    pub(crate) fn check_at(
        base: Option<u64>,
        bytes: &'a [u8],
        class: &'static ClassFacts,
        sha: &impl Sha256,
        trust: &impl Trust,
    ) -> Result<Self, ImageError> {
        let image = Self::read(bytes, class, sha, trust)?;
        // The pool and the partitions' memory begin where a class binary of the right length and the image
        // end. After a longer one, the image would give away memory that the class binary has.
        if base.is_some_and(|base| base != image.board().image_base.get()) {
            return Err(ImageError::Elsewhere);
        }
        for (table, rule) in RULES {
            for index in 0..image.count(table) {
                rule(&image, index).map_err(|fault| ImageError::Record {
                    table,
                    index: index.into(),
                    fault,
                })?;
            }
        }
        Ok(image)
    }
}

/// Returns the record with this index; there is one.
fn at<R>(records: &[R], index: u16) -> Result<&R, Fault> {
    records.get(usize::from(index)).ok_or(Fault::BadCount)
}

/// Checks that another table, which is `all` long, has no more after what the last of `records` has of it.
fn covers<R>(records: &[R], index: u16, all: usize, count: fn(&R) -> u32) -> Result<(), Fault> {
    if usize::from(index).wrapping_add(1) != records.len() {
        return Ok(());
    }
    let mut records = records.iter();
    let sum = records.try_fold(0_usize, |sum, record| sum.checked_add(count(record) as usize));
    require(sum == Some(all), Fault::NotConsecutive)
}

/// Returns the records before `index`, with their indices: what a pairwise rule compares a record with.
fn earlier<R>(records: &[R], index: u16) -> impl Iterator<Item = (&R, u16)> {
    records.iter().zip(0..index)
}

/// Returns `fault` unless `holds`.
fn require(holds: bool, fault: Fault) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(fault) }
}

/// Tells whether an image can use a part. The host refuses an image that uses a part and does not name it.
/// The target looks no closer than it must: it has the part.
fn uses(image: &Image<'_>, part: Part) -> bool {
    let named = Parts(image.board().parts.get());
    PARTS.has(part) && (named.has(part) || !cfg!(feature = "writer"))
}

/// Checks that `index` is the index of a record of a table with `count` records.
fn refers(index: u32, count: usize, table: Table) -> Result<(), Fault> {
    require((index as usize) < count, Fault::NoSuch(table))
}

/// Checks that the name is one.
fn named(name: &Name) -> Result<(), Fault> {
    require(name.text().is_ok(), Fault::BadName)
}
