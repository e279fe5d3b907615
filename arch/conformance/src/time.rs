// SPDX-License-Identifier: Apache-2.0
//! Clock, deadlines, signals.

use crate::{Bench, Outcome, Place, ensure, start};
use bulkhead_arch_api::{Clock, Cpus, Exit, PartitionKind, Ticks, Vcpus};

/// A deadline that is far enough for every class to get there, in seconds' parts.
const PART_OF_SECOND: u64 = 1000;
const READS: usize = 1000;

fn soon<B: Bench>(bench: &mut B) -> Ticks {
    let machine = bench.machine();
    machine.now().plus(Ticks(machine.hertz() / PART_OF_SECOND))
}

/// Waits for the deadline, whatever else comes.
fn wait_for_deadline<B: Bench>(bench: &mut B) -> Outcome {
    for _ in 0..crate::PATIENCE {
        match bench.machine().wait() {
            Exit::Deadline => return Ok(()),
            Exit::Interrupt(line) => bulkhead_arch_api::Irqs::complete(bench.machine(), line),
            _ => {}
        }
    }
    Err("the deadline never comes")
}

pub(crate) fn clock<B: Bench>(bench: &mut B, _: Place) -> Outcome {
    let machine = bench.machine();
    let hertz = machine.hertz();
    ensure(hertz != 0, "no frequency")?;
    let mut last = machine.now();
    for _ in 0..READS {
        let now = machine.now();
        ensure(now >= last, "the clock went back")?;
        last = now;
    }
    ensure(machine.hertz() == hertz, "the frequency changed")
}

pub(crate) fn deadline<B: Bench>(bench: &mut B, _: Place) -> Outcome {
    for _ in 0..3 {
        let deadline = soon(bench);
        bench.machine().arm(deadline);
        wait_for_deadline(bench)?;
        ensure(bench.machine().now() >= deadline, "the deadline came early")?;
    }
    bench.machine().disarm();
    Ok(())
}

pub(crate) fn past_and_disarmed<B: Bench>(bench: &mut B, _: Place) -> Outcome {
    let now = bench.machine().now();
    bench.machine().arm(now);
    wait_for_deadline(bench)?;
    let late = bench.machine().now().since(now).0;
    ensure(
        late <= bench.machine().hertz() / PART_OF_SECOND,
        "a past deadline came late",
    )?;
    bench.machine().disarm();
    ensure(
        !matches!(bench.machine().poll(), Some(Exit::Deadline)),
        "a disarmed deadline came",
    )
}

pub(crate) fn deadline_ends_guest<B: Bench>(bench: &mut B, place: Place) -> Outcome {
    start(bench, place, PartitionKind::Vm, &[])?;
    let deadline = soon(bench);
    bench.machine().arm(deadline);
    for _ in 0..crate::PATIENCE {
        match bench.machine().run(place.vcpu) {
            Exit::Deadline => {
                bench.machine().disarm();
                return ensure(bench.machine().now() >= deadline, "the deadline came early");
            }
            Exit::Interrupt(line) => bulkhead_arch_api::Irqs::complete(bench.machine(), line),
            Exit::Signal | Exit::Wake(_) | Exit::Device(..) => {}
            _ => return Err("a busy guest exited by itself"),
        }
    }
    Err("the deadline never ends the guest")
}

pub(crate) fn signal<B: Bench>(bench: &mut B, _: Place) -> Outcome {
    let own = bench.machine().current();
    bench.machine().signal(own);
    let mut arrived = 0;
    for _ in 0..crate::PATIENCE {
        match bench.machine().poll() {
            Some(Exit::Signal) => arrived += 1,
            Some(Exit::Interrupt(line)) => bulkhead_arch_api::Irqs::complete(bench.machine(), line),
            Some(_) => {}
            None if arrived != 0 => break,
            None => {}
        }
    }
    ensure(arrived == 1, "a signal does not arrive exactly once")
}
