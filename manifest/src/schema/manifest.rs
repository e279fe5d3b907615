// SPDX-License-Identifier: Apache-2.0
//! Every key of a manifest.

use super::scheduling::{PCPU, VCPU};
use super::timing::{DEMAND, WORKLOAD};
use super::{Key, Kind, Need, TableSchema};
use Need::{Default, Optional, Required};

pub(super) const fn key(name: &'static str, need: Need, kind: Kind, doc: &'static str) -> Key {
    Key {
        name,
        doc,
        kind,
        need,
    }
}

pub(crate) static MANIFEST: TableSchema = TableSchema {
    what: "a manifest",
    doc: "A system: one board and the partitions that share it.",
    keys: &[
        key(
            "board",
            Required,
            Kind::Text,
            "name of a board (`bulkhead boards` lists them), or the path of a board file",
        ),
        key(
            "pcpu",
            Optional,
            Kind::Map {
                key: "pCPU number",
                of: &PCPU,
            },
            "how each physical CPU is scheduled",
        ),
        key(
            "partition",
            Required,
            Kind::Map {
                key: "name",
                of: &PARTITION,
            },
            "the partitions, numbered from 0 in the order of the file",
        ),
        key(
            "network",
            Optional,
            Kind::Map {
                key: "name",
                of: &SWITCH,
            },
            "networks that VMs share; class `armv7m`",
        ),
        key(
            "emulator",
            Optional,
            Kind::Table(&EMULATOR),
            "what the emulator plugs into devices; nothing of it is in the system image",
        ),
        key(
            "trace",
            Optional,
            Kind::Table(&TRACE),
            "traces every pCPU whenever the system runs; without it only `run --trace` does",
        ),
    ],
};

static TRACE: TableSchema = TableSchema {
    what: "a trace table",
    doc: "The rings of the trace, in RAM that is left over when all else is placed. The log area says where they are.",
    keys: &[key(
        "records",
        Default("262144"),
        Kind::Integer(
            bulkhead_abi::trace::RING_MIN as u64,
            bulkhead_abi::trace::RING_MAX as u64,
        ),
        "records of each pCPU's ring, 16 bytes each; a power of two. The newest overwrites the oldest",
    )],
};

static SWITCH: TableSchema = TableSchema {
    what: "a network table",
    doc: "A network that the hypervisor switches: a frame goes to the VM that has its destination address, or to all if it is for a group.",
    keys: &[
        key(
            "uplink",
            Optional,
            Kind::Text,
            "Ethernet device of the board that connects it with the outside; the hypervisor drives it. Without it the VMs have a network among themselves",
        ),
        key(
            "budget",
            Default("\"2ms\""),
            Kind::Duration,
            "how long the hypervisor may be busy in each period with frames from outside. Further ones wait in the controller, or are lost there",
        ),
        key(
            "period",
            Default("\"10ms\""),
            Kind::Duration,
            "the period of the budget",
        ),
    ],
};

static EMULATOR: TableSchema = TableSchema {
    what: "an emulator table",
    doc: "Disks and networks of the emulated board, by the devices they are plugged into.",
    keys: &[
        key(
            "disks",
            Optional,
            Kind::List(&Kind::Table(&DISK)),
            "disks, each either with a `file` or with a `size`",
        ),
        key(
            "networks",
            Optional,
            Kind::List(&Kind::Table(&NETWORK)),
            "networks inside the emulator: addresses by DHCP, a gateway that answers, no way in from outside",
        ),
    ],
};

static DISK: TableSchema = TableSchema {
    what: "a disk",
    doc: "A disk of the emulated board.",
    keys: &[
        key(
            "device",
            Required,
            Kind::Text,
            "device of the board it is plugged into",
        ),
        key(
            "file",
            Optional,
            Kind::Text,
            "raw image, relative to the manifest; what is written to the disk stays in it",
        ),
        key(
            "size",
            Optional,
            Kind::Size,
            "instead of `file`: an empty disk of this size for one run",
        ),
        key(
            "read-only",
            Default("false"),
            Kind::Boolean,
            "whether writes are refused",
        ),
    ],
};

static NETWORK: TableSchema = TableSchema {
    what: "a network",
    doc: "A network of the emulated board.",
    keys: &[key(
        "device",
        Required,
        Kind::Text,
        "device of the board it is plugged into",
    )],
};

