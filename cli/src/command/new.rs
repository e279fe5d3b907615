// SPDX-License-Identifier: Apache-2.0
//! `bulkhead new`: a system to start from, which runs as it is.

use super::NewArgs;
use crate::class;
use crate::problem::{Code, Problem};
use bulkhead_manifest::{board_names, boards};
use std::fs;

pub(super) fn run(args: &NewArgs) -> Result<Code, Problem> {
    let boards = boards();
    let Some(board) = boards.iter().find(|board| board.name == args.board) else {
        return Err(Problem::usage(format!("there is no board `{}`", args.board))
            .remedy(format!("boards: {}", board_names().join(", "))));
    };
    let template = class::of(board).template();
    let folder = &args.folder;
    let taken = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if taken || folder.is_file() {
        return Err(Problem::new(format!("{} exists already", folder.display()))
            .remedy("give a folder that is not there yet"));
    }
    let name = folder
        .file_name()
        .map_or_else(|| "system".into(), |name| name.to_string_lossy());
    let fill = |text: &str| {
        let text = text.replace("@BOARD@", &args.board).replace("@NAME@", &name);
        // The licence of this repository is not the licence of the user's system.
        text.split_once('\n')
            .map(|(_licence, rest)| rest.to_owned())
            .unwrap_or_default()
    };
    fs::create_dir_all(folder).map_err(Problem::io(folder.display()))?;
    let files = [
        ("system.toml", fill(template.manifest)),
        ("README.md", fill(template.readme)),
        ("manifest.schema.json", bulkhead_manifest::schema()),
    ];
    for (file, text) in files {
        let path = folder.join(file);
        fs::write(&path, text).map_err(Problem::io(path.display()))?;
    }
    let path = folder.join("system.toml");
    super::print(&format!(
        "made {0}; next:\n  {1} check {0}\n  {1} run {0}\n",
        path.display(),
        super::as_typed()
    ))?;
    Ok(Code::Done)
}
