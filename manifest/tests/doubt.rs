// SPDX-License-Identifier: Apache-2.0
//! Declarations that others can break: whose verdicts say so, and where a policy bounds the delay all the same.

mod support;

use std::path::Path;

use bulkhead_manifest::timing::{self, PcpuTiming};
use bulkhead_manifest::{System, load_text};

/// Three vCPUs of a pCPU, the most important first. `high` declares little, and others may break that.
const MANIFEST: &str = r##"
board = "qemu-virt-aarch64"
#system

[partition.high]
kind = "task"
image = "@guests/hello-task"
memory = "64K"
vcpus = [{ pcpu = 0, priority = 20 }]
#high
[partition.high.capabilities]
clock = { timer = true }
#held-by-high
[partition.high.demand]
tasks = [{ name = "rare", period = "10ms", wcet = "40us"#waits }]

[partition.loop]
kind = "task"
image = "@guests/hello-task"
memory = "64K"
vcpus = [{ pcpu = 0, priority = 10 }]
[partition.loop.capabilities]
clock = { timer = true }
[partition.loop.demand]
tasks = [{ name = "loop", period = "1ms", wcet = "320us" }]

[partition.low]
kind = "task"
image = "@guests/hello-task"
memory = "64K"
vcpus = [{ pcpu = 0, priority = 5 }]
[partition.low.capabilities]
clock = { timer = true }
#held-by-low
"##;

/// Returns the system of the manifest with these texts in the place of its marks.
fn system(marks: &[(&str, &str)]) -> System {
    let mut text = MANIFEST.to_owned();
    for (mark, replacement) in marks {
        assert!(text.contains(mark), "{mark}");
        text = text.replace(mark, replacement);
    }
    let text = text.replace("#waits", "");
    let path = support::root().join("tests/config-bad/doubt.toml");
    load_text(Path::new(&path), &text, &support::resolve).unwrap_or_else(|report| panic!("{report}"))
}

/// Returns the delays that are not proved, as `check` says them.
fn delays(system: &System) -> Vec<String> {
    let delays = timing::delays(system, &timing::pcpus(system)).into_iter();
    let line = delays.map(|delay| {
        let names: Vec<_> = delay.delayed.into_iter().map(|(_, name)| name).collect();
        format!("{} {}", names.join(", "), delay.cause)
    });
    line.collect()
}

fn bound(system: &System, slot: usize) -> u64 {
    let pcpu: PcpuTiming = timing::pcpus(system).remove(0);
    let verdicts = pcpu.verdicts();
    let verdict = verdicts.iter().find(|verdict| verdict.slot == slot);
    verdict
        .expect("the slot declares a task")
        .bound
        .expect("it is in time")
}

const LOCK: [(&str, &str); 3] = [
    ("#system", "[lock.table]"),
    ("#held-by-high", "table = { lock = \"table\" }"),
    ("#held-by-low", "table = { lock = \"table\" }"),
];

#[test]
fn an_owner_of_a_lock_may_delay_all_below_the_one_who_waits() {
    assert_eq!(delays(&system(&[])), [""; 0]);
    assert_eq!(
        delays(&system(&LOCK)),
        ["loop in the place of `high`, while and after `high` waits for the lock `table`"]
    );
}

#[test]
fn a_server_may_delay_all_below_its_caller() {
    let calls = [
        ("#system", "[port.requests]"),
        (
            "#held-by-high",
            "out = { port = \"requests\", rights = [\"write\"] }",
        ),
        (
            "#held-by-low",
            "in = { port = \"requests\", rights = [\"read\"] }",
        ),
    ];
    assert_eq!(
        delays(&system(&calls)),
        ["loop in the place of `high`, while and after `high` waits for an answer to a call by `out`"]
    );
}

#[test]
fn a_declared_hold_is_in_the_bounds_of_all_below() {
    let [_, high, low] = LOCK;
    let declared = |hold: &str| {
        let lock = format!("[lock.table]\nhold = \"{hold}\"");
        system(&[
            ("#system", &lock),
            ("#waits", ", waits = [{ at = \"table\" }]"),
            high,
            low,
        ])
    };
    let (short, long) = (declared("100us"), declared("300us"));
    assert_eq!(delays(&short), [""; 0]);
    assert_eq!(bound(&long, 1) - bound(&short, 1), 200_000);
    let never = system(&[
        LOCK[0],
        ("#waits", ", waits = [{ at = \"table\", times = 0 }]"),
        high,
        low,
    ]);
    assert_eq!(delays(&never), [""; 0]);
    assert_eq!(bound(&never, 1), bound(&system(&[]), 1));
}

#[test]
fn a_budget_or_a_domain_bounds_what_others_do_in_a_place() {
    let budget = (
        "pcpu = 0, priority = 20 }",
        "pcpu = 0, priority = 20, budget = \"200us\", period = \"10ms\" }",
    );
    let [lock, high, low] = LOCK;
    let with_budget = system(&[lock, high, low, budget]);
    assert_eq!(delays(&with_budget), [""; 0]);
    // The bound does not rely on the declaration: the budget is 160 us more.
    assert!(bound(&with_budget, 1) > bound(&system(&[]), 1) + 160_000);
    let domains = [
        (
            "#system",
            "[lock.table]\n[pcpu.0]\npolicy = \"domains\"\n[pcpu.0.domain.first]\nbudget = \"100us\"\n\
             [pcpu.0.domain.own]\nbudget = \"500us\"\n[pcpu.0.domain.others]\nbudget = \"100us\"",
        ),
        ("priority = 20 }", "priority = 20, domain = \"others\" }"),
        ("priority = 10 }", "priority = 10, domain = \"own\" }"),
        ("priority = 5 }", "priority = 5, domain = \"others\" }"),
        high,
        low,
        ("period = \"1ms\"", "period = \"4ms\""),
    ];
    assert_eq!(delays(&system(&domains)), [""; 0]);
}

#[test]
fn restarts_and_their_loads_may_delay_all_below() {
    let boss = [(
        "#held-by-low",
        "victim = { partition = \"high\", rights = [\"control\"] }",
    )];
    assert_eq!(
        delays(&system(&boss)),
        ["loop by restarts of `high` and their loads: `low`"]
    );
    for action in ["restart", "restart-warm"] {
        let health = format!("health = {{ memory = \"{action}\" }}");
        assert_eq!(
            delays(&system(&[("#high", &health)])),
            [format!(
                "loop by restarts of `high` and their loads: health.memory = \"{action}\""
            )]
        );
    }
    // A watchdog restarts unless the manifest says otherwise.
    let watched = [("#high", "watchdog = \"20ms\"")];
    assert_eq!(
        delays(&system(&watched)),
        ["loop by restarts of `high` and their loads: health.watchdog = \"restart\""]
    );
    let logged = [("#high", "watchdog = \"20ms\"\nhealth = { watchdog = \"log\" }")];
    assert_eq!(delays(&system(&logged)), [""; 0]);
}

#[test]
fn signals_may_give_more_to_do_than_is_declared() {
    let gate = (
        "#held-by-high",
        "events = { event-gate = \"high\", rights = [\"read\"] }",
    );
    let signals = (
        "#held-by-low",
        "victim = { event-gate = \"high\", rights = [\"write\"] }",
    );
    assert_eq!(delays(&system(&[gate])), [""; 0]);
    assert_eq!(
        delays(&system(&[gate, signals])),
        ["loop by `high`, which others may give more to do than it declares: `low`"]
    );
    // Who never waits for an event does not come more often.
    let never = ("#waits", ", waits = [{ at = \"events\", times = 0 }]");
    assert_eq!(delays(&system(&[gate, signals, never])), [""; 0]);
}

#[test]
fn the_space_of_output_is_that_of_the_kernel() {
    let console = std::fs::read_to_string(support::root().join("kernel/src/console.rs"));
    let console = console.expect("the kernel has consoles");
    let line = console
        .lines()
        .find(|line| line.contains("const DRAIN_PERIOD_NS"));
    let digits = line.and_then(|line| line.split('=').nth(1)).unwrap_or_default();
    let space: String = digits.chars().filter(char::is_ascii_digit).collect();
    assert_eq!(space.parse(), Ok(bulkhead_manifest::board::OUTPUT_SPACE_NS));
}
