// SPDX-License-Identifier: Apache-2.0
//! `bulkhead verify`: the judgement of the hypervisor, on the host.

use super::VerifyArgs;
use crate::problem::{Code, Problem};
use crate::sign::{Found, public_key};
use std::fmt::Write;
use std::fs;

pub(super) fn run(args: &VerifyArgs) -> Result<Code, Problem> {
    let key = args.key.as_deref().map(public_key).transpose()?;
    let file = fs::read(&args.file).map_err(Problem::io(args.file.display()))?;
    let judged = Found::in_file(&file)?.judge(&file, key)?;
    let mut text = format!(
        "good: version {} for board `{}` of class `{}`\n",
        judged.version, judged.board, judged.class
    );
    let digest: String = judged.digest.iter().map(|byte| format!("{byte:02x}")).collect();
    // Writing to a string succeeds.
    let _ = writeln!(text, "digest of the tables: {digest}");
    if let Some(least) = judged.least_version {
        let keys: Vec<String> = judged.keys.iter().map(ToString::to_string).collect();
        let _ = writeln!(
            text,
            "class binary: runs version {least} or later of key {}",
            keys.join(" or ")
        );
    }
    super::print(&text)?;
    Ok(Code::Done)
}
