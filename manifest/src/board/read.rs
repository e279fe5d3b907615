// SPDX-License-Identifier: Apache-2.0
//! Reading a board file: shape, values, and what it can get wrong although each value is possible by itself.

use std::path::Path;

use super::{
    Board, Console, Controller, Device, Emulator, Gic, Interrupt, Overheads, Timer, Trigger, Uart, Window,
};
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::plan::LOG_SIZE;
use crate::schema;
use crate::units::{self, PAGE};
use crate::value::{self, Entry, Table, Value};

/// `compatible` of an interrupt controller of architecture version 2.
const GIC_400: &str = "arm,gic-400";

/// Register windows of a GICv2, and those of a GICv3, besides the distributor.
const GIC_V2_KEYS: &[&str] = &["cpu-interface", "hypervisor-interface", "virtual-cpu-interface"];
const GIC_V3_KEYS: &[&str] = &["redistributors"];
/// Bytes of a GICv2's CPU interface, physical or virtual (Arm IHI 0048B, section 4.1.3).
const CPU_INTERFACE_SIZE: u64 = 0x2000;

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
        schema::shape::check(&table, top, &schema::board::BOARD, report);
    }
    if report.error_count() > errors {
        return None;
    }
    let board = build(&table, report);
    check_controller_keys(&table, top, report);
    if report.error_count() == errors {
        check(&board, &table, top, report);
    }
    (report.error_count() == errors).then_some(board)
}

fn text(table: &Table, key: &str) -> String {
    table
        .get(key)
        .and_then(Value::text)
        .unwrap_or_default()
        .to_owned()
}

fn texts(table: &Table, key: &str) -> Vec<String> {
    let values = table.get(key).map(Value::list).unwrap_or_default();
    values.iter().filter_map(Value::text).map(str::to_owned).collect()
}

fn flag(table: &Table, key: &str) -> bool {
    table.get(key).and_then(Value::boolean).unwrap_or(false)
}

/// An integer or a size; 0 if absent. The shape check has refused everything that is neither.
fn number(table: &Table, key: &str) -> u64 {
    let Some(value) = table.get(key) else { return 0 };
    let size = value.text().and_then(units::parse_size);
    size.or_else(|| value.integer().and_then(|number| u64::try_from(number).ok()))
        .unwrap_or(0)
}

fn line(table: &Table, key: &str) -> u32 {
    u32::try_from(number(table, key)).unwrap_or(0)
}

fn window(value: Option<&Value>) -> Window {
    let Some(table) = value.and_then(Value::table) else {
        return Window::default();
    };
    Window {
        base: number(table, "base"),
        size: number(table, "size"),
    }
}

fn windows(table: &Table, key: &str) -> Vec<Window> {
    table
        .get(key)
        .map(Value::list)
        .unwrap_or_default()
        .iter()
        .map(|value| window(Some(value)))
        .collect()
}

fn overheads(table: &Table) -> Overheads {
    let cost = |key| {
        let text = table.get(key).and_then(Value::text);
        text.and_then(units::parse_duration).unwrap_or(0)
    };
    Overheads {
        switch: cost("switch"),
        interrupt: cost("interrupt"),
        decision: cost("decision"),
    }
}

fn console(table: &Table) -> Console {
    Console {
        driver: match text(table, "compatible").as_str() {
            "cdns,uart-r1p12" => Uart::Cadence,
            _ => Uart::Pl011,
        },
        registers: window(table.get("registers")),
        line: line(table, "line"),
        clock_hz: line(table, "clock-hz"),
    }
}

