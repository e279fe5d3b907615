// SPDX-License-Identifier: Apache-2.0
//! Names: NUL padded UTF-8 without control characters.

use crate::layout::{NAME_LEN, Name};
use core::fmt;

/// Why a text cannot be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Nothing in it.
    Empty,
    /// More than [`NAME_LEN`] bytes.
    TooLong,
    /// Not UTF-8, or bytes after the padding.
    Encoding,
    /// A control character: it could forge a console tag.
    Control,
}

impl Name {
    /// Makes a name of `text`.
    ///
    /// # Errors
    /// [`NameError`] if it cannot be one.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let mut name = Self { bytes: [0; NAME_LEN] };
        name.bytes
            .get_mut(..text.len())
            .ok_or(NameError::TooLong)?
            .copy_from_slice(text.as_bytes());
        name.text().map(|_| name)
    }

    /// Returns the text.
    ///
    /// # Errors
    /// [`NameError`] if the bytes are no name.
    pub fn text(&self) -> Result<&str, NameError> {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME_LEN);
        let (text, padding) = self.bytes.split_at_checked(end).ok_or(NameError::Encoding)?;
        if padding.iter().any(|byte| *byte != 0) {
            return Err(NameError::Encoding);
        }
        let text = core::str::from_utf8(text).map_err(|_| NameError::Encoding)?;
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if has_control(text.as_bytes()) {
            return Err(NameError::Control);
        }
        Ok(text)
    }
}

/// Tells whether there is a control character (general category Cc) in UTF-8: U+0000 to U+001F and U+007F are
/// one byte, U+0080 to U+009F are 0xC2 and that number.
fn has_control(text: &[u8]) -> bool {
    let mut before = 0;
    text.iter().any(|byte| {
        let is_control = *byte < 0x20 || *byte == 0x7F || (before == 0xC2 && *byte < 0xA0);
        before = *byte;
        is_control
    })
}

impl fmt::Display for Name {
    /// Writes the text, or `?` for bytes that are no name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text().unwrap_or("?"))
    }
}

#[cfg(test)]
mod tests {
    use super::NameError;
    use crate::layout::{NAME_LEN, Name};

    #[test]
    fn keeps_its_text() {
        for text in [
            "a",
            "linux",
            "linux:kernel",
            "Größe",
            "0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(Name::new(text).unwrap().text(), Ok(text));
        }
    }

    #[test]
    fn refuses_what_is_no_name() {
        assert_eq!(Name::new(""), Err(NameError::Empty));
        assert_eq!(
            Name::new("0123456789abcdef0123456789abcdef!"),
            Err(NameError::TooLong)
        );
        assert_eq!(Name::new("a\u{1e}b"), Err(NameError::Control));
        for control in (1..0x1_0000).filter_map(char::from_u32) {
            let expected = if control.is_control() {
                Err(NameError::Control)
            } else {
                Ok(())
            };
            let name = Name::new(&std::format!("a{control}b"));
            assert_eq!(name.map(|_| ()), expected, "{control:?}");
        }
        assert_eq!(Name::new("a\0b"), Err(NameError::Encoding));
        assert_eq!(
            Name {
                bytes: [0xff; NAME_LEN]
            }
            .text(),
            Err(NameError::Encoding)
        );
    }
}
