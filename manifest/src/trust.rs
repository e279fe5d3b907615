// SPDX-License-Identifier: Apache-2.0
//! The owner of a system, and the record that a class binary has of the owner's keys.

use bulkhead_image::claimed_console;
use bulkhead_image::layout::{MAX_KEYS, TRUST_MAGIC, TrustRecord};
use zerocopy::FromZeros;

use crate::key::PublicKey;
use crate::model::SignatureSpec;
use crate::system::System;

/// The table `signature` of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The files with the public keys, relative to the manifest, the one of today first.
    pub keys: Vec<String>,
    /// The version of the image.
    pub version: u64,
    /// The least version that the hypervisor runs.
    pub least_version: u64,
}

impl Signature {
    fn of(spec: &SignatureSpec) -> Self {
        let version = spec.version.get().into();
        let keys = [&spec.key, &spec.next_key].into_iter().flatten();
        let least = spec.least_version.as_ref();
        Self {
            keys: keys.map(|key| key.value.clone()).collect(),
            version,
            least_version: least.map_or(version, |least| least.value.get().into()),
        }
    }

    /// Returns the record for a class binary that runs images of the owners of these keys. The console is the
    /// console of this image.
    #[must_use]
    pub fn record(&self, keys: &[PublicKey], image: &[u8]) -> TrustRecord {
        let mut record = TrustRecord {
            magic: TRUST_MAGIC,
            count: (keys.len().min(MAX_KEYS) as u32).into(),
            least_version: self.least_version.into(),
            ..TrustRecord::new_zeroed()
        };
        for (place, key) in record.keys.iter_mut().zip(keys) {
            *place = key.0;
        }
        if let Some(console) = claimed_console(image) {
            record.console = console;
        }
        record
    }
}

impl System {
    /// Returns the owner of the system, if it has one.
    #[must_use]
    pub fn signature(&self) -> Option<Signature> {
        self.manifest.signature.as_ref().map(Signature::of)
    }
}