const KINDS: &[(&str, &str)] = &[
    (
        "vm",
        "an unmodified operating system or bare-metal program on virtual hardware",
    ),
    ("task", "one user-level program directly on the hypervisor"),
];
const TIMES: &[(&str, &str)] = &[
    ("real", "goes on while the partition is not running"),
    (
        "frozen",
        "stands still while the partition is ready but not running; one vCPU only",
    ),
];

static PARTITION: TableSchema = TableSchema {
    what: "a partition",
    doc: "The unit of isolation. Its name has up to 31 letters, digits, `-` and `_`, starts with a letter, and is not `bulkhead`.",
    keys: &[
        key("kind", Required, Kind::Choice(KINDS), "what the partition is"),
        key(
            "image",
            Optional,
            Kind::Text,
            "what it runs: for a VM a Linux Image (raw, gzip or EFI zboot with gzip), an ELF file or a raw binary, for a task an ELF file; a path relative to the manifest, or the name of a payload of the host tool (`@...`); a VM can do without if `machine.entry` is in a region with a payload",
        ),
        key(
            "ramdisk",
            Optional,
            Kind::Text,
            "initial RAM disk handed to the kernel; VM only",
        ),
        key(
            "init",
            Optional,
            Kind::Text,
            "script that becomes `/init` of `@debian/initramfs`; VM only",
        ),
        key(
            "modules",
            Optional,
            Kind::List(&Kind::Text),
            "modules of the kernel (an `@debian/linux-...` image) that `@debian/initramfs` loads, with all they need, before `init` runs; VM only",
        ),
        key("bootargs", Optional, Kind::Text, "kernel command line; VM only"),
        key(
            "alternative",
            Optional,
            Kind::Map {
                key: "name",
                of: &ALTERNATIVE,
            },
            "other payloads that a holder of a capability with the right `control` can start it with, numbered from 1 in the order of the file, at most 8; VM only",
        ),
        key("memory", Required, Kind::Size, "RAM; a multiple of 4K"),
        key(
            "place",
            Optional,
            Kind::Address,
            "where on the board the RAM is; without it the tool finds a place",
        ),
        key(
            "vcpus",
            Required,
            Kind::List(&Kind::Table(&VCPU)),
            "the virtual CPUs, at most 8; a task has one",
        ),
        key(
            "demand",
            Optional,
            Kind::Table(&DEMAND),
            "what it has to do, and by when",
        ),
        key(
            "workload",
            Optional,
            Kind::List(&Kind::Table(&WORKLOAD)),
            "what it does in `simulate`",
        ),
        key(
            "console",
            Default("true"),
            Kind::Boolean,
            "whether it has a console: a virtual PL011 for a VM",
        ),
        key(
            "time",
            Default("\"real\""),
            Kind::Choice(TIMES),
            "what its virtual time does; VM only",
        ),
        key(
            "autostart",
            Default("true"),
            Kind::Boolean,
            "whether it is started at boot",
        ),
        key(
            "watchdog",
            Optional,
            Kind::Duration,
            "longest time between two kicks, 1ms to 1000s",
        ),
        key(
            "devices",
            Default("[]"),
            Kind::List(&Kind::Text),
            "devices of the board that become its own, by the names of the board file; VM only",
        ),
        key(
            "network",
            Optional,
            Kind::Text,
            "network that its virtual Ethernet controller is on, which it finds where the board has its own; VM only",
        ),
        key(
            "mac",
            Optional,
            Kind::Text,
            "address of that controller, as in \"02:00:00:00:00:01\"; without it one that follows from the partition's number",
        ),
        key(
            "critical",
            Default("[]"),
            Kind::List(&Kind::Text),
            "those of its devices whose interrupts are handled in the first domain of the pCPU, whoever has his turn; policy `domains`",
        ),
        key(
            "interrupt-latency",
            Optional,
            Kind::Duration,
            "interrupts of its devices reach it exactly this long after their arrival, whatever ran: what is quicker waits; class armv7m, VM only",
        ),
        key(
            "trusted-dma",
            Default("false"),
            Kind::Boolean,
            "accept devices that do DMA although no IOMMU confines them: the partition can then overwrite everything",
        ),
        key(
            "device-tree-overlay",
            Optional,
            Kind::Text,
            "overlay (`.dtbo`, or `.dtso` compiled with `dtc`) applied to the generated device tree; VM only",
        ),
        key(
            "restart-limit",
            Optional,
            Kind::Integer(0, 1_000_000),
            "restarts by a health action before the partition stays failed; without it there is no limit",
        ),
        key(
            "health",
            Optional,
            Kind::Table(&HEALTH),
            "what happens when the partition misbehaves",
        ),
        key(
            "machine",
            Optional,
            Kind::Table(&MACHINE),
            "departures from the default virtual machine; VM only",
        ),
        key(
            "region",
            Optional,
            Kind::List(&Kind::Table(&REGION)),
            "memory besides its RAM; VM only",
        ),
        key(
            "capabilities",
            Optional,
            Kind::Map {
                key: "name the partition knows it by",
                of: &CAPABILITY,
            },
            "what it may do to other objects; index 0 is always the partition itself, the others follow in the order of the file",
        ),
        key(
            "watch",
            Optional,
            Kind::Table(&WATCH),
            "what it is told about others",
        ),
    ],
};

