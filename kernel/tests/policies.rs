// SPDX-License-Identifier: Apache-2.0
//! Every policy under the kernel: windows, budgets, domains, changes of schedules, and events that must not
//! disturb them.

use crate::support::{self, Bench, call, caller, error_mark, tables, task, vm};
use bulkhead_abi::status::{PERIOD_START_EVENT, WINDOW_START_EVENT};
use bulkhead_abi::{Error, HealthClass, ObjectKind, Operation, Rights};
use bulkhead_arch_api::{Line, PartitionId, Reply, VcpuId, Vcpus, VirtualLine};
use bulkhead_arch_sim::{Action, External, Outcome, What};
use bulkhead_image::ImageBuilder;
use bulkhead_image::layout::{
    DomainRecord, FLAG_WINDOW_EVENTS, HealthAction, INTERRUPT_CRITICAL, InterruptRecord, Name,
    POLICY_ARINC653, POLICY_DOMAINS, POLICY_EDF, POLICY_PINNED, SERVER_CONSTANT_BANDWIDTH, SERVER_DEFERRABLE,
    SERVER_SPORADIC, ScheduleRecord, TRIGGER_EDGE, VIRTUAL_EVENT_GATE, VirtualDeviceRecord,
    WINDOW_PERIOD_START, WindowRecord,
};

/// Length of every frame, in ticks of the mock (nanoseconds).
const FRAME: u64 = 100_000;
/// The duration of a turn of the computing guests. It says how coarse the observations are.
const GRAIN: u64 = 500;
/// The time that the kernel's work at a border and one turn can add.
const SLACK: u64 = GRAIN + 200;

/// Computes without end, and marks each turn.
fn busy() -> impl FnMut(Outcome, u64) -> Action {
    let mut turn = 0;
    move |_, now| {
        turn += 1;
        if turn % 2 == 0 {
            Action::Mark(now)
        } else {
            Action::Compute(GRAIN)
        }
    }
}

/// Adds a schedule of pCPU `pcpu` with windows (partition, offset, duration).
fn schedule(image: &mut ImageBuilder, pcpu: u32, name: &str, windows: &[(u32, u64, u64)]) {
    image.pcpus[pcpu as usize].policy = POLICY_ARINC653.into();
    image.schedules.push(ScheduleRecord {
        name: Name::new(name).unwrap(),
        pcpu: pcpu.into(),
        first_window: (image.windows.len() as u32).into(),
        window_count: (windows.len() as u32).into(),
        reserved: 0.into(),
        frame_ns: FRAME.into(),
    });
    image
        .windows
        .extend(windows.iter().map(|(partition, offset, duration)| WindowRecord {
            partition: (*partition).into(),
            flags: WINDOW_PERIOD_START.into(),
            offset_ns: (*offset).into(),
            duration_ns: (*duration).into(),
        }));
}

fn domain(image: &mut ImageBuilder, pcpu: u32, name: &str, budget: u64) {
    image.pcpus[pcpu as usize].policy = POLICY_DOMAINS.into();
    image.domains.push(DomainRecord {
        name: Name::new(name).unwrap(),
        pcpu: pcpu.into(),
        reserved: 0.into(),
        budget_ns: budget.into(),
    });
}

fn server(image: &mut ImageBuilder, vcpu: usize, kind: u32, (budget, period): (u64, u64)) {
    let vcpu = &mut image.vcpus[vcpu];
    vcpu.server = kind.into();
    vcpu.budget_ns = budget.into();
    vcpu.period_ns = period.into();
    vcpu.deadline_ns = if kind == SERVER_CONSTANT_BANDWIDTH {
        period
    } else {
        0
    }
    .into();
}

fn bench(pcpus: u32, image: &ImageBuilder) -> Bench {
    Bench::with_image(pcpus, image.build().unwrap())
}

