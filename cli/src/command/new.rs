// SPDX-License-Identifier: Apache-2.0
//! `bulkhead new`: a system to start from, which runs as it is.

use super::NewArgs;
use crate::problem::{Code, Problem};
use std::fs;

const MANIFEST: &str = r##"#:schema ./manifest.schema.json
# A system for Bulkhead. The manifest reference is docs/manifest-reference.md in the repository; the line
# above lets an editor with a TOML plug-in complete and check what you write.
board = "@BOARD@"

# A VM with Debian's own kernel. Any Linux Image, ELF or raw binary for QEMU's `virt` board can be named here,
# by a path relative to this file.
[partition.linux]
kind = "vm"
image = "@debian/linux-arm64"
ramdisk = "@debian/initramfs"
bootargs = "console=ttyAMA0"
memory = "256M"
vcpus = [{ pcpu = 0, priority = 4 }]

# A real-time guest on the same pCPU. Higher numbers run first: Linux gets the time it leaves.
[partition.control]
kind = "vm"
image = "@guests/control-loop"
memory = "2M"
vcpus = [{ pcpu = 0, priority = 16 }]

[partition.control.health]
memory = "restart"
"##;

const README: &str = "\
# @NAME@

A system of two partitions on board `@BOARD@`: Debian Linux, and a real-time control loop that shares its CPU.

    bulkhead check system.toml     memory map, CPUs, interrupts, who can touch what
    bulkhead run system.toml       run it in the emulator; Ctrl-A ? lists the keys
    bulkhead build system.toml -o out

`bulkhead` is the script at the root of the Bulkhead repository.
";

pub(super) fn run(args: &NewArgs) -> Result<Code, Problem> {
    let boards = bulkhead_manifest::board_names();
    if !boards.iter().any(|board| *board == args.board) {
        return Err(Problem::usage(format!("there is no board `{}`", args.board))
            .remedy(format!("boards: {}", boards.join(", "))));
    }
    let folder = &args.folder;
    let taken = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if taken || folder.is_file() {
        return Err(Problem::new(format!("{} exists already", folder.display()))
            .remedy("give a folder that is not there yet"));
    }
    let name = folder
        .file_name()
        .map_or_else(|| "system".into(), |name| name.to_string_lossy());
    let fill = |text: &str| text.replace("@BOARD@", &args.board).replace("@NAME@", &name);
    fs::create_dir_all(folder).map_err(Problem::io(folder.display()))?;
    let files = [
        ("system.toml", fill(MANIFEST)),
        ("README.md", fill(README)),
        ("manifest.schema.json", bulkhead_manifest::schema()),
    ];
    for (file, text) in files {
        let path = folder.join(file);
        fs::write(&path, text).map_err(Problem::io(path.display()))?;
    }
    let path = folder.join("system.toml");
    super::print(&format!(
        "made {0}; next:\n  bulkhead check {0}\n  bulkhead run {0}\n",
        path.display()
    ))?;
    Ok(Code::Done)
}