static ALTERNATIVE: TableSchema = TableSchema {
    what: "an alternative",
    doc: "Payloads that a VM can run instead of its own. A key that is not given is that of the partition; memory, vCPUs, devices and all else stay the same.",
    keys: &[
        key("image", Optional, Kind::Text, "what it runs"),
        key("ramdisk", Optional, Kind::Text, "initial RAM disk"),
        key(
            "init",
            Optional,
            Kind::Text,
            "script that becomes `/init` of `@debian/initramfs`",
        ),
        key(
            "modules",
            Optional,
            Kind::List(&Kind::Text),
            "modules that `@debian/initramfs` loads before `init` runs",
        ),
        key("bootargs", Optional, Kind::Text, "kernel command line"),
    ],
};

const ACTIONS: &[(&str, &str)] = &[
    ("log", "write it to the log and go on"),
    (
        "inject",
        "reflect it into the partition as its architecture would report it; VM only",
    ),
    ("stop", "stop the partition; it is then failed"),
    (
        "restart",
        "stop the partition and start it cold: memory cleared, payloads copied anew",
    ),
    (
        "restart-warm",
        "stop the partition and start it warm: memory stays as it is, all else is as at first",
    ),
];

static HEALTH: TableSchema = TableSchema {
    what: "a health table",
    doc: "Health action per class of health event.",
    keys: &[
        key(
            "memory",
            Default("\"stop\""),
            Kind::Choice(ACTIONS),
            "an access to memory or a device that is not its own",
        ),
        key(
            "system",
            Default("\"inject\", for a task \"stop\""),
            Kind::Choice(ACTIONS),
            "a system register or instruction it may not use",
        ),
        key(
            "hypercall",
            Default("\"log\""),
            Kind::Choice(ACTIONS),
            "a hypercall with a bad number, capability or argument",
        ),
        key(
            "watchdog",
            Default("\"restart\""),
            Kind::Choice(ACTIONS),
            "the watchdog period passed without a kick",
        ),
        key(
            "task",
            Default("\"stop\""),
            Kind::Choice(ACTIONS),
            "a task executed an instruction it cannot go on from; task only",
        ),
    ],
};

static MACHINE: TableSchema = TableSchema {
    what: "a machine",
    doc: "A VM's machine. The default is the memory map of QEMU's `virt` board with GICv3, so that software built for that board runs unmodified.",
    keys: &[
        key(
            "ram-base",
            Default("0x40000000"),
            Kind::Address,
            "where the partition sees its RAM",
        ),
        key(
            "gic",
            Optional,
            Kind::Table(&GIC),
            "the virtual interrupt controller",
        ),
        key(
            "uart",
            Optional,
            Kind::Table(&UART),
            "the virtual PL011 of its console",
        ),
        key(
            "event-gate",
            Optional,
            Kind::Table(&EVENT_GATE),
            "the interrupt of its event gate",
        ),
        key(
            "load-at",
            Default("RAM base + 0x80000"),
            Kind::Address,
            "where a raw binary is loaded; raw binaries only",
        ),
        key(
            "entry",
            Default("the image's own"),
            Kind::Address,
            "first instruction; raw binaries and VMs without image only",
        ),
        key(
            "semihosting",
            Default("true"),
            Kind::Boolean,
            "answer the program's calls of a debugger (`BKPT 0xAB`) with its console, its name and its end; if not, they are its HardFault; class armv7m only",
        ),
    ],
};

