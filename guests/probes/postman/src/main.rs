// SPDX-License-Identifier: Apache-2.0
//! A task that tests ports: what is refused, what waits, order, deadlines, calls, capabilities on their way.
//!
//! It needs these capabilities: `box` (a port of 64 bytes and depth 4 that no other partition uses; read and
//! write), `echo` and `orders` (the ports of the guest `echo`; write, and for `echo` grant; with the events 3
//! and 4), `clock` (timer), and a console.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::hypercall::{MAX_MESSAGE, function_id};
use bulkhead_guest::abi::{Error, ObjectKind, Operation, Rights};
use bulkhead_guest::hypercall::{self as call, Handle};
use bulkhead_guest::port::{self, Message, Received};
use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

/// Messages that wait in the box.
const DEPTH: u8 = 4;
const MILLISECOND: u64 = 1_000_000;
/// Bytes of the longest message of `echo`.
const LONG: usize = 320;
/// Rounds of messages to a server at its gate, and orders in each.
const ROUNDS: u8 = 20;
const ORDERS: u8 = 2;
/// Events that the server gets: of its two ports, and by this task.
const OF_PORTS: u8 = 1 << 3 | 1 << 4;
const SIGNALS: u8 = 0x42;

struct Tools {
    mailbox: Handle,
    echo: Handle,
    orders: Handle,
    clock: Handle,
}

fn main(page: StartupPage<'static>) {
    let find = |name: &str| page.find(name).map(|found| Handle(found.index));
    let (Some(mailbox), Some(clock)) = (find("box"), find("clock")) else {
        println!("FAIL capabilities box and clock: missing");
        return;
    };
    let (Some(echo), Some(orders)) = (find("echo"), find("orders")) else {
        println!("FAIL capabilities echo and orders: missing");
        return;
    };
    let tools = Tools {
        mailbox,
        echo,
        orders,
        clock,
    };
    let mut report = Report::new();
    names(&mut report, &page, &tools);
    order(&mut report, &tools);
    refusals(&mut report, &tools);
    deadlines(&mut report, &tools);
    calls(&mut report, &tools);
    if let Some(gate) = capabilities(&mut report, &tools) {
        several(&mut report, &tools, gate);
    }
    report.finish();
}

/// Finds by a call what the startup page says.
fn names(report: &mut Report, page: &StartupPage<'_>, tools: &Tools) {
    let same = page.capabilities().all(|known| {
        call::capability_find(known.name) == Ok((Handle(known.index), known.kind, known.rights))
    });
    report.check("every name of the startup page is found by a call", same);
    let wrong = ["bo", "boxes", "", "no-such-name"].map(call::capability_find);
    let refused = wrong.iter().all(|found| *found == Err(Error::NoCapability));
    report.check("other names are refused", refused);
    let copy = call::capability_derive(tools.clock, Rights::READ);
    let found = call::capability_find("clock").map(|(handle, ..)| handle);
    report.equal("a name means the slot of the manifest", found, Ok(tools.clock));
    report.check("a copy is elsewhere", copy.is_ok_and(|copy| copy != tools.clock));
    report.equal("the copy goes", copy.and_then(call::capability_delete), Ok(()));
}

fn order(report: &mut Report, tools: &Tools) {
    let (mut message, mut sent) = (Message::<64>::new(), 0);
    for number in 0..=DEPTH {
        message.0.fill(number);
        match port::send(tools.mailbox, &message, usize::from(number) + 1, None) {
            Ok(()) => sent += 1,
            error => report.equal("a full port refuses", error, Err(Error::NoSpace)),
        }
    }
    report.equal("the port holds its depth", sent, DEPTH);
    let mut right = true;
    for number in 0..DEPTH {
        let mut buffer = Message([0xAA; 64]);
        let received = port::try_receive(tools.mailbox, &mut buffer).map(|received| received.length);
        let length = usize::from(number) + 1;
        let (inside, behind) = buffer.0.split_at(length);
        right &= received == Ok(length);
        right &= inside.iter().all(|byte| *byte == number) && behind.iter().all(|byte| *byte == 0xAA);
    }
    report.check(
        "messages come whole, in their order, and nothing behind them is written",
        right,
    );
    let empty = port::try_receive(tools.mailbox, &mut message);
    report.equal("an empty port has nothing", empty, Err(Error::TimedOut));
}

