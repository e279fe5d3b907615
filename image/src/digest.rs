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

    /// Returns the digest of each lane. All have the same length, a multiple of [`BLOCK`]. A CPU without
    /// instructions for SHA-256 may compute several at a time.
    fn lanes(&self, lanes: [&[u8]; LANES]) -> [[u8; 32]; LANES] {
        lanes.map(|lane| self.digest(&[lane]))
    }

    /// Returns the digest of a payload. The digest of a large one is the digest of its lanes' digests and of
    /// what is after the lanes.
    fn payload(&self, bytes: &[u8]) -> [u8; 32] {
        let length = (bytes.len() / (LANES * BLOCK)).saturating_mul(BLOCK);
        if bytes.len() < LANES_FROM {
            return self.digest(&[bytes]);
        }
        let (first, behind) = bytes
            .split_at_checked(length.saturating_mul(LANES))
            .unwrap_or((bytes, &[]));
        let mut all = first.chunks_exact(length);
        let lanes = [(); LANES].map(|()| all.next().unwrap_or(&[]));
        self.digest(&[self.lanes(lanes).as_flattened(), behind])
    }
}

/// Lanes of a large payload: stretches of the same length, one after the other.
pub const LANES: usize = 8;
/// Bytes of a block of SHA-256. A lane has whole blocks.
pub const BLOCK: usize = 64;
/// A payload of so many bytes has lanes.
const LANES_FROM: usize = 64 << 10;

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
    use super::{LANES_FROM, Portable, Sha256};

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
    fn a_large_payload_has_lanes() {
        const LENGTH: usize = LANES_FROM + 4000;
        // 135 blocks each, and 416 bytes after them.
        const LANE: usize = 135 * 64;
        let bytes: [u8; LENGTH] = core::array::from_fn(|index| (index * 7 % 251) as u8);
        let small = &bytes[..LANES_FROM - 1];
        assert_eq!(Portable.payload(small), Portable.digest(&[small]));
        let lanes: [[u8; 32]; 8] =
            core::array::from_fn(|index| Portable.digest(&[&bytes[index * LANE..][..LANE]]));
        let all = Portable.digest(&[lanes.as_flattened(), &bytes[8 * LANE..]]);
        assert_eq!(Portable.payload(&bytes), all);
        for at in [0, LANE, 8 * LANE - 1, LENGTH - 1] {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            assert_ne!(Portable.payload(&damaged), all, "{at}");
        }
    }

    #[test]
    fn parts_are_a_sequence() {
        assert_eq!(Portable.digest(&[b"a", b"", b"bc"]), ABC);
    }
}
