// SPDX-License-Identifier: Apache-2.0
//! The checked image.

use crate::digest::Sha256;
use crate::error::{ImageError, Table};
use crate::layout::{
    AlternativeRecord, BoardRecord, CapabilityRecord, ChannelRecord, ControllerRecord, DomainRecord,
    END_MARK, FORMAT, Header, InterruptRecord, LoadRecord, LockRecord, LookalikeRecord, MAGIC, MapRecord,
    MemoryRecord, Name, NicRecord, PartitionRecord, PayloadRecord, PcpuRecord, PortRecord, RegistersRecord,
    ResidentRecord, SECTION_ALTERNATIVES, SECTION_BOARD, SECTION_CAPABILITIES, SECTION_CHANNELS,
    SECTION_CONTROLLERS, SECTION_DOMAINS, SECTION_INTERRUPTS, SECTION_LOADS, SECTION_LOCKS,
    SECTION_LOOKALIKES, SECTION_MAP, SECTION_MEMORY, SECTION_NICS, SECTION_PARTITIONS, SECTION_PAYLOADS,
    SECTION_PCPUS, SECTION_PORTS, SECTION_REGISTERS, SECTION_RESIDENTS, SECTION_SCHEDULES, SECTION_SERVED,
    SECTION_SIDES, SECTION_VCPUS, SECTION_VIRTUAL_DEVICES, SECTION_WATCHES, SECTION_WINDOWS, SIGNATURE_LEN,
    ScheduleRecord, ServedRecord, SideRecord, U64, VcpuRecord, VirtualDeviceRecord, WatchRecord,
    WindowRecord,
};
use crate::limits::{MAX_TABLES_LEN, TABLE_ALIGN};
use crate::tables::{check_directory, payload_start, records, slice, total_len};
use crate::trust::Trust;
use bulkhead_arch_api::{ClassFacts, class};
use core::mem::offset_of;
use zerocopy::FromBytes;

/// Bytes of the header: what [`claimed_length`] needs.
pub const HEADER_LEN: usize = size_of::<Header>();
/// Offset within an aligned number.
const WORD_MASK: usize = size_of::<U64>() - 1;
/// Where the digest of the tables is.
const DIGEST_START: usize = offset_of!(Header, digest);
/// The first byte that it covers: everything after the signature is covered.
const DIGEST_END: usize = offset_of!(Header, signature) + SIGNATURE_LEN;

/// Returns the length that the image at the start of `bytes` claims, for a loader that knows no file sizes.
/// Nothing is verified but the magic number: the caller must bound the answer by the memory there is.
///
/// # Errors
/// [`ImageError`] if the header is not there, or is none.
pub fn claimed_length(bytes: &[u8]) -> Result<u64, ImageError> {
    Ok(header(bytes)?.total_len.get())
}

/// A system image whose structure has been checked. Copies are cheap: it is a handful of slices.
///
/// Guarantees to everyone who holds one: every index in a record is the index of a record or
/// [`crate::layout::NONE`] where that is allowed; every kind, flag, action and policy is one of the constants
/// of [`crate::layout`]; every range lies in its address space; and everything the module `check` lists.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    bytes: &'a [u8],
    class: &'static ClassFacts,
    header: &'a Header,
    board: &'a BoardRecord,
    pcpus: &'a [PcpuRecord],
    map: &'a [MapRecord],
    controllers: &'a [ControllerRecord],
    partitions: &'a [PartitionRecord],
    vcpus: &'a [VcpuRecord],
    memory: &'a [MemoryRecord],
    loads: &'a [LoadRecord],
    payloads: &'a [PayloadRecord],
    interrupts: &'a [InterruptRecord],
    virtual_devices: &'a [VirtualDeviceRecord],
    capabilities: &'a [CapabilityRecord],
    watches: &'a [WatchRecord],
    alternatives: &'a [AlternativeRecord],
    registers: &'a [RegistersRecord],
    schedules: &'a [ScheduleRecord],
    windows: &'a [WindowRecord],
    domains: &'a [DomainRecord],
    residents: &'a [ResidentRecord],
    lookalikes: &'a [LookalikeRecord],
    nics: &'a [NicRecord],
    ports: &'a [PortRecord],
    locks: &'a [LockRecord],
    served: &'a [ServedRecord],
}

