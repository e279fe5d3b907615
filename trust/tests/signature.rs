// SPDX-License-Identifier: Apache-2.0
//! No image runs but the one that its owner has signed.
//!
//! An attacker who can write the image can write its digests, too. So each change here is made twice: as it
//! is, and with the digest of the tables computed anew. Only the second kind comes as far as the signature.

#[path = "../../image/tests/common/mod.rs"]
mod common;

use bulkhead_arch_api::class::AARCH64;
use bulkhead_image::layout::{Header, KEY_LEN, MESSAGE_LEN, SIGNATURE_LEN, TRUST_MAGIC, TrustRecord};
use bulkhead_image::{
    HEADER_LEN, Image, ImageError, Portable, Refused, Trust, seal, set_version, sign_tables,
};
use bulkhead_trust::{Owner, verify};
use common::sample;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use std::mem::offset_of;
use zerocopy::{FromBytes, FromZeros};

/// The digest of the class binary.
const BINARY: [u8; 32] = [7; 32];
/// Changed images of a run.
const IMAGES: u32 = 2000;
/// Changed images of a run of long tests.
const IMAGES_LONG: u32 = 100_000;

fn owner() -> SigningKey {
    SigningKey::from_bytes(&[1; 32])
}

fn stranger() -> SigningKey {
    SigningKey::from_bytes(&[2; 32])
}

/// Returns the record of a class binary that runs this version or later.
fn record(keys: &[VerifyingKey], least: u64) -> TrustRecord {
    let mut record = TrustRecord {
        magic: TRUST_MAGIC,
        count: (keys.len() as u32).into(),
        least_version: least.into(),
        ..TrustRecord::new_zeroed()
    };
    for (place, key) in record.keys.iter_mut().zip(keys) {
        *place = key.to_bytes();
    }
    record
}

fn trust(record: TrustRecord) -> impl Trust {
    Owner::new(record, || BINARY)
}

/// Checks an image as a class binary with the owner's key does.
fn check(bytes: &[u8], record: TrustRecord) -> Result<(), ImageError> {
    let image = Image::check_signed(bytes, &AARCH64, &Portable, &trust(record))?;
    image.check_payloads(&Portable)
}

fn sign(image: &mut [u8], key: &SigningKey) {
    let (header, _) = Header::read_from_prefix(&*image).unwrap();
    let start = offset_of!(Header, signature);
    image[start..start + SIGNATURE_LEN].copy_from_slice(&key.sign(&header.message()).to_bytes());
}

/// Returns an image of version 5 that is ready to be signed.
fn unsigned() -> Vec<u8> {
    let mut builder = sample();
    builder.version = 5;
    let mut image = builder.build().unwrap();
    seal(&mut image, BINARY);
    image
}

fn signed() -> Vec<u8> {
    let mut image = unsigned();
    sign(&mut image, &owner());
    image
}

