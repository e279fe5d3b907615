// SPDX-License-Identifier: Apache-2.0
//! `bulkhead completions` and `bulkhead man`: the command line, as shells and `man` want to know it.

use super::{Cli, CompletionsArgs, ManArgs};
use crate::problem::{Code, Problem};
use clap::CommandFactory;
use std::fs;

/// The name of the command.
const NAME: &str = "bulkhead";

pub(super) fn completions(args: &CompletionsArgs) -> Result<Code, Problem> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    super::print(&String::from_utf8_lossy(&script))?;
    Ok(Code::Done)
}

pub(super) fn man(args: &ManArgs) -> Result<Code, Problem> {
    let folder = &args.folder;
    fs::create_dir_all(folder).map_err(Problem::io(folder.display()))?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(Problem::io(folder.display()))?;
    Ok(Code::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use clap_complete::Shell;

    #[test]
    fn each_shell_learns_each_command_and_each_command_has_a_page() {
        let commands: Vec<String> = Cli::command()
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect();
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), NAME, &mut script);
            let script = String::from_utf8(script).unwrap();
            for command in &commands {
                assert!(script.contains(command.as_str()), "{shell}: {command}");
            }
        }
        let folder = std::env::temp_dir().join(format!("bulkhead-man-{}", std::process::id()));
        man(&ManArgs {
            folder: folder.clone(),
        })
        .unwrap();
        for command in &commands {
            let page = fs::read_to_string(folder.join(format!("{NAME}-{command}.1"))).unwrap();
            assert!(
                page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"),
                "{page}"
            );
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
