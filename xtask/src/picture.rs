// SPDX-License-Identifier: Apache-2.0
//! Draws captured terminal output, so that the picture in the README is what the tool really printed.

use crate::Outcome;
use anstyle_svg::Term;
use std::io::Read;
use std::path::Path;

/// Reads text with ANSI colour codes from standard input and writes it as SVG.
pub fn draw(output: &Path) -> Outcome {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| format!("standard input: {error}"))?;
    let picture = Term::new().render_svg(&text);
    std::fs::write(output, picture).map_err(|error| format!("{}: {error}", output.display()))?;
    Ok(Vec::new())
}
