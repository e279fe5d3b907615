// SPDX-License-Identifier: Apache-2.0
//! Trust in the maker of an image: the message that the maker signs, and the answers of a class binary with
//! keys.
//!
//! A digest tells damage from health, and a signature tells a stranger from the owner. This crate has no
//! cryptography but SHA-256. A class binary with the part `signature` gives the code that checks a signature,
//! and any other class binary is [`Open`].

use crate::layout::{ControllerRecord, Header, MESSAGE_LEN};
use crate::reader::claimed_console;

/// The first half of the message. An image of another format is another message.
const DOMAIN: [u8; 32] = *b"bulkhead image, format 13\0\0\0\0\0\0\0";

const _: () = assert!(crate::layout::FORMAT == 13, "the domain names the format");

impl Header {
    /// Returns the message that the owner of a system signs. The digest in it covers all tables and the rest
    /// of the header, and the tables have the digest of each payload.
    #[must_use]
    pub fn message(&self) -> [u8; MESSAGE_LEN] {
        let mut message = [0; MESSAGE_LEN];
        let (domain, digest) = message.split_at_mut(DOMAIN.len());
        domain.copy_from_slice(&DOMAIN);
        digest.copy_from_slice(&self.digest);
        message
    }

    /// Tells whether an image has a signature, good or bad.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.signature.iter().any(|byte| *byte != 0)
    }
}

/// The trust of a hypervisor: whose images it runs.
pub trait Trust {
    /// Judges an image whose tables have the digest of its header. Nothing in the tables has been looked at.
    ///
    /// # Errors
    /// [`Refused`]: the reason why the image is not run.
    fn judge(&self, header: &Header) -> Result<(), Refused>;

    /// Returns the console for the reason why an image is refused. A hypervisor that knows its console does
    /// not take the word of an unchecked image.
    fn console(&self, image: &[u8]) -> Option<ControllerRecord>;
}

/// The trust of a class binary without keys: every image is run.
#[derive(Clone, Copy, Debug)]
pub struct Open;

impl Trust for Open {
    #[inline(always)]
    fn judge(&self, _header: &Header) -> Result<(), Refused> {
        Ok(())
    }

    #[inline(always)]
    fn console(&self, image: &[u8]) -> Option<ControllerRecord> {
        claimed_console(image)
    }
}

/// The reason why a hypervisor with keys does not run an image that is not damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The class binary has no key, or its record is damaged.
    NoKey,
    /// The image is not signed.
    Unsigned,
    /// The image is signed by no key of this class binary, or its signature is damaged.
    NotOurs,
    /// The image is older than the least version that may run.
    Outdated {
        /// The version of the image.
        found: u64,
        /// The least version.
        least: u64,
    },
    /// The image is made for another class binary, or this one is damaged.
    OtherBinary,
}
