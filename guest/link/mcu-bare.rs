// SPDX-License-Identifier: Apache-2.0
//! Build script of bare-metal programs of a microcontroller that need no run-time library: links each with
//! `guest/link/mcu-bare.ld` at the addresses that its own `memory.x` gives.

use std::env;

fn main() {
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let script = format!("{package}/../../../guest/link/mcu-bare.ld");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-search={package}");
        println!("cargo:rustc-link-arg-bins=-T{script}");
    }
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rerun-if-changed={package}/memory.x");
}