fn build(table: &Table, report: &mut Report) -> Board {
    let inner = |key| table.get(key).and_then(Value::table).cloned().unwrap_or_default();
    let (controller, timer) = (inner("interrupt-controller"), inner("timer"));
    let ram = windows(table, "ram");
    let cpus = table.get("cpus").map(Value::list).unwrap_or_default();
    let base = ram.first().map_or(0, |window| window.base);
    Board {
        name: text(table, "name"),
        description: text(table, "description"),
        class: text(table, "class"),
        cpus: cpus
            .iter()
            .filter_map(Value::integer)
            .filter_map(|id| u64::try_from(id).ok())
            .collect(),
        load_address: base.saturating_add(number(table, "load-offset")),
        ram,
        iommu: flag(table, "iommu"),
        console: table.get("console").and_then(Value::table).map(console),
        controller: Controller {
            distributor: window(controller.get("distributor")),
            gic: if text(&controller, "compatible") == GIC_400 {
                Gic::V2 {
                    cpu_interface: window(controller.get("cpu-interface")),
                    hypervisor_interface: window(controller.get("hypervisor-interface")),
                    virtual_cpu_interface: window(controller.get("virtual-cpu-interface")),
                }
            } else {
                Gic::V3 {
                    redistributors: window(controller.get("redistributors")),
                }
            },
            maintenance: line(&controller, "maintenance"),
            lines: line(&controller, "lines"),
        },
        timer: Timer {
            hypervisor: line(&timer, "hypervisor"),
            virtual_line: line(&timer, "virtual"),
            physical: line(&timer, "physical"),
        },
        devices: inner("device")
            .entries
            .iter()
            .flat_map(|entry| devices(entry, report))
            .collect(),
        overheads: table.get("overheads").and_then(Value::table).map(overheads),
        emulator: table
            .get("emulator")
            .and_then(Value::table)
            .map(|emulator| Emulator {
                program: text(emulator, "program"),
                arguments: texts(emulator, "arguments"),
                deterministic: texts(emulator, "deterministic"),
                gdb: texts(emulator, "gdb"),
                monitor: texts(emulator, "monitor"),
                instruction_clock: texts(emulator, "instruction-clock"),
                bare: texts(emulator, "bare"),
                ignore: texts(emulator, "ignore"),
            }),
    }
}

/// The devices an entry stands for: one, or a row.
fn devices(entry: &Entry, report: &mut Report) -> Vec<Device> {
    let Some(table) = entry.value.table() else {
        return Vec::new();
    };
    let count = if table.get("count").is_some() {
        number(table, "count")
    } else {
        1
    };
    let stride = number(table, "stride");
    if count > 1 && stride == 0 {
        let message = format!("device `{}` has a count, but no stride", entry.key);
        report.push(
            Diagnostic::at(Code::BadBoard, entry.key_place, message)
                .help("add `stride`: the bytes from one's registers to the next one's"),
        );
    }
    quiesce_is_inside(entry, table, report);
    let interrupts = interrupts(table);
    let attach = table
        .get("emulator")
        .and_then(Value::table)
        .cloned()
        .unwrap_or_default();
    (0..count)
        .map(|index| Device {
            name: if table.get("count").is_some() {
                format!("{}-{index}", entry.key)
            } else {
                entry.key.clone()
            },
            description: text(table, "description"),
            compatible: texts(table, "compatible"),
            registers: windows(table, "registers")
                .into_iter()
                .map(|window| Window {
                    base: window.base.saturating_add(stride.saturating_mul(index)),
                    ..window
                })
                .collect(),
            interrupts: interrupts
                .iter()
                .map(|interrupt| Interrupt {
                    line: interrupt.line.saturating_add(index as u32),
                    ..*interrupt
                })
                .collect(),
            dma: flag(table, "dma"),
            dma_coherent: flag(table, "dma-coherent"),
            clock: table.get("clock").and_then(Value::text).map(str::to_owned),
            forward: flag(table, "forward"),
            quiesce: table
                .get("quiesce")
                .and_then(Value::table)
                .map(|quiesce| (line(quiesce, "offset"), line(quiesce, "value"))),
            index,
            disk: texts(&attach, "disk"),
            network: texts(&attach, "network"),
        })
        .collect()
}

