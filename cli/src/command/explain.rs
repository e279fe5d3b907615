// SPDX-License-Identifier: Apache-2.0
//! `bulkhead explain`: the meaning of the health reports in a log.

use super::ExplainArgs;
use crate::build::prepare::{Options, prepare};
use crate::explain::Explainer;
use crate::input;
use crate::log::log_files::console_of;
use crate::problem::{Code, Problem};
use crate::serial::capture::Capture;
use crate::serial::line::changes_others;
use crate::serial::own::Kept;
use crate::ui::progress::Progress;
use bulkhead_abi::framing::HYPERVISOR_CONSOLE;
use std::io::{BufRead, Cursor, stdin};

pub(super) fn run(args: &ExplainArgs) -> Result<Code, Problem> {
    let progress = Progress::new();
    let prepared = prepare(&args.system, &Options::default(), &progress)?;
    drop(progress);
    let mut explainer = Explainer::new(&prepared, &args.system.display().to_string());
    let (name, reader): (String, Box<dyn BufRead>) = match &args.log {
        Some(path) => {
            let name = path.display().to_string();
            let said = "what a board's serial line said; without one, standard input is read";
            (name, Box::new(Cursor::new(input::read(path, said)?)))
        }
        None => ("standard input".to_owned(), Box::new(stdin().lock())),
    };
    let partitions = prepared.system().partitions();
    let names: Vec<&str> = partitions.iter().map(|partition| partition.name()).collect();
    let console = args.log.as_deref().and_then(|path| console_of(path, &names));
    let mut kept = match console {
        Some(_) => Kept::of_partition(),
        None => Kept::default(),
    };
    let mut found = 0;
    let mut capture = Capture::default();
    for line in reader.split(b'\n') {
        let mut line = line.map_err(Problem::io(&name))?;
        line.push(b'\n');
        for (line, explanation) in explained(&mut capture, &mut explainer, &mut kept, &line) {
            found += 1;
            let line: String = line.chars().flat_map(shown).collect();
            super::print(&format!("{line}\n{explanation}\n"))?;
        }
    }
    if found == 0 {
        super::print(&format!(
            "no health report of a partition of this system in {name}\n"
        ))?;
    }
    if let Some(text) = passed_over(kept.passed_over(), console) {
        super::print(&text)?;
    }
    Ok(Code::Done)
}

/// Returns the lines of the hypervisor that the bytes complete and that have an explanation, with it.
fn explained(
    capture: &mut Capture,
    explainer: &mut Explainer<'_>,
    kept: &mut Kept,
    bytes: &[u8],
) -> Vec<(String, String)> {
    let Some(lines) = capture.feed(bytes) else {
        let line = String::from_utf8_lossy(bytes).trim_end().to_owned();
        let explanation = explainer.kept_line(&line, kept);
        return explanation
            .map(|explanation| (line, explanation))
            .into_iter()
            .collect();
    };
    let mut found = Vec::new();
    for line in lines {
        if line.console != HYPERVISOR_CONSOLE {
            kept.pass_over(&line.text);
        } else if let Some(explanation) = explainer.line(&line.text) {
            let text = format!("[{}] {}: {}", line.time, line.console, line.text);
            found.push((text, explanation));
        }
    }
    found
}

/// Returns a character of a line as it may reach a terminal. The control bytes of a tag are left out.
fn shown(char: char) -> Vec<char> {
    match char {
        char if char.is_ascii_control() => Vec::new(),
        char if changes_others(char) => char.escape_unicode().collect(),
        char => vec![char],
    }
}

/// Returns the sentence about lines that look like reports of the hypervisor and are of other consoles.
fn passed_over(lines: usize, console: Option<&str>) -> Option<String> {
    let of = match console {
        Some(name) => format!("by the name of the file it is of `{name}`"),
        None => "it is of another console than the hypervisor's".to_owned(),
    };
    let which = match lines {
        0 => return None,
        1 => "1 line looks like a report and is passed over".to_owned(),
        _ => format!("{lines} lines look like reports and are passed over"),
    };
    let of = if lines == 1 {
        of
    } else {
        of.replace("it is of", "they are of")
    };
    Some(format!("{which}: {of}, and a partition can print anything\n"))
}
