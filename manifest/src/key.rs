// SPDX-License-Identifier: Apache-2.0
//! Public keys, in the files that other tools write, too.

use std::fmt;
use std::path::Path;

use bulkhead_image::layout::KEY_LEN;
use ed25519_dalek::VerifyingKey;
use ed25519_dalek::pkcs8::DecodePublicKey;

use crate::payload::{read_file, reason};

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