/// The register that stops a device is one of its own.
fn quiesce_is_inside(entry: &Entry, table: &Table, report: &mut Report) {
    let Some(quiesce) = table.get("quiesce").and_then(Value::table) else {
        return;
    };
    let offset = number(quiesce, "offset");
    let first = windows(table, "registers")
        .first()
        .map_or(0, |window| window.size);
    if !offset.is_multiple_of(4) || offset.saturating_add(4) > first {
        let message = format!("device `{}` has no register at {offset:#x}", entry.key);
        report.push(
            Diagnostic::at(Code::BadBoard, entry.key_place, message)
                .help("`quiesce.offset` is that of a 32-bit register in the first window"),
        );
    }
}

fn interrupts(table: &Table) -> Vec<Interrupt> {
    let values = table.get("interrupts").map(Value::list).unwrap_or_default();
    let tables = values.iter().filter_map(Value::table);
    tables
        .map(|table| Interrupt {
            line: line(table, "line"),
            trigger: if text(table, "trigger") == "edge" {
                Trigger::Edge
            } else {
                Trigger::Level
            },
        })
        .collect()
}

/// The interrupt controller has the windows of its version, and no others.
fn check_controller_keys(table: &Table, top: Place, report: &mut Report) {
    let Some(controller) = table.get("interrupt-controller").and_then(Value::table) else {
        return;
    };
    let compatible = text(controller, "compatible");
    let (needed, foreign) = if compatible == GIC_400 {
        (GIC_V2_KEYS, GIC_V3_KEYS)
    } else {
        (GIC_V3_KEYS, GIC_V2_KEYS)
    };
    let place = table
        .entry("interrupt-controller")
        .map_or(top, |entry| entry.key_place);
    for key in needed.iter().filter(|key| controller.get(key).is_none()) {
        let message = format!("the interrupt controller `{compatible}` needs the key `{key}`");
        report.push(
            Diagnostic::at(Code::BadBoard, place, message)
                .help(format!("add `{key} = {{ base = ..., size = ... }}`")),
        );
    }
    for entry in foreign.iter().filter_map(|key| controller.entry(key)) {
        let message = format!("an interrupt controller `{compatible}` has no `{}`", entry.key);
        report.push(
            Diagnostic::at(Code::BadBoard, entry.key_place, message)
                .help("remove it, or correct `compatible`"),
        );
    }
    for key in ["cpu-interface", "virtual-cpu-interface"] {
        let Some(entry) = controller.entry(key) else {
            continue;
        };
        let size = window(Some(&entry.value)).size;
        if size < CPU_INTERFACE_SIZE {
            let message = format!("`{key}` has {size:#x} bytes, a CPU interface needs two pages");
            report.push(Diagnostic::at(Code::BadBoard, entry.key_place, message).help(
                "give 8K; where each page appears 16 times in 64K, start at the last copy of the first page",
            ));
        }
    }
}

/// The hypervisor's devices are whole pages, apart from each other and from RAM.
fn check_own_devices(board: &Board, refuse: &mut impl FnMut(&str, String, &str)) {
    let own = board.hypervisor_devices();
    for (index, (name, window)) in own.iter().copied().enumerate() {
        let earlier = own[..index].iter().map(|(_, window)| window);
        if earlier.chain(&board.ram).any(|other| other.overlaps(window)) {
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

/// What a board file can get wrong although each value is possible by itself.
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
    let load = Window {
        base: board.load_address.saturating_sub(LOG_SIZE),
        size: LOG_SIZE + 1,
    };
    let in_ram = board.load_address >= LOG_SIZE && board.ram.first().is_some_and(|ram| ram.contains(load));
    if !board.load_address.is_multiple_of(PAGE) || !in_ram {
        refuse(
            "load-offset",
            format!(
                "the load address {:#x} is not a page of the first stretch of RAM with room for the log before it",
                board.load_address
            ),
            "choose a multiple of 4K from 64K on, below the size of the first stretch of RAM",
        );
    }
    check_own_devices(board, &mut refuse);
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
        if device
            .interrupts
            .iter()
            .any(|interrupt| interrupt.line >= board.controller.lines)
        {
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
