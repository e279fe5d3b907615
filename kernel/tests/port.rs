// SPDX-License-Identifier: Apache-2.0
//! Messages through ports, calls and their replies, loans of places, capabilities on their way.

use crate::support::{
    self, Bench, NOWHERE, Part, RAM, call, error_mark, load, marking, reply_to, store, tables, task, vm,
};
use bulkhead_abi::hypercall::{CAPABILITY_SLOTS, SEND_REPLACES};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_api::{Reply, VcpuId};
use bulkhead_arch_sim::{Action, Guest, Outcome, What};
use bulkhead_image::ImageBuilder;
use bulkhead_image::layout::{MEMORY_CLEAR, MEMORY_READ, MemoryRecord, Name, PORT_IDENTIFIES, PortRecord};

const PORT: u64 = 1;
const CLOCK: u64 = 2;
const OTHER: u64 = 3;
/// Where messages are sent from, and where they are received.
const FROM: u64 = RAM + 0x100;
const TO: u64 = RAM + 0x200;
const READ_WRITE: Rights = Rights(3);

fn add_port(image: &mut ImageBuilder, name: &str, size: u32, depth: u32, flags: u32) {
    image.ports.push(PortRecord {
        name: Name::new(name).unwrap(),
        message_size: size.into(),
        depth: depth.into(),
        flags: flags.into(),
        reserved: 0.into(),
    });
}

/// Returns a board with these partitions, a port for messages of 64 bytes, of which `depth` can wait, and
/// another one that identifies senders.
fn bench(pcpus: u32, depth: u32, parts: &[Part]) -> Bench {
    let mut image = tables(pcpus, parts);
    add_port(&mut image, "first", 64, depth, 0);
    add_port(&mut image, "second", 64, depth, PORT_IDENTIFIES);
    Bench::with_image(pcpus, image.build().unwrap())
}

fn with_port(part: Part, rights: Rights) -> Part {
    part.cap(PORT as u32, ObjectKind::Port, 0, rights)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
        .cap(OTHER as u32, ObjectKind::Port, 1, rights)
}

fn sleep(until: u64) -> Action {
    support::sleep(CLOCK, until)
}

fn send(length: u64) -> Action {
    call(Operation::PortSend, &[PORT, FROM, length])
}

fn receive(until: u64) -> Action {
    call(Operation::PortReceive, &[PORT, TO, 64, until])
}

fn try_receive() -> Action {
    call(Operation::PortTryReceive, &[PORT, TO, 64])
}

fn request(operation: Operation, until: u64) -> Action {
    call(operation, &[PORT, FROM, 8, TO, 64, until])
}

fn mark(error: Error) -> u64 {
    error_mark(error)
}

#[test]
fn a_message_goes_straight_to_a_receiver_that_waits_or_waits_in_the_port() {
    for pcpu in [0, 1] {
        let sender = with_port(task("sender", 0, 10), Rights::WRITE);
        let receiver = with_port(vm("receiver", &[(pcpu, 20)]), Rights::READ);
        let mut bench = bench(2, 2, &[sender, receiver]);
        bench.program(0, |_| {
            marking(vec![
                store(FROM, 0x1111),
                store(FROM + 8, 0x2222),
                sleep(50_000),
                send(16),
                store(FROM, 0x3333),
                sleep(60_000),
                send(8),
                send(0),
                send(8),
            ])
        });
        bench.program(1, |_| {
            marking(vec![
                store(TO + 8, 7),
                receive(0),
                load(TO),
                load(TO + 8),
                sleep(150_000),
                receive(0),
                load(TO),
                try_receive(),
                try_receive(),
            ])
        });
        bench.run(1_000_000);
        let (full, empty) = (mark(Error::NoSpace), mark(Error::TimedOut));
        let received = [
            16, 0, 0, 0, 0x1111, 0x2222, 0, 0, 0, 0, 8, 0, 0, 0, 0x3333, 0, 0, 0, 0, empty,
        ];
        assert_eq!(bench.marks(1), received, "pCPU {pcpu}");
        let sent = [[0; 20].as_slice(), &[full]].concat();
        assert_eq!(bench.marks(0), sent, "pCPU {pcpu}");
    }
}

#[test]
fn a_message_replaces_the_oldest_of_its_sender_and_nobody_elses() {
    let replace = || call(Operation::PortSend, &[PORT, FROM, 8, SEND_REPLACES]);
    let sender = with_port(task("sender", 0, 10), READ_WRITE);
    let other = with_port(task("other", 0, 20), Rights::WRITE);
    let mut bench = bench(1, 2, &[sender, other]);
    // The first of the two messages that have room is the other's.
    bench.program(1, move |_| {
        marking(vec![send(8), sleep(100_000), replace(), replace(), send(8)])
    });
    bench.program(0, move |_| {
        marking(vec![
            store(FROM, 1),
            replace(),
            replace(),
            try_receive(),
            store(FROM, 2),
            replace(),
            store(FROM, 3),
            replace(),
            store(FROM, 4),
            replace(),
            try_receive(),
            load(TO),
            try_receive(),
            load(TO),
            send(8),
            send(8),
            try_receive(),
            try_receive(),
            sleep(200_000),
        ])
    });
    bench.run(1_000_000);
    let full = mark(Error::NoSpace);
    let (done, eight) = ([0; 4], [8, 0, 0, 0]);
    let own = [
        &done[..],
        &[full],
        &eight,
        &done,
        &done,
        &done,
        &eight,
        &[3],
        &eight,
        &[4],
        &done,
        &done,
        &eight,
        &eight,
        &done,
    ];
    assert_eq!(bench.marks(0), own.concat());
    let others = [&done[..], &done, &done, &done, &[full]];
    assert_eq!(bench.marks(1), others.concat());
}

