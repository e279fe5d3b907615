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

pub(crate) const fn row(key: &'static str, title: &'static str, bar: Option<u64>) -> Row {
    Row { key, title, bar }
}

/// Makes the row of a message, of its path, its bytes, the kinds of both sides, the title of the path and the
/// bar.
macro_rules! message {
    ($path:literal, $bytes:literal, $sides:literal, $title:literal, $bar:expr) => {
        row(
            concat!("port-", $path, "-", $bytes, "-", $sides),
            concat!("message of ", $bytes, " bytes, ", $title),
            $bar,
        )
    };
}

/// The end of the name under which the guest reports the very first turn.
pub(crate) const FIRST: &str = "-first";

/// Row that needs the digests' share taken off.
pub const RESET: &str = "reset";

/// Name under which the guest reports a switch. The figures of other systems have the system's name after
/// it.
pub const SWITCH: &str = "switch";
/// A switch while the pCPU is traced.
pub const SWITCH_TRACED: &str = "switch-traced";
/// The key of the cost of one record of the trace.
pub const TRACE_RECORD: &str = "trace-record";
/// The key of the cost of one record of an exit that the backend answers by itself.
pub const SHORT_RECORD: &str = "short-record";

/// Everything that is measured, in the order of the table.
pub const ROWS: &[Row] = &[
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
    row(
        "timer-busy",
        "virtual timer to guest vector, vCPU busy",
        Some(130),
    ),
    row(
        "timer-idle",
        "virtual timer to guest vector, vCPU in WFI",
        Some(130),
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
    message!("send", 64, "task-task", "asynchronous send, task", Some(250)),
    message!("send", 128, "task-task", "asynchronous send, task", None),
    message!("send", 192, "task-task", "asynchronous send, task", None),
    message!("send", 256, "task-task", "asynchronous send, task", None),
    message!("send", 320, "task-task", "asynchronous send, task", Some(370)),
    message!(
        "receive",
        64,
        "task-task",
        "asynchronous receipt, task",
        Some(250)
    ),
    message!("receive", 128, "task-task", "asynchronous receipt, task", None),
    message!("receive", 192, "task-task", "asynchronous receipt, task", None),
    message!("receive", 256, "task-task", "asynchronous receipt, task", None),
    message!(
        "receive",
        320,
        "task-task",
        "asynchronous receipt, task",
        Some(370)
    ),
    message!("send", 64, "vm-vm", "asynchronous send, vm", Some(250)),
    message!("send", 128, "vm-vm", "asynchronous send, vm", None),
    message!("send", 192, "vm-vm", "asynchronous send, vm", None),
    message!("send", 256, "vm-vm", "asynchronous send, vm", None),
    message!("send", 320, "vm-vm", "asynchronous send, vm", Some(370)),
    message!("receive", 64, "vm-vm", "asynchronous receipt, vm", Some(250)),
    message!("receive", 128, "vm-vm", "asynchronous receipt, vm", None),
    message!("receive", 192, "vm-vm", "asynchronous receipt, vm", None),
    message!("receive", 256, "vm-vm", "asynchronous receipt, vm", None),
    message!("receive", 320, "vm-vm", "asynchronous receipt, vm", Some(370)),
    message!(
        "one-way",
        64,
        "task-task",
        "one way with donation, task to task",
        Some(500)
    ),
    message!(
        "one-way",
        128,
        "task-task",
        "one way with donation, task to task",
        None
    ),
    message!(
        "one-way",
        192,
        "task-task",
        "one way with donation, task to task",
        None
    ),
    message!(
        "one-way",
        256,
        "task-task",
        "one way with donation, task to task",
        None
    ),
    message!(
        "one-way",
        320,
        "task-task",
        "one way with donation, task to task",
        Some(620)
    ),
    message!(
        "two-way",
        64,
        "task-task",
        "two way with donation, task to task",
        Some(900)
    ),
    message!(
        "two-way",
        128,
        "task-task",
        "two way with donation, task to task",
        None
    ),
    message!(
        "two-way",
        192,
        "task-task",
        "two way with donation, task to task",
        None
    ),
    message!(
        "two-way",
        256,
        "task-task",
        "two way with donation, task to task",
        None
    ),
    message!(
        "two-way",
        320,
        "task-task",
        "two way with donation, task to task",
        Some(1140)
    ),
    message!(
        "one-way",
        64,
        "vm-task",
        "one way with donation, vm to task",
        None
    ),
    message!(
        "one-way",
        128,
        "vm-task",
        "one way with donation, vm to task",
        None
    ),
    message!(
        "one-way",
        192,
        "vm-task",
        "one way with donation, vm to task",
        None
    ),
    message!(
        "one-way",
        256,
        "vm-task",
        "one way with donation, vm to task",
        None
    ),
    message!(
        "one-way",
        320,
        "vm-task",
        "one way with donation, vm to task",
        None
    ),
    message!(
        "two-way",
        64,
        "vm-task",
        "two way with donation, vm to task",
        Some(1800)
    ),
    message!(
        "two-way",
        128,
        "vm-task",
        "two way with donation, vm to task",
        None
    ),
    message!(
        "two-way",
        192,
        "vm-task",
        "two way with donation, vm to task",
        None
    ),
    message!(
        "two-way",
        256,
        "vm-task",
        "two way with donation, vm to task",
        None
    ),
    message!(
        "two-way",
        320,
        "vm-task",
        "two way with donation, vm to task",
        Some(2040)
    ),
    message!(
        "one-way",
        64,
        "task-vm",
        "one way with donation, task to vm",
        None
    ),
    message!(
        "one-way",
        128,
        "task-vm",
        "one way with donation, task to vm",
        None
    ),
    message!(
        "one-way",
        192,
        "task-vm",
        "one way with donation, task to vm",
        None
    ),
    message!(
        "one-way",
        256,
        "task-vm",
        "one way with donation, task to vm",
        None
    ),
    message!(
        "one-way",
        320,
        "task-vm",
        "one way with donation, task to vm",
        None
    ),
    message!(
        "two-way",
        64,
        "task-vm",
        "two way with donation, task to vm",
        Some(1800)
    ),
    message!(
        "two-way",
        128,
        "task-vm",
        "two way with donation, task to vm",
        None
    ),
    message!(
        "two-way",
        192,
        "task-vm",
        "two way with donation, task to vm",
        None
    ),
    message!(
        "two-way",
        256,
        "task-vm",
        "two way with donation, task to vm",
        None
    ),
    message!(
        "two-way",
        320,
        "task-vm",
        "two way with donation, task to vm",
        Some(2040)
    ),
    message!("one-way", 64, "vm-vm", "one way with donation, vm to vm", None),
    message!("one-way", 128, "vm-vm", "one way with donation, vm to vm", None),
    message!("one-way", 192, "vm-vm", "one way with donation, vm to vm", None),
    message!("one-way", 256, "vm-vm", "one way with donation, vm to vm", None),
    message!("one-way", 320, "vm-vm", "one way with donation, vm to vm", None),
    message!(
        "two-way",
        64,
        "vm-vm",
        "two way with donation, vm to vm",
        Some(2500)
    ),
    message!("two-way", 128, "vm-vm", "two way with donation, vm to vm", None),
    message!("two-way", 192, "vm-vm", "two way with donation, vm to vm", None),
    message!("two-way", 256, "vm-vm", "two way with donation, vm to vm", None),
    message!(
        "two-way",
        320,
        "vm-vm",
        "two way with donation, vm to vm",
        Some(2740)
    ),
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
    row(
        RESET,
        "reset to first guest instruction, without digests",
        Some(150_000),
    ),
];
