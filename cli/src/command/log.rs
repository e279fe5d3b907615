// SPDX-License-Identifier: Apache-2.0
//! `bulkhead log`: what the hypervisor has left in RAM, from a memory dump.

use super::LogArgs;
use crate::log_area::LogArea;
use crate::problem::{Code, Problem};

pub(super) fn run(args: &LogArgs) -> Result<Code, Problem> {
    let dump = std::fs::read(&args.dump).map_err(Problem::io(args.dump.display()))?;
    let Some((at, area)) = LogArea::find(&dump) else {
        return Err(
            Problem::new(format!("no log of the hypervisor in {}", args.dump.display())).remedy(
                "dump at least the 64 KiB directly below the address at which bulkhead.bin is loaded",
            ),
        );
    };
    super::print(&format!("at {at:#x} of the dump: {}", area.text_of_all()))?;
    Ok(Code::Done)
}
