// SPDX-License-Identifier: Apache-2.0
//! A task that tests the rights of a capability's holder: life cycle of another partition, refused rights,
//! derive, grant and revoke, events and their time limits.
//!
//! It needs these capabilities: `ward` (a partition that goes on running by itself; read, control and grant),
//! `events` (its own event gate; read, write) connected to the ward by `watch`, `clock` (timer), and a
//! console. With `theirs` (write) and `silent` (no write) for event gates of others, it tests signals to
//! those gates.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_guest::abi::hypercall::ABI_VERSION;
use bulkhead_guest::abi::status::state_change_event;
use bulkhead_guest::abi::{Error, ObjectKind, Operation, PartitionState, Rights};
use bulkhead_guest::hypercall::{self as call, Handle, SELF};
use bulkhead_guest::println;
use bulkhead_guest::report::Report;
use bulkhead_guest::startup_page::{Capability, StartupPage};

bulkhead_guest::task_main!(main);

/// The longest time that the ward may take to change its state, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
/// Pause between two looks at it.
const ROUND: u64 = 1_000_000;
/// Slots of its capability space.
const SLOTS: u32 = 64;
/// An event no partition number uses in a test system.
const OWN_EVENT: u64 = 1 << 40;

/// The capabilities of its manifest.
struct Tools {
    ward: Handle,
    ward_event: u64,
    events: Handle,
    clock: Handle,
}

fn main(page: StartupPage<'static>) {
    let find = |name: &str| -> Option<Capability<'static>> { page.find(name) };
    let (Some(ward), Some(events), Some(clock)) = (find("ward"), find("events"), find("clock")) else {
        println!("FAIL capabilities ward, events and clock: missing");
        return;
    };
    let tools = Tools {
        ward: Handle(ward.index),
        ward_event: state_change_event(ward.object as u8),
        events: Handle(events.index),
        clock: Handle(clock.index),
    };
    let mut report = Report::new();
    basics(&mut report, &tools);
    time(&mut report, &tools);
    own_events(&mut report, &tools);
    others_events(&mut report, &page);
    refusals(&mut report, &tools);
    derivation(&mut report, &tools);
    grants(&mut report, &tools);
    life_cycle(&mut report, &tools);
    report.finish();
}

fn basics(report: &mut Report, tools: &Tools) {
    report.equal("version", call::version(), Ok(ABI_VERSION));
    report.equal("null", call::null(), Ok(()));
    let own = call::partition_status(SELF).map(|status| status.state);
    report.equal("own state", own, Ok(PartitionState::Running));
    let kind = |handle| call::capability_inspect(handle).map(|(kind, _)| kind);
    report.equal("kind of the ward", kind(tools.ward), Ok(ObjectKind::Partition));
    report.equal("kind of the gate", kind(tools.events), Ok(ObjectKind::EventGate));
    report.equal("kind of the clock", kind(tools.clock), Ok(ObjectKind::Timer));
    report.equal(
        "own rights",
        call::capability_inspect(SELF),
        Ok((ObjectKind::Partition, Rights::ALL)),
    );
}

fn time(report: &mut Report, tools: &Tools) {
    let start = call::timer_now(tools.clock).unwrap_or(0);
    let wake = start + 5 * ROUND;
    report.equal("sleep", call::timer_sleep(tools.clock, wake), Ok(()));
    let end = call::timer_now(tools.clock).unwrap_or(0);
    report.check("sleep ends after its time", end >= wake);
    report.equal(
        "sleep until a time that has passed",
        call::timer_sleep(tools.clock, start),
        Ok(()),
    );
    let limit = end + 5 * ROUND;
    call::event_poll(tools.events).ok();
    report.equal(
        "wait without an event",
        call::event_wait(tools.events, limit),
        Err(Error::TimedOut),
    );
    report.check(
        "wait ends after its time",
        call::timer_now(tools.clock).is_ok_and(|now| now >= limit),
    );
}

