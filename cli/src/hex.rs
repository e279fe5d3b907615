// SPDX-License-Identifier: Apache-2.0
//! Bytes as hexadecimal digits.

use std::fmt;

/// Bytes that are read and shown as hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Reads digits. White space between them does not count.
///
/// # Errors
/// The text has another character, or an odd number of digits.
pub fn bytes(text: &str) -> Result<Bytes, String> {
    let digit = |character: char| {
        let value = character.to_digit(16).and_then(|value| u8::try_from(value).ok());
        value.ok_or_else(|| format!("`{character}` is no hexadecimal digit"))
    };
    let digits = text.chars().filter(|character| !character.is_whitespace());
    let digits = digits.map(digit).collect::<Result<Vec<u8>, String>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("the number of hexadecimal digits is odd".to_owned());
    }
    Ok(Bytes(pairs.iter().map(|[high, low]| high << 4 | low).collect()))
}

#[cfg(test)]
mod tests {
    use super::{Bytes, bytes};

    #[test]
    fn digits_are_bytes() {
        assert_eq!(bytes("00 fF\n1a"), Ok(Bytes(vec![0, 255, 26])));
        assert_eq!(bytes("00ff1a").unwrap().to_string(), "00ff1a");
        assert!(bytes("0").is_err() && bytes("0g").is_err());
    }
}
