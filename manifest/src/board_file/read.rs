// SPDX-License-Identifier: Apache-2.0
//! Reads a board file: its shape, its values, and contradictions between values that are each possible.

use std::path::Path;

use bulkhead_image::has_gates;

use super::keys::{ControllerKeys, MemoryController, SCHEMA, SecurityKeys, of_all_classes};
use super::measurement;
use crate::board::{Board, Class, Device, Gate};
use crate::class;
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::driver::{ARM_MPC, Controller, Driver, Role};
use crate::schema::form::{Declared, Field, Form, Whole};
use crate::schema::{Key, Need, ValueKind, shape};
use crate::units::PAGE;
use crate::value::{self, Entry, Table, Value};
use crate::window::Window;

/// Reads and checks the board file `text` at `path`; `None` if something was reported.
pub(super) fn read(path: &Path, text: &str, report: &mut Report) -> Option<Board> {
    let errors = report.error_count();
    let file = report.sources.add(path, text.to_owned());
    let table = value::parse(file, text, report);
    let top = Place {
        file,
        start: 0,
        end: 0,
    };
    if report.error_count() == errors {
        shape::check(&table, top, &SCHEMA, report);
    }
    if report.error_count() > errors {
        return None;
    }
    let board = build(&table, report);
    check_driver_keys(&table, board.class, report);
    check_class_keys(&table, board.class, top, report);
    if report.error_count() == errors {
        check(&board, &table, top, report);
    }
    (report.error_count() == errors).then_some(board)
}

/// Returns the driver that a class has for the device in a table of the board file.
fn driver_of(table: &Table, role: Role, class: Class) -> Option<&'static Driver> {
    let compatible = table.get("compatible")?.text()?;
    let mut drivers = class::host(class).drivers().iter().copied();
    drivers.find(|driver| driver.role == role && driver.compatible == compatible)
}

/// Returns the devices that the hypervisor drives.
fn controllers(table: &Table, class: Class) -> Vec<Controller> {
    let one = |role: Role| {
        let table = table.get(role.table()).and_then(Value::table)?;
        Some(driver_of(table, role, class)?.read(table))
    };
    let mut all: Vec<Controller> = Role::OF_BOARD.into_iter().filter_map(one).collect();
    if all.iter().any(|own| own.driver.role == Role::Security) {
        let security: SecurityKeys = Field::read(table.entry(Role::Security.table()), None);
        all.extend(security.memory_controllers.iter().map(memory_controller));
    }
    all
}

/// Returns a memory protection controller as a device that the hypervisor drives.
fn memory_controller(given: &MemoryController) -> Controller {
    Controller {
        driver: &ARM_MPC,
        windows: vec![Window {
            base: given.registers.get(),
            size: PAGE,
        }],
        guarded: Some(given.memory),
        lines: Vec::new(),
        clock_hz: 0,
    }
}

fn build(table: &Table, report: &mut Report) -> Board {
    let mut board = Board::of(table);
    board.controllers = controllers(table, board.class);
    let controller: ControllerKeys = Field::read(table.entry(Role::Interrupts.table()), None);
    board.line_count = controller.lines.get();
    let row = controller.virtual_lines;
    board.virtual_lines = row.map_or(0..0, |row| {
        let first = row.first.get();
        first..first.saturating_add(row.count.get())
    });
    if let Some(row) = row {
        let last = board.virtual_lines.end.saturating_sub(1);
        let mut own = board.controllers.iter_mut();
        let own = own.find(|own| own.driver.role == Role::Interrupts);
        own.into_iter()
            .for_each(|own| own.lines = vec![row.first.get(), last]);
    }
    let host = class::host(board.class);
    host.settle_board(table, &mut board);
    board.log = host.log(&board);
    board.drivers = host.drivers();
    let rows = table.get("device").and_then(Value::table);
    let entries = rows.map(|rows| &rows.entries[..]).unwrap_or_default();
    let devices = entries.iter().zip(&board.devices);
    let devices: Vec<Device> = devices
        .flat_map(|(entry, row)| expand(entry, row, report))
        .collect();
    *board.devices = devices;
    board
}

