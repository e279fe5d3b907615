// SPDX-License-Identifier: Apache-2.0
//! The time and the priority of those who wait for a server serve its start, too.

use crate::support::{self, Bench, Part, RAM, call, marking, port, tables, task, vm};
use bulkhead_abi::{ObjectKind, Operation, PartitionState, Rights};
use bulkhead_arch_api::PartitionId;
use bulkhead_arch_sim::{Action, Guest, Outcome};

const PORT: u64 = 1;
const CLOCK: u64 = 2;
const SERVER: u64 = 3;
const FROM: u64 = RAM + 0x100;
const TO: u64 = RAM + 0x200;

fn with_port(part: Part, rights: Rights) -> Part {
    part.cap(PORT as u32, ObjectKind::Port, 0, rights)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
}

fn sleep(until: u64) -> Action {
    support::sleep(CLOCK, until)
}

/// Returns a board with a server of priority 9, a client of 20, a busy task of 12, a supervisor of 25, and
/// another receiver that never runs, if there is to be one.
fn bench(change: impl FnOnce(&mut Part), is_vm: bool, has_other: bool) -> Bench {
    let client = if is_vm {
        vm("client", &[(0, 20)])
    } else {
        task("client", 0, 20)
    };
    let mut parts = vec![
        with_port(task("server", 0, 9), Rights::READ).with(|part| {
            part.memory = 0x10_0000;
            change(part);
        }),
        with_port(client, Rights::WRITE),
        task("busy", 0, 12),
        with_port(task("supervisor", 0, 25), Rights::WRITE).cap(
            SERVER as u32,
            ObjectKind::Partition,
            0,
            Rights::ALL,
        ),
    ];
    if has_other {
        parts.push(with_port(task("other", 0, 2), Rights::READ));
    }
    let mut image = tables(1, &parts);
    image.ports.push(port(64, 4));
    let bench = Bench::with_image(1, image.build().unwrap());
    bench.program(0, |_| server(20_000));
    bench.program(2, |_| busy());
    bench
}

/// Returns a server that computes for a while before its first receive.
fn server(work: u64) -> impl Guest {
    let (mut step, mut reply) = (0, 0);
    move |last: Outcome, _: u64| {
        step += 1;
        if let Outcome::Replied(bulkhead_arch_api::Reply::Hypercall(Ok([_, _, index, _]))) = last {
            reply = index;
        }
        if step == 1 {
            return Action::Compute(work);
        }
        let reply = std::mem::take(&mut reply);
        call(Operation::PortReceiveDonate, &[PORT, TO, 64, 8, reply, 0])
    }
}

/// Returns a guest that is busy from 90,000 on.
fn busy() -> impl Guest {
    let mut step = 0;
    move |_: Outcome, _: u64| {
        step += 1;
        match step {
            1 => Action::SetTimer(Some(90_000)),
            2 => Action::Idle,
            _ => Action::Compute(10_000),
        }
    }
}

fn request(until: u64) -> Action {
    call(Operation::PortSendReceiveDonate, &[PORT, FROM, 8, TO, 64, until])
}

/// Calls once when the server is ready, or not at all, then while it starts.
#[test]
fn a_server_that_restarts_is_loaded_and_runs_in_the_place_of_its_client() {
    for is_vm in [false, true] {
        for has_other in [false, true] {
            for (calls_at, restarts_at) in [(150_000, 149_900), (149_900, 150_000), (150_000, 130_000)] {
                let mut bench = bench(|_| {}, is_vm, has_other);
                bench.program(1, move |_| {
                    let again = request(900_000);
                    marking(vec![
                        sleep(85_000),
                        request(0),
                        sleep(calls_at),
                        again,
                        again,
                        again,
                    ])
                });
                bench.program(3, move |_| {
                    marking(vec![
                        sleep(restarts_at),
                        call(Operation::PartitionRestart, &[SERVER]),
                    ])
                });
                bench.run(1_000_000);
                let marks = bench.marks(1);
                let answered = [8, 0, 0, 0];
                assert!(
                    marks.ends_with(&[answered, answered].concat()),
                    "{is_vm} {has_other} {calls_at} {restarts_at}: {marks:?}"
                );
                // The busy one runs when the server has nothing to do for the client.
                assert_eq!(
                    bench.shared().partition(PartitionId(0)).state(),
                    PartitionState::Running
                );
            }
        }
    }
}

#[test]
fn a_server_that_starts_for_the_first_time_does_so_in_the_place_of_its_client() {
    let mut bench = bench(|part| part.autostart = false, false, false);
    bench.program(1, |_| marking(vec![sleep(100_000), request(900_000)]));
    bench.program(3, |_| {
        marking(vec![sleep(150_000), call(Operation::PartitionStart, &[SERVER])])
    });
    bench.run(1_000_000);
    assert_eq!(bench.marks(1), [0, 0, 0, 0, 8, 0, 0, 0]);
}

#[test]
fn a_server_that_computes_before_its_first_receive_does_so_in_the_place_of_its_client() {
    // The server is loaded, but the busy one comes before its computation has ended.
    let mut bench = bench(|part| part.memory = 0x4000, false, false);
    bench.program(0, |_| server(100_000));
    bench.program(1, |_| marking(vec![sleep(95_000), request(900_000)]));
    bench.run(1_000_000);
    assert_eq!(bench.marks(1), [0, 0, 0, 0, 8, 0, 0, 0]);
}
