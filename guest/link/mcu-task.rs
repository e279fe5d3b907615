// SPDX-License-Identifier: Apache-2.0
//! Build script shared by every guest that is a task partition of a microcontroller: links it with
//! `guest/link/mcu-task.ld` for the memory that its own `memory.x` names.
//!
//! One file for all of them (their `Cargo.toml` names it), because Cargo lets only the package that
//! makes an executable choose its linker script.

use std::env;

fn main() {
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let script = format!("{package}/../../../guest/link/mcu-task.ld");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-search={package}");
        println!("cargo:rustc-link-arg-bins=-T{script}");
        // Segments start where their sections do, not at a page.
        println!("cargo:rustc-link-arg-bins=--nmagic");
    }
    println!("cargo:rerun-if-changed={script}");
    println!("cargo:rerun-if-changed={package}/memory.x");
}
