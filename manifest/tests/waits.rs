// SPDX-License-Identifier: Apache-2.0
//! Waits that tasks declare: their terms, and why a wait has none.

mod support;

use std::path::Path;

use bulkhead_manifest::{System, load_text, timing};

/// A client and a server with a port, and two takers of a lock. All events of this pCPU cost `EVENT`.
const MANIFEST: &str = r#"
board = "qemu-virt-aarch64"

[port.requests]
depth = 3
service = "10us"

[port.other]

[lock.table]
hold = "20us"

[partition.client]
kind = "vm"
image = "payloads/raw.bin"
memory = "2M"
console = false
vcpus = [{ pcpu = 0, priority = 9 }]
demand.tasks = [{ name = "loop", period = "20ms", wcet = "1ms", waits = [{ at = "server", times = 2 }, { at = "table" }] }]

[partition.client.capabilities]
server = { port = "requests", rights = ["write"] }
table = { lock = "table" }

[partition.server]
kind = "vm"
image = "payloads/raw.bin"
memory = "2M"
console = false
vcpus = [{ pcpu = 0, priority = 5 }]

[partition.server.capabilities]
requests = { port = "requests", rights = ["read"] }

[partition.writer]
kind = "vm"
image = "payloads/raw.bin"
memory = "2M"
console = false
vcpus = [{ pcpu = 0, priority = 7 }]

[partition.writer.capabilities]
table = { lock = "table" }
"#;

/// The capabilities of the writer, at the end of the manifest.
const WRITER: &str = "[partition.writer.capabilities]\ntable = { lock = \"table\" }\n";

/// Returns two events: an interrupt, a decision and a switch each, by the board's `[overheads]`.
fn two_events(system: &System) -> u64 {
    let costs = system
        .board()
        .overheads(1)
        .expect("the board says what they cost");
    2 * (costs.interrupt + costs.decision + costs.switch)
}

/// Returns the manifest with replacements.
fn text(replacements: &[(&str, &str)]) -> String {
    let mut text = MANIFEST.to_owned();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    text
}

/// Returns the system of the manifest with replacements.
fn system(replacements: &[(&str, &str)]) -> System {
    let path = support::root().join("tests/config-bad/waits.toml");
    let system = load_text(Path::new(&path), &text(replacements), &support::resolve);
    system.unwrap_or_else(|report| panic!("{report}"))
}

/// Returns the waits that are in the `wcet` of the client's task.
fn proved(system: &System) -> u64 {
    let pcpus = timing::pcpus(system);
    let client = &pcpus[0].vcpus[0];
    let task = &client.tasks.as_ref().expect("it declares a task")[0];
    assert_eq!(task.task.wcet, 1_000_000 + task.waits);
    task.waits
}

/// Returns the waits that are not proved.
fn not_proved(system: &System) -> Vec<String> {
    let unproved = timing::unproved(system).into_iter();
    unproved.map(|unproved| unproved.wait).collect()
}

#[test]
fn a_call_waits_for_the_port_and_a_lock_for_one_owner() {
    let system = system(&[]);
    let events = two_events(&system);
    let call = (3 + 1) * (10_000 + events);
    assert_eq!(proved(&system), 2 * call + 20_000 + events);
    assert_eq!(not_proved(&system), [""; 0]);
}

#[test]
fn equals_have_the_lock_first_and_the_more_important_do_not_count() {
    let priority = |priority| ("priority = 7", priority);
    for (priority, owners) in [(priority("priority = 9"), 1), (priority("priority = 12"), 0)] {
        let system = system(&[
            priority,
            (
                "{ at = \"server\", times = 2 }, ",
                "{ at = \"server\", times = 0 }, ",
            ),
        ]);
        assert_eq!(
            proved(&system),
            owners * (20_000 + two_events(&system)),
            "{priority:?}"
        );
        assert_eq!(not_proved(&system), [""; 0]);
    }
}

