// SPDX-License-Identifier: Apache-2.0
//! Compiles the FreeRTOS kernel, whose sources the crate `freertos-next` ships, and the application in C.
//!
//! The compiler is Debian's cross compiler for 64-bit Arm, with the options in `gcc-freertos.options`.
//! Nothing of the kernel is changed: the port is `GCC/ARM_AARCH64_SRE` with `GUEST`, which is FreeRTOS' own
//! way to run at EL1 with a GICv3.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const COMPILER: &str = "aarch64-linux-gnu-gcc";
const OPTIONS: &str = "gcc-freertos.options";
const PORT: &str = "portable/GCC/ARM_AARCH64_SRE";
/// Files of the kernel, from its root.
const KERNEL: [&str; 8] = [
    "tasks.c",
    "queue.c",
    "list.c",
    "timers.c",
    "event_groups.c",
    "portable/MemMang/heap_4.c",
    "portable/GCC/ARM_AARCH64_SRE/port.c",
    "portable/GCC/ARM_AARCH64_SRE/portASM.S",
];
/// Files of this folder.
const APPLICATION: [&str; 6] = ["start.S", "board.c", "print.c", "hooks.c", "costs.c", "main.c"];

fn main() {
    for file in APPLICATION
        .iter()
        .chain(&[OPTIONS, "image.ld", "build.rs", "include"])
    {
        println!("cargo:rerun-if-changed={file}");
    }
    // The developer's machine does not run this program, but its tools look at the package.
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("none") {
        return;
    }
    let folder = |name: &str| PathBuf::from(env::var_os(name).unwrap_or_default());
    let (package, kernel, output) = (folder("CARGO_MANIFEST_DIR"), kernel(), folder("OUT_DIR"));
    let sources = KERNEL.iter().map(|file| kernel.join(file));
    for source in sources.chain(APPLICATION.iter().map(|file| package.join(file))) {
        let object = output
            .join(source.file_name().unwrap_or_default())
            .with_extension("o");
        compile(&package, &kernel, &source, &object);
        println!("cargo:rustc-link-arg-bins={}", object.display());
    }
    println!(
        "cargo:rustc-link-arg-bins=-T{}",
        package.join("image.ld").display()
    );
}

/// Asks cargo where it has put the kernel. Cargo names the folder of a crate only to packages that link the
/// crate's Rust code, which this one does not. Cargo may have to fetch what other packages of the workspace
/// use: on a fresh machine they are not there yet.
fn kernel() -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = env::var("TARGET").expect("cargo runs this script");
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            &target,
        ])
        .output()
        .expect("cargo runs this script");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut manifests = text.split("\"manifest_path\":\"").skip(1);
    let ours = manifests.find_map(|rest| {
        let folder = Path::new(rest.split('"').next()?).parent()?;
        let name = folder.file_name()?.to_str()?;
        name.starts_with("freertos-next")
            .then(|| folder.join("FreeRTOS-Kernel"))
    });
    ours.unwrap_or_else(|| {
        panic!(
            "cargo does not know freertos-next: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

fn compile(package: &Path, kernel: &Path, source: &Path, object: &Path) {
    let status = Command::new(COMPILER)
        .current_dir(package)
        .arg(format!("@{OPTIONS}"))
        .arg("-I")
        .arg(kernel.join("include"))
        .arg("-I")
        .arg(kernel.join(PORT))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{COMPILER} failed for {}: {status}", source.display()),
        Err(error) => panic!("cannot start {COMPILER}: {error}: apt-get install gcc-aarch64-linux-gnu"),
    }
}