/// Returns the devices that an entry stands for: one device, or a row.
fn expand(entry: &Entry, row: &Device, report: &mut Report) -> Vec<Device> {
    let mut refuse = |message: String, help: &str| {
        report.push(Diagnostic::at(Code::BadBoard, entry.key_place, message).help(help));
    };
    let name = &entry.key;
    let Some(count) = row.count else {
        quiesce_is_inside(name, row, &mut refuse);
        return vec![Device {
            name: name.clone(),
            ..row.clone()
        }];
    };
    if count.get() > 1 && row.stride.get() == 0 {
        refuse(
            format!("device `{name}` has a count, but no stride"),
            "add `stride`: the bytes from one's registers to the next one's",
        );
    }
    quiesce_is_inside(name, row, &mut refuse);
    let one = |index: u32| shifted(name, row, index);
    let devices: Option<Vec<Device>> = (0..count.get()).map(one).collect();
    devices.unwrap_or_else(|| {
        refuse(
            format!("the row of devices `{name}` goes beyond the last address or interrupt line"),
            "lower `count` or `stride`, or correct the first one's registers and lines",
        );
        Vec::new()
    })
}

/// Returns the device with this number in a row, if such a device is possible.
fn shifted(name: &str, row: &Device, index: u32) -> Option<Device> {
    let mut device = row.clone();
    device.name = format!("{name}-{index}");
    device.index = index;
    let distance = row.stride.get().checked_mul(index.into())?;
    for window in &mut device.registers {
        window.base = window.base.checked_add(distance)?;
    }
    if let Some(gate) = &mut device.gate {
        gate.bit = Whole::new(gate.bit.get().checked_add(index)?.into())?;
    }
    for interrupt in &mut device.interrupts {
        interrupt.line = Whole::new(interrupt.line.get().checked_add(index)?.into())?;
    }
    Some(device)
}

/// Checks that the registers that stop a device are the device's own, each written once.
fn quiesce_is_inside(name: &str, device: &Device, refuse: &mut impl FnMut(String, &str)) {
    let first = device.registers.first().map_or(0, |window| window.size);
    let offsets: Vec<u32> = device.writes().map(|write| write.offset).collect();
    for (index, offset) in offsets.iter().enumerate() {
        let is_inside = offset.is_multiple_of(4) && u64::from(*offset).saturating_add(4) <= first;
        if !is_inside {
            refuse(
                format!("device `{name}` has no register at {offset:#x}"),
                "give `quiesce` and `clear` offsets of 32-bit registers in the first window",
            );
        } else if offsets.iter().take(index).any(|other| other == offset) {
            refuse(
                format!(
                    "the register at {offset:#x} of device `{name}` is written twice when its owner ends"
                ),
                "give `quiesce` and `clear` another register each",
            );
        }
    }
}

/// Checks that a board has the kinds of memory of its class, and the keys for them.
fn check_class_keys(table: &Table, class: Class, top: Place, report: &mut Report) {
    for owner in Class::all() {
        for Key { name: key, .. } in class::host(owner).board_keys() {
            let is_own = class::host(class).board_keys().iter().any(|own| own.name == *key);
            let message = match (table.entry(key), owner == class) {
                (None, true) => format!("a board of class `{}` needs the key `{key}`", class.name()),
                (Some(_), false) if !is_own => {
                    format!("a board of class `{}` has no `{key}`", class.name())
                }
                (None, false) | (Some(_), _) => continue,
            };
            let place = table.entry(key).map_or(top, |entry| entry.key_place);
            report.push(
                Diagnostic::at(Code::BadBoard, place, message)
                    .help("see the boards that come with the tool: `bulkhead boards`"),
            );
        }
    }
}