/// A change of the manifest, and why a wait has no term then.
const NO_TERM: &[((&str, &str), &str)] = &[
    (("service = \"10us\"", ""), "port `requests` has no `service`"),
    (("hold = \"20us\"", ""), "lock `table` has no `hold`"),
    (
        (
            "vcpus = [{ pcpu = 0, priority = 5 }]",
            "vcpus = [{ pcpu = 1, priority = 5 }]",
        ),
        "`server` is on another pCPU",
    ),
    (
        (
            "vcpus = [{ pcpu = 0, priority = 7 }]",
            "vcpus = [{ pcpu = 1, priority = 7 }]",
        ),
        "`writer` is on another pCPU",
    ),
    (
        (
            "vcpus = [{ pcpu = 0, priority = 5 }]",
            "vcpus = [{ pcpu = 0, priority = 5 }, { pcpu = 1 }]",
        ),
        "several vCPUs of `server` may receive there",
    ),
    (
        (
            "table = { lock = \"table\" }\n\n[partition.server]",
            "table = { lock = \"table\" }\nown = { port = \"requests\", rights = [\"read\"] }\n\n[partition.server]",
        ),
        "not exactly one partition receives there",
    ),
    (
        (
            "requests = { port = \"requests\", rights = [\"read\"] }",
            "requests = { port = \"requests\", rights = [\"read\"] }\nothers = { port = \"other\", rights = [\"read\"] }",
        ),
        "`server` receives from other ports, too",
    ),
    (
        (
            "requests = { port = \"requests\", rights = [\"read\"] }",
            "requests = { port = \"requests\", rights = [\"read\"] }\nothers = { port = \"other\", rights = [\"write\"] }",
        ),
        "`server` may itself wait for an answer to a call by `others`",
    ),
    (
        (
            "board = \"qemu-virt-aarch64\"",
            "board = \"qemu-virt-aarch64\"\n[pcpu.0]\npolicy = \"edf\"",
        ),
        "only policy \"fixed-priority\" has a term",
    ),
    (
        (
            "demand.tasks = [",
            "demand.tasks = [{ name = \"other\", period = \"20ms\", wcet = \"1ms\" }, ",
        ),
        "the tasks of its vCPU wait for each other's waits",
    ),
    (
        (
            WRITER,
            "[partition.writer.capabilities]\ntable = { lock = \"table\" }\nout = { port = \"requests\", rights = [\"write\"], room = 3 }\n",
        ),
        "the port does not keep room for a call of each of its vCPUs",
    ),
    (
        (
            WRITER,
            "[partition.writer.capabilities]\ntable = { lock = \"table\" }\nout = { port = \"requests\", rights = [\"write\", \"grant\"] }\n",
        ),
        "`writer` can fill the server's capability space by messages",
    ),
    (
        (
            WRITER,
            "[partition.writer.capabilities]\ntable = { lock = \"table\" }\nboss = { partition = \"server\", rights = [\"grant\"] }\n",
        ),
        "`server` can get the right to take it by a grant",
    ),
    (
        (
            WRITER,
            "[partition.writer.capabilities]\ntable = { lock = \"table\" }\nboss = { partition = \"server\", rights = [\"control\"] }\n",
        ),
        "`writer` can stop or restart `server`",
    ),
    (
        (
            "priority = 7 }",
            "priority = 12, budget = \"1ms\", period = \"10ms\" }",
        ),
        "`writer` has a budget, which can end while it owns the lock",
    ),
    (
        ("depth = 3", "depth = 0"),
        "the port does not keep room for a call of each of its vCPUs",
    ),
    (
        (
            "priority = 9 }]",
            "priority = 9 }, { pcpu = 0, priority = 9, budget = \"1ms\", period = \"10ms\" }]",
        ),
        "`client` has a budget, which can end while it owns the lock",
    ),
    (
        (
            "vcpus = [{ pcpu = 0, priority = 5 }]",
            "autostart = false\nvcpus = [{ pcpu = 0, priority = 5 }]",
        ),
        "`server` is not started at boot",
    ),
];

#[test]
fn a_wait_without_a_term_is_not_proved_and_says_why() {
    for (replacement, why) in NO_TERM {
        let waits = not_proved(&system(&[*replacement]));
        assert!(
            waits.iter().any(|wait| wait.ends_with(&format!(": {why}"))),
            "{why}: {waits:?}"
        );
    }
}

#[test]
fn a_capability_that_no_task_names_is_not_proved() {
    let undeclared = (
        ", waits = [{ at = \"server\", times = 2 }, { at = \"table\" }]",
        "",
    );
    let waits = not_proved(&system(&[undeclared]));
    assert_eq!(waits, ["an answer to a call by `server`", "the lock `table`"]);
    let granted = [
        (
            ", waits = [{ at = \"server\", times = 2 }, { at = \"table\" }]",
            "",
        ),
        (
            "table = { lock = \"table\" }\n\n[partition.server]",
            "\n[partition.server]",
        ),
        (
            WRITER,
            "[partition.writer.capabilities]\ntable = { lock = \"table\" }\nboss = { partition = \"client\", rights = [\"grant\"] }\n",
        ),
    ];
    let waits = not_proved(&system(&granted));
    let by_grant = "the lock `table`, if others grant it the right";
    assert!(waits.iter().any(|wait| wait == by_grant), "{waits:?}");
    let receives = (
        "table = { lock = \"table\" }\n\n[partition.server]",
        "news = { port = \"other\", rights = [\"read\"] }\n\n[partition.server]",
    );
    let waits = not_proved(&system(&[undeclared, receives]));
    assert_eq!(waits, ["an answer to a call by `server`", "a message at `news`"]);
}

#[test]
fn absurd_waits_are_late_and_nothing_worse() {
    let system = system(&[
        ("service = \"10us\"", "service = \"1000s\""),
        ("depth = 3", "depth = 100"),
        ("times = 2", "times = 1000"),
    ]);
    let report = timing::judge(&system).to_string();
    assert!(report.contains("may never be done"), "{report}");
}
