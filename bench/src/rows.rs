// SPDX-License-Identifier: Apache-2.0
//! The measured operations.

/// One figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Name under which the guest reports the figure.
    pub key: &'static str,
    /// The title for people.
    pub title: &'static str,
    /// Most net instructions that are good enough, if there is such a limit.
    pub bar: Option<u64>,
}

impl Row {
    /// Returns the most net instructions that are good enough for the first use: twice the bar of the others.
    #[must_use]
    pub fn cold_bar(&self) -> Option<u64> {
        self.bar.map(|bar| bar * 2)
    }
}

pub(crate) const fn row(key: &'static str, title: &'static str, bar: Option<u64>) -> Row {
    Row { key, title, bar }
}

/// Makes the row of an asynchronous message: path, bytes, kind of the partition, bar.
macro_rules! queued {
    ($path:literal, $name:literal, $bytes:literal, $kind:literal, $bar:expr) => {
        row(
            concat!("port-", $path, "-", $bytes, "-", $kind, "-", $kind),
            concat!("message of ", $bytes, " bytes, asynchronous ", $name, ", ", $kind),
            $bar,
        )
    };
}

/// Makes the row of a message between two partitions: path, name, bytes, kinds of client and server,
/// bar.
macro_rules! message {
    ($path:literal, $name:expr, $bytes:literal, $client:literal, $server:literal, $bar:expr) => {
        row(
            concat!("port-", $path, "-", $bytes, "-", $client, "-", $server),
            concat!(
                "message of ",
                $bytes,
                " bytes, ",
                $name,
                ", ",
                $client,
                " to ",
                $server
            ),
            $bar,
        )
    };
}

/// Makes the row of a call with donation: path, name, bytes, kinds of the client and of the server, bar.
macro_rules! call {
    ($path:literal, $name:literal, $bytes:literal, $client:literal, $server:literal, $bar:expr) => {
        message!(
            $path,
            concat!($name, " with donation"),
            $bytes,
            $client,
            $server,
            $bar
        )
    };
}

/// Makes the row of a call without donation, or of a message to a server that waits: kinds of the client and
/// of the server.
macro_rules! plain {
    (call $client:literal, $server:literal, $bytes:literal) => {
        message!("call", "two way without donation", $bytes, $client, $server, None)
    };
    (waiting $client:literal, $server:literal, $bytes:literal) => {
        message!(
            "waiting",
            "send to a receiver that waits",
            $bytes,
            $client,
            $server,
            None
        )
    };
}

/// Makes the row of a test of Thread-Metric, or of a mean of them with its own title.
macro_rules! metric {
    ($test:literal) => {
        row(
            concat!("thread-metric-", $test),
            concat!("Thread-Metric, a thousand rounds of `", $test, "`"),
            None,
        )
    };
    ($key:literal, $title:literal) => {
        row(
            concat!("thread-metric-", $key),
            concat!("Thread-Metric, ", $title),
            None,
        )
    };
}

/// Makes the row of a program of MiBench, or of a mean of them with its own title.
macro_rules! mibench {
    ($program:literal, $passes:literal) => {
        row(
            concat!("mibench-", $program),
            concat!("MiBench, `", $program, "`, small input, passes: ", $passes),
            None,
        )
    };
    (mean $key:literal, $title:literal) => {
        row(concat!("mibench-", $key), concat!("MiBench, ", $title), None)
    };
}

pub(crate) use {message, mibench, plain, queued};

/// The end of the name under which the guest reports the very first turn.
pub(crate) const FIRST: &str = "-first";

/// The parts of the name under which the guest reports a bar of a histogram, and the end of the worst's.
pub(crate) const HISTOGRAM: &str = "histogram-";
pub(crate) const AT: &str = "-at-";
pub(crate) const WORST: &str = "-worst";

/// Row that needs the digests' share taken off.
pub const RESET: &str = "reset";