fn own_events(report: &mut Report, tools: &Tools) {
    report.equal("signal", call::event_signal(tools.events, OWN_EVENT), Ok(()));
    report.equal(
        "signal twice",
        call::event_signal(tools.events, OWN_EVENT | 1 << 41),
        Ok(()),
    );
    report.equal(
        "wait with events",
        call::event_wait(tools.events, 0),
        Ok(OWN_EVENT | 1 << 41),
    );
    report.equal("events are consumed", call::event_poll(tools.events), Ok(0));
}

/// Signals events to the gates of others: with the right to, without the right, and without a capability.
fn others_events(report: &mut Report, page: &StartupPage<'static>) {
    let (Some(theirs), Some(silent)) = (page.find("theirs"), page.find("silent")) else {
        return;
    };
    let (theirs, silent) = (Handle(theirs.index), Handle(silent.index));
    report.equal(
        "signal to a gate without the right",
        call::event_signal(silent, OWN_EVENT),
        Err(Error::NoRight),
    );
    let named = [theirs.0, silent.0];
    let others = (0..SLOTS).filter(|slot| !named.contains(slot)).map(Handle);
    let is_gate = |slot: &Handle| matches!(call::capability_inspect(*slot), Ok((ObjectKind::EventGate, _)));
    // Its own gate is the only other one that it can name.
    report.equal("gates in all other slots", others.filter(is_gate).count(), 1);
    for slot in [SLOTS - 1, SLOTS, i32::MAX.unsigned_abs()] {
        report.equal(
            "signal to a gate without a capability",
            call::event_signal(Handle(slot), OWN_EVENT),
            Err(Error::NoCapability),
        );
    }
    report.equal(
        "signal to a gate with the right",
        call::event_signal(theirs, OWN_EVENT),
        Ok(()),
    );
    report.equal("wait at it", call::event_poll(theirs), Err(Error::NoRight));
}

fn refusals(report: &mut Report, tools: &Tools) {
    let no_operation = call::raw(0xC600_7FFF, [0; 6]).0[0].cast_signed();
    report.equal(
        "no operation",
        Error::from_code(no_operation),
        Some(Error::NotSupported),
    );
    report.equal(
        "empty slot",
        call::partition_status(Handle(63)),
        Err(Error::NoCapability),
    );
    report.equal(
        "slot out of range",
        call::partition_status(Handle(i32::MAX.unsigned_abs())),
        Err(Error::NoCapability),
    );
    let wide = call::call(Operation::PartitionStatus, [1 << 32, 0, 0, 0, 0, 0]);
    report.equal("slot beyond 32 bits", wide, Err(Error::NoCapability));
    report.equal(
        "gate as a partition",
        call::partition_status(tools.events),
        Err(Error::WrongKind),
    );
    report.equal(
        "partition as a gate",
        call::event_poll(tools.ward),
        Err(Error::WrongKind),
    );
    report.equal(
        "partition as a clock",
        call::timer_now(tools.ward),
        Err(Error::WrongKind),
    );
    report.equal(
        "start of what runs",
        call::partition_start(SELF),
        Err(Error::WrongState),
    );
    let unknown_right = call::capability_derive(tools.ward, Rights(0x80));
    report.check("derive with a right there is not", unknown_right.is_err());
}

fn derivation(report: &mut Report, tools: &Tools) {
    let Ok(reader) = call::capability_derive(tools.ward, Rights::READ) else {
        report.check("derive", false);
        return;
    };
    report.equal(
        "derived rights",
        call::capability_inspect(reader),
        Ok((ObjectKind::Partition, Rights::READ)),
    );
    report.check("derived capability works", call::partition_status(reader).is_ok());
    report.equal(
        "stop without the right",
        call::partition_stop(reader),
        Err(Error::NoRight),
    );
    report.equal(
        "restart without the right",
        call::partition_restart(reader),
        Err(Error::NoRight),
    );
    let more = call::capability_derive(reader, Rights::READ.union(Rights::CONTROL));
    report.check("rights never grow", more.is_err());
    let second = call::capability_derive(reader, Rights::READ);
    report.check("derive from a derived one", second.is_ok());
    report.equal("revoke", call::capability_revoke(tools.ward), Ok(()));
    report.equal(
        "revoked child",
        call::partition_status(reader),
        Err(Error::NoCapability),
    );
    let grandchild = second.unwrap_or(reader);
    report.equal(
        "revoked grandchild",
        call::partition_status(grandchild),
        Err(Error::NoCapability),
    );
    report.check(
        "the original is still there",
        call::partition_status(tools.ward).is_ok(),
    );
    let fresh = call::capability_derive(tools.ward, Rights::READ);
    report.equal("delete", fresh.and_then(call::capability_delete), Ok(()));
    space_is_finite(report, tools);
}

