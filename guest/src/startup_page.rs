// SPDX-License-Identifier: Apache-2.0
//! Reader of the startup page, by which a task learns the names of its capabilities.
//!
//! The page comes from the host tool through a read-only mapping; it is checked all the same, because a
//! wrong page must give an empty list and not a wild access.

use bulkhead_abi::startup::{STARTUP_MAGIC, StartupCapability, StartupHeader};
use bulkhead_abi::{ObjectKind, Rights};

/// Bytes of a startup page at most.
pub const PAGE_SIZE: usize = 4096;
/// Bytes of its head.
pub const HEADER_SIZE: usize = size_of::<StartupHeader>();

const RECORD_SIZE: usize = size_of::<StartupCapability>();

/// A startup page.
#[derive(Clone, Copy, Debug)]
pub struct StartupPage<'a> {
    records: &'a [u8],
}

/// A capability of the task, as its startup page lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability<'a> {
    /// The name the manifest gives it.
    pub name: &'a str,
    /// Index in the task's capability space.
    pub index: u32,
    /// The kind of object that it names.
    pub kind: ObjectKind,
    /// The rights of the task to the object.
    pub rights: Rights,
    /// For a partition: its number, which is also its event bit.
    pub object: u16,
}

impl<'a> StartupPage<'a> {
    /// Returns the length of the page that begins with `head`, if it is one; no longer than [`PAGE_SIZE`].
    #[must_use]
    pub fn size(head: &[u8; HEADER_SIZE]) -> Option<usize> {
        let magic = u64::from_le_bytes(*head.first_chunk()?);
        let count = u32_at(head, 8)? as usize;
        let most = (PAGE_SIZE - HEADER_SIZE) / RECORD_SIZE;
        (magic == STARTUP_MAGIC).then_some(HEADER_SIZE + count.min(most) * RECORD_SIZE)
    }

    /// Returns the startup page in `bytes`, if it is one.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let size = Self::size(bytes.first_chunk()?)?;
        let records = bytes.get(HEADER_SIZE..size.min(bytes.len()))?;
        Some(Self { records })
    }

    /// Returns everything that the task can name, in the order of the page. Records it cannot understand are
    /// left out.
    pub fn capabilities(&self) -> impl Iterator<Item = Capability<'a>> + use<'a> {
        self.records.chunks_exact(RECORD_SIZE).filter_map(decode)
    }

    /// Returns the capability of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Capability<'a>> {
        self.capabilities().find(|capability| capability.name == name)
    }

    /// Returns the first capability of this kind.
    #[must_use]
    pub fn first(&self, kind: ObjectKind) -> Option<Capability<'a>> {
        self.capabilities().find(|capability| capability.kind == kind)
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn decode(record: &[u8]) -> Option<Capability<'_>> {
    let name = record.get(..24)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Some(Capability {
        name: core::str::from_utf8(name.get(..end)?).ok()?,
        index: u32_at(record, 24)?,
        kind: ObjectKind::from_number(*record.get(28)?)?,
        rights: Rights(*record.get(29)?),
        object: u16::from_le_bytes(*record.get(30..)?.first_chunk()?),
    })
}

#[cfg(test)]
mod tests {
    use super::{HEADER_SIZE, PAGE_SIZE, RECORD_SIZE, StartupPage};
    use bulkhead_abi::startup::STARTUP_MAGIC;
    use bulkhead_abi::{ObjectKind, Rights};

    fn page(records: &[(&str, u32, u8, u8, u16)]) -> [u8; PAGE_SIZE] {
        let mut bytes = [0; PAGE_SIZE];
        bytes[..8].copy_from_slice(&STARTUP_MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&(records.len() as u32).to_le_bytes());
        for (i, (name, index, kind, rights, object)) in records.iter().enumerate() {
            let record = &mut bytes[HEADER_SIZE + i * RECORD_SIZE..][..RECORD_SIZE];
            record[..name.len()].copy_from_slice(name.as_bytes());
            record[24..28].copy_from_slice(&index.to_le_bytes());
            record[28] = *kind;
            record[29] = *rights;
            record[30..32].copy_from_slice(&object.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn lists_what_the_page_has() {
        let bytes = page(&[
            ("linux", 1, 1, 5, 0),
            ("events", 2, 2, 1, 0),
            ("odd", 3, 99, 1, 0),
        ]);
        let page = StartupPage::new(&bytes).expect("a startup page");
        assert_eq!(page.capabilities().count(), 2);
        let linux = page.find("linux").expect("the capability");
        assert_eq!(
            (linux.index, linux.kind, linux.rights),
            (1, ObjectKind::Partition, Rights(5))
        );
        assert_eq!(
            page.first(ObjectKind::EventGate).map(|gate| gate.name),
            Some("events")
        );
        assert_eq!(page.first(ObjectKind::Timer), None);
    }

    #[test]
    fn a_wrong_page_is_refused_and_a_wrong_count_is_bounded() {
        assert!(StartupPage::new(&[0; PAGE_SIZE]).is_none());
        let mut bytes = page(&[]);
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        let page = StartupPage::new(&bytes).expect("a startup page");
        assert_eq!(page.capabilities().count(), 0);
    }
}