/// Returns the times at which the marks of a vCPU were made.
fn times(bench: &Bench, vcpu: u8) -> Vec<u64> {
    bench.look().marks(VcpuId(vcpu)).map(|(time, _)| time).collect()
}

/// Returns the number of a vCPU's marks in each whole stretch of `length` ticks after the first two.
fn counts(bench: &Bench, vcpu: u8, length: u64, until: u64) -> Vec<u64> {
    let mut counts = vec![0; (until / length) as usize];
    for time in times(bench, vcpu) {
        if let Some(count) = counts.get_mut((time / length) as usize) {
            *count += 1;
        }
    }
    counts.split_off(2)
}

/// Asserts that all marks after the first frame are within the window, or as late as a turn can be.
fn assert_inside(bench: &Bench, vcpu: u8, from: u64, (start, end): (u64, u64)) {
    let marks = times(bench, vcpu);
    assert!(marks.iter().any(|time| *time >= from), "vCPU {vcpu} never ran");
    for time in marks.iter().filter(|time| **time >= from) {
        let phase = time % FRAME;
        // A mark that is late in the last window of a frame is early in the next frame.
        let into = (phase + FRAME - start) % FRAME;
        assert!(
            into < end - start + SLACK,
            "vCPU {vcpu} ran at {phase} of its frame, its window is {start} to {end}"
        );
    }
}

#[test]
fn partitions_run_in_their_windows_and_nowhere_else() {
    let mut image = tables(1, &[vm("a", &[(0, 1)]), vm("b", &[(0, 31)])]);
    schedule(&mut image, 0, "normal", &[(0, 0, 30_000), (1, 40_000, 60_000)]);
    let mut bench = bench(1, &image);
    bench.program(0, |_| busy());
    bench.program(1, |_| busy());
    bench.run(20 * FRAME);
    assert_inside(&bench, 0, FRAME, (0, 30_000));
    assert_inside(&bench, 1, FRAME, (40_000, 100_000));
    // The VMs use all of each window.
    let (a, b) = (
        counts(&bench, 0, FRAME, 20 * FRAME),
        counts(&bench, 1, FRAME, 20 * FRAME),
    );
    assert!(a.iter().all(|count| *count >= 28_000 / GRAIN), "{a:?}");
    assert!(b.iter().all(|count| *count >= 56_000 / GRAIN), "{b:?}");
}

/// Returns two computing VMs on pCPU 0 with two schedules, and a task on pCPU 1 that changes the schedules.
fn two_schedules() -> ImageBuilder {
    let (read, control) = (Rights::READ, Rights::READ.union(Rights::CONTROL));
    let manager = task("manager", 1, 8)
        .cap(1, ObjectKind::Schedule, 0, control)
        .cap(2, ObjectKind::Timer, 0, read)
        .cap(3, ObjectKind::Schedule, 0, read);
    let mut image = tables(2, &[vm("a", &[(0, 1)]), vm("b", &[(0, 1)]), manager]);
    schedule(&mut image, 0, "normal", &[(0, 0, 20_000), (1, 20_000, 80_000)]);
    schedule(&mut image, 0, "service", &[(0, 50_000, 50_000)]);
    image
}

