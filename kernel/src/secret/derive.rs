// SPDX-License-Identifier: Apache-2.0
//! The way from the secret of the device to the secret of a partition: HKDF with SHA-256 (RFC 5869), in the
//! layers of DICE (TCG, "DICE Layering Architecture").
//!
//! Each result has the length of one digest, so each step is one HMAC (RFC 2104). Keys and
//! labels have 32 bytes, and the other inputs of a step have fixed lengths. So no two steps have the same
//! input.
//!
//! | layer | from | with |
//! |---|---|---|
//! | kept | the device secret | nothing: it is the same under each image |
//! | class binary | kept | the digest of the class binary |
//! | system | class binary | the digest of the tables of the image |
//! | partition | kept or system, as the manifest wishes | UUID, and the measurement of what the partition is started with |

use bulkhead_image::Sha256;
use bulkhead_image::layout::{SECRET_OF_DEVICE, SECRET_OF_PROGRAM};

/// Bytes of a block of SHA-256.
const BLOCK: usize = 64;

type Key = [u8; 32];
type Label = [u8; 32];

const EXTRACT: Label = *b"Bulkhead secret of the device, 1";
const CLASS_BINARY: Label = *b"Bulkhead layer of class binary\0\0";
const SYSTEM: Label = *b"Bulkhead layer of system\0\0\0\0\0\0\0\0";
const OF_DEVICE: Label = *b"Bulkhead secret of partition\0\0\0\0";
const OF_PROGRAM: Label = *b"Bulkhead secret of program\0\0\0\0\0\0";
const OF_SYSTEM: Label = *b"Bulkhead secret of program, all\0";

/// The owner of a secret.
pub(super) struct Owner<'a> {
    /// Its UUID.
    pub uuid: &'a [u8; 16],
    /// The measurement of what it is started with.
    pub measurement: &'a [u8; 32],
}

/// The layers from which secrets of partitions follow.
pub(super) struct Layers {
    kept: Key,
    system: Key,
}

impl Layers {
    /// Derives the layers from the secret of the device.
    pub(super) fn of<S: Sha256>(sha: &S, device: &Key, class_binary: &[u8; 32], tables: &[u8; 32]) -> Self {
        let kept = hmac(sha, &EXTRACT, [device, &[], &[], &[]]);
        let mut binary = expand(sha, &kept, &CLASS_BINARY, [class_binary, &[]]);
        let system = expand(sha, &binary, &SYSTEM, [tables, &[]]);
        super::forget(&mut binary);
        Self { kept, system }
    }

    /// Derives the secret of a partition. `bound` is `SECRET_OF_*`; the check of the image has refused other
    /// numbers.
    pub(super) fn secret<S: Sha256>(&self, sha: &S, bound: u32, owner: &Owner<'_>) -> Key {
        let Owner { uuid, measurement } = *owner;
        match bound {
            SECRET_OF_DEVICE => expand(sha, &self.kept, &OF_DEVICE, [uuid, &[]]),
            SECRET_OF_PROGRAM => expand(sha, &self.kept, &OF_PROGRAM, [uuid, measurement]),
            _ => expand(sha, &self.system, &OF_SYSTEM, [uuid, measurement]),
        }
    }

    /// Overwrites the layers.
    pub(super) fn forget(&mut self) {
        super::forget(&mut self.kept);
        super::forget(&mut self.system);
    }
}

/// HKDF-Expand (RFC 5869, section 2.3) for one block.
fn expand<S: Sha256>(sha: &S, key: &Key, label: &Label, info: [&[u8]; 2]) -> Key {
    let [first, second] = info;
    hmac(sha, key, [label, first, second, &[1]])
}

/// HMAC (RFC 2104) with SHA-256, and a key of 32 bytes.
fn hmac<S: Sha256>(sha: &S, key: &Key, message: [&[u8]; 4]) -> Key {
    let [a, b, c, d] = message;
    let (mut inner, mut outer) = (pad(key, 0x36), pad(key, 0x5C));
    let digest = sha.digest(&[&inner, a, b, c, d]);
    let result = sha.digest(&[&outer, &digest]);
    super::forget(&mut inner);
    super::forget(&mut outer);
    result
}

/// Returns the key as a block, with each byte changed.
fn pad(key: &Key, with: u8) -> [u8; BLOCK] {
    let mut block = [with; BLOCK];
    for (byte, key) in block.iter_mut().zip(key) {
        *byte ^= key;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_image::Portable;

    fn bytes<const LENGTH: usize>(hex: &str) -> [u8; LENGTH] {
        core::array::from_fn(|index| u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap())
    }

    // RFC 4231, test case 1: the key of 20 bytes is padded with zeros, as HMAC does.
    #[test]
    fn hmac_of_rfc_4231() {
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        let expected = bytes("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        assert_eq!(hmac(&Portable, &key, [b"Hi ", b"The", b"", b"re"]), expected);
    }

    // RFC 5869, test case 3: salt and information are empty. The first block of what is expanded.
    #[test]
    fn hkdf_of_rfc_5869() {
        let prk = hmac(&Portable, &[0; 32], [&[0x0b; 22], &[], &[], &[]]);
        assert_eq!(
            prk,
            bytes("19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04")
        );
        let okm = hmac(&Portable, &prk, [&[], &[], &[], &[1]]);
        assert_eq!(
            okm,
            bytes("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d")
        );
    }

    #[test]
    fn each_input_changes_what_it_is_to_change() {
        let secrets = |device: u8, binary: u8, tables: u8, uuid: u8, measurement: u8| {
            let layers = Layers::of(&Portable, &[device; 32], &[binary; 32], &[tables; 32]);
            let owner = Owner {
                uuid: &[uuid; 16],
                measurement: &[measurement; 32],
            };
            [0, 1, 2].map(|bound| layers.secret(&Portable, bound, &owner))
        };
        let first = secrets(1, 1, 1, 1, 1);
        let differs = |other: [Key; 3]| [0, 1, 2].map(|bound| first[bound] != other[bound]);
        assert_eq!(differs(secrets(1, 1, 1, 1, 1)), [false, false, false]);
        assert_eq!(differs(secrets(2, 1, 1, 1, 1)), [true, true, true]);
        assert_eq!(differs(secrets(1, 2, 1, 1, 1)), [false, false, true]);
        assert_eq!(differs(secrets(1, 1, 2, 1, 1)), [false, false, true]);
        assert_eq!(differs(secrets(1, 1, 1, 2, 1)), [true, true, true]);
        assert_eq!(differs(secrets(1, 1, 1, 1, 2)), [false, true, true]);
        assert!(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
    }
}
