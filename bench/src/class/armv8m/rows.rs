// SPDX-License-Identifier: Apache-2.0
//! Everything that is measured on class `armv8m`, in the order of the table.

use crate::class::armv7m::measure::{OF_CPU, OF_FREERTOS, ROWS as ROWS_ON_ARMV7M};
use crate::rows::{Row, THREAD_METRIC, count, joined, message, mibench, plain, queued, row};
use std::ops::Range;

/// Makes the rows of messages of each size.
macro_rules! each_size {
    ($make:ident! $before:tt, $after:tt) => {
        [
            each_size!(@one $make! $before, 64, $after),
            each_size!(@one $make! $before, 128, $after),
            each_size!(@one $make! $before, 192, $after),
            each_size!(@one $make! $before, 256, $after),
            each_size!(@one $make! $before, 320, $after),
        ]
    };
    (@one $make:ident! ($($before:tt)*), $bytes:literal, ($($after:tt)*)) => {
        $make!($($before)* $bytes $($after)*)
    };
}

/// Makes the rows of calls with donation between partitions of two kinds.
macro_rules! calls {
    ($path:literal, $name:literal, $client:literal, $server:literal) => {
        &each_size!(message! ($path, concat!($name, " with donation"),), (, $client, $server, None))
    };
}

/// Operations that cost a VM of this class nothing more than on the bare board.
const fn native<const N: usize>(rows: &Range<usize>) -> [Row; N] {
    let mut native = [row("", "", Some(0)); N];
    let mut next = 0;
    while next < N {
        let on_armv7m = ROWS_ON_ARMV7M[rows.start + next];
        (native[next].key, native[next].title) = (on_armv7m.key, on_armv7m.title);
        next += 1;
    }
    native
}

/// The rows of switches, calls and interrupts.
const SHORT: &[Row] = &[
    row("turn-vm-vm", "switch at the end of a turn, vm to vm", Some(700)),
    row(
        "turn-task-task",
        "switch at the end of a turn, task to task",
        Some(200),
    ),
    row("turn-vm-task", "switch at the end of a turn, vm to task", None),
    row("turn-task-vm", "switch at the end of a turn, task to vm", None),
    row(
        "turn-worst-vm-vm",
        "switch at the end of a turn, vm to vm, worst of 20",
        None,
    ),
    row(
        "turn-worst-task-task",
        "switch at the end of a turn, task to task, worst of 20",
        None,
    ),
    row(
        "turn-worst-vm-task",
        "switch at the end of a turn, vm to task, worst of 20",
        None,
    ),
    row(
        "turn-worst-task-vm",
        "switch at the end of a turn, task to vm, worst of 20",
        None,
    ),
    row("null-call-vm", "null hypercall of a VM, by the gate", Some(120)),
    row(
        "null-call-instruction-vm",
        "null hypercall of a VM, by the instruction of class armv7m",
        Some(120),
    ),
    row("null-call-task", "null hypercall of a task", Some(120)),
    row(
        "interrupt-exits",
        "exits of 18 interrupts of a VM that runs",
        Some(0),
    ),
    row(
        "interrupt-busy",
        "interrupt of a VM that runs, to its handler",
        Some(0),
    ),
    row(
        "late-task-vm",
        "interrupt to the handler of a VM that waits, a task preempted",
        None,
    ),
    row(
        "late-vm-vm",
        "interrupt to the handler of a VM that waits, another VM preempted",
        None,
    ),
    row(
        "late-task-task",
        "interrupt to the next instruction of a task that waits, another task preempted",
        None,
    ),
    row(
        "late-vm-task",
        "interrupt to the next instruction of a task that waits, a VM preempted",
        None,
    ),
    row(
        "late-worst-task-vm",
        "interrupt to the handler of a VM that waits, a task preempted, worst of 32",
        None,
    ),
    row(
        "late-worst-vm-vm",
        "interrupt to the handler of a VM that waits, another VM preempted, worst of 32",
        None,
    ),
    row(
        "late-worst-task-task",
        "interrupt to the next instruction of a task that waits, another task preempted, worst of 32",
        None,
    ),
    row(
        "late-worst-vm-task",
        "interrupt to the next instruction of a task that waits, a VM preempted, worst of 32",
        None,
    ),
];

/// The rows of programs that have turns with a busy VM. The bars are the losses of uRTZVisor.
const IN_TURNS: &[Row] = &[
    row(
        "thread-metric-mean-20ms",
        "Thread-Metric, the same mean with a switch every 20 ms",
        Some(1000),
    ),
    row(
        "thread-metric-mean-10ms",
        "Thread-Metric, the same mean with a switch every 10 ms",
        Some(1800),
    ),
    row(
        "thread-metric-mean-5ms",
        "Thread-Metric, the same mean with a switch every 5 ms",
        Some(3600),
    ),
    row(
        "thread-metric-mean-1ms",
        "Thread-Metric, the same mean with a switch every 1 ms",
        Some(18000),
    ),
    mibench!("bitcount", 1),
    mibench!("susan-smoothing", 1),
    mibench!("susan-edges", 2),
    mibench!("susan-corners", 2),
    mibench!(mean "mean-alone", "mean of all programs, the bare board is 100 000"),
    row(
        "mibench-mean-20ms",
        "MiBench, the same mean with a switch every 20 ms",
        Some(1000),
    ),
    row(
        "mibench-mean-10ms",
        "MiBench, the same mean with a switch every 10 ms",
        Some(1800),
    ),
    row(
        "mibench-mean-5ms",
        "MiBench, the same mean with a switch every 5 ms",
        Some(3600),
    ),
    row(
        "mibench-mean-1ms",
        "MiBench, the same mean with a switch every 1 ms",
        Some(18000),
    ),
];

/// The parts of the table.
const PARTS: &[&[Row]] = &[
    &native::<{ OF_CPU.end - OF_CPU.start }>(&OF_CPU),
    &native::<{ OF_FREERTOS.end - OF_FREERTOS.start }>(&OF_FREERTOS),
    SHORT,
    &each_size!(queued! ("send", "send",), (, "task", None)),
    &each_size!(queued! ("receive", "receipt",), (, "task", None)),
    &each_size!(queued! ("send", "send",), (, "vm", None)),
    &each_size!(queued! ("receive", "receipt",), (, "vm", None)),
    calls!("one-way", "one way", "task", "task"),
    calls!("two-way", "two way", "task", "task"),
    calls!("one-way", "one way", "vm", "task"),
    calls!("two-way", "two way", "vm", "task"),
    calls!("one-way", "one way", "task", "vm"),
    calls!("two-way", "two way", "task", "vm"),
    calls!("one-way", "one way", "vm", "vm"),
    calls!("two-way", "two way", "vm", "vm"),
    &each_size!(plain! (call "task", "task",), ()),
    &each_size!(plain! (call "vm", "task",), ()),
    &each_size!(plain! (call "task", "vm",), ()),
    &each_size!(plain! (call "vm", "vm",), ()),
    &each_size!(plain! (waiting "task", "task",), ()),
    &each_size!(plain! (waiting "vm", "task",), ()),
    &each_size!(plain! (waiting "task", "vm",), ()),
    &each_size!(plain! (waiting "vm", "vm",), ()),
    THREAD_METRIC,
    IN_TURNS,
];

/// Everything.
pub(super) const ROWS: [Row; count(PARTS)] = joined(PARTS);