#[test]
fn a_schedule_changes_at_the_end_of_the_frame() {
    let mut bench = bench(2, &two_schedules());
    bench.program(0, |_| busy());
    bench.program(1, |_| busy());
    let asked = 5 * FRAME + 33_000;
    bench.program(2, move |_| {
        let mut step = 0;
        move |last, _| {
            if let Outcome::Replied(Reply::Hypercall(answer)) = last {
                // The mark is the first result of a time, or an error. For a status it holds both schedules
                // and the time.
                return match answer {
                    Ok([current, next, since, _]) => Action::Mark(current << 56 | next << 48 | since),
                    Err(error) => Action::Mark(error_mark(error)),
                };
            }
            step += 1;
            match step {
                1 => call(Operation::TimerSleep, &[2, asked]),
                2 => call(Operation::ScheduleChange, &[3, 1]),
                3 => call(Operation::ScheduleChange, &[1, 2]),
                4 => call(Operation::ScheduleChange, &[1, 1]),
                5 => call(Operation::ScheduleStatus, &[1]),
                6 => call(Operation::TimerSleep, &[2, 6 * FRAME + 10_000]),
                7 => call(Operation::ScheduleStatus, &[3]),
                _ => Action::CpuOff,
            }
        }
    });
    bench.run(20 * FRAME);
    let wanted = [
        0,
        error_mark(Error::NoRight),
        error_mark(Error::InvalidArgument),
        0,
        1 << 48,
        0,
        (1 << 56) | (1 << 48) | (6 * FRAME),
    ];
    assert_eq!(bench.marks(2), wanted);
    let late = |vcpu| {
        times(&bench, vcpu)
            .into_iter()
            .filter(|time| *time > 6 * FRAME + SLACK)
    };
    assert_eq!(late(1).count(), 0, "b has no window in the other schedule");
    assert!(late(0).all(|time| time % FRAME >= 50_000 || time % FRAME < SLACK));
    // Until the end of the frame in which the change was asked for, b has its window.
    let before = times(&bench, 1)
        .into_iter()
        .filter(|time| (asked..6 * FRAME).contains(time));
    assert!(before.count() as u64 >= 64_000 / GRAIN);
}

#[test]
fn a_task_hears_of_its_windows() {
    let gate = Rights::READ;
    let sampler = task("sampler", 0, 1).cap(1, ObjectKind::EventGate, 1, gate);
    let mut image = tables(1, &[vm("a", &[(0, 1)]), sampler]);
    image.partitions[1].flags = (image.partitions[1].flags.get() | FLAG_WINDOW_EVENTS).into();
    schedule(
        &mut image,
        0,
        "normal",
        &[(1, 0, 10_000), (0, 10_000, 50_000), (1, 60_000, 40_000)],
    );
    // The second window of the sampler starts no period.
    image.windows[2].flags = 0.into();
    let mut bench = bench(1, &image);
    bench.program(0, |_| busy());
    bench.program(1, |_| {
        move |last: Outcome, _: u64| match last {
            Outcome::Replied(Reply::Hypercall(Ok([events, ..]))) => Action::Mark(events),
            _ => call(Operation::EventWait, &[1, 0]),
        }
    });
    bench.run(10 * FRAME);
    let marks: Vec<_> = bench
        .look()
        .marks(VcpuId(1))
        .filter(|(time, _)| *time >= 2 * FRAME)
        .collect();
    assert_eq!(marks.len(), 16, "{marks:?}");
    for (time, events) in marks {
        let (start, expected) = if time % FRAME < 60_000 {
            (0, WINDOW_START_EVENT | PERIOD_START_EVENT)
        } else {
            (60_000, WINDOW_START_EVENT)
        };
        assert_eq!(events, expected, "at {time}");
        assert!((start..start + SLACK).contains(&(time % FRAME)), "at {time}");
    }
}

/// The line of the event gate of every VM that has one here.
const GATE_LINE: u32 = 47;

fn gate_interrupt(image: &mut ImageBuilder, partition: u32) {
    image.virtual_devices.push(VirtualDeviceRecord {
        partition: partition.into(),
        kind: VIRTUAL_EVENT_GATE.into(),
        base: [0.into(), 0.into()],
        size: [0.into(), 0.into()],
        virtual_line: GATE_LINE.into(),
        reserved: 0.into(),
    });
}

/// Returns a VM that sleeps, and takes its events when its gate interrupts it. The VM makes a mark for each
/// interrupt: the events, or 0 if there were none.
fn by_interrupt() -> impl FnMut(Outcome, u64) -> Action {
    |last: Outcome, _: u64| match last {
        Outcome::Interrupt(Some(GATE_LINE)) => call(Operation::EventPoll, &[1]),
        Outcome::Interrupt(_) => Action::Idle,
        Outcome::Replied(Reply::Hypercall(Ok([events, ..]))) => Action::Mark(events),
        _ => Action::Acknowledge,
    }
}

