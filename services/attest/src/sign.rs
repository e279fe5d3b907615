// SPDX-License-Identifier: Apache-2.0
//! Signatures by Ed25519 (RFC 8032, section 5.1.6).

use ed25519_dalek::ed25519::signature::MultipartSigner;

/// A key that signs.
#[derive(Clone, Debug)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Makes the key that follows from a secret.
    #[must_use]
    #[inline(never)]
    pub fn of_secret(secret: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(secret))
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> &[u8; 32] {
        self.0.as_ref().as_bytes()
    }

    /// Signs a message of two parts, one after the other.
    #[must_use]
    #[inline(never)]
    pub fn sign(&self, message: [&[u8]; 2]) -> [u8; 64] {
        self.0.multipart_sign(&message).to_bytes()
    }
}
