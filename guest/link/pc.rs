// SPDX-License-Identifier: Apache-2.0
//! Build script shared by every guest that is a bare-metal VM: links it with `guest/link/pc.ld`.
//!
//! One file for all of them (their `Cargo.toml` names it), because Cargo lets only the package that
//! makes an executable choose its linker script.

use std::env;

fn main() {
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let script = format!("{package}/../../../guest/link/pc.ld");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        println!("cargo:rustc-link-arg-bins=-zmax-page-size=4096");
        println!("cargo:rustc-link-arg-bins=-T{script}");
    }
    println!("cargo:rerun-if-changed={script}");
}