impl<'a> Image<'a> {
    /// Checks the format of an image for a board of this class. The module `check` has the rules.
    pub(crate) fn read<S: Sha256>(
        bytes: &'a [u8],
        class: &'static ClassFacts,
        hasher: &S,
        trust: &impl Trust,
    ) -> Result<Self, ImageError> {
        let header = header(bytes)?;
        if header.format.get() != FORMAT {
            return Err(ImageError::Format {
                found: header.format.get(),
            });
        }
        if header.class.get() != class.number {
            return Err(ImageError::Class {
                found: header.class.get(),
                expected: class.number,
            });
        }
        check_lengths(bytes, header)?;
        let tables = check_tables_digest(bytes, header, hasher)?;
        trust.judge(header).map_err(ImageError::Refused)?;
        check_end(bytes, header.total_len.get())?;
        check_directory(tables, header)?;
        let image = Self::from_tables(bytes, tables, class, header).ok_or(ImageError::Lengths)?;
        check_placement(&image).map(|()| image)
    }

    /// Returns the tables that the directory lists; `None` if it has not been checked.
    fn from_tables(
        bytes: &'a [u8],
        tables: &'a [u8],
        class: &'static ClassFacts,
        header: &'a Header,
    ) -> Option<Self> {
        Some(Self {
            bytes,
            class,
            header,
            board: records(tables, header, SECTION_BOARD)?.first()?,
            pcpus: records(tables, header, SECTION_PCPUS)?,
            map: records(tables, header, SECTION_MAP)?,
            controllers: records(tables, header, SECTION_CONTROLLERS)?,
            partitions: records(tables, header, SECTION_PARTITIONS)?,
            vcpus: records(tables, header, SECTION_VCPUS)?,
            memory: records(tables, header, SECTION_MEMORY)?,
            loads: records(tables, header, SECTION_LOADS)?,
            payloads: records(tables, header, SECTION_PAYLOADS)?,
            interrupts: records(tables, header, SECTION_INTERRUPTS)?,
            virtual_devices: records(tables, header, SECTION_VIRTUAL_DEVICES)?,
            capabilities: records(tables, header, SECTION_CAPABILITIES)?,
            watches: records(tables, header, SECTION_WATCHES)?,
            alternatives: records(tables, header, SECTION_ALTERNATIVES)?,
            registers: records(tables, header, SECTION_REGISTERS)?,
            schedules: records(tables, header, SECTION_SCHEDULES)?,
            windows: records(tables, header, SECTION_WINDOWS)?,
            domains: records(tables, header, SECTION_DOMAINS)?,
            residents: records(tables, header, SECTION_RESIDENTS)?,
            lookalikes: records(tables, header, SECTION_LOOKALIKES)?,
            nics: records(tables, header, SECTION_NICS)?,
            ports: records(tables, header, SECTION_PORTS)?,
            locks: records(tables, header, SECTION_LOCKS)?,
            served: records(tables, header, SECTION_SERVED)?,
        })
    }

    /// Checks the contents of all payloads. Bounded by their length.
    ///
    /// # Errors
    /// [`ImageError::PayloadDigest`] for the first that is damaged.
    pub fn check_payloads<S: Sha256>(&self, hasher: &S) -> Result<(), ImageError> {
        (0..)
            .take(self.payloads.len())
            .try_for_each(|index| self.check_payload(index, hasher))
    }

