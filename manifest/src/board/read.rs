// SPDX-License-Identifier: Apache-2.0
//! Reading a board file: shape, values, and what it can get wrong although each value is possible by itself.

use std::path::Path;

use super::{
    Board, Class, Console, Controller, Device, Emulator, Gic, Interrupt, Overheads, Timer, Trigger, Uart,
    Window,
};
use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::plan::{LOG_SIZE, SMALL_LOG_SIZE};
use crate::schema;
use crate::units::{self, PAGE};
use crate::value::{self, Entry, Table, Value};

/// `compatible` of an interrupt controller of architecture version 2.
const GIC_400: &str = "arm,gic-400";
/// `compatible` of the interrupt controller of an Armv7-M CPU.
const NVIC: &str = "arm,v7m-nvic";

/// Register windows of a GICv2, and those of a GICv3, besides the distributor.
const GIC_KEYS: &[&str] = &["distributor", "maintenance"];
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
    check_class_keys(&table, board.class, top, report);
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
        longest: cost("longest"),
    }
}

fn console(table: &Table) -> Console {
    Console {
        driver: match text(table, "compatible").as_str() {
            "cdns,uart-r1p12" => Uart::Cadence,
            "arm,cmsdk-uart" => Uart::Cmsdk,
            _ => Uart::Pl011,
        },
        registers: window(table.get("registers")),
        line: line(table, "line"),
        clock_hz: line(table, "clock-hz"),
    }
}

fn emulator(table: &Table) -> Emulator {
    Emulator {
        program: text(table, "program"),
        arguments: texts(table, "arguments"),
        deterministic: texts(table, "deterministic"),
        gdb: texts(table, "gdb"),
        monitor: texts(table, "monitor"),
        instruction_clock: texts(table, "instruction-clock"),
        bare: texts(table, "bare"),
        ignore: texts(table, "ignore"),
    }
}

