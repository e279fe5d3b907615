// SPDX-License-Identifier: Apache-2.0
//! Signed images: keys, signatures, and the images that a file has.
//!
//! The owner of a system keeps a private key, and the class binary has the public key. docs/signing.md says
//! what that defends, and what not.

mod file;
mod key;

pub use file::{Found, Judged, Measured};
pub use key::PrivateKey;

use crate::problem::Problem;
use bulkhead_image::layout::{Header, MESSAGE_LEN, SIGNATURE_LEN};
use bulkhead_manifest::{ClassBinary, PublicKey, Signature, seal};
use std::mem::offset_of;
use std::path::Path;
use zerocopy::FromBytes;

/// Reads the public keys of a manifest in this folder.
fn public_keys(signature: &Signature, folder: &Path) -> Result<Vec<PublicKey>, Problem> {
    let read = |name: &String| {
        let file = folder.join(name);
        PublicKey::read(&file).map_err(|why| no_key(&file, &why))
    };
    signature.keys.iter().map(read).collect()
}

/// Writes the keys of the manifest into a class binary, and notes in the image which class binary it is for.
/// With the private key, the image is signed. The class binary runs at the load address.
///
/// # Errors
/// A key cannot be read, the private key is not the owner's, or the class binary has no room for keys.
pub fn bind(
    signature: &Signature,
    folder: &Path,
    key: Option<&PrivateKey>,
    load_address: u64,
    binary: &mut ClassBinary,
    image: &mut [u8],
) -> Result<(), Problem> {
    let keys = public_keys(signature, folder)?;
    let record = binary
        .entrust(&signature.record(&keys, image))
        .map_err(|error| Problem::new(error.to_string()))?;
    seal(image, binary.digest(&record, load_address));
    let Some(key) = key else { return Ok(()) };
    if !keys.contains(&key.public()) {
        let known: Vec<String> = keys.iter().map(ToString::to_string).collect();
        return Err(Problem::new(format!(
            "the manifest does not have the key that signs, {}: the hypervisor would refuse the image",
            key.public()
        ))
        .remedy(format!("sign with the private key of {}", known.join(" or "))));
    }
    key.sign(image)
}

/// Reads a public key.
///
/// # Errors
/// The file has none.
pub fn public_key(file: &Path) -> Result<PublicKey, Problem> {
    PublicKey::read(file).map_err(|why| no_key(file, &why))
}

/// Returns the bytes of an image that are signed.
///
/// # Errors
/// The bytes are no image.
pub fn message(image: &[u8]) -> Result<[u8; MESSAGE_LEN], Problem> {
    header(image).map(|header| header.message())
}

/// Puts a signature into an image.
///
/// # Errors
/// The bytes are no image.
pub fn put_signature(image: &mut [u8], signature: [u8; SIGNATURE_LEN]) -> Result<(), Problem> {
    let start = offset_of!(Header, signature);
    let place = image.get_mut(start..start + SIGNATURE_LEN);
    place
        .ok_or_else(|| Problem::new("the system image has no header"))?
        .copy_from_slice(&signature);
    Ok(())
}

/// Returns the header of an image.
fn header(image: &[u8]) -> Result<Header, Problem> {
    let header = Header::read_from_prefix(image).map(|(header, _)| header);
    header.map_err(|_| Problem::new("the system image has no header"))
}

/// Returns the problem of a file that has no key.
fn no_key(file: &Path, why: &str) -> Problem {
    Problem::new(format!("{}: {why}", file.display()))
        .remedy("`bulkhead keygen NAME` makes NAME.key, which signs, and NAME.pub, which is for the manifest")
}
