// SPDX-License-Identifier: Apache-2.0
//! The order in which vCPUs run, the events that wake them, and the events that must not disturb them.

use crate::support::{self, Bench, UART, UART_LINE, periodic, vm};
use bulkhead_arch_api::{CpuOnResult, CpuPower, Line, PcpuId, Reply, VcpuId};
use bulkhead_arch_sim::{Action, External, Outcome, What, script};

/// Returns a guest that wakes every `period` ticks by its own timer, marks its lateness, and switches off
/// after `releases` marks.
fn marking(period: u64, releases: u64) -> impl FnMut(Outcome, u64) -> Action {
    let mut count = 0;
    periodic(period, move |late| {
        count += 1;
        if count > releases {
            Action::CpuOff
        } else {
            Action::Mark(late)
        }
    })
}

#[test]
fn the_more_important_vcpu_preempts_by_its_own_timer() {
    let mut bench = Bench::new(1, &[vm("control", &[(0, 20)]), vm("busy", &[(0, 1)])]);
    bench.program(0, |_| marking(100_000, 20));
    bench.program(1, |_| |_, _| Action::Compute(1_000_000));
    bench.run(2_500_000);
    let late = bench.marks(0);
    assert_eq!(late.len(), 20);
    assert!(late.iter().all(|late| *late < 100), "{late:?}");
}

#[test]
fn equals_share_the_pcpu_by_quantum() {
    let mut bench = Bench::new(1, &[vm("a", &[(0, 3)]), vm("b", &[(0, 3)])]);
    for vcpu in 0..2 {
        bench.program(vcpu, |_| |_, _| Action::Compute(1_000_000));
    }
    bench.run(1_000_000);
    let switches = bench.records(|what| matches!(what, What::Switch(_)));
    let gaps: Vec<u64> = switches
        .windows(2)
        .skip(2)
        .map(|pair| pair[1].time - pair[0].time)
        .collect();
    assert!(gaps.len() > 50);
    assert!(gaps.iter().all(|gap| (10_000..10_100).contains(gap)), "{gaps:?}");
}

#[test]
fn alone_there_is_no_tick() {
    let mut bench = Bench::new(1, &[vm("alone", &[(0, 3)])]);
    bench.program(0, |_| |_, _| Action::Compute(1_000_000));
    bench.run(10_000_000);
    // The log's lines about the start leave in the first milliseconds.
    let start = bench.records(|what| matches!(what, What::Switch(_)))[0].time + 2_000_000;
    let armed = bench.records(|what| matches!(what, What::Arm(_)));
    assert!(armed.iter().all(|record| record.time <= start), "{armed:?}");
}

#[test]
fn an_interrupt_that_comes_just_before_idling_is_not_lost() {
    let mut bench = Bench::new(1, &[vm("vm", &[(0, 3)]), vm("other", &[(0, 1)])]);
    bench.program(0, |_| {
        let mut step = 0;
        move |last, now| {
            step += 1;
            match step {
                1 => Action::SetTimer(Some(now + 15)),
                2 => Action::Compute(5),
                3 => Action::Idle,
                4 => Action::Acknowledge,
                5 => Action::Mark(u64::from(last == Outcome::Interrupt(Some(27)))),
                _ => Action::Idle,
            }
        }
    });
    bench.run(1_000_000);
    assert_eq!(bench.marks(0), [1]);
}

