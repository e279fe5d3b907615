// SPDX-License-Identifier: Apache-2.0
//! No input makes the tool panic or hang: every refusal is a report, every acceptance compiles.

mod support;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use bulkhead_manifest::{ClassBinary, CompileInput, PayloadResolver, compile, load_text, timing};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(2),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Returns the programs of the manifests that are changed.
fn programs(name: &str) -> Result<PathBuf, String> {
    let mut programs = support::mutate::PROGRAMS.iter();
    let (_, file) = programs
        .find(|(known, _)| *known == name)
        .ok_or("no such program")?;
    Ok(support::root().join("tests/config-bad/payloads").join(file))
}

/// Loads a manifest, renders the findings, and compiles an accepted system.
fn exercise(text: &str, path: &Path) {
    exercise_with(text, path, &support::resolve);
}

fn exercise_with(text: &str, path: &Path, resolver: &dyn PayloadResolver) {
    match load_text(path, text, resolver) {
        Ok(system) => {
            let _ = (
                system.memory_map(),
                system.interrupts(),
                system.devices(),
                system.cpu_assignment(),
                system.who_can_touch_what(),
                timing::judge(&system),
            );
            let input = CompileInput {
                class_binary_len: 0x2_0000,
                stop_after_ms: None,
                trace_records: None,
            };
            compile(&system, &input).unwrap_or_else(|error| panic!("accepted, but {error}\n{text}"));
        }
        Err(report) => assert!(report.has_errors() && !report.render(true).is_empty()),
    }
}

fn corpus() -> PathBuf {
    support::root().join("tests/config-bad/system.toml")
}

/// Returns manifests that are correct, to be damaged.
fn good() -> Vec<String> {
    let folders = ["aarch64-linux-rt", "aarch64-minimal", "aarch64-two-vms"];
    let read =
        |name: &str| std::fs::read_to_string(support::root().join("examples").join(name).join("system.toml"));
    folders
        .iter()
        .map(|name| {
            read(name)
                .expect("the example exists")
                .replace("init.sh", "payloads/init.sh")
        })
        .collect()
}

/// Words that mean something to the tool, and words that mean nothing.
const WORDS: [&str; 16] = [
    "0",
    "-1",
    "4096",
    "0xffffffffffffffff",
    "\"1G\"",
    "\"16777215G\"",
    "\"\"",
    "[]",
    "{}",
    "true",
    "\"linux\"",
    "\"task\"",
    "\"bulkhead\"",
    "\"payloads/label.dtbo\"",
    "99999999999999999999999999999999999999999",
    "[[[[[[[[]]]]]]]]",
];

#[test]
fn manifests_to_be_changed_are_right() {
    for text in support::mutate::BASES {
        let loaded = load_text(&corpus(), text, &programs);
        assert!(
            loaded.is_ok(),
            "{}",
            loaded
                .err()
                .map(|report| report.render(false))
                .unwrap_or_default()
        );
        exercise_with(text, &corpus(), &programs);
    }
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn arbitrary_text_is_survived(text in "[ -~\n\\[\\]=\".]{0,200}") {
        exercise(&text, &corpus());
    }

    #[test]
    fn arbitrary_unicode_is_survived(text in "\\PC{0,60}") {
        exercise(&text, &corpus());
        exercise(&format!("[partition.{text:?}]\nkind = {text:?}\nimage = {text:?}\n"), &corpus());
    }

    #[test]
    fn damaged_manifests_are_survived(which in 0_usize..3, at in any::<prop::sample::Index>(), length in 0_usize..40, word in prop::sample::select(&WORDS[..])) {
        let mut bytes = good()[which].clone().into_bytes();
        let start = at.index(bytes.len());
        let end = (start + length).min(bytes.len());
        bytes.splice(start..end, word.bytes());
        exercise(&String::from_utf8_lossy(&bytes), &corpus());
    }

    #[test]
    fn other_values_are_survived(which in 0_usize..3, line in any::<prop::sample::Index>(), word in prop::sample::select(&WORDS[..])) {
        let text = good()[which].clone();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(" = ")).collect();
        let line = lines[line.index(lines.len())];
        let key = line.split(" = ").next().expect("the line has a key");
        exercise(&text.replacen(line, &format!("{key} = {word}"), 1), &corpus());
    }

    #[test]
    fn changed_keys_are_survived(input in prop::collection::vec(any::<u8>(), 2..80)) {
        static SCHEMA: LazyLock<String> = LazyLock::new(bulkhead_manifest::schema);
        let text = support::mutate::mutated(&input, &SCHEMA);
        exercise_with(&text, &corpus(), &programs);
    }

    #[test]
    fn damaged_payloads_are_survived(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
        as_task in any::<bool>(),
    ) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        static PAYLOADS: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(support::payloads);
        let payloads = &*PAYLOADS;
        let (name, mut bytes) = payloads[which.index(payloads.len())].clone();
        let changes = if bytes.is_empty() { &[] } else { &changes[..] };
        for (at, value) in changes {
            // Changes to headers matter most.
            let at = at.index(bytes.len().min(256));
            bytes[at] = *value;
        }
        if let Some(cut) = cut {
            let length = cut.index(bytes.len() + 1);
            bytes.truncate(length);
        }
        let file = format!("payload-{}-{}{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed) % 8, if name.ends_with(".dtbo") { ".dtbo" } else { "" });
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&file);
        std::fs::write(&path, &bytes).expect("the folder can be written");
        let kind = if as_task { "task" } else { "vm" };
        let text = format!("board = \"qemu-virt-aarch64\"\n[partition.a]\nkind = \"{kind}\"\nmemory = \"2M\"\nvcpus = [{{ pcpu = 0 }}]\n");
        exercise(&format!("{text}image = {path:?}\n"), &corpus());
        if !as_task {
            exercise(&format!("{text}image = \"payloads/raw.bin\"\nramdisk = {path:?}\n"), &corpus());
            exercise(&format!("{text}image = \"payloads/raw.bin\"\ndevice-tree-overlay = {path:?}\n"), &corpus());
        }
        let _ = ClassBinary::from_elf(&bytes);
    }

    #[test]
    fn damaged_board_files_are_survived(at in any::<prop::sample::Index>(), length in 0_usize..20, word in prop::sample::select(&WORDS[..])) {
        let mut bytes = std::fs::read(support::root().join("boards/qemu-virt-aarch64.toml")).expect("the board exists");
        let start = at.index(bytes.len());
        let end = (start + length).min(bytes.len());
        bytes.splice(start..end, word.bytes());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("board-{}.toml", std::process::id()));
        std::fs::write(&path, &bytes).expect("the folder can be written");
        let text = good()[1].replace("\"qemu-virt-aarch64\"", &format!("{path:?}"));
        exercise(&text, &corpus());
    }
}

/// Bounds the number of findings, because each that is shown costs a search for its line.
#[test]
fn of_many_errors_the_first_ones_are_shown_and_the_others_counted() {
    let keys = (0..15_000).map(|number| format!("key{number} = 1\n"));
    let text: String = std::iter::once("board = \"qemu-virt-aarch64\"\n".to_owned())
        .chain(keys)
        .collect();
    let report = load_text(Path::new("many.toml"), &text, &support::resolve).expect_err("unknown keys");
    assert_eq!(report.diagnostics.len(), 101);
    let last = report.diagnostics.last().expect("the number of the others");
    assert!(last.message.starts_with("14902 more errors"), "{}", last.message);
    assert!(report.render(false).contains("key0 = 1"));
}
