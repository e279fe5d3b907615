// SPDX-License-Identifier: Apache-2.0
//! Windows that another partition answers: who is served when, what a server may reach, and what happens when
//! either side ends.

use crate::support::{self, Bench, Part, RAM, RAM as CLIENT, call, error_mark, marking, tables, task, vm};
use bulkhead_abi::{Error, HealthClass, ObjectKind, Operation, PartitionState, Rights};
use bulkhead_arch_api::{PartitionId, Reply, VcpuId};
use bulkhead_arch_sim::{Action, Guest, Outcome};
use bulkhead_image::layout::{HealthAction, SERVED_FAULTS, SERVED_VIRTIO, SERVED_WRITES, ServedRecord};
use bulkhead_image::{ImageBuilder, ImageError};
use std::cell::RefCell;
use std::rc::Rc;

const SERVICE: u64 = 1;
const GATE: u64 = 2;
const CLOCK: u64 = 3;
const CONTROL: u64 = 4;
/// The address of the window.
const WINDOW: u64 = 0x0a00_0000;
const LINE: u32 = 40;
const TIMEOUT: u64 = 200_000;
const WRITES: u32 = SERVED_WRITES;
/// The server's own memory for copies.
const BUFFER: u64 = RAM + 0x400;

/// Returns the server, which is partition 0.
fn server(pcpu: u32, priority: u32) -> Part {
    task("server", pcpu, priority)
        .cap(SERVICE as u32, ObjectKind::Service, 0, Rights(3))
        .cap(GATE as u32, ObjectKind::EventGate, 0, Rights::READ)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .cap(CONTROL as u32, ObjectKind::Partition, 1, Rights::CONTROL)
}

fn window(client: u32, flags: u32) -> ServedRecord {
    ServedRecord {
        client: client.into(),
        server: 0.into(),
        guest: WINDOW.into(),
        size: 0x1000.into(),
        grant: CLIENT.into(),
        grant_size: 0x2000.into(),
        timeout_ns: TIMEOUT.into(),
        virtual_line: LINE.into(),
        event: 5.into(),
        flags: flags.into(),
        reserved: 0.into(),
    }
}

/// Returns the tables of these partitions. Each but the first is a client with a window.
fn image(pcpus: u32, flags: u32, parts: &[Part]) -> ImageBuilder {
    let mut image = tables(pcpus, parts);
    for client in 1..parts.len() as u32 {
        image.served.push(window(client, flags));
    }
    image
}

fn bench(pcpus: u32, flags: u32, parts: &[Part]) -> Bench {
    Bench::with_image(pcpus, image(pcpus, flags, parts).build().unwrap())
}

fn load(offset: u64, size: u8) -> Action {
    Action::Read {
        address: WINDOW + offset,
        size,
    }
}

fn store(offset: u64, size: u8, value: u64) -> Action {
    Action::Write {
        address: WINDOW + offset,
        size,
        value,
    }
}

fn sleep(until: u64) -> Action {
    call(Operation::TimerSleep, &[CLOCK, until])
}

fn take() -> Action {
    call(Operation::ServiceTake, &[SERVICE])
}

fn news() -> Action {
    call(Operation::ServiceNews, &[SERVICE])
}

fn read(length: u64, there: u64) -> Action {
    call(Operation::ServiceRead, &[SERVICE, 0, there, length, BUFFER])
}

fn write(length: u64, there: u64) -> Action {
    call(Operation::ServiceWrite, &[SERVICE, 0, there, length, BUFFER])
}

fn answer(number: u64, value: u64) -> Action {
    call(Operation::ServiceAnswer, &[SERVICE, number, value])
}

/// Does the actions one after the other, and marks what is read from the window or from memory.
fn client(actions: Vec<Action>) -> impl Guest {
    let mut actions = actions.into_iter();
    move |last: Outcome, _: u64| match last {
        Outcome::Replied(Reply::Read(value)) | Outcome::Value(value) => Action::Mark(value),
        Outcome::Interrupt(line) => Action::Mark(line.map_or(0, u64::from)),
        Outcome::Faulted(_) => Action::Mark(0xFA),
        _ => actions.next().unwrap_or(Action::Idle),
    }
}

/// An access as the server gets it: window, bytes, store, offset, value.
type Seen = (u64, u64, bool, u64, u64);

