// SPDX-License-Identifier: Apache-2.0
//! The startup page: how a task learns the names of its capabilities.
//!
//! The host tool writes it; the kernel only maps it read-only. A task gets its address in x0, or in r0 on
//! class `armv7m`, where nothing but the header and its records need be readable. A VM finds the same list in
//! its device tree, in node `/hypervisor`.

/// First word of a startup page: "BHSTART1" as bytes.
pub const STARTUP_MAGIC: u64 = u64::from_le_bytes(*b"BHSTART1");

/// Head of the startup page; `count` records of [`StartupCapability`] follow. All little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct StartupHeader {
    /// [`STARTUP_MAGIC`].
    pub magic: u64,
    /// Number of records that follow.
    pub count: u32,
    /// [`crate::hypercall::ABI_VERSION`] of the host tool that wrote the page.
    pub abi_version: u32,
    /// First address of the task's memory.
    pub memory_base: u64,
    /// Bytes of the task's memory; the initial stack pointer is its end.
    pub memory_size: u64,
}

/// One capability of the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct StartupCapability {
    /// The name the manifest gives it, NUL padded UTF-8.
    pub name: [u8; 24],
    /// Index in the task's capability space.
    pub index: u32,
    /// [`crate::ObjectKind`] as a number.
    pub kind: u8,
    /// [`crate::Rights`] as a number.
    pub rights: u8,
    /// The number of a partition, which is also its event bit ([`crate::status::state_change_event`]);
    /// else 0.
    pub object: u16,
}

/// First word of the list of windows, which follows the capabilities of a task that serves others: "BHWINDW1"
/// as bytes.
pub const WINDOWS_MAGIC: u64 = u64::from_le_bytes(*b"BHWINDW1");

/// Head of the list of windows; `count` records of [`StartupWindow`] follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct WindowsHeader {
    /// [`WINDOWS_MAGIC`].
    pub magic: u64,
    /// Number of records that follow.
    pub count: u32,
    /// 0.
    pub reserved: u32,
}

/// The client may not write: bit of [`StartupWindow::flags`] of a disk.
pub const WINDOW_READ_ONLY: u16 = 1;

/// A device that the task serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct StartupWindow {
    /// The name of the service, NUL padded UTF-8; 24 bytes at most.
    pub service: [u8; 24],
    /// The name of the client, likewise.
    pub client: [u8; 24],
    /// The number of the window in calls, which is also its bit in the news.
    pub number: u8,
    /// Kind of the device (Virtio 1.2, section 5).
    pub kind: u8,
    /// `WINDOW_*` bits.
    pub flags: u16,
    /// For an Ethernet interface: the windows of the service to which the client may send, as a bitmap.
    pub reaches: u32,
    /// For a disk: the first byte of the client's part. For an Ethernet interface: its address, the first
    /// byte in bits 7:0.
    pub first: u64,
    /// For a disk: bytes of the client's part.
    pub size: u64,
}

/// First word of the list of devices of the board that belong to the task, which follows the list of windows,
/// or the capabilities if there are no windows: "BHDEVIC1" as bytes.
pub const DEVICES_MAGIC: u64 = u64::from_le_bytes(*b"BHDEVIC1");

/// Registers of a device of the board that belongs to the task. A head like [`WindowsHeader`], with
/// [`DEVICES_MAGIC`], comes before the first. The devices' interrupts are the event
/// [`crate::hypercall::DEVICE_EVENT`] at the task's gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct StartupDevice {
    /// The name of the device in the board file, NUL padded UTF-8; 24 bytes at most.
    pub name: [u8; 24],
    /// The first address of the registers.
    pub base: u64,
    /// Their bytes.
    pub size: u64,
}
