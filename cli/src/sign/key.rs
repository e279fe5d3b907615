// SPDX-License-Identifier: Apache-2.0
//! Private keys, in the files that other tools read too: PKCS #8 in PEM (RFC 8410).

use super::{message, no_key, put_signature};
use crate::problem::Problem;
use bulkhead_image::layout::SIGNATURE_LEN;
use bulkhead_manifest::{PublicKey, read_file, reason};
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey, KeypairBytes};
use ed25519_dalek::{Signer, SigningKey};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The source of random numbers of the operating system.
const RANDOM: &str = "/dev/urandom";
/// More bytes than a file with a key has.
const FILE_MAX: u64 = 1 << 16;

/// A private key of Ed25519. It is not shown.
#[derive(Clone)]
pub struct PrivateKey(SigningKey);

impl PrivateKey {
    /// Makes a new key.
    ///
    /// # Errors
    /// The operating system gives no random numbers.
    pub fn generate() -> Result<Self, Problem> {
        let mut seed = [0; 32];
        File::open(RANDOM)
            .and_then(|mut source| source.read_exact(&mut seed))
            .map_err(Problem::io(RANDOM))?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// Reads a file with a key in PEM.
    ///
    /// # Errors
    /// The file cannot be read, or has no such key.
    pub fn read(file: &Path) -> Result<Self, Problem> {
        let bytes = read_file(file, FILE_MAX).map_err(|error| no_key(file, &reason(&error)))?;
        let text = String::from_utf8(bytes).unwrap_or_default();
        SigningKey::from_pkcs8_pem(text.trim()).map(Self).map_err(|_| {
            let why = if text.contains("PUBLIC KEY") {
                "this is the public key, which cannot sign"
            } else {
                "there is no private key of Ed25519 in PEM"
            };
            no_key(file, why)
        })
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Returns the texts of the two files: the private key, and the public key.
    ///
    /// # Errors
    /// The key cannot be written, which does not happen.
    pub fn texts(&self) -> Result<(String, String), Problem> {
        let wrong = |_| Problem::new("the key cannot be written as PEM");
        // Without the public key: some versions of OpenSSL read no file that has both.
        let private = KeypairBytes {
            secret_key: self.0.to_bytes(),
            public_key: None,
        };
        let private = private.to_pkcs8_pem(LineEnding::LF).map_err(wrong)?;
        let public = self.0.verifying_key().to_public_key_pem(LineEnding::LF);
        let public = public.map_err(|_| Problem::new("the key cannot be written as PEM"))?;
        Ok((private.to_string(), public))
    }

    /// Signs an image in place.
    ///
    /// # Errors
    /// The bytes are no image.
    pub fn sign(&self, image: &mut [u8]) -> Result<(), Problem> {
        let signature = self.signature(&message(image)?);
        put_signature(image, signature)
    }

    /// Returns the signature of a message.
    #[must_use]
    pub fn signature(&self, message: &[u8]) -> [u8; SIGNATURE_LEN] {
        self.0.sign(message).to_bytes()
    }
}
