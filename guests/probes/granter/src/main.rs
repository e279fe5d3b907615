// SPDX-License-Identifier: Apache-2.0
//! Two tasks that test the end of authority: one grants a capability and takes it back while the other waits
//! by it.
//!
//! The granter needs these capabilities: `gifts` (a port; write and grant), `box` (a port of depth 1 or more
//! that no other partition uses; read and write), `lock`, `gate` (its own event gate; read and write),
//! `clock` (timer), and a console. The holder needs `gifts` (read) and a console.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::{Error, Rights};
use bulkhead_guest::hypercall::{self as call, Handle};
use bulkhead_guest::lock;
use bulkhead_guest::port::{self, Message};
use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

const MILLISECOND: u64 = 1_000_000;
/// The manners in which the holder waits, by the first byte of the message with the capability.
const MANNERS: [&str; 4] = ["message", "reply", "lock", "events"];

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let Some(gifts) = find("gifts") else {
        println!("FAIL capability gifts: missing");
        return;
    };
    match (find("box"), find("lock"), find("gate"), find("clock")) {
        (Some(mailbox), Some(lock), Some(gate), Some(clock)) => grant(&Tools {
            gifts,
            mailbox,
            lock,
            gate,
            clock,
        }),
        _ => hold(gifts),
    }
}

/// Waits by each capability that comes, and tells how the wait ends.
fn hold(gifts: Handle) {
    loop {
        let mut message = Message::<8>::new();
        let Ok(received) = port::receive(gifts, &mut message, 0) else {
            println!("FAIL no gift");
            return;
        };
        let Some(gift) = received.capability else {
            println!("FAIL an empty gift");
            return;
        };
        let (request, mut answer) = (Message::<8>::new(), Message::<8>::new());
        let manner = usize::from(message.0[0]);
        let ended = match manner {
            0 => port::receive(gift, &mut answer, 0).map(drop),
            1 => port::send_receive(gift, &request, 8, &mut answer, 0).map(drop),
            2 => lock::take(gift, 0).map(lock::Guard::keep),
            _ => call::event_wait(gift, 0).map(drop),
        };
        println!("holder: {} {ended:?}", MANNERS[manner.min(3)]);
    }
}

struct Tools {
    gifts: Handle,
    mailbox: Handle,
    lock: Handle,
    gate: Handle,
    clock: Handle,
}

impl Tools {
    fn sleep(&self) {
        let now = call::timer_now(self.clock).unwrap_or(0);
        let _interrupted = call::timer_sleep(self.clock, now + MILLISECOND);
    }

    /// Grants a capability, lets the holder wait by it, and takes it back.
    fn lend(&self, report: &mut Report, manner: u8, capability: Handle, rights: Rights) {
        let mut message = Message::<8>::new();
        message.0[0] = manner;
        let sent = port::send(self.gifts, &message, 8, Some((capability, rights)));
        report.equal("a capability goes with a message", sent, Ok(()));
        self.sleep();
        let revoked = call::capability_revoke(capability);
        report.equal("it is taken back", revoked, Ok(()));
    }
}

fn grant(tools: &Tools) {
    let mut report = Report::new();
    tools.sleep();
    tools.lend(&mut report, 0, tools.mailbox, Rights::READ);
    let (message, mut buffer) = (Message::<8>::new(), Message::<8>::new());
    let sent = port::send(tools.mailbox, &message, 8, None);
    report.equal("a message is sent when the holder waits no more", sent, Ok(()));
    let own = port::try_receive(tools.mailbox, &mut buffer).map(|received| received.length);
    report.equal("it is not for the holder", own, Ok(8));

    tools.lend(&mut report, 1, tools.mailbox, Rights::WRITE);
    let none = port::try_receive(tools.mailbox, &mut buffer).map(|received| received.length);
    report.equal("the call is gone", none, Err(Error::TimedOut));

    let taken = lock::take(tools.lock, 0);
    report.check("the lock is free", taken.is_ok());
    tools.lend(&mut report, 2, tools.lock, Rights::WRITE);
    drop(taken);
    let again = lock::try_take(tools.lock);
    report.check(
        "nobody has got the lock",
        again.is_ok_and(|again| !again.is_broken()),
    );

    tools.lend(&mut report, 3, tools.gate, Rights::READ);
    let raised = call::event_signal(tools.gate, 4);
    report.equal("an event is raised", raised, Ok(()));
    report.equal("it is not for the holder", call::event_poll(tools.gate), Ok(4));
    tools.sleep();
    report.finish();
}
