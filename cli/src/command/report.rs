// SPDX-License-Identifier: Apache-2.0
//! `bulkhead report`: the contents of a trace.

use super::{ReportArgs, report_json};
use crate::build::output::Output;
use crate::build::policies::Policies;
use crate::build::prepare;
use crate::gantt;
use crate::json;
use crate::problem::{Code, Problem};
use crate::trace::Trace;
use crate::trace::replay::{self, Comparison, Tolerance};
use crate::ui::progress::Progress;
use std::path::Path;

pub(super) fn run(args: &ReportArgs) -> Result<Code, Problem> {
    let mut inputs = args.against.as_deref().map(prepare::inputs).unwrap_or_default();
    inputs.push(args.file.clone());
    let (perfetto, html) = Output::claim_both(args.perfetto.as_deref(), args.html.as_deref(), &inputs)?;
    let trace = read(&args.file)?;
    if let Some(output) = perfetto {
        output.write(trace.perfetto())?;
    }
    if let Some(output) = html {
        let title = format!("{}, executed", args.file.display());
        let page = gantt::page(&gantt::of_trace(&trace, title));
        output.write(page)?;
    }
    let agreement = args
        .against
        .as_deref()
        .map(|system| compare(&trace, system, args))
        .transpose()?;
    let code = match &agreement {
        Some(Err(_)) => Code::Fault,
        _ => Code::Done,
    };
    if args.json {
        super::print(&json::document(
            "report",
            report_json::body(&trace, agreement.as_ref()),
        ))?;
        return Ok(code);
    }
    match args.list {
        Some((from, to)) => super::print(&trace.list(from, to))?,
        None => super::print(&trace.report())?,
    }
    match agreement {
        None => {}
        Some(Ok(pcpus)) => {
            let mut text = "\nexecuted against simulated\n".to_owned();
            for (agreement, pcpu) in pcpus.iter().zip(0..) {
                text.push_str(&format!("  pCPU {pcpu}: {agreement}\n"));
            }
            super::print(&text)?;
        }
        Some(Err(difference)) => {
            super::print(&format!(
                "\nexecuted against simulated: DIFFERENT\n  {difference}\n"
            ))?;
        }
    }
    Ok(code)
}

/// Compares the executed run with the simulated one. A difference is no failure of the tool.
fn compare(trace: &Trace, system: &Path, args: &ReportArgs) -> Result<Comparison, Problem> {
    let progress = Progress::new();
    let folder = system.parent().unwrap_or(Path::new(""));
    let system = prepare::check(system, &progress)?;
    let policies = Policies::of(&system, folder, &progress)?;
    drop(progress);
    let tolerance = Tolerance {
        overhead: (args.overhead * 1000.0) as u64,
        turns: !args.strict,
    };
    let agreement = replay::agree(trace, &system, &policies, tolerance);
    Ok(agreement
        .map(|pcpus| pcpus.iter().map(replay::Agreement::text).collect())
        .map_err(|difference| difference.to_string()))
}

fn read(path: &Path) -> Result<Trace, Problem> {
    let bytes = crate::input::read(
        path,
        "a trace; `bulkhead run SYSTEM.toml --trace FILE` writes one",
    )?;
    Trace::decode(&bytes).map_err(|why| {
        Problem::new(format!("{} is no trace: {why}", path.display()))
            .remedy("`bulkhead run SYSTEM.toml --trace FILE` writes one")
    })
}
