// SPDX-License-Identifier: Apache-2.0
//! Compares the table of services and return codes with the lines that the suite must print on each class.
//!
//! The list of codes is this file's own; no program has compared it with a copy of the standard. The
//! lines are `tests/system/aarch64/apex/apex-suite/lines.txt`, which the system tests of all classes share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const LINES: &str = "tests/system/aarch64/apex/apex-suite/lines.txt";

const CODES: [&str; 7] = [
    "NO_ERROR",
    "NO_ACTION",
    "NOT_AVAILABLE",
    "INVALID_PARAM",
    "INVALID_CONFIG",
    "INVALID_MODE",
    "TIMED_OUT",
];

/// The services that return a code, each with its codes besides `NO_ERROR`: A is `NO_ACTION`, N
/// `NOT_AVAILABLE`, P `INVALID_PARAM`, C `INVALID_CONFIG`, M `INVALID_MODE` and T `TIMED_OUT`.
const SERVICES: &[(&str, &str)] = &[
    ("SET_PARTITION_MODE", "APM"),
    ("CREATE_PROCESS", "APCM"),
    ("START", "APC"),
    ("DELAYED_START", "APC"),
    ("STOP", "AP"),
    ("SUSPEND", "APM"),
    ("SUSPEND_SELF", "PMT"),
    ("RESUME", "APM"),
    ("SET_PRIORITY", "PM"),
    ("LOCK_PREEMPTION", "AC"),
    ("UNLOCK_PREEMPTION", "A"),
    ("GET_MY_ID", "M"),
    ("GET_PROCESS_ID", "C"),
    ("GET_PROCESS_STATUS", "P"),
    ("TIMED_WAIT", "PM"),
    ("PERIODIC_WAIT", "CM"),
    ("REPLENISH", "APM"),
    ("CREATE_BUFFER", "APCM"),
    ("SEND_BUFFER", "NPMT"),
    ("RECEIVE_BUFFER", "NPMT"),
    ("GET_BUFFER_ID", "C"),
    ("GET_BUFFER_STATUS", "P"),
    ("CREATE_BLACKBOARD", "APCM"),
    ("DISPLAY_BLACKBOARD", "P"),
    ("READ_BLACKBOARD", "NPMT"),
    ("CLEAR_BLACKBOARD", "P"),
    ("GET_BLACKBOARD_ID", "C"),
    ("GET_BLACKBOARD_STATUS", "P"),
    ("CREATE_SEMAPHORE", "APCM"),
    ("WAIT_SEMAPHORE", "NPMT"),
    ("SIGNAL_SEMAPHORE", "AP"),
    ("GET_SEMAPHORE_ID", "C"),
    ("GET_SEMAPHORE_STATUS", "P"),
    ("CREATE_EVENT", "ACM"),
    ("SET_EVENT", "P"),
    ("RESET_EVENT", "P"),
    ("WAIT_EVENT", "NPMT"),
    ("GET_EVENT_ID", "C"),
    ("GET_EVENT_STATUS", "P"),
    ("CREATE_MUTEX", "APCM"),
    ("ACQUIRE_MUTEX", "NPCMT"),
    ("RELEASE_MUTEX", "PM"),
    ("RESET_MUTEX", "PM"),
    ("GET_MUTEX_ID", "C"),
    ("GET_MUTEX_STATUS", "P"),
    ("GET_PROCESS_MUTEX_STATE", "P"),
    ("CREATE_SAMPLING_PORT", "ACM"),
    ("WRITE_SAMPLING_MESSAGE", "PCM"),
    ("READ_SAMPLING_MESSAGE", "APM"),
    ("GET_SAMPLING_PORT_ID", "C"),
    ("GET_SAMPLING_PORT_STATUS", "P"),
    ("CREATE_QUEUING_PORT", "ACM"),
    ("SEND_QUEUING_MESSAGE", "NPCMT"),
    ("RECEIVE_QUEUING_MESSAGE", "NPCMT"),
    ("GET_QUEUING_PORT_ID", "C"),
    ("GET_QUEUING_PORT_STATUS", "P"),
    ("CLEAR_QUEUING_PORT", "PM"),
    ("CREATE_ERROR_HANDLER", "ACM"),
    ("GET_ERROR_STATUS", "AC"),
    ("RAISE_APPLICATION_ERROR", "P"),
    ("REPORT_APPLICATION_MESSAGE", "P"),
    ("SET_MODULE_SCHEDULE", "APC"),
    ("GET_MODULE_SCHEDULE_STATUS", ""),
    ("GET_MODULE_SCHEDULE_ID", "C"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns what each printed line says after the name of the guest.
fn printed(lines: &str) -> BTreeSet<&str> {
    lines
        .lines()
        .filter_map(|line| line.strip_prefix("apex-suite: "))
        .collect()
}

/// Tells whether a service has a code. `NO_ERROR` has the letter that comes first, and no service lacks it.
fn has(codes: &str, column: usize) -> bool {
    let letter = ['-', 'A', 'N', 'P', 'C', 'M', 'T'][column];
    column == 0 || codes.contains(letter)
}

fn table(printed: &BTreeSet<&str>) -> String {
    let mut text = format!(
        "| service | {} |\n|{}\n",
        CODES.map(|code| format!("`{code}`")).join(" | "),
        "---|".repeat(8)
    );
    for (service, codes) in SERVICES {
        let cells: Vec<&str> = CODES
            .iter()
            .enumerate()
            .map(|(column, code)| match has(codes, column) {
                false => " ",
                true if printed.contains(format!("{service} {code}").as_str()) => "suite",
                true => "**missing**",
            })
            .collect();
        text += &format!("| `{service}` | {} |\n", cells.join(" | "));
    }
    text
}

/// Compares the table of the page with the lines, for each service and code.
#[test]
fn the_table_of_the_docs_is_what_the_suite_prints() {
    let (page, lines) = (read("docs/apex-conformance.md"), read(LINES));
    let (begin, end) = ("<!-- table begin -->\n", "<!-- table end -->");
    let (head, rest) = page.split_once(begin).expect("the page has a table");
    let (table_of_page, tail) = rest.split_once(end).expect("the table ends");
    let table = table(&printed(&lines));
    if std::env::var_os("BLESS").is_some() {
        let page = format!("{head}{begin}{table}{end}{tail}");
        std::fs::write(root().join("docs/apex-conformance.md"), page).expect("the page can be written");
    } else {
        assert_eq!(table_of_page, table, "BLESS=1 writes the table anew");
    }
}

/// Finds a code that the suite prints and the table lacks: one of the two is wrong.
#[test]
fn the_suite_prints_no_code_that_the_table_lacks() {
    let lines = read(LINES);
    for line in printed(&lines) {
        let Some((service, code)) = line.rsplit_once(' ') else {
            continue;
        };
        let column = CODES.iter().position(|known| *known == code);
        let known = SERVICES.iter().find(|(name, _)| *name == service);
        if let (Some(column), Some((_, codes))) = (column, known) {
            assert!(has(codes, column), "{line}");
        }
    }
}

/// Checks that the tests of all classes expect the one list of lines.
#[test]
fn all_classes_share_the_lines() {
    for folder in [
        "aarch64/apex/apex-suite",
        "ppc405/apex/ppc-apex-suite",
        "x86_64/apex/x86-apex-suite",
    ] {
        let test = read(&format!("tests/system/{folder}/test.toml"));
        let file = test.lines().find_map(|line| line.strip_prefix("prints.suite = "));
        let file = file.map(|file| {
            root()
                .join("tests/system")
                .join(folder)
                .join(file.trim_matches('"'))
        });
        let lines = file.and_then(|file| std::fs::read_to_string(file).ok());
        assert_eq!(lines, Some(read(LINES)), "{folder}");
    }
}