#[test]
fn a_call_that_waits_for_an_answer_keeps_its_place() {
    let replace = || call(Operation::PortSend, &[PORT, FROM, 8, SEND_REPLACES]);
    let server = with_port(task("server", 0, 20), Rights::READ);
    let sender = with_port(vm("sender", &[(0, 10), (0, 5)]), Rights::WRITE);
    let mut bench = bench(1, 1, &[server, sender]);
    bench.program(0, |_| marking(vec![sleep(1_000_000)]));
    bench.program(1, |_| {
        marking(vec![
            Action::CpuOn(1, RAM, 0),
            request(Operation::PortSendReceive, 500_000),
        ])
    });
    bench.program(2, move |_| marking(vec![replace()]));
    bench.run(400_000);
    assert_eq!(bench.marks(2), [mark(Error::NoSpace)]);
}

#[test]
fn a_wait_ends_at_its_deadline_and_a_late_message_waits() {
    for pcpu in [0, 1] {
        let sender = with_port(task("sender", 0, 10), Rights::WRITE);
        let receiver = with_port(task("receiver", pcpu, 20), Rights::READ);
        let mut bench = bench(2, 2, &[sender, receiver]);
        bench.program(0, |_| marking(vec![sleep(100_000), send(8)]));
        bench.program(1, |_| marking(vec![receive(80_000), sleep(120_000), receive(0)]));
        bench.run(1_000_000);
        let (timed_out, marks) = (mark(Error::TimedOut), bench.marks(1));
        assert_eq!(marks, [timed_out, 0, 0, 0, 0, 8, 0, 0, 0], "pCPU {pcpu}");
        let (at, _) = bench.look().marks(VcpuId(1)).next().unwrap();
        assert!((80_000..82_000).contains(&at), "{at}");
    }
}

#[test]
fn who_sent_a_message_is_seen_only_on_a_port_that_identifies() {
    let sender = with_port(task("sender", 0, 10), READ_WRITE);
    let mut bench = bench(1, 2, &[vm("other", &[(0, 3)]), sender]);
    bench.program(1, |_| {
        marking(vec![
            send(8),
            try_receive(),
            call(Operation::PortSend, &[OTHER, FROM, 8]),
            call(Operation::PortTryReceive, &[OTHER, TO, 64]),
        ])
    });
    bench.run(300_000);
    assert_eq!(bench.marks(1), [0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0]);
}

#[test]
fn bad_buffers_are_refused_and_change_nothing() {
    let end = RAM + 0x4000;
    let read_only = RAM + 0x10_0000;
    let bad = [
        call(Operation::PortSend, &[PORT, end - 32, 40]),
        call(Operation::PortSend, &[PORT, RAM - 8, 16]),
        call(Operation::PortSend, &[PORT, NOWHERE, 8]),
        call(Operation::PortSend, &[PORT, FROM + 4, 8]),
        call(Operation::PortSend, &[PORT, FROM, 65]),
        call(Operation::PortSend, &[PORT, FROM, 1 << 32]),
        call(Operation::PortSend, &[PORT, u64::MAX - 7, 16]),
        call(Operation::PortTryReceive, &[PORT, TO, 63]),
        call(Operation::PortTryReceive, &[PORT, end - 56, 64]),
        call(Operation::PortTryReceive, &[PORT, read_only, 64]),
        call(Operation::PortTryReceive, &[PORT, TO + 1, 64]),
        call(Operation::PortSendReceive, &[PORT, FROM, 8, read_only, 8, 1]),
        call(Operation::PortSendReceive, &[PORT, NOWHERE, 8, TO, 8, 1]),
        call(Operation::PortReceiveDonate, &[PORT, NOWHERE, 64, 0, 0, 1]),
        call(Operation::PortReceiveDonate, &[PORT, TO, 64, 8, CLOCK, 1]),
        call(Operation::PortResume, &[0, 1]),
    ];
    let parts = [with_port(task("own", 0, 10), READ_WRITE)];
    let mut image = tables(1, &parts);
    add_port(&mut image, "first", 64, 1, 0);
    add_port(&mut image, "second", 64, 1, 0);
    image.memory.push(MemoryRecord {
        partition: 0.into(),
        flags: (MEMORY_READ | MEMORY_CLEAR).into(),
        guest: read_only.into(),
        host: 0x4200_0000.into(),
        size: 0x1000.into(),
        manifest_line: 0.into(),
        reserved: 0.into(),
    });
    let mut bench = Bench::with_image(1, image.build().unwrap());
    bench.program(0, move |_| {
        let mut actions = vec![store(FROM, 5), send(8)];
        actions.extend(bad);
        // The one message is still there, and there is no other.
        actions.extend([try_receive(), load(TO), try_receive()]);
        marking(actions)
    });
    bench.run(1_000_000);
    let refused = [mark(Error::InvalidArgument)];
    let expected = [
        &[0; 4],
        &refused.repeat(14)[..],
        &[mark(Error::WrongKind), mark(Error::WrongState)],
        &[8, 0, 0, 0, 5, mark(Error::TimedOut)],
    ];
    assert_eq!(bench.marks(0), expected.concat());
}

#[test]
fn rights_decide_who_sends_receives_and_grants() {
    let sender = with_port(task("sender", 0, 10), Rights::WRITE);
    let receiver = with_port(task("receiver", 0, 9), Rights::READ);
    let mut bench = bench(1, 2, &[sender, receiver]);
    let grant = call(Operation::PortSend, &[PORT, FROM, 8, CLOCK | 1 << 16]);
    bench.program(0, move |_| marking(vec![receive(1), try_receive(), grant]));
    bench.program(1, |_| {
        marking(vec![send(8), request(Operation::PortSendReceive, 1)])
    });
    bench.run(300_000);
    assert_eq!(bench.marks(0), [mark(Error::NoRight); 3]);
    assert_eq!(bench.marks(1), [mark(Error::NoRight); 2]);
}

