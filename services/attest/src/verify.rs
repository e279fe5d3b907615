// SPDX-License-Identifier: Apache-2.0
//! The judgement of a token, on the host: everything in it may be hostile.
//!
//! The signature comes before the claims: of a token that the key has not signed, nothing is believed. The
//! claims are then read strictly, because a reader that is more tolerant than others can be told another
//! story.

use crate::token::{
    ALGORITHM, CLIENT_ID, COMPONENT_ALGORITHM, COMPONENT_SIGNER, COMPONENT_TYPE, COMPONENT_VALUE,
    IMPLEMENTATION_ID, LIFECYCLE, NONCE, PROFILE, PROFILE_NAME, SOFTWARE_COMPONENTS, UEID, ueid,
};
use ciborium::Value;
use coset::{CoseSign1, RegisteredLabelWithPrivate, TaggedCborSerializable, iana};
use ed25519_dalek::{Signature, VerifyingKey};
use std::fmt;
use std::string::String;
use std::vec::Vec;

/// Bytes of a token at most.
pub const MAX_TOKEN: usize = 1 << 16;
/// Levels of nested items in a token at most.
const MAX_DEPTH: usize = 8;

/// The reason why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The token is too long, or is no COSE_Sign1 with its tag.
    NoToken,
    /// The token is signed by another algorithm than Ed25519.
    Algorithm,
    /// The key is no public key of Ed25519.
    BadKey,
    /// The key has not signed the token, or the token was changed.
    Signature,
    /// This claim of the profile is missing, has another type, or is there twice.
    Claim(i64),
    /// The claims are no map with numbers as keys, or have a key that the profile does not know.
    Claims,
    /// A component is not as the profile says.
    Component,
    /// The token is an answer to another question.
    Nonce,
    /// The token names another key as its device.
    Device,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken => f.write_str("not a signed token (COSE_Sign1)"),
            Self::Algorithm => f.write_str("not signed by Ed25519"),
            Self::BadKey => f.write_str("the key is no public key"),
            Self::Signature => f.write_str("the key has not signed it, or it was changed"),
            Self::Claim(key) => write!(f, "claim {key} is missing, is there twice, or is malformed"),
            Self::Claims => f.write_str("the claims are not those of a PSA token"),
            Self::Component => f.write_str("a software component is malformed"),
            Self::Nonce => f.write_str("it answers another nonce"),
            Self::Device => f.write_str("it names another key than the one that has signed it"),
        }
    }
}

impl std::error::Error for Refusal {}

/// A component that was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// Its digest.
    pub measurement: [u8; 32],
    /// SHA-256 of the key of the one who has signed it.
    pub signer: [u8; 32],
}

/// The claims of an accepted token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The client that asked.
    pub client: i32,
    /// The state of the device's life.
    pub lifecycle: u16,
    /// The digest of the class binary.
    pub implementation: [u8; 32],
    /// The measured components.
    pub components: Vec<Measured>,
}

/// Judges a token: whether the owner of `key` has signed it as the answer to `nonce`.
///
/// # Errors
/// [`Refusal`]: the first thing that is wrong.
pub fn verify(token: &[u8], key: &[u8; 32], nonce: &[u8]) -> Result<Quote, Refusal> {
    judge_claims(&signed_payload(token, key)?, key, nonce)
}

/// Judges the payload of a token that the owner of `key` has signed.
///
/// # Errors
/// As [`verify`].
pub fn judge_claims(payload: &[u8], key: &[u8; 32], nonce: &[u8]) -> Result<Quote, Refusal> {
    let claims = Map::read(payload)?;
    if claims.text(PROFILE)? != PROFILE_NAME {
        return Err(Refusal::Claim(PROFILE));
    }
    if claims.bytes(NONCE)? != nonce {
        return Err(Refusal::Nonce);
    }
    if claims.bytes(UEID)? != ueid(key) {
        return Err(Refusal::Device);
    }
    let client = i32::try_from(claims.integer(CLIENT_ID)?);
    let lifecycle = u16::try_from(claims.integer(LIFECYCLE)?);
    Ok(Quote {
        client: client.map_err(|_| Refusal::Claim(CLIENT_ID))?,
        lifecycle: lifecycle.map_err(|_| Refusal::Claim(LIFECYCLE))?,
        implementation: claims.digest(IMPLEMENTATION_ID)?,
        components: components(claims.get(SOFTWARE_COMPONENTS)?)?,
    })
}

