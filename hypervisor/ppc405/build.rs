// SPDX-License-Identifier: Apache-2.0
//! Passes the linker script to the class binary and to the binary of the conformance checks. This is a build
//! script because a manifest cannot name a file relative to itself.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo::rerun-if-changed=../ppc405/link.ld");
    println!("cargo::rustc-link-arg-bins=-T{directory}/../ppc405/link.ld");
    println!("cargo::rustc-link-arg-bins=--build-id=none");
}