/// The key of the reset of a VM beside a large one.
pub const RESET_BESIDE: &str = "reset-beside";
/// Name under which the guest reports a switch. The figures of other systems have the system's name after
/// it.
pub const SWITCH: &str = "switch";
/// Name under which the guest reports its timer while it waits.
pub const TIMER: &str = "timer-idle";
/// The keys of the same on a pCPU with other VMs begin so.
pub const TIMER_SHARED: &str = "timer-shared";
/// A switch while the pCPU is traced.
pub const SWITCH_TRACED: &str = "switch-traced";
/// The key of the cost of one record of the trace.
pub const TRACE_RECORD: &str = "trace-record";
/// The key of the cost of one record of an exit that the backend answers by itself.
pub const SHORT_RECORD: &str = "short-record";

/// The rows before the tests of Thread-Metric.
const BEFORE: &[Row] = &[
    row("null-call", "null hypercall", Some(100)),
    row(
        "version-call",
        "version by hypercall, which the kernel answers",
        Some(200),
    ),
    row("status-call", "status of a partition by hypercall", Some(200)),
    row("psci-version-hvc", "PSCI_VERSION by HVC", Some(100)),
    row("psci-version-smc", "PSCI_VERSION by SMC", Some(100)),
    row("gicd-ctlr-read", "read GICD_CTLR", Some(130)),
    row("gicd-isenabler-read", "read GICD_ISENABLER1", None),
    row("gicd-isenabler-write", "write GICD_ISENABLER1", Some(200)),
    row("gicd-icenabler-write", "write GICD_ICENABLER1", None),
    row("gicd-ipriorityr-read", "read GICD_IPRIORITYR10", None),
    row("gicd-ipriorityr-write", "write GICD_IPRIORITYR10", None),
    row("gicr-typer-read", "read GICR_TYPER", None),
    row("gicr-isenabler-read", "read GICR_ISENABLER0", None),
    row("gicr-isenabler-write", "write GICR_ISENABLER0", None),
    row(
        "uart-read",
        "read a register of the UART, which the kernel answers",
        None,
    ),
    row("uart-write", "write a register of the UART", None),
    row("uart-flags-read", "read the flags of the UART", Some(200)),
    row("uart-byte", "send a byte by the UART, in a line", None),
    row(
        "timer-busy",
        "virtual timer to guest vector, vCPU busy",
        Some(130),
    ),
    row(
        "timer-busy-worst",
        "virtual timer to guest vector, vCPU busy, worst of 128 arrivals",
        None,
    ),
    row(TIMER, "virtual timer to guest vector, vCPU in WFI", Some(130)),
    row(
        "timer-shared-2",
        "the same on a pCPU shared by 2 VMs, the other one in WFI",
        Some(450),
    ),
    row(
        "timer-shared-31",
        "the same on a pCPU shared by 31 VMs, all others in WFI",
        Some(450),
    ),
    row(
        "timer-shared-2-full",
        "the same in the variant with all parts, 2 VMs",
        Some(450),
    ),
    row(
        "timer-shared-31-full",
        "the same in the variant with all parts, 31 VMs, each with a timer far away",
        Some(450),
    ),
    row("sgi-self", "SGI to itself, to guest vector", Some(180)),
    row(
        "sgi-other-busy",
        "SGI to another vCPU, busy (sum of both CPUs)",
        Some(300),
    ),
    row("sgi-other-idle", "SGI to another vCPU, in WFI (sum)", Some(300)),
    row("cpu-on", "CPU_ON to first guest instruction (sum)", Some(800)),
    row(
        "switch",
        "vCPU switch: WFI of one to the other's next instruction",
        Some(450),
    ),
    row(SWITCH_TRACED, "the same with the trace on (three records)", None),
    row(TRACE_RECORD, "a record of the trace", Some(30)),
    row(SHORT_RECORD, "a record of a short exit", None),
    row(
        "switch-fixed-priority-2",
        "vCPU switch, fixed-priority, 2 vCPUs",
        Some(450),
    ),
    row("switch-edf-2", "vCPU switch, edf, 2 vCPUs", Some(450)),
    row("switch-arinc653-2", "vCPU switch, arinc653, 2 vCPUs", Some(450)),
    row("switch-domains-2", "vCPU switch, domains, 2 vCPUs", Some(450)),
    row(
        "switch-fixed-priority-8",
        "vCPU switch, fixed-priority, 8 vCPUs",
        Some(450),
    ),
    row("switch-edf-8", "vCPU switch, edf, 8 vCPUs", Some(450)),
    row("switch-arinc653-8", "vCPU switch, arinc653, 8 vCPUs", Some(450)),
    row("switch-domains-8", "vCPU switch, domains, 8 vCPUs", Some(450)),
    row(
        "switch-fixed-priority-32",
        "vCPU switch, fixed-priority, 32 vCPUs",
        Some(450),
    ),
    row("switch-edf-32", "vCPU switch, edf, 32 vCPUs", Some(450)),
    row("switch-arinc653-32", "vCPU switch, arinc653, 32 vCPUs", Some(450)),
    row("switch-domains-32", "vCPU switch, domains, 32 vCPUs", Some(450)),
    row("turn-vm-vm", "switch at the end of a turn, vm to vm", None),
    row(
        "turn-task-task",
        "switch at the end of a turn, task to task",
        None,
    ),
    row("turn-vm-task", "switch at the end of a turn, vm to task", None),
    row("turn-task-vm", "switch at the end of a turn, task to vm", None),
    row(
        "late-task-vm",
        "virtual timer to the vector of a VM in WFI, a task preempted",
        None,
    ),
    row(
        "late-vm-vm",
        "virtual timer to the vector of a VM in WFI, another VM preempted",
        None,
    ),
    row(
        "late-task-task",
        "end of a sleep to a task's next instruction, another task preempted",
        None,
    ),
    row(
        "late-vm-task",
        "end of a sleep to a task's next instruction, a VM preempted",
        None,
    ),
    row(
        "late-worst-task-vm",
        "virtual timer to the vector of a VM in WFI, a task preempted, worst of 128 arrivals",
        None,
    ),
    row(
        "late-worst-vm-vm",
        "virtual timer to the vector of a VM in WFI, another VM preempted, worst of 128 arrivals",
        None,
    ),
    row(
        "late-worst-task-task",
        "end of a sleep to a task's next instruction, another task preempted, worst of 128 arrivals",
        None,
    ),
    row(
        "late-worst-vm-task",
        "end of a sleep to a task's next instruction, a VM preempted, worst of 128 arrivals",
        None,
    ),
    row("free-channel", "channel of 4 KiB read by a task", None),
    row(
        "held-channel",
        "channel of 4 KiB held, read and released by a task",
        None,
    ),
    row(
        "served-load",
        "load of a register of a virtio device that a task serves",
        None,
    ),
    row(
        "served-store",
        "store to a register of a virtio device that a task serves",
        None,
    ),
    row(
        "doorbell-busy-far",
        "doorbell to the vector of a VM on another pCPU, busy (sum of both CPUs)",
        Some(300),
    ),
    row(
        "doorbell-idle-far",
        "doorbell to the vector of a VM on another pCPU, in WFI (sum)",
        Some(300),
    ),
    row(
        "doorbell-idle-near",
        "doorbell to the vector of a more urgent VM on the same pCPU",
        None,
    ),
    queued!("send", "send", 64, "task", Some(250)),
    queued!("send", "send", 128, "task", None),
    queued!("send", "send", 192, "task", None),
    queued!("send", "send", 256, "task", None),
    queued!("send", "send", 320, "task", Some(370)),
    queued!("receive", "receipt", 64, "task", Some(250)),
    queued!("receive", "receipt", 128, "task", None),
    queued!("receive", "receipt", 192, "task", None),
    queued!("receive", "receipt", 256, "task", None),
    queued!("receive", "receipt", 320, "task", Some(370)),
    queued!("send", "send", 64, "vm", Some(250)),
    queued!("send", "send", 128, "vm", None),
    queued!("send", "send", 192, "vm", None),
    queued!("send", "send", 256, "vm", None),
    queued!("send", "send", 320, "vm", Some(370)),
    queued!("receive", "receipt", 64, "vm", Some(250)),
    queued!("receive", "receipt", 128, "vm", None),
    queued!("receive", "receipt", 192, "vm", None),
    queued!("receive", "receipt", 256, "vm", None),
    queued!("receive", "receipt", 320, "vm", Some(370)),
    call!("one-way", "one way", 64, "task", "task", Some(500)),
    call!("one-way", "one way", 128, "task", "task", None),
    call!("one-way", "one way", 192, "task", "task", None),
    call!("one-way", "one way", 256, "task", "task", None),
    call!("one-way", "one way", 320, "task", "task", Some(620)),
    call!("two-way", "two way", 64, "task", "task", Some(900)),
    call!("two-way", "two way", 128, "task", "task", None),
    call!("two-way", "two way", 192, "task", "task", None),
    call!("two-way", "two way", 256, "task", "task", None),
    call!("two-way", "two way", 320, "task", "task", Some(1140)),
    call!("one-way", "one way", 64, "vm", "task", None),
    call!("one-way", "one way", 128, "vm", "task", None),
    call!("one-way", "one way", 192, "vm", "task", None),
    call!("one-way", "one way", 256, "vm", "task", None),
    call!("one-way", "one way", 320, "vm", "task", None),
    call!("two-way", "two way", 64, "vm", "task", Some(1800)),
    call!("two-way", "two way", 128, "vm", "task", None),
    call!("two-way", "two way", 192, "vm", "task", None),
    call!("two-way", "two way", 256, "vm", "task", None),
    call!("two-way", "two way", 320, "vm", "task", Some(2040)),
    call!("one-way", "one way", 64, "task", "vm", None),
    call!("one-way", "one way", 128, "task", "vm", None),
    call!("one-way", "one way", 192, "task", "vm", None),
    call!("one-way", "one way", 256, "task", "vm", None),
    call!("one-way", "one way", 320, "task", "vm", None),
    call!("two-way", "two way", 64, "task", "vm", Some(1800)),
    call!("two-way", "two way", 128, "task", "vm", None),
    call!("two-way", "two way", 192, "task", "vm", None),
    call!("two-way", "two way", 256, "task", "vm", None),
    call!("two-way", "two way", 320, "task", "vm", Some(2040)),
    call!("one-way", "one way", 64, "vm", "vm", None),
    call!("one-way", "one way", 128, "vm", "vm", None),
    call!("one-way", "one way", 192, "vm", "vm", None),
    call!("one-way", "one way", 256, "vm", "vm", None),
    call!("one-way", "one way", 320, "vm", "vm", None),
    call!("two-way", "two way", 64, "vm", "vm", Some(2500)),
    call!("two-way", "two way", 128, "vm", "vm", None),
    call!("two-way", "two way", 192, "vm", "vm", None),
    call!("two-way", "two way", 256, "vm", "vm", None),
    call!("two-way", "two way", 320, "vm", "vm", Some(2740)),
    plain!(call "task", "task", 64),
    plain!(call "task", "task", 128),
    plain!(call "task", "task", 192),
    plain!(call "task", "task", 256),
    plain!(call "task", "task", 320),
    plain!(call "vm", "task", 64),
    plain!(call "vm", "task", 128),
    plain!(call "vm", "task", 192),
    plain!(call "vm", "task", 256),
    plain!(call "vm", "task", 320),
    plain!(call "task", "vm", 64),
    plain!(call "task", "vm", 128),
    plain!(call "task", "vm", 192),
    plain!(call "task", "vm", 256),
    plain!(call "task", "vm", 320),
    plain!(call "vm", "vm", 64),
    plain!(call "vm", "vm", 128),
    plain!(call "vm", "vm", 192),
    plain!(call "vm", "vm", 256),
    plain!(call "vm", "vm", 320),
    plain!(waiting "task", "task", 64),
    plain!(waiting "task", "task", 128),
    plain!(waiting "task", "task", 192),
    plain!(waiting "task", "task", 256),
    plain!(waiting "task", "task", 320),
    plain!(waiting "vm", "task", 64),
    plain!(waiting "vm", "task", 128),
    plain!(waiting "vm", "task", 192),
    plain!(waiting "vm", "task", 256),
    plain!(waiting "vm", "task", 320),
    plain!(waiting "task", "vm", 64),
    plain!(waiting "task", "vm", 128),
    plain!(waiting "task", "vm", 192),
    plain!(waiting "task", "vm", 256),
    plain!(waiting "task", "vm", 320),
    plain!(waiting "vm", "vm", 64),
    plain!(waiting "vm", "vm", 128),
    plain!(waiting "vm", "vm", 192),
    plain!(waiting "vm", "vm", 256),
    plain!(waiting "vm", "vm", 320),
    row("decide-pinned-1", "longest decision, pinned, 1 vCPU", None),
    row(
        "decide-fixed-priority-2",
        "longest decision, fixed-priority, 2 vCPUs",
        None,
    ),
    row(
        "decide-fixed-priority-8",
        "longest decision, fixed-priority, 8 vCPUs",
        None,
    ),
    row(
        "decide-fixed-priority-32",
        "longest decision, fixed-priority, 32 vCPUs",
        None,
    ),
    row(
        "decide-budgets-2",
        "longest decision, fixed-priority with budgets, 2 vCPUs",
        None,
    ),
    row(
        "decide-budgets-8",
        "longest decision, fixed-priority with budgets, 8 vCPUs",
        None,
    ),
    row(
        "decide-budgets-32",
        "longest decision, fixed-priority with budgets, 32 vCPUs",
        None,
    ),
    row("decide-edf-2", "longest decision, edf, 2 vCPUs", None),
    row("decide-edf-8", "longest decision, edf, 8 vCPUs", None),
    row("decide-edf-32", "longest decision, edf, 32 vCPUs", None),
    row("decide-arinc653-2", "longest decision, arinc653, 2 vCPUs", None),
    row("decide-arinc653-8", "longest decision, arinc653, 8 vCPUs", None),
    row("decide-arinc653-32", "longest decision, arinc653, 32 vCPUs", None),
    row("decide-domains-2", "longest decision, domains, 2 vCPUs", None),
    row("decide-domains-8", "longest decision, domains, 8 vCPUs", None),
    row("decide-domains-32", "longest decision, domains, 32 vCPUs", None),
];