/// Returns a server that waits for its event, takes each access, works for `work` ticks, and answers with the
/// offset plus 1. It writes down what it sees.
fn serving(work: u64, seen: Rc<RefCell<Vec<Seen>>>) -> impl Guest {
    let mut taken = None;
    let next = |operation: Operation, arguments: &[u64]| (operation, call(operation, arguments));
    let mut last_asked = Operation::Null;
    move |last: Outcome, _: u64| {
        let step = match (last_asked, last) {
            (Operation::Null, Outcome::Started(_)) => next(Operation::ServiceNews, &[SERVICE]),
            (
                Operation::ServiceTake,
                Outcome::Replied(Reply::Hypercall(Ok([number, shape, offset, value]))),
            ) => {
                let is_store = shape & 1 << 16 != 0;
                seen.borrow_mut()
                    .push((shape & 0xFF, shape >> 8 & 0xFF, is_store, offset, value));
                taken = Some((number, offset));
                (Operation::Null, Action::Compute(work))
            }
            (Operation::ServiceTake, _) => next(Operation::EventWait, &[GATE, 0]),
            _ => match taken.take() {
                Some((number, offset)) => next(Operation::ServiceAnswer, &[SERVICE, number, offset + 1]),
                None => next(Operation::ServiceTake, &[SERVICE]),
            },
        };
        last_asked = step.0;
        step.1
    }
}

#[test]
fn an_access_is_answered_by_the_server_wherever_it_runs() {
    for (pcpu, priority) in [(0, 20), (0, 4), (1, 10)] {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let mut bench = bench(2, WRITES, &[server(pcpu, priority), vm("client", &[(0, 10)])]);
        let out = Rc::clone(&seen);
        bench.program(0, move |_| serving(100, Rc::clone(&out)));
        bench.program(1, |_| {
            client(vec![
                load(8, 4),
                store(0x10, 2, 0xBEEF),
                load(0xFFC, 4),
                load(3, 1),
            ])
        });
        bench.run(1_000_000);
        assert_eq!(bench.marks(1), [9, 0xFFD, 4], "pCPU {pcpu}");
        let expected = [
            (0, 4, false, 8, 0),
            (0, 2, true, 0x10, 0xBEEF),
            (0, 4, false, 0xFFC, 0),
            (0, 1, false, 3, 0),
        ];
        assert_eq!(*seen.borrow(), expected, "pCPU {pcpu}");
    }
}

#[test]
fn the_most_important_client_waits_for_one_access_and_equals_take_turns() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let parts = [
        server(0, 20),
        vm("low", &[(1, 4)]),
        vm("high", &[(2, 9)]),
        vm("also-low", &[(3, 4)]),
    ];
    let mut bench = bench(4, WRITES, &parts);
    let out = Rc::clone(&seen);
    bench.program(0, move |_| serving(2_000, Rc::clone(&out)));
    bench.program(1, |_| client((0..20).map(|_| load(0, 4)).collect()));
    bench.program(3, |_| client((0..20).map(|_| load(0, 4)).collect()));
    bench.program(2, |_| {
        client(vec![Action::Compute(10_000), load(4, 4), load(4, 4), load(4, 4)])
    });
    bench.run(1_000_000);
    let order: Vec<u64> = seen.borrow().iter().map(|access| access.0).collect();
    assert_eq!(order.len(), 43);
    let first = order.iter().position(|window| *window == 1).unwrap();
    let highs: Vec<usize> = (0..order.len()).filter(|index| order[*index] == 1).collect();
    // It asks anew while the server works for another one: at most one access is between two of its own.
    assert!(highs.windows(2).all(|pair| pair[1] - pair[0] <= 2), "{order:?}");
    let lows = order[..first].to_vec();
    assert!(
        lows.len() >= 2 && lows.windows(2).all(|pair| pair[0] != pair[1]),
        "{order:?}"
    );
}