/// Returns a server that answers `rounds` calls with what it was sent plus one, by `PortReply`.
fn server(rounds: usize, work: u64) -> impl Guest {
    let mut step = 0;
    let mut reply = 0;
    move |last: Outcome, _: u64| {
        if let Outcome::Replied(Reply::Hypercall(Ok([.., index, _]))) = last
            && index != 0
        {
            reply = index;
        }
        step += 1;
        if step > 5 * rounds {
            return Action::Idle;
        }
        match (step % 5, last) {
            (1, _) => receive(0),
            (2, _) => load(TO),
            (3, Outcome::Value(value)) => store(FROM, value + 1),
            (4, _) => Action::Compute(work),
            _ => call(Operation::PortReply, &[reply, FROM, 8]),
        }
    }
}

#[test]
fn a_call_is_answered_once_by_a_capability_of_its_own() {
    for (pcpu, operation) in [
        (0, Operation::PortSendReceive),
        (0, Operation::PortSendReceiveDonate),
        (1, Operation::PortSendReceive),
        (1, Operation::PortSendReceiveDonate),
    ] {
        for server_first in [10, 30] {
            let client = with_port(task("client", 0, 20), Rights::WRITE);
            let serving = with_port(task("server", pcpu, server_first), Rights::READ);
            let mut bench = bench(2, 2, &[client, serving]);
            bench.program(0, move |_| {
                let round = [request(operation, 0), load(TO)];
                let mut actions = vec![store(FROM, 41)];
                actions.extend(round.repeat(3));
                marking(actions)
            });
            bench.program(1, |_| server(3, 100));
            bench.run(1_000_000);
            assert_eq!(bench.marks(0), [8, 0, 0, 0, 42].repeat(3), "{pcpu} {operation:?}");
        }
    }
}

#[test]
fn a_reply_works_once_and_never_after_its_call() {
    let client = with_port(task("client", 0, 20), Rights::WRITE);
    let serving = with_port(task("server", 0, 10), Rights::READ);
    let mut bench = bench(1, 2, &[client, serving]);
    bench.program(0, |_| {
        marking(vec![
            sleep(100_000),
            request(Operation::PortSendReceive, 0),
            request(Operation::PortSendReceive, 0),
            request(Operation::PortSendReceive, 150_000),
        ])
    });
    let reply_to = |number| reply_to(4, 0, number);
    let reply = move |number| call(Operation::PortReply, &[reply_to(number), FROM, 8]);
    bench.program(1, move |_| {
        marking(vec![
            receive(0),
            call(Operation::CapabilityDerive, &[reply_to(1), 2]),
            call(Operation::PortReply, &[4, FROM, 8]),
            call(Operation::CapabilityRevoke, &[4]),
            call(Operation::PortReply, &[reply_to(1), FROM, 65]),
            reply(1),
            receive(0),
            reply(1),
            call(Operation::CapabilityDelete, &[reply_to(1)]),
            reply(2),
            reply(2),
            receive(0),
            sleep(200_000),
            reply(3),
            reply(3),
        ])
    });
    bench.run(1_000_000);
    let (small, late) = (mark(Error::NoSpace), mark(Error::TimedOut));
    assert_eq!(bench.marks(0), [0, 0, 0, 0, small, 8, 0, 0, 0, late]);
    let (nothing, gone) = (mark(Error::NoCapability), mark(Error::Revoked));
    let expected = [
        &[8, 0, reply_to(1), 0][..],
        &[mark(Error::WrongKind), nothing, nothing, small, gone],
        &[8, 0, reply_to(2), 0],
        &[gone, gone, 0, 0, 0, 0, gone],
        &[8, 0, reply_to(3), 0, 0, 0, 0, 0],
        &[gone, gone],
    ];
    assert_eq!(bench.marks(1), expected.concat());
}

/// Gives the sender with this number room for so many messages in the first port.
fn keep_room(image: &mut ImageBuilder, sender: u32, room: u32) {
    for record in &mut image.capabilities {
        if record.partition.get() == sender && record.index.get() == PORT as u32 {
            record.detail = room.into();
        }
    }
}

