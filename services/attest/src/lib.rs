// SPDX-License-Identifier: Apache-2.0
//! Quotes: signed statements about what runs on a device, for a verifier far away.
//!
//! A quote is a PSA attestation token (RFC 9783): claims in CBOR, signed as COSE_Sign1 (RFC 9052) with
//! Ed25519. It says which class binary, which system image and which programs run, and repeats the nonce of
//! the one who asks. A task of Bulkhead makes it, in its own time: the hypervisor only gives the task its
//! secret, from which the key follows, and the measurements.
//!
//! Nothing here allocates, and no loop is longer than its input. The encoding is deterministic (RFC 8949,
//! section 4.2.1): the same claims are the same bytes.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

#[cfg(feature = "verify")]
extern crate std;

mod sign;
mod token;
#[cfg(feature = "verify")]
pub mod verify;

pub use sign::SigningKey;
pub use token::{
    CLIENT_ID, Claims, Component, IMPLEMENTATION_ID, LIFECYCLE, LIFECYCLE_UNKNOWN, NONCE, PROFILE,
    PROFILE_NAME, SOFTWARE_COMPONENTS, UEID, ueid, write_token,
};

/// The name of the class binary among components. No partition has such a name.
pub const COMPONENT_CLASS_BINARY: &str = "class binary";
/// The name of the system image among components.
pub const COMPONENT_SYSTEM: &str = "system image";

/// Bytes that a nonce can have (RFC 9783, section 4.1.1).
pub const NONCE_LENGTHS: [usize; 3] = [32, 48, 64];

/// Bytes that are enough for a token with eight components.
pub const MAX_TOKEN: usize = 1024;

/// The request for the public key: one byte, which no nonce is.
pub const KEY_REQUEST: [u8; 1] = [0];