#[test]
fn a_vm_hears_of_its_windows_by_interrupt() {
    let sampler = vm("sampler", &[(0, 1)]).cap(1, ObjectKind::EventGate, 1, Rights::READ);
    let mut image = tables(1, &[vm("a", &[(0, 1)]), sampler]);
    image.partitions[1].flags = (image.partitions[1].flags.get() | FLAG_WINDOW_EVENTS).into();
    schedule(
        &mut image,
        0,
        "normal",
        &[(1, 0, 10_000), (0, 10_000, 50_000), (1, 60_000, 40_000)],
    );
    image.windows[2].flags = 0.into();
    gate_interrupt(&mut image, 1);
    let mut bench = bench(1, &image);
    bench.program(0, |_| busy());
    bench.program(1, |_| by_interrupt());
    bench.run(10 * FRAME);
    let marks: Vec<_> = bench.look().marks(VcpuId(1)).collect();
    let marks: Vec<_> = marks.into_iter().filter(|(time, _)| *time >= 2 * FRAME).collect();
    assert_eq!(marks.len(), 16, "{marks:?}");
    for (time, events) in marks {
        let (start, expected) = if time % FRAME < 60_000 {
            (0, WINDOW_START_EVENT | PERIOD_START_EVENT)
        } else {
            (60_000, WINDOW_START_EVENT)
        };
        assert_eq!(events, expected, "at {time}");
        assert!((start..start + SLACK).contains(&(time % FRAME)), "at {time}");
    }
}

#[test]
fn events_of_another_pcpu_reach_a_vm_by_interrupt_and_none_is_lost() {
    let parts = [
        vm("sleeper", &[(0, 1)]).cap(1, ObjectKind::EventGate, 0, Rights::READ),
        task("raiser", 1, 1).cap(1, ObjectKind::EventGate, 0, Rights::WRITE),
    ];
    let mut image = tables(2, &parts);
    gate_interrupt(&mut image, 0);
    let mut bench = bench(2, &image);
    bench.program(0, |_| by_interrupt());
    // Two signals follow each other without a pause between them.
    bench.program(1, |_| {
        let mut step = 0_u64;
        move |_: Outcome, _: u64| {
            step += 1;
            match step % 3 {
                0 => Action::Compute(1 + step * 37 % 900),
                _ => call(Operation::EventSignal, &[1, 1 << 40 | step << 8]),
            }
        }
    });
    bench.run(10 * FRAME);
    let marks = bench.marks(0);
    assert!(marks.len() > 100, "{}", marks.len());
    assert!(marks.iter().all(|events| *events != 0));
    // `seen` has the bits of all signals up to the last one that was taken.
    let seen = marks.iter().fold(0, |seen, events| seen | events);
    assert_eq!(seen >> 8 & 0x7F, 0x7F);
}

#[test]
fn a_level_that_stayed_behind_ends_with_the_next_wait() {
    let waiter = vm("waiter", &[(0, 1)]).cap(1, ObjectKind::EventGate, 0, Rights::READ);
    let mut image = tables(1, &[waiter]);
    gate_interrupt(&mut image, 0);
    let mut bench = bench(1, &image);
    // The VM never takes the interrupt.
    bench.program(0, |_| {
        caller(vec![
            Action::Compute(20_000),
            call(Operation::EventWait, &[1, 50_000]),
            call(Operation::EventWait, &[1, 90_000]),
        ])
    });
    bench.run(10_000);
    // Another pCPU raised the level after the events had been taken.
    let _due = bench.machine(0).inject(PartitionId(0), VirtualLine(GATE_LINE));
    bench.run(70_000);
    let _due = bench.machine(0).inject(PartitionId(0), VirtualLine(GATE_LINE));
    bench.run(100_000);
    let late = error_mark(Error::TimedOut);
    assert_eq!(bench.marks(0), [late, late]);
    let lowered = |what: &What| matches!(what, What::Withdraw(..));
    let times = bench.records(lowered).into_iter().map(|record| record.time);
    assert!(times.clone().any(|time| (21_000..22_000).contains(&time)));
    assert!(times.clone().any(|time| (90_000..91_000).contains(&time)));
}