/// Checks that the class has each driver, and that each device has what its driver needs and nothing else.
fn check_driver_keys(table: &Table, class: Class, report: &mut Report) {
    for role in Role::OF_BOARD {
        let Some(entry) = table.entry(role.table()) else {
            continue;
        };
        let Some(device) = entry.value.table() else {
            continue;
        };
        let Some(compatible) = device.entry("compatible") else {
            continue;
        };
        match driver_of(device, role, class) {
            Some(driver) => {
                check_device_keys(driver, device, entry.key_place, report);
                check_window_sizes(driver, class, device, report);
            }
            None => {
                let message = format!(
                    "the hypervisor of class `{}` has no driver `{}`",
                    class.name(),
                    compatible.value.text().unwrap_or_default()
                );
                report.push(
                    Diagnostic::at(Code::BadBoard, compatible.value.place, message)
                        .help("see the boards that come with the tool: `bulkhead boards`"),
                );
            }
        }
    }
}

fn check_device_keys(driver: &Driver, device: &Table, place: Place, report: &mut Report) {
    let (role, compatible, own) = (driver.role, driver.compatible, driver.keys());
    let needed = own.iter().filter(|key| matches!(key.need, Need::Required));
    for key in needed.filter(|key| device.get(key.name).is_none()) {
        let message = format!("the {} `{compatible}` needs the key `{}`", role.noun(), key.name);
        let is_table = matches!(key.kind, ValueKind::Table(_));
        let value = if is_table {
            "{ base = ..., size = ... }"
        } else {
            "..."
        };
        let help = format!("add `{} = {value}`", key.name);
        report.push(Diagnostic::at(Code::BadBoard, place, message).help(help));
    }
    // The schema knows the keys of other devices of the role.
    let others = of_all_classes(role).flat_map(Driver::keys);
    let mut foreign: Vec<&str> = others
        .map(|key| key.name)
        .filter(|name| !own.iter().any(|key| key.name == *name))
        .collect();
    foreign.sort_unstable();
    foreign.dedup();
    for entry in foreign.into_iter().filter_map(|key| device.entry(key)) {
        let message = format!("{} `{compatible}` has no `{}`", role.any(), entry.key);
        report.push(
            Diagnostic::at(Code::BadBoard, entry.key_place, message)
                .help("remove it, or correct `compatible`"),
        );
    }
}

/// Checks that each register window is as large as the driver needs it.
fn check_window_sizes(driver: &Driver, class: Class, device: &Table, report: &mut Report) {
    let mut all = class.facts().drivers.iter();
    let facts = all.find(|facts| facts.number == driver.number);
    for (index, own) in driver.windows.iter().enumerate() {
        let Some(entry) = device.entry(own.key) else {
            continue;
        };
        let least = facts.and_then(|facts| facts.windows.get(index)).copied();
        let least = least.unwrap_or_default();
        let size = <Window as Form>::read(&entry.value).unwrap_or_default().size;
        if size < least {
            let message = format!("`{}` has {size:#x} bytes, {}", own.key, own.why);
            let help = own.help.map_or_else(|| format!("give {least:#x}"), str::to_owned);
            report.push(Diagnostic::at(Code::BadBoard, entry.key_place, message).help(help));
        }
    }
}

/// Checks that the hypervisor's devices are whole pages, apart from each other and from RAM.
fn check_own_devices(board: &Board, refuse: &mut impl FnMut(&str, String, &str)) {
    let own = board.hypervisor_devices();
    for (index, (name, window)) in own.iter().copied().enumerate() {
        let earlier = own[..index].iter().map(|(_, window)| window);
        if earlier
            .chain(&board.ram)
            .chain(&board.code)
            .any(|other| other.overlaps(window))
        {
            refuse(
                name,
                format!(
                    "registers of `{name}` at {:#x} overlap RAM or other registers of the hypervisor's",
                    window.base
                ),
                "look their addresses and sizes up once more",
            );
        }
        if window.size == 0 || window.pages() != window {
            refuse(
                name,
                format!("registers of `{name}` are not whole pages"),
                "give a base and a size that are multiples of 4K",
            );
        }
    }
}