/// Returns the payload of a token that the owner of a key has signed.
fn signed_payload(token: &[u8], key: &[u8; 32]) -> Result<Vec<u8>, Refusal> {
    if token.len() > MAX_TOKEN {
        return Err(Refusal::NoToken);
    }
    let signed = CoseSign1::from_tagged_slice(token).map_err(|_| Refusal::NoToken)?;
    let algorithm = RegisteredLabelWithPrivate::Assigned(iana::Algorithm::EdDSA);
    if signed.protected.header.alg != Some(algorithm) || !signed.protected.header.crit.is_empty() {
        return Err(Refusal::Algorithm);
    }
    let key = VerifyingKey::from_bytes(key).map_err(|_| Refusal::BadKey)?;
    signed.verify_signature(&[], |signature, message| {
        let signature = Signature::from_slice(signature).map_err(|_| Refusal::Signature)?;
        key.verify_strict(message, &signature)
            .map_err(|_| Refusal::Signature)
    })?;
    signed.payload.ok_or(Refusal::NoToken)
}

/// A map with numbers as keys.
struct Map(Vec<(i64, Value)>);

impl Map {
    /// Reads the claims of a token.
    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut rest = bytes;
        let value: Value = ciborium::de::from_reader_with_recursion_limit(&mut rest, MAX_DEPTH)
            .map_err(|_| Refusal::Claims)?;
        if !rest.is_empty() {
            return Err(Refusal::Claims);
        }
        let all = Self::of(value).ok_or(Refusal::Claims)?;
        let known = [
            NONCE,
            UEID,
            PROFILE,
            CLIENT_ID,
            LIFECYCLE,
            IMPLEMENTATION_ID,
            SOFTWARE_COMPONENTS,
        ];
        let is_known = all.0.iter().all(|(key, _)| known.contains(key));
        is_known.then_some(all).ok_or(Refusal::Claims)
    }

    /// Returns the map that a value is.
    fn of(value: Value) -> Option<Self> {
        let pairs = value.into_map().ok()?.into_iter();
        let numbered = pairs.map(|(key, value)| Some((i64::try_from(key.into_integer().ok()?).ok()?, value)));
        numbered.collect::<Option<_>>().map(Self)
    }

    /// Returns the only value of a key.
    fn get(&self, key: i64) -> Result<&Value, Refusal> {
        let mut found = self.0.iter().filter(|(own, _)| *own == key);
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Ok(value),
            _ => Err(Refusal::Claim(key)),
        }
    }

    fn bytes(&self, key: i64) -> Result<&[u8], Refusal> {
        let bytes = self.get(key)?.as_bytes();
        bytes.map(Vec::as_slice).ok_or(Refusal::Claim(key))
    }

    fn digest(&self, key: i64) -> Result<[u8; 32], Refusal> {
        self.bytes(key)?.try_into().map_err(|_| Refusal::Claim(key))
    }

    fn text(&self, key: i64) -> Result<&str, Refusal> {
        self.get(key)?.as_text().ok_or(Refusal::Claim(key))
    }

    fn integer(&self, key: i64) -> Result<i64, Refusal> {
        let number = self.get(key)?.as_integer();
        let number = number.and_then(|number| i64::try_from(number).ok());
        number.ok_or(Refusal::Claim(key))
    }
}

/// Reads the components, of which there is one at least.
fn components(value: &Value) -> Result<Vec<Measured>, Refusal> {
    let all = value.as_array().filter(|all| !all.is_empty());
    let all = all.ok_or(Refusal::Claim(SOFTWARE_COMPONENTS))?;
    all.iter().map(component).collect()
}

fn component(value: &Value) -> Result<Measured, Refusal> {
    let map = Map::of(value.clone()).ok_or(Refusal::Component)?;
    let malformed = |_: Refusal| Refusal::Component;
    if map.0.len() != 4 || map.text(COMPONENT_ALGORITHM).map_err(malformed)? != ALGORITHM {
        return Err(Refusal::Component);
    }
    Ok(Measured {
        name: map.text(COMPONENT_TYPE).map_err(malformed)?.into(),
        measurement: map.digest(COMPONENT_VALUE).map_err(malformed)?,
        signer: map.digest(COMPONENT_SIGNER).map_err(malformed)?,
    })
}