/// Lets two senders send all that they can, and a client call. Each has its room.
#[test]
fn a_sender_that_fills_a_port_leaves_the_others_their_room() {
    for pcpu in [0, 1] {
        let parts = [
            with_port(task("flood", pcpu, 20), Rights::WRITE),
            with_port(task("client", 0, 10), Rights::WRITE),
            with_port(task("server", 0, 5), Rights::READ),
            with_port(task("guest", 0, 4), Rights::WRITE),
        ];
        let mut image = tables(2, &parts);
        add_port(&mut image, "first", 64, 5, 0);
        add_port(&mut image, "second", 64, 5, 0);
        keep_room(&mut image, 0, 1);
        keep_room(&mut image, 1, 2);
        let mut bench = Bench::with_image(2, image.build().unwrap());
        bench.program(0, |_| {
            let mut actions = vec![sleep(50_000)];
            actions.extend([send(8); 6]);
            actions.extend([sleep(300_000), send(8), send(8)]);
            marking(actions)
        });
        bench.program(1, |_| marking(vec![sleep(100_000), send(8), send(8), send(8)]));
        bench.program(2, |_| {
            let mut actions = vec![sleep(200_000)];
            actions.extend([try_receive(); 6]);
            actions.push(sleep(400_000));
            actions.extend([try_receive(); 3]);
            marking(actions)
        });
        // A sender without room of its own gets the rest.
        bench.program(3, |_| {
            marking(vec![sleep(120_000), send(8), sleep(250_000), send(8)])
        });
        bench.run(1_000_000);
        let full = mark(Error::NoSpace);
        // One of its own and two of all.
        let flood = [&[0; 4][..], &[0; 12], &[full; 3], &[0; 4], &[0; 8]].concat();
        assert_eq!(bench.marks(0), flood, "pCPU {pcpu}");
        assert_eq!(bench.marks(1), [&[0; 12][..], &[full]].concat(), "pCPU {pcpu}");
        assert_eq!(
            bench.marks(3),
            [0, 0, 0, 0, full, 0, 0, 0, 0, 0, 0, 0, 0],
            "pCPU {pcpu}"
        );
        let taken = [8, 0, 0, 0];
        let empty = mark(Error::TimedOut);
        let server = [
            &[0; 4][..],
            &taken.repeat(5),
            &[empty, 0, 0, 0, 0],
            &taken.repeat(3),
        ]
        .concat();
        assert_eq!(bench.marks(2), server, "pCPU {pcpu}");
    }
}

/// Lets a client give up calls that a slow server never takes, beside one that floods the port.
#[test]
fn a_client_with_room_is_never_refused_whatever_it_gives_up() {
    for pcpu in [0, 1] {
        let parts = [
            with_port(task("flood", pcpu, 20), Rights::WRITE),
            with_port(task("client", 0, 10), Rights::WRITE),
            with_port(task("server", 0, 30), Rights::READ),
        ];
        let mut image = tables(2, &parts);
        add_port(&mut image, "first", 64, 4, 0);
        add_port(&mut image, "second", 64, 4, 0);
        keep_room(&mut image, 0, 1);
        keep_room(&mut image, 1, 1);
        let mut bench = Bench::with_image(2, image.build().unwrap());
        bench.program(0, |_| {
            let mut actions = vec![sleep(50_000)];
            actions.extend([send(8); 200]);
            marking(actions)
        });
        bench.program(1, |_| {
            let mut actions = vec![sleep(90_000)];
            let calls = (1..=20).map(|round| {
                let operation = if round % 2 == 0 {
                    Operation::PortSendReceive
                } else {
                    Operation::PortSendReceiveDonate
                };
                request(operation, 90_000 + 1_000 * round)
            });
            actions.extend(calls);
            actions.push(request(Operation::PortSendReceive, 0));
            marking(actions)
        });
        bench.program(2, |_| {
            // Three of the flood, and the last call of the client.
            let mut actions = vec![sleep(200_000)];
            actions.extend([try_receive(); 3]);
            actions.extend([
                try_receive(),
                call(Operation::PortReply, &[reply_to(4, 1, 21), FROM, 8]),
                try_receive(),
            ]);
            marking(actions)
        });
        bench.run(1_000_000);
        let late = mark(Error::TimedOut);
        let client = [&[0; 4][..], &[late; 20], &[8, 0, 0, 0]].concat();
        assert_eq!(bench.marks(1), client, "pCPU {pcpu}");
        let server = bench.marks(2);
        assert_eq!(server[4..16], [8, 0, 0, 0].repeat(3), "pCPU {pcpu}");
        assert_eq!(
            server[16..24],
            [8, 0, reply_to(4, 1, 21), 0, 0, 0, 0, 0],
            "pCPU {pcpu}: {server:?}"
        );
    }
}

/// Lets a client without room of its own give up more calls than the port takes, at two ports in turn.
#[test]
fn calls_that_a_vcpu_gave_up_take_the_place_of_one() {
    for pcpu in [0, 1] {
        let parts = [
            with_port(task("client", pcpu, 10), Rights::WRITE),
            with_port(task("other", 0, 5), Rights::WRITE),
            with_port(task("server", 0, 30), Rights::READ),
        ];
        let mut bench = bench(2, 4, &parts);
        bench.program(0, |_| {
            let calls = (1..=20).map(|round| {
                let port = if round % 2 == 0 { PORT } else { OTHER };
                call(
                    Operation::PortSendReceive,
                    &[port, FROM, 8, TO, 64, 10_000 + 1_000 * round],
                )
            });
            marking(calls.collect())
        });
        bench.program(1, |_| {
            marking(vec![sleep(100_000), send(8), send(8), send(8), send(8)])
        });
        bench.program(2, |_| {
            let mut actions = vec![sleep(200_000)];
            actions.extend([try_receive(); 4]);
            marking(actions)
        });
        bench.run(1_000_000);
        assert_eq!(bench.marks(0), [mark(Error::TimedOut); 20], "pCPU {pcpu}");
        let other = [&[0; 16][..], &[mark(Error::NoSpace)]].concat();
        assert_eq!(bench.marks(1), other, "one place is the client's, pCPU {pcpu}");
        let server = [&[0; 4][..], &[8, 0, 0, 0].repeat(3), &[mark(Error::TimedOut)]].concat();
        assert_eq!(bench.marks(2), server, "pCPU {pcpu}");
    }
}

/// Returns a guest that is busy from before a call on, or never.
fn busy_from_390_000(is_busy: bool) -> impl Guest {
    let mut step = 0;
    move |_: Outcome, _: u64| {
        step += 1;
        match step {
            _ if !is_busy => Action::Idle,
            1 => Action::SetTimer(Some(390_000)),
            2 => Action::Idle,
            _ => Action::Compute(10_000),
        }
    }
}

