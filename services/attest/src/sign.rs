// SPDX-License-Identifier: Apache-2.0
//! Signatures by Ed25519 (RFC 8032, section 5.1.6), on the arithmetic of `curve25519-dalek`.
//!
//! `ed25519-dalek` computes the same, and a property test compares the two. It wants the message in one piece
//! and tables of points, and the task has neither. The time of each operation on a secret does not depend on
//! the secret.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "points and numbers of a finite group do not overflow"
)]

use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use sha2::{Digest, Sha512};

/// A key that signs.
#[derive(Clone)]
pub struct SigningKey {
    scalar: Scalar,
    prefix: [u8; 32],
    public: [u8; 32],
}

impl core::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SigningKey")
    }
}

impl SigningKey {
    /// Makes the key that follows from a secret.
    #[must_use]
    #[inline(never)]
    pub fn of_secret(secret: &[u8; 32]) -> Self {
        let (mut low, mut prefix) = ([0; 32], [0; 32]);
        let expanded = digest(&[secret]);
        let (first, second) = expanded.split_at(32);
        low.copy_from_slice(first);
        prefix.copy_from_slice(second);
        let scalar = Scalar::from_bytes_mod_order(clamp_integer(low));
        Self {
            scalar,
            prefix,
            public: times_base(&scalar),
        }
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// Signs a message of two parts, one after the other.
    #[must_use]
    #[inline(never)]
    pub fn sign(&self, message: [&[u8]; 2]) -> [u8; 64] {
        let [a, b] = message;
        let once = number(&digest(&[&self.prefix, a, b]));
        let commitment = times_base(&once);
        let challenge = number(&digest(&[&commitment, &self.public, a, b]));
        let response = once + challenge * self.scalar;
        let mut signature = [0; 64];
        let (first, second) = signature.split_at_mut(32);
        first.copy_from_slice(&commitment);
        second.copy_from_slice(response.as_bytes());
        signature
    }
}

/// Returns 64 bytes as a number below the order of the group.
fn number(bytes: &[u8; 64]) -> Scalar {
    Scalar::from_bytes_mod_order_wide(bytes)
}

/// Returns the bytes of the base point times a number. The function is not inlined, so that its stack is
/// free again for the next digest.
#[inline(never)]
fn times_base(factor: &Scalar) -> [u8; 32] {
    (ED25519_BASEPOINT_POINT * factor).compress().to_bytes()
}

#[inline(never)]
fn digest(parts: &[&[u8]]) -> [u8; 64] {
    let mut hasher = Sha512::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}
