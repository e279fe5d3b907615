// SPDX-License-Identifier: Apache-2.0
//! Intel HEX: contents with their addresses, as text.
//!
//! Build tools of microcontrollers write such files, and flash tools read them. The records are read by the
//! crate `ihex`. The code here puts them together: a record says the lower half of an address alone.

use ihex::{ReaderError, Record};

use super::Stretch;

/// The reason why a file of Intel HEX cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HexError {
    /// The number of the line, from 1 on.
    pub line: usize,
    pub why: String,
}

/// Tells whether a payload is a file of Intel HEX. No vector table begins with these bytes: its first word
/// would be a stack pointer that is no multiple of 4.
pub(crate) fn is_hex(bytes: &[u8]) -> bool {
    let digits = bytes.get(1..9).unwrap_or(&[]);
    bytes.first() == Some(&b':') && digits.len() == 8 && digits.iter().all(u8::is_ascii_hexdigit)
}

/// Tells whether a payload is a file of Motorola S-records.
pub(crate) fn is_s_records(bytes: &[u8]) -> bool {
    let digits = bytes.get(1..8).unwrap_or(&[]);
    bytes.first() == Some(&b'S') && digits.len() == 7 && digits.iter().all(u8::is_ascii_hexdigit)
}

/// Returns the contents in ascending order. Neighbours are one stretch.
///
/// # Errors
/// The first line that is wrong.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Stretch>, HexError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or(&[]);
        HexError {
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            why: "it has bytes that are no text".to_owned(),
        }
    })?;
    // Each with the line that it is from.
    let mut found: Vec<(usize, Stretch)> = Vec::new();
    let mut base = 0;
    let mut last = 0;
    let mut has_ended = false;
    let lines = (1..).zip(text.lines().map(str::trim_end));
    for (line, record) in lines.filter(|(_, record)| !record.is_empty()) {
        let wrong = |why: String| HexError { line, why };
        if has_ended {
            if record.starts_with(':') {
                return Err(wrong("the record before ends the file".to_owned()));
            }
            continue;
        }
        last = line;
        match Record::from_record_string(record).map_err(|error| wrong(words(&error)))? {
            Record::Data { offset, value } => {
                let address = base + u64::from(offset);
                let end = address + value.len() as u64;
                if end > 1 << 32 {
                    return Err(wrong("its address is beyond 4G".to_owned()));
                }
                let bytes = value;
                found.push((line, Stretch { address, bytes }));
            }
            Record::ExtendedSegmentAddress(upper) => base = u64::from(upper) << 4,
            Record::ExtendedLinearAddress(upper) => base = u64::from(upper) << 16,
            // The vector table says where a program for a microcontroller starts.
            Record::StartSegmentAddress { .. } | Record::StartLinearAddress(_) => {}
            Record::EndOfFile => has_ended = true,
        }
    }
    if has_ended {
        return join(found);
    }
    Err(HexError {
        line: last,
        why: "the record that ends a file does not follow".to_owned(),
    })
}

/// Returns the words for a record that cannot be read. The words of the crate for a check sum name the wrong
/// one as the right one.
fn words(error: &ReaderError) -> String {
    match error {
        ReaderError::ChecksumMismatch(computed, written) => {
            format!("its check sum is {written:02X}, and its bytes have {computed:02X}")
        }
        other => other.to_string(),
    }
}

/// Joins the records that follow each other. Refuses two records for one address.
fn join(mut found: Vec<(usize, Stretch)>) -> Result<Vec<Stretch>, HexError> {
    found.retain(|(_, stretch)| !stretch.bytes.is_empty());
    found.sort_by_key(|(_, stretch)| stretch.address);
    let mut joined: Vec<Stretch> = Vec::new();
    for (line, stretch) in found {
        match joined.last_mut().map(|before| (before.window().end(), before)) {
            Some((end, _)) if end > stretch.address => {
                let why = format!("another record has contents for {:#x}, too", stretch.address);
                return Err(HexError { line, why });
            }
            Some((end, before)) if end == stretch.address => before.bytes.extend(stretch.bytes),
            _ => joined.push(stretch),
        }
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: &str = ":00000001FF";

    fn record(record: &Record) -> String {
        record.to_record_string().expect("a record")
    }

    fn data(offset: u16, value: &[u8]) -> String {
        let value = value.to_vec();
        record(&Record::Data { offset, value })
    }

    fn text(lines: &[String]) -> Vec<u8> {
        format!("{}\r\n{END}\r\n", lines.join("\r\n")).into_bytes()
    }

    fn wrong(bytes: &[u8]) -> (usize, String) {
        let error = read(bytes).expect_err("refused");
        (error.line, error.why)
    }

    #[test]
    fn records_in_any_order_become_stretches() {
        let lines = [
            record(&Record::ExtendedLinearAddress(0x2000)),
            data(0xfffe, &[5, 6, 7]),
            record(&Record::ExtendedSegmentAddress(0x1000)),
            data(4, &[3]),
            data(0, &[1, 2, 2, 2]),
            record(&Record::StartLinearAddress(0x1_0001)),
        ];
        let stretch = |address, bytes: &[u8]| Stretch {
            address,
            bytes: bytes.to_vec(),
        };
        let expected = [
            stretch(0x1_0000, &[1, 2, 2, 2, 3]),
            stretch(0x2000_fffe, &[5, 6, 7]),
        ];
        assert_eq!(read(&text(&lines)).expect("a file"), expected);
        assert!(is_hex(&text(&lines)) && !is_s_records(&text(&lines)));
        // A text after the end does not count, and two files in one are refused.
        let more = [text(&lines), b"a comment".to_vec()].concat();
        assert_eq!(read(&more).expect("a file"), expected);
        let two = [text(&lines), text(&lines)].concat();
        assert_eq!(wrong(&two), (8, "the record before ends the file".to_owned()));
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        let good = data(0, &[1, 2]);
        let broken = data(2, &[3]).replace("03F", "04F");
        assert_eq!(
            wrong(&text(&[good.clone(), broken])),
            (2, "its check sum is FA, and its bytes have F9".to_owned())
        );
        assert_eq!(wrong(good.as_bytes()).0, 1, "no end");
        assert_eq!(wrong(&text(&[good.clone(), String::new(), good.clone()])).0, 3);
        assert_eq!(wrong(&text(&[good.clone(), "AGAIN".to_owned()])).0, 2);
        assert_eq!(wrong(&[good.as_bytes(), b"\n:\xff"].concat()).0, 2);
        let far = [
            record(&Record::ExtendedLinearAddress(0xffff)),
            data(0xffff, &[1, 2]),
        ];
        assert_eq!(wrong(&text(&far)), (2, "its address is beyond 4G".to_owned()));
    }

    #[test]
    fn neither_a_vector_table_nor_a_text_is_taken_for_records() {
        assert!(!is_hex(&0x2005_1000_u32.to_le_bytes()));
        assert!(!is_hex(b": a text") && !is_hex(b":0000000") && !is_hex(b""));
        assert!(is_s_records(b"S00F000068656C6C6F") && !is_s_records(b"Some text"));
    }
}
