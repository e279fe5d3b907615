// SPDX-License-Identifier: Apache-2.0
//! Tells whether the stack of a class binary holds the deepest chain of its calls:
//! `bulkhead-stack ROOT FILE`, with the root of the repository.
//!
//! The host tool runs this program on a class binary with a policy of the user's own. It is a program of its
//! own, because it takes machine code of four CPUs apart, and few users need it.
#![forbid(unsafe_code)]

use bulkhead_stack::{Frame, measure};
use std::path::Path;
use std::process::ExitCode;

/// The functions of the chain that are shown: those that take most.
const SHOWN: usize = 5;

fn main() -> ExitCode {
    match verdict(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the reason why the stack does not hold the calls, with the functions that take most.
fn verdict(mut arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let (Some(root), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("usage: bulkhead-stack ROOT FILE".to_owned());
    };
    let bytes = std::fs::read(&file).map_err(|error| format!("{file}: {error}"))?;
    let name = Path::new(&file).file_name().unwrap_or_default().to_string_lossy();
    let measured = measure(Path::new(&root), &name, &bytes)?;
    if measured.findings.is_empty() {
        return Ok(());
    }
    let mut largest = measured.chain;
    largest.sort_by_key(|frame| std::cmp::Reverse(frame.bytes));
    let mut text = measured.findings.join("; ");
    for Frame { function, bytes } in largest.into_iter().take(SHOWN) {
        text.push_str(&format!("\n{bytes:>8}  {}", without_paths(&function)));
    }
    Err(text)
}

/// Returns the name of a function without the modules of the types in it.
fn without_paths(name: &str) -> String {
    let is_part_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut short = String::new();
    let mut word = String::new();
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        if is_part_of_name(letter) {
            word.push(letter);
        } else if letter == ':' && !word.is_empty() && letters.peek() == Some(&':') {
            letters.next();
            if letters.peek() == Some(&'<') {
                short.push_str(&word);
                short.push_str("::");
            }
            word.clear();
        } else {
            short.push_str(&word);
            short.push(letter);
            word.clear();
        }
    }
    short + &word
}

#[cfg(test)]
mod tests {
    use super::without_paths;

    #[test]
    fn a_name_is_shown_without_paths() {
        assert_eq!(
            without_paths("<a::b::Own as sched::Policy>::next"),
            "<Own as Policy>::next"
        );
        assert_eq!(
            without_paths("kernel::boot::run::<a::B, c::D<e::F>>"),
            "run::<B, D<F>>"
        );
        assert_eq!(without_paths("primary_main"), "primary_main");
    }
}