    /// Checks the contents of one payload, for a caller that reports progress. A payload that does not
    /// exist is right.
    ///
    /// # Errors
    /// [`ImageError::PayloadDigest`] if it is damaged.
    pub fn check_payload<S: Sha256>(&self, index: u32, hasher: &S) -> Result<(), ImageError> {
        match record(self.payloads, index) {
            Some(payload) if hasher.payload(self.payload(index)) != payload.digest => {
                Err(ImageError::PayloadDigest {
                    index,
                    name: payload.name,
                })
            }
            _ => Ok(()),
        }
    }

    /// Checks one stretch of code memory, whose contents the caller has at hand: `bytes` are those at the
    /// address of the record. A record that does not exist is right.
    ///
    /// # Errors
    /// [`ImageError::ResidentDigest`] if they are not what was built.
    pub fn check_resident<S: Sha256>(&self, index: u32, bytes: &[u8], hasher: &S) -> Result<(), ImageError> {
        match record(self.residents, index) {
            Some(resident)
                if bytes.len() as u64 != resident.size.get()
                    || hasher.digest(&[bytes]) != resident.digest =>
            {
                Err(ImageError::ResidentDigest {
                    index,
                    name: resident.name,
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of records of a table. The directory lists the tables in their order, and the
    /// limits of each fit.
    pub(crate) fn count(&self, table: Table) -> u16 {
        let section = self.header.sections.get(table as usize);
        section.map_or(0, |section| section.count.get() as u16)
    }

    /// Returns the multiple at which mappings start and end on this class.
    #[must_use]
    pub fn granule(&self) -> u64 {
        self.facts().granule
    }

    /// Facts of the class of the board.
    #[inline]
    #[must_use]
    pub fn facts(&self) -> &'static ClassFacts {
        class::only().unwrap_or(self.class)
    }

    /// Returns the name of the board.
    #[must_use]
    pub fn board_name(&self) -> &'a str {
        self.name(&self.header.board)
    }

    /// Returns the header.
    pub(crate) const fn header(&self) -> &'a Header {
        self.header
    }

    /// Returns the version of the system; 0 if it has none.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.header.version.get()
    }

    /// Returns the name of the board as a record.
    pub(crate) const fn board_name_record(&self) -> &'a Name {
        &self.header.board
    }

