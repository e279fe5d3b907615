// SPDX-License-Identifier: Apache-2.0
//! Boards: facts about hardware, read from `boards/*.toml`.
//!
//! The boards of the repository are compiled in, so that the tool works from anywhere; a manifest can
//! also name a board file of its own. A new board needs a data file and one line in [`EMBEDDED`].

use std::path::Path;

use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::schema;
use crate::units::{self, PAGE};
use crate::value::{self, Entry, Table, Value};

/// The board files that come with the tool.
const EMBEDDED: &[(&str, &str)] = &[(
    "qemu-virt-aarch64",
    include_str!("../../boards/qemu-virt-aarch64.toml"),
)];

/// A stretch of an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Window {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

impl Window {
    /// One behind the last address; saturates at the end of the 64-bit space.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.base.saturating_add(self.size)
    }

    /// Whether the two share an address.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.size > 0 && other.size > 0 && self.base < other.end() && other.base < self.end()
    }

    /// Whether all of `other` is inside.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.base <= other.base && other.end() <= self.end() && other.base.checked_add(other.size).is_some()
    }

    /// The whole pages it touches.
    #[must_use]
    pub fn pages(self) -> Self {
        let base = self.base & !(PAGE - 1);
        let end = units::align_up(self.end(), PAGE).unwrap_or(!(PAGE - 1));
        Self {
            base,
            size: end.saturating_sub(base),
        }
    }
}

/// How an interrupt is signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// As long as the line is active.
    Level,
    /// Once per rising edge.
    Edge,
}

/// An interrupt of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Line in the numbering of the board's interrupt controller.
    pub line: u32,
    /// How it is signalled.
    pub trigger: Trigger,
}

/// The UART of the hypervisor.
#[derive(Clone, Debug, Default)]
pub struct Console {
    /// Driver.
    pub compatible: String,
    /// Registers.
    pub registers: Window,
    /// Interrupt line.
    pub line: u32,
    /// Input clock, 0 = do not program the baud rate.
    pub clock_hz: u32,
}

/// The interrupt controller.
#[derive(Clone, Debug, Default)]
pub struct Controller {
    /// Driver.
    pub compatible: String,
    /// Distributor.
    pub distributor: Window,
    /// Redistributors of all CPUs.
    pub redistributors: Window,
    /// Maintenance interrupt.
    pub maintenance: u32,
    /// Lines, private ones included.
    pub lines: u32,
}

/// Private lines of the system timer.
#[derive(Clone, Debug, Default)]
pub struct Timer {
    /// Driver.
    pub compatible: String,
    /// Timer of EL2.
    pub hypervisor: u32,
    /// Virtual timer.
    pub virtual_line: u32,
    /// Physical timer.
    pub physical: u32,
}

/// A device that can be given to a partition.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// Name for manifests.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// `compatible` of its device tree node.
    pub compatible: Vec<String>,
    /// Registers.
    pub registers: Vec<Window>,
    /// Interrupts.
    pub interrupts: Vec<Interrupt>,
    /// Whether it accesses memory by itself.
    pub dma: bool,
    /// Whether its DMA sees the caches.
    pub dma_coherent: bool,
    /// Name of its clock input.
    pub clock: Option<String>,
}

/// How to emulate the board.
#[derive(Clone, Debug, Default)]
pub struct Emulator {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// More of them for runs that repeat exactly.
    pub deterministic: Vec<String>,
    /// More of them to wait for a debugger.
    pub gdb: Vec<String>,
}

/// A board.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// Its name.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// Class of the hypervisor.
    pub class: String,
    /// Identification of each CPU, by pCPU number.
    pub cpus: Vec<u64>,
    /// RAM.
    pub ram: Vec<Window>,
    /// Bus address at which the flashable file is loaded.
    pub load_address: u64,
    /// Whether DMA is confined.
    pub iommu: bool,
    /// The UART.
    pub console: Console,
    /// The interrupt controller.
    pub controller: Controller,
    /// The timer.
    pub timer: Timer,
    /// Devices for partitions.
    pub devices: Vec<Device>,
    /// How to emulate it.
    pub emulator: Option<Emulator>,
}

impl Board {
    /// The device of that name.
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// The devices, other than itself, with registers in one of the pages of `device`'s registers.
    pub fn page_neighbours<'a>(&'a self, device: &'a Device) -> impl Iterator<Item = &'a Device> {
        self.devices.iter().filter(move |other| {
            other.name != device.name
                && device.registers.iter().any(|mine| {
                    other
                        .registers
                        .iter()
                        .any(|theirs| mine.pages().overlaps(theirs.pages()))
                })
        })
    }

    /// What the hypervisor itself drives: a name for messages, and the registers.
    #[must_use]
    pub fn hypervisor_devices(&self) -> [(&'static str, Window); 3] {
        [
            ("console", self.console.registers),
            ("interrupt-controller", self.controller.distributor),
            ("interrupt-controller", self.controller.redistributors),
        ]
    }
}

/// Names of the boards that come with the tool.
#[must_use]
pub fn board_names() -> Vec<&'static str> {
    EMBEDDED.iter().map(|(name, _)| *name).collect()
}

