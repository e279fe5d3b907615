// SPDX-License-Identifier: Apache-2.0
//! Links the guest where its partition is: RAM is elsewhere on the boards of class `armv8m`.

fn main() {
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let script = format!("{package}/../../../guest/link/mcu-bare.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        let ram = if package.ends_with("world-conformance") {
            "0x28020000"
        } else {
            "0x20020000"
        };
        println!("cargo:rustc-link-arg-bins=--defsym=GUEST_CODE=0x50000");
        println!("cargo:rustc-link-arg-bins=--defsym=GUEST_RAM={ram}");
        println!("cargo:rustc-link-arg-bins=-T{script}");
    }
    println!("cargo:rerun-if-changed={script}");
}