/// Lets a server wait for its gate alone, and serve two ports, of which one has calls.
#[test]
fn a_server_waits_for_several_ports_and_its_gate_in_one_call() {
    const GATE: u64 = 4;
    for (pcpu, operation) in [
        (0, Operation::PortSendReceive),
        (0, Operation::PortSendReceiveDonate),
        (1, Operation::PortSendReceive),
    ] {
        let gate = |part: Part, rights| part.cap(GATE as u32, ObjectKind::EventGate, 2, rights);
        let parts = [
            gate(with_port(task("sender", pcpu, 20), Rights::WRITE), Rights::WRITE),
            with_port(task("client", 0, 15), Rights::WRITE),
            gate(with_port(task("server", 0, 5), Rights::READ), Rights::READ),
            vm("busy", &[(0, 10)]),
        ];
        let mut image = tables(2, &parts);
        add_port(&mut image, "first", 64, 4, 0);
        add_port(&mut image, "second", 64, 4, 0);
        for record in &mut image.capabilities {
            let (own, index) = (record.partition.get(), record.index.get());
            if own == 2 && (index == PORT as u32 || index == OTHER as u32) {
                record.detail = ((index + 1) << 8).into();
            }
        }
        let mut bench = Bench::with_image(2, image.build().unwrap());
        bench.program(0, |_| {
            marking(vec![
                sleep(100_000),
                call(Operation::PortSend, &[OTHER, FROM, 16]),
                sleep(200_000),
                call(Operation::EventSignal, &[GATE, 1 << 40]),
                sleep(300_000),
                call(Operation::PortSend, &[OTHER, FROM, 24]),
                call(Operation::PortSend, &[OTHER, FROM, 32]),
            ])
        });
        bench.program(1, move |_| {
            marking(vec![sleep(400_000), request(operation, 900_000)])
        });
        bench.program(2, |_| {
            let wait = call(Operation::EventWait, &[GATE, 0]);
            let other = call(Operation::PortTryReceive, &[OTHER, TO, 64]);
            marking(vec![
                wait,
                other,
                other,
                wait,
                sleep(350_000),
                wait,
                other,
                other,
                wait,
                try_receive(),
                call(Operation::PortReply, &[reply_to(5, 1, 1), FROM, 8]),
            ])
        });
        bench.program(3, move |_| {
            busy_from_390_000(operation == Operation::PortSendReceiveDonate)
        });
        bench.run(1_000_000);
        let empty = mark(Error::TimedOut);
        let expected = [
            &[1 << OTHER, 0, 0, 0][..],
            &[16, 0, 0, 0, empty],
            &[1 << 40, 0, 0, 0],
            &[0, 0, 0, 0],
            &[1 << OTHER, 0, 0, 0],
            &[24, 0, 0, 0, 32, 0, 0, 0],
            &[1 << PORT, 0, 0, 0],
            &[8, 0, reply_to(5, 1, 1), 0, 0, 0, 0, 0],
        ];
        // When the caller has its answer, the busy one comes before the server's own last answer.
        let (marks, all) = (bench.marks(2), expected.concat());
        let shown = marks.len().max(all.len() - 4);
        assert_eq!(marks, all[..shown], "{pcpu} {operation:?}");
        assert_eq!(bench.marks(1), [0, 0, 0, 0, 8, 0, 0, 0], "{pcpu} {operation:?}");
    }
}

/// Lets a server restart between a message and its wait for the event of the message.
#[test]
fn a_new_life_is_told_of_the_messages_that_wait() {
    const GATE: u64 = 4;
    let parts = [
        with_port(task("sender", 0, 20), Rights::WRITE).cap(4, ObjectKind::Partition, 1, Rights::ALL),
        with_port(task("server", 0, 5), Rights::READ).cap(
            GATE as u32,
            ObjectKind::EventGate,
            1,
            Rights::READ,
        ),
    ];
    let mut image = tables(1, &parts);
    add_port(&mut image, "first", 64, 4, 0);
    add_port(&mut image, "second", 64, 4, 0);
    for record in &mut image.capabilities {
        if record.partition.get() == 1 && record.index.get() == PORT as u32 {
            record.detail = (8 << 8).into();
        }
    }
    let mut bench = Bench::with_image(1, image.build().unwrap());
    bench.program(0, |_| {
        marking(vec![
            sleep(100_000),
            send(8),
            call(Operation::PartitionRestart, &[4]),
        ])
    });
    bench.program(1, |_| {
        marking(vec![sleep(200_000), call(Operation::EventWait, &[GATE, 0])])
    });
    bench.run(1_000_000);
    assert_eq!(bench.marks(1), [0, 0, 0, 0, 1 << 7, 0, 0, 0]);
}

/// Lets a client that has too little room for the answers call again and again, and then an honest one. The
/// server drops a reply that was refused, as every server does.
#[test]
fn answers_that_do_not_fit_close_no_server() {
    for pcpu in [0, 1] {
        for operation in [Operation::PortSendReceive, Operation::PortSendReceiveDonate] {
            let greedy = with_port(task("greedy", 0, 20), Rights::WRITE);
            let serving = with_port(task("server", pcpu, 10), Rights::READ);
            let honest = with_port(task("honest", 0, 15), Rights::WRITE);
            let mut bench = bench(2, 4, &[greedy, serving, honest]);
            bench.program(0, move |_| {
                let small = call(operation, &[PORT, FROM, 8, TO, 4, 0]);
                marking(vec![small; 80])
            });
            bench.program(1, |_| {
                |last: Outcome, _: u64| {
                    let reply = match last {
                        Outcome::Replied(Reply::Hypercall(Ok([_, _, index, _]))) => index,
                        _ => 0,
                    };
                    call(Operation::PortReceiveDonate, &[PORT, TO, 64, 8, reply, 0])
                }
            });
            bench.program(2, move |_| {
                marking(vec![sleep(900_000), request(operation, 0), request(operation, 0)])
            });
            bench.run(1_500_000);
            assert_eq!(bench.marks(0), [mark(Error::NoSpace); 80], "{pcpu} {operation:?}");
            assert_eq!(
                bench.marks(2),
                [0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0],
                "{pcpu} {operation:?}"
            );
        }
    }
}

