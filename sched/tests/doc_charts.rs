// SPDX-License-Identifier: Apache-2.0
//! The charts in `docs/policies/` show the decisions of the policies. Each chart is drawn again here, tick by
//! tick, and looked for in its page, as text and as a picture. (`cargo run -p xtask -- bless` draws the
//! pictures anew.) The example of a policy of one's own is looked for in its page as well.

#[path = "doc_charts/picture.rs"]
mod picture;

use picture::Mark;

use bulkhead_sched::{
    AnyPolicy, Arinc653Parameters, Decision, Domain, DomainsParameters, EdfParameters,
    FixedPriorityParameters, Policy, Schedule, Server, ServerKind, Slot, SlotSet, StopReason, Ticks,
    VcpuParameters, Window,
};

/// The event of a vCPU before a tick.
enum Event {
    Wakes(u8),
    Blocks(u8),
    Asks(u8),
}

fn server(kind: ServerKind, budget: Ticks, period: Ticks) -> Option<Server> {
    Some(Server { budget, period, kind })
}

/// Draws the chart of a page both ways, and looks for both.
fn show(page: &str, mut policy: AnyPolicy, names: &[&str], length: Ticks, events: &[(Ticks, Event)]) {
    let mut rows = vec![String::new(); names.len()];
    let mut marks = Vec::new();
    let mut running: Option<Slot> = None;
    for now in 0..length {
        let due = || events.iter().filter(|(at, _)| *at == now);
        let blocks =
            |slot: Slot| due().any(|(_, event)| matches!(event, Event::Blocks(other) if *other == slot.0));
        if let Some(slot) = running.take() {
            let why = if blocks(slot) {
                StopReason::Blocked
            } else {
                StopReason::Preempted
            };
            policy.stopped(slot, why, 1, now);
        }
        for (_, event) in due() {
            match event {
                Event::Wakes(slot) => {
                    marks.push((Mark::Wakes, *slot, now));
                    policy.ready(Slot(*slot), now);
                }
                Event::Blocks(slot) => policy.withdraw(Slot(*slot), now),
                Event::Asks(schedule) => policy.change_schedule(*schedule, now).unwrap(),
            }
        }
        if let Decision::Run(slot, _) = policy.next(now) {
            running = Some(slot);
        }
        let signals = policy.signals();
        for slot in 0..names.len() as u8 {
            let mut note = |mark, set: SlotSet| {
                if set.0 >> slot & 1 == 1 {
                    marks.push((mark, slot, now));
                }
            };
            note(Mark::Exhausted, signals.exhausted);
            note(Mark::Replenished, signals.replenished);
            note(Mark::Window, signals.window_start);
        }
        for (slot, row) in (0..).zip(&mut rows) {
            row.push(if running == Some(Slot(slot)) { '#' } else { '.' });
        }
    }
    let lines = names
        .iter()
        .zip(&rows)
        .map(|(name, row)| format!("{name:<11}{row}\n"));
    check(page, &lines.collect::<String>());
    check(page, &format!("]({page}.svg)"));
    picture::check(page, &picture::draw(page, names, &rows, &marks));
}

fn check(page: &str, expected: &str) {
    let path = format!("{}/../docs/policies/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(expected), "{page}.md should show\n{expected}");
}

fn all(count: u8) -> Vec<(Ticks, Event)> {
    (0..count).map(|slot| (0, Event::Wakes(slot))).collect()
}

#[test]
fn fixed_priority() {
    let vcpus = [
        VcpuParameters {
            priority: 2,
            server: server(ServerKind::Deferrable, 2, 5),
            ..VcpuParameters::default()
        },
        VcpuParameters {
            priority: 1,
            ..VcpuParameters::default()
        },
    ];
    let policy = AnyPolicy::fixed_priority(&vcpus, FixedPriorityParameters { quantum: 10 }).unwrap();
    show("fixed-priority", policy, &["control", "other"], 17, &all(2));
}

#[test]
fn edf() {
    let vcpu = |server| VcpuParameters {
        server,
        ..VcpuParameters::default()
    };
    let vcpus = [
        vcpu(server(ServerKind::ConstantBandwidth, 1, 3)),
        vcpu(server(ServerKind::ConstantBandwidth, 3, 6)),
        vcpu(None),
    ];
    let policy = AnyPolicy::edf(&vcpus, EdfParameters { quantum: 10 }).unwrap();
    show("edf", policy, &["control", "linux", "rest"], 18, &all(3));
}

#[test]
fn arinc653() {
    let window = |slots, offset, duration| Window {
        slots: SlotSet(slots),
        offset,
        duration,
        period_start: false,
    };
    let parameters = Arinc653Parameters {
        windows: &[window(1, 0, 5), window(2, 5, 10), window(1, 0, 10)],
        schedules: &[
            Schedule {
                frame: 20,
                first_window: 0,
                window_count: 2,
            },
            Schedule {
                frame: 10,
                first_window: 2,
                window_count: 1,
            },
        ],
        initial: 0,
        start: 0,
        quantum: 10,
    };
    let policy = AnyPolicy::arinc653(&[VcpuParameters::default(); 2], parameters).unwrap();
    let mut events = all(2);
    events.push((12, Event::Asks(1)));
    show("arinc653", policy, &["flight", "cabin"], 35, &events);
}

#[test]
fn domains() {
    let vcpus = [
        VcpuParameters {
            priority: 20,
            domain: 0,
            ..VcpuParameters::default()
        },
        VcpuParameters {
            priority: 10,
            domain: 1,
            ..VcpuParameters::default()
        },
        VcpuParameters {
            priority: 5,
            domain: 2,
            ..VcpuParameters::default()
        },
    ];
    let parameters = DomainsParameters {
        domains: &[4, 6, 5].map(|budget| Domain { budget }),
        quantum: 10,
    };
    let policy = AnyPolicy::domains(&vcpus, parameters).unwrap();
    let events = [
        (0, Event::Wakes(1)),
        (0, Event::Wakes(2)),
        (2, Event::Wakes(0)),
        (4, Event::Blocks(0)),
        (16, Event::Blocks(1)),
        (17, Event::Wakes(0)),
        (22, Event::Blocks(0)),
    ];
    show("domains", policy, &["alarm", "flight", "linux"], 30, &events);
}

#[test]
fn the_example_of_your_own_policy_is_the_one_that_is_tested() {
    let sources = [
        (
            "policy",
            include_str!("../../examples/aarch64-own-policy/weighted-turns/src/lib.rs"),
        ),
        ("tests", include_str!("own_policy.rs")),
        ("kernel", include_str!("../../kernel/tests/own_policy.rs")),
    ];
    for (name, source) in sources {
        let (_, rest) = source.split_once(&format!("// ANCHOR: {name}\n")).unwrap();
        let (part, _) = rest.split_once(&format!("// ANCHOR_END: {name}\n")).unwrap();
        check("your-own", part);
    }
}