/// Checks a board file for contradictions between values that are each possible.
fn check(board: &Board, table: &Table, top: Place, report: &mut Report) {
    let place = |key: &str| table.entry(key).map_or(top, |entry| entry.key_place);
    let mut refuse = |key: &str, message: String, help: &str| {
        report.push(Diagnostic::at(Code::BadBoard, place(key), message).help(help));
    };
    let max = bulkhead_arch_api::MAX_PCPUS;
    if board.cpus.is_empty() || board.cpus.len() > max {
        refuse(
            "cpus",
            format!("the board lists {} CPUs", board.cpus.len()),
            &format!("list 1 to {max} CPUs"),
        );
    }
    let pages = |window: &Window| window.size > 0 && window.pages() == *window;
    let no_wrap = |window: &Window| window.base.checked_add(window.size).is_some();
    if board.ram.is_empty() || !board.ram.iter().all(|window| pages(window) && no_wrap(window)) {
        refuse(
            "ram",
            "RAM must be whole pages of 4K".to_owned(),
            "give each stretch a base and a size that are multiples of 4K",
        );
    }
    for (index, window) in board.ram.iter().enumerate() {
        if board.ram[..index].iter().any(|other| other.overlaps(*window)) {
            refuse(
                "ram",
                format!("the stretch of RAM at {:#x} overlaps another", window.base),
                "list each byte once",
            );
        }
    }
    class::host(board.class).check_board(board, &mut refuse);
    check_own_devices(board, &mut refuse);
    check_devices(board, &mut refuse);
    check_gates(board, &mut refuse);
    measurement::check(board, &mut refuse);
}

/// Checks that each gate is a bit of the board's security controller, and of one device only.
fn check_gates(board: &Board, refuse: &mut impl FnMut(&str, String, &str)) {
    let security = board.driven(Role::Security);
    let window = security.and_then(|controller| controller.windows.first());
    let gates: Vec<(&str, Gate)> = board
        .devices
        .iter()
        .filter_map(|device| Some((device.name.as_str(), device.gate?)))
        .collect();
    for (index, (name, gate)) in gates.iter().enumerate() {
        let Some(window) = window else {
            refuse(
                "device",
                format!("device `{name}` has a gate, and the board has no security controller"),
                "remove `gate`, or add the table `security`",
            );
            continue;
        };
        let register = u64::from(gate.register);
        if !has_gates(gate.register) || register.saturating_add(4) > window.size {
            refuse(
                "device",
                format!("the security controller has no gates at {register:#x} for device `{name}`"),
                "`gate.register` is the offset of a register for non-secure access (`NSPPC`) in `security`",
            );
        }
        let earlier = gates.get(..index).unwrap_or(&[]);
        if let Some((other, _)) = earlier.iter().find(|(_, other)| other == gate) {
            refuse(
                "device",
                format!("the devices `{other}` and `{name}` have the same gate"),
                "each device has a bit of its own: look them up once more",
            );
        }
    }
}

fn check_devices(board: &Board, refuse: &mut impl FnMut(&str, String, &str)) {
    let no_wrap = |window: &Window| window.base.checked_add(window.size).is_some();
    for device in &board.devices {
        if device
            .registers
            .iter()
            .any(|window| window.size == 0 || !no_wrap(window))
        {
            refuse(
                "device",
                format!("device `{}` has empty or impossible registers", device.name),
                "give a size above zero that stays in the address space",
            );
        }
        let first = board.class.facts().first_device_line;
        let mut lines = device.interrupts.iter().map(|interrupt| interrupt.line.get());
        if let Some(line) = lines.clone().find(|line| *line < first) {
            refuse(
                "device",
                format!(
                    "device `{}` uses line {line}, which is private to each CPU",
                    device.name
                ),
                &format!("the lines of devices are {first} and above"),
            );
        }
        if lines.any(|line| line >= board.line_count) {
            refuse(
                "device",
                format!(
                    "device `{}` uses a line the interrupt controller does not have",
                    device.name
                ),
                "lower the line, or raise `lines` of the interrupt controller",
            );
        }
    }
}