fn refused(image: &[u8], record: TrustRecord) -> Refused {
    match check(image, record) {
        Err(ImageError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_reason_has_its_name() {
    let (own, other) = (owner().verifying_key(), stranger().verifying_key());
    let image = signed();
    assert_eq!(check(&image, record(&[own], 5)), Ok(()));
    assert_eq!(check(&image, record(&[other, own], 1)), Ok(()));
    assert_eq!(refused(&unsigned(), record(&[own], 5)), Refused::Unsigned);
    assert_eq!(refused(&image, record(&[other], 5)), Refused::NotOurs);
    assert_eq!(
        refused(&image, record(&[own], 6)),
        Refused::Outdated { found: 5, least: 6 }
    );
    assert_eq!(refused(&image, record(&[], 0)), Refused::NoKey);
    assert_eq!(refused(&image, TrustRecord::new_zeroed()), Refused::NoKey);
    let mut many = record(&[own], 5);
    many.count = 3.into();
    assert_eq!(refused(&image, many), Refused::NoKey);
    // The second key does not count if there is one key.
    let mut second = record(&[other, own], 5);
    second.count = 1.into();
    assert_eq!(refused(&image, second), Refused::NotOurs);
    let mut elsewhere = unsigned();
    seal(&mut elsewhere, [8; 32]);
    sign(&mut elsewhere, &owner());
    assert_eq!(refused(&elsewhere, record(&[own], 5)), Refused::OtherBinary);
}

#[test]
fn a_version_cannot_be_forged() {
    let record = record(&[owner().verifying_key()], 6);
    let mut image = signed();
    assert!(set_version(&mut image, 6));
    assert_eq!(refused(&image, record), Refused::NotOurs);
    sign(&mut image, &owner());
    assert_eq!(check(&image, record), Ok(()));
}

#[test]
fn the_signature_of_another_image_is_of_no_use() {
    let (mut first, mut second) = (signed(), unsigned());
    assert!(set_version(&mut second, 9));
    sign(&mut second, &owner());
    let place = offset_of!(Header, signature)..offset_of!(Header, signature) + SIGNATURE_LEN;
    first[place.clone()].copy_from_slice(&second[place]);
    assert_eq!(
        refused(&first, record(&[owner().verifying_key()], 5)),
        Refused::NotOurs
    );
}

/// Every bit of the header, and one bit of each other byte.
#[test]
fn no_flipped_bit_runs() {
    let record = record(&[owner().verifying_key()], 5);
    let good = signed();
    let mut bytes = good.clone();
    for offset in 0..good.len() {
        let bits = if offset < HEADER_LEN {
            0..8
        } else {
            offset % 8..offset % 8 + 1
        };
        for bit in bits {
            bytes[offset] ^= 1 << bit;
            assert!(check(&bytes, record).is_err(), "byte {offset}, bit {bit}");
            bytes[offset] ^= 1 << bit;
        }
    }
    assert_eq!(bytes, good);
}

/// A change of an image. Numbers are places, taken modulo the length.
#[derive(Clone, Debug)]
enum Change {
    Bit(prop::sample::Index, u8),
    Byte(prop::sample::Index, u8),
    Copy(prop::sample::Index, prop::sample::Index, u8),
    Swap(prop::sample::Index, prop::sample::Index),
    Cut(prop::sample::Index),
    Version(u64),
    Binary([u8; 32]),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), 0..8_u8).prop_map(|(place, bit)| Change::Bit(place, bit)),
        4 => (at(), any::<u8>()).prop_map(|(place, value)| Change::Byte(place, value)),
        2 => (at(), at(), any::<u8>()).prop_map(|(from, to, length)| Change::Copy(from, to, length)),
        2 => (at(), at()).prop_map(|(one, other)| Change::Swap(one, other)),
        1 => at().prop_map(Change::Cut),
        1 => any::<u64>().prop_map(Change::Version),
        1 => any::<[u8; 32]>().prop_map(Change::Binary),
    ]
}

impl Change {
    /// Makes the change, in the header and tables or, one in four, anywhere.
    fn apply(&self, bytes: &mut Vec<u8>, anywhere: bool) {
        let (header, _) = Header::read_from_prefix(&bytes[..]).unwrap();
        let tables = (header.tables_len.get() as usize).clamp(HEADER_LEN, bytes.len());
        let end = if anywhere { bytes.len() } else { tables };
        match self {
            Self::Bit(place, bit) => bytes[place.index(end)] ^= 1 << bit,
            Self::Byte(place, value) => bytes[place.index(end)] = *value,
            Self::Copy(from, to, length) => {
                let length = usize::from(*length).min(end);
                let (from, to) = (from.index(end - length + 1), to.index(end - length + 1));
                bytes.copy_within(from..from + length, to);
            }
            Self::Swap(one, other) => bytes.swap(one.index(end), other.index(end)),
            Self::Cut(place) => bytes.truncate(HEADER_LEN + place.index(bytes.len() - HEADER_LEN + 1)),
            Self::Version(version) => drop(set_version(bytes, *version)),
            Self::Binary(digest) => seal(bytes, *digest),
        }
    }
}

