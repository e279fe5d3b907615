// SPDX-License-Identifier: Apache-2.0
//! The keys of a board file: its own keys, and the keys of each class and each driver.

use crate::board::{Board, Device};
use crate::class;
use crate::driver::{CLOCK, Driver, LINE_MAX, Role};
use crate::schema::declare::tables;
use crate::schema::form::{Declared, Form, Whole};
use crate::schema::{Key, Need, TableSchema, ValueKind, Word};
use crate::units::Address;
use crate::window::Window;

/// The whole form of a board file.
pub(crate) static SCHEMA: TableSchema = TableSchema {
    what: Board::SCHEMA.what,
    doc: Board::SCHEMA.doc,
    own: Board::SCHEMA.own,
    complete: all_keys,
};

/// Returns all keys of a board file: its own, the devices that the hypervisor drives, and the keys of
/// classes.
fn all_keys(own: &'static [Key]) -> Vec<Key> {
    let roles = Role::OF_BOARD.iter().map(|role| key_of(*role));
    let classes = class::hosts().flat_map(|host| host.board_keys());
    let of_one_class = classes.map(|key| Key {
        need: Need::Optional,
        ..*key
    });
    let mut keys: Vec<Key> = Vec::new();
    // Two classes can have the same key.
    for key in own.iter().copied().chain(roles).chain(of_one_class) {
        if keys.iter().all(|other| other.name != key.name) {
            keys.push(key);
        }
    }
    keys
}

/// Returns the key of a role in a board file. A network is an ordinary device.
const fn key_of(role: Role) -> Key {
    let (doc, kind, need) = match role {
        Role::Console => (
            "the UART of the hypervisor; without a UART the log is in RAM only",
            <ConsoleKeys as Form>::KIND,
            Need::Optional,
        ),
        Role::Interrupts => (
            "the interrupt controller",
            <ControllerKeys as Form>::KIND,
            Need::Required,
        ),
        Role::Timer => ("the system timer", <TimerKeys as Form>::KIND, Need::Required),
        Role::Network => ("the device", <Device as Form>::KIND, Need::Optional),
        Role::Security => (
            "the controllers that say which world of the processor reaches memory and devices",
            <SecurityKeys as Form>::KIND,
            Need::Optional,
        ),
        Role::Processors => (
            "the parts by which CPUs start and interrupt each other, where the architecture does not say how",
            <ProcessorKeys as Form>::KIND,
            Need::Optional,
        ),
    };
    Key {
        name: role.table(),
        doc,
        kind,
        need,
    }
}

tables! {
    /// The UART that all consoles share.
    pub(crate) ConsoleKeys completed_by console_keys = "a console" {}

    /// The interrupt controller.
    pub(crate) ControllerKeys completed_by controller_keys = "an interrupt controller" {
        /// number of interrupt lines, private ones included (NVIC: external interrupts)
        lines "lines": Whole<1, { LINE_MAX + 1 }>, required;
        /// lines for virtual devices of VMs, which are lines of this controller; class `armv8m`. No hardware
        /// that a partition reaches drives one of them
        virtual_lines "virtual-lines": Option<LineRow>, optional;
    }

    /// A row of interrupt lines.
    pub(crate) LineRow derive(Copy) = "a row of lines" {
        /// number of the first line
        first "first": Whole<0, LINE_MAX>, required;
        /// number of lines
        count "count": Whole<2, { LINE_MAX + 1 }>, required;
    }

    /// The Arm generic timer with its private interrupt lines, or a dual timer with a counter that always
    /// runs.
    pub(crate) TimerKeys completed_by timer_keys = "a timer" {}

    /// The controllers that say which world of the processor reaches memory and devices.
    pub(crate) SecurityKeys completed_by security_keys = "a security controller" {
        /// memory protection controllers, one for each memory that is guarded
        memory_controllers "memory-controllers": Vec<MemoryController>, required;
    }

    /// The parts by which CPUs start and interrupt each other.
    pub(crate) ProcessorKeys completed_by processor_keys = "a start of CPUs" {}

    /// A memory protection controller.
    pub(crate) MemoryController derive(Copy) = "a memory protection controller" {
        /// address of its registers, a page of 4K
        registers "registers": Address, required;
        /// memory that it guards
        memory "memory": Window, required;
    }
}

fn processor_keys(own: &'static [Key]) -> Vec<Key> {
    keys_of_role(Role::Processors, || choices(Role::Processors), own)
}

fn security_keys(own: &'static [Key]) -> Vec<Key> {
    keys_of_role(Role::Security, || choices(Role::Security), own)
}

fn console_keys(own: &'static [Key]) -> Vec<Key> {
    keys_of_role(Role::Console, || choices(Role::Console), own)
}

fn controller_keys(own: &'static [Key]) -> Vec<Key> {
    keys_of_role(Role::Interrupts, || choices(Role::Interrupts), own)
}

fn timer_keys(own: &'static [Key]) -> Vec<Key> {
    keys_of_role(Role::Timer, || choices(Role::Timer), own)
}

/// Returns the keys of all drivers for a role, each once, together with the table's own keys. A key that some
/// driver does not have is optional here; [`Driver::keys`] says what a device of a driver needs.
fn keys_of_role(role: Role, drivers: fn() -> Vec<Word>, own: &'static [Key]) -> Vec<Key> {
    let all: Vec<Vec<Key>> = of_all_classes(role).map(Driver::keys).collect();
    let mut keys = vec![Key {
        name: "compatible",
        doc: "driver",
        kind: ValueKind::OneOf(drivers),
        need: Need::Required,
    }];
    // The sort is stable: windows, lines, the clock, each in the order of the drivers.
    let mut of_drivers: Vec<Key> = all.iter().flatten().copied().collect();
    of_drivers.sort_by_key(|key| {
        let is_window = matches!(key.kind, ValueKind::Table(_));
        (!is_window, key.name == CLOCK)
    });
    for key in of_drivers {
        if keys.iter().any(|other| other.name == key.name) {
            continue;
        }
        let has = |keys: &Vec<Key>| keys.iter().any(|other| other.name == key.name);
        let need = if all.iter().all(has) {
            key.need
        } else {
            Need::Optional
        };
        keys.push(Key { need, ..key });
    }
    keys.extend(own);
    keys
}

/// Returns the drivers of all classes for a role, each once, as `compatible` and description.
fn choices(role: Role) -> Vec<Word> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for driver in of_all_classes(role) {
        let choice = (driver.compatible, driver.description);
        if !found.contains(&choice) {
            found.push(choice);
        }
    }
    found
}

/// Returns the drivers of all classes for a role.
pub(crate) fn of_all_classes(role: Role) -> impl Iterator<Item = &'static Driver> {
    let all = class::hosts().flat_map(|host| host.drivers());
    all.copied().filter(move |driver| driver.role == role)
}
