// SPDX-License-Identifier: Apache-2.0
//! `bulkhead bench` and `bulkhead calibrate`: become the program of the crate `bulkhead-bench`.
//!
//! The bench is an instrument of the hypervisor's developers, so a user's tool is built without it. The entry
//! script of the repository builds it when it is asked for.

use crate::problem::{Code, Problem};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The program, which cargo puts beside the tool.
const PROGRAM: &str = "bulkhead-bench";

/// Becomes the program. Only a failure returns.
pub(super) fn run(command: Option<&str>, arguments: &[OsString]) -> Result<Code, Problem> {
    let own = std::env::current_exe().map_err(Problem::io("the path of the tool"))?;
    let program = own.with_file_name(PROGRAM);
    let error = Command::new(&program).args(command).args(arguments).exec();
    Err(
        Problem::new(format!("cannot start {}: {error}", program.display()))
            .remedy("start the tool with the script `bulkhead` of the repository, which builds this program"),
    )
}
