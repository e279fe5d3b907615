// SPDX-License-Identifier: Apache-2.0
//! Every key of a board file.

use super::timing::OVERHEADS;
use super::{Key, Kind, Need, TableSchema};
use Need::{Default, Optional, Required};

const fn key(name: &'static str, need: Need, kind: Kind, doc: &'static str) -> Key {
    Key {
        name,
        doc,
        kind,
        need,
    }
}

const ADDRESS_MAX: u64 = u64::MAX;
const LINE_MAX: u64 = 1019;

pub(crate) static BOARD: TableSchema = TableSchema {
    what: "a board file",
    doc: "Facts about a piece of hardware.",
    keys: &[
        key("name", Required, Kind::Text, "the board's name"),
        key("description", Required, Kind::Text, "one line for people"),
        key(
            "class",
            Required,
            Kind::Choice(&[("aarch64", "Armv8-A with EL2"), ("armv7m", "Armv7-M with an MPU")]),
            "class of the hypervisor that runs on it",
        ),
        key(
            "cpus",
            Required,
            Kind::List(&Kind::Integer(0, ADDRESS_MAX)),
            "identification of each CPU, in the order of pCPU numbers (aarch64: MPIDR_EL1 affinity fields; armv7m: 0)",
        ),
        key(
            "code",
            Optional,
            Kind::List(&Kind::Table(&WINDOW)),
            "stretches of code memory: flash, or RAM that is loaded before reset; armv7m",
        ),
        key(
            "ram",
            Required,
            Kind::List(&Kind::Table(&WINDOW)),
            "stretches of RAM",
        ),
        key(
            "load-offset",
            Optional,
            Kind::Size,
            "where the flashable file is loaded, from the start of the first stretch of RAM; the 64K before it hold the log; aarch64",
        ),
        key(
            "hypervisor",
            Optional,
            Kind::Table(&HYPERVISOR),
            "what the hypervisor keeps for itself; armv7m",
        ),
        key(
            "iommu",
            Default("false"),
            Kind::Boolean,
            "whether an IOMMU that the hypervisor drives confines DMA",
        ),
        key(
            "console",
            Optional,
            Kind::Table(&CONSOLE),
            "the UART of the hypervisor; without one the log is in RAM only",
        ),
        key(
            "interrupt-controller",
            Required,
            Kind::Table(&CONTROLLER),
            "the interrupt controller",
        ),
        key("timer", Required, Kind::Table(&TIMER), "the system timer"),
        key(
            "device",
            Optional,
            Kind::Map {
                key: "name",
                of: &DEVICE,
            },
            "devices that can be given to partitions",
        ),
        key(
            "overheads",
            Optional,
            Kind::Table(&OVERHEADS),
            "what the hypervisor costs; without it the analysis takes it to cost nothing, and says so",
        ),
        key(
            "emulator",
            Optional,
            Kind::Table(&EMULATOR),
            "how to emulate the board",
        ),
    ],
};

static WINDOW: TableSchema = TableSchema {
    what: "a window",
    doc: "A stretch of the board's address space.",
    keys: &[
        key("base", Required, Kind::Address, "first address"),
        key("size", Required, Kind::Size, "bytes"),
    ],
};

static HYPERVISOR: TableSchema = TableSchema {
    what: "the hypervisor's share",
    doc: "Memory that no partition can be linked to. Its class binary is linked to what is said here.",
    keys: &[
        key(
            "code",
            Required,
            Kind::Size,
            "code memory for class binary and system image",
        ),
        key(
            "code-base",
            Optional,
            Kind::Address,
            "where that is; without it at the end of the first stretch of code memory",
        ),
        key(
            "ram",
            Required,
            Kind::Size,
            "RAM, the log of 4K included; 24K are enough for eight partitions and 32 interrupt lines",
        ),
        key(
            "ram-base",
            Optional,
            Kind::Address,
            "where that is; without it at the end of the first stretch of RAM",
        ),
    ],
};

