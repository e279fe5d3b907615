// SPDX-License-Identifier: Apache-2.0
//! SHA-256 (FIPS 180-4), computed by the code that can do it best.

use sha2::Digest;

/// Something that computes SHA-256.
///
/// The class binary gives an implementation that uses the CPU's own instructions, if it has them;
/// [`Portable`] is there for everyone else. A payload of tens of megabytes makes the difference worth a
/// trait.
pub trait Sha256 {
    /// Returns the digest of `parts` in sequence. Bounded by their length.
    fn digest(&self, parts: &[&[u8]]) -> [u8; 32];
}

/// SHA-256 in portable code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Portable;

impl Sha256 for Portable {
    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = sha2::Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        hasher.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Portable, Sha256};

    // FIPS 180-4 example: SHA-256("abc").
    const ABC: [u8; 32] = [
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0,
        0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
    ];

    #[test]
    fn known_answer() {
        assert_eq!(Portable.digest(&[b"abc"]), ABC);
    }

    #[test]
    fn parts_are_a_sequence() {
        assert_eq!(Portable.digest(&[b"a", b"", b"bc"]), ABC);
    }
}
