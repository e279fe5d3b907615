// SPDX-License-Identifier: Apache-2.0
//! The owner of the images that a class binary runs: the record with the keys, and the first check of the
//! system image.
//!
//! A class binary without the part `signature` runs every image, and takes the console from the image. With
//! the part, the console and the keys are in the class binary itself.
#![no_std]

#[cfg(feature = "signature")]
mod record;

use bulkhead_arch_api::ClassFacts;
use bulkhead_image::layout::ControllerRecord;
use bulkhead_image::{Image, ImageError, Sha256, Trust};

#[cfg(feature = "signature")]
fn trust<S: Sha256>(sha: &S) -> impl Trust {
    bulkhead_trust::Owner::new(record::record(), move || sha.digest(&[record::constants()]))
}

#[cfg(not(feature = "signature"))]
fn trust<S: Sha256>(_sha: &S) -> impl Trust {
    bulkhead_image::Open
}

/// Checks the system image at its bus address, all but the payloads. This is the first look at it.
///
/// # Errors
/// As [`Image::check_here`].
#[inline(always)]
pub fn check<S: Sha256>(
    bytes: &'static [u8],
    class: &'static ClassFacts,
    sha: &S,
) -> Result<Image<'static>, ImageError> {
    Image::check_here(bytes, class, sha, &trust(sha))
}

/// Returns the console for the reason why an image is refused.
#[inline(always)]
#[must_use]
pub fn console(image: &[u8]) -> Option<ControllerRecord> {
    trust(&bulkhead_image::Portable).console(image)
}
