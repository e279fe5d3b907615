// SPDX-License-Identifier: Apache-2.0
//! The picture of the demo in the README is what the demo prints.
//!
//! The demo is run once more, and each line is compared with the picture, but for times and addresses. One
//! instruction more changes the times of the board, and a longer path of the checkout changes addresses.
//! Other versions of the compiler, of the emulator or of Debian's kernel give other figures, so the picture
//! names the versions that it was made with. With others, only the list of the promises is compared,
//! without its numbers.
//!
//! `BLESS=1 BULKHEAD_SYSTEM_TESTS=1 cargo test -p bulkhead-tests --test demo` draws the picture anew.

use bulkhead::build::artifacts::Workspace;
use bulkhead::problem::Problem;
use bulkhead_tests::ENABLE;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The picture, from the root of the repository on.
const PICTURE: &str = "docs/images/demo.svg";
/// The command that the picture shows, in its first line.
const COMMAND: &str = "$ ./bulkhead demo";
/// Columns of the picture. A longer line is cut off, as on a narrow terminal.
const COLUMNS: usize = 128;
/// The prompt of the shell.
const PROMPT: &str = "~ #";
/// The beginning of the comment in the picture that names the versions.
const VERSIONS: &str = "<!-- made with ";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let filter = arguments.find(|argument| !argument.starts_with('-'));
    if std::env::var_os(ENABLE).is_none() || filter.is_some_and(|filter| !"demo".contains(&filter)) {
        println!("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out");
        return ExitCode::SUCCESS;
    }
    match compare() {
        Ok(()) => {
            println!("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("system demo: {why}");
            println!("test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
            ExitCode::FAILURE
        }
    }
}

/// Runs the demo and compares what it prints with the picture, or draws the picture.
fn compare() -> Result<(), Problem> {
    let root = Workspace::locate()?.root().to_owned();
    let path = root.join(PICTURE);
    let (printed, versions) = (demo(&root)?, versions()?);
    if std::env::var_os("BLESS").is_some() {
        return draw(&root, &path, &printed, &versions);
    }
    let picture = std::fs::read_to_string(&path).map_err(Problem::io(PICTURE))?;
    let (shown, printed) = (lines_of_picture(&picture), lines_of_terminal(&printed));
    let is_same_kernel = kernel(&shown) == kernel(&printed);
    let (shown, printed) = if picture.contains(&versions) && is_same_kernel {
        (comparable(&shown), comparable(&printed))
    } else {
        (promises(&shown), promises(&printed))
    };
    let differs = shown
        .iter()
        .zip(&printed)
        .find(|(shown, printed)| without_times(shown) != without_times(printed));
    if differs.is_none() && shown.len() == printed.len() {
        return Ok(());
    }
    Err(Problem::new(format!(
        "{PICTURE} has {} lines and the demo {}; the first that differ: {differs:#?}\nBLESS=1 draws it anew",
        shown.len(),
        printed.len()
    )))
}

/// Returns what the demo prints, with the colours of a terminal.
fn demo(root: &Path) -> Result<String, Problem> {
    let tool = Workspace::locate()?.target().join("debug/bulkhead");
    let output = Command::new(&tool)
        .arg("demo")
        .current_dir(root)
        .env("CLICOLOR_FORCE", "1")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .map_err(Problem::io(tool.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(Problem::new(format!("the demo failed:\n{text}")))
}

/// Returns the versions on which figures depend, besides the version of the kernel, which says it itself.
fn versions() -> Result<String, Problem> {
    let first_line = |program: &str| {
        let output = Command::new(program).arg("--version").output();
        let text = output.map_err(Problem::io(program))?.stdout;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok::<_, Problem>(text.lines().next().unwrap_or_default().to_owned())
    };
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    Ok(format!(
        "{VERSIONS}{}, {} -->",
        first_line(&compiler)?,
        first_line("qemu-system-aarch64")?
    ))
}

/// Draws what was printed.
fn draw(root: &Path, path: &PathBuf, printed: &str, versions: &str) -> Result<(), Problem> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut drawing = Command::new(&cargo)
        .args(["run", "--quiet", "-p", "xtask", "--", "picture"])
        .arg(path)
        .current_dir(root)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(Problem::io(&cargo))?;
    let lines = printed.lines().map(cut);
    let text: String = std::iter::once(format!("\x1b[1m{COMMAND}\x1b[0m"))
        .chain(lines)
        .map(|line| line + "\n")
        .collect();
    let pipe = drawing.stdin.take().ok_or_else(|| Problem::new("no input"))?;
    let written = { pipe }.write_all(text.as_bytes());
    written.map_err(Problem::io("the picture"))?;
    if !drawing.wait().map_err(Problem::io(&cargo))?.success() {
        return Err(Problem::new("the picture cannot be drawn"));
    }
    let picture = std::fs::read_to_string(path).map_err(Problem::io(PICTURE))?;
    let picture = picture.replacen("<style>", &format!("{versions}\n  <style>"), 1);
    std::fs::write(path, picture).map_err(Problem::io(PICTURE))
}

/// Cuts a line off at the width of the picture. Sequences of colours have no width.
fn cut(line: &str) -> String {
    let (mut kept, mut width, mut is_colour) = (String::new(), 0, false);
    for letter in line.chars() {
        is_colour |= letter == '\x1b';
        if is_colour {
            kept.push(letter);
            is_colour = letter != 'm';
        } else if width < COLUMNS {
            kept.push(letter);
            width += 1;
        }
    }
    kept
}

/// Returns the lines of a terminal, as the picture shows them.
fn lines_of_terminal(text: &str) -> Vec<String> {
    let plain = |line: &str| {
        let mut is_colour = false;
        let is_text = |letter: &char| {
            is_colour |= *letter == '\x1b';
            let is_text = !is_colour;
            is_colour &= *letter != 'm';
            is_text
        };
        line.chars().filter(is_text).collect::<String>()
    };
    let lines = text.lines().map(|line| plain(&cut(line)));
    let lines = std::iter::once(COMMAND.to_owned()).chain(lines);
    trimmed(lines.collect())
}

/// Returns the lines of text in a picture.
fn lines_of_picture(picture: &str) -> Vec<String> {
    let rows = picture.split("<tspan x=\"10px\"").skip(1);
    let text = |row: &str| {
        let mut is_tag = true;
        let is_text = |letter: &char| {
            is_tag |= *letter == '<';
            let is_text = !is_tag && *letter != '\n';
            is_tag &= *letter != '>';
            is_text
        };
        let text: String = row.chars().filter(is_text).collect();
        [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&#39;", "'"),
            ("&amp;", "&"),
        ]
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
    };
    trimmed(rows.map(text).collect())
}

/// Takes away spaces at the ends of lines, and empty lines at the end.
fn trimmed(lines: Vec<String>) -> Vec<String> {
    let mut lines: Vec<String> = lines.iter().map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Returns the line in which Linux says its version.
fn kernel(lines: &[String]) -> Option<&str> {
    let line = lines
        .iter()
        .find_map(|line| Some(line.split_once("linux: kernel ")?.1));
    line?.split(',').next()
}

/// Returns the lines without the time on the wall, which no run repeats, and in an order of their own. The
/// tool shows an unfinished line, a prompt, when the host has waited for its end. So its place among the
/// others is not the board's, and a line that is finished soon is never shown unfinished.
fn comparable(lines: &[String]) -> Vec<String> {
    let line = |line: &String| match line.split_once(" s of the board's time in ") {
        Some((board, _)) => board.to_owned(),
        None => line.clone(),
    };
    let is_prompt = |line: &&String| {
        line.split_once('|')
            .is_some_and(|(_, text)| text.trim() == PROMPT)
    };
    let mut lines: Vec<String> = lines.iter().filter(|line| !is_prompt(line)).map(line).collect();
    lines.sort_by_cached_key(|line| without_times(line));
    lines
}

/// Returns a line with a mark in the place of each time and of each address. Several spaces are one, because
/// a longer number takes the place of spaces.
fn without_times(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let units = words.iter().skip(1).chain([&""]);
    let marked = words.iter().zip(units).map(|(word, unit)| {
        let is_time = word.contains('.') || ["ns", "us"].contains(&unit.trim_end_matches(','));
        match word.split_once("=0x") {
            _ if is_time && word.parse::<f64>().is_ok() => "#".to_owned(),
            Some((name, _)) => format!("{name}=#"),
            None => (*word).to_owned(),
        }
    });
    marked.collect::<Vec<_>>().join(" ")
}

/// Returns the list of promises without numbers.
fn promises(lines: &[String]) -> Vec<String> {
    let without_numbers = |line: &String| line.chars().filter(|letter| !letter.is_ascii_digit()).collect();
    let promises = lines.iter().filter(|line| line.trim_start().starts_with('['));
    promises.map(without_numbers).collect()
}
