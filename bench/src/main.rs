// SPDX-License-Identifier: Apache-2.0
//! The program that `bulkhead bench` becomes. Everything is in the library, so that the system tests can use
//! it.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    bulkhead_bench::command::main()
}
