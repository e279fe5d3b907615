// SPDX-License-Identifier: Apache-2.0
//! The importer of ARINC 653 configurations: a good file and its manifest, and bad files with the exact text
//! of their refusal (`tests/arinc653-bad/NAME.xml` and `NAME.err`). `BLESS=1` writes them.

use bulkhead::arinc653::{Module, Wishes, read, write};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn is_in_file(path: &Path, text: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, text).unwrap();
    }
    let there = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(there, text, "{}: BLESS=1 rewrites it", path.display());
}

fn example() -> Module {
    let text = fs::read_to_string(root().join("examples/arinc653-import/module.xml")).unwrap();
    let (module, notes) = read(&text).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    module
}

#[test]
fn a_module_becomes_the_manifest_of_the_example() {
    let image = |name: &str| (name.to_owned(), format!("@guests/apex-{name}"));
    let wishes = Wishes {
        board: "qemu-virt-aarch64".to_owned(),
        origin: "module.xml".to_owned(),
        images: ["sensor", "control"].map(image).into(),
    };
    let text = format!(
        "# SPDX-License-Identifier: Apache-2.0\n{}",
        write(&example(), &wishes)
    );
    is_in_file(&root().join("examples/arinc653-import/system.toml"), &text);
}

#[test]
fn times_and_sizes_are_read_exactly() {
    let module = example();
    let schedule = &module.schedules[0];
    assert_eq!(schedule.frame, 20_000_000);
    let starts: Vec<u64> = schedule.windows.iter().map(|window| window.start).collect();
    assert_eq!(starts, [0, 2_000_000, 10_000_000]);
    let times = [
        ("normal", (10_000_000, 2_000_000)),
        ("slow", (20_000_000, 3_000_000)),
    ];
    let times = times.map(|(schedule, times)| (schedule.to_owned(), times));
    assert_eq!(module.partitions[0].times, times);
    assert_eq!(module.partitions[0].memory, 512 << 10);
    assert_eq!(
        module.partitions[1].health,
        [("memory", "restart"), ("system", "stop")]
    );
}

#[test]
fn each_bad_file_is_refused_at_the_line_of_its_mistake() {
    let folder = root().join("tests/arinc653-bad");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "xml"));
    files.sort();
    assert!(files.len() >= 10);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let findings = read(&text).expect_err("it is bad");
        let lines: Vec<String> = findings.iter().map(|finding| format!("{finding}\n")).collect();
        is_in_file(&path.with_extension("err"), &lines.concat());
        // A file says where its mistake is.
        let marks = text
            .lines()
            .zip(1..)
            .filter(|(line, _)| line.contains("<!-- wrong -->"));
        for (_, line) in marks {
            let is_there = findings
                .iter()
                .any(|finding| !finding.is_note && finding.line == line);
            assert!(is_there, "{}: nothing is said of line {line}", path.display());
        }
    }
}

#[test]
fn what_has_no_meaning_here_is_a_note_with_its_line() {
    let text = fs::read_to_string(root().join("examples/arinc653-import/module.xml")).unwrap();
    let text = text.replace(
        "  <Connection_Table>",
        "  <Module_HM_Table/>\n  <Connection_Table>",
    );
    let (_, notes) = read(&text).unwrap();
    let line = text
        .lines()
        .position(|line| line.contains("<Module_HM_Table/>"))
        .unwrap()
        + 1;
    assert_eq!(notes.len(), 1);
    assert_eq!(
        (notes[0].line as usize, notes[0].column, notes[0].is_note),
        (line, 3, true)
    );
}

#[test]
fn each_health_action_that_is_left_out_is_a_note_with_its_line() {
    let text = fs::read_to_string(root().join("examples/arinc653-import/module.xml")).unwrap();
    let codes = "<Error_ID_Level ErrorIdentifier=\"2\"";
    let more = format!(
        "<Error_ID_Level ErrorIdentifier=\"9\" ErrorLevel=\"PROCESS\" ErrorCode=\"POWER_FAIL\"/>{codes}"
    );
    let action = "<Error_ID_Action ErrorIdentifier=\"1\"";
    let dropped = "<Error_ID_Action ErrorIdentifier=\"2\" Action=\"COLD_START\"/>\n\
        <Error_ID_Action ErrorIdentifier=\"9\" Action=\"IDLE\"/>\n\
        <Error_ID_Action ErrorIdentifier=\"77\" Action=\"IDLE\"/>\n";
    let text = text
        .replace(codes, &more)
        .replace(action, &format!("{dropped}{action}"));
    let (module, notes) = read(&text).unwrap();
    assert_eq!(module.partitions[1].health, example().partitions[1].health);
    for (note, (identifier, words)) in notes.iter().zip([
        (
            2,
            "COLD_START for error 2, DEADLINE_MISSED, is left out: the services find this error",
        ),
        (
            9,
            "IDLE for error 9, POWER_FAIL, is left out: nothing here finds this error",
        ),
        (
            77,
            "IDLE for error 77, unknown, is left out: the `System_HM_Table` has no code",
        ),
    ]) {
        let line = text.lines().nth(note.line as usize - 1).unwrap();
        assert!(
            line.contains(&format!("Error_ID_Action ErrorIdentifier=\"{identifier}\"")),
            "{line}"
        );
        assert!(note.is_note && note.text.contains(words), "{}", note.text);
    }
    assert_eq!(notes.len(), 3);
}
