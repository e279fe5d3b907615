// SPDX-License-Identifier: Apache-2.0
//! Build script shared by every guest for a microcontroller: `link.x` of `cortex-m-rt` with the guest's own
//! `memory.x` and the handlers of the board's interrupts.
//!
//! One file for all of them (their `Cargo.toml` names it), because Cargo lets only the package that
//! makes an executable choose its linker script.

use std::env;

fn main() {
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-search={package}");
        println!("cargo:rustc-link-search={package}/../../../guest/mcu");
        println!("cargo:rustc-link-arg-bins=-Tlink.x");
        // Segments start where their sections do, not at a page.
        println!("cargo:rustc-link-arg-bins=--nmagic");
    }
    println!("cargo:rerun-if-changed={package}/memory.x");
    println!("cargo:rerun-if-changed={package}/../../../guest/mcu/device.x");
}