#[test]
fn a_budget_bounds_the_more_important_and_leaves_the_rest() {
    for kind in [SERVER_SPORADIC, SERVER_DEFERRABLE] {
        let mut image = tables(1, &[vm("greedy", &[(0, 20)]), vm("rest", &[(0, 4)])]);
        server(&mut image, 0, kind, (30_000, 100_000));
        let mut bench = bench(1, &image);
        bench.program(0, |_| busy());
        bench.program(1, |_| busy());
        bench.run(40 * FRAME);
        let greedy = counts(&bench, 0, FRAME, 40 * FRAME);
        let rest = counts(&bench, 1, FRAME, 40 * FRAME);
        let most = 30_000_u64.div_ceil(GRAIN) + 2;
        assert!(
            greedy.iter().all(|count| (27_000 / GRAIN..=most).contains(count)),
            "{greedy:?}"
        );
        assert!(rest.iter().all(|count| *count >= 64_000 / GRAIN), "{rest:?}");
    }
}

#[test]
fn under_edf_each_has_its_share() {
    let mut image = tables(
        1,
        &[
            vm("a", &[(0, 0)]),
            vm("b", &[(0, 0)]),
            vm("background", &[(0, 0)]),
        ],
    );
    image.pcpus[0].policy = POLICY_EDF.into();
    server(&mut image, 0, SERVER_CONSTANT_BANDWIDTH, (20_000, 50_000));
    server(&mut image, 1, SERVER_CONSTANT_BANDWIDTH, (30_000, 100_000));
    let mut bench = bench(1, &image);
    for vcpu in 0..3 {
        bench.program(vcpu, |_| busy());
    }
    bench.run(40 * FRAME);
    for (vcpu, share) in [(0, 40_000), (1, 30_000), (2, 30_000)] {
        let counts = counts(&bench, vcpu, 2 * FRAME, 40 * FRAME);
        let least = 2 * share * 85 / 100 / GRAIN;
        let most = 2 * share * 115 / 100 / GRAIN;
        // A budget can come early in one stretch and late in the next.
        let spill = 30_000 / GRAIN;
        assert!(
            counts
                .iter()
                .all(|count| (least - spill..=most + spill).contains(count)),
            "vCPU {vcpu}: {counts:?}"
        );
        let mean = counts.iter().sum::<u64>() / counts.len() as u64;
        assert!((least..=most).contains(&mean), "vCPU {vcpu}: mean {mean}");
    }
}

/// Wakes every 50 us, marks its lateness, and computes for a turn.
fn control() -> impl FnMut(Outcome, u64) -> Action {
    let mut step = 0;
    let mut due = 100_000;
    move |_, now| {
        step += 1;
        match step % 5 {
            1 => {
                due += 50_000;
                Action::SetTimer(Some(due))
            }
            2 => Action::Idle,
            3 => Action::Acknowledge,
            4 => Action::Mark(now.saturating_sub(due)),
            _ => Action::Compute(GRAIN),
        }
    }
}

