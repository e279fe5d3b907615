// SPDX-License-Identifier: Apache-2.0
//! Builds system images, on the host.
//!
//! The caller gives the records of every table and the payloads; the writer places them, fills in the
//! directory and the digests, and lets the reader check the result, so that nothing leaves the host that the
//! target would refuse. Sizes depend on the number of records only, never on their contents: the caller can
//! ask for [`ImageBuilder::len`] first and then write addresses that follow from it.

use crate::digest::{Portable, Sha256};
use crate::error::ImageError;
use crate::layout::{
    AlternativeRecord, BoardRecord, CapabilityRecord, ChannelRecord, ControllerRecord, DomainRecord,
    END_MARK, FORMAT, Header, InterruptRecord, LoadRecord, LockRecord, LookalikeRecord, MAGIC, MEMORY_CLEAR,
    MapRecord, MemoryRecord, NONE, Name, NicRecord, PAYLOAD_ALIGN, PartitionRecord, PayloadRecord,
    PcpuRecord, PortRecord, RegistersRecord, ResidentRecord, SECTION_BOARD, SECTION_CONTROLLERS,
    SECTION_COUNT, SECTION_PCPUS, SIGNATURE_LEN, ScheduleRecord, Section, ServedRecord, SideRecord,
    VcpuRecord, VirtualDeviceRecord, WatchRecord, WindowRecord,
};
use crate::limits::TABLE_ALIGN;
use crate::name::NameError;
use crate::reader::{HEADER_LEN, Image};
use crate::tables::{payload_start, total_len};
use bulkhead_abi::own_policy;
use bulkhead_abi::parts::{Part, Parts};
use bulkhead_arch_api::ClassFacts;
use core::mem::offset_of;
use std::vec::Vec;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// A blob that goes into an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Its name, for reports.
    pub name: Name,
    /// The bytes, at least one.
    pub bytes: Vec<u8>,
}

/// An image being put together: one list per table.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "each field is the table that its record type documents"
)]
pub struct ImageBuilder {
    pub class: &'static ClassFacts,
    pub version: u64,
    pub board_name: Name,
    pub board: BoardRecord,
    pub pcpus: Vec<PcpuRecord>,
    pub map: Vec<MapRecord>,
    pub controllers: Vec<ControllerRecord>,
    pub partitions: Vec<PartitionRecord>,
    pub vcpus: Vec<VcpuRecord>,
    pub memory: Vec<MemoryRecord>,
    pub loads: Vec<LoadRecord>,
    pub payloads: Vec<Payload>,
    pub interrupts: Vec<InterruptRecord>,
    pub virtual_devices: Vec<VirtualDeviceRecord>,
    pub capabilities: Vec<CapabilityRecord>,
    pub watches: Vec<WatchRecord>,
    pub alternatives: Vec<AlternativeRecord>,
    /// Windows of device registers that the hypervisor helps with.
    pub registers: Vec<RegistersRecord>,
    pub schedules: Vec<ScheduleRecord>,
    pub windows: Vec<WindowRecord>,
    pub domains: Vec<DomainRecord>,
    pub residents: Vec<ResidentRecord>,
    pub lookalikes: Vec<LookalikeRecord>,
    pub nics: Vec<NicRecord>,
    pub ports: Vec<PortRecord>,
    /// Locks.
    pub locks: Vec<LockRecord>,
    pub channels: Vec<ChannelRecord>,
    pub sides: Vec<SideRecord>,
    pub served: Vec<ServedRecord>,
}

impl ImageBuilder {
    /// Makes an image for a board of a class, without anything in it; the board record is all zeroes, has no
    /// time limit and names all parts.
    ///
    /// # Errors
    /// [`NameError`] if the board cannot be called that.
    pub fn new(class: &'static ClassFacts, board: &str) -> Result<Self, NameError> {
        Ok(Self {
            class,
            version: 0,
            board_name: Name::new(board)?,
            board: BoardRecord {
                stop_after_ms: NONE.into(),
                parts: Parts::ALL.0.into(),
                ..BoardRecord::new_zeroed()
            },
            pcpus: Vec::new(),
            map: Vec::new(),
            controllers: Vec::new(),
            partitions: Vec::new(),
            vcpus: Vec::new(),
            memory: Vec::new(),
            loads: Vec::new(),
            payloads: Vec::new(),
            interrupts: Vec::new(),
            virtual_devices: Vec::new(),
            capabilities: Vec::new(),
            watches: Vec::new(),
            alternatives: Vec::new(),
            registers: Vec::new(),
            schedules: Vec::new(),
            windows: Vec::new(),
            domains: Vec::new(),
            residents: Vec::new(),
            lookalikes: Vec::new(),
            nics: Vec::new(),
            ports: Vec::new(),
            locks: Vec::new(),
            channels: Vec::new(),
            sides: Vec::new(),
            served: Vec::new(),
        })
    }