    /// Facts about the board.
    #[must_use]
    pub const fn board(&self) -> &'a BoardRecord {
        self.board
    }

    /// Returns the physical CPUs.
    #[must_use]
    pub const fn pcpus(&self) -> &'a [PcpuRecord] {
        self.pcpus
    }

    /// Returns the board's address space.
    #[must_use]
    pub const fn map(&self) -> &'a [MapRecord] {
        self.map
    }

    /// Devices the hypervisor drives.
    #[must_use]
    pub const fn controllers(&self) -> &'a [ControllerRecord] {
        self.controllers
    }

    /// Returns the partitions.
    #[must_use]
    pub const fn partitions(&self) -> &'a [PartitionRecord] {
        self.partitions
    }

    /// Returns the virtual CPUs, each partition's consecutive.
    #[must_use]
    pub const fn vcpus(&self) -> &'a [VcpuRecord] {
        self.vcpus
    }

    /// Mappings of all partitions.
    #[must_use]
    pub const fn memory(&self) -> &'a [MemoryRecord] {
        self.memory
    }

    /// Pieces of payloads to copy.
    #[must_use]
    pub const fn loads(&self) -> &'a [LoadRecord] {
        self.loads
    }

    /// Returns the bytes of the header and of all tables.
    #[must_use]
    pub const fn tables_len(&self) -> u64 {
        self.header.tables_len.get()
    }

    /// Returns the payloads.
    #[must_use]
    pub const fn payloads(&self) -> &'a [PayloadRecord] {
        self.payloads
    }

    /// Returns the physical interrupts that belong to partitions.
    #[must_use]
    pub const fn interrupts(&self) -> &'a [InterruptRecord] {
        self.interrupts
    }

    /// Returns the virtual devices.
    #[must_use]
    pub const fn virtual_devices(&self) -> &'a [VirtualDeviceRecord] {
        self.virtual_devices
    }

    /// Capabilities held from the start.
    #[must_use]
    pub const fn capabilities(&self) -> &'a [CapabilityRecord] {
        self.capabilities
    }

    /// Returns the watches: which partition is told about another one's changes of state.
    #[must_use]
    pub const fn watches(&self) -> &'a [WatchRecord] {
        self.watches
    }

    /// Returns the other payloads that partitions can run, each partition's consecutive.
    #[must_use]
    pub const fn alternatives(&self) -> &'a [AlternativeRecord] {
        self.alternatives
    }

    /// Returns the alternatives of a partition; the first one is number 1.
    pub fn alternatives_of(
        &self,
        partition: u32,
    ) -> impl Iterator<Item = &'a AlternativeRecord> + Clone + use<'a> {
        self.alternatives
            .iter()
            .filter(move |record| record.partition.get() == partition)
    }

    /// Returns the text of a name of this image.
    #[must_use]
    pub fn name<'n>(&self, name: &'n Name) -> &'n str {
        name.text().unwrap_or("?")
    }

    /// Returns the bytes of a payload; none for an index that is none.
    #[must_use]
    pub fn payload(&self, index: u32) -> &'a [u8] {
        record(self.payloads, index)
            .and_then(|payload| {
                let start = payload.offset.get();
                slice(self.bytes, start, start.checked_add(payload.size.get())?)
            })
            .unwrap_or(&[])
    }

    /// Returns the vCPUs of a partition; none for an index that is none.
    #[must_use]
    pub fn vcpus_of(&self, partition: u32) -> &'a [VcpuRecord] {
        record(self.partitions, partition).map_or(&[], |owner| {
            run(self.vcpus, owner.first_vcpu.get(), owner.vcpu_count.get())
        })
    }

    /// Returns the mappings of a partition.
    pub fn memory_of(&self, partition: u32) -> impl Iterator<Item = &'a MemoryRecord> + Clone + use<'a> {
        self.memory
            .iter()
            .filter(move |record| record.partition.get() == partition)
    }

    /// Returns the loads to copy when a partition starts with its own payloads (`alternative` 0) or with
    /// others.
    pub fn loads_of(
        &self,
        partition: u32,
        alternative: u32,
    ) -> impl Iterator<Item = &'a LoadRecord> + Clone + use<'a> {
        self.loads.iter().filter(move |record| {
            record.partition.get() == partition && record.alternative.get() == alternative
        })
    }

    /// Windows of device registers that the hypervisor helps with.
    #[must_use]
    pub const fn registers(&self) -> &'a [RegistersRecord] {
        self.registers
    }

    /// Schedules, each pCPU's consecutive.
    #[must_use]
    pub const fn schedules(&self) -> &'a [ScheduleRecord] {
        self.schedules
    }

    /// Returns the schedules of a pCPU, number 0 first.
    pub fn schedules_of(&self, pcpu: u32) -> impl Iterator<Item = &'a ScheduleRecord> + Clone + use<'a> {
        self.schedules
            .iter()
            .filter(move |record| record.pcpu.get() == pcpu)
    }

    /// Windows, each schedule's consecutive.
    #[must_use]
    pub const fn windows(&self) -> &'a [WindowRecord] {
        self.windows
    }

    /// Returns the windows of a schedule, in the order of their offsets.
    #[must_use]
    pub fn windows_of(&self, schedule: &ScheduleRecord) -> &'a [WindowRecord] {
        run(
            self.windows,
            schedule.first_window.get(),
            schedule.window_count.get(),
        )
    }

    /// Returns the time domains, each pCPU's consecutive.
    #[must_use]
    pub const fn domains(&self) -> &'a [DomainRecord] {
        self.domains
    }

    /// Stretches of code memory that belong to partitions.
    #[must_use]
    pub const fn residents(&self) -> &'a [ResidentRecord] {
        self.residents
    }

    /// Returns the places that look like a replaced instruction and are none, in ascending order of the
    /// addresses.
    #[must_use]
    pub const fn lookalikes(&self) -> &'a [LookalikeRecord] {
        self.lookalikes
    }

    /// Interfaces of VMs to networks.
    #[must_use]
    pub const fn nics(&self) -> &'a [NicRecord] {
        self.nics
    }

    /// Locks.
    #[must_use]
    pub const fn locks(&self) -> &'a [LockRecord] {
        self.locks
    }

    /// Ports.
    #[must_use]
    pub const fn ports(&self) -> &'a [PortRecord] {
        self.ports
    }

    /// Channels. A microcontroller has no RAM to keep where they are.
    #[must_use]
    pub fn channels(&self) -> &'a [ChannelRecord] {
        records(self.bytes, self.header, SECTION_CHANNELS).unwrap_or(&[])
    }

    /// Sides of all channels.
    #[must_use]
    pub fn sides(&self) -> &'a [SideRecord] {
        records(self.bytes, self.header, SECTION_SIDES).unwrap_or(&[])
    }

    /// Returns the sides of a channel, in their order.
    #[must_use]
    pub fn sides_of(&self, channel: u32) -> &'a [SideRecord] {
        let channel = record(self.channels(), channel);
        channel.map_or(&[], |channel| {
            run(self.sides(), channel.first_side.get(), channel.side_count.get())
        })
    }

    /// Windows that partitions answer.
    #[must_use]
    pub const fn served(&self) -> &'a [ServedRecord] {
        self.served
    }

    /// Tells whether the word at `address` only looks like a replaced instruction. Worst case: a binary
    /// search in [`Image::lookalikes`].
    #[must_use]
    pub fn is_lookalike(&self, address: u32) -> bool {
        self.lookalikes
            .binary_search_by_key(&address, |lookalike| lookalike.address.get())
            .is_ok()
    }

    /// Returns the time domains of a pCPU, number 0 first.
    pub fn domains_of(&self, pcpu: u32) -> impl Iterator<Item = &'a DomainRecord> + Clone + use<'a> {
        self.domains
            .iter()
            .filter(move |record| record.pcpu.get() == pcpu)
    }

    /// Returns the virtual devices of a partition.
    pub fn virtual_devices_of(
        &self,
        partition: u32,
    ) -> impl Iterator<Item = &'a VirtualDeviceRecord> + Clone + use<'a> {
        self.virtual_devices
            .iter()
            .filter(move |record| record.partition.get() == partition)
    }

    /// Returns the number of bytes of the image.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Tells whether the image is empty. Never: an image has a header at least.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Returns consecutive records; none if they are not all there.
