// SPDX-License-Identifier: Apache-2.0
//! `bulkhead import-arinc653`: a manifest from an ARINC 653 configuration in XML.

use super::ImportArgs;
use crate::arinc653::{Wishes, read, write};
use crate::input::read_text;
use crate::problem::{Code, Problem};
use bulkhead_manifest::board_names;
use std::fmt::Write;
use std::fs;

pub(super) fn run(args: &ImportArgs) -> Result<Code, Problem> {
    let boards = board_names();
    if !boards.contains(&args.board.as_str()) {
        return Err(Problem::usage(format!("there is no board `{}`", args.board))
            .remedy(format!("boards: {}", boards.join(", "))));
    }
    let file = args.file.display();
    let text = read_text(&args.file, "an ARINC 653 configuration in XML")?;
    let shown = |findings: &[crate::arinc653::Finding]| {
        let mut text = String::new();
        for finding in findings {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{file}:{finding}");
        }
        text
    };
    let (module, notes) = read(&text).map_err(|findings| Problem::reported(shown(&findings), Vec::new()))?;
    let mut names = module.partitions.iter().map(|partition| partition.name.as_str());
    if let Some((stranger, _)) = args
        .images
        .iter()
        .find(|(name, _)| !names.clone().any(|own| own == name))
    {
        let known: Vec<&str> = names.by_ref().collect();
        return Err(Problem::usage(format!("{file} has no partition `{stranger}`"))
            .remedy(format!("partitions: {}", known.join(", "))));
    }
    if !notes.is_empty() {
        crate::ui::terminal::tell(shown(&notes).trim_end());
    }
    let wishes = Wishes {
        board: args.board.clone(),
        origin: args
            .file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        images: args.images.iter().cloned().collect(),
    };
    let manifest = write(&module, &wishes);
    match &args.output {
        None => super::print(&manifest)?,
        Some(output) if output.exists() => {
            return Err(Problem::new(format!("{} exists already", output.display()))
                .remedy("give a file that is not there yet"));
        }
        Some(output) => fs::write(output, manifest).map_err(Problem::io(output.display()))?,
    }
    Ok(Code::Done)
}
