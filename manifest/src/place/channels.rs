// SPDX-License-Identifier: Apache-2.0
//! The places where partitions see their channels, and the virtual bridge of PCI functions.

use bulkhead_arch_api::class::device;

use crate::model::side::Side;
use crate::model::{Manifest, SideSpec};
use crate::units::{BLOCK, PAGE, align_up};
use crate::window::Window;

/// The address from which on partitions see their channels, unless the manifest says otherwise: QEMU's `virt`
/// board has no memory and no device there that a VM of ours has.
pub(crate) const FIRST_ADDRESS: u64 = 0x1000_0000;

/// Returns the sides of a partition, in the order of the channels.
pub(crate) fn sides_of<'a>(manifest: &'a Manifest, partition: &str) -> Vec<Side<'a>> {
    let is_own = |side: &&SideSpec| matches!(&side.partition, Some(own) if own.value == partition);
    let mut next = FIRST_ADDRESS;
    let mut sides = Vec::new();
    for (number, channel) in manifest.channels.iter().enumerate() {
        let Some(spec) = channel.sides.iter().find(is_own) else {
            continue;
        };
        let size = channel.size.as_ref().map_or(0, |size| size.value.get());
        // A base address register tells a multiple of its size.
        let unit = match *spec.pci {
            true if size.is_power_of_two() => size.max(PAGE),
            _ if size >= BLOCK => BLOCK,
            _ => PAGE,
        };
        let base = match &spec.guest {
            Some(guest) => guest.value.get(),
            None => {
                let base = align_up(next, unit).unwrap_or(next);
                next = base.saturating_add(size);
                base
            }
        };
        sides.push(Side {
            number,
            channel,
            spec,
            window: Window { base, size },
        });
    }
    sides
}

/// The virtual PCI host bridge: its configuration space has the place that QEMU's `virt` board gives it, and
/// its registers are at the end of its window for memory.
pub(crate) const BRIDGE: [(&str, Window); 2] = [
    (
        "virtual PCI host bridge",
        Window {
            base: 0x3f00_0000,
            size: device::PCI_BRIDGE.windows[0].size,
        },
    ),
    (
        "registers of virtual PCI functions",
        Window {
            base: 0x3e00_0000,
            size: device::PCI_BRIDGE.windows[1].size,
        },
    ),
];
/// The window for memory: from the first channel to the last register.
pub(crate) const BRIDGE_MEMORY: Window = Window {
    base: FIRST_ADDRESS,
    size: 0x2e10_0000,
};

/// Counts the PCI functions of each partition.
pub(crate) fn count_functions(manifest: &mut Manifest) {
    let names = manifest.partitions.iter().map(|partition| &partition.name.value);
    let count = |name: &String| {
        let sides = sides_of(manifest, name);
        sides.iter().filter(|side| *side.spec.pci).count()
    };
    let counts: Vec<usize> = names.map(count).collect();
    for (partition, count) in manifest.partitions.iter_mut().zip(counts) {
        partition.machine.functions = count;
    }
}
