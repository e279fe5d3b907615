// SPDX-License-Identifier: Apache-2.0
//! `xtask stretch`: the longest stretches of one run, by kind of entry.

use crate::{Findings, Outcome};
use bulkhead::build::prepare::{Options, prepare};
use bulkhead::emulator::launch::{self, Launch};
use bulkhead::emulator::session::NoInput;
use bulkhead::serial::consoles::{ConsoleLine, Control, Observer};
use bulkhead::ui::progress::Progress;
use bulkhead_tests::stretch::{Instrument, table};
use std::path::Path;

/// Records of each pCPU's ring in a traced run.
const TRACE_RECORDS: u32 = 1 << 16;

/// Shows what the hypervisor says, on the way.
struct Log;

impl Observer for Log {
    fn line(&mut self, line: ConsoleLine<'_>, _: &mut Control) {
        if line.console == "bulkhead" {
            eprintln!("{}", line.text);
        }
    }
}

/// Runs the manifest at `system` and prints the table.
pub(crate) fn show(system: &Path, seconds: f64, profiles: usize, trace: bool) -> Outcome {
    let options = Options {
        stop_after: Some(seconds),
        trace_records: trace.then_some(TRACE_RECORDS),
        ..Options::default()
    };
    let prepared = prepare(system, &options, &Progress::new()).map_err(|problem| problem.to_string())?;
    let mut emulator = prepared.emulator().map_err(|problem| problem.to_string())?;
    let instrument = Instrument::new(&prepared, &emulator.program).map_err(|trouble| trouble.to_string())?;
    emulator.arguments.extend(instrument.arguments().iter().cloned());
    let launch = Launch {
        deterministic: true,
        virtual_seconds: Some(seconds + 1.0),
        log_base: Some(prepared.system().log_base()),
        trace,
        ..Launch::default()
    };
    let outcome = launch::run(
        &launch,
        prepared.board_of(&emulator),
        prepared.flash(),
        &mut Log,
        &mut NoInput,
        None,
    );
    outcome.map_err(|problem| problem.to_string())?;
    print!("{}", table(&instrument, &instrument.found()?, profiles));
    Ok(instrument.finding()?.into_iter().collect::<Findings>())
}
