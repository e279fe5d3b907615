// SPDX-License-Identifier: Apache-2.0
//! A token: the claims (RFC 9783, section 4), and the signature around them (RFC 9052, section 4.2).

use crate::NONCE_LENGTHS;
use crate::sign::SigningKey;
use core::convert::Infallible;
use minicbor::Encoder;
use minicbor::data::Tag;
use minicbor::encode::write::Cursor;
use minicbor::encode::{Error, Write};
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
const SIGN1: Tag = Tag::new(18);
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
    fn write<W: Write>(&self, ueid: &[u8; 33], to: &mut Encoder<W>) -> Result<(), Error<W::Error>> {
        to.map(7)?;
        to.i64(NONCE)?.bytes(self.nonce)?;
        to.i64(UEID)?.bytes(ueid)?;
        to.i64(PROFILE)?.str(PROFILE_NAME)?;
        to.i64(CLIENT_ID)?.i64(self.client.into())?;
        to.i64(LIFECYCLE)?.i64(LIFECYCLE_UNKNOWN)?;
        to.i64(IMPLEMENTATION_ID)?.bytes(&self.implementation)?;
        to.i64(SOFTWARE_COMPONENTS)?.array(self.components.len() as u64)?;
        for component in self.components {
            to.map(4)?;
            to.i64(COMPONENT_TYPE)?.str(component.name)?;
            to.i64(COMPONENT_VALUE)?.bytes(&component.measurement)?;
            to.i64(COMPONENT_SIGNER)?.bytes(&self.signer)?;
            to.i64(COMPONENT_ALGORITHM)?.str(ALGORITHM)?;
        }
        Ok(())
    }
}

/// Counts what is written.
struct Length(u64);

impl Write for Length {
    type Error = Infallible;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0 = self.0.saturating_add(bytes.len() as u64);
        Ok(())
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
    let mut length = Encoder::new(Length(0));
    claims.write(&ueid, &mut length).ok()?;

    let mut token = Encoder::new(Cursor::new(&mut *to));
    token.tag(SIGN1).ok()?.array(4).ok()?.bytes(&PROTECTED).ok()?;
    token.map(1).ok()?.i64(KEY_ID).ok()?;
    token.bytes(ueid.get(1..)?.get(..KEY_ID_LENGTH)?).ok()?;
    let head = token.writer().position();
    token.bytes_len(length.writer().0).ok()?;
    claims.write(&ueid, &mut token).ok()?;
    let end = token.writer().position();

    // The payload with its head is the end of what is signed, too.
    let signature = key.sign([&SIGNED_PREFIX, to.get(head..end)?]);
    let mut rest = Encoder::new(Cursor::new(to.get_mut(end..)?));
    rest.bytes(&signature).ok()?;
    rest.writer().position().checked_add(end)
}