/// Lets a client call a server without a free slot, which waits for the call or comes later. Then the server
/// frees one.
#[test]
fn a_server_without_a_free_slot_gets_no_message_of_a_call() {
    for pcpu in [0, 1] {
        for operation in [Operation::PortSendReceive, Operation::PortSendReceiveDonate] {
            for begin in [0, 300_000] {
                let client = with_port(task("client", 0, 20), Rights::WRITE);
                let serving = with_port(task("server", pcpu, 10), Rights::READ);
                let mut bench = bench(2, 4, &[client, serving]);
                bench.program(0, move |_| {
                    marking(vec![
                        sleep(200_000),
                        store(FROM, 41),
                        request(operation, 0),
                        sleep(600_000),
                        store(FROM, 42),
                        request(operation, 0),
                    ])
                });
                bench.program(1, move |_| {
                    let derive = call(Operation::CapabilityDerive, &[PORT, 1]);
                    let mut actions = vec![derive; CAPABILITY_SLOTS];
                    actions.extend([
                        sleep(begin),
                        receive(500_000),
                        call(Operation::CapabilityDelete, &[20]),
                        receive(0),
                        load(TO),
                        call(Operation::PortReply, &[reply_to(20, 0, 2), FROM, 8]),
                    ]);
                    marking(actions)
                });
                bench.run(1_500_000);
                let full = mark(Error::NoSpace);
                assert_eq!(
                    bench.marks(0),
                    [0, 0, 0, 0, full, 0, 0, 0, 0, 8, 0, 0, 0],
                    "{pcpu} {operation:?}"
                );
                let all = bench.marks(1);
                let expected = [
                    &[full, 0, 0, 0, 0, mark(Error::TimedOut), 0, 0, 0, 0][..],
                    &[8, 0, reply_to(20, 0, 2), 0, 42, 0, 0, 0, 0],
                ]
                .concat();
                assert_eq!(
                    all[all.len() - expected.len()..],
                    expected,
                    "{pcpu} {operation:?} {begin}"
                );
            }
        }
    }
}

/// Lets a client give up more calls than a capability space has slots. The server answers none of them in
/// time. Then it answers the oldest one, and an honest client's calls.
#[test]
fn calls_that_are_given_up_close_no_server_and_their_answers_reach_no_other_call() {
    const GIVEN_UP: usize = 2 * CAPABILITY_SLOTS;
    for pcpu in [0, 1] {
        for operation in [Operation::PortSendReceive, Operation::PortSendReceiveDonate] {
            let greedy = with_port(task("greedy", 0, 20), Rights::WRITE);
            let serving = with_port(task("server", pcpu, 10), Rights::READ);
            let honest = with_port(task("honest", 0, 15), Rights::WRITE);
            let mut bench = bench(2, 4, &[greedy, serving, honest]);
            bench.program(0, move |_| {
                let calls = (1..=GIVEN_UP as u64).map(|round| request(operation, round * 20_000));
                marking(calls.collect())
            });
            bench.program(1, |_| {
                let (mut first, mut last_reply, mut received) = (0, 0, 0);
                move |last: Outcome, _: u64| {
                    if let Outcome::Replied(Reply::Hypercall(Ok([_, _, index, _]))) = last
                        && index != 0
                    {
                        first = if first == 0 { index } else { first };
                        (last_reply, received) = (index, received + 1);
                        if received > GIVEN_UP {
                            // The honest client's call has come. The answer to a call that is gone is not
                            // for it.
                            return call(Operation::PortReply, &[first, FROM, 8]);
                        }
                    }
                    let reply = if received > GIVEN_UP { last_reply } else { 0 };
                    call(Operation::PortReceiveDonate, &[PORT, TO, 64, 8, reply, 0])
                }
            });
            let end = GIVEN_UP as u64 * 20_000 + 50_000;
            bench.program(2, move |_| {
                marking(vec![
                    sleep(end),
                    request(operation, 0),
                    request(operation, 0),
                    load(TO),
                ])
            });
            bench.run(end + 500_000);
            assert_eq!(
                bench.marks(0),
                [mark(Error::TimedOut); GIVEN_UP],
                "{pcpu} {operation:?}"
            );
            assert_eq!(
                bench.marks(2)[4..],
                [8, 0, 0, 0, 8, 0, 0, 0, 0],
                "{pcpu} {operation:?}"
            );
        }
    }
}

