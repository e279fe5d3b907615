// SPDX-License-Identifier: Apache-2.0
//! The tool's answers about `tests/texts/system.toml`, a system with every policy, are the texts in the files
//! beside it.
//!
//! `BLESS=1 cargo test -p bulkhead --test texts` writes the files anew. They hold only texts that follow from
//! the manifest: tables, refusals, simulated times. The author of a change sees a text there as its readers
//! will.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the tool's answer and its exit code.
fn tool(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bulkhead"))
        .current_dir(root())
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("the tool runs");
    let code = output.status.code().expect("it ends by itself");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}{}exit code {code}\n",
        text(&output.stdout),
        text(&output.stderr)
    )
}

fn is_in_file(name: &str, text: &str) {
    let path = root().join("tests/texts").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, text).expect("the file can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let first = expected.lines().zip(text.lines()).find(|(old, new)| old != new);
    assert!(
        expected == text,
        "{name} differs, first in (expected, printed) {first:?}"
    );
}

const SYSTEM: &str = "tests/texts/system.toml";

#[test]
fn check_and_its_suggestions() {
    is_in_file("check.txt", &tool(&["check", "--suggest", SYSTEM]));
}

/// Checks the words after a verdict of boards whose overheads are estimates, or counts at another speed than
/// in `system.toml`.
#[test]
fn a_verdict_says_where_the_figures_of_its_board_are_from() {
    let files = ["estimated", "counted", "measured"].map(|name| format!("tests/texts/{name}.toml"));
    let [estimated, counted, measured] = files.each_ref().map(String::as_str);
    let text = tool(&["check", estimated, counted, measured]);
    // The other lines depend on the size of the class binary, and are in other files.
    let said = ["== ", "in time", "by [overheads]"];
    let lines = text
        .lines()
        .filter(|line| said.iter().any(|word| line.contains(word)));
    is_in_file(
        "basis.txt",
        &lines.fold(String::new(), |all, line| all + line + "\n"),
    );
    // A blessing must not lose these.
    assert!(text.contains("in time (estimated"), "{text}");
    assert!(text.contains("in time (measured in part") && text.contains("on 2026-12-03, each the worst of"));
    assert!(text.contains("no verdict here is a proof") && text.contains("one instruction in 32 ns"));
    for verdict in text.lines().filter(|line| line.contains("in time")) {
        assert!(
            verdict.contains("in time ("),
            "a verdict without what it rests on: {verdict}"
        );
    }
}

