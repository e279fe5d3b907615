// SPDX-License-Identifier: Apache-2.0
//! The verification of a signature by Ed25519 (RFC 8032, section 5.1.7), on the arithmetic of
//! `curve25519-dalek`.
//!
//! `ed25519_dalek::VerifyingKey::verify_strict` computes the same, and a property test compares the two. It
//! keeps two tables of points on the stack, which takes 8 KiB on a microcontroller. Two multiplications, one
//! after the other, take half of that, and boot has the time. Nothing here is secret.

use bulkhead_image::layout::{KEY_LEN, MESSAGE_LEN, SIGNATURE_LEN};
use curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::Scalar;
use sha2::{Digest, Sha512};

/// Tells whether the owner of a key has signed this message. A key or signature that more than one message
/// could have is refused: points of small order, and a number beyond the order of the group.
///
/// Each step is a function that is not inlined, so that the stack of one is free for the next.
#[must_use]
#[inline(never)]
pub fn verify(key: &[u8; KEY_LEN], message: &[u8; MESSAGE_LEN], signature: &[u8; SIGNATURE_LEN]) -> bool {
    let Some((commitment, response)) = halves(signature) else {
        return false;
    };
    let Some(response) = scalar(response).filter(|_| is_point(commitment)) else {
        return false;
    };
    let Some(negated) = negated(key) else {
        return false;
    };
    let challenge = challenge(commitment, key, message);
    combined(&negated, &challenge, &response) == *commitment
}

fn halves(signature: &[u8; SIGNATURE_LEN]) -> Option<(&[u8; 32], &[u8; 32])> {
    Some((signature.first_chunk()?, signature.last_chunk()?))
}

/// Tells whether the bytes are a point that has not a small order.
#[inline(never)]
fn is_point(bytes: &[u8; 32]) -> bool {
    point(bytes).is_some()
}

/// Returns the negative of the point that is a key.
#[inline(never)]
fn negated(key: &[u8; KEY_LEN]) -> Option<EdwardsPoint> {
    point(key).map(|point| -point)
}

/// Returns the point of these bytes, if it is one and has not a small order.
fn point(bytes: &[u8; 32]) -> Option<EdwardsPoint> {
    let point = CompressedEdwardsY(*bytes).decompress()?;
    (!point.is_small_order()).then_some(point)
}

/// Returns the number of these bytes, if it is below the order of the group.
fn scalar(bytes: &[u8; 32]) -> Option<Scalar> {
    Scalar::from_canonical_bytes(*bytes).into()
}

/// Returns SHA-512 of all that the signature binds, as a number below the order of the group.
#[inline(never)]
fn challenge(commitment: &[u8; 32], key: &[u8; KEY_LEN], message: &[u8; MESSAGE_LEN]) -> Scalar {
    Scalar::from_bytes_mod_order_wide(&digest([commitment, key, message]))
}

#[inline(never)]
fn digest(parts: [&[u8]; 3]) -> [u8; 64] {
    let mut hasher = Sha512::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Returns the bytes of the sum of the base point times `response` and of `negated` times `challenge`.
#[inline(never)]
fn combined(negated: &EdwardsPoint, challenge: &Scalar, response: &Scalar) -> [u8; 32] {
    let (first, second) = (
        times(negated, challenge),
        times(&ED25519_BASEPOINT_POINT, response),
    );
    packed(&first, &second)
}

/// Returns the bytes of the sum of two points.
#[inline(never)]
fn packed(first: &EdwardsPoint, second: &EdwardsPoint) -> [u8; 32] {
    (first + second).compress().to_bytes()
}

#[inline(never)]
fn times(point: &EdwardsPoint, factor: &Scalar) -> EdwardsPoint {
    point * factor
}
