// SPDX-License-Identifier: Apache-2.0
//! Texts in every encoding that editors save, so that none is taken for a program.

/// Bytes of a file that are looked at to tell text from code.
const LOOKED_AT: usize = 512;
/// The least bytes of a text in an encoding that any bytes fit. A few words of code can look like letters, as
/// `b .` of PowerPC does.
const LEAST: usize = 32;
/// The least letters of a text in units of several bytes without a mark.
const LEAST_UNITS: usize = 4;

/// The encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Ascii,
    Utf8,
    /// UTF-8 with a byte order mark.
    MarkedUtf8,
    Utf16,
    Utf32,
    /// One byte for each letter, such as Latin-1.
    SingleBytes,
}

impl Encoding {
    /// Returns the bytes that a text in this encoding without a mark has at least.
    const fn least(self) -> usize {
        match self {
            Self::Ascii | Self::Utf8 | Self::MarkedUtf8 => 0,
            Self::Utf16 => LEAST_UNITS * 2,
            Self::Utf32 => LEAST_UNITS * 4,
            Self::SingleBytes => LEAST,
        }
    }

    /// Returns the words for a text in this encoding.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ascii => "plain text",
            Self::Utf8 => "text in UTF-8",
            Self::MarkedUtf8 => "text in UTF-8 with a byte order mark",
            Self::Utf16 => "text in UTF-16",
            Self::Utf32 => "text in UTF-32",
            Self::SingleBytes => "text in an encoding of one byte a letter, such as Latin-1",
        }
    }
}

/// Returns the encoding of a file that is a text. Code of so many bytes without any that text does not have
/// is nowhere.
pub(crate) fn encoding(bytes: &[u8]) -> Option<Encoding> {
    let start = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    // A mark of UTF-16 is the first half of one of UTF-32.
    for (mark, encoding) in [
        (&b"\xff\xfe\0\0"[..], Encoding::Utf32),
        (b"\0\0\xfe\xff", Encoding::Utf32),
        (b"\xef\xbb\xbf", Encoding::MarkedUtf8),
        (b"\xff\xfe", Encoding::Utf16),
        (b"\xfe\xff", Encoding::Utf16),
    ] {
        let rest = start.strip_prefix(mark);
        if rest.is_some_and(|rest| !rest.is_empty() && is_in(rest, encoding)) {
            return Some(encoding);
        }
    }
    let unmarked = [
        Encoding::Ascii,
        Encoding::Utf8,
        Encoding::Utf32,
        Encoding::Utf16,
        Encoding::SingleBytes,
    ];
    unmarked
        .into_iter()
        .find(|encoding| start.len() >= encoding.least() && is_in(start, *encoding))
}

/// Tells whether bytes are letters in an encoding, in either order of the bytes.
fn is_in(start: &[u8], encoding: Encoding) -> bool {
    match encoding {
        Encoding::Ascii => start.iter().all(|byte| is_ascii_letter(char::from(*byte))),
        Encoding::Utf8 | Encoding::MarkedUtf8 => {
            // The last letter may be cut off.
            let text = match std::str::from_utf8(start) {
                Ok(text) => Some(text),
                Err(error) if error.error_len().is_none() && start.len() == LOOKED_AT => {
                    std::str::from_utf8(&start[..error.valid_up_to()]).ok()
                }
                Err(_) => None,
            };
            text.is_some_and(|text| are_letters(text.chars().map(Some)))
        }
        Encoding::Utf16 => [u16::from_le_bytes, u16::from_be_bytes].into_iter().any(|order| {
            let units = start.as_chunks::<2>().0.iter().map(|pair| order(*pair));
            are_letters(char::decode_utf16(units).map(Result::ok))
        }),
        Encoding::Utf32 => [u32::from_le_bytes, u32::from_be_bytes].into_iter().any(|order| {
            let units = start.as_chunks::<4>().0.iter().map(|four| order(*four));
            are_letters(units.map(char::from_u32))
        }),
        Encoding::SingleBytes => {
            let letters = start.iter().map(|byte| Some(char::from(*byte)));
            are_letters(letters)
        }
    }
}

const fn is_ascii_letter(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' '..='~')
}

/// Tells whether all are letters, and at least half of them are of ASCII, as in texts that a person takes for
/// a payload by mistake.
fn are_letters(letters: impl Iterator<Item = Option<char>>) -> bool {
    let (mut all, mut plain) = (0_u32, 0);
    for letter in letters {
        let Some(letter) = letter.filter(|letter| is_ascii_letter(*letter) || is_wide_letter(*letter)) else {
            return false;
        };
        all += 1;
        plain += u32::from(is_ascii_letter(letter));
    }
    all != 0 && plain >= all - plain
}

/// Tells whether a character beyond ASCII is one of a text: a letter, a sign of Latin-1, or a dash or quote.
fn is_wide_letter(letter: char) -> bool {
    letter > '~'
        && (letter.is_alphanumeric() || matches!(letter, '\u{a0}'..='\u{ff}' | '\u{2010}'..='\u{20ac}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide<const N: usize>(text: &str, order: fn(u32) -> [u8; N]) -> Vec<u8> {
        text.chars().flat_map(|letter| order(u32::from(letter))).collect()
    }

    #[test]
    fn a_text_is_known_in_every_encoding() {
        for text in [
            "A text, and no program: a, b, c.\n",
            "Gr\u{f6}\u{df}e der \u{c4}pfel, und mehr davon\n",
        ] {
            let plain = if text.is_ascii() {
                Encoding::Ascii
            } else {
                Encoding::Utf8
            };
            assert_eq!(encoding(text.as_bytes()), Some(plain));
            let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
            assert_eq!(encoding(&marked), Some(Encoding::MarkedUtf8));
            let orders: [fn(u32) -> [u8; 2]; 2] = [
                |unit| (unit as u16).to_le_bytes(),
                |unit| (unit as u16).to_be_bytes(),
            ];
            for order in orders {
                assert_eq!(encoding(&wide(text, order)), Some(Encoding::Utf16), "{text}");
                let marked = wide(&format!("\u{feff}{text}"), order);
                assert_eq!(encoding(&marked), Some(Encoding::Utf16), "{text}");
            }
            for order in [u32::to_le_bytes, u32::to_be_bytes] {
                assert_eq!(encoding(&wide(text, order)), Some(Encoding::Utf32), "{text}");
                let marked = wide(&format!("\u{feff}{text}"), order);
                assert_eq!(encoding(&marked), Some(Encoding::Utf32), "{text}");
            }
            let single = wide(text, |unit| [unit as u8]);
            let expected = if text.is_ascii() {
                Encoding::Ascii
            } else {
                Encoding::SingleBytes
            };
            assert_eq!(encoding(&single), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_text_whose_last_letter_is_cut_off_is_one() {
        let text = String::from("...") + &"\u{e4}bc".repeat(LOOKED_AT);
        assert_eq!(encoding(text.as_bytes()), Some(Encoding::Utf8));
    }

    #[test]
    fn code_is_no_text() {
        // Endless loops: `b .` of A64 and of PowerPC, and zeros.
        for code in [&[0, 0, 0, 0x14][..], &[0x48, 0, 0, 0], &[0; 64]] {
            assert_eq!(encoding(code), None, "{code:?}");
        }
    }
}
