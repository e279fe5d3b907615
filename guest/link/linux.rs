// SPDX-License-Identifier: Apache-2.0
//! Build script of programs for Linux without a C library: links them with `guest/link/linux.ld`.

use std::env;

fn main() {
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let script = format!("{package}/../../../guest/link/linux.ld");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        if env::var("CARGO_CFG_TARGET_ARCH").as_deref() == Ok("x86_64") {
            println!("cargo:rustc-link-arg-bins=-no-pie");
        }
        println!("cargo:rustc-link-arg-bins=-T{script}");
    }
    println!("cargo:rerun-if-changed={script}");
}