#[test]
fn a_second_vcpu_is_switched_on_across_pcpus_and_off_again() {
    let mut bench = Bench::new(2, &[vm("smp", &[(0, 3), (1, 3)]), vm("other", &[(1, 1)])]);
    bench.program(0, |_| {
        let mut step = 0;
        move |last, _| {
            step += 1;
            match (step, last) {
                (1, _) => Action::CpuPower(1),
                (2, Outcome::Replied(Reply::CpuPower(CpuPower::Off))) => Action::CpuOn(1, 0x4000_1000, 42),
                (3, Outcome::Replied(Reply::CpuOn(CpuOnResult::Started))) => Action::Compute(50_000),
                (4, _) => Action::CpuOn(1, 0, 0),
                (5, Outcome::Replied(Reply::CpuOn(CpuOnResult::AlreadyOn))) => Action::Compute(100_000),
                (6, _) => Action::CpuPower(1),
                (7, Outcome::Replied(Reply::CpuPower(CpuPower::Off))) => Action::Mark(7),
                _ => Action::Idle,
            }
        }
    });
    bench.program(1, |reset| {
        script([
            Action::Mark(reset.entry.0),
            Action::Mark(reset.argument),
            Action::Compute(100_000),
            Action::CpuOff,
        ])
    });
    bench.run(1_000_000);
    assert_eq!(bench.marks(1), [0x4000_1000, 42]);
    assert_eq!(bench.marks(0), [7]);
    let on = bench.records(|what| *what == What::Switch(VcpuId(1)));
    assert!(on.iter().all(|record| record.pcpu == PcpuId(1)));
}

#[test]
fn siblings_wake_each_other_across_pcpus() {
    let mut bench = Bench::new(2, &[vm("smp", &[(0, 3), (1, 3)]), vm("other", &[(1, 1), (0, 1)])]);
    let ping = |peer: u8, starts: bool| {
        let mut step = u32::from(!starts);
        let mut rounds = 0;
        move |last: Outcome, _: u64| {
            step += 1;
            match step {
                1 => Action::CpuOn(peer, 0, 0),
                2 if starts => {
                    step = 10;
                    Action::Send(peer)
                }
                11 => Action::Idle,
                12 => Action::Acknowledge,
                13 if last == Outcome::Interrupt(Some(0)) => {
                    rounds += 1;
                    Action::Mark(rounds)
                }
                14 => {
                    step = 10;
                    Action::Send(peer)
                }
                _ => {
                    step = 11;
                    Action::Idle
                }
            }
        }
    };
    bench.program(0, move |_| ping(1, true));
    bench.program(1, move |_| ping(0, false));
    bench.run(1_000_000);
    let rounds = bench.marks(0).len();
    assert!(rounds > 500, "{rounds} rounds");
    assert!(bench.marks(1).len().abs_diff(rounds) <= 1);
}

#[test]
fn a_wake_of_a_less_important_vcpu_does_not_interrupt_a_critical_one() {
    // vCPU 1 of "linux" shares pCPU 1 with "control". vCPU 0 wakes vCPU 1 all the time.
    let mut bench = Bench::new(2, &[vm("linux", &[(0, 3), (1, 3)]), vm("control", &[(1, 20)])]);
    bench.program(0, |_| {
        let mut step = 0;
        move |_, _| {
            step += 1;
            match step {
                1 => Action::CpuOn(1, 0, 0),
                2 => Action::Compute(100_000),
                n if n % 2 == 0 => Action::Send(1),
                _ => Action::Compute(100),
            }
        }
    });
    bench.program(1, |_| script([]));
    // "control" is idle at first, so that vCPU 1 gets as far as waiting. Then "control" is busy for good.
    bench.program(2, |_| {
        let mut step = 0;
        move |_, now| {
            step += 1;
            match step {
                1 => Action::SetTimer(Some(now + 50_000)),
                2 => Action::Idle,
                3 => Action::Acknowledge,
                _ => Action::Compute(1_000_000),
            }
        }
    });
    bench.run(2_000_000);
    let signals = bench.records(|what| *what == What::Signal(PcpuId(1)));
    assert!(
        signals.iter().all(|signal| signal.time < 120_000),
        "{} signals",
        signals.len()
    );
    assert!(signals.len() < 10);
}

