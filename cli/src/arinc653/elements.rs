// SPDX-License-Identifier: Apache-2.0
//! Attributes of XML elements, read with the place of each mistake.

use super::Finding;
use roxmltree::{Attribute, Node};

/// Digits of a second after the point: a nanosecond.
const DIGITS: usize = 9;

/// The findings of an import.
#[derive(Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    /// Notes a mistake in an element.
    pub(super) fn wrong(&mut self, node: Node<'_, '_>, text: impl Into<String>) {
        self.add(node, node.range().start, text.into(), false);
    }

    /// Notes something that the import leaves out.
    pub(super) fn note(&mut self, node: Node<'_, '_>, text: impl Into<String>) {
        self.add(node, node.range().start, text.into(), true);
    }

    fn wrong_at(&mut self, node: Node<'_, '_>, attribute: Attribute<'_, '_>, text: impl Into<String>) {
        self.add(node, attribute.range().start, text.into(), false);
    }

    fn add(&mut self, node: Node<'_, '_>, at: usize, text: String, is_note: bool) {
        let place = node.document().text_pos_at(at);
        self.0.push(Finding {
            line: place.row,
            column: place.col,
            text,
            is_note,
        });
    }

    /// Reads the first of these attributes that the element has.
    pub(super) fn text<'a>(&mut self, node: Node<'a, '_>, names: &[&str]) -> Option<&'a str> {
        Some(self.attribute(node, names)?.value())
    }

    fn attribute<'a, 'i>(&mut self, node: Node<'a, 'i>, names: &[&str]) -> Option<Attribute<'a, 'i>> {
        let found = names.iter().find_map(|name| node.attribute_node(*name));
        if found.is_none() {
            let (element, name) = (node.tag_name().name(), names.first().unwrap_or(&""));
            self.wrong(node, format!("`{element}` has no attribute `{name}`"));
        }
        found
    }

    /// Reads a number, decimal or hexadecimal with `0x`.
    pub(super) fn number(&mut self, node: Node<'_, '_>, names: &[&str]) -> Option<u64> {
        let attribute = self.attribute(node, names)?;
        let text = attribute.value();
        let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        let wrong = format!("`{}` is \"{text}\", which is no whole number", attribute.name());
        number.map_err(|_| self.wrong_at(node, attribute, wrong)).ok()
    }

    /// Reads a number that fits in 32 bits.
    pub(super) fn small(&mut self, node: Node<'_, '_>, names: &[&str]) -> Option<u32> {
        let number = self.number(node, names)?;
        let wrong = format!("{number} is too large");
        u32::try_from(number).map_err(|_| self.wrong(node, wrong)).ok()
    }

    /// Reads seconds as nanoseconds.
    pub(super) fn time(&mut self, node: Node<'_, '_>, names: &[&str]) -> Option<u64> {
        let attribute = self.attribute(node, names)?;
        let time = nanoseconds(attribute.value());
        if time.is_none() {
            let (name, text) = (attribute.name(), attribute.value());
            let wrong =
                format!("`{name}` is \"{text}\", which is no number of seconds with at most 9 decimals");
            self.wrong_at(node, attribute, wrong);
        }
        time
    }

    /// Reads `true` or `false`.
    pub(super) fn flag(&mut self, node: Node<'_, '_>, name: &str) -> Option<bool> {
        let attribute = self.attribute(node, &[name])?;
        match attribute.value() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            other => {
                let wrong = format!("`{name}` is \"{other}\", neither \"true\" nor \"false\"");
                self.wrong_at(node, attribute, wrong);
                None
            }
        }
    }

    /// Reads a name that a manifest can have, of `most` characters at most.
    pub(super) fn name(&mut self, node: Node<'_, '_>, names: &[&str], most: usize) -> Option<String> {
        let attribute = self.attribute(node, names)?;
        let text = attribute.value();
        if is_name(text, most) {
            return Some(text.to_owned());
        }
        let wrong = format!(
            "\"{text}\" is no name of a manifest: a letter, then letters, digits, `-` and `_`, {most} in all"
        );
        self.wrong_at(node, attribute, wrong);
        None
    }
}

/// Tells whether a manifest can have this name.
pub(super) fn is_name(text: &str, most: usize) -> bool {
    let legal = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(legal)
        && text.len() <= most
}

/// Returns a decimal number of seconds in nanoseconds, without rounding.
pub(super) fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = part.trim_end_matches('0');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if part.len() > DIGITS || !digits(whole) || !digits(part) || text.is_empty() || text == "." {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u64 = format!("{part:0<DIGITS$}").parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn seconds_are_read_exactly() {
        assert_eq!(nanoseconds("0.020"), Some(20_000_000));
        assert_eq!(nanoseconds("1"), Some(1_000_000_000));
        assert_eq!(nanoseconds(".5"), Some(500_000_000));
        assert_eq!(nanoseconds("0.0000000010"), Some(1));
        for bad in [
            "",
            ".",
            "-1",
            "1e-3",
            "0.0000000001",
            "0,5",
            "99999999999999",
            "1.+5",
        ] {
            assert_eq!(nanoseconds(bad), None, "{bad}");
        }
    }
}
