// SPDX-License-Identifier: Apache-2.0
//! `bulkhead report`: what a trace says.

use super::ReportArgs;
use crate::problem::{Code, Problem};
use crate::trace::Trace;
use std::path::Path;

pub(super) fn run(args: &ReportArgs) -> Result<Code, Problem> {
    let trace = read(&args.file)?;
    if let Some(path) = &args.perfetto {
        std::fs::write(path, trace.perfetto()).map_err(Problem::io(path.display()))?;
    }
    super::print(&trace.report())?;
    Ok(Code::Done)
}

fn read(path: &Path) -> Result<Trace, Problem> {
    let bytes = std::fs::read(path).map_err(Problem::io(path.display()))?;
    Trace::decode(&bytes).map_err(|why| {
        Problem::new(format!("{} is no trace: {why}", path.display()))
            .remedy("`bulkhead run SYSTEM.toml --trace FILE` writes one")
    })
}