/// Makes a call with these arguments after the port.
fn wild(operation: Operation, port: Handle, arguments: [u64; 3]) -> i64 {
    let [a, b, c] = arguments;
    let identifier = u64::from(function_id(operation));
    let [status, ..] = call::raw(identifier, [u64::from(port.0), a, b, c, 0, 0]).0;
    status.cast_signed()
}

fn refusals(report: &mut Report, tools: &Tools) {
    let message = Message::<64>::new();
    let here = message.0.as_ptr().addr() as u64;
    let bad = Error::InvalidArgument as i64;
    let send = |address, length| wild(Operation::PortSend, tools.mailbox, [address, length, 0]);
    let receive = |address| wild(Operation::PortTryReceive, tools.mailbox, [address, 64, 0]);
    report.equal(
        "a message at an address with nothing",
        send(0x10_0000_0000, 8),
        bad,
    );
    report.equal(
        "a message at the end of all addresses",
        send(u64::MAX - 7, 8),
        bad,
    );
    report.equal("a message at an odd address", send(here + 1, 8), bad);
    report.equal("a message too long for the port", send(here, 65), bad);
    report.equal(
        "a message too long for any port",
        send(here, MAX_MESSAGE as u64 + 1),
        bad,
    );
    // The program itself is not writable.
    let code = (main as fn(StartupPage<'static>) as usize as u64) & !7;
    report.equal("a message into code", receive(code), bad);
    report.equal("a message from code", send(code, 8), 0);
    report.equal("a message to nowhere", receive(0x10_0000_0000), bad);
    let mut buffer = Message::<64>::new();
    let left = port::try_receive(tools.mailbox, &mut buffer).map(|received| received.length);
    report.equal("the refused changed nothing", left, Ok(8));
    let other = wild(Operation::PortSend, tools.clock, [here, 8, 0]);
    report.equal("a clock is no port", other, Error::WrongKind as i64);
    let mut long = Message::<LONG>::new();
    let forbidden = port::try_receive(tools.echo, &mut long);
    report.equal("who only sends cannot receive", forbidden, Err(Error::NoRight));
}

fn deadlines(report: &mut Report, tools: &Tools) {
    let mut buffer = Message::<64>::new();
    let now = call::timer_now(tools.clock).unwrap_or(0);
    let waited = port::receive(tools.mailbox, &mut buffer, now + MILLISECOND);
    let later = call::timer_now(tools.clock).unwrap_or(0);
    report.equal("a wait ends at its deadline", waited, Err(Error::TimedOut));
    report.check("and not before", later >= now + MILLISECOND);
    let (message, mut answer) = (Message::<64>::new(), Message::<64>::new());
    let called = port::send_receive(tools.mailbox, &message, 4, &mut answer, later + MILLISECOND);
    report.equal(
        "a call that only the caller could answer is refused",
        called,
        Err(Error::DonationCycle),
    );
    let stale = port::try_receive(tools.mailbox, &mut buffer);
    report.equal("its message is not sent", stale, Err(Error::TimedOut));
    let none = port::resume(0);
    report.equal("no call is open", none, Err(Error::WrongState));
}

fn calls(report: &mut Report, tools: &Tools) {
    for (name, donates) in [("calls", false), ("calls with donation", true)] {
        let (mut request, mut answer) = (Message::<LONG>::new(), Message::<LONG>::new());
        let mut right = 0;
        for length in 0..=LONG {
            request.0.fill(length as u8);
            answer.0.fill(0);
            let called = if donates {
                port::send_receive_donate(tools.echo, &request, length, &mut answer, 0)
            } else {
                port::send_receive(tools.echo, &request, length, &mut answer, 0)
            };
            let bytes = &answer.0[..length];
            let same = bytes.iter().all(|byte| *byte == (length as u8).wrapping_add(1));
            right += usize::from(called.map(|received| received.length) == Ok(length) && same);
        }
        report.equal(name, right, LONG + 1);
    }
    let (request, mut small) = (Message::<64>::new(), Message::<8>::new());
    let now = call::timer_now(tools.clock).unwrap_or(0);
    let called = port::send_receive(tools.echo, &request, 64, &mut small, now + 100 * MILLISECOND);
    let ended = called.map(|received| received.length) == Err(Error::NoSpace);
    let same = small.0 == [0; 8];
    report.check(
        "a reply that is too long is not stored, and ends the call",
        ended && same,
    );
    let delivered = port::deliver(tools.echo, &request, 0, 0);
    report.equal("a message with an empty answer is delivered", delivered, Ok(()));
}

/// Returns the capability that came with a reply: to signal events of the server.
fn capabilities(report: &mut Report, tools: &Tools) -> Option<Handle> {
    let (mut request, mut answer) = (Message::<8>::new(), Message::<8>::new());
    request.0[0] = 0xFF;
    let given = port::send_receive(tools.echo, &request, 1, &mut answer, 0);
    let Ok(Received {
        capability: Some(events),
        ..
    }) = given
    else {
        report.equal("a capability comes with the reply", given.map(|_| ()), Ok(()));
        return None;
    };
    let found = call::capability_inspect(events);
    report.equal(
        "a capability comes with the reply",
        found,
        Ok((ObjectKind::EventGate, Rights::WRITE)),
    );
    report.equal("it works", call::event_signal(events, 0x42), Ok(()));
    let more = call::event_poll(events);
    report.equal("but gives no more", more, Err(Error::NoRight));
    request.0[0] = 0xFE;
    let told = port::send_receive(tools.echo, &request, 1, &mut answer, 0);
    report.equal(
        "the other side is asked",
        told.map(|received| received.length),
        Ok(1),
    );
    let own = port::send(tools.mailbox, &request, 1, Some((tools.clock, Rights::READ)));
    report.equal(
        "a port without the right to grant takes none",
        own,
        Err(Error::NoRight),
    );
    Some(events)
}

/// Sends to a server that waits for two ports and for signals, in one call.
fn several(report: &mut Report, tools: &Tools, gate: Handle) {
    let (mut message, mut answer) = (Message::<8>::new(), Message::<8>::new());
    message.0[0] = 0xFD;
    let told = port::send_receive(tools.echo, &message, 1, &mut answer, 0);
    report.check("the server goes to its gate", told.is_ok());
    let (mut sent, mut answered) = (0, 0);
    for round in 0..ROUNDS {
        for _ in 0..ORDERS {
            message.0[0] = sent;
            sent += u8::from(port::send(tools.orders, &message, 1, None).is_ok());
        }
        let _raised = call::event_signal(gate, SIGNALS.into());
        message.0[0] = round;
        let called = if round % 2 == 0 {
            port::send_receive(tools.echo, &message, 1, &mut answer, 0)
        } else {
            port::send_receive_donate(tools.echo, &message, 1, &mut answer, 0)
        };
        answered += u8::from(called.is_ok() && answer.0[0] == round + 1);
    }
    report.equal("a server at its gate answers each call", answered, ROUNDS);
    message.0[0] = 0xFC;
    let _told = port::send_receive(tools.echo, &message, 1, &mut answer, 0);
    let [orders, events, at_once, ..] = answer.0;
    report.equal(
        "it has every message of the other port, in order",
        orders,
        ROUNDS * ORDERS,
    );
    report.equal("both ports raise their events", events, OF_PORTS | SIGNALS);
    println!("events of one wait: {at_once:#x}");
}
