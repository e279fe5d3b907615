// SPDX-License-Identifier: Apache-2.0
//! The startup page of a task: its capabilities, its windows, its devices. The layout is in
//! `bulkhead_abi::startup`.

use bulkhead_abi::hypercall::ABI_VERSION;
use bulkhead_abi::startup::{DEVICES_MAGIC, WINDOW_READ_ONLY, WINDOWS_MAGIC};
use bulkhead_abi::{ObjectKind, STARTUP_MAGIC, StartupCapability, StartupHeader};

use super::Context;
use crate::model::capability::Capability;
use crate::model::devices::registers;
use crate::model::served::ServedWindow;
use crate::model::{Placed, ServiceKind};
use crate::units::Size;
use crate::window::Window;

/// Returns the records that tell a task its capabilities, from the beginning of its startup page on. Their
/// layout is in `bulkhead_abi::startup`.
pub(crate) fn records(ram: Window, capabilities: &[Capability]) -> Vec<u8> {
    let header = StartupHeader {
        magic: STARTUP_MAGIC,
        count: capabilities.len() as u32,
        abi_version: ABI_VERSION,
        memory_base: ram.base,
        memory_size: ram.size,
    };
    let mut page = Vec::new();
    page.extend_from_slice(&header.magic.to_le_bytes());
    page.extend_from_slice(&header.count.to_le_bytes());
    page.extend_from_slice(&header.abi_version.to_le_bytes());
    page.extend_from_slice(&header.memory_base.to_le_bytes());
    page.extend_from_slice(&header.memory_size.to_le_bytes());
    for capability in capabilities {
        let mut name = [0; 24];
        let length = capability.name.len().min(name.len() - 1);
        name[..length].copy_from_slice(&capability.name.as_bytes()[..length]);
        let record = StartupCapability {
            name,
            index: capability.index,
            kind: capability.kind as u8,
            rights: capability.rights.0,
            object: if capability.kind == ObjectKind::Partition {
                capability.object as u16
            } else {
                0
            },
        };
        page.extend_from_slice(&record.name);
        page.extend_from_slice(&record.index.to_le_bytes());
        page.extend_from_slice(&[record.kind, record.rights]);
        page.extend_from_slice(&record.object.to_le_bytes());
    }
    page
}

/// Returns the list of windows in the startup page of their server. The layout is in
/// `bulkhead_abi::startup`.
pub(crate) fn windows(windows: &[ServedWindow<'_>]) -> Vec<u8> {
    let mut page = Vec::new();
    if windows.is_empty() {
        return page;
    }
    page.extend_from_slice(&WINDOWS_MAGIC.to_le_bytes());
    page.extend_from_slice(&(windows.len() as u32).to_le_bytes());
    page.extend_from_slice(&0_u32.to_le_bytes());
    for window in windows {
        for name in [&*window.service.name.value, window.client] {
            let mut bytes = [0; 24];
            for (to, from) in bytes.iter_mut().zip(name.as_bytes()) {
                *to = *from;
            }
            page.extend_from_slice(&bytes);
        }
        let kind = window.service.kind;
        let flags = if *window.spec.read_only {
            WINDOW_READ_ONLY
        } else {
            0
        };
        let bytes = |size: &Option<Placed<Size>>| size.as_ref().map_or(0, |size| size.value.get());
        let first = match kind {
            // A locally administered address (IEEE 802, 8.2.2).
            ServiceKind::Network => u64::from_le_bytes([2, b'b', b's', b'v', 0, window.number as u8, 0, 0]),
            _ => bytes(&window.spec.offset),
        };
        page.extend_from_slice(&[window.number as u8, kind.number()]);
        page.extend_from_slice(&flags.to_le_bytes());
        page.extend_from_slice(&window.reaches.to_le_bytes());
        page.extend_from_slice(&first.to_le_bytes());
        page.extend_from_slice(&bytes(&window.spec.size).to_le_bytes());
    }
    page
}

/// Returns the list of devices in the startup page. Its layout is in `bulkhead_abi::startup`.
pub(crate) fn devices(context: &Context<'_>) -> Vec<u8> {
    let devices: Vec<_> = registers(context.spec, context.board).collect();
    let mut list = Vec::new();
    if devices.is_empty() {
        return list;
    }
    list.extend_from_slice(&DEVICES_MAGIC.to_le_bytes());
    list.extend_from_slice(&(devices.len() as u32).to_le_bytes());
    list.extend_from_slice(&0_u32.to_le_bytes());
    for device in devices {
        let mut name = [0; 24];
        for (to, from) in name.iter_mut().zip(device.name.value.as_bytes()) {
            *to = *from;
        }
        list.extend_from_slice(&name);
        list.extend_from_slice(&device.window.base.to_le_bytes());
        list.extend_from_slice(&device.window.size.to_le_bytes());
    }
    list
}
