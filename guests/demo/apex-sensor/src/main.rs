// SPDX-License-Identifier: Apache-2.0
//! An ARINC 653 partition that measures: a periodic process samples and sends, and a process of low priority
//! computes in all the time that is left.
//!
//! It prints, once per [`REPORT`] samples, how late its releases were and that the background was
//! interrupted.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use bulkhead_apex::task as apex;
use bulkhead_apex::{
    Attributes, Configuration, Deadline, ErrorCode, HmAction, INFINITE_TIME_VALUE, Name, OperatingMode,
    PortDirection, PortFacts, PortKind, QueueSize, QueuingDiscipline, Time,
};
use bulkhead_guest::println;
use bulkhead_guest::startup_page::StartupPage;
use core::sync::atomic::{AtomicU32, Ordering};

bulkhead_guest::task_main!(main);

const MILLISECOND: Time = 1_000_000;
const PERIOD: Time = 10 * MILLISECOND;
/// Samples between two lines.
const REPORT: u64 = 20;
/// Samples between two messages of the queuing port.
const EVENT: u64 = 4;
const POSITION: Name = Name::new("position");
const EVENTS: Name = Name::new("events");
const EVENTS_SIZE: QueueSize = QueueSize {
    message: 32,
    messages: 4,
};

const PORTS: &[PortFacts] = &[
    PortFacts {
        name: POSITION,
        direction: PortDirection::Source,
        size: 8,
        kind: PortKind::Sampling { refresh: 2 * PERIOD },
    },
    PortFacts {
        name: EVENTS,
        direction: PortDirection::Source,
        size: 32,
        kind: PortKind::Queuing { depth: 4 },
    },
];

const CONFIGURATION: Configuration = Configuration {
    identifier: 1,
    period: PERIOD,
    duration: 2 * MILLISECOND,
    ports: PORTS,
    schedules: &[],
    times: &[],
    health: [HmAction::ColdStart; ErrorCode::COUNT],
};

/// Turns of the process that computes.
static TURNS: AtomicU32 = AtomicU32::new(0);

fn main(page: StartupPage<'static>) {
    apex::run(page, &CONFIGURATION, initialise);
}

fn initialise() {
    let sample = Attributes {
        name: Name::new("sample"),
        entry_point: 0,
        stack_size: 8192,
        base_priority: 50,
        period: PERIOD,
        time_capacity: PERIOD,
        deadline: Deadline::Hard,
    };
    let background = Attributes {
        name: Name::new("background"),
        base_priority: 1,
        period: INFINITE_TIME_VALUE,
        time_capacity: INFINITE_TIME_VALUE,
        ..sample
    };
    let made = [
        apex::create_sampling_port(POSITION, 8, PortDirection::Source, 2 * PERIOD).map(drop),
        apex::create_queuing_port(
            EVENTS,
            EVENTS_SIZE,
            PortDirection::Source,
            QueuingDiscipline::Fifo,
        )
        .map(drop),
        apex::create_process(&sample, sample_entry).and_then(apex::start),
        apex::create_process(&background, background_entry).and_then(apex::start),
    ];
    println!(
        "sensor: {made:?}, {:?}",
        apex::get_partition_status().start_condition
    );
    let refused = apex::set_partition_mode(OperatingMode::Normal);
    println!("sensor: no normal mode: {refused:?}");
}

extern "C" fn background_entry() {
    loop {
        TURNS.store(TURNS.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

extern "C" fn sample_entry() {
    let (Ok(position), Ok(events)) = (
        apex::get_sampling_port_id(&POSITION),
        apex::get_queuing_port_id(&EVENTS),
    ) else {
        println!("sensor: the ports are lost");
        return;
    };
    let first = apex::get_time();
    let (mut worst, mut turns) = (0, 0);
    for number in 0_u64.. {
        let expected = first + number as Time * PERIOD;
        worst = worst.max((apex::get_time() - expected).abs());
        let written = apex::write_sampling_message(position, &number.to_le_bytes());
        if written.is_err() {
            println!("sensor: {written:?}");
        }
        if number % EVENT == EVENT - 1 {
            let sent = apex::send_queuing_message(events, b"four samples", 0);
            if sent.is_err() {
                println!("sensor: not sent: {sent:?}");
            }
        }
        if number % REPORT == REPORT - 1 {
            let now = TURNS.load(Ordering::Relaxed);
            let moved = if now == turns { "stands" } else { "goes on" };
            turns = now;
            println!(
                "sensor: sample {number}, releases within {} us, background {moved}",
                worst / 1000 + 1
            );
        }
        let waited = apex::periodic_wait();
        if waited.is_err() {
            println!("sensor: {waited:?}");
        }
    }
}