#[test]
fn domain_0_preempts_the_others() {
    let parts = [
        vm("control", &[(0, 20)]),
        vm("comfort", &[(0, 4)]),
        vm("media", &[(0, 4)]),
    ];
    let mut image = tables(1, &parts);
    domain(&mut image, 0, "control", 20_000);
    domain(&mut image, 0, "comfort", 30_000);
    domain(&mut image, 0, "media", 60_000);
    for (vcpu, domain) in image.vcpus.iter_mut().zip(0_u32..) {
        vcpu.domain = domain.into();
    }
    let mut bench = bench(1, &image);
    bench.program(0, |_| control());
    bench.program(1, |_| busy());
    bench.program(2, |_| busy());
    bench.run(40 * FRAME);
    let late = bench.marks(0);
    assert!(late.len() > 70);
    assert!(late.iter().all(|late| *late < SLACK), "{late:?}");
    let share = |vcpu| times(&bench, vcpu).len() as u64;
    // The budgets are 30 and 60 us: one VM has half of the other's turns.
    assert!((share(2) * 45..share(2) * 55).contains(&(share(1) * 100)));
}

/// Returns the lateness of a driver in the second domain. Its interrupts come while the third domain has its
/// turn, whose vCPU is more important.
fn lateness(critical: bool) -> Vec<u64> {
    let parts = [
        vm("control", &[(0, 4)]),
        vm("driver", &[(0, 20)]),
        vm("busy", &[(0, 25)]),
    ];
    let mut image = tables(1, &parts);
    for (name, budget) in [("control", 20_000), ("driver", 20_000), ("busy", 60_000)] {
        domain(&mut image, 0, name, budget);
    }
    for (vcpu, domain) in image.vcpus.iter_mut().zip(0_u32..) {
        vcpu.domain = domain.into();
    }
    image.interrupts.push(InterruptRecord {
        partition: 1.into(),
        line: 77.into(),
        virtual_line: 50.into(),
        trigger: TRIGGER_EDGE.into(),
        flags: if critical { INTERRUPT_CRITICAL } else { 0 }.into(),
        latency: 0.into(),
    });
    let mut bench = bench(1, &image);
    // The first domain must have some of its budget left for others.
    bench.program(0, |_| |_, _| Action::Idle);
    bench.program(1, |_| {
        let mut step = 0;
        move |last: Outcome, now: u64| match last {
            Outcome::Interrupt(Some(50)) => Action::Mark(now),
            Outcome::Interrupt(_) => Action::Idle,
            _ => {
                step += 1;
                if step % 2 == 1 {
                    Action::Idle
                } else {
                    Action::Acknowledge
                }
            }
        }
    });
    bench.program(2, |_| busy());
    let due: Vec<u64> = (5..29).map(|number| number * 137_000).collect();
    for time in &due {
        bench.world().schedule(*time, External::Line(Line(77)));
    }
    bench.run(40 * FRAME);
    let marks = bench.marks(1);
    assert_eq!(marks.len(), due.len());
    marks.iter().zip(&due).map(|(mark, due)| mark - due).collect()
}

#[test]
fn a_critical_interrupt_is_handled_in_whoevers_turn_it_comes() {
    let ordinary = lateness(false);
    assert!(ordinary.iter().any(|late| *late > 20_000), "{ordinary:?}");
    let critical = lateness(true);
    assert!(critical.iter().all(|late| *late < SLACK), "{critical:?}");
}

