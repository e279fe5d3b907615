// SPDX-License-Identifier: Apache-2.0
//! Passes the linker script to the class binary and to the binary of the conformance checks. This is a build
//! script because a manifest cannot name a file relative to itself.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo::rerun-if-changed=../aarch64/link.ld");
    println!("cargo::rustc-link-arg-bins=-T{directory}/../aarch64/link.ld");
    // A static PIE with relocations only where read-only data holds addresses.
    for argument in [
        "-pie",
        "--no-dynamic-linker",
        "-znotext",
        "--pack-dyn-relocs=relr",
        "--build-id=none",
    ] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}
