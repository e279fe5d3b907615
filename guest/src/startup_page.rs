// SPDX-License-Identifier: Apache-2.0
//! Reader of the startup page, by which a task learns the names of its capabilities.
//!
//! The page comes from the host tool through a read-only mapping; it is checked all the same, because a
//! wrong page must give an empty list and not a wild access.

use bulkhead_abi::startup::{
    DEVICES_MAGIC, STARTUP_MAGIC, StartupCapability, StartupDevice, StartupHeader, StartupWindow,
    WINDOW_READ_ONLY, WINDOWS_MAGIC, WindowsHeader,
};
use bulkhead_abi::{ObjectKind, Rights};

/// Bytes of a startup page at most.
pub const PAGE_SIZE: usize = 4096;
/// Bytes of its head.
pub const HEADER_SIZE: usize = size_of::<StartupHeader>();

const RECORD_SIZE: usize = size_of::<StartupCapability>();
const WINDOWS_HEADER_SIZE: usize = size_of::<WindowsHeader>();
const WINDOW_SIZE: usize = size_of::<StartupWindow>();
const DEVICE_SIZE: usize = size_of::<StartupDevice>();

/// A startup page.
#[derive(Clone, Copy, Debug)]
pub struct StartupPage<'a> {
    records: &'a [u8],
    /// The windows that the task serves.
    windows: &'a [u8],
    /// The devices of the board that belong to the task.
    devices: &'a [u8],
    /// The address after the task's memory.
    memory_end: u64,
}

/// A device that the task serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window<'a> {
    /// The name of the service.
    pub service: &'a str,
    /// The name of the client.
    pub client: &'a str,
    /// The number of the window in calls.
    pub number: u8,
    /// Kind of the device (Virtio 1.2, section 5).
    pub kind: u8,
    /// True if the client of a disk may not write.
    pub is_read_only: bool,
    /// The windows of the service to which the client may send frames, as a bitmap.
    pub reaches: u32,
    /// For a disk: the first byte of the client's part. For an Ethernet interface: its address, the first
    /// byte in bits 7:0.
    pub first: u64,
    /// For a disk: bytes of the client's part.
    pub size: u64,
}

/// The registers of a device of the board that belongs to the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device<'a> {
    /// The name in the board file.
    pub name: &'a str,
    /// The first address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
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
        let rest = bytes.get(size..).unwrap_or(&[]);
        let windows = list(rest, WINDOWS_MAGIC, WINDOW_SIZE);
        let behind = windows.map_or(0, |list| WINDOWS_HEADER_SIZE + list.len());
        let devices = list(rest.get(behind..).unwrap_or(&[]), DEVICES_MAGIC, DEVICE_SIZE);
        Some(Self {
            records,
            windows: windows.unwrap_or(&[]),
            devices: devices.unwrap_or(&[]),
            memory_end: u64_at(bytes, 16)?.saturating_add(u64_at(bytes, 24)?),
        })
    }

    /// Returns the windows that the task serves. They are after the capabilities, if the bytes reach there.
    pub fn windows(&self) -> impl Iterator<Item = Window<'a>> + use<'a> {
        self.windows.chunks_exact(WINDOW_SIZE).filter_map(decode_window)
    }

    /// Returns the devices of the board that belong to the task, as [`Self::windows`].
    pub fn devices(&self) -> impl Iterator<Item = Device<'a>> + use<'a> {
        self.devices.chunks_exact(DEVICE_SIZE).filter_map(decode_device)
    }

    /// Returns the address after the task's memory.
    #[must_use]
    pub const fn memory_end(&self) -> u64 {
        self.memory_end
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

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// Returns the records of a list, of `size` bytes each.
fn list(bytes: &[u8], magic: u64, size: usize) -> Option<&[u8]> {
    let count = u32_at(bytes, 8).filter(|_| u64_at(bytes, 0) == Some(magic))? as usize;
    let records = bytes.get(WINDOWS_HEADER_SIZE..)?;
    records.get(..count.checked_mul(size)?)
}

fn decode_device(record: &[u8]) -> Option<Device<'_>> {
    Some(Device {
        name: text(record.get(..24)?)?,
        base: u64_at(record, 24)?,
        size: u64_at(record, 32)?,
    })
}

fn text(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    core::str::from_utf8(bytes.get(..end)?).ok()
}

fn decode_window(record: &[u8]) -> Option<Window<'_>> {
    let flags = u16::from_le_bytes(*record.get(50..)?.first_chunk()?);
    Some(Window {
        service: text(record.get(..24)?)?,
        client: text(record.get(24..48)?)?,
        number: *record.get(48)?,
        kind: *record.get(49)?,
        is_read_only: flags & WINDOW_READ_ONLY != 0,
        reaches: u32_at(record, 52)?,
        first: u64_at(record, 56)?,
        size: u64_at(record, 64)?,
    })
}

fn decode(record: &[u8]) -> Option<Capability<'_>> {
    Some(Capability {
        name: text(record.get(..24)?)?,
        index: u32_at(record, 24)?,
        kind: ObjectKind::from_number(*record.get(28)?)?,
        rights: Rights(*record.get(29)?),
        object: u16::from_le_bytes(*record.get(30..)?.first_chunk()?),
    })
}

#[cfg(test)]
mod tests {
    use super::{HEADER_SIZE, PAGE_SIZE, RECORD_SIZE, StartupPage, WINDOW_SIZE, WINDOWS_HEADER_SIZE, Window};
    use bulkhead_abi::startup::{STARTUP_MAGIC, WINDOWS_MAGIC};
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
    fn windows_follow_the_capabilities() {
        let mut bytes = page(&[("windows", 1, 14, 3, 0)]);
        let at = HEADER_SIZE + RECORD_SIZE;
        let list = &mut bytes[at..at + WINDOWS_HEADER_SIZE + WINDOW_SIZE];
        list[..8].copy_from_slice(&WINDOWS_MAGIC.to_le_bytes());
        list[8] = 1;
        let record = &mut list[WINDOWS_HEADER_SIZE..];
        record[..4].copy_from_slice(b"disk");
        record[24..29].copy_from_slice(b"linux");
        record[48..51].copy_from_slice(&[3, 2, 1]);
        record[57] = 1;
        record[66] = 1;
        let page = StartupPage::new(&bytes).expect("a startup page");
        let expected = Window {
            service: "disk",
            client: "linux",
            number: 3,
            kind: 2,
            is_read_only: true,
            reaches: 0,
            first: 0x100,
            size: 0x1_0000,
        };
        assert_eq!(page.windows().collect::<Vec<_>>(), [expected]);
        let head = StartupPage::new(&bytes[..at]).expect("a startup page");
        assert_eq!(head.windows().count(), 0);
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
