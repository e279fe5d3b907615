// SPDX-License-Identifier: Apache-2.0
//! The registry of drivers: the devices that the hypervisor drives, and the keys of each in a board file.
//!
//! A driver is a constant with its `compatible`, its role, its number in a system image, and the keys of its
//! register windows and lines. A class lists the drivers of its class binary. The tool reads the board file
//! by these constants alone, straight into [`Controller`]s, which are the controller records of a system
//! image. The constants also say which keys the tables of such devices have. So a new driver is one constant
//! here, and a line in the list of each class that has the driver.

use bulkhead_image::layout::{
    CONTROLLER_ACPI_TIMER, CONTROLLER_APIC, CONTROLLER_ARM_MPC, CONTROLLER_ARM_TIMER,
    CONTROLLER_CADENCE_UART, CONTROLLER_CMSDK_UART, CONTROLLER_DUAL_TIMER, CONTROLLER_GIC_V2,
    CONTROLLER_GIC_V3, CONTROLLER_IOTKIT_SECURITY, CONTROLLER_LAN9118, CONTROLLER_NS16550, CONTROLLER_NVIC,
    CONTROLLER_PL011, CONTROLLER_PPC_TIMER, CONTROLLER_PPC405EP_UART, CONTROLLER_SSE200, CONTROLLER_UIC,
    ControllerRecord, NONE, ROLE_CONSOLE, ROLE_INTERRUPTS, ROLE_NETWORK, ROLE_PROCESSORS, ROLE_SECURITY,
    ROLE_TIMER,
};

use crate::schema::form::{Field, Form};
use crate::schema::{Key, Need, ValueKind};
use crate::value::Table;
use crate::window::Window;

/// The largest number of an interrupt line.
pub(crate) const LINE_MAX: u32 = 1019;

/// The purpose of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The UART of the hypervisor.
    Console,
    /// The interrupt controller.
    Interrupts,
    /// The system timer.
    Timer,
    /// The interface to a network that VMs share. This role belongs to an ordinary device of the board.
    Network,
    /// The controllers that say which world of the processor reaches memory and devices.
    Security,
    /// The parts by which CPUs start and interrupt each other, where the architecture does not say how.
    Processors,
}

impl Role {
    /// The roles that have a table of their own in a board file, in the order of the system image.
    pub(crate) const OF_BOARD: [Self; 5] = [
        Self::Console,
        Self::Interrupts,
        Self::Timer,
        Self::Security,
        Self::Processors,
    ];

    /// Returns the name of the table in the board file, which is also the name of the device in tables for
    /// people.
    pub(crate) const fn table(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Interrupts => "interrupt-controller",
            Self::Timer => "timer",
            Self::Network => "device",
            Self::Security => "security",
            Self::Processors => "processors",
        }
    }

    /// Returns the noun for the device in a sentence, after `the`.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Interrupts => "interrupt controller",
            Self::Timer => "timer",
            Self::Network => "Ethernet controller",
            Self::Security => "security controller",
            Self::Processors => "start of CPUs",
        }
    }

    /// Returns the same noun after an article.
    pub(crate) const fn any(self) -> &'static str {
        match self {
            Self::Console => "a console",
            Self::Interrupts => "an interrupt controller",
            Self::Timer => "a timer",
            Self::Network => "an Ethernet controller",
            Self::Security => "a security controller",
            Self::Processors => "a start of CPUs",
        }
    }

    /// Returns the number of the role in a system image.
    const fn number(self) -> u32 {
        match self {
            Self::Console => ROLE_CONSOLE,
            Self::Interrupts => ROLE_INTERRUPTS,
            Self::Timer => ROLE_TIMER,
            Self::Network => ROLE_NETWORK,
            Self::Security => ROLE_SECURITY,
            Self::Processors => ROLE_PROCESSORS,
        }
    }
}

/// A register window.
#[derive(Debug)]
pub struct WindowKey {
    /// Key of the board file.
    pub(crate) key: &'static str,
    /// The meaning of the window, for the reference.
    pub(crate) doc: &'static str,
    /// The reason for its least size, for a window that is smaller.
    pub(crate) why: &'static str,
    /// The remedy for a window that is smaller, if the size alone does not say it.
    pub(crate) help: Option<&'static str>,
}

/// An interrupt line.
#[derive(Debug)]
pub struct LineKey {
    /// Key of the board file.
    pub(crate) key: &'static str,
    /// The meaning of the line, for the reference.
    pub(crate) doc: &'static str,
    /// The least and the largest number that the line can have.
    pub(crate) range: (u32, u32),
    /// The distance of the line from the one that the key gives.
    pub(crate) behind: u32,
    /// The name of the line, for people.
    pub(crate) what: &'static str,
}