    /// Bytes of the image that [`ImageBuilder::build`] would return now.
    #[expect(
        clippy::len_without_is_empty,
        reason = "an image is never empty: it has a header"
    )]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.lay_out().total_len
    }

    /// Builds the image, checked as the target checks it.
    ///
    /// # Errors
    /// [`ImageError`]: what the target would refuse it for.
    pub fn build(&self) -> Result<Vec<u8>, ImageError> {
        let image = self.build_unchecked();
        Image::check(&image, self.class, &Portable)?.check_payloads(&Portable)?;
        Ok(image)
    }

    /// Builds the image without a check: for tests of the checks.
    #[must_use]
    pub fn build_unchecked(&self) -> Vec<u8> {
        let mut plan = self.lay_out();
        for (record, payload) in plan.payloads.iter_mut().zip(&self.payloads) {
            record.digest = Portable.payload(&payload.bytes);
        }
        let header = Header {
            magic: MAGIC,
            format: FORMAT.into(),
            class: self.class.number.into(),
            total_len: plan.total_len.into(),
            tables_len: plan.tables_len.into(),
            digest: [0; 32],
            signature: [0; SIGNATURE_LEN],
            version: self.version.into(),
            class_binary: [0; 32],
            board: self.board_name,
            sections: plan.sections,
        };
        let mut out = Vec::with_capacity(usize::try_from(plan.total_len).unwrap_or(0));
        out.extend_from_slice(header.as_bytes());
        for table in self.tables(&plan.payloads) {
            fill(&mut out, TABLE_ALIGN);
            out.extend_from_slice(table.bytes);
        }
        for payload in &self.payloads {
            fill(&mut out, PAYLOAD_ALIGN);
            out.extend_from_slice(&payload.bytes);
        }
        fill(&mut out, TABLE_ALIGN);
        out.extend_from_slice(&END_MARK);
        sign_tables(&mut out);
        out
    }

    /// Returns the tables in the order of the directory.
    fn tables<'t>(&'t self, payloads: &'t [PayloadRecord]) -> [TableBytes<'t>; SECTION_COUNT] {
        [
            TableBytes::of(core::slice::from_ref(&self.board)),
            TableBytes::of(&self.pcpus),
            TableBytes::of(&self.map),
            TableBytes::of(&self.controllers),
            TableBytes::of(&self.partitions),
            TableBytes::of(&self.vcpus),
            TableBytes::of(&self.memory),
            TableBytes::of(&self.loads),
            TableBytes::of(payloads),
            TableBytes::of(&self.interrupts),
            TableBytes::of(&self.virtual_devices),
            TableBytes::of(&self.capabilities),
            TableBytes::of(&self.watches),
            TableBytes::of(&self.alternatives),
            TableBytes::of(&self.registers),
            TableBytes::of(&self.schedules),
            TableBytes::of(&self.windows),
            TableBytes::of(&self.domains),
            TableBytes::of(&self.residents),
            TableBytes::of(&self.lookalikes),
            TableBytes::of(&self.nics),
            TableBytes::of(&self.ports),
            TableBytes::of(&self.locks),
            TableBytes::of(&self.channels),
            TableBytes::of(&self.sides),
            TableBytes::of(&self.served),
        ]
    }

    fn lay_out(&self) -> Plan {
        // Where the tables end depends on how many payloads there are, and where those start on that.
        let mut payloads = std::vec![PayloadRecord::new_zeroed(); self.payloads.len()];
        let mut end = HEADER_LEN as u64;
        let sections = self.tables(&payloads).map(|table| {
            let start = end.next_multiple_of(TABLE_ALIGN);
            end = start + table.bytes.len() as u64;
            Section {
                offset: (start as u32).into(),
                count: (table.count as u32).into(),
            }
        });
        let tables_len = end;
        for (record, payload) in payloads.iter_mut().zip(&self.payloads) {
            let (start, size) = (payload_start(end).unwrap_or(u64::MAX), payload.bytes.len() as u64);
            *record = PayloadRecord {
                name: payload.name,
                offset: start.into(),
                size: size.into(),
                digest: [0; 32],
            };
            end = start.saturating_add(size);
        }
        Plan {
            sections,
            payloads,
            tables_len,
            total_len: total_len(end).unwrap_or(u64::MAX),
        }
    }
}

/// Where everything goes; the payloads' digests are still missing.
struct Plan {
    sections: [Section; SECTION_COUNT],
    payloads: Vec<PayloadRecord>,
    tables_len: u64,
    total_len: u64,
}

struct TableBytes<'t> {
    bytes: &'t [u8],
    count: usize,
}

impl<'t> TableBytes<'t> {
    fn of<R: IntoBytes + Immutable>(records: &'t [R]) -> Self {
        Self {
            bytes: records.as_bytes(),
            count: records.len(),
        }
    }
}

fn fill(out: &mut Vec<u8>, align: u64) {
    let align = usize::try_from(align).unwrap_or(1);
    out.resize(out.len().next_multiple_of(align), 0);
}

