// SPDX-License-Identifier: Apache-2.0
//! Fault reports of class `ppc405` in words. Bits 63:32 of a syndrome are the offset of the interrupt's
//! vector, the bits below are ESR (PowerPC 405 Embedded Processor Core User's Manual, table 5-1 and section
//! 5.4.5).

/// Bits of ESR: their names.
const FLAGS: [(u32, &str); 6] = [
    (31, "MCI"),
    (27, "PIL"),
    (26, "PPR"),
    (25, "PTR"),
    (23, "DST"),
    (22, "DIZ"),
];

const PIL: u32 = 1 << 27;
const PPR: u32 = 1 << 26;
const PTR: u32 = 1 << 25;
const DST: u32 = 1 << 23;

/// Describes the attempt of the partition's instruction.
pub(super) fn sentence(syndrome: u64, address: Option<u64>) -> String {
    let (vector, cause) = ((syndrome >> 32) as u32, syndrome as u32);
    let place = address.map_or(String::new(), |address| format!(" at {address:#x}"));
    let what = match vector {
        0x300 | 0x1100 if cause & DST != 0 => "store where that is not allowed",
        0x300 | 0x1100 => "load where that is not allowed",
        0x400 | 0x1200 => "instruction fetch where nothing of its own can be executed",
        0x600 => "an access that is not aligned",
        0x700 if cause & PIL != 0 => "an illegal instruction",
        0x700 if cause & PPR != 0 => "a privileged instruction",
        0x700 if cause & PTR != 0 => "a trap instruction",
        _ => return format!("interrupt {vector:#x}{place}"),
    };
    format!("{what}{place}")
}

/// Returns the fields of a syndrome.
pub(super) fn fields(syndrome: u64) -> String {
    let (vector, cause) = ((syndrome >> 32) as u32, syndrome as u32);
    let set = FLAGS.iter().filter(|(bit, _)| cause >> bit & 1 != 0);
    let names: Vec<&str> = set.map(|(_, name)| *name).collect();
    format!("interrupt {vector:#x}, ESR {cause:#010x} {}", names.join(" "))
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::{fields, sentence};

    #[test]
    fn a_fault_is_told_in_words() {
        let store = 0x1100 << 32 | 0x0080_0000;
        assert_eq!(
            sentence(store, Some(0xC000_0000)),
            "store where that is not allowed at 0xc0000000"
        );
        assert_eq!(fields(store), "interrupt 0x1100, ESR 0x00800000 DST");
        assert_eq!(
            sentence(0x700 << 32 | 0x0400_0000, None),
            "a privileged instruction"
        );
        assert_eq!(sentence(0x700 << 32 | 0x0200_0000, None), "a trap instruction");
        assert_eq!(fields(0x600 << 32), "interrupt 0x600, ESR 0x00000000");
    }
}