#[test]
fn an_access_without_an_answer_ends_in_time_and_is_a_health_event_of_the_server() {
    for (flags, expected) in [(0, 0xFFFF), (SERVED_FAULTS, 0xFA)] {
        let parts = [
            server(0, 20).action(HealthClass::Watchdog, HealthAction::Log),
            vm("client", &[(0, 10)]).action(HealthClass::Memory, HealthAction::Inject),
        ];
        let mut bench = bench(1, flags, &parts);
        bench.program(0, |_| {
            let mut started = false;
            let mut number = 0;
            move |last: Outcome, _: u64| {
                if let Outcome::Replied(Reply::Hypercall(Ok([first, ..]))) = last
                    && first != 0
                    && number == 0
                {
                    number = first;
                    return sleep(TIMEOUT + 100_000);
                }
                match last {
                    Outcome::Replied(Reply::Hypercall(Err(error))) => Action::Mark(error_mark(error)),
                    Outcome::Replied(_) if number != 0 => answer(number, 7),
                    Outcome::Done if number != 0 => Action::Idle,
                    _ if !started => {
                        started = true;
                        sleep(20_000)
                    }
                    _ => take(),
                }
            }
        });
        bench.program(1, |_| client(vec![load(0, 2), Action::Mark(1)]));
        bench.run(1_000_000);
        assert_eq!(bench.marks(1)[0], expected);
        assert_eq!(
            bench.marks(0),
            [error_mark(Error::WrongState)],
            "the answer comes too late"
        );
        let (at, _) = bench.look().marks(VcpuId(1)).next().unwrap();
        assert!((TIMEOUT..TIMEOUT + 20_000).contains(&at), "{at}");
        assert!(
            bench.logged("partition=server vcpu=0 class=watchdog unanswered=client"),
            "{:?}",
            bench.log()
        );
        assert_eq!(bench.logged("partition=client"), flags != 0);
        assert_eq!(bench.shared().partition(PartitionId(0)).status().events, 1);
    }
}

#[test]
fn a_client_waits_for_a_server_that_starts_anew() {
    // The server of the first life takes the access and faults. The server of the second life is asked again.
    let seen = Rc::new(RefCell::new(Vec::new()));
    let lives = Rc::new(RefCell::new(0));
    let parts = [
        server(0, 20).action(HealthClass::Hypercall, HealthAction::Restart),
        vm("client", &[(1, 10)]),
    ];
    let mut bench = bench(2, WRITES, &parts);
    let out = Rc::clone(&seen);
    bench.program(0, move |_| {
        *lives.borrow_mut() += 1;
        let is_first = *lives.borrow() == 1;
        let mut good = serving(10, Rc::clone(&out));
        let mut bad = [sleep(20_000), take(), Action::Hypercall(0xFFFF, [0; 6])].into_iter();
        move |last: Outcome, now: u64| {
            if is_first {
                return bad.next().unwrap_or(Action::Idle);
            }
            good.next(last, now)
        }
    });
    bench.program(1, |_| client(vec![load(0x20, 4)]));
    bench.run(1_000_000);
    assert_eq!(bench.marks(1), [0x21]);
    assert_eq!(seen.borrow().len(), 1);
    assert!(!bench.logged("class=watchdog"));
}

#[test]
fn notifications_and_interrupts_of_a_virtio_device_wait_for_nobody() {
    let parts = [
        server(0, 4).action(HealthClass::Hypercall, HealthAction::Log),
        vm("client", &[(0, 10)]),
    ];
    let mut bench = bench(1, WRITES | SERVED_VIRTIO, &parts);
    let interrupt = |add, remove| call(Operation::ServiceInterrupt, &[SERVICE, 0, add, remove]);
    bench.program(0, move |_| {
        marking(vec![
            news(),
            sleep(50_000),
            news(),
            news(),
            interrupt(3, 0),
            sleep(100_000),
            interrupt(0, 1),
            call(Operation::ServiceInterrupt, &[SERVICE, 1, 1, 0]),
        ])
    });
    bench.program(1, |_| {
        client(vec![
            Action::Compute(20_000),
            store(0x50, 4, 0),
            store(0x50, 4, 1),
            Action::Mark(1),
            Action::Idle,
            Action::Acknowledge,
            load(0x60, 4),
            store(0x64, 4, 1),
            load(0x60, 4),
            store(0x64, 4, 2),
            load(0x60, 4),
        ])
    });
    bench.run(1_000_000);
    // The client goes on at once, though the server is less important.
    let (at, _) = bench.look().marks(VcpuId(1)).next().unwrap();
    assert!(at < 30_000, "{at}");
    let marks = bench.marks(1);
    assert_eq!(marks, [1, u64::from(LINE), 3, 2, 0]);
    let marks = bench.marks(0);
    // The client has run first: two notifications are one.
    assert_eq!(marks[..4], [1, 1, 1, 0]);
    assert_eq!(marks[8..16], [0; 8]);
    let refused = error_mark(Error::InvalidArgument);
    assert_eq!(marks.last(), Some(&refused), "no window of this server");
}

