// SPDX-License-Identifier: Apache-2.0
//! `bulkhead explain`: the meaning of the health reports in a log.

use super::ExplainArgs;
use crate::build::prepare::{Options, prepare};
use crate::explain::Explainer;
use crate::input;
use crate::problem::{Code, Problem};
use crate::serial::capture::Capture;
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
    let mut found = 0;
    let mut capture = Capture::default();
    for line in reader.split(b'\n') {
        let mut line = line.map_err(Problem::io(&name))?;
        line.push(b'\n');
        for (line, explanation) in explained(&mut capture, &mut explainer, &line) {
            found += 1;
            super::print(&format!("{line}\n{explanation}\n"))?;
        }
    }
    if found == 0 {
        super::print(&format!(
            "no health report of a partition of this system in {name}\n"
        ))?;
    }
    Ok(Code::Done)
}

/// Returns the lines of the hypervisor that the bytes complete and that have an explanation, with it.
fn explained(capture: &mut Capture, explainer: &mut Explainer<'_>, bytes: &[u8]) -> Vec<(String, String)> {
    let Some(lines) = capture.feed(bytes) else {
        let line = String::from_utf8_lossy(bytes).trim_end().to_owned();
        let explanation = explainer.kept_line(&line);
        return explanation
            .map(|explanation| (line, explanation))
            .into_iter()
            .collect();
    };
    let own = lines
        .into_iter()
        .filter(|line| line.console == HYPERVISOR_CONSOLE);
    own.filter_map(|line| {
        let explanation = explainer.line(&line.text)?;
        Some((
            format!("[{}] {}: {}", line.time, line.console, line.text),
            explanation,
        ))
    })
    .collect()
}