fn run<R>(records: &[R], first: u32, count: u32) -> &[R] {
    let first = u64::from(first);
    first
        .checked_add(u64::from(count))
        .and_then(|end| records.get(usize::try_from(first).ok()?..usize::try_from(end).ok()?))
        .unwrap_or(&[])
}

/// Returns the record with this index.
pub(crate) fn record<R>(records: &[R], index: u32) -> Option<&R> {
    records.get(usize::try_from(index).ok()?)
}

fn header(bytes: &[u8]) -> Result<&Header, ImageError> {
    if !bytes.as_ptr().addr().is_multiple_of(TABLE_ALIGN as usize) {
        return Err(ImageError::Misaligned);
    }
    if !bytes.starts_with(&MAGIC) {
        return Err(ImageError::NotAnImage);
    }
    let short = ImageError::Truncated {
        found: bytes.len() as u64,
        expected: HEADER_LEN as u64,
    };
    Header::ref_from_prefix(bytes)
        .map(|(header, _)| header)
        .map_err(|_| short)
}

/// Checks that the lengths are possible, and that the tables are all there.
fn check_lengths(bytes: &[u8], header: &Header) -> Result<(), ImageError> {
    let (tables, total) = (header.tables_len.get(), header.total_len.get());
    if tables < HEADER_LEN as u64 || tables > MAX_TABLES_LEN || total < tables {
        return Err(ImageError::Lengths);
    }
    if (bytes.len() as u64) < tables {
        return Err(ImageError::Truncated {
            found: bytes.len() as u64,
            expected: total,
        });
    }
    Ok(())
}