/// Computes the digest of the tables anew, for tests that change an image without the writer. Bytes
/// that are no image stay as they are.
pub fn sign_tables(image: &mut [u8]) {
    let digest_at = offset_of!(Header, digest);
    let behind_at = offset_of!(Header, signature) + SIGNATURE_LEN;
    let Ok((header, _)) = Header::ref_from_prefix(image) else {
        return;
    };
    let Ok(end) = usize::try_from(header.tables_len.get()) else {
        return;
    };
    let Some(behind) = image.get(behind_at..end) else {
        return;
    };
    let digest = Portable.digest(&[behind, &image[..digest_at]]);
    image[digest_at..digest_at + 32].copy_from_slice(&digest);
}

/// Notes in an image the class binary that it is made for, by the digest of the class binary's instructions
/// and constants. The digest of the tables is right again. Bytes that are no image stay as they are.
pub fn seal(image: &mut [u8], class_binary: [u8; 32]) {
    if let Ok((header, _)) = Header::mut_from_prefix(image) {
        header.class_binary = class_binary;
        sign_tables(image);
    }
}

/// Gives an image another version. The digest of the tables is right again. Returns whether it is an image.
#[must_use]
pub fn set_version(image: &mut [u8], version: u64) -> bool {
    let Ok((header, _)) = Header::mut_from_prefix(image) else {
        return false;
    };
    header.version = version.into();
    sign_tables(image);
    true
}

/// Lets the last partition of an image with RAM claim the RAM of the first one too, for tests that forge an
/// image. The digest of the tables is right again. Returns false if there are no two such partitions.
pub fn claim_twice(image: &mut [u8]) -> bool {
    let Ok((header, _)) = Header::ref_from_prefix(image) else {
        return false;
    };
    let Some(section) = header.sections.get(crate::layout::SECTION_MEMORY) else {
        return false;
    };
    let (start, count) = (section.offset.get() as usize, section.count.get() as usize);
    let length = size_of::<MemoryRecord>();
    let Some(table) = image.get_mut(start..start + count * length) else {
        return false;
    };
    let Ok(records) = <[MemoryRecord]>::mut_from_bytes(table) else {
        return false;
    };
    let is_ram = |record: &MemoryRecord| record.flags.get() & MEMORY_CLEAR != 0;
    let Some(first) = records.iter().find(|record| is_ram(record)).copied() else {
        return false;
    };
    let others = records.iter_mut().filter(|record| is_ram(record));
    let Some(last) = others.last().filter(|last| last.partition != first.partition) else {
        return false;
    };
    last.host = first.host;
    sign_tables(image);
    true
}

/// Forges an image: the policy of its first pCPU is one of a user's own with this name. Returns whether there
/// is a pCPU.
#[must_use]
pub fn name_policy(image: &mut [u8], name: &str) -> bool {
    let number = own_policy::number(name);
    let place = (SECTION_PCPUS, offset_of!(PcpuRecord, policy));
    forge(image, place, |_: [u8; 4]| number.to_le_bytes())
}

/// Forges an image: its system uses the part of this name, too. Returns whether there is such a part.
#[must_use]
pub fn need_part(image: &mut [u8], name: &str) -> bool {
    let Some(part) = Part::ALL.iter().find(|part| part.name() == name) else {
        return false;
    };
    let place = (SECTION_BOARD, offset_of!(BoardRecord, parts));
    forge(image, place, |parts: [u8; 4]| {
        Parts(u32::from_le_bytes(parts)).with(*part).0.to_le_bytes()
    })
}

/// Forges an image: it is built to lie this many bytes further on. Returns whether it is an image.
#[must_use]
pub fn move_base(image: &mut [u8], bytes: i64) -> bool {
    let place = (SECTION_BOARD, offset_of!(BoardRecord, image_base));
    forge(image, place, |base: [u8; 8]| {
        u64::from_le_bytes(base).wrapping_add_signed(bytes).to_le_bytes()
    })
}

/// Forges an image: the first registers of the controller with this number are this many bytes further on.
/// Returns whether there is such a controller.
#[must_use]
pub fn move_controller(image: &mut [u8], index: u8, bytes: i64) -> bool {
    let record = usize::from(index).saturating_mul(size_of::<ControllerRecord>());
    let place = (SECTION_CONTROLLERS, record + offset_of!(ControllerRecord, base));
    forge(image, place, |base: [u8; 8]| {
        u64::from_le_bytes(base).wrapping_add_signed(bytes).to_le_bytes()
    })
}

/// Changes the field at this offset of a table. Returns whether there is one.
fn forge<const N: usize>(
    image: &mut [u8],
    (section, offset): (usize, usize),
    change: impl FnOnce([u8; N]) -> [u8; N],
) -> bool {
    let at = || {
        let (header, _) = Header::ref_from_prefix(image).ok()?;
        let first = header.sections.get(section)?.offset.get() as usize;
        first.checked_add(offset)
    };
    let Some(at) = at() else { return false };
    let Some(field) = image.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<N>) else {
        return false;
    };
    *field = change(*field);
    sign_tables(image);
    true
}
