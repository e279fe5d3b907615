// SPDX-License-Identifier: Apache-2.0
//! `bulkhead report`: what a trace says.

use super::ReportArgs;
use crate::gantt;
use crate::prepare;
use crate::problem::{Code, Problem};
use crate::progress::Progress;
use crate::trace::Trace;
use crate::trace::replay::{self, Tolerance};
use std::path::Path;

pub(super) fn run(args: &ReportArgs) -> Result<Code, Problem> {
    let trace = read(&args.file)?;
    if let Some(path) = &args.perfetto {
        std::fs::write(path, trace.perfetto()).map_err(Problem::io(path.display()))?;
    }
    if let Some(path) = &args.html {
        let title = format!("{}, executed", args.file.display());
        let page = gantt::page(&gantt::of_trace(&trace, title));
        std::fs::write(path, page).map_err(Problem::io(path.display()))?;
    }
    match args.list {
        Some((from, to)) => super::print(&trace.list(from, to))?,
        None => super::print(&trace.report())?,
    }
    args.against
        .as_deref()
        .map_or(Ok(Code::Done), |system| compare(&trace, system, args))
}

/// Executed against simulated. A difference is no failure of the tool.
fn compare(trace: &Trace, system: &Path, args: &ReportArgs) -> Result<Code, Problem> {
    let progress = Progress::new();
    let system = prepare::check(system, &progress)?;
    drop(progress);
    let tolerance = Tolerance {
        overhead: (args.overhead * 1000.0) as u64,
        turns: !args.strict,
    };
    match replay::agree(trace, &system, tolerance) {
        Ok(pcpus) => {
            let mut text = "\nexecuted against simulated\n".to_owned();
            for (agreement, pcpu) in pcpus.iter().zip(0..) {
                text.push_str(&format!("  pCPU {pcpu}: {}\n", agreement.text()));
            }
            super::print(&text)?;
            Ok(Code::Done)
        }
        Err(difference) => {
            super::print(&format!(
                "\nexecuted against simulated: DIFFERENT\n  {difference}\n"
            ))?;
            Ok(Code::Fault)
        }
    }
}

fn read(path: &Path) -> Result<Trace, Problem> {
    let bytes = std::fs::read(path).map_err(Problem::io(path.display()))?;
    Trace::decode(&bytes).map_err(|why| {
        Problem::new(format!("{} is no trace: {why}", path.display()))
            .remedy("`bulkhead run SYSTEM.toml --trace FILE` writes one")
    })
}
