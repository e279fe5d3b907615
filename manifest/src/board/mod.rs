// SPDX-License-Identifier: Apache-2.0
//! Boards: facts about hardware, read from `boards/*.toml`.
//!
//! The boards of the repository are compiled in, so that the tool works from anywhere; a manifest can
//! also name a board file of its own. A new board needs a data file and one line in `EMBEDDED`.

mod read;

pub use bulkhead_sched::analysis::Overheads;

use std::path::Path;

use read::read;

use bulkhead_image::MPU_GRANULE;
use bulkhead_image::layout::{CLASS_AARCH64, CLASS_ARMV7M};

use crate::diagnostic::{Code, Diagnostic, Place, Report};
use crate::model::AttachmentKind;
use crate::plan::{LOG_SIZE, SMALL_LOG_SIZE};
use crate::schema;
use crate::units::{self, PAGE};

/// The board files that come with the tool.
const EMBEDDED: &[(&str, &str)] = &[
    (
        "qemu-virt-aarch64",
        include_str!("../../../boards/qemu-virt-aarch64.toml"),
    ),
    (
        "qemu-virt-aarch64-gicv2",
        include_str!("../../../boards/qemu-virt-aarch64-gicv2.toml"),
    ),
    ("mps2-an386", include_str!("../../../boards/mps2-an386.toml")),
    ("mps2-an500", include_str!("../../../boards/mps2-an500.toml")),
    ("xlnx-versal", include_str!("../../../boards/xlnx-versal.toml")),
    ("xlnx-zcu102", include_str!("../../../boards/xlnx-zcu102.toml")),
];

/// Where a CPU of class `armv7m` finds its first stack pointer and the address of its first instruction after a reset: 0 on the boards
/// there are (VTOR after a reset, Arm DDI 0403E, section B3.2.5).
pub(crate) const RESET_VECTORS: Window = Window { base: 0, size: 8 };

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

/// Class of a board: which hypervisor runs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Class {
    /// Armv8-A with EL2.
    #[default]
    Aarch64,
    /// Armv7-M with an MPU: nothing is translated, code is executed where it is linked.
    Armv7m,
}

impl Class {
    /// Its name in board files and of its class binary.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aarch64 => "aarch64",
            Self::Armv7m => "armv7m",
        }
    }

    /// Its number in a system image.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Aarch64 => CLASS_AARCH64,
            Self::Armv7m => CLASS_ARMV7M,
        }
    }

    /// Multiple at which mappings start and end.
    #[must_use]
    pub const fn granule(self) -> u64 {
        match self {
            Self::Aarch64 => PAGE,
            Self::Armv7m => MPU_GRANULE,
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

/// A driver for the UART of the hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Uart {
    /// Arm PrimeCell PL011.
    #[default]
    Pl011,
    /// Cadence UART.
    Cadence,
    /// Arm CMSDK APB UART.
    Cmsdk,
}

/// The UART of the hypervisor.
#[derive(Clone, Debug, Default)]
pub struct Console {
    /// Driver.
    pub driver: Uart,
    /// Registers.
    pub registers: Window,
    /// Interrupt line; of a CMSDK UART the one for receive, before the one for transmit.
    pub line: u32,
    /// Input clock, 0 = do not program the baud rate.
    pub clock_hz: u32,
}

/// What a GIC has besides its distributor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gic {
    /// GICv2 with virtualization extensions.
    V2 {
        /// CPU interface, `GICC`.
        cpu_interface: Window,
        /// Virtual interface control, `GICH`.
        hypervisor_interface: Window,
        /// Virtual CPU interface, `GICV`: what VMs see as their CPU interface.
        virtual_cpu_interface: Window,
    },
    /// GICv3; its CPU interfaces are system registers.
    V3 {
        /// Redistributors of all CPUs.
        redistributors: Window,
    },
    /// No GIC at all: the NVIC of an M-profile CPU.
    Nvic,
}

impl Default for Gic {
    fn default() -> Self {
        Self::V3 {
            redistributors: Window::default(),
        }
    }
}

impl Gic {
    /// Version of the architecture, 0 if there is none.
    #[must_use]
    pub const fn version(self) -> u64 {
        match self {
            Self::V2 { .. } => 2,
            Self::V3 { .. } => 3,
            Self::Nvic => 0,
        }
    }
}

/// The interrupt controller.
#[derive(Clone, Debug, Default)]
pub struct Controller {
    /// Distributor.
    pub distributor: Window,
    /// The rest, by version.
    pub gic: Gic,
    /// Maintenance interrupt.
    pub maintenance: u32,
    /// Lines, private ones included.
    pub lines: u32,
}

impl Controller {
    /// All register windows, in the order of the system image.
    #[must_use]
    pub fn windows(&self) -> Vec<Window> {
        let rest = match self.gic {
            Gic::Nvic => return Vec::new(),
            Gic::V2 {
                cpu_interface,
                hypervisor_interface,
                virtual_cpu_interface,
            } => vec![cpu_interface, hypervisor_interface, virtual_cpu_interface],
            Gic::V3 { redistributors } => vec![redistributors],
        };
        std::iter::once(self.distributor).chain(rest).collect()
    }
}

