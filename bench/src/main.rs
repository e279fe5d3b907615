// SPDX-License-Identifier: Apache-2.0
//! The program that `bulkhead bench` and `bulkhead calibrate` become. Everything is in the library, so that
//! the system tests can use it.
#![forbid(unsafe_code)]

use std::ffi::OsString;

fn main() -> std::process::ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|command| command == "calibrate") {
        return bulkhead_bench::calibrate::main(arguments);
    }
    bulkhead_bench::command::main()
}