static CONSOLE: TableSchema = TableSchema {
    what: "a console",
    doc: "The UART that all consoles share.",
    keys: &[
        key(
            "compatible",
            Required,
            Kind::Choice(&[
                ("arm,pl011", "Arm PrimeCell PL011"),
                ("cdns,uart-r1p12", "Cadence UART"),
                ("arm,cmsdk-uart", "Arm CMSDK APB UART"),
            ]),
            "driver",
        ),
        key("registers", Required, Kind::Table(&WINDOW), "its registers"),
        key(
            "line",
            Required,
            Kind::Integer(0, LINE_MAX),
            "its interrupt line; CMSDK: the one for receive, before the one for transmit",
        ),
        key(
            "clock-hz",
            Default("0"),
            Kind::Integer(0, u32::MAX as u64),
            "clock of the baud rate generator; 0 leaves the rate as the firmware set it",
        ),
    ],
};

static CONTROLLER: TableSchema = TableSchema {
    what: "an interrupt controller",
    doc: "The interrupt controller.",
    keys: &[
        key(
            "compatible",
            Required,
            Kind::Choice(&[
                ("arm,gic-v3", "Arm GICv3"),
                ("arm,gic-400", "Arm GICv2 with virtualization extensions"),
                ("arm,v7m-nvic", "the interrupt controller of an Armv7-M CPU"),
            ]),
            "driver",
        ),
        key(
            "distributor",
            Optional,
            Kind::Table(&WINDOW),
            "distributor; a GIC",
        ),
        key(
            "redistributors",
            Optional,
            Kind::Table(&WINDOW),
            "redistributors of all CPUs; GICv3",
        ),
        key(
            "cpu-interface",
            Optional,
            Kind::Table(&WINDOW),
            "CPU interface (`GICC`), 8K; GICv2",
        ),
        key(
            "hypervisor-interface",
            Optional,
            Kind::Table(&WINDOW),
            "virtual interface control (`GICH`) of the CPU that asks; GICv2",
        ),
        key(
            "virtual-cpu-interface",
            Optional,
            Kind::Table(&WINDOW),
            "virtual CPU interface (`GICV`), 8K, where VMs get it from; GICv2",
        ),
        key(
            "maintenance",
            Optional,
            Kind::Integer(16, 31),
            "maintenance interrupt of the virtual interface; a GIC",
        ),
        key(
            "lines",
            Required,
            Kind::Integer(1, LINE_MAX + 1),
            "interrupt lines, private ones included (NVIC: external interrupts)",
        ),
    ],
};

static TIMER: TableSchema = TableSchema {
    what: "a timer",
    doc: "The Arm generic timer with its private interrupt lines, or a dual timer with a counter that always runs.",
    keys: &[
        key(
            "compatible",
            Required,
            Kind::Choice(&[
                ("arm,armv8-timer", "Arm generic timer"),
                ("arm,sp804", "Arm dual timer, SP804 or that of the CMSDK"),
            ]),
            "driver",
        ),
        key(
            "hypervisor",
            Optional,
            Kind::Integer(16, 31),
            "timer of EL2; generic timer",
        ),
        key(
            "virtual",
            Optional,
            Kind::Integer(16, 31),
            "virtual timer; generic timer",
        ),
        key(
            "physical",
            Optional,
            Kind::Integer(16, 31),
            "physical timer of EL1; generic timer",
        ),
        key(
            "registers",
            Optional,
            Kind::Table(&WINDOW),
            "its registers; dual timer",
        ),
        key(
            "counter",
            Optional,
            Kind::Table(&WINDOW),
            "registers with a free-running counter at 0x18; dual timer",
        ),
        key(
            "line",
            Optional,
            Kind::Integer(0, LINE_MAX),
            "its interrupt line; dual timer",
        ),
        key(
            "clock-hz",
            Optional,
            Kind::Integer(1, u32::MAX as u64),
            "clock of timer and counter; dual timer",
        ),
    ],
};

