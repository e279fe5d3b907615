// SPDX-License-Identifier: Apache-2.0
//! `bulkhead build`: the files for a board.

use super::BuildArgs;
use crate::prepare::{Options, prepare};
use crate::problem::{Code, Problem};
use crate::progress::Progress;
use bulkhead_manifest::Class;
use std::fs;

pub(super) fn run(args: &BuildArgs) -> Result<Code, Problem> {
    let progress = Progress::new();
    let prepared = prepare(&args.system, &Options::default(), &progress)?;
    drop(progress);
    let folder = &args.output;
    fs::create_dir_all(folder).map_err(Problem::io(folder.display()))?;
    let map = super::check::report(prepared.system());
    let flash_name = match prepared.system().board().class {
        Class::Aarch64 => "bulkhead.bin",
        Class::Armv7m => "bulkhead.elf",
    };
    let files = [
        (
            flash_name,
            prepared.flash(),
            "class binary and system image, to load at once",
        ),
        ("system.img", prepared.image(), "the system image alone"),
        ("memory-map.txt", map.as_bytes(), "who has what"),
    ];
    for (name, bytes, what) in files {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(Problem::io(path.display()))?;
        super::print(&format!("{:>10}  {}  ({what})\n", bytes.len(), path.display()))?;
    }
    Ok(Code::Done)
}