/// The images that are changed at random: few in a usual run, and 100,000 in a run of long tests.
fn config() -> Config {
    let long = std::env::var_os("BULKHEAD_LONG_TESTS").is_some();
    Config {
        cases: if long { IMAGES_LONG } else { IMAGES },
        rng_seed: RngSeed::Fixed(0x7472_7573_7400_0001),
        failure_persistence: None,
        max_global_rejects: IMAGES_LONG,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// Up to three changes, and a digest that is right or left as it was.
    #[test]
    fn no_changed_image_runs(
        changes in prop::collection::vec((change(), 0..4_u8), 1..4),
        right_digest in any::<bool>(),
    ) {
        let good = signed();
        let mut bytes = good.clone();
        for (change, anywhere) in &changes {
            change.apply(&mut bytes, *anywhere == 0);
        }
        if right_digest {
            sign_tables(&mut bytes);
        }
        prop_assume!(bytes != good);
        let record = record(&[owner().verifying_key()], 5);
        prop_assert!(check(&bytes, record).is_err());
    }

    /// The verification here, and the one of the library that it is instead of.
    #[test]
    fn it_agrees_with_the_library(
        seed in any::<[u8; 32]>(),
        halves in any::<[[u8; 32]; 2]>(),
        flip in prop::option::of((0..3_usize, any::<prop::sample::Index>())),
    ) {
        let key = SigningKey::from_bytes(&seed);
        let mut message: [u8; MESSAGE_LEN] = halves.as_flattened().try_into().unwrap();
        let mut signature = key.sign(&message).to_bytes();
        let mut public = key.verifying_key().to_bytes();
        if let Some((what, bit)) = flip {
            let bytes: &mut [u8] = match what {
                0 => &mut message,
                1 => &mut signature,
                _ => &mut public,
            };
            let bit = bit.index(8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        prop_assert_eq!(verify(&public, &message, &signature), by_library(&public, &message, &signature));
        prop_assert_eq!(verify(&public, &message, &signature), flip.is_none());
    }
}

fn by_library(key: &[u8; KEY_LEN], message: &[u8; MESSAGE_LEN], signature: &[u8; SIGNATURE_LEN]) -> bool {
    VerifyingKey::from_bytes(key).is_ok_and(|key| {
        key.verify_strict(message, &Signature::from_bytes(signature))
            .is_ok()
    })
}

/// Returns the bytes of hexadecimal digits.
fn bytes<const N: usize>(digits: &str) -> [u8; N] {
    std::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
}

/// RFC 8032, section 7.1, the test `SHA(abc)`: its message has 64 bytes, as ours has.
#[test]
fn known_answer() {
    let key = bytes("ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf");
    let message = bytes(
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
         2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    );
    let mut signature = bytes(
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589\
         09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    );
    assert!(verify(&key, &message, &signature));
    // The same number plus the order of the group (section 5.1.7: it must be below).
    let order = bytes::<32>("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    let mut carry = 0;
    for (byte, order) in signature[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(order) + carry;
        (*byte, carry) = (sum as u8, sum >> 8);
    }
    assert!(!verify(&key, &message, &signature));
}

/// Keys and points of small order, for which one signature is of many messages or of all.
#[test]
fn points_of_small_order_are_refused() {
    let message = [3; MESSAGE_LEN];
    let one = bytes::<32>("0100000000000000000000000000000000000000000000000000000000000000");
    let minus_one = bytes::<32>("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f");
    let of_order_eight = bytes::<32>("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05");
    for weak in [one, minus_one, of_order_eight, [0; 32]] {
        let mut signature = [0; SIGNATURE_LEN];
        signature[..32].copy_from_slice(&weak);
        assert!(!verify(&weak, &message, &signature));
        assert!(!verify(&weak, &message, &[0; SIGNATURE_LEN]));
        let own = owner().verifying_key().to_bytes();
        assert!(!verify(&own, &message, &signature));
    }
}
