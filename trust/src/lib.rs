// SPDX-License-Identifier: Apache-2.0
//! The trust of a class binary with keys: it runs the images of its owner, and no others.
//!
//! The keys are in a record of the class binary ([`TrustRecord`]), which the host tool writes into the
//! finished binary. A record that is empty or damaged has no key, and no image is run.
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

mod ed25519;

use bulkhead_image::layout::{ControllerRecord, Header, MAX_KEYS, ROLE_CONSOLE, TRUST_MAGIC, TrustRecord};
use bulkhead_image::{Refused, Trust};
pub use ed25519::verify;

/// The trust in the owner of the keys in a record.
#[derive(Clone, Copy, Debug)]
pub struct Owner<D> {
    record: TrustRecord,
    class_binary: D,
}

impl<D: Fn() -> [u8; 32]> Owner<D> {
    /// Makes the trust of a class binary with this record. `class_binary` returns the digest of the
    /// instructions and constants of the class binary.
    pub fn new(record: TrustRecord, class_binary: D) -> Self {
        Self { record, class_binary }
    }

    /// Returns the record, if it is one and has keys.
    fn sound(&self) -> Option<&TrustRecord> {
        let count = self.record.count.get() as usize;
        (self.record.magic == TRUST_MAGIC && (1..=MAX_KEYS).contains(&count)).then_some(&self.record)
    }
}

impl<D: Fn() -> [u8; 32]> Trust for Owner<D> {
    /// Judges an image: first the signature, then the version, which the signature covers, and then whether
    /// the image was made for this class binary. The function is not inlined, so that its stack is free again
    /// afterwards.
    #[inline(never)]
    fn judge(&self, header: &Header) -> Result<(), Refused> {
        let record = self.sound().ok_or(Refused::NoKey)?;
        if !header.is_signed() {
            return Err(Refused::Unsigned);
        }
        let message = header.message();
        let mut keys = record.keys.iter().take(record.count.get() as usize);
        if !keys.any(|key| verify(key, &message, &header.signature)) {
            return Err(Refused::NotOurs);
        }
        let (found, least) = (header.version.get(), record.least_version.get());
        if found < least {
            return Err(Refused::Outdated { found, least });
        }
        if (self.class_binary)() != header.class_binary {
            return Err(Refused::OtherBinary);
        }
        Ok(())
    }

    /// Returns the console of the record, also of a record that is damaged elsewhere: a person shall read
    /// that it is. No address of an image is trusted.
    fn console(&self, _image: &[u8]) -> Option<ControllerRecord> {
        let console = self.record.console;
        (console.role.get() == ROLE_CONSOLE).then_some(console)
    }
}
