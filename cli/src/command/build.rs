// SPDX-License-Identifier: Apache-2.0
//! `bulkhead build`: the files for a board.

use super::BuildArgs;
use crate::build::output::{self, Output};
use crate::build::prepare::{self, Options, prepare};
use crate::class;
use crate::problem::{Code, Problem};
use crate::ui::progress::Progress;
use std::fs;
use std::path::Path;

/// The name of the ISO file.
const DISC: &str = "bulkhead.iso";
/// The name of the PE file.
const EFI: &str = "bulkhead.efi";

pub(super) fn run(args: &BuildArgs) -> Result<Code, Problem> {
    let progress = Progress::new();
    let options = Options {
        parts: args.parts.choice(),
        sign: args.sign.clone(),
        ..Options::default()
    };
    let prepared = prepare(&args.system, &options, &progress)?;
    let disc = args.iso.then(|| prepared.disc()).transpose()?;
    let efi = args.efi.then(|| prepared.efi(&progress)).transpose()?;
    drop(progress);
    let folder = &args.output;
    fs::create_dir_all(folder).map_err(Problem::io(folder.display()))?;
    let map = super::check::report(prepared.system());
    let flash_name = class::of(prepared.system().board()).flash_name();
    let mut files = vec![
        (
            flash_name,
            prepared.flash(),
            "class binary and system image, to load at once",
        ),
        ("system.img", prepared.image(), "the system image alone"),
        ("memory-map.txt", map.as_bytes(), "who has what"),
    ];
    if let Some(disc) = &disc {
        files.push((DISC, disc, "starts a PC, from a disc or a USB stick"));
    }
    let how = efi.as_ref().map_or_else(String::new, |(_, uefi)| {
        format!("UEFI starts it; as EFI/BOOT/{} from any medium", uefi.file)
    });
    if let Some((efi, _)) = &efi {
        files.push((EFI, efi, &how));
    }
    let mut inputs = prepare::inputs(&args.system);
    inputs.extend(prepared.inputs().map(Path::to_owned));
    // All before the first is written: a payload may have the name of any of them.
    let outputs = files
        .iter()
        .map(|(name, ..)| Output::claim(&folder.join(name), &inputs))
        .collect::<Result<Vec<_>, _>>()?;
    // Of another class, or of an earlier time: on a board it would be the wrong one.
    for stale in class::all()
        .map(class::Tool::flash_name)
        .chain([DISC, EFI])
        .filter(|stale| files.iter().all(|(name, ..)| name != stale))
    {
        let path = folder.join(stale);
        if path.exists() && !output::is_one_of(&path, &inputs) {
            fs::remove_file(&path).map_err(Problem::io(path.display()))?;
        }
    }
    for (output, (name, bytes, what)) in outputs.into_iter().zip(files) {
        output.write(bytes)?;
        let path = folder.join(name);
        super::print(&format!("{:>10}  {}  ({what})\n", bytes.len(), path.display()))?;
    }
    Ok(Code::Done)
}