#[test]
fn a_server_reaches_what_the_client_grants_and_nothing_else() {
    let mark = error_mark;
    for flags in [0, WRITES] {
        let parts = [
            server(0, 4).action(HealthClass::Hypercall, HealthAction::Log),
            vm("client", &[(0, 10)]),
        ];
        let mut bench = bench(1, flags, &parts);
        bench.program(0, |_| {
            marking(vec![
                sleep(50_000),
                read(8, CLIENT + 0x101),
                news(),
                read(8, CLIENT + 0x101),
                Action::Read {
                    address: BUFFER,
                    size: 8,
                },
                write(3, CLIENT + 0x1FFD),
                write(4, CLIENT + 0x1FFD),
                read(1, CLIENT - 1),
                read(8, u64::MAX - 3),
                read(0, 0),
                read(1025, CLIENT),
                call(Operation::ServiceRead, &[SERVICE, 0, CLIENT, 8, RAM + 0x3FFF]),
                call(Operation::ServiceRead, &[SERVICE, 9, CLIENT, 8, BUFFER]),
            ])
        });
        bench.program(1, |_| {
            client(vec![
                Action::Write {
                    address: CLIENT + 0x100,
                    size: 8,
                    value: 0x8877_6655_4433_2211,
                },
                Action::Compute(1000),
                Action::SetTimer(Some(300_000)),
                Action::Idle,
                Action::Acknowledge,
                Action::Read {
                    address: CLIENT + 0x1FF8,
                    size: 8,
                },
            ])
        });
        bench.run(1_000_000);
        let written = if flags == 0 { mark(Error::OutOfReach) } else { 0 };
        let mut expected = vec![0, 0, 0, 0, mark(Error::WrongState), 0, 1, 1, 0, 0, 0, 0, 0];
        expected.push(0x0088_7766_5544_3322);
        expected.extend(if flags == 0 { vec![written] } else { vec![0; 4] });
        expected.extend([mark(Error::OutOfReach); 3]);
        expected.extend([0; 4]);
        expected.extend([mark(Error::InvalidArgument); 3]);
        assert_eq!(bench.marks(0), expected);
        let kept = if flags == 0 { 0 } else { 0x4433_2200_0000_0000 };
        assert_eq!(bench.marks(1).last(), Some(&kept));
    }
}

#[test]
fn a_client_that_starts_anew_closes_its_window_and_drops_its_access() {
    let parts = [server(0, 4), vm("client", &[(1, 10)])];
    let mut bench = bench(2, WRITES, &parts);
    // The first access of vCPU 1.
    let number = 0x101;
    bench.program(0, move |_| {
        marking(vec![
            news(),
            sleep(50_000),
            take(),
            call(Operation::PartitionRestart, &[CONTROL, 0]),
            sleep(100_000),
            answer(number, 1),
            read(8, CLIENT),
            call(Operation::ServiceInterrupt, &[SERVICE, 0, 1, 0]),
            news(),
            read(8, CLIENT),
        ])
    });
    bench.program(1, |_| client(vec![Action::Compute(10_000), load(0, 4)]));
    bench.run(150_000);
    let stale = error_mark(Error::WrongState);
    let mut expected = vec![0, 1, 1, 0, 0, 0, 0, 0, number, 4 << 8, 0, 0];
    expected.extend([0; 8]);
    expected.extend([stale; 3]);
    expected.extend([0, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(bench.marks(0), expected);
    assert_eq!(
        bench.shared().partition(PartitionId(1)).state(),
        PartitionState::Running
    );
}

#[test]
fn a_window_that_cannot_be_is_refused() {
    let parts = [server(0, 4), vm("client", &[(0, 10)])];
    let refused = |change: fn(&mut ServedRecord)| {
        let mut image = image(1, WRITES, &parts);
        change(&mut image.served[0]);
        matches!(image.build(), Err(ImageError::Record { .. }))
    };
    assert!(!refused(|_| {}));
    assert!(refused(|record| record.client = 0.into()), "a task has no window");
    assert!(refused(|record| record.server = 1.into()), "nobody serves itself");
    assert!(refused(|record| record.server = 2.into()));
    assert!(refused(|record| record.guest = CLIENT.into()), "memory is there");
    assert!(
        refused(|record| record.guest = support::UART.into()),
        "a device is there"
    );
    assert!(refused(|record| record.guest = (WINDOW + 8).into()));
    assert!(refused(|record| record.size = 0.into()));
    assert!(refused(|record| record.grant = (CLIENT - 0x1000).into()));
    assert!(refused(|record| record.grant_size = 0x10_0000.into()));
    assert!(refused(|record| record.timeout_ns = 0.into()));
    assert!(refused(|record| record.virtual_line = support::UART_LINE.into()));
    assert!(refused(|record| record.virtual_line = 3.into()));
    assert!(refused(|record| record.event = 64.into()));
    assert!(refused(|record| record.flags = 8.into()));
    assert!(refused(|record| record.reserved = 1.into()));
}
