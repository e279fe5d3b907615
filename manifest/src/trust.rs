// SPDX-License-Identifier: Apache-2.0
//! The owner of a system: public keys, and the record that a class binary has of them.

use std::fmt;
use std::path::Path;

use bulkhead_image::claimed_console;
use bulkhead_image::layout::{KEY_LEN, MAX_KEYS, TRUST_MAGIC, TrustRecord};
use ed25519_dalek::VerifyingKey;
use ed25519_dalek::pkcs8::DecodePublicKey;
use zerocopy::FromZeros;

use crate::model::SignatureSpec;
use crate::payload::{read_file, reason};
use crate::system::System;

/// More bytes than a file with a key has.
const FILE_MAX: u64 = 1 << 16;

/// A public key of Ed25519.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(pub [u8; KEY_LEN]);

impl PublicKey {
    /// Reads a file with a key in PEM (RFC 8410).
    ///
    /// # Errors
    /// The reason why the file has no such key, in words.
    pub fn read(file: &Path) -> Result<Self, String> {
        let bytes = read_file(file, FILE_MAX).map_err(|error| reason(&error))?;
        let text = String::from_utf8(bytes).map_err(|_| "it is no text".to_owned())?;
        if text.contains("PRIVATE KEY") {
            return Err("it has the private key, which belongs in no system".to_owned());
        }
        let key = VerifyingKey::from_public_key_pem(text.trim())
            .map_err(|_| "it has no key of Ed25519 in PEM".to_owned())?;
        if key.is_weak() {
            return Err("anybody could sign for this key".to_owned());
        }
        Ok(Self(key.to_bytes()))
    }
}

/// Shows the first bytes, by which a person tells keys apart.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The table `signature` of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The files with the public keys, relative to the manifest, the one of today first.
    pub keys: Vec<String>,
    /// The version of the image.
    pub version: u64,
    /// The least version that the hypervisor runs.
    pub least_version: u64,
}

impl Signature {
    fn of(spec: &SignatureSpec) -> Self {
        let version = spec.version.get().into();
        let keys = [&spec.key, &spec.next_key].into_iter().flatten();
        let least = spec.least_version.as_ref();
        Self {
            keys: keys.map(|key| key.value.clone()).collect(),
            version,
            least_version: least.map_or(version, |least| least.value.get().into()),
        }
    }

    /// Returns the record for a class binary that runs images of the owners of these keys. The console is the
    /// console of this image.
    #[must_use]
    pub fn record(&self, keys: &[PublicKey], image: &[u8]) -> TrustRecord {
        let mut record = TrustRecord {
            magic: TRUST_MAGIC,
            count: (keys.len().min(MAX_KEYS) as u32).into(),
            least_version: self.least_version.into(),
            ..TrustRecord::new_zeroed()
        };
        for (place, key) in record.keys.iter_mut().zip(keys) {
            *place = key.0;
        }
        if let Some(console) = claimed_console(image) {
            record.console = console;
        }
        record
    }
}

impl System {
    /// Returns the owner of the system, if it has one.
    #[must_use]
    pub fn signature(&self) -> Option<Signature> {
        self.manifest.signature.as_ref().map(Signature::of)
    }
}
