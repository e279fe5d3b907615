// SPDX-License-Identifier: Apache-2.0
//! Clock, deadlines, signals.

use crate::{Bench, Ground, Outcome, Role, ensure};
use bulkhead_arch_api::{Clock, Cpus, Exit, Irqs, Ticks, Vcpus};

/// A deadline that is far enough for every class to get there, in seconds' parts.
const PART_OF_SECOND: u64 = 1000;
const READS: usize = 1000;

fn soon<B: Bench>(ground: &mut Ground<'_, B>) -> Ticks {
    let machine = ground.machine();
    machine.now().plus(Ticks(machine.hertz() / PART_OF_SECOND))
}

/// Waits for the deadline, through all other exits.
fn wait_for_deadline<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    for _ in 0..crate::PATIENCE {
        match ground.machine().wait() {
            Exit::Deadline => return Ok(()),
            Exit::Interrupt(line) => ground.machine().complete(line),
            _ => {}
        }
    }
    Err("the deadline never comes")
}

pub(crate) fn clock<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    let machine = ground.machine();
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

pub(crate) fn deadline<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    for _ in 0..3 {
        let deadline = soon(ground);
        ground.machine().arm(deadline);
        wait_for_deadline(ground)?;
        ensure(ground.machine().now() >= deadline, "the deadline came early")?;
    }
    ground.machine().disarm();
    Ok(())
}

pub(crate) fn past_and_disarmed<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    let now = ground.machine().now();
    ground.machine().arm(now);
    wait_for_deadline(ground)?;
    let late = ground.machine().now().since(now).0;
    ensure(
        late <= ground.machine().hertz() / PART_OF_SECOND,
        "a past deadline came late",
    )?;
    ground.machine().disarm();
    ensure(
        !matches!(ground.machine().poll(), Some(Exit::Deadline)),
        "a disarmed deadline came",
    )
}

pub(crate) fn deadline_ends_guest<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    ground.start(Role::Vm, &[])?;
    let deadline = soon(ground);
    ground.machine().arm(deadline);
    for _ in 0..crate::PATIENCE {
        match ground.machine().run(Role::Vm.vcpu()) {
            Exit::Deadline => {
                ground.machine().disarm();
                return ensure(ground.machine().now() >= deadline, "the deadline came early");
            }
            Exit::Interrupt(line) => ground.machine().complete(line),
            Exit::Signal | Exit::Wake(_) | Exit::Device(..) => {}
            _ => return Err("a busy guest exited by itself"),
        }
    }
    Err("the deadline never ends the guest")
}

pub(crate) fn signal<B: Bench>(ground: &mut Ground<'_, B>) -> Outcome {
    let own = ground.machine().current();
    ground.machine().signal(own);
    let mut arrived = 0;
    for _ in 0..crate::PATIENCE {
        match ground.machine().poll() {
            Some(Exit::Signal) => arrived += 1,
            Some(Exit::Interrupt(line)) => ground.machine().complete(line),
            Some(_) => {}
            None if arrived != 0 => break,
            None => {}
        }
    }
    ensure(arrived == 1, "a signal does not arrive exactly once")
}