/// Returns the tables, if their digest is right. A wrong one is put down to a file that was cut off within
/// the tables if the end mark is missing as well.
fn check_tables_digest<'a, S: Sha256>(
    bytes: &'a [u8],
    header: &Header,
    hasher: &S,
) -> Result<&'a [u8], ImageError> {
    let tables = slice(bytes, 0, header.tables_len.get()).ok_or(ImageError::Lengths)?;
    let behind = tables.get(DIGEST_END..).ok_or(ImageError::Lengths)?;
    let before = tables.get(..DIGEST_START).ok_or(ImageError::Lengths)?;
    if hasher.digest(&[behind, before]) == header.digest {
        return Ok(tables);
    }
    match check_end(bytes, header.total_len.get()) {
        Err(cut_off @ ImageError::NoEnd { .. }) => Err(cut_off),
        _ => Err(ImageError::TablesDigest),
    }
}

/// Checks that the image has the length it should have, and ends as it should.
fn check_end(bytes: &[u8], expected: u64) -> Result<(), ImageError> {
    let found = bytes.len() as u64;
    if found < expected {
        return Err(ImageError::Truncated { found, expected });
    }
    if found > expected {
        return Err(ImageError::TooLong { found, expected });
    }
    if bytes.ends_with(&END_MARK) {
        Ok(())
    } else {
        Err(ImageError::NoEnd { expected })
    }
}

/// Checks that every payload starts where it has to, with nothing but zeroes before it, and that the image
/// ends after the last.
fn check_placement(image: &Image<'_>) -> Result<(), ImageError> {
    let mut end = image.header.tables_len.get();
    for (payload, index) in image.payloads.iter().zip(0..) {
        let start = payload_start(end).ok_or(ImageError::Lengths)?;
        if payload.offset.get() != start {
            return Err(ImageError::Misplaced(Table::Payloads));
        }
        check_zero(image.bytes, end, start, index)?;
        end = start.checked_add(payload.size.get()).ok_or(ImageError::Lengths)?;
    }
    let total = total_len(end).ok_or(ImageError::Lengths)?;
    if total != image.len() {
        return Err(ImageError::Lengths);
    }
    check_zero(
        image.bytes,
        end,
        total.saturating_sub(END_MARK.len() as u64),
        image.payloads.len() as u32,
    )
}

fn check_zero(bytes: &[u8], start: u64, end: u64, index: u32) -> Result<(), ImageError> {
    let padding = slice(bytes, start, end).ok_or(ImageError::Lengths)?;
    // By numbers where they are aligned: there can be nearly a page of padding before each payload.
    let head = padding.as_ptr().addr().wrapping_neg() & WORD_MASK;
    let (head, rest) = padding.split_at(head.min(padding.len()));
    let (numbers, tail) = rest.split_at(rest.len() & !WORD_MASK);
    let numbers = <[U64]>::ref_from_bytes(numbers).unwrap_or(&[]);
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    // Four at a time, with one branch.
    let (groups, rest) = numbers.as_chunks::<4>();
    let are_zero = |[a, b, c, d]: &[U64; 4]| a.get() | b.get() | c.get() | d.get() == 0;
    let all_zero = groups.iter().all(are_zero) && rest.iter().all(|number| *number == U64::ZERO);
    if is_zero(head) && is_zero(tail) && all_zero {
        Ok(())
    } else {
        Err(ImageError::Padding { index })
    }
}
