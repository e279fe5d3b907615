// SPDX-License-Identifier: Apache-2.0
//! Two pCPUs meet inside one hypercall: a capability is taken away on one of them after the other has found
//! it, and before the other takes the lock of the object.

use crate::support::{Bench, RAM, call, error_mark, marking, port, sleep, store, tables, task};
use bulkhead_abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_arch_api::VcpuId;
use bulkhead_arch_sim::{Action, World};

/// The capabilities of the granter.
const PORT: u64 = 1;
const CLOCK: u64 = 2;
const OTHER: u64 = 3;
/// The first free slot of the holder.
const GIFT: u64 = 1;
const FROM: u64 = RAM + 0x100;
const TO: u64 = RAM + 0x200;

/// When the granter takes the capability away, if the holder does not meet it before.
const ENDED: u64 = 100_000;
/// When the holder makes its hypercall.
const MADE: u64 = 99_000;

/// Returns a board: the granter on pCPU 0 grants the holder on pCPU 1 a port. The granter takes it away in
/// the midst of the holder's hypercall `made`, after `passing` checks of an address, and sends a message.
fn take_away_inside(rights: Rights, made: Action, passing: u32) -> Bench {
    let parts = [
        task("granter", 0, 10)
            .cap(PORT as u32, ObjectKind::Port, 0, Rights(3))
            .cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ)
            .cap(OTHER as u32, ObjectKind::Partition, 1, Rights::ALL),
        task("holder", 1, 20).cap(CLOCK as u32, ObjectKind::Timer, 0, Rights::READ),
    ];
    let mut image = tables(2, &parts);
    image.ports.push(port(64, 4));
    let mut bench = Bench::with_image(2, image.build().unwrap());
    bench.program(0, move |_| {
        marking(vec![
            call(Operation::CapabilityGrant, &[OTHER, PORT, rights.0.into()]),
            store(FROM, 0x5EC7),
            sleep(CLOCK, ENDED),
            call(Operation::CapabilityRevoke, &[PORT]),
            call(Operation::PortSend, &[PORT, FROM, 8]),
        ])
    });
    bench.program(1, move |_| marking(vec![sleep(CLOCK, MADE), made]));
    bench.run(MADE - 1_000);
    bench.meet((1, passing), 0, has_sent);
    bench.run(500_000);
    bench
}

/// Tells whether the granter has done everything.
fn has_sent(world: &World) -> bool {
    let marks: Vec<_> = world.marks(VcpuId(0)).collect();
    // A grant, a sleep and the end have four results each; then comes the first mark of the send.
    marks.len() > 12
}

/// Checks that the holder's hypercall ends with `Revoked`, by its clock before the granter's turn would have
/// come: so the two have met.
fn check_revoked(bench: &Bench, context: &str) {
    let marks: Vec<_> = bench.look().marks(VcpuId(1)).skip(4).collect();
    assert_eq!(
        bench.marks(0),
        [1].iter().chain(&[0; 15]).copied().collect::<Vec<_>>(),
        "{context}"
    );
    assert_eq!(marks.len(), 1, "{context}: {marks:?}");
    assert_eq!(marks[0].1, error_mark(Error::Revoked), "{context}");
    assert!((MADE..ENDED).contains(&marks[0].0), "{context}: {marks:?}");
}

#[test]
fn a_receive_takes_no_message_that_was_sent_after_its_capability_was_taken_away() {
    // The short way of a receive checks the buffer once. It finds no message then, and leaves the receive to
    // the long way. There the next check is.
    let receives = [
        (call(Operation::PortReceive, &[GIFT, TO, 64, 0]), 0..2),
        (call(Operation::PortTryReceive, &[GIFT, TO, 64]), 0..2),
        (call(Operation::PortReceiveDonate, &[GIFT, TO, 64, 0, 0, 0]), 0..1),
    ];
    for (receive, checks) in receives {
        for passing in checks {
            let bench = take_away_inside(Rights::READ, receive, passing);
            check_revoked(&bench, &format!("{receive:?} {passing}"));
        }
    }
}

#[test]
fn a_call_is_not_made_by_a_capability_that_was_taken_away() {
    // The message is checked, then the buffer. A call that donates tries the short way first.
    for (operation, checks) in [
        (Operation::PortSendReceive, 0..2),
        (Operation::PortSendReceiveDonate, 0..4),
    ] {
        let made = call(operation, &[GIFT, FROM, 8, TO, 64, 0]);
        for passing in checks {
            let bench = take_away_inside(Rights::WRITE, made, passing);
            check_revoked(&bench, &format!("{operation:?} {passing}"));
        }
    }
}