static GIC: TableSchema = TableSchema {
    what: "an interrupt controller",
    doc: "The virtual interrupt controller.",
    keys: &[
        key(
            "version",
            Default("the board's"),
            Kind::Integer(2, 3),
            "GIC architecture version; no other than that of the board's own interrupt controller",
        ),
        key(
            "distributor",
            Default("0x08000000"),
            Kind::Address,
            "distributor, 64K (version 2: 4K)",
        ),
        key(
            "redistributor",
            Default("0x080a0000"),
            Kind::Address,
            "redistributors, 128K per vCPU; version 3",
        ),
        key(
            "cpu-interface",
            Default("0x08010000"),
            Kind::Address,
            "CPU interface, 8K; version 2",
        ),
        key(
            "lines",
            Default("288"),
            Kind::Integer(64, 992),
            "interrupt lines, private ones included; a multiple of 32",
        ),
    ],
};

static UART: TableSchema = TableSchema {
    what: "a UART",
    doc: "The virtual PL011.",
    keys: &[
        key("base", Default("0x09000000"), Kind::Address, "registers, 4K"),
        key(
            "line",
            Default("33"),
            Kind::Integer(0, 991),
            "interrupt line (INTID; armv7m: external interrupt of the NVIC for receive, before the one for transmit, by default the board's own)",
        ),
    ],
};

static EVENT_GATE: TableSchema = TableSchema {
    what: "the interrupt of an event gate",
    doc: "A VM that can wait for the events of its own gate has a level-triggered interrupt for them, high while there are any.",
    keys: &[key(
        "line",
        Default("47"),
        Kind::Integer(32, 991),
        "interrupt line (INTID)",
    )],
};

const ACCESS: &[(&str, &str)] = &[
    ("rwx", "read, write, execute"),
    ("rw", "read, write"),
    ("rx", "read, execute"),
    ("r", "read"),
];

static REGION: TableSchema = TableSchema {
    what: "a memory region",
    doc: "Memory of a VM besides its RAM, for example where a firmware image is expected. Regions with access `rwx` and without payload appear in the guest's device tree as memory.",
    keys: &[
        key("guest", Required, Kind::Address, "where the partition sees it"),
        key("size", Required, Kind::Size, "bytes; a multiple of 4K"),
        key(
            "payload",
            Optional,
            Kind::Text,
            "file copied to its start when the partition starts",
        ),
        key(
            "access",
            Default("\"rwx\""),
            Kind::Choice(ACCESS),
            "what the partition may do with it",
        ),
        key(
            "place",
            Optional,
            Kind::Address,
            "where on the board it is; without it the tool finds a place",
        ),
    ],
};

const RIGHTS: &[(&str, &str)] = &[
    ("read", "look: status, wait, read"),
    ("write", "write or signal"),
    ("control", "start, stop, restart, kick"),
    (
        "grant",
        "put capabilities into the partition's space, or pass this capability on",
    ),
];

static CAPABILITY: TableSchema = TableSchema {
    what: "a capability",
    doc: "The right to use one object. Exactly one of the first five keys names it. The capability's own name has up to 23 characters.",
    keys: &[
        key(
            "partition",
            Optional,
            Kind::Text,
            "a partition, the own one included",
        ),
        key(
            "event-gate",
            Optional,
            Kind::Text,
            "the event gate of a partition",
        ),
        key(
            "timer",
            Optional,
            Kind::Boolean,
            "`true`: the system clock, and sleeping on it",
        ),
        key(
            "console",
            Optional,
            Kind::Boolean,
            "`true`: the partition's own console",
        ),
        key(
            "schedule",
            Optional,
            Kind::Integer(0, u32::MAX as u64),
            "the schedules of this pCPU, which has policy `arinc653`: `read` tells which one is in force, `control` changes it",
        ),
        key(
            "rights",
            Default("[\"read\"]; console: [\"read\", \"write\"]"),
            Kind::List(&Kind::Choice(RIGHTS)),
            "what the holder may do",
        ),
    ],
};

static WATCH: TableSchema = TableSchema {
    what: "a watch table",
    doc: "What raises events at the partition's own event gate, besides those who hold a capability for it.",
    keys: &[
        key(
            "partitions",
            Default("[]"),
            Kind::List(&Kind::Text),
            "partitions whose state changes raise the event bit of their number",
        ),
        key(
            "windows",
            Default("false"),
            Kind::Boolean,
            "whether the start of each of its own windows raises event 62, and the start of its periodic processing event 63; policy `arinc653`",
        ),
    ],
};