/// The boards that come with the tool. Those that fail their own checks are left out; a test sees to
/// it that there is none.
#[must_use]
pub fn boards() -> Vec<Board> {
    let mut report = Report::default();
    EMBEDDED
        .iter()
        .filter_map(|(name, text)| read(Path::new(name), text, &mut report))
        .collect()
}

/// The board a manifest names at `place`; `base` is the folder of the manifest.
pub(crate) fn find(name: &str, place: Place, base: &Path, report: &mut Report) -> Option<Board> {
    if let Some((_, text)) = EMBEDDED.iter().find(|(embedded, _)| *embedded == name) {
        return read(Path::new(&format!("boards/{name}.toml")), text, report);
    }
    if !name.ends_with(".toml") {
        let message = format!("there is no board `{name}`");
        let help = match schema::shape::nearest(name, board_names()) {
            Some(nearest) => format!(
                "did you mean \"{nearest}\"? A board file of your own is named by its path, ending in .toml"
            ),
            None => format!(
                "known boards: {}; a board file of your own is named by its path, ending in .toml",
                board_names().join(", ")
            ),
        };
        report.push(Diagnostic::at(Code::UnknownBoard, place, message).help(help));
        return None;
    }
    match std::fs::read_to_string(base.join(name)) {
        Ok(text) => read(&base.join(name), &text, report),
        Err(error) => {
            let message = format!(
                "board file `{name}` cannot be read: {}",
                crate::payload::reason(&error)
            );
            report.push(
                Diagnostic::at(Code::Unreadable, place, message)
                    .help("the path is relative to the folder of the manifest"),
            );
            None
        }
    }
}

fn read(path: &Path, text: &str, report: &mut Report) -> Option<Board> {
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
    check(&board, &table, top, report);
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

fn build(table: &Table, report: &mut Report) -> Board {
    let inner = |key| table.get(key).and_then(Value::table).cloned().unwrap_or_default();
    let (console, controller, timer) = (inner("console"), inner("interrupt-controller"), inner("timer"));
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
        console: Console {
            compatible: text(&console, "compatible"),
            registers: window(console.get("registers")),
            line: line(&console, "line"),
            clock_hz: line(&console, "clock-hz"),
        },
        controller: Controller {
            compatible: text(&controller, "compatible"),
            distributor: window(controller.get("distributor")),
            redistributors: window(controller.get("redistributors")),
            maintenance: line(&controller, "maintenance"),
            lines: line(&controller, "lines"),
        },
        timer: Timer {
            compatible: text(&timer, "compatible"),
            hypervisor: line(&timer, "hypervisor"),
            virtual_line: line(&timer, "virtual"),
            physical: line(&timer, "physical"),
        },
        devices: inner("device")
            .entries
            .iter()
            .flat_map(|entry| devices(entry, report))
            .collect(),
        emulator: table
            .get("emulator")
            .and_then(Value::table)
            .map(|emulator| Emulator {
                program: text(emulator, "program"),
                arguments: texts(emulator, "arguments"),
                deterministic: texts(emulator, "deterministic"),
                gdb: texts(emulator, "gdb"),
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
    let interrupts = interrupts(table);
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
        })
        .collect()
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
        base: board.load_address,
        size: 1,
    };
    if !board.load_address.is_multiple_of(PAGE) || !board.ram.first().is_some_and(|ram| ram.contains(load)) {
        refuse(
            "load-offset",
            format!(
                "the load address {:#x} is not a page of the first stretch of RAM",
                board.load_address
            ),
            "choose a multiple of 4K below the size of the first stretch of RAM",
        );
    }
    for (name, window) in board.hypervisor_devices() {
        if window.size == 0 || window.pages() != window {
            refuse(
                name,
                format!("registers of `{name}` are not whole pages"),
                "give a base and a size that are multiples of 4K",
            );
        }
    }
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

#[cfg(test)]
mod tests {
    use super::{Window, board_names, boards};

    #[test]
    fn embedded_boards_pass_their_checks() {
        assert_eq!(boards().len(), board_names().len());
    }

    #[test]
    fn virt_has_its_transports() {
        let boards = boards();
        let board = &boards[0];
        let last = board.device("virtio-mmio-31").expect("transport 31");
        assert_eq!(
            last.registers[0],
            Window {
                base: 0x0a00_3e00,
                size: 0x200
            }
        );
        assert_eq!(last.interrupts[0].line, 79);
        assert_eq!(board.page_neighbours(last).count(), 7);
        assert_eq!(board.load_address, 0x4020_0000);
    }

    #[test]
    fn windows_meet_only_where_they_share_an_address() {
        let a = Window {
            base: 0x1000,
            size: 0x1000,
        };
        assert!(!a.overlaps(Window {
            base: 0x2000,
            size: 1
        }));
        assert!(a.overlaps(Window {
            base: 0x1fff,
            size: 1
        }));
        assert!(!a.contains(Window {
            base: u64::MAX,
            size: 2
        }));
        assert_eq!(
            Window {
                base: 0x1234,
                size: 1
            }
            .pages(),
            Window {
                base: 0x1000,
                size: 0x1000
            }
        );
    }
}
