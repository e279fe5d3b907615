// SPDX-License-Identifier: Apache-2.0
//! `bulkhead explain`: the meaning of the health reports in a log.

use super::ExplainArgs;
use crate::build::prepare::{Options, prepare};
use crate::explain::Explainer;
use crate::input;
use crate::problem::{Code, Problem};
use crate::ui::progress::Progress;
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
    for line in reader.split(b'\n') {
        let line = line.map_err(Problem::io(&name))?;
        let line = String::from_utf8_lossy(&line);
        if let Some(explanation) = explainer.kept_line(&line) {
            found += 1;
            super::print(&format!("{}\n{explanation}\n", line.trim_end()))?;
        }
    }
    if found == 0 {
        super::print(&format!(
            "no health report of a partition of this system in {name}\n"
        ))?;
    }
    Ok(Code::Done)
}
