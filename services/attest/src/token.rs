// SPDX-License-Identifier: Apache-2.0
//! A token: the claims (RFC 9783, section 4), and the signature around them (RFC 9052, section 4.2).

use crate::NONCE_LENGTHS;
use crate::cbor::Writer;
use crate::sign::SigningKey;
use sha2::{Digest, Sha256};

/// Claim: the nonce of the one who asks.
pub const NONCE: i64 = 10;
/// Claim: the identifier of the device's key.
pub const UEID: i64 = 256;
/// Claim: the profile.
pub const PROFILE: i64 = 265;
/// Claim: the client that asked for the token.
pub const CLIENT_ID: i64 = 2394;
/// Claim: the state of the device's life.
pub const LIFECYCLE: i64 = 2395;
/// Claim: the implementation.
pub const IMPLEMENTATION_ID: i64 = 2396;
/// Claim: what runs.
pub const SOFTWARE_COMPONENTS: i64 = 2399;

/// The profile of RFC 9783.
pub const PROFILE_NAME: &str = "tag:psacertified.org,2023:psa#tfm";
/// The state of the device's life is not known: the hypervisor sees no fuses.
pub const LIFECYCLE_UNKNOWN: i64 = 0;

/// Keys of a component (RFC 9783, section 4.4.1).
pub(crate) const COMPONENT_TYPE: i64 = 1;
pub(crate) const COMPONENT_VALUE: i64 = 2;
pub(crate) const COMPONENT_SIGNER: i64 = 5;
pub(crate) const COMPONENT_ALGORITHM: i64 = 6;

/// The name of the digest of all measurements.
pub(crate) const ALGORITHM: &str = "sha-256";
/// Tag of COSE_Sign1.
const SIGN1: u64 = 18;
/// The protected header: the algorithm (1) is EdDSA (-8).
const PROTECTED: [u8; 3] = [0xA1, 0x01, 0x27];
/// Unprotected header: the identifier of the key.
const KEY_ID: i64 = 4;
/// Bytes of a key identifier.
const KEY_ID_LENGTH: usize = 8;
/// A `Sig_structure` up to the payload: an array of four, the context, the protected header, no further data.
const SIGNED_PREFIX: [u8; 17] = *b"\x84\x6ASignature1\x43\xA1\x01\x27\x40";

/// A measured component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its digest.
    pub measurement: [u8; 32],
}

/// The claims of a token.
#[derive(Clone, Copy, Debug)]
pub struct Claims<'a> {
    /// The nonce of the one who asks, of 32, 48 or 64 bytes.
    pub nonce: &'a [u8],
    /// The client that asked. Numbers below 0 are clients that are not trusted by the maker of the token.
    pub client: i32,
    /// The digest of the class binary, by which the implementation is known.
    pub implementation: [u8; 32],
    /// SHA-256 of the public key of the one who has signed the components.
    pub signer: [u8; 32],
    /// The measured components.
    pub components: &'a [Component<'a>],
}

/// Returns the identifier of a key: a random number as far as others can tell (RFC 9711, section 4.2.1.1).
#[must_use]
pub fn ueid(public: &[u8; 32]) -> [u8; 33] {
    let mut ueid = [0; 33];
    if let Some((kind, digest)) = ueid.split_first_mut() {
        *kind = 1;
        digest.copy_from_slice(&Sha256::digest(public));
    }
    ueid
}

impl Claims<'_> {
    /// Writes the claims, in the order of their keys as bytes.
    fn write(&self, ueid: &[u8; 33], writer: &mut Writer<'_>) {
        writer.map(7);
        writer.integer(NONCE);
        writer.bytes(self.nonce);
        writer.integer(UEID);
        writer.bytes(ueid);
        writer.integer(PROFILE);
        writer.text(PROFILE_NAME);
        writer.integer(CLIENT_ID);
        writer.integer(self.client.into());
        writer.integer(LIFECYCLE);
        writer.integer(LIFECYCLE_UNKNOWN);
        writer.integer(IMPLEMENTATION_ID);
        writer.bytes(&self.implementation);
        writer.integer(SOFTWARE_COMPONENTS);
        writer.array(self.components.len());
        for component in self.components {
            writer.map(4);
            writer.integer(COMPONENT_TYPE);
            writer.text(component.name);
            writer.integer(COMPONENT_VALUE);
            writer.bytes(&component.measurement);
            writer.integer(COMPONENT_SIGNER);
            writer.bytes(&self.signer);
            writer.integer(COMPONENT_ALGORITHM);
            writer.text(ALGORITHM);
        }
    }
}

/// Writes a signed token into `to`, and returns its length. `None` if the nonce has no length that a nonce
/// has, if there is no component, or if there is no room.
#[must_use]
pub fn write_token(claims: &Claims<'_>, key: &SigningKey, to: &mut [u8]) -> Option<usize> {
    if !NONCE_LENGTHS.contains(&claims.nonce.len()) || claims.components.is_empty() {
        return None;
    }
    let ueid = ueid(key.public());
    let mut counter = Writer::new(&mut []);
    claims.write(&ueid, &mut counter);
    let length = counter.length();

    let mut writer = Writer::new(to);
    writer.tag(SIGN1);
    writer.array(4);
    writer.bytes(&PROTECTED);
    writer.map(1);
    writer.integer(KEY_ID);
    writer.bytes(ueid.get(1..)?.get(..KEY_ID_LENGTH)?);
    let head = writer.length();
    writer.bytes_follow(length);
    claims.write(&ueid, &mut writer);
    let end = writer.finish()?;

    // The payload with its head is the end of what is signed, too.
    let signature = key.sign([&SIGNED_PREFIX, to.get(head..end)?]);
    let mut writer = Writer::new(to.get_mut(end..)?);
    writer.bytes(&signature);
    writer.finish()?.checked_add(end)
}