#[test]
fn a_physical_interrupt_of_an_idle_partition_wakes_it() {
    let mut image = support::tables(1, &[vm("driver", &[(0, 9)]), vm("busy", &[(0, 1)])]);
    image.interrupts.push(bulkhead_image::layout::InterruptRecord {
        partition: 0.into(),
        line: 77.into(),
        virtual_line: 50.into(),
        trigger: bulkhead_image::layout::TRIGGER_EDGE.into(),
        flags: 0.into(),
        latency: 0.into(),
    });
    let mut bench = Bench::with_image(1, image.build().unwrap());
    bench.program(0, |_| {
        let mut step = 0;
        move |last, now| {
            step += 1;
            match (step % 3, last) {
                (1, _) => Action::Idle,
                (2, _) => Action::Acknowledge,
                (_, Outcome::Interrupt(Some(50))) => Action::Mark(now),
                _ => Action::Compute(1),
            }
        }
    });
    bench.program(1, |_| |_, _| Action::Compute(1_000_000));
    for n in 1..=5 {
        bench.world().schedule(n * 100_000, External::Line(Line(77)));
    }
    bench.run(1_000_000);
    let times = bench.marks(0);
    assert_eq!(times.len(), 5);
    for (time, n) in times.iter().zip(1_u64..) {
        assert!((n * 100_000..n * 100_000 + 200).contains(time), "{times:?}");
    }
}

#[test]
fn a_loading_neighbour_delays_an_interrupt_by_no_more_than_a_chunk() {
    let big = vm("big", &[(0, 1)]).with(|part| part.memory = 4 << 20);
    let mut bench = Bench::new(1, &[vm("control", &[(0, 20)]), big]);
    bench.program(0, |_| marking(5_000, 30));
    bench.run(400_000);
    let late = bench.marks(0);
    assert_eq!(late.len(), 30);
    assert!(late.iter().all(|late| *late < 1_200), "{late:?}");
    let running = bench.records(|what| *what == What::Switch(VcpuId(1)));
    assert!(
        running.first().is_some_and(|record| record.time > 250_000),
        "it was loading all the time"
    );
}

#[test]
fn console_input_reaches_the_vm_as_an_interrupt() {
    let mut bench = Bench::new(1, &[vm("vm", &[(0, 5)]), vm("busy", &[(0, 1)])]);
    bench.program(0, |_| {
        let mut step = 0;
        move |last, _| {
            step += 1;
            match (step, last) {
                // UARTCR: on, transmitter and receiver on. UARTLCR_H: 8 bits, no FIFO. UARTIMSC: receive.
                (1, _) => Action::Write {
                    address: UART + 0x30,
                    size: 4,
                    value: 0x301,
                },
                (2, _) => Action::Write {
                    address: UART + 0x2c,
                    size: 4,
                    value: 0x60,
                },
                (3, _) => Action::Write {
                    address: UART + 0x38,
                    size: 4,
                    value: 0x10,
                },
                (4, _) => Action::Idle,
                (5, _) => Action::Acknowledge,
                (6, Outcome::Interrupt(Some(UART_LINE))) => Action::Read {
                    address: UART,
                    size: 4,
                },
                (7, Outcome::Replied(Reply::Read(value))) => Action::Mark(value),
                (8, _) => Action::Acknowledge,
                (9, Outcome::Interrupt(None)) => Action::Mark(9),
                _ => Action::Idle,
            }
        }
    });
    bench.program(1, |_| |_, _| Action::Compute(1_000_000));
    bench.world().schedule(200_000, External::Input(b'x'));
    bench.run(1_000_000);
    assert_eq!(bench.marks(0), [u64::from(b'x'), 9]);
}

#[test]
fn input_goes_to_the_console_that_is_selected() {
    let mut bench = Bench::new(
        1,
        &[
            vm("first", &[(0, 5)]),
            support::task("second", 0, 5).cap(
                1,
                bulkhead_abi::ObjectKind::Console,
                1,
                bulkhead_abi::Rights::READ,
            ),
        ],
    );
    bench.program(1, |_| {
        support::caller(vec![
            Action::Compute(200_000),
            support::call(bulkhead_abi::Operation::ConsoleRead, &[1]),
            support::call(bulkhead_abi::Operation::ConsoleRead, &[1]),
        ])
    });
    for (byte, n) in b"not this\x1esecond\x1fok".iter().zip(0..) {
        bench
            .world()
            .schedule(100_000 + n * 1_000, External::Input(*byte));
    }
    bench.run(1_000_000);
    assert_eq!(bench.marks(1), [2, 0]);
}