fn build(table: &Table, report: &mut Report) -> Board {
    let inner = |key| table.get(key).and_then(Value::table).cloned().unwrap_or_default();
    let (controller, timer) = (inner("interrupt-controller"), inner("timer"));
    let ram = windows(table, "ram");
    let cpus = table.get("cpus").map(Value::list).unwrap_or_default();
    let code = windows(table, "code");
    let class = match text(table, "class").as_str() {
        "armv7m" => Class::Armv7m,
        _ => Class::Aarch64,
    };
    let own = inner("hypervisor");
    let share = |windows: &[Window], key: &str, base: &str| {
        let size = number(&own, key);
        let end = windows.first().map_or(0, |window| window.end());
        let base = own.get(base).map(|_| number(&own, base));
        Window {
            base: base.unwrap_or(end.saturating_sub(size)),
            size,
        }
    };
    let own_code = share(&code, "code", "code-base");
    let own_ram = share(&ram, "ram", "ram-base");
    Board {
        name: text(table, "name"),
        description: text(table, "description"),
        class,
        cpus: cpus
            .iter()
            .filter_map(Value::integer)
            .filter_map(|id| u64::try_from(id).ok())
            .collect(),
        load_address: match class {
            Class::Aarch64 => {
                let first = ram.first().map_or(0, |window| window.base);
                first.saturating_add(number(table, "load-offset"))
            }
            Class::Armv7m => own_code.base,
        },
        own_code,
        own_ram,
        code,
        ram,
        iommu: flag(table, "iommu"),
        console: table.get("console").and_then(Value::table).map(console),
        controller: Controller {
            distributor: window(controller.get("distributor")),
            gic: match text(&controller, "compatible").as_str() {
                GIC_400 => Gic::V2 {
                    cpu_interface: window(controller.get("cpu-interface")),
                    hypervisor_interface: window(controller.get("hypervisor-interface")),
                    virtual_cpu_interface: window(controller.get("virtual-cpu-interface")),
                },
                NVIC => Gic::Nvic,
                _ => Gic::V3 {
                    redistributors: window(controller.get("redistributors")),
                },
            },
            maintenance: line(&controller, "maintenance"),
            lines: line(&controller, "lines"),
        },
        timer: Timer {
            hypervisor: line(&timer, "hypervisor"),
            virtual_line: line(&timer, "virtual"),
            physical: line(&timer, "physical"),
            registers: window(timer.get("registers")),
            counter: window(timer.get("counter")),
            line: line(&timer, "line"),
            clock_hz: line(&timer, "clock-hz"),
        },
        devices: inner("device")
            .entries
            .iter()
            .flat_map(|entry| devices(entry, report))
            .collect(),
        overheads: table.get("overheads").and_then(Value::table).map(overheads),
        emulator: table.get("emulator").and_then(Value::table).map(emulator),
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

/// Keys of a table that a class needs; boards of other classes do not have them.
struct ClassKeys {
    class: Class,
    table: &'static str,
    keys: &'static [&'static str],
}

const CLASS_KEYS: [ClassKeys; 4] = [
    ClassKeys {
        class: Class::Aarch64,
        table: "",
        keys: &["load-offset"],
    },
    ClassKeys {
        class: Class::Armv7m,
        table: "",
        keys: &["code", "hypervisor"],
    },
    ClassKeys {
        class: Class::Aarch64,
        table: "timer",
        keys: &["hypervisor", "virtual", "physical"],
    },
    ClassKeys {
        class: Class::Armv7m,
        table: "timer",
        keys: &["registers", "counter", "line", "clock-hz"],
    },
];

/// Each class has its own kinds of hardware, and its own keys for them.
fn check_class_keys(table: &Table, class: Class, top: Place, report: &mut Report) {
    for ClassKeys {
        class: owner,
        table: name,
        keys,
    } in CLASS_KEYS
    {
        let (found, place) = if name.is_empty() {
            (Some(table), top)
        } else {
            let place = table.entry(name).map_or(top, |entry| entry.key_place);
            (table.get(name).and_then(Value::table), place)
        };
        let Some(found) = found else { continue };
        for key in keys {
            let message = match (found.entry(key), owner == class) {
                (None, true) => format!("a board of class `{}` needs the key `{key}`", class.name()),
                (Some(_), false) => format!("a board of class `{}` has no `{key}`", class.name()),
                _ => continue,
            };
            let place = found.entry(key).map_or(place, |entry| entry.key_place);
            report.push(
                Diagnostic::at(Code::BadBoard, place, message)
                    .help("see the boards that come with the tool: `bulkhead boards`"),
            );
        }
    }
    for (name, choices) in CLASS_DRIVERS {
        let driver = table.get(name).and_then(Value::table);
        let Some(entry) = driver.and_then(|driver| driver.entry("compatible")) else {
            continue;
        };
        let compatible = entry.value.text().unwrap_or_default();
        let fits = choices.contains(&compatible) == (class == Class::Armv7m);
        if !fits {
            let message = format!(
                "the hypervisor of class `{}` has no driver `{compatible}`",
                class.name()
            );
            report.push(
                Diagnostic::at(Code::BadBoard, entry.value.place, message)
                    .help("see the boards that come with the tool: `bulkhead boards`"),
            );
        }
    }
}

/// Drivers of class `armv7m`; all others are of class `aarch64`.
const CLASS_DRIVERS: [(&str, &[&str]); 3] = [
    ("console", &["arm,cmsdk-uart"]),
    ("interrupt-controller", &[NVIC]),
    ("timer", &["arm,sp804"]),
];

/// The interrupt controller has the windows of its version, and no others.
fn check_controller_keys(table: &Table, top: Place, report: &mut Report) {
    let Some(controller) = table.get("interrupt-controller").and_then(Value::table) else {
        return;
    };
    let compatible = text(controller, "compatible");
    let all: Vec<&str> = [GIC_KEYS, GIC_V2_KEYS, GIC_V3_KEYS].concat();
    let needed = match compatible.as_str() {
        GIC_400 => [GIC_KEYS, GIC_V2_KEYS].concat(),
        NVIC => Vec::new(),
        _ => [GIC_KEYS, GIC_V3_KEYS].concat(),
    };
    let foreign = all.iter().filter(|key| !needed.contains(key));
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
    for entry in foreign.filter_map(|key| controller.entry(key)) {
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
    if board.class == Class::Armv7m {
        check_in_place(board, &mut refuse);
    } else {
        check_load_address(board, &mut refuse);
    }
    check_own_devices(board, &mut refuse);
    check_devices(board, &mut refuse);
}

/// Code memory is apart from RAM, and the hypervisor's share of both is there.
fn check_in_place(board: &Board, refuse: &mut impl FnMut(&str, String, &str)) {
    let whole = |window: &Window| window.size > 0 && window.pages() == *window && window.end() <= 1 << 32;
    let overlap = board.code.iter().enumerate().any(|(index, window)| {
        let others = board.code[..index].iter().chain(&board.ram);
        others.into_iter().any(|other| other.overlaps(*window))
    });
    if board.code.is_empty() || !board.code.iter().all(whole) || overlap {
        refuse(
            "code",
            "code memory must be whole pages of 4K below 4G, apart from RAM".to_owned(),
            "list each byte once, as code memory or as RAM",
        );
    }
    if board.console.is_none() {
        refuse(
            "class",
            "a board of class `armv7m` needs a console".to_owned(),
            "add the table `console`: programs find a virtual UART of the same kind there",
        );
    }
    for (what, key, share, stretches) in [
        ("code memory", "code", board.own_code, &board.code),
        ("RAM", "ram", board.own_ram, &board.ram),
    ] {
        if !whole(&share) || !stretches.iter().any(|stretch| stretch.contains(share)) {
            refuse(
                "hypervisor",
                format!(
                    "the hypervisor's {what}, {} from {:#x} on, is not within one stretch of the board's",
                    units::format_size(share.size),
                    share.base
                ),
                &format!("give multiples of 4K that are there (`{key}`, `{key}-base`)"),
            );
        }
    }
    if board.own_ram.size <= SMALL_LOG_SIZE {
        refuse(
            "hypervisor",
            "the hypervisor's RAM has no room for more than its log".to_owned(),
            "give more than 4K (`ram`)",
        );
    }
}

/// The flashable file is loaded where the log fits before it.
fn check_load_address(board: &Board, refuse: &mut impl FnMut(&str, String, &str)) {
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
