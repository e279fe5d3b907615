// SPDX-License-Identifier: Apache-2.0
//! Links the guest where its partition is.

fn main() {
    let package = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let script = format!("{package}/../../../guest/link/mcu-bare.ld");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        for argument in ["--defsym=GUEST_CODE=0x60000", "--defsym=GUEST_RAM=0x28020000"] {
            println!("cargo:rustc-link-arg-bins={argument}");
        }
        println!("cargo:rustc-link-arg-bins=-T{script}");
    }
    println!("cargo:rerun-if-changed={script}");
}
