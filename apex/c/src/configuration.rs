// SPDX-License-Identifier: Apache-2.0
//! The start of a partition in C, from its constant `APEX_CONFIGURATION` to its function `APEX_MAIN`.

use crate::memory;
use bulkhead_apex::limits::{MAX_QUEUING_PORTS, MAX_SAMPLING_PORTS};
use bulkhead_apex::{
    Configuration, ErrorCode, HmAction, MAX_NAME_LENGTH, Name, PortDirection, PortFacts, PortKind, Time, task,
};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;
use core::cell::UnsafeCell;

bulkhead_guest::task_main!(main);

/// Ports of a partition at most.
const PORTS: usize = MAX_SAMPLING_PORTS + MAX_QUEUING_PORTS;
/// Schedules of a module at most, as the partition knows them.
const SCHEDULES: usize = 16;

/// `APEX_PORT_TYPE`.
#[repr(C)]
struct Port {
    name: [u8; MAX_NAME_LENGTH],
    direction: u32,
    size: u32,
    /// 0 for a sampling port.
    depth: u32,
    refresh: Time,
}

/// `APEX_CONFIGURATION_TYPE`.
#[repr(C)]
struct Given {
    identifier: i64,
    period: Time,
    duration: Time,
    ports: *const Port,
    schedules: *const [u8; MAX_NAME_LENGTH],
    port_count: u32,
    schedule_count: u32,
    health: [u32; ErrorCode::COUNT],
    times: *const [Time; 2],
}

// SAFETY: no code writes it: it is a constant of the partition in C.
unsafe impl Sync for Given {}

unsafe extern "C" {
    static APEX_CONFIGURATION: Given;
    safe fn APEX_MAIN();
}

/// The configuration as the services read it.
struct Facts {
    ports: [PortFacts; PORTS],
    schedules: [Name; SCHEDULES],
    times: [(Time, Time); SCHEDULES],
}

struct Store(UnsafeCell<Facts>);

// SAFETY: `main` alone uses it, once, before there is a process.
unsafe impl Sync for Store {}

static FACTS: Store = Store(UnsafeCell::new(Facts {
    ports: [PortFacts {
        name: Name::new(""),
        direction: PortDirection::Source,
        size: 0,
        kind: PortKind::Queuing { depth: 0 },
    }; PORTS],
    schedules: [Name::new(""); SCHEDULES],
    times: [(0, 0); SCHEDULES],
}));

fn main(page: StartupPage<'static>) {
    // SAFETY: the partition in C defines the constant with the layout of the header (`Given`).
    let given = unsafe { &APEX_CONFIGURATION };
    // SAFETY: `main` runs once, so this is the only reference.
    let facts = unsafe { &mut *FACTS.0.get() };
    let ports = memory::table(given.ports, given.port_count);
    let schedules = memory::table(given.schedules, given.schedule_count);
    if ports.len() > PORTS || schedules.len() > SCHEDULES {
        println!("apex: the configuration has more than {PORTS} ports or {SCHEDULES} schedules");
        return;
    }
    for (to, from) in facts.ports.iter_mut().zip(ports) {
        *to = facts_of(from);
    }
    for (to, from) in facts.schedules.iter_mut().zip(schedules) {
        *to = Name(*from);
    }
    let times: &[[Time; 2]] = if given.times.is_null() {
        &[]
    } else {
        memory::table(given.times, given.schedule_count)
    };
    for (to, [period, duration]) in facts.times.iter_mut().zip(times) {
        *to = (*period, *duration);
    }
    let configuration = Configuration {
        identifier: given.identifier,
        period: given.period,
        duration: given.duration,
        ports: &facts.ports[..ports.len()],
        schedules: &facts.schedules[..schedules.len()],
        times: &facts.times[..times.len()],
        health: given.health.map(action),
    };
    task::run(page, &configuration, initialise);
}

fn initialise() {
    APEX_MAIN();
}

fn facts_of(port: &Port) -> PortFacts {
    PortFacts {
        name: Name(port.name),
        direction: match port.direction {
            0 => PortDirection::Source,
            _ => PortDirection::Destination,
        },
        size: port.size as usize,
        kind: match port.depth {
            0 => PortKind::Sampling {
                refresh: port.refresh,
            },
            depth => PortKind::Queuing {
                depth: depth as usize,
            },
        },
    }
}

/// Returns the action with this number. A number that there is not ends the partition.
fn action(number: u32) -> HmAction {
    match number {
        0 => HmAction::Ignore,
        2 => HmAction::ColdStart,
        3 => HmAction::WarmStart,
        _ => HmAction::Idle,
    }
}