/// The tests of Thread-Metric, and the mean of the VM alone.
pub(crate) const THREAD_METRIC: &[Row] = &[
    metric!("basic"),
    metric!("cooperative"),
    metric!("preemptive"),
    metric!("interrupt"),
    metric!("interrupt-preemption"),
    metric!("message"),
    metric!("synchronization"),
    metric!("memory"),
    metric!("mean-alone", "mean of all tests, the bare board is 100 000"),
];

/// The rows after them.
const AFTER: &[Row] = &[
    metric!("mean-20ms", "the same mean with a switch every 20 ms"),
    metric!("mean-10ms", "the same mean with a switch every 10 ms"),
    metric!("mean-5ms", "the same mean with a switch every 5 ms"),
    metric!("mean-1ms", "the same mean with a switch every 1 ms"),
    mibench!("basicmath", 7),
    mibench!("bitcount", 1),
    mibench!("qsort", 3),
    mibench!("susan-smoothing", 2),
    mibench!("susan-edges", 10),
    mibench!("susan-corners", 10),
    mibench!(mean "mean-alone", "mean of all programs, the bare board is 100 000"),
    mibench!(mean "mean-20ms", "the same mean with a switch every 20 ms"),
    mibench!(mean "mean-10ms", "the same mean with a switch every 10 ms"),
    mibench!(mean "mean-5ms", "the same mean with a switch every 5 ms"),
    mibench!(mean "mean-1ms", "the same mean with a switch every 1 ms"),
    row(
        RESET,
        "reset to first guest instruction, without digests",
        Some(150_000),
    ),
    row(
        RESET_BESIDE,
        "the same, before a less urgent VM with 64 MiB",
        Some(300_000),
    ),
];

const PARTS: &[&[Row]] = &[BEFORE, THREAD_METRIC, AFTER];

/// Everything that is measured, in the order of the table.
pub const ROWS: &[Row] = &joined::<{ count(PARTS) }>(PARTS);

/// Returns the number of all rows of parts of a table.
pub(crate) const fn count(parts: &[&[Row]]) -> usize {
    let (mut part, mut count) = (0, 0);
    while part < parts.len() {
        count += parts[part].len();
        part += 1;
    }
    count
}

/// Returns the rows of all parts, which are `N`.
pub(crate) const fn joined<const N: usize>(parts: &[&[Row]]) -> [Row; N] {
    let mut rows = [row("", "", None); N];
    let (mut part, mut next) = (0, 0);
    while part < parts.len() {
        let mut own = 0;
        while own < parts[part].len() {
            rows[next] = parts[part][own];
            own += 1;
            next += 1;
        }
        part += 1;
    }
    rows
}
