// SPDX-License-Identifier: Apache-2.0
//! The meaning of an address of a partition: the thing at that address, or the thing that is missing there.

use bulkhead_manifest::System;
use bulkhead_manifest::system::{Mapping, MappingKind, Partition};

/// A wild pointer lands near zero more often than anywhere else.
const NULL_PAGE: u64 = 0x1000;

/// The meaning of an address to a partition.
pub enum Meaning<'a> {
    /// The partition has this mapping there, but not with every permission.
    Mapped(Mapping),
    /// The partition has this virtual device there.
    Virtual(String),
    /// A device of the board that the partition does not have, and its owner.
    Device(&'a str, Option<String>),
    /// Close to zero.
    Null,
    /// After the RAM that ends at this address.
    Behind(u64),
    /// Nothing.
    Nothing,
}

/// Finds the meaning of an address to a partition.
pub fn find<'a>(system: &'a System, partition: &Partition<'_>, address: u64) -> Meaning<'a> {
    let covers = |mapping: &Mapping| {
        address
            .checked_sub(mapping.guest)
            .is_some_and(|at| at < mapping.size)
    };
    if let Some(mapping) = partition.mappings().into_iter().find(covers) {
        return Meaning::Mapped(mapping);
    }
    if let Some(device) = partition.virtual_device_at(address) {
        return Meaning::Virtual(device);
    }
    // A device that is passed through has the same address in the partition as on the board.
    let device = system.board().devices.iter().find(|device| {
        device.registers.iter().any(|window| {
            address
                .checked_sub(window.base)
                .is_some_and(|at| at < window.size)
        })
    });
    if let Some(device) = device {
        let owner = system
            .partitions()
            .into_iter()
            .find(|other| other.devices().any(|own| own == device.name));
        return Meaning::Device(&device.name, owner.map(|owner| owner.name().to_owned()));
    }
    if address < NULL_PAGE {
        return Meaning::Null;
    }
    let ram = partition
        .mappings()
        .into_iter()
        .filter(|mapping| mapping.kind == MappingKind::Ram);
    let below = ram
        .map(|mapping| mapping.guest + mapping.size)
        .filter(|end| *end <= address)
        .max();
    below.map_or(Meaning::Nothing, Meaning::Behind)
}

/// Describes the address in a sentence.
pub fn describe(system: &System, partition: &Partition<'_>, address: u64) -> String {
    let name = partition.name();
    match find(system, partition, address) {
        Meaning::Mapped(mapping) => format!(
            "there `{name}` has {:#x}..{:#x} with access {}",
            mapping.guest,
            mapping.guest + mapping.size,
            letters(&mapping)
        ),
        Meaning::Virtual(device) => format!("there `{name}` has its {device}"),
        Meaning::Device(device, Some(owner)) => {
            format!("there the board has its device `{device}`, which belongs to partition `{owner}`")
        }
        Meaning::Device(device, None) => {
            format!("there the board has its device `{device}`, which belongs to nobody")
        }
        Meaning::Null => format!("`{name}` has nothing at address 0"),
        Meaning::Behind(end) => {
            format!(
                "`{name}` has nothing there; its RAM ends at {end:#x}, {:#x} below",
                address - end
            )
        }
        Meaning::Nothing => format!("`{name}` has nothing there"),
    }
}

/// Returns the permissions as `rwx`.
fn letters(mapping: &Mapping) -> String {
    let access = mapping.access;
    [(access.read, 'r'), (access.write, 'w'), (access.execute, 'x')]
        .iter()
        .map(|(allowed, letter)| if *allowed { *letter } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::launch::TemporaryFile;
    use crate::explain::remedy;
    use crate::serial::health::Event;
    use bulkhead_manifest::load_text;
    use std::path::{Path, PathBuf};

    fn system(image: &Path) -> System {
        let text = format!(
            "board = \"qemu-virt-aarch64\"\n[partition.a]\nkind = \"vm\"\nimage = {image:?}\nmemory = \"2M\"\n\
             vcpus = [{{ pcpu = 0 }}]\n[partition.b]\nkind = \"vm\"\nimage = {image:?}\nmemory = \"2M\"\n\
             vcpus = [{{ pcpu = 1 }}]\ndevices = [\"rtc\"]\n"
        );
        let nothing = |_: &str| Err::<PathBuf, String>("none".to_owned());
        load_text(Path::new("system.toml"), &text, &nothing)
            .unwrap_or_else(|report| panic!("{}", report.render(false)))
    }

    #[test]
    fn places_and_remedies() {
        let image = TemporaryFile::write("bin", &[0; 64]).unwrap();
        let system = system(image.path());
        let partition = &system.partitions()[0];
        for (address, place, remedy) in [
            (0x0901_0FE0, "`rtc`, which belongs to partition `b`", "one owner"),
            (
                0x0903_0000,
                "`gpio`, which belongs to nobody",
                "devices = [\"gpio\"]",
            ),
            (0x0800_0104, "`a` has its virtual distributor", "SIMD"),
            (0x0900_0024, "`a` has its virtual UART", "SIMD"),
            (0x8, "nothing at address 0", "null pointer"),
            (0x4020_0010, "ends at 0x40200000, 0x10 below", "more `memory`"),
            (0x4000_0000, "with access rwx", "not allowed"),
            (0xF000_0000_0000, "nothing there", "wild pointer"),
        ] {
            let found = describe(&system, partition, address);
            assert!(found.contains(place), "{address:#x}: {found}");
            let event = Event {
                class: "memory".to_owned(),
                address: Some(address),
                ..Event::default()
            };
            let found = remedy::of(&system, partition, &event);
            assert!(found.contains(remedy), "{address:#x}: {found}");
        }
        // A fetch there may be one of a vector.
        for address in [0x200, 0x4020_0200] {
            let event = Event {
                class: "memory".to_owned(),
                address: Some(address),
                pc: Some(address),
                ..Event::default()
            };
            let found = remedy::of(&system, partition, &event);
            assert!(
                found.contains("the registers below say which"),
                "{address:#x}: {found}"
            );
        }
    }
}
