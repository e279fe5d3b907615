// SPDX-License-Identifier: Apache-2.0
//! The reasons of a hypervisor with keys. A class binary without keys has no code of this file.

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

impl Refused {
    /// Returns the sentence that says why, with `@` in the place of each number, and the numbers.
    pub(crate) fn sentence(self) -> (&'static str, [u64; 2]) {
        match self {
            Self::NoKey => ("this hypervisor has no key", [0; 2]),
            Self::Unsigned => ("image not signed", [0; 2]),
            Self::NotOurs => ("image signed by no key of this hypervisor", [0; 2]),
            Self::Outdated { found, least } => (
                "image of version @, this hypervisor runs version @ or later",
                [found, least],
            ),
            Self::OtherBinary => (
                "image signed for another class binary, or this one is damaged",
                [0; 2],
            ),
        }
    }
}
