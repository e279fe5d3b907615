// SPDX-License-Identifier: Apache-2.0
//! Build script shared by every guest that is a bare-metal VM of a PowerPC 405: links it with
//! `guest/link/ppc-vm.ld`.
//!
//! One file for all of them (their `Cargo.toml` names it), because Cargo lets only the package that
//! makes an executable choose its linker script.

use std::env;

fn main() {
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let script = format!("{package}/../../../guest/link/ppc-vm.ld");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bins=-T{script}");
    }
    println!("cargo:rerun-if-changed={script}");
}