#[test]
fn simulate_and_a_report_of_it() {
    let folder = std::env::temp_dir().join(format!("bulkhead-texts-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("there is room");
    let file = |name: &str| folder.join(name).display().to_string();
    let (trace, page) = (file("simulated.trace"), file("page.html"));
    let simulated = tool(&[
        "simulate",
        SYSTEM,
        "--duration",
        "0.2",
        "--trace",
        &trace,
        "--html",
        &page,
    ]);
    let reported = tool(&["report", &trace]);
    let listed = tool(&["report", &trace, "--list", "0..2"]);
    let html = fs::read_to_string(&page).unwrap_or_default();
    fs::remove_dir_all(&folder).expect("it was made above");
    is_in_file("simulate.txt", &simulated);
    is_in_file("report.txt", &reported);
    is_in_file("list.txt", &listed);
    // The chart has each vCPU, and no part of it is elsewhere.
    for lane in [
        "control", "planner", "flight", "display", "camera", "radio", "alarm", "driver", "batch", "motor",
    ] {
        assert!(html.contains(&format!(">{lane}</text>")), "no lane of {lane}");
    }
    for (mark, text) in [
        ("critical", "critical interrupt"),
        ("period", "period starts"),
        ("exhausted", "budget used up"),
    ] {
        assert!(
            html.contains(&format!("class=\"mark {mark}\"")) && html.contains(text),
            "no mark {mark}"
        );
    }
    assert!(html.contains("@media print") && html.contains("wheel") && !html.contains("http"));
}

/// Compiles a policy of one's own for the simulation. The time of the build is no part of the text.
#[test]
fn a_policy_of_ones_own_is_simulated_and_not_analysed() {
    let system = "tests/texts/own-policy.toml";
    let told = format!(
        "{}{}",
        tool(&["check", system]),
        tool(&["simulate", system, "--duration", "0.1"])
    );
    let lines = told
        .lines()
        .filter(|line| !line.starts_with("bulkhead: building"));
    let text = lines.fold(String::new(), |text, line| text + line + "\n");
    is_in_file("own-policy.txt", &text);
}

/// Adds the keys of a value, and of everything in the value, to `keys`.
fn keys_of(value: &serde_json::Value, keys: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(object) => {
            for (key, value) in object {
                keys.push(key.clone());
                keys_of(value, keys);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys_of(value, keys)),
        _ => {}
    }
}

/// Returns the document that the tool prints on standard output.
fn document(arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_bulkhead"))
        .current_dir(root())
        .args(arguments)
        .output()
        .expect("the tool runs");
    serde_json::from_slice(&output.stdout).expect("one JSON document and nothing else")
}

#[test]
fn documents_for_programs_are_as_documented() {
    let trace = std::env::temp_dir().join(format!("bulkhead-json-{}.trace", std::process::id()));
    let trace = trace.display().to_string();
    let page = fs::read_to_string(root().join("docs/json.md")).expect("there is a page");
    let lines: &[(&str, &[&str])] = &[
        ("boards", &["boards", "--json"]),
        (
            "simulate",
            &[
                "simulate",
                SYSTEM,
                "--duration",
                "0.05",
                "--trace",
                &trace,
                "--json",
            ],
        ),
        ("report", &["report", &trace, "--json", "--against", SYSTEM]),
        (
            "check",
            &[
                "check",
                "--json",
                SYSTEM,
                "tests/config-bad/networks/bad-mac-twice.toml",
                "no-such-file.toml",
            ],
        ),
    ];
    let documents: Vec<_> = lines.iter().map(|(_, line)| document(line)).collect();
    fs::remove_file(&trace).expect("the simulation wrote it");
    for ((command, _), document) in lines.iter().zip(&documents) {
        assert_eq!(document["format"], format!("bulkhead-{command}"));
        assert_eq!(document["version"], 1);
        let section = page.split(&format!("## `{command}`")).nth(1).expect(command);
        let section = section.split("\n## ").next().unwrap_or_default();
        let common = page.split("\n## ").next().unwrap_or_default();
        let mut keys = Vec::new();
        keys_of(document, &mut keys);
        for key in keys {
            let name = format!("`{key}`");
            assert!(
                section.contains(&name) || common.contains(&name),
                "{command}: {key} is not in docs/json.md"
            );
        }
    }
    let check = &documents[3]["systems"];
    let second = &check[1];
    assert_eq!(second["accepted"], false);
    assert_eq!(second["findings"][0]["code"], "E095");
    assert!(
        second["findings"][0]["line"]
            .as_u64()
            .is_some_and(|line| line > 1)
    );
    assert!(second["system"].is_null());
    assert_eq!(check[0]["system"]["partitions"][0]["name"], "control");
    assert_eq!(check[0]["system"]["partitions"][0]["memory"], 2 << 20);
    assert_eq!(check[2]["findings"][0]["code"], "E001");
    assert_eq!(documents[2]["shares"][0]["of_ns"], 50_000_000);
}

#[test]
fn several_manifests_are_each_judged_and_the_worst_decides() {
    let bad = "tests/config-bad/networks/bad-mac-twice.toml";
    let answer = tool(&["check", bad, SYSTEM]);
    assert!(answer.contains(&format!("== {bad}\n")) && answer.contains(&format!("== {SYSTEM}\n")));
    assert!(
        answer.contains("CPU assignment") && answer.contains("E095"),
        "{answer}"
    );
    assert!(answer.ends_with("exit code 1\n"));
}

#[test]
fn a_wrong_console_is_refused_before_anything_is_built() {
    let empty = std::env::temp_dir().join(format!("bulkhead-empty-{}", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_bulkhead"))
        .current_dir(root())
        .args(["run", SYSTEM, "--console", "nope"])
        .env("CARGO_TARGET_DIR", &empty)
        .output()
        .expect("the tool runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("no partition `nope` has a console") && text.contains("control"),
        "{text}"
    );
    assert!(!empty.exists(), "something was built");
}

#[test]
fn new_names_the_command_as_it_was_typed() {
    let folder = std::env::temp_dir().join(format!("bulkhead-new-{}", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_bulkhead"))
        .args(["new", &folder.display().to_string()])
        .env("BULKHEAD_COMMAND", "../x/bulkhead")
        .output()
        .expect("the tool runs");
    let manifest = fs::read_to_string(folder.join("system.toml")).unwrap_or_default();
    fs::remove_dir_all(&folder).expect("it was made");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("\n  ../x/bulkhead check /"), "{text}");
    assert!(manifest.contains("[partition.control.demand]"));
}

/// Runs shell commands after the function `step` of the entry script, and returns what they say.
fn with_step(commands: &str) -> String {
    let script = fs::read_to_string(root().join("bulkhead")).expect("there is a script");
    let from = script.find("say() {").expect("it speaks");
    let to = script.find("# ---- Debian packages").expect("it has parts");
    let output = Command::new("sh")
        .args(["-c", &format!("set -eu\n{}\n{commands}", &script[from..to])])
        .output()
        .expect("there is a shell");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_step_says_how_long_it_took_by_the_clock() {
    // On this machine, a short sleep takes a second.
    let text = with_step("sleep() { command sleep 1; }\nstep 'thinking' command sleep 4");
    assert!(text.contains("thinking ..."), "{text}");
    let seconds = text
        .split("done (")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let seconds: u32 = seconds
        .and_then(|text| text.parse().ok())
        .expect("a time is said");
    assert!(seconds >= 3, "{text}");
}

#[test]
fn policies() {
    is_in_file("policies.txt", &tool(&["policies"]));
}

/// Command lines that end in a problem, and what the problem's document says: the command, the exit code, and
/// whether there are findings about a manifest.
const REFUSED: [(&[&str], &str, u64, bool); 8] = [
    (
        &["simulate", "tests/config-bad/timing/bad-task.toml", "--json"],
        "simulate",
        1,
        true,
    ),
    (&["simulate", "no-such.toml", "--json"], "simulate", 1, true),
    (
        &["simulate", SYSTEM, "--json", "--html", "no-such/folder/x.html"],
        "simulate",
        1,
        false,
    ),
    (
        &[
            "simulate",
            SYSTEM,
            "--json",
            "--duration",
            "0.01",
            "--html",
            "/dev/full",
        ],
        "simulate",
        1,
        false,
    ),
    (&["report", "no-such.trace", "--json"], "report", 1, false),
    (&["report", SYSTEM, "--json"], "report", 1, false),
    (&["check", "--json"], "check", 2, false),
    (&["boards", "--json", "--nonsense"], "boards", 2, false),
];

#[test]
fn a_program_that_asked_for_a_document_gets_one_when_there_is_a_problem() {
    let page = fs::read_to_string(root().join("docs/json.md")).expect("there is a page");
    for (line, command, code, has_findings) in REFUSED {
        let output = Command::new(env!("CARGO_BIN_EXE_bulkhead"))
            .current_dir(root())
            .args(line)
            .output()
            .expect("the tool runs");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{line:?}: {error}: {}", String::from_utf8_lossy(&output.stdout)));
        assert_eq!(document["format"], "bulkhead-problem", "{line:?}");
        assert_eq!(document["command"], command, "{line:?}");
        assert_eq!(document["exit_code"], code, "{line:?}");
        assert_eq!(output.status.code(), i32::try_from(code).ok(), "{line:?}");
        assert_ne!(document["message"].as_str().unwrap_or_default(), "", "{line:?}");
        let findings = document["findings"].as_array().expect("a list");
        assert_eq!(!findings.is_empty(), has_findings, "{line:?}: {document}");
        assert!(!output.stderr.is_empty(), "{line:?}: people read standard error");
        let mut keys = Vec::new();
        keys_of(&document, &mut keys);
        for key in keys {
            assert!(page.contains(&format!("`{key}`")), "{key} is not in docs/json.md");
        }
    }
}

#[test]
fn no_message_can_end_the_tool_when_nobody_reads_it() {
    // `eprintln!` and `eprint!` panic if standard error is full or closed.
    let mut folders = vec![root().join("cli/src"), root().join("bench/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            for (number, line) in text.lines().enumerate() {
                let printing = ["eprintln!(", "eprint!("].iter().any(|name| line.contains(name));
                assert!(!printing, "{}:{}: {line}", path.display(), number + 1);
            }
        }
    }
}