#[test]
fn a_capability_comes_with_a_message_and_can_be_taken_back() {
    let rights = Rights::WRITE.union(Rights::GRANT);
    let sender = with_port(task("sender", 0, 20), rights).cap(4, ObjectKind::Console, 0, Rights::ALL);
    let receiver = with_port(task("receiver", 0, 10), Rights::READ);
    let mut bench = bench(1, 2, &[sender, receiver]);
    bench.program(0, |_| {
        marking(vec![
            call(Operation::PortSend, &[PORT, FROM, 0, 4 | 2 << 16]),
            call(Operation::PortSend, &[PORT, FROM, 0, 4 | 16 << 16]),
            call(Operation::PortSend, &[PORT, FROM, 0, 9 | 1 << 16]),
            sleep(200_000),
            call(Operation::CapabilityRevoke, &[4]),
        ])
    });
    bench.program(1, |_| {
        marking(vec![
            receive(0),
            call(Operation::CapabilityInspect, &[4]),
            sleep(300_000),
            call(Operation::ConsoleWrite, &[4, 1, 0x61]),
            call(Operation::ConsoleWrite, &[4, 1, 0x61]),
        ])
    });
    bench.run(1_000_000);
    let sent = bench.marks(0);
    assert_eq!(
        sent[..6],
        [
            0,
            0,
            0,
            0,
            mark(Error::InvalidArgument),
            mark(Error::NoCapability)
        ]
    );
    let console = (ObjectKind::Console as u64) << 32 | 2;
    let gone = [mark(Error::Revoked), mark(Error::NoCapability)];
    let expected = [&[0, 0, 0, 4, console, 0, 0, 0][..], &[0; 4], &gone[..]];
    assert_eq!(bench.marks(1), expected.concat());
}

/// Returns the ticks from the first call of the client to its answer.
fn answered_after(bench: &Bench) -> u64 {
    let world = bench.look();
    let marks: Vec<_> = world.marks(VcpuId(0)).collect();
    marks[4].0 - marks[0].0
}

#[test]
fn a_server_runs_in_the_place_of_a_client_that_donates() {
    let run = |operation| {
        let client = with_port(task("client", 0, 30), Rights::WRITE);
        let serving = with_port(task("server", 0, 5), Rights::READ);
        // More important than the server, less important than the client, and busy for ever.
        let busy = vm("busy", &[(0, 20)]);
        let mut bench = bench(1, 2, &[client, serving, busy]);
        bench.program(0, move |_| {
            marking(vec![sleep(100_000), request(operation, 900_000)])
        });
        bench.program(1, |_| server(1, 20_000));
        bench.program(2, |_| {
            let mut step = 0;
            move |_: Outcome, _: u64| {
                step += 1;
                match step {
                    1 => Action::SetTimer(Some(90_000)),
                    2 => Action::Idle,
                    _ => Action::Compute(10_000),
                }
            }
        });
        bench.run(2_000_000);
        bench
    };
    let with = run(Operation::PortSendReceiveDonate);
    assert_eq!(with.marks(0)[4..], [8, 0, 0, 0]);
    let took = answered_after(&with);
    assert!((20_000..24_000).contains(&took), "{took}");
    let without = run(Operation::PortSendReceive);
    assert_eq!(without.marks(0)[4..], [mark(Error::TimedOut)]);
}

#[test]
fn a_loan_goes_through_a_chain_and_a_cycle_is_refused() {
    // The client calls the middle, the middle calls the end. The end calls the client's port, which closes
    // the cycle, and answers when that is refused.
    let client = with_port(task("client", 0, 30), READ_WRITE);
    let middle = with_port(task("middle", 0, 6), READ_WRITE);
    let mut end = task("end", 0, 5).cap(3, ObjectKind::Port, 1, Rights::READ);
    end = end
        .cap(1, ObjectKind::Port, 0, READ_WRITE)
        .cap(2, ObjectKind::Timer, 0, Rights::READ);
    let busy = vm("busy", &[(0, 20)]);
    let mut bench = bench(1, 2, &[client, middle, end, busy]);
    let donate = |port: u64| call(Operation::PortSendReceiveDonate, &[port, FROM, 8, TO, 64, 0]);
    bench.program(0, move |_| marking(vec![sleep(100_000), donate(PORT)]));
    bench.program(1, move |_| {
        marking(vec![
            receive(0),
            donate(OTHER),
            call(Operation::PortReply, &[reply_to(4, 0, 1), FROM, 8]),
        ])
    });
    bench.program(2, move |_| {
        marking(vec![
            call(Operation::PortReceive, &[OTHER, TO, 64, 0]),
            Action::Compute(5_000),
            donate(PORT),
            call(Operation::PortReply, &[reply_to(4, 1, 1), FROM, 8]),
        ])
    });
    bench.program(3, |_| {
        let mut step = 0;
        move |_: Outcome, _: u64| {
            step += 1;
            match step {
                1 => Action::SetTimer(Some(90_000)),
                2 => Action::Idle,
                _ => Action::Compute(10_000),
            }
        }
    });
    bench.run(2_000_000);
    assert_eq!(
        bench.marks(2),
        [8, 2, reply_to(4, 1, 1), 0, mark(Error::DonationCycle)]
    );
    assert_eq!(bench.marks(1)[..8], [8, 0, reply_to(4, 0, 1), 0, 8, 0, 0, 0]);
    assert_eq!(bench.marks(0)[4..], [8, 0, 0, 0]);
    let took = answered_after(&bench);
    assert!((5_000..12_000).contains(&took), "{took}");
}

#[test]
fn a_server_that_stops_ends_the_calls_that_it_received() {
    for (pcpu, operation) in [
        (0, Operation::PortSendReceive),
        (0, Operation::PortSendReceiveDonate),
        (1, Operation::PortSendReceiveDonate),
    ] {
        let client = with_port(task("client", 0, 20), Rights::WRITE);
        let serving = with_port(task("server", pcpu, 10), Rights::READ);
        let mut bench = bench(2, 2, &[client, serving]);
        bench.program(0, move |_| {
            marking(vec![
                sleep(100_000),
                request(operation, 0),
                request(operation, 300_000),
            ])
        });
        let stop = call(Operation::PartitionStop, &[0]);
        bench.program(1, move |_| {
            marking(vec![receive(0), Action::Compute(1_000), stop])
        });
        bench.run(1_000_000);
        let gone = [mark(Error::Revoked), mark(Error::TimedOut)];
        assert_eq!(bench.marks(0)[4..], gone, "pCPU {pcpu} {operation:?}");
    }
}