/// The system timer: of an Armv8-A CPU its private lines, else a device.
#[derive(Clone, Debug, Default)]
pub struct Timer {
    /// Timer of EL2.
    pub hypervisor: u32,
    /// Virtual timer.
    pub virtual_line: u32,
    /// Physical timer.
    pub physical: u32,
    /// Registers of a dual timer.
    pub registers: Window,
    /// Registers with a counter that always runs.
    pub counter: Window,
    /// Line of a dual timer.
    pub line: u32,
    /// Clock of both.
    pub clock_hz: u32,
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
    /// Whether the hypervisor may access its registers for the owner.
    pub forward: bool,
    /// What stops it: offset in its first window, and value.
    pub quiesce: Option<(u32, u32)>,
    /// Number in a row of equal ones.
    pub index: u64,
    /// Arguments with which the emulator plugs a disk into it.
    pub disk: Vec<String>,
    /// Arguments with which the emulator plugs a network into it.
    pub network: Vec<String>,
}

impl Device {
    /// Arguments with which the emulator plugs something into it; empty if it cannot.
    #[must_use]
    pub fn attach(&self, kind: AttachmentKind) -> &[String] {
        match kind {
            AttachmentKind::Disk => &self.disk,
            AttachmentKind::Network => &self.network,
        }
    }
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
    /// More of them for a monitor on a socket that keeps a board that is off until it has been looked at.
    pub monitor: Vec<String>,
    /// More of them with which a tick of the counter is one instruction.
    pub instruction_clock: Vec<String>,
    /// Its arguments to run a program of a VM without the hypervisor.
    pub bare: Vec<String>,
    /// Parts of messages of the emulator that mean nothing.
    pub ignore: Vec<String>,
}

/// A board.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// Its name.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// Class of the hypervisor.
    pub class: Class,
    /// Identification of each CPU, by pCPU number.
    pub cpus: Vec<u64>,
    /// Code memory, of a class that executes code in place.
    pub code: Vec<Window>,
    /// RAM.
    pub ram: Vec<Window>,
    /// The hypervisor's own code memory, of such a class.
    pub own_code: Window,
    /// The hypervisor's own RAM, of such a class.
    pub own_ram: Window,
    /// Where the hypervisor is: bus address of its first byte, and of its first instruction.
    pub load_address: u64,
    /// Whether DMA is confined.
    pub iommu: bool,
    /// UART of the hypervisor, if there is one; without, its log is in RAM only.
    pub console: Option<Console>,
    /// The interrupt controller.
    pub controller: Controller,
    /// The timer.
    pub timer: Timer,
    /// Devices for partitions.
    pub devices: Vec<Device>,
    /// What the hypervisor costs, in nanoseconds; `None`: not known.
    pub overheads: Option<Overheads>,
    /// How to emulate it.
    pub emulator: Option<Emulator>,
}

impl Board {
    /// Where the hypervisor's log is.
    #[must_use]
    pub fn log(&self) -> Window {
        match self.class {
            Class::Aarch64 => Window {
                base: self.load_address.saturating_sub(LOG_SIZE),
                size: LOG_SIZE,
            },
            Class::Armv7m => Window {
                size: SMALL_LOG_SIZE,
                ..self.own_ram
            },
        }
    }

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

    /// The interrupt lines that the hypervisor itself uses.
    #[must_use]
    pub fn hypervisor_lines(&self) -> Vec<u32> {
        let timer = &self.timer;
        let (own, console) = match self.class {
            Class::Aarch64 => (
                vec![
                    timer.hypervisor,
                    timer.virtual_line,
                    timer.physical,
                    self.controller.maintenance,
                ],
                1,
            ),
            Class::Armv7m => (vec![timer.line], 2),
        };
        let first = self.console.iter().map(|console| console.line);
        own.into_iter()
            .chain(first.flat_map(|line| line..line + console))
            .collect()
    }

    /// What the hypervisor itself drives: a name for messages, and the registers.
    #[must_use]
    pub fn hypervisor_devices(&self) -> Vec<(&'static str, Window)> {
        let controller = self.controller.windows();
        let controller = controller
            .into_iter()
            .map(|window| ("interrupt-controller", window));
        let console = self.console.iter().map(|console| ("console", console.registers));
        let timer = [self.timer.registers, self.timer.counter];
        let timer = timer.into_iter().filter(|window| window.size > 0);
        console
            .chain(controller)
            .chain(timer.map(|window| ("timer", window)))
            .collect()
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

#[cfg(test)]
mod tests {
    use super::{Uart, Window, board_names, boards};

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
    fn one_machine_with_two_controllers_differs_in_nothing_else() {
        let boards = boards();
        let (v3, v2) = (&boards[0], &boards[1]);
        assert_eq!((v3.controller.gic.version(), v2.controller.gic.version()), (3, 2));
        assert_eq!(v3.controller.maintenance, v2.controller.maintenance);
        assert_eq!(v3.cpus, v2.cpus);
        assert_eq!(v3.ram, v2.ram);
        assert_eq!(v3.load_address, v2.load_address);
        assert_eq!(v3.devices.len(), v2.devices.len());
    }

    #[test]
    fn a_board_without_ram_at_the_usual_place() {
        let boards = boards();
        let board = boards
            .iter()
            .find(|board| board.name == "xlnx-zcu102")
            .expect("compiled in");
        assert_eq!(
            board.ram,
            [Window {
                base: 0,
                size: 2 << 30
            }]
        );
        assert_eq!(board.load_address, 0x20_0000);
        assert_eq!(
            board.console.as_ref().map(|console| console.driver),
            Some(Uart::Cadence)
        );
        assert_eq!(board.controller.windows().len(), 4);
        assert_eq!(board.hypervisor_devices().len(), 5);
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
