// SPDX-License-Identifier: Apache-2.0
//! The test program of the system tests; everything is in the library.
fn main() -> std::process::ExitCode {
    bulkhead_tests::main()
}