/// A driver of a class binary.
#[derive(Debug)]
pub struct Driver {
    /// `compatible` of the device.
    pub compatible: &'static str,
    /// One line for people.
    pub(crate) description: &'static str,
    /// The purpose of the device.
    pub role: Role,
    /// The number of the driver in a system image.
    pub(crate) number: u32,
    /// The register windows, in the order of the system image.
    pub(crate) windows: &'static [WindowKey],
    /// The interrupt lines, in the order of the system image.
    pub(crate) lines: &'static [LineKey],
    /// The key of the clock, if the device has one.
    pub(crate) clock: Option<Key>,
}

impl Driver {
    /// Returns the keys of a board file that the driver reads, besides `compatible`: first the keys of
    /// windows.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let windows = self.windows.iter().map(|window| Key {
            name: window.key,
            doc: window.doc,
            kind: <Window as Form>::KIND,
            need: Need::Required,
        });
        let lines = self.lines.iter().filter(|line| line.behind == 0).map(|line| Key {
            name: line.key,
            doc: line.doc,
            kind: ValueKind::Integer(line.range.0.into(), line.range.1.into()),
            need: Need::Required,
        });
        windows.chain(lines).chain(self.clock).collect()
    }

    /// Tells whether its registers are I/O ports, not memory.
    pub(crate) const fn uses_ports(&self) -> bool {
        matches!(self.number, CONTROLLER_NS16550 | CONTROLLER_ACPI_TIMER)
    }

    /// Reads the device from its table of a board file.
    pub(crate) fn read(&'static self, table: &Table) -> Controller {
        let window = |own: &WindowKey| Field::read(table.entry(own.key), None);
        let line = |own: &LineKey| {
            let first: u64 = Field::read(table.entry(own.key), None);
            u32::try_from(first)
                .unwrap_or(u32::MAX)
                .saturating_add(own.behind)
        };
        Controller {
            driver: self,
            windows: self.windows.iter().map(window).collect(),
            guarded: None,
            lines: self.lines.iter().map(line).collect(),
            clock_hz: Field::read(table.entry(CLOCK), None),
        }
    }
}

impl PartialEq for Driver {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Driver {}

/// A device that the hypervisor drives.
#[derive(Clone, Debug)]
pub struct Controller {
    /// The driver.
    pub driver: &'static Driver,
    /// The registers.
    pub windows: Vec<Window>,
    /// The memory that the device guards, if it guards any.
    pub guarded: Option<Window>,
    /// The interrupt lines.
    pub lines: Vec<u32>,
    /// The clock in Hz; 0 = do not program a rate.
    pub clock_hz: u32,
}

impl Controller {
    /// Returns the interrupt lines, with names for people.
    pub(crate) fn named_lines(&self) -> impl Iterator<Item = (u32, &'static str)> {
        let names = self.driver.lines.iter().map(|line| line.what);
        self.lines.iter().copied().zip(names)
    }