#[test]
fn a_client_that_ends_takes_its_loan_and_its_call_with_it() {
    let client = with_port(task("client", 0, 20), Rights::WRITE);
    let serving = with_port(task("server", 0, 10), Rights::READ);
    let killer = task("killer", 1, 10)
        .cap(1, ObjectKind::Partition, 0, Rights::ALL)
        .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ);
    let mut bench = bench(2, 2, &[client, serving, killer]);
    bench.program(0, |_| marking(vec![request(Operation::PortSendReceiveDonate, 0)]));
    bench.program(1, |_| {
        let reply = |number| call(Operation::PortReply, &[reply_to(4, 0, number), FROM, 8]);
        let round = |number| [receive(0), Action::Compute(50_000), reply(number)];
        marking((1..5).flat_map(round).collect())
    });
    bench.program(2, |_| {
        let round = [sleep(120_000), call(Operation::PartitionRestart, &[1])];
        marking(round.to_vec())
    });
    bench.run(2_000_000);
    let marks = bench.marks(1);
    assert!(
        marks.contains(&mark(Error::Revoked)) || marks.len() >= 8,
        "{marks:?}"
    );
    assert_eq!(
        bench.marks(0).last_chunk(),
        Some(&[8, 0, 0, 0]),
        "the second life is served"
    );
}

#[test]
fn a_vm_takes_its_interrupts_in_a_call_and_goes_on_to_wait() {
    for operation in [Operation::PortSendReceive, Operation::PortSendReceiveDonate] {
        let client = with_port(vm("client", &[(0, 20)]), Rights::WRITE);
        let serving = with_port(task("server", 0, 10), Rights::READ);
        let mut bench = bench(1, 2, &[client, serving]);
        bench.program(0, move |_| {
            marking(vec![
                Action::SetTimer(Some(150_000)),
                request(operation, 0),
                request(operation, 0),
                Action::Acknowledge,
                call(Operation::PortResume, &[0, 0]),
                load(TO),
            ])
        });
        bench.program(1, |_| server(1, 200_000));
        bench.run(1_000_000);
        let expected = [mark(Error::Interrupted), mark(Error::WrongState), 8, 0, 0, 0, 1];
        assert_eq!(bench.marks(0), expected, "{operation:?}");
        let (at, _) = bench.look().marks(VcpuId(0)).next().unwrap();
        assert!((150_000..152_000).contains(&at), "{operation:?}: {at}");
    }
}

/// Lets a server answer by an index with a bit beyond the 32 bits, the short way and the long way.
#[test]
fn an_index_to_reply_by_has_32_bits() {
    for operation in [Operation::PortSendReceive, Operation::PortSendReceiveDonate] {
        let client = with_port(task("client", 0, 20), Rights::WRITE);
        let serving = with_port(task("server", 0, 10), Rights::READ);
        let mut bench = bench(1, 2, &[client, serving]);
        bench.program(0, move |_| marking(vec![sleep(100_000), request(operation, 0)]));
        bench.program(1, |_| {
            let right = reply_to(4, 0, 1);
            let answer = |reply| call(Operation::PortReceiveDonate, &[PORT, TO, 64, 8, reply, 0]);
            let reply = |reply| call(Operation::PortReply, &[reply, FROM, 8]);
            marking(vec![
                receive(0),
                answer(right | 1 << 32),
                reply(right | 1 << 40),
                answer(right),
            ])
        });
        bench.run(500_000);
        let nothing = mark(Error::NoCapability);
        let expected = [8, 0, reply_to(4, 0, 1), 0, nothing, nothing];
        assert_eq!(bench.marks(1), expected, "{operation:?}");
        assert_eq!(bench.marks(0)[4..], [8, 0, 0, 0], "{operation:?}");
    }
}

#[test]
fn a_server_replies_and_receives_in_one_step() {
    for pcpu in [0, 1] {
        let client = with_port(task("client", 0, 20), Rights::WRITE);
        let serving = with_port(task("server", pcpu, 10), Rights::READ);
        let mut bench = bench(2, 2, &[client, serving]);
        bench.program(0, |_| {
            let round = [request(Operation::PortSendReceiveDonate, 0)];
            marking(round.repeat(20))
        });
        bench.program(1, |_| {
            let mut reply = 0;
            move |last: Outcome, _: u64| {
                if let Outcome::Replied(Reply::Hypercall(Ok([_, _, index, _]))) = last {
                    reply = index;
                }
                call(Operation::PortReceiveDonate, &[PORT, TO, 64, 8, reply, 0])
            }
        });
        bench.run(2_000_000);
        assert_eq!(bench.marks(0), [8, 0, 0, 0].repeat(20), "pCPU {pcpu}");
    }
}

#[test]
fn a_switch_by_a_loan_needs_no_decision_between() {
    let client = with_port(task("client", 0, 20), Rights::WRITE);
    let serving = with_port(task("server", 0, 10), Rights::READ);
    let mut bench = bench(1, 2, &[client, serving]);
    bench.program(0, |_| {
        marking(vec![sleep(100_000), request(Operation::PortSendReceiveDonate, 0)])
    });
    bench.program(1, |_| server(1, 100));
    bench.run(1_000_000);
    let switches = bench.records(|what| matches!(what, What::Switch(_)));
    let last: Vec<_> = switches.iter().rev().take(3).map(|record| record.what).collect();
    let (client, server) = (What::Switch(VcpuId(0)), What::Switch(VcpuId(1)));
    assert_eq!(last, [server, client, server]);
}