#[test]
fn policies_work_side_by_side() {
    let parts = [
        vm("window", &[(0, 1)]),
        vm("edf", &[(1, 1)]),
        vm("domain", &[(2, 1)]),
        vm("pinned", &[(3, 1)]),
        vm("everywhere", &[(0, 1), (1, 1), (2, 1)]),
    ];
    let mut image = tables(4, &parts);
    schedule(&mut image, 0, "normal", &[(0, 0, 50_000), (4, 50_000, 50_000)]);
    image.pcpus[1].policy = POLICY_EDF.into();
    server(&mut image, 1, SERVER_CONSTANT_BANDWIDTH, (10_000, 100_000));
    domain(&mut image, 2, "first", 10_000);
    domain(&mut image, 2, "second", 10_000);
    image.vcpus[2].domain = 0.into();
    image.vcpus[6].domain = 1.into();
    image.pcpus[3].policy = POLICY_PINNED.into();
    let mut bench = bench(4, &image);
    for vcpu in [0, 1, 2, 3, 5, 6] {
        bench.program(vcpu, |_| busy());
    }
    bench.program(4, |_| {
        let mut step = 0_u8;
        let mut compute = busy();
        move |last, now| {
            step = step.saturating_add(1);
            match step {
                1 | 2 => Action::CpuOn(step, support::RAM, 0),
                _ => compute(last, now),
            }
        }
    });
    bench.run(20 * FRAME);
    assert_inside(&bench, 0, FRAME, (0, 50_000));
    assert_inside(&bench, 4, FRAME, (50_000, 100_000));
    let edf = counts(&bench, 1, FRAME, 20 * FRAME);
    assert!(edf.iter().all(|count| *count <= 10_000 / GRAIN + 2), "{edf:?}");
    let (first, second) = (times(&bench, 2).len(), times(&bench, 6).len());
    assert!(first.abs_diff(second) < first / 10, "{first} and {second} turns");
    let alone = counts(&bench, 3, FRAME, 20 * FRAME);
    assert!(alone.iter().all(|count| *count >= 97_000 / GRAIN), "{alone:?}");
}

#[test]
fn a_partition_is_restarted_in_its_own_windows() {
    let run = |restarts: bool| {
        let supervisor = task("supervisor", 1, 8)
            .cap(1, ObjectKind::Partition, 0, Rights::READ.union(Rights::CONTROL))
            .cap(2, ObjectKind::Timer, 0, Rights::READ);
        let large = vm("large", &[(0, 1)]).with(|part| part.memory = 0x40_0000);
        let mut image = tables(2, &[large, vm("b", &[(0, 1)]), supervisor]);
        schedule(&mut image, 0, "normal", &[(0, 0, 50_000), (1, 50_000, 50_000)]);
        let mut bench = bench(2, &image);
        bench.program(0, |_| busy());
        bench.program(1, |_| busy());
        bench.program(2, move |_| {
            let mut step = 0;
            move |_: Outcome, now: u64| {
                step += 1;
                match step % 3 {
                    1 => call(Operation::TimerSleep, &[2, now + 3 * FRAME + 77_000]),
                    2 if restarts => call(Operation::PartitionRestart, &[1]),
                    _ => Action::Compute(GRAIN),
                }
            }
        });
        bench.run(60 * FRAME);
        (counts(&bench, 1, FRAME, 60 * FRAME), times(&bench, 0))
    };
    let (calm, _) = run(false);
    let (disturbed, large) = run(true);
    for (calm, disturbed) in calm.iter().zip(&disturbed) {
        assert!(
            calm.abs_diff(*disturbed) <= 3,
            "{calm} turns alone, {disturbed} beside restarts"
        );
    }
    assert!(large.iter().all(|time| time % FRAME < 50_000 + SLACK));
}

#[test]
fn a_watchdog_bites_outside_the_windows_too() {
    let silent = vm("silent", &[(0, 1)])
        .with(|part| part.watchdog_ns = 10 * FRAME)
        .action(HealthClass::Watchdog, HealthAction::Restart);
    let mut image = tables(1, &[silent, vm("b", &[(0, 1)])]);
    schedule(&mut image, 0, "normal", &[(0, 0, 20_000), (1, 20_000, 80_000)]);
    let mut bench = bench(1, &image);
    bench.program(0, |reset| {
        let entry = reset.entry.0;
        let mut told = false;
        move |_: Outcome, _: u64| {
            if told {
                return Action::Idle;
            }
            told = true;
            Action::Mark(entry)
        }
    });
    bench.program(1, |_| busy());
    bench.run(100 * FRAME);
    // The partition starts anew in its own window each time, about every ten frames.
    let starts = times(&bench, 0);
    assert!((8..=10).contains(&starts.len()), "{starts:?}");
    assert!(
        starts.iter().all(|time| time % FRAME < 20_000 + SLACK),
        "{starts:?}"
    );
    assert_inside(&bench, 1, FRAME, (20_000, 100_000));
}
