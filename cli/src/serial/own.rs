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
//! A line of another console is none of these, also with the same text.

use bulkhead_abi::framing::{HYPERVISOR_CONSOLE, RS, US};

/// Returns the text of a line, if the line is the hypervisor's own. `is_console` tells whether a partition
/// has a name: such a name after the time is the tag of that partition.
#[must_use]
pub fn text<'t>(line: &'t str, is_console: &dyn Fn(&str) -> bool) -> Option<&'t str> {
    let line = line.trim_end_matches(['\r', '\n']);
    // The last tag counts: the bytes before it are a piece of another console's line.
    let line = line.rsplit(char::from(RS)).next()?;
    if let Some((tag, text)) = line.split_once(char::from(US)) {
        let name = tag.trim_start().rsplit("] ").next()?.strip_suffix(": ")?;
        return (name == HYPERVISOR_CONSOLE).then_some(text);
    }
    if let Some(text) = shown(line) {
        return text;
    }
    if let Some((_, text)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) {
        return match text.split_once(": ") {
            Some((HYPERVISOR_CONSOLE, text)) => Some(text),
            Some((name, _)) if is_console(name) => None,
            _ => Some(text),
        };
    }
    Some(line)
}

/// Returns the text of a line that `bulkhead run` has shown: `None` in the inner place if the line is of
/// another console.
fn shown(line: &str) -> Option<Option<&str>> {
    let (time, rest) = line.trim_start().split_once(' ')?;
    let is_time = time.contains('.') && time.chars().all(|char| char == '.' || char.is_ascii_digit());
    let (name, text) = rest.split_once(" | ").filter(|_| is_time)?;
    Some((name.trim_end() == HYPERVISOR_CONSOLE).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "health: partition=a vcpu=0 class=memory";

    fn own(line: &str) -> Option<&str> {
        text(line, &|name| ["rogue", "health"].contains(&name))
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
}
