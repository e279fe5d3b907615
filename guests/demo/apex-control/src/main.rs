// SPDX-License-Identifier: Apache-2.0
//! An ARINC 653 partition that controls: a periodic process reads what the sensor wrote last, another process
//! waits for its messages, a third one misses a deadline, and the error handler takes that.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_apex::task as apex;
use bulkhead_apex::{
    Attributes, Configuration, Deadline, ErrorCode, HmAction, INFINITE_TIME_VALUE, Name, OperatingMode,
    PortDirection, PortFacts, PortKind, QueueSize, QueuingDiscipline, Time, Validity,
};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;

bulkhead_guest::task_main!(main);

const MILLISECOND: Time = 1_000_000;
const PERIOD: Time = 20 * MILLISECOND;
/// Releases of the control law between two lines.
const REPORT: u64 = 10;
const POSITION: Name = Name::new("position");
const EVENTS: Name = Name::new("events");
const EVENTS_SIZE: QueueSize = QueueSize {
    message: 32,
    messages: 4,
};

const PORTS: &[PortFacts] = &[
    PortFacts {
        name: POSITION,
        direction: PortDirection::Destination,
        size: 8,
        kind: PortKind::Sampling { refresh: PERIOD },
    },
    PortFacts {
        name: EVENTS,
        direction: PortDirection::Destination,
        size: 32,
        kind: PortKind::Queuing { depth: 4 },
    },
];

const CONFIGURATION: Configuration = Configuration {
    identifier: 2,
    period: PERIOD,
    duration: 4 * MILLISECOND,
    ports: PORTS,
    schedules: &[],
    times: &[],
    health: [HmAction::ColdStart; ErrorCode::COUNT],
};

fn main(page: StartupPage<'static>) {
    apex::run(page, &CONFIGURATION, initialise);
}

fn initialise() {
    let law = Attributes {
        name: Name::new("law"),
        entry_point: 0,
        stack_size: 8192,
        base_priority: 50,
        period: PERIOD,
        time_capacity: PERIOD,
        deadline: Deadline::Hard,
    };
    let listener = Attributes {
        name: Name::new("listener"),
        base_priority: 40,
        period: INFINITE_TIME_VALUE,
        time_capacity: INFINITE_TIME_VALUE,
        ..law
    };
    let late = Attributes {
        name: Name::new("late"),
        base_priority: 10,
        period: 5 * PERIOD,
        time_capacity: 2 * MILLISECOND,
        deadline: Deadline::Soft,
        ..law
    };
    let made = [
        apex::create_sampling_port(POSITION, 8, PortDirection::Destination, PERIOD).map(drop),
        apex::create_queuing_port(
            EVENTS,
            EVENTS_SIZE,
            PortDirection::Destination,
            QueuingDiscipline::Fifo,
        )
        .map(drop),
        apex::create_error_handler(handler_entry, 8192),
        apex::create_process(&law, law_entry).and_then(apex::start),
        apex::create_process(&listener, listener_entry).and_then(apex::start),
        apex::create_process(&late, late_entry).and_then(apex::start),
    ];
    println!("control: {made:?}");
    let refused = apex::set_partition_mode(OperatingMode::Normal);
    println!("control: no normal mode: {refused:?}");
}

extern "C" fn law_entry() {
    let Ok(position) = apex::get_sampling_port_id(&POSITION) else {
        return;
    };
    let (mut last, mut valid) = (0, 0);
    for number in 0_u64.. {
        let mut bytes = [0; 8];
        match apex::read_sampling_message(position, &mut bytes) {
            Ok((Validity::Valid, 8)) => {
                valid += 1;
                last = u64::from_le_bytes(bytes);
            }
            Ok((Validity::Invalid, _)) => println!("control: an old position"),
            other => println!("control: {other:?}"),
        }
        if number % REPORT == REPORT - 1 {
            println!("control: release {number}, {valid} valid positions, the last is {last}");
        }
        let waited = apex::periodic_wait();
        if waited.is_err() {
            println!("control: {waited:?}");
        }
    }
}

extern "C" fn listener_entry() {
    let Ok(events) = apex::get_queuing_port_id(&EVENTS) else {
        return;
    };
    for number in 1.. {
        let mut bytes = [0; 32];
        let received = apex::receive_queuing_message(events, &mut bytes, INFINITE_TIME_VALUE);
        if let Ok(length) = received {
            let text = core::str::from_utf8(&bytes[..length]).unwrap_or("?");
            if number % 5 == 0 {
                println!("control: message {number}: {text}");
            }
        } else {
            println!("control: {received:?}");
        }
    }
}

/// Computes beyond its deadline.
extern "C" fn late_entry() {
    loop {
        let begin = apex::get_time();
        while apex::get_time() - begin < 4 * MILLISECOND {
            core::hint::spin_loop();
        }
        let waited = apex::periodic_wait();
        if waited.is_err() {
            println!("control: {waited:?}");
        }
    }
}

extern "C" fn handler_entry() {
    while let Ok(error) = apex::get_error_status() {
        println!(
            "control: error handler: {:?} of process {}",
            error.code, error.process
        );
    }
    apex::stop_self();
}