static DEVICE: TableSchema = TableSchema {
    what: "a device",
    doc: "A device, or with `count` a row of equal ones named NAME-0, NAME-1 and so on.",
    keys: &[
        key("description", Default("\"\""), Kind::Text, "one line for people"),
        key(
            "compatible",
            Required,
            Kind::List(&Kind::Text),
            "`compatible` of its device tree node",
        ),
        key(
            "registers",
            Required,
            Kind::List(&Kind::Table(&WINDOW)),
            "its registers",
        ),
        key(
            "interrupts",
            Default("[]"),
            Kind::List(&Kind::Table(&INTERRUPT)),
            "its interrupt lines",
        ),
        key(
            "dma",
            Default("false"),
            Kind::Boolean,
            "whether it can read and write memory by itself",
        ),
        key(
            "dma-coherent",
            Default("false"),
            Kind::Boolean,
            "whether its DMA sees the caches",
        ),
        key(
            "clock",
            Optional,
            Kind::Text,
            "name of the clock input that gets the fixed bus clock",
        ),
        key(
            "count",
            Default("1"),
            Kind::Integer(1, 256),
            "how many of them in a row",
        ),
        key(
            "stride",
            Optional,
            Kind::Size,
            "bytes from one's registers to the next one's; with `count`",
        ),
        key(
            "forward",
            Default("false"),
            Kind::Boolean,
            "whether the hypervisor may access the registers for the owner, so that devices in one page can have several owners; only for devices that answer every access",
        ),
        key(
            "quiesce",
            Optional,
            Kind::Table(&QUIESCE),
            "what stops the device, interrupts and DMA included, when its owner has ended",
        ),
        key(
            "emulator",
            Optional,
            Kind::Table(&ATTACH),
            "what its emulator can plug into it",
        ),
    ],
};

static QUIESCE: TableSchema = TableSchema {
    what: "a register write",
    doc: "A write of 32 bits to a register of the device.",
    keys: &[
        key(
            "offset",
            Required,
            Kind::Integer(0, u32::MAX as u64),
            "offset of the register in the first window",
        ),
        key(
            "value",
            Required,
            Kind::Integer(0, u32::MAX as u64),
            "what is written",
        ),
    ],
};

static ATTACH: TableSchema = TableSchema {
    what: "attachments",
    doc: "Further arguments of the emulator that plug something into the device. `{device}` stands for the device's name, `{index}` for its number in a row.",
    keys: &[
        key(
            "disk",
            Optional,
            Kind::List(&Kind::Text),
            "a disk; `{file}` stands for its image, `{read-only}` for `on` or `off`",
        ),
        key("network", Optional, Kind::List(&Kind::Text), "a network"),
    ],
};

static INTERRUPT: TableSchema = TableSchema {
    what: "an interrupt",
    doc: "A shared interrupt line.",
    keys: &[
        key(
            "line",
            Required,
            Kind::Integer(0, LINE_MAX),
            "line in the numbering of the interrupt controller",
        ),
        key(
            "trigger",
            Required,
            Kind::Choice(&[("level", "level-triggered, high"), ("edge", "rising edge")]),
            "trigger",
        ),
    ],
};

static EMULATOR: TableSchema = TableSchema {
    what: "an emulator",
    doc: "The command that emulates the board; `{image}` stands for the flashable file, `{cpus}` for the number of CPUs, `{port}` for a TCP port.",
    keys: &[
        key("program", Required, Kind::Text, "the program"),
        key("arguments", Required, Kind::List(&Kind::Text), "its arguments"),
        key(
            "deterministic",
            Optional,
            Kind::List(&Kind::Text),
            "further arguments for runs that repeat exactly",
        ),
        key(
            "gdb",
            Optional,
            Kind::List(&Kind::Text),
            "further arguments to wait for a debugger",
        ),
        key(
            "monitor",
            Optional,
            Kind::List(&Kind::Text),
            "further arguments for a QMP monitor on the socket `{monitor}` that keeps a board that is off until it is told to quit",
        ),
        key(
            "instruction-clock",
            Optional,
            Kind::List(&Kind::Text),
            "further arguments, besides `deterministic`, with which a tick of the counter is one instruction",
        ),
        key(
            "bare",
            Optional,
            Kind::List(&Kind::Text),
            "arguments instead of `arguments` to run a program of a VM, `{image}`, without the hypervisor",
        ),
        key(
            "ignore",
            Optional,
            Kind::List(&Kind::Text),
            "parts of messages of the emulator that mean nothing",
        ),
    ],
};
