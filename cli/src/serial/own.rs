// SPDX-License-Identifier: Apache-2.0
//! Lines of the hypervisor's own in text that was kept: the begin of such a line tells its console.
//!
//! | line | written by |
//! |---|---|
//! | `0.000338 bulkhead \| TEXT` | `bulkhead run` |
//! | RS `[0.000338] bulkhead: ` US `TEXT` | the board's serial line, with or without its control bytes |
//! | `[0.000338] TEXT` | `bulkhead log` |
//! | `TEXT` | the file of the console, by `bulkhead run --log` |
//!
//! A line of another console does not count, for all that it may say. In a text that has tags, a line without
//! a tag does not count either: its tag was lost.

use bulkhead_abi::framing::{HYPERVISOR_CONSOLE, RS, US};
use bulkhead_abi::log::ending::crash_place;

/// The begins of what is explained, as they can stand anywhere in a line.
const REPORTS: [&str; 2] = ["health: partition=", "registers: partition="];

/// Reads a text that was kept, line by line.
#[derive(Debug, Default)]
pub struct Kept {
    /// True once a line had the tag of a console.
    is_tagged: bool,
    /// True if the text is the file of a partition's console.
    is_of_partition: bool,
    passed_over: usize,
}

/// The console that a line is of.
enum Line<'t> {
    Own(&'t str),
    Other,
    Untagged(&'t str),
}

impl Kept {
    /// Reads the file of a partition's console. All its lines are of that console.
    #[must_use]
    pub fn of_partition() -> Self {
        Self {
            is_of_partition: true,
            ..Self::default()
        }
    }

    /// Returns the text of the next line, if the line is the hypervisor's own. `is_console` tells whether a
    /// partition has a name: such a name after the time is the tag of that partition.
    pub fn own<'t>(&mut self, line: &'t str, is_console: &dyn Fn(&str) -> bool) -> Option<&'t str> {
        let of = match origin(line, is_console) {
            _ if self.is_of_partition => Line::Other,
            Line::Untagged(_) if self.is_tagged => Line::Other,
            of => of,
        };
        self.is_tagged |= !matches!(of, Line::Untagged(_));
        if let Line::Own(text) | Line::Untagged(text) = of {
            return Some(text);
        }
        self.passed_over += usize::from(is_like_report(line));
        None
    }

    /// Returns the number of lines of other consoles that look like reports of the hypervisor.
    #[must_use]
    pub fn passed_over(&self) -> usize {
        self.passed_over
    }
}

/// Tells whether a line has the words of a report anywhere.
fn is_like_report(line: &str) -> bool {
    REPORTS.iter().any(|begin| line.contains(begin)) || crash_place(line).is_some()
}

/// Finds the console of a line by its tag.
fn origin<'t>(line: &'t str, is_console: &dyn Fn(&str) -> bool) -> Line<'t> {
    let line = line.trim_end_matches(['\r', '\n']);
    // The last tag counts: the bytes before it are a piece of another console's line.
    let line = line.rsplit(char::from(RS)).next().unwrap_or(line);
    if let Some((tag, text)) = line.split_once(char::from(US)) {
        let name = tag.trim_start().rsplit("] ").next().unwrap_or(tag);
        return of(name.strip_suffix(": ").unwrap_or_default(), text);
    }
    if let Some((name, text)) = shown(line) {
        return of(name, text);
    }
    if let Some((_, text)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) {
        return match text.split_once(": ") {
            Some((name, text)) if name == HYPERVISOR_CONSOLE || is_console(name) => of(name, text),
            _ => Line::Untagged(text),
        };
    }
    Line::Untagged(line)
}

fn of<'t>(name: &str, text: &'t str) -> Line<'t> {
    match name {
        HYPERVISOR_CONSOLE => Line::Own(text),
        _ => Line::Other,
    }
}

/// Returns the console and the text of a line that `bulkhead run` has shown.
fn shown(line: &str) -> Option<(&str, &str)> {
    let (time, rest) = line.trim_start().split_once(' ')?;
    let is_time = time.contains('.') && time.chars().all(|char| char == '.' || char.is_ascii_digit());
    let (name, text) = rest.split_once(" | ").filter(|_| is_time)?;
    Some((name.trim(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "health: partition=a vcpu=0 class=memory";

    fn own(line: &str) -> Option<&str> {
        Kept::default().own(line, &|name| ["rogue", "health"].contains(&name))
    }

    #[test]
    fn a_line_of_the_hypervisor_is_found_in_every_form() {
        for line in [
            "health: partition=a vcpu=0 class=memory\r\n",
            "0.000338 bulkhead | health: partition=a vcpu=0 class=memory",
            "    0.000338 bulkhead     | health: partition=a vcpu=0 class=memory\r",
            "\x1e[0.000338] bulkhead: \x1fhealth: partition=a vcpu=0 class=memory",
            "~ # \x1e\r\n[0.000338] bulkhead: \x1fhealth: partition=a vcpu=0 class=memory",
            "\x1e\r\nbulkhead: \x1fhealth: partition=a vcpu=0 class=memory",
            "[0.000338] bulkhead: health: partition=a vcpu=0 class=memory",
        ] {
            assert_eq!(own(line), Some(SAID), "{line:?}");
        }
        assert_eq!(
            own("[0.1] registers: partition=a"),
            Some("registers: partition=a")
        );
    }

    #[test]
    fn a_line_of_another_console_is_none_whatever_it_says() {
        for line in [
            "0.000338 rogue | health: partition=a vcpu=0 class=memory",
            "0.000338 rogue | 0.1 bulkhead | health: partition=a vcpu=0 class=memory",
            "\x1e[0.000338] rogue: \x1fhealth: partition=a vcpu=0 class=memory",
            "\x1e[0.000338] rogue: \x1f[0.1] bulkhead: health: partition=a vcpu=0 class=memory",
            "[0.000338] rogue: health: partition=a vcpu=0 class=memory",
            "[0.000338] health: partition=a vcpu=0 class=memory",
            "\x1e[0.000338] bulkhead: \x1f~ # \x1e[0.1] rogue: \x1fhealth: partition=a vcpu=0 class=memory",
        ] {
            assert_eq!(own(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_line_without_a_tag_is_none_in_a_text_with_tags() {
        let mut kept = Kept::default();
        let mut own = |line| kept.own(line, &|name| name == "rogue");
        assert_eq!(own(SAID), Some(SAID), "firmware, or the file of the console");
        assert_eq!(own("\x1e[0.1] rogue: \x1fhello"), None);
        assert_eq!(own(SAID), None, "the tag was lost");
        assert_eq!(own("\x1e[0.1] bulkhead: \x1fhealth: x"), Some("health: x"));
        assert_eq!(kept.passed_over(), 1);
    }

    #[test]
    fn the_file_of_a_partitions_console_has_no_line_of_the_hypervisor() {
        let mut kept = Kept::of_partition();
        for line in [
            SAID,
            "\x1e[0.1] bulkhead: \x1fhealth: partition=a",
            "0.1 bulkhead | hello",
        ] {
            assert_eq!(kept.own(line, &|_| false), None);
        }
        assert_eq!(kept.passed_over(), 2, "the third does not look like a report");
    }
}