/// Checks that a full space is refused as full, and is as before after a revoke.
fn space_is_finite(report: &mut Report, tools: &Tools) {
    let mut made = 0;
    let error = loop {
        match call::capability_derive(tools.ward, Rights::READ) {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
        if made > 64 {
            break Error::NotSupported;
        }
    };
    report.equal("a full space", error, Error::NoSpace);
    report.equal("revoke of many", call::capability_revoke(tools.ward), Ok(()));
    let again = call::capability_derive(tools.ward, Rights::READ);
    report.equal("room again", again.and_then(call::capability_delete), Ok(()));
}

fn grants(report: &mut Report, tools: &Tools) {
    let granted = call::capability_grant(tools.ward, tools.clock, Rights::READ);
    report.check("grant", granted.is_ok());
    let more = call::capability_grant(tools.ward, tools.clock, Rights::ALL);
    report.check("grant of more than it has", more.is_err());
    report.equal(
        "revoke of the grant",
        call::capability_revoke(tools.clock),
        Ok(()),
    );
    let Ok(reader) = call::capability_derive(tools.ward, Rights::READ) else {
        report.check("derive for grants", false);
        return;
    };
    let refused = call::capability_grant(reader, tools.clock, Rights::READ);
    report.equal("grant without the right", refused, Err(Error::NoRight));
    report.equal("delete the reader", call::capability_delete(reader), Ok(()));
}

/// Waits until the ward is in one of `states`; whether it got there.
fn reaches(tools: &Tools, states: &[PartitionState]) -> bool {
    let end = call::timer_now(tools.clock).unwrap_or(0) + PATIENCE;
    loop {
        if call::partition_status(tools.ward).is_ok_and(|status| states.contains(&status.state)) {
            return true;
        }
        match call::timer_now(tools.clock) {
            Ok(now) if now < end => {
                let _ = call::timer_sleep(tools.clock, now + ROUND);
            }
            _ => return false,
        }
    }
}

fn life_cycle(report: &mut Report, tools: &Tools) {
    report.check("the ward runs", reaches(tools, &[PartitionState::Running]));
    let before = call::partition_status(tools.ward).map_or(0, |status| status.restarts);
    call::event_poll(tools.events).ok();
    report.equal("stop", call::partition_stop(tools.ward), Ok(()));
    let limit = call::timer_now(tools.clock).unwrap_or(0) + PATIENCE;
    let seen = call::event_wait(tools.events, limit);
    report.check(
        "stopping is an event",
        seen.is_ok_and(|events| events & tools.ward_event != 0),
    );
    report.check("it is stopped", reaches(tools, &[PartitionState::Stopped]));
    report.equal("start", call::partition_start(tools.ward), Ok(()));
    report.check("it runs again", reaches(tools, &[PartitionState::Running]));
    report.equal(
        "start of a running one",
        call::partition_start(tools.ward),
        Err(Error::WrongState),
    );
    report.equal("restart", call::partition_restart(tools.ward), Ok(()));
    report.check("it runs once more", reaches(tools, &[PartitionState::Running]));
    let after = call::partition_status(tools.ward).map_or(0, |status| status.restarts);
    report.check("restarts are counted", after > before);
    for _ in 0..5 {
        let _ = call::partition_stop(tools.ward);
        let _ = call::partition_start(tools.ward);
        let _ = call::partition_restart(tools.ward);
    }
    // Some of the calls above came while a change was under way and may have been refused. This call is the
    // last word.
    let settled = reaches(tools, &[PartitionState::Stopped, PartitionState::Running]);
    report.check("it settles after a storm of requests", settled);
}