    /// Returns the record of the device in a system image.
    pub(crate) fn record(&self) -> ControllerRecord {
        let windows: Vec<Window> = self.windows.iter().copied().chain(self.guarded).collect();
        let window = |index: usize| windows.get(index).copied().unwrap_or_default();
        ControllerRecord {
            role: self.driver.role.number().into(),
            compatible: self.driver.number.into(),
            base: std::array::from_fn(|index| window(index).base.into()),
            size: std::array::from_fn(|index| window(index).size.into()),
            lines: std::array::from_fn(|index| self.lines.get(index).copied().unwrap_or(NONE).into()),
            clock_hz: self.clock_hz.into(),
            reserved: 0.into(),
        }
    }
}

const fn window(key: &'static str, doc: &'static str) -> WindowKey {
    WindowKey {
        key,
        doc,
        why: "too few for the driver",
        help: None,
    }
}

/// Returns the window of a GICv2's CPU interface, physical or virtual (Arm IHI 0048B, section 4.1.3).
const fn cpu_interface(key: &'static str, doc: &'static str) -> WindowKey {
    WindowKey {
        key,
        doc,
        why: "a CPU interface needs two pages",
        help: Some(
            "give 8K; where each page appears 16 times in 64K, start at the last copy of the first page",
        ),
    }
}

/// Returns the key of a line that is private to each CPU.
const fn private_line(key: &'static str, doc: &'static str, what: &'static str) -> LineKey {
    LineKey {
        key,
        doc,
        range: (16, 31),
        behind: 0,
        what,
    }
}

/// Returns the key `line` of a line.
const fn line(doc: &'static str, behind: u32, what: &'static str) -> LineKey {
    LineKey {
        key: "line",
        doc,
        range: (0, LINE_MAX),
        behind,
        what,
    }
}

const fn clock(need: Need, least: u64, doc: &'static str) -> Option<Key> {
    Some(Key {
        name: CLOCK,
        doc,
        kind: ValueKind::Integer(least, u32::MAX as u64),
        need,
    })
}

/// The key of the clock.
pub(crate) const CLOCK: &str = "clock-hz";
const REGISTERS: &[WindowKey] = &[window("registers", "registers of the device")];
const MAINTENANCE: &[LineKey] = &[private_line(
    "maintenance",
    "maintenance interrupt of the virtual interface; GICs only",
    "interrupt-controller (maintenance)",
)];
const DISTRIBUTOR: WindowKey = window("distributor", "distributor; GICs only");
const CONSOLE_LINE: &str =
    "interrupt line of the UART; CMSDK: the line for receive, before the line for transmit";
const CONSOLE_CLOCK: Option<Key> = clock(
    Need::Default("0"),
    0,
    "clock of the baud rate generator in Hz; 0 leaves the rate as the firmware set it",
);

/// Arm PrimeCell PL011.
pub(crate) static PL011: Driver = Driver {
    compatible: "arm,pl011",
    description: "Arm PrimeCell PL011",
    role: Role::Console,
    number: CONTROLLER_PL011,
    windows: REGISTERS,
    lines: &[line(CONSOLE_LINE, 0, "console")],
    clock: CONSOLE_CLOCK,
};

/// Cadence UART.
pub(crate) static CADENCE_UART: Driver = Driver {
    compatible: "cdns,uart-r1p12",
    description: "Cadence UART",
    role: Role::Console,
    number: CONTROLLER_CADENCE_UART,
    windows: REGISTERS,
    lines: &[line(CONSOLE_LINE, 0, "console")],
    clock: CONSOLE_CLOCK,
};

/// Arm CMSDK APB UART.
pub(crate) static CMSDK_UART: Driver = Driver {
    compatible: "arm,cmsdk-uart",
    description: "Arm CMSDK APB UART",
    role: Role::Console,
    number: CONTROLLER_CMSDK_UART,
    windows: REGISTERS,
    lines: &[
        line(CONSOLE_LINE, 0, "console (receive)"),
        line(CONSOLE_LINE, 1, "console (transmit)"),
    ],
    clock: CONSOLE_CLOCK,
};

/// Arm GICv3.
pub(crate) static GIC_V3: Driver = Driver {
    compatible: "arm,gic-v3",
    description: "Arm GICv3",
    role: Role::Interrupts,
    number: CONTROLLER_GIC_V3,
    windows: &[
        DISTRIBUTOR,
        window("redistributors", "redistributors of all CPUs; GICv3"),
    ],
    lines: MAINTENANCE,
    clock: None,
};

/// Arm GICv2 with virtualization extensions.
pub(crate) static GIC_V2: Driver = Driver {
    compatible: "arm,gic-400",
    description: "Arm GICv2 with virtualization extensions",
    role: Role::Interrupts,
    number: CONTROLLER_GIC_V2,
    windows: &[
        DISTRIBUTOR,
        cpu_interface("cpu-interface", "CPU interface (`GICC`), 8K; GICv2"),
        window(
            "hypervisor-interface",
            "virtual interface control (`GICH`) of the CPU that accesses it; GICv2",
        ),
        cpu_interface(
            "virtual-cpu-interface",
            "virtual CPU interface (`GICV`), 8K, which VMs see as theirs; GICv2",
        ),
    ],
    lines: MAINTENANCE,
    clock: None,
};

/// The interrupt controller of an Armv7-M CPU.
pub(crate) static NVIC: Driver = Driver {
    compatible: "arm,v7m-nvic",
    description: "the interrupt controller of an Armv7-M CPU",
    role: Role::Interrupts,
    number: CONTROLLER_NVIC,
    windows: &[],
    lines: &[],
    clock: None,
};

/// Arm generic timer, with its private lines.
pub(crate) static ARM_TIMER: Driver = Driver {
    compatible: "arm,armv8-timer",
    description: "Arm generic timer",
    role: Role::Timer,
    number: CONTROLLER_ARM_TIMER,
    windows: &[],
    lines: &[
        private_line("hypervisor", "timer of EL2; generic timer", "timer (hypervisor)"),
        private_line("virtual", "virtual timer; generic timer", "timer (virtual)"),
        private_line(
            "physical",
            "physical timer of EL1; generic timer",
            "timer (physical)",
        ),
    ],
    clock: None,
};

/// Arm dual timer, with a counter that always runs.
pub(crate) static DUAL_TIMER: Driver = Driver {
    compatible: "arm,sp804",
    description: "Arm dual timer: SP804, or the CMSDK's",
    role: Role::Timer,
    number: CONTROLLER_DUAL_TIMER,
    windows: &[
        window("registers", "registers of the timer; dual timer"),
        window(
            "counter",
            "registers with a free-running counter at 0x18; dual timer",
        ),
    ],
    lines: &[line("interrupt line of the timer; dual timer", 0, "timer")],
    clock: clock(Need::Required, 1, "clock of timer and counter in Hz; dual timer"),
};

/// SMSC LAN9118 Ethernet controller.
pub(crate) static LAN9118: Driver = Driver {
    compatible: "smsc,lan9118",
    description: "SMSC LAN9118 Ethernet controller",
    role: Role::Network,
    number: CONTROLLER_LAN9118,
    windows: REGISTERS,
    lines: &[],
    clock: None,
};

/// Secure privilege control block of an IoT Kit.
pub(crate) static IOTKIT_SECURITY: Driver = Driver {
    compatible: "arm,iotkit-security",
    description: "secure privilege control block of an IoT Kit or an SSE-200",
    role: Role::Security,
    number: CONTROLLER_IOTKIT_SECURITY,
    windows: REGISTERS,
    lines: &[],
    clock: None,
};

/// Memory protection controller. A board file lists these with the security controller.
pub(crate) static ARM_MPC: Driver = Driver {
    compatible: "arm,mpc",
    description: "memory protection controller",
    role: Role::Security,
    number: CONTROLLER_ARM_MPC,
    windows: REGISTERS,
    lines: &[],
    clock: None,
};

/// The parts of an SSE-200 by which one CPU starts and interrupts the other.
pub(crate) static SSE200: Driver = Driver {
    compatible: "arm,sse-200",
    description: "system control and message handling unit of an SSE-200",
    role: Role::Processors,
    number: CONTROLLER_SSE200,
    windows: &[
        window("registers", "registers of system control; SSE-200"),
        window("messages", "registers of the message handling unit; SSE-200"),
    ],
    lines: &[line(
        "interrupt line of the message handling unit; SSE-200",
        0,
        "processors",
    )],
    clock: None,
};

/// UART 0 of a PPC405EP.
pub(crate) static PPC405EP_UART: Driver = Driver {
    compatible: "ibm,ppc405ep-uart0",
    description: "UART 0 of a PPC405EP, in the page that it shares with other peripherals",
    role: Role::Console,
    number: CONTROLLER_PPC405EP_UART,
    windows: REGISTERS,
    lines: &[line(CONSOLE_LINE, 0, "console")],
    clock: CONSOLE_CLOCK,
};

/// Universal interrupt controller of a PowerPC 4xx.
pub(crate) static UIC: Driver = Driver {
    compatible: "ibm,uic",
    description: "universal interrupt controller of a PowerPC 4xx",
    role: Role::Interrupts,
    number: CONTROLLER_UIC,
    windows: &[],
    lines: &[],
    clock: None,
};

/// NS 16550A UART at I/O ports.
pub(crate) static NS16550: Driver = Driver {
    compatible: "ns16550a",
    description: "NS 16550A at I/O ports",
    role: Role::Console,
    number: CONTROLLER_NS16550,
    windows: REGISTERS,
    lines: &[line(CONSOLE_LINE, 0, "console")],
    clock: None,
};

/// The APICs of a PC.
pub(crate) static APIC: Driver = Driver {
    compatible: "intel,apic",
    description: "the APICs of a PC",
    role: Role::Interrupts,
    number: CONTROLLER_APIC,
    windows: &[
        window("local-apic", "local APIC of the CPU that accesses it; APICs only"),
        window("io-apic", "I/O APIC; APICs only"),
    ],
    lines: &[],
    clock: None,
};

/// Time base and programmable interval timer of a PowerPC 4xx.
pub(crate) static PPC_TIMER: Driver = Driver {
    compatible: "ibm,ppc4xx-timer",
    description: "time base and programmable interval timer of a PowerPC 4xx",
    role: Role::Timer,
    number: CONTROLLER_PPC_TIMER,
    windows: &[],
    lines: &[],
    clock: clock(Need::Required, 1, "clock of timer and counter in Hz; dual timer"),
};

/// The power management timer of ACPI, by which the timers of the CPU are measured.
pub(crate) static ACPI_TIMER: Driver = Driver {
    compatible: "acpi,pm-timer",
    description: "power management timer of ACPI",
    role: Role::Timer,
    number: CONTROLLER_ACPI_TIMER,
    windows: &[window(
        "ports",
        "I/O ports of the power management registers, of which the timer is at +8; ACPI only",
    )],
    lines: &[],
    clock: None,
};
