// SPDX-License-Identifier: Apache-2.0
//! The host tool `bulkhead`. Everything is in the library, so that the system tests can use it.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    bulkhead::command::main()
}
