// SPDX-License-Identifier: Apache-2.0
//! The measurements of a system: what runs, as digests that one can compare.
//!
//! The hypervisor has checked each digest before it measures. So a measurement takes a digest for each record
//! of a partition, and no look at a payload.

use crate::digest::Sha256;
use crate::reader::Image;

impl Image<'_> {
    /// Returns the digest of the tables, with the digests that they have.
    #[must_use]
    pub const fn system_digest(&self) -> &[u8; 32] {
        &self.header().digest
    }

    /// Returns the digest of the class binary; zeros if the image does not say for which one it is.
    #[must_use]
    pub const fn class_binary_digest(&self) -> &[u8; 32] {
        &self.header().class_binary
    }

    /// Returns the measurement of what a partition is started with, and of its alternatives: the digests of
    /// its payloads, in the order of the loads, and then of its stretches of code memory. Each is appended to
    /// the measurement so far, which starts as zeros, and SHA-256 of both is the next. Bounded by the number
    /// of these records.
    #[must_use]
    pub fn measure<S: Sha256>(&self, partition: u32, sha: &S) -> [u8; 32] {
        let loads = self.loads().iter();
        let loads = loads.filter(|load| load.partition.get() == partition);
        let payloads = loads.filter_map(|load| self.payloads().get(load.payload.get() as usize));
        let residents = self.residents().iter();
        let residents = residents.filter(|resident| resident.partition.get() == partition);
        let digests = payloads.map(|payload| &payload.digest);
        let digests = digests.chain(residents.map(|resident| &resident.digest));
        digests.fold([0; 32], |so_far, digest| sha.digest(&[&so_far, digest]))
    }
}
